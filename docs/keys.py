"""Replaces marks in pages by text that is written beside the code: ``{{ suite keys }}``, ``{{ suites }}``, ``{{ directives }}``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sparsetune
from sparsetune.tuner.config import load_suite, suite_names
from sparsetune.tuner.suite import suite_items
from sparsetune.tuner.suite_keys import KEYS


def on_page_markdown(markdown: str, **_given: Any) -> str:
    """Return the text of a page with its marks replaced."""
    made = {"{{ suite keys }}": _keys, "{{ suites }}": _suites, "{{ directives }}": _directives}
    for mark, text in made.items():
        if mark in markdown:
            markdown = markdown.replace(mark, text())
    return markdown


def _directives() -> str:
    """Return the page of the scheduling language without its title and its section on files of the repository."""
    text = (Path(sparsetune.__file__).parent / "compiler" / "schedule" / "README.md").read_text(encoding="utf-8")
    return text.partition("\n")[2].partition("\n## Where things are")[0].strip()


def _keys() -> str:
    tables = []
    for table, keys in KEYS.items():
        rows = (f"| `{key.name}`{' (needed)' if key.needed else ''} | {key.value} | {key.about} |" for key in keys)
        tables.append("\n".join([f"### `{table}`", "", "| key | value | what it means |", "| --- | --- | --- |", *rows]))
    return "\n\n".join(tables)


def _suites() -> str:
    rows = []
    for name in suite_names():
        suite = load_suite(name)
        rows.append(f"| `{name}` | {suite.description} | {len(suite.kernels)} | {len(suite.inputs)} | {len(suite_items(suite))} |")
    return "\n".join(["| suite | what it is | kernels | inputs | items |", "| --- | --- | ---: | ---: | ---: |", *rows])
