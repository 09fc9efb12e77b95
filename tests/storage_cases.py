"""Helpers of the storage tests: a plain walk over level arrays, written from their definition, and strategies for cases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st
from sparsetune.compiler.format import Format
from sparsetune.compiler.levels import LevelKind, level_kind
from sparsetune.compiler.storage.convert import convert
from sparsetune.compiler.storage.tensor import Tensor

OWN = frozenset(map(level_kind, "dsntqhbpl"))
GOLDEN = 0x9E3779B97F4A7C15


def stored_entries(tensor: Tensor) -> dict[tuple[int, ...], Any]:
    """Return the stored entries by coordinates in mode order, checking every promise that the level arrays make. Levels of kinds that
    are not the library's check themselves, and compressed ones with the same entries are walked in their place.
    """
    if not OWN.issuperset(tensor.format.levels):
        Tensor(tensor.shape, tensor.format, tensor.levels, tensor.values, tensor.fill_value)
        kinds = tuple(kind if kind in OWN else level_kind("compressed") for kind in tensor.format.levels)
        tensor = convert(tensor, Format(kinds, tensor.format.order), drop_padding=False)
    found: dict[tuple[int, ...], Any] = {}
    for coordinates, position in _walk(tensor, 0, 0, ()):
        by_mode = tuple(coordinates[tensor.format.level_of(mode)] for mode in range(tensor.order))
        assert by_mode not in found, f"{by_mode} is stored twice"
        found[by_mode] = tensor.values[position]
    counts = [1]
    for level, (kind, arrays) in enumerate(zip(tensor.format.levels, tensor.levels, strict=True)):
        counts.append(_check_arrays(tensor, level, kind, arrays, counts[-1]))
    assert tensor.values.shape == (counts[-1],)
    assert tensor.values.flags.c_contiguous
    assert tensor.nnz == len(found)
    return found


def _walk(tensor: Tensor, level: int, position: int, above: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], int]]:
    if level == tensor.order:
        yield above, position
        return
    for coordinate, child in _children(tensor, level, position):
        yield from _walk(tensor, level + 1, child, (*above, coordinate))


def _children(tensor: Tensor, level: int, position: int) -> list[tuple[int, int]]:
    kind, arrays = tensor.format.levels[level], tensor.levels[level]
    extent = tensor.shape[tensor.format.order[level]]
    if kind is level_kind("d"):
        return [(coordinate, position * extent + coordinate) for coordinate in range(extent)]
    if kind is level_kind("q"):
        return [(int(arrays.crd[position]), position)]
    if kind is level_kind("b"):
        slots = range(position * extent, (position + 1) * extent)
        return [(slot - position * extent, slot) for slot in slots if int(arrays.parts["bits"][slot // 64]) >> (slot % 64) & 1]
    if kind is level_kind("p"):
        width = int(arrays.parts["width"][0])
        slots = [(int(arrays.crd[slot]), slot) for slot in range(position * width, (position + 1) * width)]
        taken = [child for child in slots if child[0] < extent]
        assert slots[: len(taken)] == taken
        assert [coordinate for coordinate, _ in taken] == sorted({coordinate for coordinate, _ in taken})
        return taken
    if kind is level_kind("l"):
        begin, past = (int(arrays.parts["slices"][position // 4 + more]) for more in (0, 1))
        end = int(arrays.parts["ends"][position])
        assert begin <= end <= past
        slots = [4 * column + position % 4 for column in range(begin, past)]
        taken = [(int(arrays.crd[slot]), slot) for slot in slots[: end - begin]]
        assert [coordinate for coordinate, _ in taken] == sorted({coordinate for coordinate, _ in taken})
        assert all(0 <= int(arrays.crd[slot]) < extent for slot in slots)
        return taken
    segment = range(int(arrays.pos[position]), int(arrays.pos[position + 1]))
    if kind is level_kind("t"):
        start, distances = int(arrays.parts["start"][position]), arrays.parts["distances"]
        children = [(position + int(distances[start + place]), child) for place, child in enumerate(segment)]
    else:
        first = int(arrays.parts["base"][position]) if "base" in arrays.parts else 0
        children = [(first + int(arrays.crd[child]), child) for child in segment]
    if kind is level_kind("h"):
        _check_table([coordinate for coordinate, _ in children])
        return [child for child in children if child[0] >= 0]
    coordinates = [coordinate for coordinate, _ in children]
    assert coordinates == sorted(coordinates)
    if tensor.format.unique(level):
        assert len(set(coordinates)) == len(coordinates)
    return children


def _check_table(slots: list[int]) -> None:
    size = len(slots)
    taken = [coordinate for coordinate in slots if coordinate >= 0]
    if not size:
        return
    assert size >= 2
    assert size & (size - 1) == 0
    assert 0 < len(taken) < size
    for coordinate in taken:
        slot = (coordinate * GOLDEN % 2**64) >> (64 - (size.bit_length() - 1))
        while slots[slot] != coordinate:
            assert slots[slot] >= 0, f"{coordinate} cannot be found"
            slot = (slot + 1) % size


def _check_arrays(tensor: Tensor, level: int, kind: LevelKind, arrays: Any, parents: int) -> int:
    extent = tensor.shape[tensor.format.order[level]]
    narrow = kind is level_kind("n")
    for part, array in arrays.parts.items():
        expected = (np.uint16,) if narrow and part == "crd" else (np.uint64,) if part == "bits" else (np.int32, np.int64)
        assert array.dtype in expected
        assert array.flags.c_contiguous
        assert array.ndim == 1
    assert ("base" in arrays.parts) == narrow
    assert not narrow or len(arrays.parts["base"]) == parents
    if kind is level_kind("d"):
        assert arrays.pos is None
        assert arrays.crd is None
        return parents * extent
    if kind is level_kind("q"):
        assert arrays.pos is None
        assert len(arrays.crd) == parents
        return parents
    if kind is level_kind("b"):
        assert arrays.pos is arrays.crd is None
        assert len(arrays.parts["bits"]) == -(-parents * extent // 64)
        return parents * extent
    if kind is level_kind("p"):
        assert arrays.pos is None
        assert len(arrays.crd) == parents * int(arrays.parts["width"][0])
        return len(arrays.crd)
    if kind is level_kind("l"):
        slices, ends = arrays.parts["slices"], arrays.parts["ends"]
        assert arrays.pos is None
        assert len(slices) == -(-parents // 4) + 1
        assert len(ends) == parents
        assert slices[0] == 0
        assert all(max(ends[4 * number : 4 * number + 4]) == slices[number + 1] for number in range(len(slices) - 1))
        assert len(arrays.crd) == 4 * int(slices[-1])
        return len(arrays.crd)
    assert len(arrays.pos) == parents + 1
    assert arrays.pos[0] == 0
    if kind is level_kind("t"):
        assert arrays.crd is None
        assert len(arrays.parts["start"]) == parents
        assert len(arrays.parts["distances"]) <= arrays.pos[-1]
    else:
        assert arrays.pos[-1] == len(arrays.crd)
    if kind.has_fibres and level + 1 < tensor.order and tensor.format.levels[level + 1].has_fibres:
        assert (np.diff(tensor.levels[level + 1].pos) > 0).all(), "an empty fibre below a compressed level"
    return int(arrays.pos[-1])


@st.composite
def formats(draw: st.DrawFn, order: int) -> Format:
    """Draw any format of an order."""
    kinds: list[str] = []
    for _ in range(order):
        kinds.append(draw(st.sampled_from("dsnthbpl" if not kinds or kinds[-1] in "nt" else "dsntqhbpl")))
    return Format(tuple(kinds), tuple(draw(st.permutations(range(order)))))


def holds_many(format: Format) -> bool:
    """Return whether a format can hold any entries: singletons stand only below compressed levels or singletons, and no kind is for
    symmetric matrices only."""
    if format.mirrors:
        return False
    for level, kind in enumerate(format.levels):
        if kind is level_kind("q") and format.levels[level - 1] not in (level_kind("s"), level_kind("q")):
            return False
    return True


@st.composite
def cases(draw: st.DrawFn, most: int = 12) -> tuple[tuple[int, ...], np.ndarray, np.ndarray]:
    """Draw (shape, coordinates, values) with duplicates and explicit zeros; orders 0 to 4, extents from 0 on."""
    order = draw(st.integers(0, 4))
    shape = tuple(draw(st.sampled_from([0, 1, 2, 3, 5])) for _ in range(order))
    count = draw(st.integers(0, most)) if all(shape) else 0
    entries = [[draw(st.integers(0, extent - 1)) for extent in shape] for _ in range(count)]
    values = [float(draw(st.integers(-2, 2))) for _ in range(count)]
    return shape, np.array(entries, np.int64).reshape(count, order).T, np.array(values)


def summed(coordinates: np.ndarray, values: np.ndarray) -> dict[tuple[int, ...], float]:
    """Return the entries with their duplicates summed."""
    found: dict[tuple[int, ...], float] = {}
    for entry, value in zip(map(tuple, coordinates.T.tolist()), values.tolist(), strict=True):
        found[entry] = found.get(entry, 0.0) + value
    return found
