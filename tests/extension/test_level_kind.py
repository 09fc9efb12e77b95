"""A level kind that the library does not have: written here, registered, and run through everything that takes a format."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest
import sparsetune as st
from differential import formats
from kind_checks import SCHEDULES, check_absent_parents, check_conversions, check_random_expressions
from sparsetune.compiler.errors import DataError, FormatError
from sparsetune.compiler.format import Format
from sparsetune.compiler.ir.arithmetic import ONE, ZERO, add, compare, maximum, minimum, subtract
from sparsetune.compiler.ir.nodes import I64, Call, Select, Type, Value
from sparsetune.compiler.levels import COMPRESSED, LevelKind, register
from sparsetune.compiler.levels.kind import Parts
from sparsetune.compiler.levels.level import Level
from sparsetune.compiler.levels.registry import unregister
from sparsetune.compiler.levels.segments import Segmented, check_types
from sparsetune.compiler.levels.traversal import Claimed
from sparsetune.compiler.storage.level_arrays import LevelArrays
from sparsetune.compiler.storage.sealed import sealed
from sparsetune.compiler.storage.tensor import Tensor


class Runs(Segmented):
    """Compressed levels of which only the first coordinate of each run of neighbours is stored.

    ``pos`` delimits the children of each parent, ``runs`` its runs; run r has coordinates from ``firsts[r]`` on at the positions from
    ``starts[r]`` to ``starts[r + 1]``.
    """

    letters = "r"
    relative = True

    @property
    def plain(self) -> LevelKind:
        return COMPRESSED

    def types(self, width: Type) -> dict[str, Type]:
        return {"pos": width, "runs": width, "starts": width, "firsts": width}

    def positions(self, parts: Parts, parents: int, extent: int) -> int:
        return int(parts["pos"][-1])

    def bytes(self, parents: int, children: int, extent: int) -> tuple[int, int]:
        return COMPRESSED.bytes(parents, children, extent)

    def encoded(self, arrays: LevelArrays, extent: int, refusal: str) -> LevelArrays:
        pos, crd = arrays.parts["pos"], arrays.parts["crd"]
        begins = np.ones(len(crd), bool)
        begins[1:] = crd[1:] != crd[:-1] + 1
        begins[pos[pos < len(crd)]] = True
        starts = np.append(np.flatnonzero(begins), len(crd))
        runs = np.searchsorted(starts, pos)
        firsts = crd[starts[:-1]]
        return LevelArrays(pos, **{name: sealed(array.astype(pos.dtype)) for name, array in zip(
            ("runs", "starts", "firsts"), (runs, starts, firsts), strict=True)})  # fmt: skip

    def decoded(self, arrays: LevelArrays, extent: int) -> LevelArrays:
        return LevelArrays(arrays.pos, sealed(_coordinates(arrays.parts)))

    def check(self, claimed: Claimed) -> int:
        check_types(claimed, *claimed.parts)
        starts, runs, firsts = (claimed.parts[part] for part in ("starts", "runs", "firsts"))
        fits = len(starts) == len(firsts) + 1 and len(runs) == claimed.parents + 1 and bool((np.diff(starts) > 0).all()) and starts[0] == 0
        claimed.require(fits, "has one place more than runs, which are not empty")
        crd = _coordinates(claimed.parts)
        count = COMPRESSED.check(replace(claimed, parts={"pos": claimed.parts["pos"], "crd": crd}))
        claimed.require(bool((starts[runs] == claimed.parts["pos"]).all()), "has runs that end where segments do")
        return count

    def sampled(self, parts: Parts, places: np.ndarray, extent: int) -> np.ndarray:
        return _coordinates(parts)[places].astype(np.int64)

    def under(self, level: Level, parent: Value, present: Value | None) -> Level:
        return replace(level, origin=parent if present is None else Select(present, parent, ZERO, I64))

    def coordinate(self, level: Level, position: Value) -> Value:
        run = self._run(level, "starts", position)
        return add(level.load("firsts", run), subtract(position, level.load("starts", run)))

    def search(self, level: Level, low: Value, high: Value, coordinate: Value, function: str, *more: Value) -> Value:
        run = self._run(level, "firsts", coordinate)
        inside = minimum(
            add(level.load("starts", run), subtract(coordinate, level.load("firsts", run))), level.load("starts", add(run, ONE))
        )
        assert level.origin is not None
        nearest = Select(compare("<", run, level.load("runs", level.origin)), low, inside, I64)
        return Select(compare("<", low, high), minimum(maximum(nearest, low), high), low, I64)

    def _run(self, level: Level, part: str, key: Value) -> Value:
        """Return the last run of the parent that begins at a key or before."""
        assert level.origin is not None
        low, high = level.load("runs", level.origin), level.load("runs", add(level.origin, ONE))
        return subtract(Call("upper_bound", (level.reference(part), low, high, key), I64), ONE)

    def within(self, level: Level, coordinate: Value) -> Value:
        return minimum(maximum(coordinate, ZERO), subtract(level.extent, ONE))


def _coordinates(parts: Mapping[str, np.ndarray]) -> np.ndarray:
    lengths = np.diff(parts["starts"])
    return np.repeat(parts["firsts"] - parts["starts"][:-1], lengths) + np.arange(parts["starts"][-1], dtype=parts["firsts"].dtype)


@pytest.fixture
def runs() -> Iterator[LevelKind]:
    kind = register(Runs("runs"))
    yield kind
    unregister(kind)


def matrix(rows: int = 30, columns: int = 40, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    blocks = np.repeat(rng.random((rows, columns // 4)) < 0.3, 4, axis=1)
    return np.where(blocks & (rng.random((rows, 1)) < 0.8), rng.standard_normal((rows, columns)), 0.0)


def test_a_kind_is_known_while_it_is_registered(runs: LevelKind) -> None:
    assert Format("dr") == Format("dense, runs") == Format(("dense", runs))
    assert str(Format("dr")) == "dense, runs"
    assert pickle.loads(pickle.dumps(Format("dr"))).levels[1] is runs
    with pytest.raises(FormatError, match="there is a level kind 'runs' already"):
        register(Runs("runs"))
    unregister(runs)
    with pytest.raises(FormatError, match=r"level 2 is 'runs': a level is dense, .* or symmetric"):
        Format("dense, runs")
    register(runs)


def test_a_kind_that_does_not_say_all_is_refused() -> None:
    class Silent(Runs):
        check = LevelKind.check

    with pytest.raises(FormatError, match="the level kind 'silent' does not say 'check'"):
        register(Silent("silent"))


@pytest.mark.parametrize("method", ["positions", "sampled", "coordinate", "search"])
def test_a_kind_without_crd_says_all_that_would_read_it(method: str) -> None:
    """Otherwise it is found out only deep in the lowering of some expression."""
    silent = type("Silent", (Runs,), {method: getattr(LevelKind, method), "letters": ""})
    with pytest.raises(FormatError, match=f"the level kind 'silent' does not say '{method}'"):
        register(silent("silent"))


def test_tensors_in_the_format(runs: LevelKind) -> None:
    dense = matrix()
    stored = st.tensor(dense, "dense, runs")
    assert len(stored.levels[1].parts["firsts"]) < stored.nnz / 3
    check_conversions(dense, "dense, runs", ("csr", "csc", "runs, runs", "dense, runs; 1, 0", "coo", "dn", "db", "dp"))
    again = Tensor(stored.shape, stored.format, stored.levels, stored.values)
    assert np.array_equal(again.to_numpy(), dense)
    wrong = stored.levels[1].having(firsts=stored.levels[1].parts["firsts"] + 40)
    with pytest.raises(DataError, match="level 2 is broken: a level that is runs has coordinates below 40"):
        Tensor(stored.shape, stored.format, (stored.levels[0], wrong), stored.values)


@pytest.mark.cc
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_kernels_follow_the_runs(runs: LevelKind, schedule: str) -> None:
    dense, x = matrix(), np.random.default_rng(1).standard_normal(40)
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": "dense, runs"}, schedule=schedule)
    assert np.allclose(kernel(A=st.tensor(dense, "dr"), x=x, threads=2), dense @ x)


def test_no_runs_are_read_below_a_parent_that_is_absent(runs: LevelKind) -> None:
    check_absent_parents(runs)


@pytest.mark.cc
def test_random_expressions_agree_with_the_oracle(runs: LevelKind, monkeypatch: pytest.MonkeyPatch) -> None:
    check_random_expressions(runs, formats.NARROW, range(5_000, 5_400), 81, monkeypatch)
