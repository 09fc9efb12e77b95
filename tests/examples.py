"""All examples for users: in the help of commands, in the pages beside the code, and in docstrings."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np
import sparsetune
from sparsetune.compiler.errors import SparsetuneError
from sparsetune.compiler.notation.nodes import Access, accesses
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.storage.construct import tensor
from sparsetune.compiler.storage.tensor import Tensor
from sparsetune.tuner.cli import COMMANDS, group

ROOT = Path(sparsetune.__file__).parent
EXTENT = 12
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(tune-kernel [^`\n]+)`")
_PLACEHOLDER = re.compile(r"(?<![\w=/\"])[A-Z]{3,}(?![\w(])|…|\.\.\.")


def pages() -> list[Path]:
    """Return the pages that explain; not those of results, whose commands take hours."""
    return sorted(path for path in ROOT.rglob("*.md") if not {"results", "tests", ".venv"}.intersection(path.relative_to(ROOT).parts))


def sources() -> list[Path]:
    folders = ("compiler", "tuner", "datasets")
    return sorted([*ROOT.glob("*.py"), *(path for folder in folders for path in (ROOT / folder).rglob("*.py"))])


def command_lines() -> list[str]:
    """Return the command lines that users are shown, each once."""
    commands = [group, *(import_module(f"sparsetune.tuner.commands.{name}").command for name in COMMANDS)]
    shown = [line for command in commands for line in _examples(command)]
    for text in (path.read_text() for path in pages()):
        shown += [line for _, block in _BLOCK.findall(text) for line in block.splitlines() if line.startswith("tune-kernel ")]
        shown += [line for line in _INLINE.findall(text) if len(line.split()) > 2 and not _PLACEHOLDER.search(line)]
    return list(dict.fromkeys(shown))


def _examples(command: click.Command) -> Iterator[str]:
    yield from (line for line, _ in getattr(command, "examples", ()))
    if isinstance(command, click.Group) and command is not group:
        for inner in command.commands.values():
            yield from _examples(inner)


def programs() -> dict[str, str]:
    """Return the Python examples of pages and docstrings by where they stand."""
    found = {}
    for path in pages():
        for number, (language, block) in enumerate(_BLOCK.findall(path.read_text())):
            if language == "python":
                found[f"{path.relative_to(ROOT)}, block {number}"] = block
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
                lines = [example.source for example in doctest.DocTestParser().get_examples(text)]
                if lines:
                    found[f"{path.relative_to(ROOT)}, {getattr(node, 'name', 'module')}"] = "".join(lines)
    return found


class Names(dict[str, Any]):
    """The names of a Python example; operands that it does not make itself are random tensors that fit its expressions."""

    def __init__(self, program: str) -> None:
        super().__init__(st=sparsetune, np=np)
        texts = (node.value for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Constant) and isinstance(node.value, str))
        self._reads = {access.tensor: access for text in texts for access in operands_of(text)}

    def __missing__(self, name: str) -> Any:
        if name not in self._reads:
            raise KeyError(name)
        found = random_tensor(len(self._reads[name].subscripts))
        return found.to_scipy() if found.order == 2 else found.to_numpy()


def operands_of(expression: str) -> tuple[Access, ...]:
    """Return the operands of an expression; none if the text is not one."""
    try:
        return accesses(parse(expression).value)
    except SparsetuneError:
        return ()


def random_tensor(order: int) -> Tensor:
    """Return a small sparse tensor, stored as is usual for its order."""
    rng = np.random.default_rng(order)
    values = rng.random((EXTENT,) * order) * (rng.random((EXTENT,) * order) < 0.3)
    return tensor(values, {1: "dense", 2: "csr"}.get(order, "csf"))
