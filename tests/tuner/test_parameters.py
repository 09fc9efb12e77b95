"""What the static choice makes of data: shares of parallel loops, ends of rows, and the constants of a machine."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sparsetune.compiler.native.machine import CacheLevel, this_machine
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.storage.construct import tensor
from sparsetune.datasets.generate import generate
from sparsetune.tuner import calibration
from sparsetune.tuner import constants as module
from sparsetune.tuner.constants import Constants, machine_constants
from sparsetune.tuner.gathers import scattered_share
from sparsetune.tuner.measure.company import Alone, Company, Look
from sparsetune.tuner.model import model_choice
from sparsetune.tuner.parameters import largest_share
from sparsetune.tuner.resolve import make_problem
from sparsetune.tuner.shares import ITERATION, chunks, dynamic_excess, largest_chunk, static_excess
from static_choices import spmm, spmv, with_rows

pytestmark = pytest.mark.usefixtures("usual_constants")

RNG = np.random.default_rng(5)


def test_shares_count_entries_and_iterations() -> None:
    skewed = with_rows([10, 0, 0, 0])
    assert static_excess(skewed, 2, apart=True) == pytest.approx((10 + 2 * ITERATION) / ((10 + 4 * ITERATION) / 2))
    assert static_excess(skewed, 2) == pytest.approx((10 + ITERATION) / ((10 + 4 * ITERATION) / 2)), "the other takes the last three"
    assert static_excess(with_rows([3] * 8), 2) == static_excess(with_rows([3] * 8), 2, apart=True) == 1.0
    assert (chunks(skewed, 1), chunks(skewed, 3), chunks(skewed, 64)) == (4, 2, 1)
    assert largest_chunk(skewed, 1) == pytest.approx((10 + ITERATION) / (10 + 4 * ITERATION))
    assert largest_chunk(skewed, 64) == 1.0
    deep = tensor((np.array([[0, 0, 0, 1], [0, 0, 1, 2], [0, 1, 0, 3]]), np.ones(4)), "csf", (2, 3, 4))
    assert largest_chunk(deep, 1) == pytest.approx((3 + ITERATION) / (4 + 2 * ITERATION))
    empty = tensor((np.empty((2, 0), dtype=np.int64), np.empty(0)), "csr", (0, 4))
    assert (static_excess(empty, 2), chunks(empty, 64), scattered_share(empty, 1, 2)) == (1.0, 1, 0.0)


def in_turn(lengths: list[int], chunk: int, threads: int) -> float:
    """What the last thread takes over the mean where each gets the next chunk when it has done one, chunk by chunk."""
    work = [sum(length + ITERATION for length in lengths[begin : begin + chunk]) for begin in range(0, len(lengths), chunk)]
    ready = [0.0] * threads
    for one in work:
        heapq.heappush(ready, heapq.heappop(ready) + one)
    return max(ready) * threads / sum(work)


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("chunk", [1, 7, 64])
@pytest.mark.parametrize("order", ["mixed", "falling", "rising"])
def test_chunks_in_turn_take_no_longer_than_foreseen(threads: int, chunk: int, order: str) -> None:
    """Where the longest rows come first that is what they take; where they come last it is the most."""
    lengths = np.random.default_rng(7).zipf(1.7, 3000).clip(1, 4000)
    lengths = lengths if order == "mixed" else np.sort(lengths)[:: -1 if order == "falling" else 1]
    found, simulated = dynamic_excess(with_rows(lengths.tolist()), chunk, threads), in_turn(lengths.tolist(), chunk, threads)
    assert simulated <= found * (1 + 1e-9)
    assert order != "falling" or found == pytest.approx(simulated, rel=0.01)

ARROW, THIN, DENSE = [4_000] * 500 + [40] * 30_000, [40_000] * 12 + [4] * 60_000, [0] * 300 + [60_000] + [3] * 300

LONG_ROWS = [(ARROW, "dynamic"), (THIN, "pos("), (THIN[::-1], "pos("), (DENSE, "pos("), ([20] * 3_000, "no_races, static")]


@pytest.mark.parametrize(("lengths", "chosen"), LONG_ROWS, ids=["arrow", "thin arrow", "at the end", "a dense row", "even"])
def test_long_rows_are_taken_in_turn_or_cut(lengths: list[int], chosen: str) -> None:
    """Many long rows at the begin are done beside all others; a few in one chunk or at the end leave a thread without work."""
    assert chosen in str(model_choice(spmm(with_rows(lengths), threads=2)))


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_equal_stretches_are_taken_piece_by_piece(threads: int) -> None:
    """The bound of list scheduling holds, and it is as much as the longest piece; the mean is never beaten."""
    lengths = np.random.default_rng(7).zipf(1.7, 3000).clip(1, 4000)
    matrix, size = with_rows(lengths.tolist()), -(-3000 // (8 * threads))
    works = [sum(length + ITERATION for length in lengths[begin : begin + size]) for begin in range(0, 3000, size)]
    mean = sum(works) / threads
    found = static_excess(matrix, threads) * mean
    assert max(mean, max(works)) <= found * (1 + 1e-9)
    assert found <= mean + max(works)
    assert found <= static_excess(matrix, threads, apart=True) * mean


@pytest.mark.parametrize("threads", [1, 2])
def test_short_rows_are_summed_one_by_one_where_their_ends_are_foreseen(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsetune.tuner.parameters.machine_constants", Constants)
    lengths = np.random.default_rng(1).integers(1, 9, 60_000)
    assert "unroll(j, 2)" in spmv(with_rows(lengths[:8000].tolist()), threads)  # branch prediction remembers all of them
    assert "unroll" not in spmv(with_rows(lengths.tolist()), threads)
    assert "unroll" not in spmv(with_rows([5] * 100), threads)
    assert "unroll" not in spmv(generate("random:uniform:2000x2000:nnz=2e5", "csr"), threads)  # long ones are made in vectors
    repeated = np.repeat(np.random.default_rng(1).integers(1, 9, 10_000), 4)
    assert "unroll(j, 2)" in spmv(with_rows(repeated.tolist()), threads)
    assert all("unroll(j, 2)" in spmv(with_rows([length] * 20_000), threads) for length in (2, 4))
    assert "unroll(j, 2)" in spmv(with_rows((lengths[:8000] // 3).tolist()), threads)
    if threads == 1:
        assert "unroll" not in spmv(with_rows([1] * 20_000), threads)  # batches do the same there


@pytest.mark.parametrize(("remembered", "threads", "alone"), [(10_000.0, 1, False), (10_000.0, 2, True), (20_000.0, 1, True)])
def test_each_thread_remembers_ends_of_its_rows(remembered: float, threads: int, alone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsetune.tuner.parameters.machine_constants", lambda: Constants(surprises=remembered))
    lengths = np.random.default_rng(1).integers(1, 5, 20_000)  # three of four are not foreseen
    assert ("unroll(j, 2)" in spmv(with_rows(lengths.tolist()), threads)) == alone


def test_ends_do_not_matter_where_entries_come_from_afar(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = with_rows([4] * 20_000)
    assert "unroll(j, 2)" in spmv(rows)
    machine = replace(this_machine(), caches=(CacheLevel(2, rows.nbytes, 64, 1),))
    monkeypatch.setattr("sparsetune.tuner.parameters.this_machine", lambda: machine)
    assert "unroll" not in spmv(rows)


@pytest.mark.parametrize(("form", "alone"), [(None, True), ("dense, compressed", False)])
def test_fibres_of_small_slices_are_summed_one_by_one_unless_they_are_joined(
    form: str | None, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One loop goes through the fibres of all slices where their sums are stored one after another; batches end with slices elsewhere."""
    monkeypatch.setattr("sparsetune.tuner.parameters.machine_constants", Constants)
    lengths = np.random.default_rng(1).integers(1, 4, 60_000)
    slices, fibres = (of.repeat(lengths) for of in np.divmod(np.arange(60_000), 3))
    entries = np.concatenate([np.arange(length) for length in lengths])
    given = tensor((np.stack([slices, fibres, entries]), np.ones(len(entries))), "dense, compressed, compressed", (20_000, 3, 3))
    chosen = model_choice(make_problem("A(i,j) = T(i,j,k) * c(k)", {"T": given, "c": np.ones(3)}, form, threads=1))
    assert ("unroll(k, 2)" in str(chosen)) == alone


def test_shares_follow_the_rows() -> None:
    even = str(model_choice(spmm(generate("random:banded:40000:bandwidth=5", "csr"), threads=2)))
    assert "parallelize(i, cpu_thread, no_races, static)" in even
    lengths = np.where(np.arange(30_000) < 1500, 240, 3)
    skewed = str(model_choice(spmm(with_rows(lengths.tolist()), threads=2)))
    assert "dynamic" in skewed
    assert "cpu_thread" not in str(model_choice(spmm(with_rows([3] * 60), threads=2)))


def test_the_largest_share_of_threads_is_counted() -> None:
    lengths = np.where(np.arange(1000) < 500, 28, 8)
    problem = spmm(with_rows(lengths.tolist()), threads=2)
    shares = {
        "no_races, static": 1.055, "temporary, static": 1.5, "no_races, dynamic, 500": 1.5, "no_races, dynamic, 10": 1.0,
    }  # fmt: skip
    for sharing, expected in shares.items():
        assert largest_share(problem, Schedule(f"parallelize(i, cpu_thread, {sharing})")) == pytest.approx(expected)
    assert largest_share(problem, Schedule()) is None
    assert largest_share(problem, Schedule("parallelize(k, cpu_thread, no_races)")) is None
    tiles = Schedule("split(i, i0, i1, 500); parallelize(i0, cpu_thread, no_races, dynamic, 1)")
    assert largest_share(problem, tiles) == pytest.approx(1.5)


@pytest.mark.parametrize("text", ["", "[]", '{"operation": 0}', '{"operation": "x"}', '{"speed": 1}', '{"start": 9}'])
def test_constants_without_sense_are_not_used(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "constants.json"
    place.write_text(text)
    monkeypatch.setattr(module, "constants_file", lambda: place)
    assert machine_constants.__wrapped__() == Constants()
    place.write_text('{"start": 1e-5}')
    assert machine_constants.__wrapped__() == Constants(start=1e-5)


@pytest.mark.parametrize(("seconds", "most"), [((2.0, 1.5, 1.6, 4.0, 1.5), 6e3), ((1.5,) * 5, 16e3), ((1.0, 5.0, 5.0, 5.0, 5.0), 1.5e3)])
def test_ends_are_remembered_up_to_the_first_operand_that_takes_longer(seconds: tuple[float, ...], most: float) -> None:
    assert calibration.remembered_surprises(dict(zip((1e3, 2.25e3, 4e3, 9e3, 16e3), seconds, strict=True))) == most


def test_threads_begin_in_what_is_measured_unless_that_is_no_time_for_them() -> None:
    """Sums of a few thousand entries are shared by threads that begin in 0.6 microseconds: they took 0.7 of the time, and were not shared
    where that counted as a whole one."""
    assert calibration.start_of_threads(1.0e-6, 1.1e-6, 2) == pytest.approx(0.6e-6)
    assert calibration.start_of_threads(1.0e-6, 0.5e-6, 2) == pytest.approx(0.5e-6)


class Crowded(Alone):
    """A witness of a machine on which other programs keep a core busy."""

    def worked(self) -> float:
        return 0.0

    def since(self, before: Look) -> Company:
        return Company(0.1, others=0.1)


@pytest.mark.skipif(not available_compilers(), reason="needs a C compiler")
def test_constants_are_measured_and_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "limits" / "constants.json"
    monkeypatch.setattr(module, "constants_file", lambda: place)
    monkeypatch.setattr(calibration, "_TURNS", 1)
    monkeypatch.setattr(calibration, "_RANDOM_ROWS", (2**10, 2**11))
    monkeypatch.setattr(calibration, "_FAR_ROWS", 2**10)
    monkeypatch.setattr(calibration, "_FARTHEST_ROWS", 2**11)
    found, disturbed = calibration.calibrate(2, Alone())
    assert found.is_sane
    assert not disturbed
    assert Constants(**json.loads(place.read_text())) == found == machine_constants()
    place.unlink()
    assert calibration.calibrate(2, Crowded())[1]
    assert not place.exists()
    machine_constants.cache_clear()

HALVED = "-mprefer-vector-width=256"


@pytest.fixture
def vectors(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes this machine one with vectors of so many bytes."""

    def have(widest: int) -> None:
        machine = replace(this_machine(), vector_bytes=widest)
        monkeypatch.setattr("sparsetune.tuner.widths.this_machine", lambda: machine)
        monkeypatch.setattr("sparsetune.compiler.native.toolchain.this_machine", lambda: machine)

    return have


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("dtype", "columns", "expected"),
    [(np.float64, 8, False), (np.float64, 9, True), (np.float64, 15, True), (np.float64, 16, False), (np.float64, 20, False),
     (np.float32, 12, False), (np.float32, 20, True), (np.float32, 32, False)],
)  # fmt: skip
def test_vectors_are_half_as_wide_where_the_widest_fit_badly(
    vectors: Callable[[int], None], dtype: type, columns: int, expected: bool, threads: int
) -> None:
    vectors(64)
    matrix = scipy.sparse.random_array((3000, 2000), density=0.005, rng=RNG, format="csr", dtype=dtype)
    found = model_choice(make_problem("Y(i,k) = A(i,j) * X(j,k)", {"A": matrix, "X": np.ones((2000, columns), dtype)}, threads=threads))
    assert (HALVED in str(found)) == expected


def test_vectors_are_as_wide_as_usual_where_that_is_faster_or_nothing_is_known(
    vectors: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = scipy.sparse.random_array((3000, 2000), density=0.005, rng=RNG, format="csr")
    operands = {"A": matrix, "X": np.ones((2000, 12))}
    vectors(32)
    assert HALVED not in str(model_choice(make_problem("Y(i,k) = A(i,j) * X(j,k)", operands, threads=2)))
    vectors(64)
    summed = {"A": matrix, "U": np.ones((3000, 12)), "V": np.ones((2000, 12))}
    assert HALVED not in str(model_choice(make_problem("S(i,j) = A(i,j) * U(i,k) * V(j,k)", summed, "csr", threads=2)))
    entries = np.argwhere(RNG.random((20, 30, 40)) < 0.05).T
    rows = {"B": tensor((entries, np.ones(entries.shape[1])), "csf", (20, 30, 40)), "C": np.ones((30, 12)), "D": np.ones((40, 12))}
    assert HALVED in str(model_choice(make_problem("Y(i,r) = B(i,j,k) * C(j,r) * D(k,r)", rows, threads=1)))
    assert HALVED not in str(model_choice(make_problem("Y(i,l,m) = B(i,j,k) * C(j,l) * D(k,m)", rows, threads=1)))
    across = {"A": matrix, "X": tensor(np.ones((2000, 12)), "dense, dense; 1, 0")}
    assert HALVED in str(model_choice(make_problem("Y(i,k) = A(i,j) * X(j,k)", operands, threads=2)))
    assert HALVED not in str(model_choice(make_problem("Y(i,k) = A(i,j) * X(j,k)", across, "dense, dense; 1, 0", threads=2)))
    monkeypatch.setattr("sparsetune.tuner.parameters.machine_constants", lambda: Constants(halved=1.0))
    assert HALVED not in str(model_choice(make_problem("Y(i,k) = A(i,j) * X(j,k)", operands, threads=2)))
