"""Entry lines in C: csrc/st_text.c, in parallel chunks."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compiler.storage import native
from ..compiler.storage.aligned import aligned_empty, index_dtype
from ..compiler.storage.sealed import sealed
from .layout import VALUE_DTYPES, Entries, Layout, Mistake
from .textfile import TextFile

_CHUNK = 1 << 20
_ROOM = 1 << 16
_FORTRAN = bytes.maketrans(b"dD", b"ee")
_MISTAKES = ("BAD_COORDINATE", "BELOW_BASE", "BEYOND_EXTENT", "BAD_VALUE", "TOO_LARGE", "TOO_FEW", "TOO_MANY")


class TooManyUndecided(Exception):
    """Too many numbers have more digits than 64 bits hold; Python has to read the file."""


class NativeLines:
    """The entry lines of a text from a place on, cut into chunks."""

    def __init__(self, ffi: Any, lib: Any, file: TextFile, begin: int) -> None:
        self._ffi, self._lib, self._file = ffi, lib, file
        self._text = ffi.from_buffer("char[]", file.data)
        length = len(file.data) - begin
        self._threads = native.threads_for(length)
        chunks = max(1, length // _CHUNK)
        self._bounds = begin + np.arange(chunks + 1) * length // chunks
        counts, self._firsts = np.empty(chunks, np.int64), np.zeros(chunks + 1, np.int64)
        lib.st_count_entries(self._text, chunks, self._longs(self._bounds), self._longs(counts), self._threads)
        np.cumsum(counts, out=self._firsts[1:])
        self.count = int(self._firsts[-1])

    def read(self, layout: Layout) -> Entries:
        """Read the entries.

        Raises:
            Mistake: a line does not fit the layout.
            TooManyUndecided: Python has to read the file.
        """
        wide = [extent is not None and index_dtype(extent) == np.int64 for extent in layout.extents]
        try:
            return self._read(layout, wide)
        except Mistake as mistake:
            if mistake.kind != "too large" or mistake.mode >= layout.order or wide[mistake.mode]:
                raise
        return self._read(layout, [True] * layout.order)

    def _read(self, layout: Layout, wide: list[bool]) -> Entries:
        values = aligned_empty(self.count, VALUE_DTYPES[layout.kind])
        columns = tuple(aligned_empty(self.count, np.int64 if is_wide else np.int32) for is_wide in wide)
        greatest, undecided, undecided_count = np.full(layout.order, -1), np.empty((_ROOM, 2), np.int64), np.zeros(1, np.int64)
        described, _kept = self._described(layout, columns, values)
        found = self._lib.st_read_entries(
            *(self._text, len(self._bounds) - 1, self._longs(self._bounds), self._longs(self._firsts), described),
            *(self._longs(greatest), self._longs(undecided), _ROOM, self._longs(undecided_count), self._threads),
        )
        if found.kind == self._lib.ST_MANY_UNDECIDED:
            raise TooManyUndecided
        for name in _MISTAKES:
            if found.kind == getattr(self._lib, f"ST_{name}"):
                raise Mistake(found.place, name.lower().replace("_", " "), found.mode)
        if layout.kind == "pattern":
            values.fill(1)
        for slot, place in undecided[: int(undecided_count[0])].tolist():
            word = self._file.data[place : self._file.next_line(place)].split(None, 1)[0]
            values.view(np.float64)[slot] = float(word.translate(_FORTRAN))
        return Entries(tuple(map(sealed, columns)), values, tuple(greatest.tolist()))

    def _described(self, layout: Layout, columns: tuple[NDArray[Any], ...], values: NDArray[Any]) -> tuple[Any, Any]:
        """Return the layout as a C structure, and the objects that have to live as long as that."""
        ffi, fives = self._ffi, powers_of_five()
        extents = np.array([-1 if extent is None else extent for extent in layout.extents], np.int64)
        pointers = ffi.new("void *[]", [ffi.cast("void *", column.ctypes.data) for column in columns])
        wide = ffi.new("int8_t[]", [int(column.itemsize == 8) for column in columns])
        kind = getattr(self._lib, f"ST_{layout.kind.upper()}")
        described = ffi.new("st_entry_layout *", {"order": layout.order, "kind": kind, "base": layout.base})
        described.extents, described.columns, described.wide = self._longs(extents), pointers, wide
        described.values, described.fives = ffi.cast("void *", values.ctypes.data), ffi.cast("uint64_t *", fives.ctypes.data)
        return described, (extents, pointers, wide, fives)

    def _longs(self, array: NDArray[np.int64]) -> Any:
        return self._ffi.cast("int64_t *", array.ctypes.data)


@cache
def powers_of_five() -> NDArray[np.uint64]:
    """Return the 128 most significant bits of 5**q for q from -342 to 308, high words first.

    They are truncated, but rounded up for -27 <= q < 0, which makes the product with a 64-bit number exact (Lemire 2021, section 5).
    """
    words = []
    for power in range(-342, 309):
        five = 5 ** abs(power)
        bits = (five << 128) >> five.bit_length() if power >= 0 else (1 << (five.bit_length() + 127)) // five + (power >= -27)
        words.append((bits >> 64, bits & (2**64 - 1)))
    return np.array(words, np.uint64)
