"""FROSTT tensors (.tns, .tns.gz): one entry a line, coordinates from 1 on, then a value; with or without a header."""

from __future__ import annotations

import os

from ..compiler.format import Format
from ..compiler.storage.construct import from_entries
from ..compiler.storage.tensor import Tensor
from .layout import Layout
from .lines import read_entries
from .textfile import TextFile, read_head, read_text


def read_tns(path: str | os.PathLike[str], format: Format | str | None = None, index_base: int = 1) -> Tensor:
    """Return the tensor of a .tns file.

    Without a header the first entry tells the order, and the largest coordinates the extents. A header (ParTI's) is a line
    with the order alone, then one with the extents. Lines that begin with # or % are comments; duplicates are summed.

    Args:
        path: the file, plain or gzip.
        format: None: csf (csr for order 2).
        index_base: the first coordinate: 1, or 0 for files that count from 0.

    Raises:
        DataError: a line is no entry, a coordinate is out of range, or there is no entry to tell the order; the message names file and
            line.
    """
    file = read_text(path)
    begin, extents = _entries_begin(file)
    entries = read_entries(file, begin, Layout(len(extents), "real", extents, index_base))
    shape = tuple(most + 1 if extent is None else extent for extent, most in zip(extents, entries.greatest, strict=True))
    return from_entries(shape, entries.columns, entries.values, format)


def entries_begin(head: TextFile) -> tuple[int, tuple[int | None, ...]] | None:
    """Return the place of the first entry and the extents (None for each without a header); None if all of the head is comments.

    Raises:
        DataError: the header is broken.
    """
    begin = _next_entry(head, 0)
    if begin >= len(head.data) or head.next_line(head.next_line(begin)) >= len(head.data):
        return None
    return _entries_begin(head)


def _entries_begin(file: TextFile) -> tuple[int, tuple[int | None, ...]]:
    begin = _next_entry(file, 0)
    if begin >= len(file.data):
        raise file.error("there is no entry to tell the order from")
    words = file.line_at(begin).split()
    if len(words) > 1:
        return begin, (None,) * (len(words) - 1)
    extents, begin = _read_header(file, begin)
    return begin, extents


def announced_shape(path: str) -> tuple[int, ...] | None:
    """Return the shape in the header of a file, plain or gzip; None where there is no header, or a long comment before it.

    Raises:
        DataError: the file or its header is broken.
    """
    head = read_head(path)
    begin = _next_entry(head, 0)
    if begin >= len(head.data) or len(head.line_at(begin).split()) != 1:
        return None
    extents = _next_entry(head, head.next_line(begin))
    return _read_header(head, begin)[0] if head.next_line(extents) < len(head.data) else None


def _next_entry(file: TextFile, place: int) -> int:
    while place < len(file.data):
        end = file.next_line(place)
        line = file.data[place:end].strip()
        if line and line[:1] not in (b"%", b"#"):
            break
        place = end
    return place


def _read_header(file: TextFile, place: int) -> tuple[tuple[int, ...], int]:
    order = _whole_numbers(file, place)[0]
    second = _next_entry(file, file.next_line(place))
    if second >= len(file.data):
        raise file.error("the header ends after the order; the line with the extents is missing", place)
    extents = _whole_numbers(file, second)
    if len(extents) != order or not order:
        raise file.error(f"the header says order {order}, but gives {len(extents)} extents", second)
    return tuple(extents), file.next_line(second)


def _whole_numbers(file: TextFile, place: int) -> list[int]:
    words = file.line_at(place).split()
    for word in words:
        if not word.isdecimal() or not word.isascii() or len(word) > 18:
            raise file.error(f"the header holds whole numbers, not {word[:40]!r}", place)
    return [int(word) for word in words]
