"""Puts the keys of suites, and the suites that ship, in the place of ``{{ suite keys }}`` and ``{{ suites }}`` of a page."""

from __future__ import annotations

from typing import Any

from sparsetune.tuner.config import load_suite, suite_names
from sparsetune.tuner.suite import suite_items
from sparsetune.tuner.suite_keys import KEYS


def on_page_markdown(markdown: str, **_given: Any) -> str:
    """Return the text of a page with tables in the place of its two marks."""
    return markdown.replace("{{ suite keys }}", _keys()).replace("{{ suites }}", _suites())


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
