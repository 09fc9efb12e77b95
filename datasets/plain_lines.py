"""Reading entry lines without a compiler: all fields at once if the text is regular, else line by line to find the mistake."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .layout import VALUE_DTYPES, Entries, Layout, Mistake
from .textfile import TextFile

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eEdD][+-]?\d+)?$|[+-]?(inf|infinity|nan)$", re.IGNORECASE)
INTEGER = re.compile(rb"[+-]?\d+$")
_BLANKS = b" \t\r"


def count_entries(file: TextFile, begin: int) -> int:
    """Return how many lines from a place on are neither empty nor comments."""
    return len(_entry_lines(file, begin))


def read_lines(file: TextFile, begin: int, layout: Layout) -> Entries:
    """Read the entries from a place on.

    Raises:
        Mistake: a line does not fit the layout.
    """
    most = layout.fields if layout.kind == "pattern" else None  # a pattern may have anything after its coordinates
    lines = [line.split()[:most] for line in _entry_lines(file, begin)]
    if not lines:
        return Entries((np.empty(0, np.int64),) * layout.order, np.empty(0, VALUE_DTYPES[layout.kind]), (-1,) * layout.order)
    coordinates = [field for line in lines for field in line[: layout.order]]
    regular = all(len(line) == layout.fields for line in lines) and all(map(bytes.isdigit, coordinates))
    if not regular or any(b"_" in field for line in lines for field in line):
        raise _first_mistake(file, begin, layout)
    try:
        table = np.array(lines, np.bytes_).reshape(len(lines), layout.fields)
        columns = tuple(table[:, mode].astype(np.int64) - layout.base for mode in range(layout.order))
        values = _converted(table[:, layout.order :], layout.kind)
    except (ValueError, OverflowError):
        raise _first_mistake(file, begin, layout) from None
    greatest = tuple(int(column.max(initial=-1)) for column in columns)
    beyond = any(extent is not None and most >= extent for most, extent in zip(greatest, layout.extents, strict=True))
    if beyond or any(int(column.min(initial=0)) < 0 for column in columns):
        raise _first_mistake(file, begin, layout)
    return Entries(columns, values, greatest)


def _entry_lines(file: TextFile, begin: int) -> list[bytes]:
    return [line for line in file.data[begin:].split(b"\n") if line.strip(_BLANKS) and line.strip(_BLANKS)[:1] not in (b"%", b"#")]


def _converted(fields: NDArray[np.bytes_], kind: str) -> NDArray[Any]:
    if kind == "pattern":
        return np.ones(len(fields))
    if kind in ("integer", "unsigned"):
        return fields[:, 0].astype(VALUE_DTYPES[kind])
    with np.errstate(over="ignore"):
        numbers = np.char.replace(np.char.lower(fields), b"d", b"e").astype(np.float64)
    return numbers.view(np.complex128)[:, 0] if kind == "complex" else numbers[:, 0]


def _first_mistake(file: TextFile, begin: int, layout: Layout) -> Mistake:
    place = begin
    while place < len(file.data):
        end = file.next_line(place)
        line = file.data[place:end]
        fields = line.split()
        if fields and fields[0][:1] not in (b"%", b"#"):
            found = _mistake_of(fields, layout)
            if found is not None:
                return Mistake(place, *found)
        place = end
    raise AssertionError("a file that cannot be converted has a line that cannot be converted")


def _mistake_of(fields: list[bytes], layout: Layout) -> tuple[str, int] | None:
    for mode in range(layout.order):
        if mode >= len(fields):
            return "too few", mode
        field, extent = fields[mode], layout.extents[mode]
        if not field.isdigit() or len(field) > 18:
            return "below base" if field[:1] == b"-" and field[1:2].isdigit() else "bad coordinate", mode
        if int(field) < layout.base:
            return "below base", mode
        if extent is not None and int(field) - layout.base >= extent:
            return "beyond extent", mode
    for field in fields[layout.order : layout.fields]:
        whole = layout.kind in ("integer", "unsigned")
        if not (INTEGER if whole else NUMBER).match(field):
            return "bad value", layout.order
        least, most = (-(2**63), 2**63 - 1) if layout.kind == "integer" else (0, 2**64 - 1)
        if whole and not least <= int(field) <= most:
            return "too large", layout.order
    if len(fields) == layout.fields or (layout.kind == "pattern" and len(fields) > layout.fields):
        return None
    return "too few" if len(fields) < layout.fields else "too many", layout.order
