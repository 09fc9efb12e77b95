"""Who may import whom: one way only, as CONTRIBUTING.md says."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import sparsetune

ROOT = Path(sparsetune.__file__).parent
FOLDERS = ("compiler", "tuner", "datasets")
# Stages of the compiler from left to right; a module imports only its own stage and those to its left.
STAGES = {
    "errors": 0, "source": 0, "shown": 0, "html": 0, "warn": 0, "attention": 0, "deadline": 0, "kept": 0, "frozen": 0, "units": 0,
    "fresh": 0, "numpy_later": 0, "format": 2, "native": 1, "notation": 2, "storage": 2, "concrete": 3,
    "schedule": 4, "space": 5, "ir": 1, "passes": 6, "lowering": 6, "codegen": 7, "targets": 8, "build": 9, "kernel": 10,
    "pipeline": 10, "einsum": 10,
    "levels": 2, "workspaces": 3, "views": 2, "evaluate": 11, "output_pattern": 11, "shared_products": 11, "shared_scores": 11,
    "sequence": 11, "evaluate_all": 12, "operators": 12,
}  # fmt: skip
FROM_DATASETS = {"errors", "format", "levels", "storage", "native"}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def modules() -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def imported(path: Path) -> set[tuple[str, ...]]:
    """Return the modules of the project that a file imports, as paths from the root; type-checking imports count too."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    found: set[tuple[str, ...]] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - (node.level - 1)]
            module = (*base, *(node.module.split(".") if node.module else ()))
            found |= {module} if node.module else {(*module, alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sparsetune":
            pytest.fail(f"{path}: imports between our modules are relative")
    return found


def problem(path: Path, module: tuple[str, ...]) -> str | None:
    own = path.relative_to(ROOT).with_suffix("").parts
    if not module:
        return None
    if own[0] == "compiler" and module[0] in ("tuner", "datasets"):
        return "the compiler knows nothing of tuning and files"
    apart = module[0] == "tuner" or (module[0] == "compiler" and len(module) > 1 and module[1] not in FROM_DATASETS)
    if own[0] == "datasets" and apart:
        return "datasets know tensors and formats only"
    if own[0] == module[0] == "compiler" and len(own) > 1 and len(module) > 1 and own[1] != "__init__":
        here, there = STAGES.get(own[1]), STAGES.get(module[1])
        if here is None or there is None:
            return f"{own[1]} or {module[1]} has no place in the order of the stages"
        if there > here:
            return f"{own[1]} stands left of {module[1]}"
    return None


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    problems = {".".join(module): why for module in imported(path) if (why := problem(path, module))}
    assert not problems


def test_the_compiler_has_no_import_cycle() -> None:
    graph = {path: imported(path) for path in modules()}
    names = {path.relative_to(ROOT).with_suffix("").parts: path for path in graph}
    names |= {parts[:-1]: path for parts, path in list(names.items()) if parts[-1] == "__init__"}
    done: set[Path] = set()

    def visit(path: Path, trail: tuple[Path, ...]) -> None:
        assert path not in trail, " -> ".join(str(step.relative_to(ROOT)) for step in (*trail, path))
        if path in done:
            return
        for module in top_level_imports(path):
            if module in names and names[module] != path:
                visit(names[module], (*trail, path))
        done.add(path)

    for path in graph:
        visit(path, ())


def top_level_imports(path: Path) -> set[tuple[str, ...]]:
    """Return what is imported when the module itself is, without what type checkers alone or functions import."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    found: set[tuple[str, ...]] = set()
    for node in parsed(path).body:
        if isinstance(node, ast.ImportFrom) and node.level and node.module:
            found.add((*package[: len(package) - (node.level - 1)], *node.module.split(".")))
    return found


def classes() -> dict[str, set[tuple[str, ...]]]:
    """Return which modules define a class of each name."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for path in modules():
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, set()).add(path.relative_to(ROOT).with_suffix("").parts)
    return found


def met(path: Path, defined: dict[str, set[tuple[str, ...]]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the classes that a module defines, imports, or names through a module that it imports, with where they come from."""
    own, tree = path.relative_to(ROOT).with_suffix("").parts, parsed(path)
    aliases: dict[str, tuple[str, ...]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name, own
        elif isinstance(node, ast.ImportFrom) and node.level:
            module = (*own[:-1][: len(own) - node.level], *(node.module.split(".") if node.module else ()))
            for alias in node.names:
                aliases[alias.asname or alias.name] = (*module, alias.name)
                yield from ((alias.name, place) for place in defined.get(alias.name, ()) if place[: len(module)] == module)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = aliases.get(node.value.id, ())
            if module in defined.get(node.attr, ()):
                yield node.attr, module


def test_no_two_classes_of_one_name_meet() -> None:
    defined = classes()
    for path in modules():
        places: dict[str, set[tuple[str, ...]]] = {}
        for name, place in met(path, defined):
            places.setdefault(name, set()).add(place)
        several = {name: found for name, found in places.items() if len(found) > 1}
        assert not several, f"{path.relative_to(ROOT)} has two classes of one name"


IMPORT_TIMES = """
import time
start = time.process_time()
import numpy
middle = time.process_time()
import sparsetune
sparsetune.evaluate
print(middle - start, time.process_time() - middle)
"""


def test_importing_is_light() -> None:
    shown = (subprocess.run([sys.executable, "-c", IMPORT_TIMES], capture_output=True, text=True, check=True).stdout for _ in range(3))
    (least, own), *_ = sorted((float(ours), float(others)) for others, ours in map(str.split, shown))
    assert least < own  # a fiftieth of NumPy's time


def test_naming_a_function_loads_what_it_needs_only_when_it_is_called() -> None:
    code = "import sparsetune, sys; sparsetune.evaluate, sparsetune.tensor, sparsetune.einsum, sparsetune.tune"
    code += "; print(*(name for name in sys.modules if name.startswith('sparsetune')))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    parts = ("", ".calls", *(f".calls.{name}" for name in ("evaluating", "operands", "einsum", "tuning")))
    assert sorted(loaded) == sorted(["sparsetune", *(f"sparsetune.tuner{part}" for part in parts)])


def test_naming_lookup_loads_what_answers_from_earlier_lookups_and_nothing_that_chooses() -> None:
    code = "import sparsetune, sys; sparsetune.lookup; print(*sys.modules)"
    loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())
    assert "sparsetune.tuner.asking" in loaded
    assert loaded.isdisjoint({"optuna", "sqlite3", "sparsetune.tuner.lookup", "sparsetune.tuner.model", "sparsetune.compiler.space"})


def test_calling_the_compiler_imports_no_tuner_packages() -> None:
    code = "import sparsetune, sys; sparsetune.compile, sparsetune.tensor([1.0]); import sparsetune.compiler.evaluate; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"optuna", "pandas", "sqlalchemy", "z3", "rich", "click", "scipy", "matplotlib"}
    assert not heavy.intersection(loaded)


def test_the_text_of_a_kernel_starts_no_process_and_reads_no_archive() -> None:
    code = "import sparsetune, sys; sparsetune.compile('y(i) = A(i,j) * x(j)', {'A': 'csr'}).source; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"subprocess", "shutil", "tempfile"}.isdisjoint(loaded)


def test_the_text_of_a_kernel_needs_no_numpy_and_the_first_data_bring_it() -> None:
    code = "import sparsetune, sys; k = sparsetune.compile('y(i) = A(i,j) * x(j)', {'A': 'csr'}); k.source; print('numpy' in sys.modules)"
    code += "; print(k(A=[[0.0, 2.0]], x=[1.0, 3.0]), 'numpy' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split("\n")
    assert shown[0] == "False"
    assert shown[1].endswith("True")
