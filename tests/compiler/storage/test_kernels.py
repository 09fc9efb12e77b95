"""The native passes against those in NumPy, on inputs long enough to be shared by threads and to need every kind of division."""

from __future__ import annotations

import functools
import itertools
import os
from dataclasses import replace

import numpy as np
import pytest
from sparsetune.compiler.errors import DataError, ResourceError
from sparsetune.compiler.native.machine import CacheLevel, this_machine
from sparsetune.compiler.storage import aligned, kernels, native_kernels
from sparsetune.compiler.storage.construct import check_range, tensor
from sparsetune.compiler.storage.dtypes import supported
from sparsetune.compiler.storage.native_kernels import NativeKernels
from sparsetune.compiler.storage.numpy_kernels import NumpyKernels
from sparsetune.compiler.storage.pooled import pooled_empty

COUNT = 180_000
pytestmark = pytest.mark.cc


@pytest.fixture(params=[1, 3])
def pair(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[kernels.Kernels, NumpyKernels]:
    """Native kernels with so many threads, and their oracle."""
    native = kernels._native()
    if native is None:
        pytest.skip("no C compiler for the native helpers")
    monkeypatch.setenv("SPARSETUNE_THREADS", str(request.param))
    return native, NumpyKernels()


def columns_of(kind: str, rng: np.random.Generator) -> tuple[tuple[np.ndarray, ...], tuple[int, ...]]:
    """Return coordinate columns of COUNT entries, and their extents."""
    if kind == "uniform":
        extents = (3000, 70_000)
    elif kind == "one value":
        return (np.full(COUNT, 7, np.int32), np.zeros(COUNT, np.int32)), (1000, 1)
    elif kind == "few":
        extents = (3, 5, 2)
    elif kind == "wide":
        extents = (2**33, 1000)
    elif kind == "skewed":
        first = np.minimum(rng.zipf(1.2, COUNT), 10**6 - 1).astype(np.int32)
        return (first, rng.integers(0, 50, COUNT, dtype=np.int32)), (10**6, 50)
    else:
        extents = (2**33, 2**30, 1000)
    kinds = (np.int32 if extent < 2**31 else np.int64 for extent in extents)
    return tuple(rng.integers(0, extent, COUNT).astype(kind) for extent, kind in zip(extents, kinds, strict=True)), extents


@pytest.mark.parametrize("array", [
    np.arange(COUNT), np.arange(COUNT, dtype=np.int16)[::-3], np.arange(2 * COUNT).reshape(2, COUNT).T, np.zeros(0), np.full(COUNT + 1, 1j),
], ids=lambda array: f"{array.dtype}-{array.shape}")  # fmt: skip
def test_copies(pair: tuple[kernels.Kernels, NumpyKernels], array: np.ndarray) -> None:
    given = array.copy(order="K")
    given.flags.writeable = False
    for one in pair:
        copy = one.copied(given)
        assert not np.may_share_memory(copy, given)
        assert copy.dtype == array.dtype
        assert np.array_equal(copy, array.reshape(-1))


WIDE = np.arange(3 * COUNT).reshape(COUNT // 100, 300)


@pytest.mark.parametrize("dtype", sorted(supported(), key=str), ids=str)
@pytest.mark.parametrize("cut", [
    np.s_[:, 3:-7], np.s_[::-1], np.s_[:, ::-1], np.s_[::-2, 1::3], np.s_[:0, ::2], np.s_[:, 5:5], np.s_[7:8, ::-4],
], ids=str)  # fmt: skip
def test_strided_matrices_are_copied(pair: tuple[kernels.Kernels, NumpyKernels], cut: tuple[slice, ...], dtype: np.dtype) -> None:
    given = WIDE.astype(dtype)[cut]
    for one in (given, given.T, np.broadcast_to(given[:, :1], given.shape)):
        copy = pair[0].copied(one)
        assert copy.dtype == dtype
        assert not np.may_share_memory(copy, one)
        assert copy.tobytes() == one.tobytes()


def test_items_that_lie_askew_are_copied(pair: tuple[kernels.Kernels, NumpyKernels]) -> None:
    given = np.zeros((500, 200), np.dtype([("a", "i1"), ("b", "f8")]))["b"]
    given[...] = np.arange(100_000).reshape(500, 200)
    assert np.array_equal(pair[0].copied(given), np.arange(100_000))


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("kind", ["int32", "int64", "uint32", "uint64", "int64, every other"])
def test_each_of_many_coordinates_is_in_range(kind: str, threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSETUNE_THREADS", threads)
    dtype, _, strided = kind.partition(", ")
    column = np.random.default_rng(1).integers(0, 1000, 2 * COUNT).astype(dtype)[:: 2 if strided else 1]
    check_range((column, column), (1000, 1000))
    for place in (0, 1, len(column) // 2, len(column) - 1):
        for wrong in (1000, 2**31 - 1, -1, -(2**31)):
            if wrong < 0 and column.dtype.kind == "u":
                continue
            changed = column.copy()
            changed[place] = wrong
            with pytest.raises(DataError, match=f"coordinate {wrong} of entry {place} in mode 1 is out of range: the extent is 1000"):
                check_range((column, changed), (1000, 1000))


@pytest.mark.parametrize("kind", ["uniform", "one value", "few", "wide", "skewed", "beyond 64 bits"])
def test_sort(pair: tuple[kernels.Kernels, NumpyKernels], kind: str) -> None:
    native, numpy = pair
    columns, extents = columns_of(kind, np.random.default_rng(3))
    values = np.arange(COUNT, dtype=np.float64)
    for leading in range(1, len(columns) + 1):
        rest = np.lexsort(columns[leading:][::-1]) if leading < len(columns) else np.arange(COUNT)
        given = tuple(column[rest] for column in columns)
        before = [column.copy() for column in given], values.copy()
        got, expected = (one.sort(given, extents, values, leading, False) for one in (native, numpy))
        for one, other in zip((*got[0], got[1]), (*expected[0], expected[1]), strict=True):
            assert np.array_equal(one, other)
        assert all(np.array_equal(one, other) for one, other in zip((*given, values), (*before[0], before[1]), strict=True))
        assert native.order_state(columns) == numpy.order_state(columns)
        assert native.order_state(got[0]) == numpy.order_state(got[0]) == 0


@pytest.mark.parametrize("dtype", sorted(supported(), key=str), ids=str)
def test_every_dtype_is_sorted_and_summed(pair: tuple[kernels.Kernels, NumpyKernels], dtype: np.dtype) -> None:
    rng = np.random.default_rng(5)
    columns = (rng.integers(0, 200, COUNT, dtype=np.int32), rng.integers(0, 400, COUNT, dtype=np.int32))
    values = rng.integers(0, 3, COUNT).astype(dtype)
    if dtype.kind == "c":
        values += 1j * rng.integers(0, 3, COUNT)
    (got, summed), (expected, oracle) = (one.sort(columns, (200, 400), values, 2, False) for one in pair)
    assert all(np.array_equal(one, other) for one, other in zip(got, expected, strict=True))
    assert summed.dtype == dtype
    assert np.array_equal(summed, oracle)


def test_duplicates_are_summed_in_their_order(pair: tuple[kernels.Kernels, NumpyKernels]) -> None:
    values = np.tile([1e16, 1.0, -1e16], COUNT // 3)
    columns = (np.repeat(np.arange(COUNT // 3, dtype=np.int32)[::-1], 3),)
    _, summed = pair[0].sort(columns, (COUNT,), values, 1, False)
    assert np.array_equal(summed, np.full(COUNT // 3, (1e16 + 1.0) - 1e16))


@pytest.mark.parametrize("kind", ["float32", "int64", "complex128"])
@pytest.mark.parametrize("length", [1, 7, 1024, 3000])
def test_runs_of_duplicates_cross_blocks(pair: tuple[kernels.Kernels, NumpyKernels], length: int, kind: str) -> None:
    rng = np.random.default_rng(9)
    runs = np.repeat(np.arange(-(-COUNT // length)), length)[:COUNT]
    column = np.concatenate([runs, np.arange(COUNT, COUNT + 2500)]).astype(np.int32)  # then blocks without a duplicate
    order = rng.permutation(len(column))
    values = rng.integers(0, 9, len(column)).astype(kind)
    got, expected = (one.sort((column[order], column[order]), (2 * COUNT, 2 * COUNT), values, 2, False) for one in pair)
    assert all(np.array_equal(one, other) for one, other in zip((*got[0], got[1]), (*expected[0], expected[1]), strict=True))


def test_passes_over_sorted_entries(pair: tuple[kernels.Kernels, NumpyKernels]) -> None:
    native, numpy = pair
    rng = np.random.default_rng(7)
    columns, _ = numpy.sort(
        tuple(rng.integers(0, extent, COUNT, dtype=np.int32) for extent in (40, 70, 90)), (40, 70, 90), np.ones(COUNT), 3, False
    )
    first, histogram = numpy.first_differences(columns)
    assert all(np.array_equal(one, other) for one, other in zip(native.first_differences(columns), (first, histogram), strict=True))
    parent = (columns[0].astype(np.int64) * 71)[: len(first)]
    heads = int(histogram[:2].sum())
    for arguments in ((None, 1), (parent, 71 * 40), (parent.astype(np.int32), 71 * 40)):
        got, expected = (one.compress(first, 1, *arguments, columns[1], heads) for one in pair)
        assert all(np.array_equal(one, other) for one, other in zip(got, expected, strict=True))
    pos = numpy.segments(columns[0], 40, len(first))
    assert np.array_equal(native.segments(columns[0], 40, len(first)), pos)
    assert np.array_equal(native.segments(columns[0].astype(np.int64), 40, len(first)), pos)
    for column in (None, np.arange(40, dtype=np.int64) * 3):
        assert np.array_equal(native.expand(pos, column, np.dtype(np.int64)), numpy.expand(pos, column, np.dtype(np.int64)))
    assert np.array_equal(native.below_dense(columns[0], 70, columns[1]), numpy.below_dense(columns[0], 70, columns[1]))
    shuffled = rng.permutation(71 * 40).astype(np.int64)[parent]
    counts = numpy.count_children(first, 1, shuffled, 71 * 40)
    assert np.array_equal(native.count_children(first, 1, shuffled, 71 * 40), counts)
    starts = np.concatenate([[0], np.cumsum(counts)])
    got, expected = (one.place_children(first, 1, shuffled, starts, columns[1], False) for one in pair)
    assert all(np.array_equal(one, other) for one, other in zip(got, expected, strict=True))


@pytest.mark.parametrize("kinds", list(itertools.product((np.int32, np.int64), repeat=2)))
@pytest.mark.parametrize("longest", [1, 3, 16, 17, 70])
def test_rows_of_any_length_are_expanded_and_delimited(pair: tuple[kernels.Kernels, NumpyKernels], longest: int, kinds: tuple) -> None:
    native, numpy = pair
    assert isinstance(native, NativeKernels)
    rng = np.random.default_rng(longest)
    for rows in (1, 5, 100, 300_000 // longest):
        lengths = rng.integers(0, longest + 1, rows)
        pos = np.concatenate([[0], np.cumsum(lengths)]).astype(kinds[0])
        for column in (None, rng.integers(0, 99, rows).astype(np.int32), rng.integers(0, 99, rows)):
            room = np.full(pos[-1] + 64, -1, kinds[1])
            given, wide = native._index(column)
            native._lib.st_expand(rows, *native._index(pos), given, wide, *native._index(room), native_kernels.threads_for(len(room)))
            assert np.array_equal(room[: pos[-1]], numpy.expand(pos, column, np.dtype(kinds[1])))
            assert (room[pos[-1] :] == -1).all(), "nothing is written behind the last row"
        parents = numpy.expand(pos, None, np.dtype(kinds[1]))
        assert np.array_equal(native.segments(parents, rows, len(parents)), pos)


@pytest.mark.parametrize("kinds", [(np.int32, np.int32), (np.int64, np.int32), (np.int32, np.int64)])
@pytest.mark.parametrize("different", [1, 40, 3000])
def test_patterns(pair: tuple[kernels.Kernels, NumpyKernels], kinds: tuple, different: int) -> None:
    rng, parents = np.random.default_rng(11), 6000
    fibres = [np.sort(rng.choice(30, rng.integers(0, 12), replace=False)) - 5 for _ in range(different)]
    rows = [fibres[which] + parent for parent, which in enumerate(rng.integers(0, different, parents))]
    pos = np.cumsum([0, *map(len, rows)]).astype(kinds[0])
    found, expected = (one.patterns(pos, np.concatenate(rows).astype(kinds[1]), np.dtype(kinds[1])) for one in pair)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    assert len(found[1]) == sum(map(len, {tuple(fibre): fibre for fibre in fibres}.values())) or different > 40


@pytest.mark.parametrize("kinds", [(np.int32, np.int32), (np.int64, np.int32), (np.int32, np.int64)])
@pytest.mark.parametrize("limit", [aligned.INDEX_LIMIT, 1000])
@pytest.mark.parametrize("parents", [0, 1, 8, 30_003])
def test_slices(
    pair: tuple[kernels.Kernels, NumpyKernels], kinds: tuple, limit: int, parents: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aligned, "INDEX_LIMIT", limit)
    rng = np.random.default_rng(12)
    lengths = np.where(rng.random(parents) < 0.3, 0, rng.zipf(2.0, parents).clip(max=400))
    pos = np.cumsum([0, *lengths]).astype(kinds[0])
    crd = rng.integers(0, 10**6, pos[-1]).astype(kinds[1])
    starts, expected = (one.slices(pos, 4) for one in pair)
    assert np.array_equal(starts, expected)
    for one, other in zip(*(one.place_beside(pos, crd, 4, starts) for one in pair), strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("kinds", [(np.int32, np.int32), (np.int64, np.int64)])
def test_moves(pair: tuple[kernels.Kernels, NumpyKernels], dtype: type, kinds: tuple) -> None:
    native, numpy = pair
    rng = np.random.default_rng(9)
    values = rng.integers(0, 100, COUNT).astype(dtype)
    position = rng.permutation(COUNT).astype(kinds[0])
    assert np.array_equal(native.gather(values, position), values[position])
    out = np.zeros(COUNT, dtype)
    native.scatter(values, position, out)
    assert np.array_equal(out[position], values)
    pos = np.sort(rng.integers(0, COUNT, 5001)).astype(kinds[0])
    pos[0], pos[-1] = 0, COUNT
    crd = rng.integers(0, 777, COUNT).astype(kinds[1])
    for got, expected in zip(native.transpose(pos, crd, values, 777), numpy.transpose(pos, crd, values, 777), strict=True):
        assert np.array_equal(got, expected)


def scattered(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Return coordinates of COUNT entries in rows of 10, and how many columns there are."""
    columns = 700 if kind == "few columns" else 50_000
    drawn = rng.integers(0, columns, COUNT)
    if kind == "near":
        drawn = np.arange(COUNT) // 10 * 3 + rng.integers(0, 30, COUNT)
    elif kind == "again and again":
        drawn[::2] = drawn[0]
    return drawn.clip(max=columns - 1).astype(np.int64 if kind == "wide" else np.int32), columns


@pytest.mark.parametrize("kind", ["all over", "few columns", "near", "again and again", "wide"])
@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.float64, np.complex128])
def test_entries_all_over_a_large_matrix_are_transposed_by_blocks(
    pair: tuple[kernels.Kernels, NumpyKernels], kind: str, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    native, numpy = pair
    assert isinstance(native, NativeKernels)
    machine = replace(this_machine(), caches=(CacheLevel(1, 2**15, 64, 1), CacheLevel(3, 2**22, 64, 2)))
    monkeypatch.setattr(native_kernels, "this_machine", lambda: machine)
    rng = np.random.default_rng(13)
    crd, columns = scattered(kind, rng)
    values, pos = rng.integers(0, 100, COUNT).astype(dtype), np.arange(0, COUNT + 1, 10, dtype=np.int32)
    assert (native._transposing_room(crd, columns, values) is not None) == (kind == "all over")
    for got, expected in zip(native.transpose(pos, crd, values, columns), numpy.transpose(pos, crd, values, columns), strict=True):
        assert np.array_equal(got, expected)
    rows = np.repeat(np.arange(len(pos) - 1, dtype=np.int32), 10)
    found = zip(native.transpose_entries(rows, crd, values, columns), numpy.transpose(pos, crd, values, columns), strict=True)
    assert all(np.array_equal(got, expected) for got, expected in found)


def test_entries_are_transposed_without_room_too(pair: tuple[kernels.Kernels, NumpyKernels], monkeypatch: pytest.MonkeyPatch) -> None:
    native, numpy = pair
    assert isinstance(native, NativeKernels)
    machine = replace(this_machine(), caches=(CacheLevel(1, 2**15, 64, 1), CacheLevel(3, 2**22, 64, 2)))
    monkeypatch.setattr(native_kernels, "this_machine", lambda: machine)
    crd, columns = scattered("all over", np.random.default_rng(13))
    values, pos = np.arange(COUNT, dtype=np.float64), np.arange(0, COUNT + 1, 10, dtype=np.int32)
    assert native._transposing_room(crd, columns, values) is not None

    def refused(count: int, dtype: object) -> np.ndarray:
        if dtype is np.uint8:
            raise ResourceError("there is no memory")
        return pooled_empty(count, dtype)

    monkeypatch.setattr(native_kernels, "pooled_empty", refused)
    for got, expected in zip(native.transpose(pos, crd, values, columns), numpy.transpose(pos, crd, values, columns), strict=True):
        assert np.array_equal(got, expected)


def test_transposes_that_fit_into_the_cache_of_a_core_take_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSETUNE_THREADS", "2")
    assert [native_kernels._counting_threads(count, 50_000) for count in (140_000, 240_000, 10**7)] == [1, 2, 2]


def test_large_results_lie_where_others_lay_that_are_not_used(
    pair: tuple[kernels.Kernels, NumpyKernels], monkeypatch: pytest.MonkeyPatch
) -> None:
    native, taken = pair[0], []
    monkeypatch.setattr(native_kernels, "KEPT_BY_LIBRARY", COUNT)
    monkeypatch.setattr(native_kernels, "pooled_empty", lambda count, dtype: taken.append(count) or pooled_empty(count, dtype))
    pos, crd, values = np.array([0, COUNT], np.int32), np.arange(COUNT, dtype=np.int32), np.ones(COUNT)

    def addresses() -> list[int]:
        made = *native.transpose(pos, crd, values, COUNT)[1:], native.expand(pos, None, np.dtype(np.int64))
        return [array.ctypes.data for array in made]

    assert set(addresses()) & set(addresses())
    threads = int(os.environ["SPARSETUNE_THREADS"])
    assert taken == 2 * [COUNT + 1, COUNT, COUNT, *([threads * COUNT] if threads > 1 else []), COUNT], "places of several threads too"
    taken.clear()
    native.expand(np.array([0, COUNT // 8], np.int32), None, np.dtype(np.int64))
    assert not taken, "small ones are left to the C library"


def test_segments_are_checked(each_kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSETUNE_THREADS", "3")
    passes = kernels.active()
    rows = 20_000
    pos = np.arange(rows + 1, dtype=np.int32) * 5
    crd = np.tile(np.array([0, 2, 3, 8, 9], np.int32), rows)
    assert passes.check_segments(pos, crd, len(crd), 10) == 0
    assert passes.check_segments(pos, crd, len(crd), 9) == 2
    assert passes.check_segments(pos, crd, len(crd) - 1, 10) == 3
    for place, value, state in ((5, -1, 2), (6, 0, 1), (7, 9, 1), (99_999, 9, 0), (99_999, 8, 1)):
        changed = crd.copy()
        changed[place] = value
        assert passes.check_segments(pos, changed, len(crd), 10) == state
    assert passes.check_segments(pos[::-1].copy(), crd, len(crd), 10) == 3
    assert passes.check_segments(np.zeros(1, np.int64), crd[:0], 0, 0) == 0
    around = np.array([0, 6 * 10**18, -6 * 10**18, -4 * 10**17, 5])  # whose differences, in 64 bits, are positive
    assert passes.check_segments(around, crd[:5], 5, 10) == 3


def test_a_little_work_loads_no_native_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_light_work", 0)
    native = functools.cache(NumpyKernels)
    monkeypatch.setattr(kernels, "_native", native)
    for _ in range(3):
        kernels.light(kernels.LIGHT // 4)
    assert native.cache_info().currsize == 0
    assert kernels.light(kernels.LIGHT // 4) is native()
    monkeypatch.setattr(kernels, "_light_work", 0)
    assert kernels.light(1) is native()  # which are there


def test_results_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(11)
    coordinates = np.stack([rng.integers(0, extent, COUNT) for extent in (500, 30, 4000)])
    values = rng.random(COUNT)
    results = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("SPARSETUNE_THREADS", threads)
        packed = tensor((coordinates, values), "hsh", shape=(500, 30, 4000)).convert("csf; 2, 0, 1")
        results.append([packed.values, *(array for level in packed.levels for array in (level.pos, level.crd))])
    for other in results[1:]:
        assert all(np.array_equal(one, two) for one, two in zip(results[0], other, strict=True))
