"""Packing against a walk over the arrays: every composition of level kinds, every mode order, empty and degenerate shapes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sparsetune.compiler.errors import FormatError, ResourceError
from sparsetune.compiler.format import Format
from sparsetune.compiler.levels import DENSE, compressed, level_kinds, segments
from sparsetune.compiler.storage import aligned, convert, pack
from sparsetune.compiler.storage.aligned import aligned_empty, aligned_full
from sparsetune.compiler.storage.construct import from_entries, tensor
from sparsetune.compiler.storage.kernels import active
from sparsetune.compiler.storage.tensor import Tensor
from storage_cases import cases, formats, holds_many, stored_entries, summed

both = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])


def expected_entries(packed: Tensor, entries: dict) -> dict:
    """Return the given entries, and the padding that the format adds: all of a dense last level, missing singletons."""
    stored = stored_entries(packed)
    padding = {entry: value for entry, value in stored.items() if entry not in entries}
    assert all(value == packed.fill_value for value in padding.values())
    if any(kind.has_segments for kind in packed.format.levels[-1:]):
        assert not padding
    return entries | padding


@both
@given(case=cases(), data=st.data())
def test_any_format_holds_the_entries(each_kernel: str, case: tuple, data: st.DataObject) -> None:
    shape, coordinates, values = case
    drawn = data.draw(formats(len(shape)).filter(holds_many))
    packed = tensor((coordinates, values), drawn, shape=shape)
    entries = summed(coordinates, values)
    assert stored_entries(packed) == expected_entries(packed, entries)
    dense = np.zeros(shape)
    for entry, value in entries.items():
        dense[entry] = value
    assert np.array_equal(packed.to_numpy(), dense)


@both
@given(case=cases(), data=st.data())
def test_any_two_formats_convert(each_kernel: str, case: tuple, data: st.DataObject) -> None:
    shape, coordinates, values = case
    first, second = (data.draw(formats(len(shape)).filter(holds_many)) for _ in range(2))
    packed = tensor((coordinates, values), first, shape=shape)
    converted = packed.convert(second)
    assert converted.format == second
    entries = summed(coordinates, values)
    if first.levels[-1:] == (DENSE,) or not first.levels:
        entries = {entry: value for entry, value in entries.items() if value or not entry}
    assert stored_entries(converted) == expected_entries(converted, entries)


@pytest.mark.parametrize("order", range(5))
def test_every_composition_and_mode_order(order: int) -> None:
    shape = (2, 3, 1, 2)[:order]
    dense = np.where(np.random.default_rng(order).random(shape) < 0.5, np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape), 0)
    for kinds in itertools.product(level_kinds(), repeat=order):
        try:
            form = Format(kinds)
        except FormatError:  # a singleton level first, or below a narrow one
            continue
        if not holds_many(form):
            continue
        for modes in itertools.permutations(range(order)):
            packed = tensor(dense, Format(kinds, modes))
            assert np.array_equal(packed.to_numpy(), dense), packed
            coordinates, values = packed.to_coordinates()
            assert coordinates.shape == (order, packed.nnz)
            assert np.array_equal(coordinates, coordinates[:, np.lexsort(coordinates[::-1])] if order else coordinates)
            rebuilt = np.zeros(shape, dense.dtype)
            rebuilt[tuple(coordinates) if order else ()] = values if order else values[0]
            assert np.array_equal(rebuilt, dense)


@both
@given(data=st.data())
def test_singletons_below_other_levels_hold_one_coordinate_a_parent(each_kernel: str, data: st.DataObject) -> None:
    above = data.draw(st.sampled_from(["d", "h", "dd", "sh", "hd", "sd"]))
    below = data.draw(st.sampled_from(["", "q", "s", "d", "h"]))
    chosen = Format(above + "q" + below)
    shape = tuple(data.draw(st.integers(1, 4)) for _ in range(len(chosen)))
    parents = data.draw(st.sets(st.tuples(*(st.integers(0, extent - 1) for extent in shape[: len(above)])), max_size=5))
    entries = {
        (*parent, *(data.draw(st.integers(0, extent - 1)) for extent in shape[len(above) :])): float(place + 1)
        for place, parent in enumerate(sorted(parents))
    }
    coordinates = np.array(sorted(entries), np.int64).reshape(-1, len(chosen)).T
    packed = from_entries(shape, coordinates, np.array([entries[entry] for entry in sorted(entries)]), chosen)
    assert stored_entries(packed) == expected_entries(packed, entries)
    assert {
        entry: value for entry, value in stored_entries(packed.convert("csf" if len(chosen) != 2 else "csr")).items() if value
    } == entries


@pytest.mark.parametrize("kinds", ["dq", "hq", "dsdq", "shq"])
def test_singleton_with_two_children_is_refused(each_kernel: str, kinds: str) -> None:
    order = len(kinds)
    coordinates = np.zeros((order, 2), np.int64)
    coordinates[kinds.index("q"), 1] = 1
    with pytest.raises(FormatError, match=rf"level {kinds.index('q') + 1} is singleton, but a parent has several coordinates"):
        tensor((coordinates, np.ones(2)), kinds, shape=(2,) * order)


def test_dense_levels_pad_with_the_fill_value(each_kernel: str) -> None:
    packed = tensor((np.array([[1], [2]]), np.array([3.0])), "sd", shape=(4, 3), fill_value=np.inf)
    assert packed.values.tolist() == [np.inf, np.inf, 3.0]
    assert packed.to_numpy()[0, 0] == np.inf
    assert stored_entries(packed.convert("csr")) == {(1, 2): 3.0}


def test_widths_follow_the_limit(each_kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aligned, "INDEX_LIMIT", 10)
    coordinates = np.array([np.arange(20) % 5, np.arange(20) % 4, np.arange(20)])
    packed = tensor((coordinates, np.arange(20.0)), "csf", shape=(5, 9, 20))
    kinds = [(level.pos.dtype.name, level.crd.dtype.name) for level in packed.levels]
    assert kinds == [("int32", "int32"), ("int64", "int32"), ("int64", "int64")]
    for target in ("csf; 2, 1, 0", "coo", "dsh", "hhh; 1, 0, 2", "sqs"):
        converted = packed.convert(target)
        assert stored_entries(converted) == expected_entries(converted, summed(coordinates, np.arange(20.0)))
    rows = tensor((coordinates[1:], np.arange(20.0)), "csr", shape=(9, 20))
    assert stored_entries(rows.convert("csc")) == stored_entries(rows)
    assert rows.convert("csc").levels[1].pos.dtype == np.int64
    assert rows.convert("csc").levels[1].crd.dtype == np.int32


def test_extents_beyond_64_bits_together(each_kernel: str) -> None:
    extent = 2**40
    coordinates = np.array([[5, 2**39, 5, 5], [2**39 + 1, 0, 7, 2**39 + 1], [1, 2**40 - 1, 3, 1]])
    packed = tensor((coordinates, np.array([1.0, 2.0, 3.0, 4.0])), "csf", shape=(extent,) * 3)
    assert packed.levels[0].crd.dtype == np.int64
    assert stored_entries(packed) == summed(coordinates, np.array([1.0, 2.0, 3.0, 4.0]))
    assert stored_entries(packed.convert("coo; 2, 0, 1")) == stored_entries(packed)


def test_own_arrays_are_aligned() -> None:
    for count in (1, 7, 1000):
        array = aligned_empty(count, np.float32)
        assert array.shape == (count,)
        assert array.ctypes.data % 128 == 0, "a pair of cache lines"


MAKERS: tuple[Callable[[int], np.ndarray[Any, Any]], ...] = (
    lambda count: aligned_empty(count, np.float32), lambda count: aligned_full(count, 0, np.float32),
    lambda count: aligned_full(count, 3, np.float32),
)  # fmt: skip


@pytest.mark.parametrize("make", MAKERS)
def test_large_arrays_begin_at_huge_pages(make: Callable[[int], np.ndarray[Any, Any]]) -> None:
    """Else the system may give a part of them small pages, another part in each process."""
    for count in (2**20, 2**20 + 1, 3 * 2**20):
        array = make(count)
        assert array.shape == (count,)
        assert array.ctypes.data % 2**21 == 0


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_rows_become_entries_and_back_in_one_pass(order: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    rows = tensor((rng.integers(0, 50, (2, 200)), np.ones(200)), Format("dense, compressed", order), shape=(50, 50))
    passes: list[tuple[str, bool]] = []

    class Recorder:
        def __getattr__(self, name: str) -> Any:
            return lambda first, second, *others: passes.append((name, second is None)) or getattr(active(), name)(first, second, *others)

    for module in (convert, compressed, pack, segments):
        for name in {"active", "light"} & set(vars(module)):
            monkeypatch.setattr(module, name, lambda *_: Recorder())
    entries = rows.convert(Format("compressed, singleton", order))
    back = entries.convert(rows.format)
    assert passes == [("expand", True), ("segments", False)], "no array has the numbers of all rows"
    assert entries.values is rows.values is back.values
    assert entries.levels[1].crd is rows.levels[1].crd is back.levels[1].crd
    assert np.array_equal(back.levels[1].pos, rows.levels[1].pos)
    assert np.array_equal(entries.to_numpy(), rows.to_numpy())


def test_too_large_is_refused() -> None:
    with pytest.raises(ResourceError, match=r"does not fit into memory.*name a sparse format"):
        tensor((np.array([[0], [0]]), np.ones(1)), "dense", shape=(2**30, 2**30))
    with pytest.raises(FormatError, match="dense levels of this format have"):
        tensor((np.array([[0], [0]]), np.ones(1)), "dense", shape=(2**40, 2**40))
