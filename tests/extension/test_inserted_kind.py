"""A level kind that results are inserted into, with C of its own, written as ``compiler/README.md`` says."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import sparsetune as st
from differential import formats
from kind_checks import check_random_expressions
from sparsetune.compiler.errors import DataError
from sparsetune.compiler.format import Format
from sparsetune.compiler.ir.arithmetic import ZERO, add, compare, multiply, quotient, remainder
from sparsetune.compiler.ir.intrinsics import INTRINSICS, Intrinsic
from sparsetune.compiler.ir.nodes import Run, Step, Type, Value
from sparsetune.compiler.levels import LevelKind, register
from sparsetune.compiler.levels.dense import indexed
from sparsetune.compiler.levels.kind import Parts, Size
from sparsetune.compiler.levels.level import Level
from sparsetune.compiler.levels.registry import unregister
from sparsetune.compiler.levels.traversal import Claimed, Column, Frontier
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.space.forests.costs import positions
from sparsetune.compiler.storage.level_arrays import LevelArrays
from sparsetune.compiler.storage.sealed import sealed
from sparsetune.compiler.storage.walk import Walk

RAISE = "static inline void raise_flag(uint8_t *flags, int64_t place) { __atomic_store_n(flags + place, 1, __ATOMIC_RELAXED); }"


def raised(flags: np.ndarray, place: int) -> None:
    flags[place] = 1


class Flagged(LevelKind):
    """A position for every coordinate, and in ``flags`` a byte each that is 1 where something stands."""

    letters = "f"
    steps = False
    merges = False
    holes = True
    located = True
    inserts = True
    intrinsics = MappingProxyType({"raise_flag": Intrinsic(raised, "raise_flag", updates=True, code=RAISE, on_gpu=False)})

    def types(self, width: Type) -> dict[str, Type]:
        return {"flags": Type("u8")}

    def positions(self, parts: Parts, parents: int, extent: int) -> int:
        return parents * extent

    def size(self, parents: Size, extent: Size, stored: Size) -> Size:
        return parents * extent

    def bytes(self, parents: int, children: int, extent: int) -> tuple[int, int]:
        return parents * extent, parents * extent

    def pack(self, frontier: Frontier, column: Column) -> tuple[LevelArrays, Frontier]:
        below = indexed(frontier, column)
        flags = np.zeros(below.count, np.uint8)
        flags[below.positions(len(column.found))] = 1
        return LevelArrays(flags=sealed(flags)), below

    def unpack(self, walk: Walk, parts: Parts, extent: int) -> Walk:
        above = np.arange(walk.count) if walk.positions is None else walk.positions
        places = (above[:, None] * extent + np.arange(extent)).reshape(-1)
        kept = np.flatnonzero(parts["flags"][places])
        parents = kept // max(1, extent)
        return walk.down(lambda column: column[parents], sealed(kept % max(1, extent)), places[kept])

    def check(self, claimed: Claimed) -> int:
        flags, count = claimed.parts["flags"], claimed.parents * claimed.extent
        claimed.require(flags.dtype == np.uint8 and len(flags) == count, f"has a byte for each of {count} positions")
        claimed.require(bool((flags <= 1).all()), "has flags that are 0 or 1")
        return count

    def sampled(self, parts: Parts, places: np.ndarray, extent: int) -> np.ndarray:
        return np.where(parts["flags"][places], places % max(1, extent), -1)

    def begin(self, level: Level, parent: Value) -> Value:
        return multiply(parent, level.extent)

    def coordinate(self, level: Level, position: Value) -> Value:
        return remainder(position, level.extent)

    def locate(self, level: Level, low: Value, high: Value, coordinate: Value) -> Value:
        return add(low, coordinate)

    def hit(self, level: Level, position: Value, low: Value, high: Value, coordinate: Value) -> Value:
        return compare("!=", level.load("flags", position), ZERO)

    def occupied(self, level: Level, position: Value, coordinate: Value) -> Value | None:
        return compare("!=", level.load("flags", position), ZERO)

    def parent(self, level: Level, position: Value, parents: Value) -> Value:
        return quotient(position, level.extent)

    def room(self, level: Level, positions: Value) -> dict[str, Value]:
        return {"flags": positions}

    def insert(self, level: Level, position: Value) -> list[Step]:
        return [Run("raise_flag", (level.reference("flags"), position))]


@pytest.fixture
def flagged() -> Iterator[LevelKind]:
    kind = register(Flagged("flagged"))
    yield kind
    unregister(kind)


def matrix(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.where((rng.random((20, 30)) < 0.2) & (rng.random((20, 1)) < 0.8), rng.integers(1, 9, (20, 30)), 0).astype(float)


def test_its_functions_are_known_while_it_is(flagged: LevelKind) -> None:
    assert "raise_flag" in INTRINSICS
    unregister(flagged)
    assert "raise_flag" not in INTRINSICS
    register(flagged)


def test_tensors_in_the_format(flagged: LevelKind) -> None:
    dense = matrix()
    for text in ("df", "ff", "fs", "sf", "fd"):
        stored = st.tensor(dense, text)
        assert np.array_equal(stored.to_numpy(), dense)
        assert np.array_equal(stored.convert("csr").to_numpy(), dense)
    stored = st.tensor(dense, "df")
    with pytest.raises(DataError, match="a level that is flagged has flags that are 0 or 1"):
        st.Tensor(stored.shape, stored.format, (stored.levels[0], stored.levels[1].having(flags=np.full(600, 2, np.uint8))), stored.values)


def test_cost_models_ask_for_its_size(flagged: LevelKind) -> None:
    assert str(positions("B", Format("sf"), ("i", "k"), 1)) == "k * nnz_B_1"
    assert str(positions("B", Format("fs"), ("i", "k"), 1)) == "nnz_B_2"
    assert str(positions("B", Format("db"), ("i", "k"), 1)) == "i * k"


@pytest.mark.cc
@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("schedule", ["", "parallelize(i, cpu_thread, no_races, dynamic, 1)"])
def test_results_are_written_in_it(flagged: LevelKind, schedule: str, target: str) -> None:
    left, right = matrix(), matrix(1).T.copy()
    given: dict[str, Any] = {"A": st.tensor(left, "csr"), "B": st.tensor(right, "csr")}
    for text in ("df", "fs", "ff"):
        kernel = compile_kernel("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": text}, schedule=schedule, target=target)
        bound = kernel.bind(**given, threads=3)
        assert bound.kernel.spec.result.format == Format(text)
        made = bound()
        st.Tensor(made.shape, made.format, made.levels, made.values)
        assert np.array_equal(made.to_numpy(), left @ right)
        assert made.nnz == np.count_nonzero(left @ right)
        assert target == "interpreter" or kernel.source.count(RAISE) == 1


@pytest.mark.cc
def test_random_expressions_agree_with_the_oracle(flagged: LevelKind, monkeypatch: pytest.MonkeyPatch) -> None:
    check_random_expressions(flagged, formats.BITMAP, range(6_000, 6_250), 31, monkeypatch)
