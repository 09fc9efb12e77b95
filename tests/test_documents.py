"""What documents name is there: files in code quotes, links, headings that links lead to."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import sparsetune

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    path for pattern in ("*.md", "docs/**/*.md", "compiler/**/*.md", "tuner/**/*.md", "results/*.md") for path in ROOT.glob(pattern)
)
FILE = re.compile(r"`([\w./-]+\.(?:py|md|h|yml))`|`((?:[\w-]+/)+)`")
QUOTED = re.compile(r"``(?!results/)([\w/]+/\w+\.(?:py|md|h))``")  # pages of results are made by what names them
LINK = re.compile(r"\]\(([^)#:\s]*)(#[^)\s]+)?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
PLACEHOLDER = re.compile(r"(^|/)[A-Z]+\.(py|md)$")  # levels/NAME.py


def named(text: str) -> Iterator[tuple[str, set[str]]]:
    """Yield the files and folders that a text names, and the folders that it has spoken of before in the same section."""
    for section in re.split(r"^(?=#)", text, flags=re.MULTILINE):
        spoken: set[str] = set()
        for match in FILE.finditer(section):
            name = match[1] or match[2]
            if not PLACEHOLDER.search(name) or name.endswith("README.md"):
                yield name, set(spoken)
                spoken.add(name.rpartition("/")[0])


def is_there(name: str, page: Path, spoken: set[str]) -> bool:
    return any((base / folder / name).exists() for base in (ROOT, page.parent, ROOT / "compiler") for folder in ("", *spoken))


@pytest.mark.tree
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_pages_name_exist(page: Path) -> None:
    assert [name for name, spoken in named(page.read_text()) if not is_there(name, page, spoken)] == []


@pytest.mark.tree
@pytest.mark.parametrize("folder", ["compiler", "tuner", "datasets"])
def test_files_that_docstrings_name_exist(folder: str) -> None:
    missing = []
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
                missing += [f"{path}: {name}" for name in QUOTED.findall(text) if not is_there(name, path, set())]
    assert missing == []


@pytest.mark.tree
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target, anchor in LINK.findall(page.read_text()):
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor[1:] not in anchors(path)):
            broken.append(target + anchor)
    assert broken == []


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and MkDocs make them."""
    plain = (re.sub(r"[^\w\s-]", "", title.lower()) for title in HEADING.findall(path.read_text()))
    return {re.sub(r"\s+", "-", title.strip()) for title in plain}


@pytest.mark.tree
def test_the_reference_has_every_public_name() -> None:
    listed = set(re.findall(r"^::: sparsetune\.([\w.]+)$", (ROOT / "docs/reference/python.md").read_text(), re.MULTILINE))
    modules = {name for name in sparsetune.__all__ if inspect.ismodule(getattr(sparsetune, name))}
    named = set(sparsetune.__all__) - modules
    assert listed == named | {f"{module}.{name}" for module in modules for name in getattr(sparsetune, module).__all__}


def described(text: str | None, head: str) -> set[str]:
    """Return the names that a section of a docstring describes."""
    section = re.search(rf"^{head}:\n((?:(?:    .*)?\n?)+)", text or "", re.MULTILINE)
    lines = re.findall(r"^    (\*{0,2}\w[\w, *]*): ", section[1], re.MULTILINE) if section else []
    return {name.strip(" *") for line in lines for name in line.split(",")}


def own_names(node: ast.ClassDef) -> set[str]:
    """Return the attributes and methods that a class says it has."""
    stored = (
        one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == "self"
    )
    plain = (
        one.id
        for statement in node.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for one in ast.walk(statement)
        if isinstance(one, ast.Name)
    )
    return {*stored, *plain, *(one.name for one in node.body if isinstance(one, ast.FunctionDef))}


@pytest.mark.tree
@pytest.mark.parametrize("folder", ["compiler", "tuner", "datasets"])
def test_docstrings_describe_what_there_is(folder: str) -> None:
    false = []
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                arguments = node.args
                named = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
                unknown = described(ast.get_docstring(node), "Args") - {one.arg for one in named if one is not None}
            elif isinstance(node, ast.ClassDef):
                unknown = described(ast.get_docstring(node), "Attributes") - own_names(node)
            else:
                continue
            false += [f"{path.relative_to(ROOT)}, {node.name}: {name}" for name in sorted(unknown)]
    assert false == []


def test_what_docstrings_describe_is_found() -> None:
    text = "What it is.\n\nArgs:\n    a, b: two of them,\n        of a kind: odd.\n    *rest: others.\n\nRaises:\n    Error: it is wrong."
    assert described(text, "Args") == {"a", "b", "rest"}
    assert described(text, "Attributes") == set()


@pytest.mark.tree
def test_what_is_missing_is_found() -> None:
    page = ROOT / "docs" / "papers.md"
    text = "`tuner/prune.py`, `model.py`, `mode.py`, `nowhere/`\n# The next section\n`model.py`, `levels/kind.py`"
    missing = [name for name, spoken in named(text) if not is_there(name, page, spoken)]
    assert missing == ["mode.py", "nowhere/", "model.py"]
