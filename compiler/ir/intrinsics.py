"""The functions that the loop IR calls by name: what each means (in Python, for the interpreter) and what C calls it.

Arguments that are arrays come as ``ArrayRef``. Positions, keys and counts are i64. Searches take sorted coordinates
``crd[low .. high)``; ``gallop`` gives what ``lower_bound`` gives and is quick where the answer is near ``low``; its last
argument is its first step, which ``gallop_stride`` derives from the lengths of what is merged. ``far_gallop`` is the same, never inlined.
A map numbers its keys 0, 1, 2 ... in the order of insertion; the caller keeps values in an array by that ordinal.
``carry`` adds what threads of a GPU kept in slots, ``width`` elements side by side in each, to the places of the last array that the first
one says, negative where there is none; its last argument is the operator's number in ``passes.carries``.
``load_wide`` loads neighbouring elements, as many as the last argument says, into an array in registers, 16 bytes at once.
``table_insert`` gives the slot of a key in a table of so many slots, -1 in free ones; ``table_keys`` lists its keys in any order, and gives
how many there are. ``..._of_warp`` and ``..._of_block`` are what all threads of a warp or block do at once.
``drain_stores`` ends what was written past the caches.
``enlist`` gives the threads that use parts the numbers 0, 1, 2 ...; ``copy_part`` copies to an array, from an index on, what was left at a
place of parts: so many elements from the one given; ``copy`` copies from an array. A table of pieces has counts of entries for each level:
``note_piece`` writes one down, that of the last level last, ``sum_pieces`` gives how many pieces have none before them whose counts are
not known, and ``piece_place`` where the entries of such a piece begin.
``gemm`` (C += s A B), ``gemv`` (y += s A x), ``ger`` (A += s x y'), ``axpy`` (y += s x) and ``dot`` (the sum of x y) take for every array
its first element and the distance between elements along each of its loops, then the extents of all loops, and the factor s.
``seldom`` is its condition, and says that the code for where it holds had better stand out of the way of the rest.
``map_insert`` may stand only as the whole value of a ``Declare`` or ``SetVar``, since it may find no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..frozen import frozen
from .nodes import BOOL, I64, SHARE_BEGIN, SHARE_NUMBER, Type

OF_LANES = frozenset(("keep_lanes", "sum_lanes", "product_lanes", "min_lanes", "max_lanes", "sums_of_lanes"))
"""What is called over the lanes of a vector; the generated code defines these by itself.

``keep_lanes`` keeps the first lanes, as many as its last argument says, or, if that is a vector, those where it is positive; 0 stands in
the others. ``sums_of_lanes`` takes vectors, of as many lanes or more as they are, and gives the sum of each in a lane: halves are added
until there are as many lanes as vectors, then neighbours."""

OF_GPU = "st_cuda.h"
"""The header of what passes for GPUs alone make calls of."""


@frozen
class Intrinsic:
    """One function.

    Attributes:
        meaning: what the interpreter runs; arrays are ndarrays, maps are ``KeyMap``.
        c_name: the function in csrc/, without the suffix for its type.
        header: the file of csrc/ that defines it.
        code: C that defines it, where no file does; it stands once in what calls it.
        on_gpu: whether ``csrc/st_cuda.h`` defines it too, unless all of its kind are for processors (``targets.cuda.OF_PROCESSORS``).
        typed: whether the element type of the first argument is a suffix of the C name.
        updates: whether it changes its first argument.
        comparisons: how many comparisons the interpreter counts for a call, from its arguments and its result.
        gives: the type of its value; None: that of its first argument.
        extents: which arguments say how much it does: it multiplies and adds as often as their product says.
    """

    meaning: Callable[..., Any]
    c_name: str
    header: str = "st_runtime.h"
    typed: bool = False
    updates: bool = False
    comparisons: Callable[[Sequence[Any], Any], int] = lambda _arguments, _result: 0
    gives: Type | None = I64
    extents: tuple[int, ...] = ()
    code: str = ""
    on_gpu: bool = True


class KeyMap:
    """A map from keys to ordinals, as the interpreter keeps it."""

    def __init__(self) -> None:
        self.ordinals: dict[int, int] = {}
        self.keys: list[int] = []

    def insert(self, key: int) -> int:
        if key not in self.ordinals:
            self.ordinals[key] = len(self.keys)
            self.keys.append(key)
        return self.ordinals[key]

    def clear(self) -> None:
        self.ordinals.clear()
        self.keys.clear()


class Parts:
    """Arrays that threads leave behind, by place, as the interpreter keeps them."""

    def __init__(self) -> None:
        self.arrays: dict[int, Any] = {}
        self.enlisted = 0

    def enlist(self) -> int:
        self.enlisted += 1
        return self.enlisted - 1


def _copy(array: NDArray[Any], at: int, source: NDArray[Any], first: int, count: int) -> None:
    _check_range(array, at, at + count)
    _check_range(source, first, first + count)
    array[at : at + count] = source[first : first + count]


def _copy_part(array: NDArray[Any], at: int, parts: Parts, place: int, first: int, count: int) -> None:
    if place not in parts.arrays:
        raise IndexError(f"nothing was left at place {place}")
    parts.arrays[place].check(first, count, True)
    _copy(array, at, parts.arrays[place].data, first, count)


# A table of pieces (csrc/st_pieces.h): how many are summed, a lock, then the sums, or counts, of all levels of one piece after another


def _begin_pieces(table: NDArray[Any], levels: int, pieces: int) -> None:
    table[: 2 + levels], table[2 + levels : 2 + levels * (pieces + 1)] = 0, -1


def _note_piece(table: NDArray[Any], levels: int, piece: int, level: int, count: int) -> None:
    table[2 + levels * (piece + 1) + level] = count


def _sum_pieces(table: NDArray[Any], levels: int, pieces: int) -> int:
    rows = table[2 : 2 + levels * (pieces + 1)].reshape(-1, levels)
    while table[0] < pieces and rows[table[0] + 1, -1] >= 0:
        rows[table[0] + 1] += rows[table[0]]
        table[0] += 1
    return int(table[0])


def _piece_place(table: NDArray[Any], levels: int, piece: int, level: int) -> int:
    if piece > table[0]:
        raise IndexError(f"the place of piece {piece} is not known yet")
    return int(table[2 + levels * piece + level])


def type_of_call(function: str, arguments: Sequence[Type]) -> Type:
    """Return the type of what a function gives, from the types of its arguments."""
    if function in OF_LANES:
        kept = arguments[0] if function == "keep_lanes" else arguments[0].element
        return kept.vector(len(arguments)) if function == "sums_of_lanes" else kept
    return INTRINSICS[function].gives or arguments[0]


def _check_range(array: NDArray[Any], low: int, high: int) -> None:
    if not (0 <= low <= high <= len(array)) and low < high:
        raise IndexError(f"range {low} .. {high} of an array of {len(array)} elements")


# Dense loops (csrc/st_blas.h)


def _strided(array: NDArray[Any], first: int, strides: Sequence[int], extents: Sequence[int]) -> NDArray[Any]:
    """Return a view of an array, all of which is checked to be there."""
    reach = [stride * (extent - 1) for stride, extent in zip(strides, extents, strict=True)]
    _check_range(array, first + sum(min(part, 0) for part in reach), first + sum(max(part, 0) for part in reach) + 1)
    return np.lib.stride_tricks.as_strided(array[first:], extents, [stride * array.itemsize for stride in strides])


def _gemm(c: Any, at_c: int, c_m: int, c_n: int, a: Any, at_a: int, a_m: int, a_k: int, b: Any, at_b: int, b_k: int, b_n: int,
          m: int, n: int, k: int, scale: Any) -> None:  # fmt: skip
    if min(m, n, k) > 0:
        left, right = _strided(a, at_a, (a_m, a_k), (m, k)), _strided(b, at_b, (b_k, b_n), (k, n))
        _strided(c, at_c, (c_m, c_n), (m, n))[...] += scale * (left @ right)


def _gemv(y: Any, at_y: int, y_m: int, a: Any, at_a: int, a_m: int, a_k: int, x: Any, at_x: int, x_k: int,
          m: int, k: int, scale: Any) -> None:  # fmt: skip
    _gemm(y, at_y, y_m, 0, a, at_a, a_m, a_k, x, at_x, x_k, 0, m, 1, k, scale)


def _ger(a: Any, at_a: int, a_m: int, a_n: int, x: Any, at_x: int, x_m: int, y: Any, at_y: int, y_n: int,
         m: int, n: int, scale: Any) -> None:  # fmt: skip
    _gemm(a, at_a, a_m, a_n, x, at_x, x_m, 0, y, at_y, 0, y_n, m, n, 1, scale)


def _axpy(y: Any, at_y: int, y_n: int, x: Any, at_x: int, x_n: int, n: int, scale: Any) -> None:
    if n > 0:
        _strided(y, at_y, (y_n,), (n,))[...] += scale * _strided(x, at_x, (x_n,), (n,))


def _dot(x: Any, at_x: int, x_n: int, y: Any, at_y: int, y_n: int, n: int) -> Any:
    if n <= 0:
        return x.dtype.type(0)
    return _strided(x, at_x, (x_n,), (n,)) @ _strided(y, at_y, (y_n,), (n,))


def _lower_bound(crd: NDArray[Any], low: int, high: int, key: int) -> int:
    _check_range(crd, low, high)
    return low + int(np.searchsorted(crd[low:high], key, "left")) if low < high else low


def _upper_bound(crd: NDArray[Any], low: int, high: int, key: int) -> int:
    _check_range(crd, low, high)
    return low + int(np.searchsorted(crd[low:high], key, "right")) if low < high else low


def _path_fibre(pos: NDArray[Any], low: int, high: int, item: int) -> int:
    """Return the first fibre in ``low .. high`` whose end is not before an item of the merge path; ``high`` if there is none."""
    if low >= high:
        return low
    _check_range(pos, low, high + 1)
    ends = pos[low + 1 : high + 1].astype(np.int64) + np.arange(low, high)
    return low + int(np.searchsorted(ends, item, "left"))


def _sort(array: NDArray[Any], count: int) -> None:
    _sort_range(array, 0, count)


def _sort_range(array: NDArray[Any], low: int, high: int) -> None:
    _check_range(array, low, high)
    if low < high:
        array[low:high] = np.sort(array[low:high])


def _scan(array: NDArray[Any], count: int) -> None:
    _check_range(array, 0, count)
    array[:count] = np.cumsum(array[:count])


def _load_wide(row: NDArray[Any], array: NDArray[Any], first: int, count: int) -> None:
    _copy(row, 0, array, first, count)


def _carry(to: NDArray[Any], kept: NDArray[Any], result: NDArray[Any], slots: int, width: int, operator: int) -> None:
    """Add what threads kept for places of the result, slot after slot."""
    update = (np.add, np.multiply, np.minimum, np.maximum, np.logical_and, np.logical_or)[operator]
    for place, value in zip(to[: slots * width], kept[: slots * width], strict=True):
        if place >= 0:
            result[place] = update(result[place], value)


def _table_insert(table: NDArray[Any], size: int, key: int) -> int:
    _check_range(table, 0, size)
    home = (key * 0x9E3779B97F4A7C15 & (1 << 64) - 1) >> 65 - size.bit_length() if size > 1 else 0
    place = next(slot for step in range(size) if table[slot := home + step & size - 1] in (-1, key))
    table[place] = key
    return place


def _table_keys(keys: NDArray[Any], table: NDArray[Any], size: int) -> int:
    found = table[:size][table[:size] >= 0]
    keys[: len(found)] = found
    return len(found)


def _bits_insert(bits: NDArray[Any], n: int, key: int) -> bool:
    """The set of csrc/st_bits.h; its upper levels only speed the draining up, so they are not kept here."""
    _check_range(bits, 0, -(-n // 64))
    if not 0 <= key < n:
        raise IndexError(f"key {key} of a set of {n}")
    word, mask = key >> 6, 1 << (key & 63)
    new = not int(bits[word]) & mask
    bits[word] = int(bits[word]) | mask
    return new


def _bits_drain(keys: NDArray[Any], bits: NDArray[Any], n: int) -> int:
    found = [word * 64 + bit for word in np.flatnonzero(bits) for bit in range(64) if int(bits[word]) >> bit & 1]
    _check_range(keys, 0, len(found))
    keys[: len(found)] = found
    bits[:] = 0
    return len(found)


def _few_drain(keys: NDArray[Any], bits: NDArray[Any], n: int, count: int) -> int:
    """The keys are those listed, which the interpreter holds against the set."""
    listed = sorted(int(key) for key in keys[:count])
    if _bits_drain(keys, bits, n) != count or listed != keys[:count].tolist():
        raise IndexError("the keys that are listed are not those of the set")
    return count


def _gallop(crd: NDArray[Any], low: int, high: int, key: int, _stride: int) -> int:
    return _lower_bound(crd, low, high, key)


def _gallop_stride(length: int, shortest: int) -> int:
    return 1 << max(0, (length | 1).bit_length() - (shortest | 1).bit_length())


def _halvings(length: int) -> int:
    return max(length, 0).bit_length()


def _bisections(arguments: Sequence[Any], _found: int) -> int:
    """Return how many coordinates a binary search looks at."""
    return _halvings(arguments[2] - arguments[1])


def _leaps(arguments: Sequence[Any], found: int) -> int:
    """Return how many coordinates galloping looks at: the first, one a step, and a binary search in the last step."""
    _, begin, high, _, step = arguments
    if begin >= high or found == begin:
        return int(begin < high)
    looked = 1
    while step < high - begin:
        looked += 1
        if begin + step >= found:
            break
        begin, step = begin + step, 2 * step
    return looked + _halvings(min(begin + step, high) - begin - 1)


def _quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of numbers that gives inf and NaN without a warning, and Python's own numbers but for float32."""

    def meaning(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            found = function(*arguments)
        return found if found.dtype == np.float32 else found.item()

    return meaning


def _one(_arguments: Sequence[Any], _result: Any) -> int:
    return 1


INTRINSICS: dict[str, Intrinsic] = {
    "lower_bound": Intrinsic(_lower_bound, "st_lower_bound", typed=True, comparisons=_bisections),
    "upper_bound": Intrinsic(_upper_bound, "st_upper_bound", typed=True, comparisons=_bisections),
    "path_fibre": Intrinsic(_path_fibre, "st_path_fibre", typed=True, comparisons=_bisections),
    "gallop": Intrinsic(_gallop, "st_gallop", typed=True, comparisons=_leaps),
    "far_gallop": Intrinsic(_gallop, "st_far_gallop", typed=True, comparisons=_leaps),
    "gallop_stride": Intrinsic(_gallop_stride, "st_gallop_stride"),
    "sort": Intrinsic(_sort, "st_sort", "st_sort.h", typed=True, updates=True),
    "sort_range": Intrinsic(_sort_range, "st_sort_range", "st_sort.h", typed=True, updates=True),
    "scan": Intrinsic(_scan, "st_scan", typed=True, updates=True),
    "load_wide": Intrinsic(_load_wide, "st_load_wide", OF_GPU, updates=True),
    "carry": Intrinsic(_carry, "st_carry", OF_GPU, updates=True),
    "resident_blocks": Intrinsic(lambda threads: 1, "st_resident_blocks", OF_GPU),
    "bits_insert": Intrinsic(_bits_insert, "st_bits_insert", "st_bits.h", updates=True, comparisons=_one, gives=BOOL),
    "bits_drain": Intrinsic(_bits_drain, "st_bits_drain", "st_bits.h", typed=True, updates=True),
    "few_insert": Intrinsic(_bits_insert, "st_few_insert", "st_few.h", updates=True, comparisons=_one, gives=BOOL),
    "few_drain": Intrinsic(_few_drain, "st_few_drain", "st_few.h", typed=True, updates=True),
    "map_insert": Intrinsic(KeyMap.insert, "st_map_insert", "st_map.h", updates=True, comparisons=_one),
    "map_find": Intrinsic(lambda keys, key: keys.ordinals.get(key, -1), "st_map_find", "st_map.h", comparisons=_one),
    "map_size": Intrinsic(lambda keys: len(keys.keys), "st_map_size", "st_map.h"),
    "map_key": Intrinsic(lambda keys, ordinal: keys.keys[ordinal], "st_map_key", "st_map.h"),
    "map_clear": Intrinsic(KeyMap.clear, "st_map_clear", "st_map.h", updates=True),
    "table_insert": Intrinsic(_table_insert, "st_table_insert", OF_GPU, updates=True, comparisons=_one),
    "table_keys": Intrinsic(_table_keys, "st_table_keys", OF_GPU, updates=True),
    **{
        f"{name}_of_{group}": Intrinsic(meaning, f"st_{name}_of_{group}", OF_GPU, updates=True)
        for group in ("warp", "block")
        for name, meaning in (("table_keys", _table_keys), ("sort", _sort), ("sort_range", _sort_range))
    },
    "enlist": Intrinsic(Parts.enlist, "st_enlist", "st_pieces.h", updates=True),
    "copy_part": Intrinsic(_copy_part, "st_copy_part", "st_pieces.h", typed=True, updates=True),
    "copy": Intrinsic(_copy, "st_copy", "st_pieces.h", typed=True, updates=True),
    "begin_pieces": Intrinsic(_begin_pieces, "st_begin_pieces", "st_pieces.h", updates=True),
    "note_piece": Intrinsic(_note_piece, "st_note_piece", "st_pieces.h", updates=True),
    "sum_pieces": Intrinsic(_sum_pieces, "st_sum_pieces", "st_pieces.h", updates=True),
    "piece_place": Intrinsic(_piece_place, "st_piece_place", "st_pieces.h"),
    "seldom": Intrinsic(bool, "st_seldom", gives=BOOL),
    "drain_stores": Intrinsic(lambda: None, "st_drain_stores"),
    **{
        name: Intrinsic(_quiet(function), f"st_{name}", "st_math.h", typed=True, gives=None)
        for name, function in (
            ("exp", np.exp), ("log", np.log), ("tanh", np.tanh), ("sqrt", np.sqrt), ("abs", np.abs), ("pow", np.power)
        )
    },
    "gemm": Intrinsic(_gemm, "st_gemm", "st_blas.h", typed=True, updates=True, extents=(12, 13, 14), on_gpu=False),
    "gemv": Intrinsic(_gemv, "st_gemv", "st_blas.h", typed=True, updates=True, extents=(10, 11), on_gpu=False),
    "ger": Intrinsic(_ger, "st_ger", "st_blas.h", typed=True, updates=True, extents=(10, 11), on_gpu=False),
    "axpy": Intrinsic(_axpy, "st_axpy", "st_blas.h", typed=True, updates=True, extents=(6,), on_gpu=False),
    "dot": Intrinsic(_dot, "st_dot", "st_blas.h", typed=True, gives=None, extents=(6,), on_gpu=False),
    SHARE_NUMBER: Intrinsic(lambda: 0, "st_share", "st_loop.h"),
    SHARE_BEGIN: Intrinsic(lambda: 0, "st_begin", "st_loop.h"),
}


def define(name: str, intrinsic: Intrinsic) -> None:
    """Make a function known that something brings along, such as a kind of level.

    Raises:
        ValueError: there is one of that name.
    """
    if name in INTRINSICS or name in OF_LANES:
        raise ValueError(f"there is a function '{name}' of the loop IR already")
    INTRINSICS[name] = intrinsic


def forget(name: str) -> None:
    """Make a function unknown again."""
    del INTRINSICS[name]
