"""What differs between targets is asked of them: no other code decides by their names, by those of their units, or by their classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import sparsetune
from sparsetune.compiler.units import HARDWARE, UNITS

ROOT = Path(sparsetune.__file__).parent
NAMES = {*HARDWARE, *UNITS, "interpreter", "cuda-executor"}
DECIDE = ("compiler/targets", "compiler/units.py", "tuner/commands", "tuner/report", "tuner/reports")
"""Targets themselves and what is known of them, the help of commands, reports."""
OTHERS = {
    ("autograd.py", "cpu"): "a device of torch",
    ("tuner/measure/company.py", "cpu"): "a controller of Linux",
}
"""Names that mean something else, by file."""
OPEN = {"registry", "target", "streams"}
"""Modules of ``compiler.targets`` that are about all targets; ``compiler/build`` may import those of single ones, as usual values."""


def files() -> list[str]:
    folders = ("compiler", "tuner", "datasets", "examples")
    found = [*ROOT.glob("*.py"), *(path for folder in folders for path in (ROOT / folder).rglob("*.py"))]
    return sorted(name for name in (path.relative_to(ROOT).as_posix() for path in found) if not name.startswith(DECIDE))


def constants(*nodes: ast.expr | None) -> Iterator[str]:
    """Yield strings, and those in tuples, lists and sets."""
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            yield from constants(*node.elts)


def imported(tree: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """Yield the modules of single targets from which code imports, and what."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and "targets" in (parts := (node.module or "").split(".")):
            names = [alias.asname or alias.name for alias in node.names]
            modules = parts[parts.index("targets") + 1 :] or names
            if not OPEN.issuperset(modules[:1]):
                yield modules[0], names


def decided_by(tree: ast.AST) -> Iterator[str]:
    """Yield the names by which code decides: it compares with them, looks up with them, or asks for the classes of one target."""
    single = {name for _, names in imported(tree) for name in names}
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left, _, others):
                found = constants(left, *others)
                if any(isinstance(each, ast.Attribute) and each.attr == "language" for each in (left, *others)):
                    yield "language"
            case ast.Call(ast.Name("is_word"), [_, *words]):
                found = constants(*words)
            case ast.Call(ast.Attribute(attr="startswith" | "endswith"), [begin]):
                found = (name for text in constants(begin) for name in UNITS if text and name.startswith(text))
            case ast.MatchValue(value):
                found = constants(value)
            case ast.Subscript(_, key):
                found = constants(key)
            case ast.Dict(keys):
                found = constants(*keys)
            case ast.Call(ast.Name("isinstance"), [_, kinds]):
                yield from {each.id for each in ast.walk(kinds) if isinstance(each, ast.Name)} & single
                continue
            case _:
                continue
        yield from NAMES.intersection(found)


@pytest.mark.parametrize("name", files())
def test_nothing_else_decides_by_the_name_of_a_target_or_unit(name: str) -> None:
    tree = ast.parse((ROOT / name).read_text())
    found = {word for word in decided_by(tree) if (name, word) not in OTHERS}
    assert not found, f"{name} decides by {found}; ask what compiler.units or the target says of it"
    assert name.startswith("compiler/build/") or not list(imported(tree)), f"{name} knows one target"


@pytest.mark.parametrize(
    "code",
    [
        'a == "cuda"', 'a in ("gpu_warp", "gpu_thread")', 'a.startswith("gpu")', '{"cpu": 1}', 'a["cuda"]', 'a.language == "c"',
        'is_word(a, "cpu")', 'match a:\n    case "cpu_vector": pass', "from ..targets.cuda import Launch\nisinstance(a, (Launch, int))",
    ],
)  # fmt: skip
def test_decisions_are_found(code: str) -> None:
    assert set(decided_by(ast.parse(code)))
    assert not set(decided_by(ast.parse('def tuned(target: str = "cpu"): compile(target="cuda")')))
