"""What the static choice makes of data: shares of parallel loops, prefetches, and the constants of a machine."""

from __future__ import annotations

import heapq
import json
from collections import OrderedDict
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
from sparsetune.tuner.prefetches import Gathered, own_share, time_of_prefetches
from sparsetune.tuner.problem import Problem, make_problem
from sparsetune.tuner.shares import ITERATION, chunks, dynamic_excess, largest_chunk, static_excess

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def usual_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsetune.tuner.parameters.machine_constants", Constants)
    monkeypatch.setattr("sparsetune.tuner.costs.machine_constants", Constants)


def with_rows(lengths: list[int]):
    """A CSR matrix whose rows have these lengths."""
    columns = np.concatenate([np.arange(length) for length in lengths]) if lengths else np.empty(0)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    return tensor((np.stack([rows, columns]).astype(np.int64), np.ones(len(rows))), "csr", (len(lengths), max(lengths, default=1) or 1))


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


def test_what_is_gathered_at_random_is_scattered_and_what_runs_along_is_not() -> None:
    scattered = scipy.sparse.random_array((4000, 50_000), density=1e-3, rng=RNG, format="csr")
    assert scattered_share(tensor(scattered), 1, 512) > 0.8
    assert scattered_share(tensor(scattered), 1, 60_000) == 0.0
    assert scattered_share(generate("random:banded:40000:bandwidth=5", "csr"), 1, 512) < 0.02
    few = scipy.sparse.random_array((4000, 50_000), density=1e-3, rng=RNG, format="csr")
    few.indices[:] = few.indices % 300 * 100
    few.sum_duplicates()
    assert scattered_share(tensor(few), 1, 4096) < 0.02  # what is used again and again stays in the cache


def missed(coordinates: np.ndarray, rows: int) -> float:
    """Which share of the rows that are asked for in turn, again and again, is not in a cache that holds so many and loses the one not used
    for longest, and does not follow one that is."""
    cache, count = OrderedDict[int, None](), 0
    for place, row in enumerate(2 * coordinates.tolist()):
        if row in cache:
            cache.move_to_end(row)
            continue
        count += place >= len(coordinates) and row - 1 not in cache
        cache[row] = None
        if len(cache) > rows:
            cache.popitem(last=False)
    return count / len(coordinates)


GATHERED = [
    "random:uniform:20000x20000:nnz=1e5", "random:uniform:300x60000:nnz=6e4", "random:banded:8000:bandwidth=6", "random:stencil5:120x120",
    "random:zipf:20000x20000:nnz=1e5", "random:rmat:scale=14:nnz=1e5", "random:skewed:20000x20000:nnz=1e5",
]  # fmt: skip


@pytest.mark.parametrize("rows", [300, 2000, 12_000])
@pytest.mark.parametrize("name", GATHERED)
def test_what_is_scattered_is_what_a_cache_loses(name: str, rows: int) -> None:
    matrix = generate(name, "csr")
    coordinates = matrix.levels[1].crd
    assert coordinates is not None
    assert scattered_share(matrix, 1, rows) == pytest.approx(missed(coordinates, rows), abs=0.06)


def test_rows_are_prefetched_where_no_cache_holds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that the last level holds are near enough on this machine, which has two."""
    constants = Constants(prefetch_hit=0.9, prefetch_miss=1.0, prefetch_far=1.3)
    monkeypatch.setattr("sparsetune.tuner.parameters.machine_constants", lambda: constants)
    matrix = generate("random:uniform:20000x20000:nnz=1e5", "csr")
    for last, expected in ((2**22, True), (2**24, False)):  # half of which has room for the 5 million bytes of the other operand, or not
        machine = replace(this_machine(), caches=(CacheLevel(2, 2**18, 64, 1), CacheLevel(3, last, 64, 2)))
        monkeypatch.setattr("sparsetune.tuner.parameters.this_machine", lambda machine=machine: machine)
        for threads in (1, 2):
            assert ("prefetch(j, X" in str(model_choice(spmm(matrix, threads=threads)))) == expected


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_that_are_summed_up_are_prefetched_from_nearer_by(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An inner product of two rows takes longer than what an addition of one to another takes, so that fewer are on their way."""
    constants = Constants(prefetch_miss=1.0, summed_miss=1.3)
    monkeypatch.setattr("sparsetune.tuner.parameters.machine_constants", lambda: constants)
    machine = replace(this_machine(), caches=(CacheLevel(2, 2**18, 64, 1), CacheLevel(3, 2**25, 64, 2)))
    monkeypatch.setattr("sparsetune.tuner.parameters.this_machine", lambda: machine)
    matrix, rows = generate("random:uniform:20000x20000:nnz=1e5", "csr"), np.ones((20_000, 20))
    products = make_problem("C(i,j) = A(i,j) * U(i,k) * V(j,k)", {"A": matrix, "U": rows, "V": rows}, "csr", threads=threads)
    assert "prefetch(j, V" in str(model_choice(products))
    assert threads > 1 or "precompute" not in str(model_choice(products)), "loops that are as good are left as they are"
    assert "prefetch" not in str(model_choice(spmm(matrix, 20, threads)))


def spmm(matrix, columns: int = 32, threads: int = 1) -> Problem:
    return make_problem("Y(i,k) = A(i,j) * X(j,k)", {"A": matrix, "X": np.ones((matrix.shape[1], columns))}, threads=threads)


@pytest.mark.parametrize(
    ("share", "columns", "ahead"), [(1.0, 8, 16), (0.5, 8, 32), (0.2, 8, 32), (0.2, 32, 16), (0.2, 64, 8), (0.2, 128, 8)]
)  # fmt: skip
def test_far_rows_among_near_ones_are_asked_for_sooner(share: float, columns: int, ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsetune.tuner.parameters.machine_constants", lambda: Constants(prefetch_far=1.3))
    monkeypatch.setattr("sparsetune.tuner.parameters.scattered_share", lambda *_: share)
    matrix = generate("random:uniform:2000x2000:nnz=1e4", "csr")
    assert f"prefetch(j, X, {ahead})" in str(model_choice(spmm(matrix, columns)))


@pytest.mark.parametrize(("gain", "asked"), [(1.03, False), (1.15, True)])
def test_rows_of_operands_that_one_coordinate_chooses_are_all_prefetched_or_none(
    gain: float, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SDDMM with SpMM prefetched the rows that are multiplied and waited for those that are added: that took longer than no prefetches."""
    constants = Constants(prefetch_miss=1.0, prefetch_hit=1.0, prefetch_far=1.0, summed_miss=gain, summed_hit=gain, summed_far=gain)
    monkeypatch.setattr("sparsetune.tuner.parameters.machine_constants", lambda: constants)
    monkeypatch.setattr("sparsetune.tuner.parameters.scattered_share", lambda *_: 1.0)
    matrix, rows = generate("random:uniform:2000x2000:nnz=1e4", "csr"), np.ones((2000, 32))
    operands = {"T": matrix, "C": rows, "D": rows, "E": rows}
    chosen = str(model_choice(make_problem("A(i,l) = T(i,j) * C(i,k) * D(j,k) * E(j,l)", operands, threads=1)))
    assert ("prefetch(j, D, 8)" in chosen, "prefetch(j, E, 8)" in chosen) == (asked, asked), "with both, half as far ahead"


def test_rows_that_are_mostly_near_are_not_counted_among_those_a_loop_waits_for() -> None:
    far, near = Gathered(0.8, 256.0, 0.9), Gathered(0.1, 128.0, 1.2)
    assert far.together([near]) == far
    assert near.together([far]) == near
    assert far.together([Gathered(0.5, 128.0, 1.0)]) == Gathered(0.8, 384.0, pytest.approx(0.95**0.5))


def test_rows_that_come_in_order_are_not_prefetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product of dense matrices beside one with a sparse matrix goes through all rows; a prefetch was thought to make it faster."""
    monkeypatch.setattr("sparsetune.tuner.parameters.machine_constants", lambda: Constants(summed_near=1.1))
    matrix, rows = generate("random:uniform:2000x2000:nnz=3e4", "csr"), np.ones((2000, 32))
    operands = {"T": matrix, "C": rows, "D": rows, "E": np.ones((32, 32))}
    chosen = str(model_choice(make_problem("A(i,l) = T(i,k) * C(k,j) * D(k,j) * E(j,l)", operands, threads=1)))
    assert chosen.startswith("precompute(C(k,j) * D(k,j) * E(j,l), [k, l], [k, l], w)"), chosen
    assert "prefetch([0]" not in chosen


@pytest.mark.parametrize("threads", [1, 2])
def test_single_elements_are_no_rows_to_prefetch(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for each by itself takes the place of vectors that gather several: one column is multiplied as a vector is."""
    monkeypatch.setattr("sparsetune.tuner.parameters.machine_constants", lambda: Constants(prefetch_hit=1.0, prefetch_far=1.3))
    monkeypatch.setattr("sparsetune.tuner.parameters.scattered_share", lambda *_: 1.0)
    matrix = generate("random:uniform:2000x2000:nnz=1e4", "csr")
    assert "prefetch(j, X" in str(model_choice(spmm(matrix, 2, threads)))
    assert "prefetch(j, X" not in str(model_choice(spmm(matrix, 1, threads)))


def test_rows_are_prefetched_where_they_come_from_memory_alone() -> None:
    far = generate("random:uniform:60000x60000:nnz=3e5", "csr")
    assert "prefetch(j, X, 8)" in str(model_choice(spmm(far, 128)))
    near = generate("random:uniform:3000x3000:nnz=6e4", "csr")
    assert model_choice(spmm(near)) is None
    assert "prefetch" not in str(model_choice(spmm(near, threads=2)))


def spmv(matrix, threads: int = 1) -> str:
    return str(model_choice(make_problem("y(i) = A(i,j) * x(j)", {"A": matrix, "x": np.ones(matrix.shape[1])}, threads=threads)))


@pytest.mark.parametrize("threads", [1, 2])
def test_sums_ask_for_entries_ahead_where_these_come_from_memory_alone(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    long = generate("random:uniform:1000x1000:nnz=1e5", "csr")
    vectors = "parallelize(j, cpu_vector, parallel_reduction)"

    def last_level(size: int) -> None:
        machine = replace(this_machine(), caches=(CacheLevel(2, size, 64, 1),))
        monkeypatch.setattr("sparsetune.tuner.parameters.this_machine", lambda: machine)

    last_level(long.nbytes)
    far = spmv(long, threads)
    assert "prefetch(j, A" in far or vectors not in far  # which the default asks for as well
    last_level(8 * long.nbytes)
    near = spmv(long, threads)
    assert vectors in near
    assert "prefetch" not in near
    short = generate("random:uniform:10000x10000:nnz=5e4", "csr")
    assert vectors not in spmv(short, threads)


def test_rows_of_the_second_level_are_asked_for_where_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """None come from afar, and asking for those of the first level is for nothing."""
    monkeypatch.setattr("sparsetune.tuner.parameters.machine_constants", lambda: Constants(prefetch_hit=1.5))
    assert "prefetch(j, X, 16)" in str(model_choice(spmm(generate("random:uniform:2000x2000:nnz=4e4", "csr"))))
    assert "prefetch" not in str(model_choice(spmm(generate("random:banded:2000:bandwidth=5", "csr"))))


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_that_are_added_are_not_asked_for_in_caches_and_rows_that_are_summed_are(threads: int) -> None:
    """With the usual constants: rows of the last level of cache too, a few or all of them, short or long ones."""
    for name in ("random:uniform:2000x2000:nnz=4e4", "random:rmat:scale=15:nnz=2e5"):
        matrix = generate(name, "csr")
        assert all("prefetch" not in str(model_choice(spmm(matrix, columns, threads))) for columns in (7, 32))
        rows = np.ones((matrix.shape[1], 16))
        operands = {"A": matrix, "U": rows, "V": rows}
        summed = make_problem("C(i,j) = A(i,j) * U(i,k) * V(j,k)", operands, "csr", threads=threads)
        assert "prefetch(j, V" in str(model_choice(summed))


def test_of_rows_next_to_those_that_were_chosen_only_the_first_line_is_near() -> None:
    """Hardware fetches the next line ahead, not all lines of the next row."""
    plane = generate("random:stencil5:200x200", "csr")
    short, two, four = (scattered_share(plane, 1, 100, lines) for lines in (0.5, 2.0, 4.0))
    assert short == scattered_share(plane, 1, 100)
    assert short < 0.05
    assert two > 0.2
    assert four - short == pytest.approx(1.5 * (two - short))


def test_rows_that_few_long_rows_choose_are_counted() -> None:
    """They choose rows from everywhere, while all others, as of a circuit, choose what is near."""
    rng, size = np.random.default_rng(2), 20_000
    hubs = set(rng.choice(size, 20, replace=False).tolist())
    columns = [rng.choice(size, 500) if row in hubs else np.clip(row + rng.integers(-3, 4, 5), 0, size - 1) for row in range(size)]
    counts = np.cumsum([0, *map(len, columns)])
    matrix = tensor(scipy.sparse.csr_array((np.ones(counts[-1]), np.concatenate(columns), counts), shape=(size, size)))
    coordinates = matrix.levels[1].crd
    assert coordinates is not None
    assert scattered_share(matrix, 1, 300) == pytest.approx(missed(coordinates, 300), abs=0.06)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("share", "asked"), [(0.005, False), (0.03, True), (1.0, True)])
def test_a_few_misses_are_worth_prefetches_of_all_rows(share: float, asked: bool, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They arrive while rows that are near are worked on, although asking for those costs something."""
    monkeypatch.setattr("sparsetune.tuner.parameters.machine_constants", Constants)
    monkeypatch.setattr("sparsetune.tuner.parameters.scattered_share", lambda *_: share)
    matrix = generate("random:uniform:2000x2000:nnz=1e4", "csr")
    assert ("prefetch(j, X" in str(model_choice(spmm(matrix, 48, threads)))) == asked


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("share", "asked"), [(0.02, False), (0.6, True)])
def test_rows_are_asked_for_where_much_other_work_waits_for_them(
    share: float, asked: bool, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short fibres of a tensor are summed, and their sums multiplied further, before the next rows come."""
    monkeypatch.setattr("sparsetune.tuner.parameters.machine_constants", lambda: Constants(prefetch_miss=1.0, prefetch_far=1.0))
    monkeypatch.setattr("sparsetune.tuner.parameters.scattered_share", lambda _, level, rows, lines: share if rows < 5e4 else 0.0)
    fibres = np.arange(4000)
    short = tensor((np.stack([fibres // 4, fibres % 4, RNG.integers(0, 3000, 4000)]), np.ones(4000)), "csf", (1000, 4, 3000))
    ones = {"B": np.ones((4, 16)), "C": np.ones((3000, 16))}
    products = make_problem("A(i,r,s) = T(i,j,k) * B(j,r) * C(k,s)", {"T": short, **ones}, threads=threads)
    assert (", C, " in str(model_choice(products))) == asked
    assert "prefetch" not in str(model_choice(spmm(generate("random:uniform:2000x2000:nnz=1e4", "csr"), 16, threads)))


def test_what_prefetches_cost_and_gain_is_little_where_most_work_is_on_other_things() -> None:
    gains = (0.8, 1.0, 1.0, 1.2)
    assert [time_of_prefetches(0.0, 0.0, 0.0, gains, own) for own in (1.0, 0.5, 0.0)] == pytest.approx([1.25, 1.125, 1.0])
    assert time_of_prefetches(1.0, 0.5, 0.0, gains, 0.1) < 0.9 < time_of_prefetches(1.0, 0.5, 0.0, gains) == 1.0
    assert [own_share(16, operations) for operations in (0.0, 20.0, 208.0)] == pytest.approx([1.0, 1.0, 0.1])


def test_prefetches_of_rows_in_the_first_level_of_cache_are_not_as_those_in_the_second() -> None:
    """Instructions for nothing, whatever those cost that ask for rows of the second level."""
    gains = (0.8, 1.1, 1.1, 1.2)
    shares = [time_of_prefetches(near, 0.02, 0.0, gains) for near in (0.02, 0.5, 0.9)]
    assert shares[0] > 1 > shares[2]
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("threads", [1, 2])
def test_entries_are_asked_for_far_ahead_where_what_they_choose_is_far(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Into the second level of cache: the places for lines on their way to the first are left to what is gathered."""
    machine = replace(this_machine(), caches=(CacheLevel(2, 2**16, 64, 1), CacheLevel(3, 2**21, 64, 1)))
    monkeypatch.setattr("sparsetune.tuner.parameters.this_machine", lambda: machine)
    assert "prefetch(j, A, 1024)" in spmv(generate("random:uniform:40000x40000:nnz=2e5", "csr"), threads)
    assert "prefetch(j, A, 1024)" not in spmv(generate("random:banded:40000:bandwidth=3", "csr"), threads)
    assert "prefetch(j, A, 1024)" not in spmv(generate("random:uniform:4000x4000:nnz=2e5", "csr"), threads)


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
