"""Races of two versions: by simulated times, which say how often a race is wrong, and with two real ones."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import scipy.sparse
from sparsetune.compiler.errors import DataError, TuningError
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.tuner.nightly import race
from sparsetune.tuner.nightly.race import MOST_ROUNDS, ROOT, OlderFails, Side, SideLost, Task, checkout, contest
from sparsetune.tuner.nightly.racer import placed
from sparsetune.tuner.resolve import make_problem

MATRIX = scipy.sparse.random_array((200, 200), density=0.02, rng=np.random.default_rng(0), format="csr")
PROBLEM = make_problem("y(i) = A(i,j) * x(j)", {"A": MATRIX, "x": np.ones(200)}, threads=1)
TASK = Task(PROBLEM, "")


class Simulated:
    """A version whose runs take some time by a clock of the test's, in processes that are a bit luckier or less lucky with memory."""

    def __init__(self, seconds: float, draw: random.Random, crowd: Callable[[], bool] = lambda: False, luck: float = 0.02) -> None:
        self.seconds, self.draw, self.crowd, self.luck = seconds, draw, crowd, luck
        self.starts = self.bursts = 0
        self.restart()

    def restart(self) -> None:
        self.starts += 1
        self.here = self.seconds * self.draw.lognormvariate(0, self.luck)

    def load(self, folder: Path) -> None:
        assert (folder / "task.json").exists()

    def burst(self, batch: int, samples: int, expected: float) -> tuple[tuple[float, ...], bool]:
        self.bursts += 1
        crowded = self.crowd()
        factor = self.draw.uniform(1, 6) if crowded else self.draw.lognormvariate(0, 0.02)
        return (self.here * factor, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), crowded


def raced(older: Simulated, newer: Simulated, margin: float = 0.1) -> race.Outcome:
    return contest(cast(Side, older), cast(Side, newer), TASK, margin)


def crowds(draw: random.Random, share: float) -> Callable[[], bool]:
    return lambda: draw.random() < share


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_equal_versions_are_the_same(share: float) -> None:
    outcomes = []
    for seed in range(400):  # 20 nights of 20 items
        draw = random.Random(seed)
        outcomes.append(raced(Simulated(1e-3, draw, crowds(draw, share)), Simulated(1e-3, draw, crowds(draw, share))).verdict)
    assert outcomes.count("regression") + outcomes.count("improvement") == 0
    assert outcomes.count("undecided") <= 2


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_fifth_more_is_a_regression(share: float) -> None:
    outcomes = []
    for seed in range(100):
        draw = random.Random(seed)
        outcomes.append(raced(Simulated(1e-3, draw, crowds(draw, share)), Simulated(1.2e-3, draw, crowds(draw, share))))
    assert sum(outcome.verdict == "regression" for outcome in outcomes) >= 95
    assert all(outcome.races > 1 for outcome in outcomes if outcome.verdict == "regression")


def test_an_unlucky_process_is_no_regression() -> None:
    draw = random.Random(0)
    older, newer = Simulated(1e-3, draw, luck=0.0), Simulated(1e-3, draw, luck=0.0)
    newer.here = 1.3e-3
    outcome = raced(older, newer)
    assert (outcome.verdict, outcome.races) == ("same", 2)
    assert (older.starts, newer.starts) == (2, 2)


def test_a_race_ends() -> None:
    draw = random.Random(0)
    older, newer = Simulated(1e-3, draw, luck=0.0), Simulated(1.1e-3, draw, luck=0.0)
    outcome = raced(older, newer)
    assert outcome.verdict == "undecided"
    assert newer.bursts <= outcome.races * (MOST_ROUNDS + 2)


class Mortal(Simulated):
    """A version whose process is lost in some bursts, counted from 1."""

    def __init__(self, *deaths: int) -> None:
        super().__init__(1e-3, random.Random(0))
        self.deaths = deaths

    def burst(self, batch: int, samples: int, expected: float) -> tuple[tuple[float, ...], bool]:
        found = super().burst(batch, samples, expected)
        if self.bursts in self.deaths:
            raise SideLost(cast(Side, self), "no answer within 10 s")
        return found


@pytest.mark.parametrize("death", [1, 5])
def test_a_lost_answer_is_asked_for_again(death: int) -> None:
    assert raced(Mortal(death), Mortal()).verdict == "same"
    assert raced(Mortal(), Mortal(death)).verdict == "same"


def test_a_version_whose_process_is_lost_again_fails() -> None:
    with pytest.raises(OlderFails, match="no answer"):
        raced(Mortal(1, 2), Mortal())
    with pytest.raises(SideLost, match="no answer"):
        raced(Mortal(), Mortal(1, 4))


def test_what_is_no_checkout(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is no checkout of sparsetune"):
        checkout(tmp_path)
    assert checkout(ROOT) == ROOT.resolve()
    (tmp_path / "sparsetune").symlink_to(ROOT)
    assert checkout(tmp_path) == ROOT.resolve()


needs_compiler = pytest.mark.skipif(not available_compilers(), reason="needs a C compiler")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another version: a copy of this one in a folder of another name, whose bound calls, packing and compiler can be changed."""
    place = tmp_path_factory.mktemp("other") / "copy-1"
    unwanted = shutil.ignore_patterns(".*", "tests", "results", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT, place, ignore=unwanted)
    return place


def burst_of(root: Path, task: Task) -> tuple[dict[str, Any], float]:
    side = Side(root, 1)
    try:
        with race.saved(task) as folder:
            reply = side.ask(300, "load", folder=str(folder))
        sample, _ = side.burst(1, 3, 1.0)
        return reply, sample[0]
    finally:
        side.close()


@needs_compiler
@pytest.mark.parametrize("call", race.CALLS)
def test_each_side_runs_its_own_version(other: Path, call: str) -> None:
    packed = make_problem("B(i,j) = A(i,j)", {"A": PROBLEM.operands["A"].convert("coo")}, "csr", threads=1)
    task = Task(packed if call == "pack" else PROBLEM, "", call)
    for root in (ROOT, other):
        reply, seconds = burst_of(root, task)
        assert reply["package"] == str(root.resolve())
        assert 0 < seconds < 10


@needs_compiler
def test_what_only_one_version_can_run(other: Path) -> None:
    older, newer = Side(other, 1), Side(ROOT, 1)
    try:
        with pytest.raises(OlderFails, match="unrol"):
            contest(older, newer, Task(PROBLEM, "unrol(j, 2)"), 0.1)
        init = other / "__init__.py"
        text = init.read_text()
        init.write_text("raise RuntimeError('half of a version')\n")
        older.restart()
        with pytest.raises(OlderFails, match="half of a version"):
            contest(older, newer, TASK, 0.1)
        older.restart()
        with pytest.raises(TuningError, match="half of a version") as caught:
            contest(newer, older, TASK, 0.1)
        assert not isinstance(caught.value, OlderFails)
        init.write_text(text)
    finally:
        older.close()
        newer.close()


@needs_compiler
def test_a_process_that_is_killed_in_a_race_is_replaced(other: Path) -> None:
    class Killed(Side):
        left = 4

        def burst(self, batch: int, samples: int, expected: float) -> tuple[tuple[float, ...], bool]:
            self.left -= 1
            if self.left == 0:
                assert self._worker is not None
                assert self._worker._process is not None
                self._worker._process.kill()
            return super().burst(batch, samples, expected)

    older, newer = Side(other, 1), Killed(ROOT, 1)
    try:
        assert contest(older, newer, TASK, 10.0).verdict == "same"
        assert newer.left < 0
    finally:
        older.close()
        newer.close()


def test_arrays_lie_at_multiples_of_128_bytes_in_other_places_of_a_page_each_time() -> None:
    given = np.arange(30.0).reshape(5, 6)
    made = [placed(given) for _ in range(20)]
    assert all(np.array_equal(one, given) and one.dtype == given.dtype for one in made)
    offsets = [one.ctypes.data % 4096 for one in made]
    assert not any(offset % 128 for offset in offsets)
    assert len(set(offsets)) > 5
    assert placed(np.empty((0, 3), np.int32)).shape == (0, 3)
