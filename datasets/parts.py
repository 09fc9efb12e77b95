"""One text file read by several processes: each reads the lines that begin in its range of bytes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ..compiler.errors import DataError
from . import mtx, tns
from .files import ENDINGS
from .layout import Layout
from .lines import read_entries
from .openfile import open_file
from .textfile import TextFile, read_head

_STEP = 1 << 16  # bytes that are read at a time to find the end of a line
_TENSORS, _MATRICES = (".tns",), (".mtx", ".mm", ".ttx")


@dataclass(frozen=True)
class FilePart:
    """The entries of some lines of a file.

    Attributes:
        columns: coordinates from 0 on, one array a mode.
        values: one per line, and one for the other half of symmetric matrices.
        extents: the extents in the header; if there are none, the least in which these lines fit.
        lines: how many entry lines were read.
        promised: entry lines of the whole file by its header; None where it does not say.
    """

    columns: tuple[NDArray[Any], ...]
    values: NDArray[Any]
    extents: tuple[int, ...]
    lines: int
    promised: int | None


@dataclass(frozen=True)
class FilePlan:
    """How to read the lines of a file, found in its head.

    Attributes:
        begin: place of the first entry line.
        layout: that of each entry line.
        symmetry: that of a matrix; "general" for tensors.
        promised: number of entry lines; None where the head does not give it.
    """

    path: str
    begin: int
    layout: Layout
    symmetry: str = "general"
    promised: int | None = None


def plan_parts(path: str | os.PathLike[str]) -> FilePlan | None:
    """Return how a file can be read in parts; None where it cannot: packed files, arrays, heads with long comments, other endings.

    Raises:
        DataError: the file is missing, or its head is broken.
    """
    name = os.fspath(path)
    if not name.lower().endswith(ENDINGS) or not name.lower().endswith((*_TENSORS, *_MATRICES)):
        return None
    head = read_head(path)
    if head.data[:2] == b"\x1f\x8b" or b"\0" in head.data:
        return None
    return _tensor_plan(name, head) if name.lower().endswith(_TENSORS) else _matrix_plan(name, head)


def read_part(plan: FilePlan, part: int, parts: int) -> FilePart:
    """Return the entries of the lines that begin in one part of a file, which is cut into ``parts`` with equally many bytes.

    Raises:
        DataError: a line is no entry; the message names it.
    """
    begin, data = _lines_of(plan, part, parts)
    text = TextFile(plan.path, data)
    try:
        entries = read_entries(text, 0, plan.layout)
    except DataError:
        if begin:  # read again with all lines before, so that the message names the line
            with open_file(plan.path) as file:
                read_entries(TextFile(plan.path, file.read(begin) + data), begin, plan.layout)
        raise
    needed = tuple(most + 1 if extent is None else extent for extent, most in zip(plan.layout.extents, entries.greatest, strict=True))
    columns, values = mtx.with_other_half(entries, plan.symmetry, plan.path)
    return FilePart(columns, values, needed, len(entries.values), plan.promised)


def check_lines(plan: FilePlan, count: int) -> None:
    """Check that all parts together have as many entry lines as the header promises. Raises ``DataError``."""
    if plan.promised is not None and plan.promised != count:
        hint = "the file is truncated, or its header wrong" if count < plan.promised else "the header is wrong"
        raise DataError(f"{plan.path}: the header promises {plan.promised} entries, but the file holds {count}; {hint}")


def _lines_of(plan: FilePlan, part: int, parts: int) -> tuple[int, bytes]:
    """Return the place of the first line of a part, and the text of its lines."""
    with open_file(plan.path) as file:
        length = max(0, os.fstat(file.fileno()).st_size - plan.begin)
        bounds = [plan.begin + number * length // parts for number in (part, part + 1)]
        starts = [bound if bound == plan.begin else _line_start(file, bound) for bound in bounds]
        file.seek(starts[0])
        return starts[0], file.read(max(0, starts[1] - starts[0]))


def _line_start(file: Any, place: int) -> int:
    """Return the place of the first line that begins at a place or after it; the end of the file if there is none."""
    file.seek(place - 1)
    while piece := file.read(_STEP):
        if (end := piece.find(b"\n")) >= 0:
            return file.tell() - len(piece) + end + 1
    return file.tell()


def _tensor_plan(name: str, head: TextFile) -> FilePlan | None:
    found = tns.entries_begin(head)
    if found is None:
        return None
    begin, extents = found
    return FilePlan(name, begin, Layout(len(extents), "real", extents, 1))


def _matrix_plan(name: str, head: TextFile) -> FilePlan | None:
    if not mtx.head_is_whole(head):
        return None
    header = mtx.read_header(head)
    if header.layout == "array":
        return None
    return FilePlan(name, header.begin, Layout(len(header.shape), header.field, header.shape, 1), header.symmetry, header.entries)

