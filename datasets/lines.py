"""Entry lines of text formats: coordinates, then a value. In C where there is a compiler, else in NumPy and Python."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compiler.storage import native
from ..compiler.storage.aligned import aligned_empty, index_dtype
from .textfile import TextFile

VALUE_DTYPES = {
    "pattern": np.dtype(np.float64),
    "real": np.dtype(np.float64),
    "complex": np.dtype(np.complex128),
    "integer": np.dtype(np.int64),
    "unsigned": np.dtype(np.uint64),
}
_VALUE_FIELDS = {"pattern": 0, "complex": 2}
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eEdD][+-]?\d+)?$|[+-]?(inf|infinity|nan)$", re.IGNORECASE)
_INTEGER = re.compile(rb"[+-]?\d+$")
_CHUNK = 1 << 20
_ROOM = 1 << 16


@dataclass(frozen=True)
class Layout:
    """What a line holds.

    Args:
        order: number of coordinates.
        kind: "pattern" (no value), "real", "complex" (two numbers), "integer" or "unsigned".
        extents: by mode; None where the file does not tell.
        base: the first coordinate of a mode, 1 or 0.
    """

    order: int
    kind: str
    extents: tuple[int | None, ...]
    base: int = 1

    @property
    def fields(self) -> int:
        return self.order + _VALUE_FIELDS.get(self.kind, 1)


@dataclass(frozen=True)
class Entries:
    """The entries of a file: coordinates from 0 on by mode, values (ones for a pattern), largest coordinate by mode (-1: none)."""

    columns: tuple[NDArray[Any], ...]
    values: NDArray[Any]
    greatest: tuple[int, ...]


class Mistake(Exception):
    """The first line that does not fit the layout: its place, what is wrong, and the mode (the order for a value)."""

    def __init__(self, place: int, kind: str, mode: int = 0) -> None:
        super().__init__(place, kind, mode)
        self.place, self.kind, self.mode = place, kind, mode


def read_entries(file: TextFile, begin: int, layout: Layout, expected: int | None = None) -> Entries:
    """Read the entries from a place of a file on; empty lines and comments (% or #) are skipped.

    Args:
        file: the text.
        begin: where a line begins.
        layout: what each line holds.
        expected: how many entries the header promises; None where it does not.

    Raises:
        DataError: with the line of the first mistake, or both numbers where there are not as many entries as promised.
    """
    loaded = native.library("st_text")
    reader = _read_native if loaded is not None else _read_python
    try:
        return reader(file, begin, layout, expected)
    except Mistake as mistake:
        if mistake.kind == "too large" and mistake.mode == layout.order and layout.kind == "integer":
            return read_entries(file, begin, Layout(layout.order, "unsigned", layout.extents, layout.base), expected)
        raise _explained(file, layout, mistake) from None


def _check_count(file: TextFile, found: int, expected: int | None) -> None:
    if expected is not None and found != expected:
        hint = "the file is truncated, or its header wrong" if found < expected else "the header is wrong"
        raise file.error(f"the header promises {expected} entries, but the file holds {found}; {hint}")


def _read_native(file: TextFile, begin: int, layout: Layout, expected: int | None) -> Entries:
    ffi, lib = _library()
    text = ffi.from_buffer("char[]", file.data)
    length = len(file.data) - begin
    chunks = max(1, length // _CHUNK)
    threads = native.threads_for(length)
    bounds = begin + np.arange(chunks + 1) * length // chunks
    counts = np.empty(chunks, np.int64)
    lib.st_count_entries(text, chunks, _longs(ffi, bounds), _longs(ffi, counts), threads)
    firsts = np.zeros(chunks + 1, np.int64)
    np.cumsum(counts, out=firsts[1:])
    count = int(firsts[-1])
    _check_count(file, count, expected)
    values = aligned_empty(count, VALUE_DTYPES[layout.kind])
    greatest, undecided = np.full(layout.order, -1, np.int64), np.empty((_ROOM, 2), np.int64)
    undecided_count, extents = np.zeros(1, np.int64), np.array([-1 if extent is None else extent for extent in layout.extents], np.int64)
    wide = [extent is not None and index_dtype(extent) == np.int64 for extent in layout.extents]
    while True:
        columns = tuple(aligned_empty(count, np.int64 if is_wide else np.int32) for is_wide in wide)
        pointers = ffi.new("void *[]", [ffi.cast("void *", column.ctypes.data) for column in columns])
        widths, fives = ffi.new("int8_t[]", wide), powers_of_five()
        kind = getattr(lib, f"ST_{layout.kind.upper()}")
        described = ffi.new("st_entry_layout *", [layout.order, kind, layout.base])
        described.extents, described.columns, described.wide = _longs(ffi, extents), pointers, widths
        described.values, described.fives = ffi.cast("void *", values.ctypes.data), ffi.cast("uint64_t *", fives.ctypes.data)
        found = lib.st_read_entries(
            *(text, chunks, _longs(ffi, bounds), _longs(ffi, firsts), described, _longs(ffi, greatest)),
            *(_longs(ffi, undecided), _ROOM, _longs(ffi, undecided_count), threads),
        )
        if found.kind == lib.ST_MANY_UNDECIDED:
            return _read_python(file, begin, layout, expected)
        narrow_overflow = found.kind == lib.ST_TOO_LARGE and found.mode < layout.order and layout.extents[found.mode] is None
        if narrow_overflow and not all(wide):
            wide, undecided_count[0] = [True] * layout.order, 0
            continue
        break
    if found.kind != lib.ST_FINE:
        raise Mistake(found.place, _kinds(lib)[found.kind], found.mode)
    if layout.kind == "pattern":
        values.fill(1)
    numbers = values.view(np.float64)
    for slot, place in undecided[: int(undecided_count[0])].tolist():
        numbers[slot] = float(file.data[place : place + 2000].split(None, 1)[0].translate(_FORTRAN))
    return Entries(columns, values, tuple(greatest.tolist()))


_FORTRAN = bytes.maketrans(b"dD", b"ee")


@cache
def _library() -> tuple[Any, Any]:
    loaded = native.library("st_text")
    assert loaded is not None
    return loaded


def _longs(ffi: Any, array: NDArray[np.int64]) -> Any:
    return ffi.cast("int64_t *", array.ctypes.data)


def _kinds(lib: Any) -> dict[int, str]:
    names = ("BAD_COORDINATE", "BELOW_BASE", "BEYOND_EXTENT", "BAD_VALUE", "TOO_LARGE", "TOO_FEW", "TOO_MANY")
    return {getattr(lib, f"ST_{name}"): name.lower().replace("_", " ") for name in names}


@cache
def powers_of_five() -> NDArray[np.uint64]:
    """Return the 128 most significant bits of 5**q for q from -342 to 308, high words first.

    Truncated, but rounded up for -27 <= q < 0, where the product with a 64-bit number is exact then (Lemire 2021, section 5).
    """
    words = []
    for power in range(-342, 309):
        five = 5 ** abs(power)
        bits = (five << 128) >> five.bit_length() if power >= 0 else (1 << (five.bit_length() + 127)) // five + (power >= -27)
        words.append((bits >> 64, bits & (2**64 - 1)))
    return np.array(words, np.uint64)


def _read_python(file: TextFile, begin: int, layout: Layout, expected: int | None) -> Entries:
    """Read all fields at once where the text is regular, else line by line to find the mistake."""
    lines = [line for line in file.data[begin:].split(b"\n") if line.strip(_BLANKS) and line.strip(_BLANKS)[:1] not in (b"%", b"#")]
    _check_count(file, len(lines), expected)
    fields = b" ".join(lines).split()
    if len(fields) != len(lines) * layout.fields or not all(map(_FIELD.match, fields)):
        raise _first_mistake(file, begin, layout)
    try:
        table = np.array(fields, np.bytes_).reshape(len(lines), layout.fields)
        columns = tuple(table[:, mode].astype(np.int64) - layout.base for mode in range(layout.order))
        values = _converted(table[:, layout.order :], layout.kind)
    except (ValueError, OverflowError):
        raise _first_mistake(file, begin, layout) from None
    greatest = tuple(int(column.max(initial=-1)) for column in columns)
    beyond = any(extent is not None and most >= extent for most, extent in zip(greatest, layout.extents, strict=True))
    if beyond or any(int(column.min(initial=0)) < 0 for column in columns):
        raise _first_mistake(file, begin, layout)
    return Entries(columns, values, greatest)


_BLANKS = b" \t\r"
_FIELD = re.compile(rb"[^_]*$")


def _converted(fields: NDArray[np.bytes_], kind: str) -> NDArray[Any]:
    if kind == "pattern":
        return np.ones(len(fields))
    if kind in ("integer", "unsigned"):
        return fields[:, 0].astype(VALUE_DTYPES[kind])
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
        if not (_INTEGER if whole else _NUMBER).match(field):
            return "bad value", layout.order
        least, most = (-(2**63), 2**63 - 1) if layout.kind == "integer" else (0, 2**64 - 1)
        if whole and not least <= int(field) <= most:
            return "too large", layout.order
    if len(fields) == layout.fields:
        return None
    return "too few" if len(fields) < layout.fields else "too many", layout.order


def _explained(file: TextFile, layout: Layout, mistake: Mistake) -> Exception:
    """Return the error of a mistake, in the words of the file."""
    fields = file.line_at(mistake.place).split()
    field, mode = fields[min(mistake.mode, len(fields) - 1)], mistake.mode
    extent = layout.extents[mode] if mode < layout.order else None
    parts = [f"{layout.order} coordinates"] if layout.order else []
    parts += {"pattern": [], "complex": ["the two parts of a value"]}.get(layout.kind, ["a value"])
    if mistake.kind in ("bad value", "too large") and mode == layout.order:
        field = next((one for one in fields[mode:] if not (_INTEGER if layout.kind == "integer" else _NUMBER).match(one.encode())), field)
    hint = "; read a file that counts from 0 with index_base=0" if layout.base and field == "0" else ""
    messages = {
        "bad coordinate": f"coordinate {field!r} of mode {mode + 1} is not a whole number",
        "below base": f"coordinate {field} of mode {mode + 1} is below {layout.base}: coordinates count from {layout.base}{hint}",
        "beyond extent": f"coordinate {field} of mode {mode + 1} is out of range: the header says {extent}",
        "bad value": f"value {field!r} is not {'an integer' if layout.kind in ('integer', 'unsigned') else 'a number'}",
        "too large": f"{field} is too large for 64 bits",
        "too few": f"{len(fields)} fields, but an entry has {layout.fields}: {' and '.join(parts)}",
        "too many": f"{len(fields)} fields, but an entry has {layout.fields}: {' and '.join(parts)}",
    }
    return file.error(messages[mistake.kind], mistake.place)
