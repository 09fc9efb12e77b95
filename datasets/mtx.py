"""Matrix Market files (.mtx, .mtx.gz; Boisvert, Pozo, Remington 1996), and TACO's format for tensors of any order like them (.ttx)."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compiler.errors import DataError
from ..compiler.format import Format
from ..compiler.storage.construct import from_entries, tensor
from ..compiler.storage.tensor import Tensor
from .layout import Entries, Layout
from .lines import read_entries
from .textfile import TextFile, read_head, read_text

_FIELDS = {"real": "real", "double": "real", "integer": "integer", "complex": "complex", "pattern": "pattern"}
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


@dataclass(frozen=True)
class Header:
    """The content of the head of a file.

    Args:
        layout: "coordinate" or "array".
        field: "real", "integer", "complex" or "pattern".
        symmetry: "general", "symmetric", "skew-symmetric" or "hermitian".
        shape: extents.
        entries: how many entries the file promises.
        begin: place of the line after the size line.
    """

    layout: str
    field: str
    symmetry: str
    shape: tuple[int, ...]
    entries: int
    begin: int


def read_mtx(path: str | os.PathLike[str], format: Format | str | None = None, index_base: int = 1) -> Tensor:
    """Return the matrix or tensor of a Matrix Market file.

    Real, integer (int64, or uint64 where values need it), complex and pattern fields (values 1.0, whatever else the lines
    hold); coordinate and array layouts; the other half of symmetric, skew-symmetric and hermitian matrices is filled in;
    duplicates are summed. A file without banner is read as general coordinates whose first entry tells the field. With a
    comment ``%%GraphBLAS type float`` or ``double``, values of an integer file may be any numbers.

    Args:
        path: the file, plain or gzip.
        format: None: csr (csf for other orders) for coordinates, dense for arrays.
        index_base: the first coordinate: 1, or 0 for files that count from 0.

    Raises:
        DataError: it is no Matrix Market file, or a broken one; the message names the file, and the line or the entry.
    """
    file = read_text(path)
    header = read_header(file)
    if header.layout == "array":
        return _read_array(file, header, format)
    entries = read_entries(file, header.begin, Layout(len(header.shape), header.field, header.shape, index_base), header.entries)
    columns, values = with_other_half(entries, header.symmetry, file.path)
    return from_entries(header.shape, columns, values, format)


def announced_shape(path: str) -> tuple[int, ...] | None:
    """Return the shape in the size line of a file, plain or gzip; None if long comments come before that line.

    Raises:
        DataError: the file or its head is broken.
    """
    head = read_head(path)
    return read_header(head).shape if head_is_whole(head) else None


def head_is_whole(head: TextFile) -> bool:
    """Whether the head of a file holds the whole size line and something after it."""
    begin, _ = _skip_comments(head, 0)
    return head.next_line(begin) < len(head.data)


def read_header(file: TextFile) -> Header:
    """Read the banner, the comments and the size line.

    Raises:
        DataError: naming the line and the word that is wrong.
    """
    first = file.line_at(0).split()
    banner = bool(first) and first[0].lower().startswith("%%matrix")
    words = [word.lower() for word in first[1:]] if banner else ["matrix", "coordinate", "real", "general"]
    if banner:
        _check_banner(file, first[0], words)
    begin, graphblas = _skip_comments(file, 0)
    if begin >= len(file.data):
        raise file.error("there is no size line; the file is truncated")
    layout, field, symmetry = words[1], _FIELDS[words[2]], words[3]
    if field == "integer" and graphblas in ("float", "double"):
        field = "real"
    sizes, place = _read_sizes(file, begin), file.next_line(begin)
    if layout == "array":
        return Header(layout, field, symmetry, _checked_shape(file, begin, sizes, words[0], symmetry), _array_size(sizes, symmetry), place)
    if len(sizes) < 2:
        raise file.error(f"the size line has {len(sizes)} numbers; it holds rows, columns and entries", begin)
    shape = _checked_shape(file, begin, sizes[:-1], words[0], symmetry)
    if not banner:
        field = _guessed_field(file, place, len(shape))
    return Header(layout, field, symmetry, shape, sizes[-1], place)


def _check_banner(file: TextFile, word: str, words: list[str]) -> None:
    if word.lower() != "%%matrixmarket":
        raise file.error(f"the banner is {word!r}, not '%%MatrixMarket': not a Matrix Market file", 0)
    if len(words) < 4:
        raise file.error("the banner is '%%MatrixMarket matrix coordinate real general' or the like; words are missing", 0)
    choices = (("matrix", "tensor"), ("coordinate", "array"), tuple(_FIELDS), _SYMMETRIES)
    for given, allowed in zip(words, choices, strict=False):
        if given not in allowed:
            raise file.error(f"the banner says {given!r} where one of {', '.join(allowed)} should stand", 0)
    if words[1] == "array" and words[2] == "pattern":
        raise file.error("an array has values: 'array pattern' is no Matrix Market file; use 'coordinate pattern'", 0)
    if words[2] == "pattern" and words[3] not in ("general", "symmetric"):
        raise file.error(f"a pattern is general or symmetric, not {words[3]}", 0)


def _skip_comments(file: TextFile, place: int) -> tuple[int, str | None]:
    """Return the place of the first line that is neither empty nor a comment, and the type in a GraphBLAS comment, if there is one."""
    graphblas = None
    while place < len(file.data):
        end = file.next_line(place)
        line = file.data[place:end].strip()
        if line and not line.startswith(b"%"):
            break
        if line.lower().startswith(b"%%graphblas type "):
            graphblas = line.split()[2].decode("ascii", "replace").lower()
        place = end
    return place, graphblas


def _read_sizes(file: TextFile, place: int) -> list[int]:
    words = file.line_at(place).split()
    for word in words:
        if not word.isdecimal() or not word.isascii() or len(word) > 18:
            raise file.error(f"the size line holds whole numbers, not {word[:40]!r}", place)
    return [int(word) for word in words]


def _checked_shape(file: TextFile, place: int, sizes: list[int], kind: str, symmetry: str) -> tuple[int, ...]:
    if kind == "matrix" and len(sizes) != 2:
        raise file.error(f"the size line gives {len(sizes)} extents; a matrix has rows and columns", place)
    if symmetry != "general" and (len(sizes) != 2 or sizes[0] != sizes[1]):
        raise file.error(f"a {symmetry} matrix is square, not {' x '.join(map(str, sizes))}", place)
    if not sizes:
        raise file.error("the size line gives no extents", place)
    return tuple(sizes)


def _array_size(sizes: list[int], symmetry: str) -> int:
    if symmetry == "general":
        return math.prod(sizes)
    return sizes[0] * (sizes[0] + (-1 if symmetry == "skew-symmetric" else 1)) // 2


def _guessed_field(file: TextFile, place: int, order: int) -> str:
    begin, _ = _skip_comments(file, place)
    return {order: "pattern", order + 2: "complex"}.get(len(file.line_at(begin).split()) if begin < len(file.data) else -1, "real")


def with_other_half(entries: Entries, symmetry: str, path: str) -> tuple[tuple[NDArray[Any], ...], NDArray[Any]]:
    """Return all coordinates and values, adding those that a symmetric file leaves out.

    Raises:
        DataError: a skew-symmetric matrix has a value other than 0 on its diagonal: no matrix is its own negative transpose then.
    """
    if symmetry == "general":
        return entries.columns, entries.values
    rows, columns = entries.columns
    apart = rows != columns
    if symmetry == "skew-symmetric" and np.any(entries.values[~apart]):
        place = int(rows[~apart & (entries.values != 0)][0]) + 1
        raise DataError(f"{path}: a skew-symmetric matrix has zeros on its diagonal, but entry ({place}, {place}) is not 0")
    below = np.flatnonzero(apart)
    other = _mirrored(entries.values[below], symmetry)
    both = np.concatenate([rows, columns[below]]), np.concatenate([columns, rows[below]])
    return both, np.concatenate([entries.values, other])


def _mirrored(values: NDArray[Any], symmetry: str) -> NDArray[Any]:
    return -values if symmetry == "skew-symmetric" else values.conj() if symmetry == "hermitian" else values


def _read_array(file: TextFile, header: Header, format: Format | str | None) -> Tensor:
    """Read the values of an array, first mode fastest; of symmetric ones the lower triangle, column by column."""
    values = read_entries(file, header.begin, Layout(0, header.field, ()), header.entries).values
    if header.symmetry == "general":
        return tensor(values.reshape(header.shape[::-1]).T, format)
    extent = header.shape[0]
    columns, rows = np.triu_indices(extent, 1 if header.symmetry == "skew-symmetric" else 0)
    dense = np.zeros(header.shape, values.dtype)
    dense[columns, rows] = _mirrored(values, header.symmetry)
    dense[rows, columns] = values
    return tensor(dense, format)
