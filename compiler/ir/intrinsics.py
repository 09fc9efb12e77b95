"""The functions that the loop IR calls by name: what each means (``meanings``, for the interpreter) and what C calls it.

Arguments that are arrays come as ``ArrayRef``. Positions, keys and counts are i64.

- Searches take sorted coordinates ``crd[low .. high)``. ``gallop`` gives what ``lower_bound`` gives and is quick where the answer is near
  ``low``; its last argument is its first step, which ``gallop_stride`` derives from the lengths of what is merged. ``far_gallop`` is the
  same, never inlined. ``lower_bound_apart`` looks at every so many places only, as its last argument says.
- ``filled_row`` gives the first of the rows ``low .. high`` of ``pos`` that has elements; ``high`` if none has.
- A map numbers its keys 0, 1, 2 ... in the order of insertion; the caller keeps values in an array by that ordinal. ``map_insert`` may
  be used only as the whole value of a ``Declare`` or ``SetVar``, since it may find no memory.
- A table has a power of two of slots; free ones hold -1. ``table_insert`` gives the slot of a key; ``table_keys`` lists its keys in any
  order and gives their number, ``table_count`` gives only that. All threads of a warp or block together run ``..._of_warp`` and
  ``..._of_block``.
- ``carry`` adds what threads of a GPU kept in slots, ``width`` neighbouring elements in each, to places of the last array. The first array
  holds the place of each slot, a negative number for an empty slot; the last argument is the operator's number in ``passes.carries``.
- ``load_wide`` loads neighbouring elements, as many as the last argument says, into an array in registers, 16 bytes at once;
  ``store_wide`` stores such an array. ``load_from`` gives an element of an array, counted from a base that is its second argument;
  ``load_wide_from`` loads several of these.
- ``places`` gives a bit for each of 32 numbers, counted from its first argument: the bit is set if the number is in ``low .. high``, the
  other arguments, which lie among these numbers or hold none. ``has_place`` asks for one of the bits.
- ``drain_stores`` waits until stores that bypass the caches are in memory.
- ``enlist`` numbers the threads that use parts 0, 1, 2 ... ``copy_part`` copies elements of an array that was left at a place of parts;
  ``copy`` copies from an array. The last argument is about how many elements the array will have: copies into large ones bypass the caches.
- A table of pieces has the numbers of entries in each level. ``note_piece`` notes one number, that of the last level last. ``sum_pieces``
  gives how many pieces come before the first one with unknown numbers; ``piece_place`` says where the entries of such a piece begin.
- ``gemm`` (C += s A B), ``gemv`` (y += s A x), ``ger`` (A += s x y'), ``axpy`` (y += s x) and ``dot`` (the sum of x y) take for every array
  its first element and the distance between elements along each of its loops, then the extents of all loops, and the factor s.
- ``seldom`` gives its condition, and tells compilers that it is seldom true.
- ``harmless`` gives its condition, and says that what it guards may be read even if the condition is false.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..frozen import frozen
from . import meanings, searches
from .nodes import BOOL, I64, SHARE_BEGIN, SHARE_NUMBER, Type

OF_HALVES = frozenset(("sum_halves", "product_halves"))

OF_LANES = frozenset(("keep_lanes", "sum_lanes", "product_lanes", "min_lanes", "max_lanes", "sums_of_lanes")) | OF_HALVES
"""Functions over the lanes of a vector, which generated code defines itself.

``keep_lanes`` keeps the first lanes, as many as its last argument says, or, if that is a vector, those where it is positive; the others
become 0. ``sum_halves`` and ``product_halves`` combine the first half of the lanes with the second. ``sums_of_lanes`` takes several
vectors, with at least as many lanes as there are vectors, and gives a vector with the sum of each in a lane: it adds halves until there
are as many lanes as vectors, then neighbours."""

OF_GPU = "st_cuda.h"
"""The header of functions that only passes for GPUs call."""


@frozen
class Intrinsic:
    """One function.

    Attributes:
        meaning: what the interpreter runs; arrays are ndarrays, maps are ``KeyMap``.
        c_name: the function in csrc/, without the suffix for its type.
        header: the file of csrc/ that defines it.
        code: C that defines it, if no file does; generated code that calls it contains this once.
        on_gpu: whether ``csrc/st_cuda.h`` defines it too, unless its whole group is for processors (``targets.cuda.OF_PROCESSORS``).
        typed: whether the element type of the first argument is a suffix of the C name.
        updates: whether it changes its first argument.
        comparisons: returns how many comparisons the interpreter counts for a call, given its arguments and its result.
        gives: the type of its value; None: that of its first argument.
        extents: the arguments whose product is the number of multiplications, and of additions, that it does.
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


def type_of_call(function: str, arguments: Sequence[Type]) -> Type:
    """Return the type of a function's value, given the types of its arguments."""
    if function in OF_LANES:
        if function in OF_HALVES:
            return arguments[0].element.vector(arguments[0].lanes // 2)
        kept = arguments[0] if function == "keep_lanes" else arguments[0].element
        return kept.vector(len(arguments)) if function == "sums_of_lanes" else kept
    return INTRINSICS[function].gives or arguments[0]


INTRINSICS: dict[str, Intrinsic] = {
    "lower_bound": Intrinsic(searches.lower_bound, "st_lower_bound", typed=True, comparisons=searches.bisections),
    "lower_bound_apart": Intrinsic(searches.lower_bound_apart, "st_lower_bound_apart", typed=True, comparisons=searches.bisections_apart),
    "upper_bound": Intrinsic(searches.upper_bound, "st_upper_bound", typed=True, comparisons=searches.bisections),
    "lower_bound_of_warp": Intrinsic(searches.lower_bound, "st_lower_bound_of_warp", OF_GPU, typed=True, comparisons=searches.bisections),
    "upper_bound_of_warp": Intrinsic(searches.upper_bound, "st_upper_bound_of_warp", OF_GPU, typed=True, comparisons=searches.bisections),
    "path_fibre": Intrinsic(searches.path_fibre, "st_path_fibre", typed=True, comparisons=searches.bisections),
    "path_fibre_of_warp": Intrinsic(searches.path_fibre, "st_path_fibre_of_warp", OF_GPU, typed=True, comparisons=searches.bisections),
    "filled_row": Intrinsic(searches.filled_row, "st_filled_row", typed=True, comparisons=meanings.one, on_gpu=False),
    "gallop": Intrinsic(searches.gallop, "st_gallop", typed=True, comparisons=searches.leaps),
    "far_gallop": Intrinsic(searches.gallop, "st_far_gallop", typed=True, comparisons=searches.leaps),
    "gallop_stride": Intrinsic(searches.gallop_stride, "st_gallop_stride"),
    "sort": Intrinsic(meanings.sort, "st_sort", "st_sort.h", typed=True, updates=True),
    "sort_range": Intrinsic(meanings.sort_range, "st_sort_range", "st_sort.h", typed=True, updates=True),
    "scan": Intrinsic(meanings.scan, "st_scan", typed=True, updates=True),
    "load_wide": Intrinsic(meanings.load_wide, "st_load_wide", OF_GPU, updates=True),
    "load_wide_from": Intrinsic(meanings.load_wide_from, "st_load_wide_from", OF_GPU, updates=True),
    "load_from": Intrinsic(meanings.load_from, "st_load_from", OF_GPU, gives=None),
    "store_wide": Intrinsic(meanings.store_wide, "st_store_wide", OF_GPU, updates=True),
    "places": Intrinsic(meanings.places, "st_places", OF_GPU),
    "has_place": Intrinsic(meanings.has_place, "st_has_place", OF_GPU, gives=BOOL),
    "carry": Intrinsic(meanings.carry, "st_carry", OF_GPU, updates=True),
    "resident_blocks": Intrinsic(lambda threads: 1, "st_resident_blocks", OF_GPU),
    "bits_insert": Intrinsic(meanings.bits_insert, "st_bits_insert", "st_bits.h", updates=True, comparisons=meanings.one, gives=BOOL),
    "bits_drain": Intrinsic(meanings.bits_drain, "st_bits_drain", "st_bits.h", typed=True, updates=True),
    "few_insert": Intrinsic(meanings.bits_insert, "st_few_insert", "st_few.h", updates=True, comparisons=meanings.one, gives=BOOL),
    "few_drain": Intrinsic(meanings.few_drain, "st_few_drain", "st_few.h", typed=True, updates=True),
    "map_insert": Intrinsic(meanings.KeyMap.insert, "st_map_insert", "st_map.h", updates=True, comparisons=meanings.one),
    "map_find": Intrinsic(lambda keys, key: keys.ordinals.get(key, -1), "st_map_find", "st_map.h", comparisons=meanings.one),
    "map_size": Intrinsic(lambda keys: len(keys.keys), "st_map_size", "st_map.h"),
    "map_key": Intrinsic(lambda keys, ordinal: keys.keys[ordinal], "st_map_key", "st_map.h"),
    "map_clear": Intrinsic(meanings.KeyMap.clear, "st_map_clear", "st_map.h", updates=True),
    "table_insert": Intrinsic(meanings.table_insert, "st_table_insert", OF_GPU, updates=True, comparisons=meanings.one),
    "table_keys": Intrinsic(meanings.table_keys, "st_table_keys", OF_GPU, updates=True),
    "table_count": Intrinsic(meanings.table_count, "st_table_count", OF_GPU),
    **{f"table_count_of_{group}": Intrinsic(meanings.table_count, f"st_table_count_of_{group}", OF_GPU) for group in ("warp", "block")},
    **{
        f"{name}_of_{group}": Intrinsic(getattr(meanings, name), f"st_{name}_of_{group}", OF_GPU, updates=True)
        for group in ("warp", "block")
        for name in ("table_keys", "sort", "sort_range", "scan")
    },
    "enlist": Intrinsic(meanings.Parts.enlist, "st_enlist", "st_pieces.h", updates=True),
    "copy_part": Intrinsic(meanings.copy_part, "st_copy_part", "st_pieces.h", typed=True, updates=True),
    "copy": Intrinsic(meanings.copy, "st_copy", "st_pieces.h", typed=True, updates=True),
    "begin_pieces": Intrinsic(meanings.begin_pieces, "st_begin_pieces", "st_pieces.h", updates=True),
    "note_piece": Intrinsic(meanings.note_piece, "st_note_piece", "st_pieces.h", updates=True),
    "sum_pieces": Intrinsic(meanings.sum_pieces, "st_sum_pieces", "st_pieces.h", updates=True),
    "piece_place": Intrinsic(meanings.piece_place, "st_piece_place", "st_pieces.h"),
    "seldom": Intrinsic(meanings.holds, "st_seldom", gives=BOOL),
    "harmless": Intrinsic(meanings.holds, "st_harmless", gives=BOOL),
    "drain_stores": Intrinsic(lambda: None, "st_drain_stores"),
    **{
        name: Intrinsic(meanings.quiet(function), f"st_{name}", "st_math.h", typed=True, gives=None)
        for name, function in (*((name, name) for name in ("exp", "log", "tanh", "sqrt", "abs")), ("pow", "power"))
    },
    "gemm": Intrinsic(meanings.gemm, "st_gemm", "st_blas.h", typed=True, updates=True, extents=(12, 13, 14), on_gpu=False),
    "gemv": Intrinsic(meanings.gemv, "st_gemv", "st_blas.h", typed=True, updates=True, extents=(10, 11), on_gpu=False),
    "ger": Intrinsic(meanings.ger, "st_ger", "st_blas.h", typed=True, updates=True, extents=(10, 11), on_gpu=False),
    "axpy": Intrinsic(meanings.axpy, "st_axpy", "st_blas.h", typed=True, updates=True, extents=(6,), on_gpu=False),
    "dot": Intrinsic(meanings.dot, "st_dot", "st_blas.h", typed=True, gives=None, extents=(6,), on_gpu=False),
    SHARE_NUMBER: Intrinsic(lambda: 0, "st_share", "st_loop.h"),
    SHARE_BEGIN: Intrinsic(lambda: 0, "st_begin", "st_loop.h"),
}


def define(name: str, intrinsic: Intrinsic) -> None:
    """Register a function, for example one that a kind of level brings along.

    Raises:
        ValueError: there is one of that name.
    """
    if name in INTRINSICS or name in OF_LANES:
        raise ValueError(f"there is a function '{name}' of the loop IR already")
    INTRINSICS[name] = intrinsic


def forget(name: str) -> None:
    """Remove a function from the registry."""
    del INTRINSICS[name]
