"""What of a pattern is gathered from afar, and which prefetches the static choice asks for."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from sparsetune.compiler.native.machine import CacheLevel, this_machine
from sparsetune.compiler.storage.construct import tensor
from sparsetune.compiler.storage.tensor import Tensor
from sparsetune.datasets.generate import generate
from sparsetune.tuner.constants import Constants
from sparsetune.tuner.gathers import chosen_by, room, scattered_share, waits_beside
from sparsetune.tuner.model import model_choice
from sparsetune.tuner.prefetches import Gathered, own_share, time_of_prefetches
from sparsetune.tuner.resolve import make_problem
from static_choices import spmm, spmv

pytestmark = pytest.mark.usefixtures("usual_constants")

RNG = np.random.default_rng(5)


def test_what_is_gathered_at_random_is_scattered_and_what_runs_along_is_not() -> None:
    scattered = scipy.sparse.random_array((4000, 50_000), density=1e-3, rng=RNG, format="csr")
    assert scattered_share(tensor(scattered), 1, 512) > 0.8
    assert scattered_share(tensor(scattered), 1, 60_000) == 0.0
    assert scattered_share(generate("random:banded:40000:bandwidth=5", "csr"), 1, 512) < 0.02
    few = scipy.sparse.random_array((4000, 50_000), density=1e-3, rng=RNG, format="csr")
    few.indices[:] = few.indices % 300 * 100
    few.sum_duplicates()
    assert scattered_share(tensor(few), 1, 4096) < 0.02  # what is used again and again stays in the cache


def missed(coordinates: np.ndarray, rows: float, beside: float = 0.0) -> float:
    """Which share of the rows that are asked for in turn, again and again, is waited for: not in a cache that has room for so many, besides
    what passes with each, and loses the one not used for longest, and not the third or a later one of a stream of misses."""
    cache, turns, turn, count = OrderedDict[int, int](), dict[int, int](), 0, 0
    for place, row in enumerate(2 * coordinates.tolist()):
        if row in cache:
            cache.move_to_end(row)
        else:
            turn += 1
            turns[row] = turn
            before, first = turns.get(row - 1, -9), turns.get(row - 2, -9)
            count += place >= len(coordinates) and not (0 < turn - before <= 4 and 0 < before - first <= 4)
        cache[row] = place
        while cache and len(cache) + beside * (place - next(iter(cache.values()))) > rows:
            del turns[cache.popitem(last=False)[0]]
    return count / len(coordinates)


GATHERED = [
    "random:uniform:20000x20000:nnz=1e5", "random:uniform:300x60000:nnz=6e4", "random:banded:8000:bandwidth=6", "random:stencil5:120x120",
    "random:zipf:20000x20000:nnz=1e5", "random:rmat:scale=14:nnz=1e5", "random:skewed:20000x20000:nnz=1e5",
]  # fmt: skip


@pytest.mark.parametrize("beside", [0.0, 0.5])
@pytest.mark.parametrize("rows", [300, 2000, 12_000])
@pytest.mark.parametrize("name", GATHERED)
def test_what_is_scattered_is_what_a_cache_loses(name: str, rows: int, beside: float) -> None:
    matrix = generate(name, "csr")
    coordinates = matrix.levels[1].crd
    assert coordinates is not None
    assert scattered_share(matrix, 1, rows, 1.0, beside) == pytest.approx(missed(coordinates, rows, beside), abs=0.06)


def mesh(size: int = 120) -> Tensor:
    """A grid of two dimensions whose points are numbered cell by cell, in any order within a cell of eight."""
    rows = np.arange(size * size).reshape(size, size)
    number = RNG.permuted(rows.reshape(-1, 8), axis=1).reshape(size, size)
    pairs = [(number[1:], number[:-1]), (number[:, 1:], number[:, :-1])]
    one = np.concatenate([np.stack([first.ravel(), second.ravel()]) for first, second in pairs], axis=1)
    found = np.concatenate([one, one[::-1]], axis=1)
    return tensor((found, np.ones(found.shape[1])), "csr", (size * size, size * size))


def test_rows_are_streamed_in_order_alone() -> None:
    """Grids ask for one row after another; those of meshes are near others that were asked for, but hardware does not know the next."""
    plane, numbered = generate("random:stencil5:120x120", "csr"), mesh()
    assert scattered_share(plane, 1, 1000) < 0.01
    assert scattered_share(numbered, 1, 1000) > 0.15
    assert scattered_share(generate("random:stencil7:24", "csr"), 1, 200) < 0.05, "three streams at a time"


def test_short_rows_that_share_a_line_come_together() -> None:
    numbered = mesh()
    assert scattered_share(numbered, 1, 8 * 1000, 1 / 8) < 0.05
    assert scattered_share(numbered, 1, 1000, 8.0) == scattered_share(numbered, 1, 1000) > 0.15


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_of_meshes_are_asked_for_and_those_of_bands_are_not(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call reads each row from memory once, where the last level of cache has no room for all operands and the result together."""
    machine = replace(this_machine(), caches=(CacheLevel(1, 2**15, 64, 1), CacheLevel(2, 2**18, 64, 1), CacheLevel(3, 2**23, 64, 2)))
    for module in ("ahead", "gathers"):
        monkeypatch.setattr(f"sparsetune.tuner.{module}.this_machine", lambda: machine)
    grid = generate("random:stencil5:120x120", "csr")
    for columns, asked in ((4, False), (24, True)):  # of 0.5 and 2.8 megabytes, half a level
        assert ("prefetch(j, X" in str(model_choice(spmm(mesh(), columns, threads)))) == asked
        assert "prefetch(j, X" not in str(model_choice(spmm(grid, columns, threads)))


def test_rows_are_prefetched_where_no_cache_holds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that the last level holds are near enough on this machine, which has two."""
    constants = Constants(prefetch_hit=0.9, prefetch_miss=1.0, prefetch_far=1.3)
    monkeypatch.setattr("sparsetune.tuner.ahead.machine_constants", lambda: constants)
    matrix = generate("random:uniform:20000x20000:nnz=1e5", "csr")
    for last, expected in ((2**22, True), (2**25, False)):  # half of which has room for the 11 million bytes of operands and result, or not
        machine = replace(this_machine(), caches=(CacheLevel(2, 2**18, 64, 1), CacheLevel(3, last, 64, 2)))
        for module in ("ahead", "gathers"):
            monkeypatch.setattr(f"sparsetune.tuner.{module}.this_machine", lambda machine=machine: machine)
        for threads in (1, 2):
            assert ("prefetch(j, X" in str(model_choice(spmm(matrix, threads=threads)))) == expected


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_that_are_summed_up_are_prefetched_from_nearer_by(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An inner product of two rows takes longer than what an addition of one to another takes, so that fewer are on their way."""
    constants = Constants(prefetch_miss=1.0, summed_miss=1.3)
    monkeypatch.setattr("sparsetune.tuner.ahead.machine_constants", lambda: constants)
    machine = replace(this_machine(), caches=(CacheLevel(2, 2**18, 64, 1), CacheLevel(3, 2**25, 64, 2)))
    for module in ("ahead", "gathers"):
        monkeypatch.setattr(f"sparsetune.tuner.{module}.this_machine", lambda: machine)
    matrix, rows = generate("random:uniform:20000x20000:nnz=1e5", "csr"), np.ones((20_000, 20))
    products = make_problem("C(i,j) = A(i,j) * U(i,k) * V(j,k)", {"A": matrix, "U": rows, "V": rows}, "csr", threads=threads)
    assert "prefetch(j, V" in str(model_choice(products))
    assert threads > 1 or "precompute" not in str(model_choice(products)), "loops that are as good are left as they are"
    assert "prefetch" not in str(model_choice(spmm(matrix, 20, threads)))


@pytest.mark.parametrize(
    ("share", "columns", "ahead"),
    [(1.0, 8, 32), (1.0, 20, 32), (1.0, 24, 16), (1.0, 64, 8), (0.2, 8, 32), (0.2, 32, 32), (0.2, 64, 32), (0.2, 128, 16)],
)  # fmt: skip
def test_short_rows_and_few_of_many_are_asked_for_farther_ahead(
    share: float, columns: int, ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many that come from outside the first level of cache are best under way, and all have room there until they are used."""
    monkeypatch.setattr("sparsetune.tuner.ahead.level_bytes", {1: 2**15, 2: 2**20}.__getitem__)
    monkeypatch.setattr("sparsetune.tuner.ahead.machine_constants", lambda: Constants(prefetch_far=1.3))
    monkeypatch.setattr("sparsetune.tuner.gathers.scattered_share", lambda *_: share)
    matrix = generate("random:uniform:2000x2000:nnz=1e4", "csr")
    assert f"prefetch(j, X, {ahead})" in str(model_choice(spmm(matrix, columns)))


def mttkrp(extents: tuple[int, int, int], columns: int, nnz: int, threads: int = 1) -> str:
    """Return what is chosen for an MTTKRP with a tensor of few entries a fibre, with a second level of cache of 256 KiB."""
    i, j, k = extents
    tensor = generate(f"random:uniform:{i}x{j}x{k}:nnz={nnz}", "csf")
    operands = {"T": tensor, "B": np.ones((j, columns)), "C": np.ones((k, columns))}
    return str(model_choice(make_problem("A(i,r) = T(i,j,k) * B(j,r) * C(k,r)", operands, threads=threads)))


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_that_fibres_choose_are_asked_for_ahead(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they come from outside the second level of cache, and have more than one line. Then the rows of entries are too: before, loops
    would still have waited for those of fibres."""
    machine = replace(this_machine(), caches=(CacheLevel(1, 2**15, 64, 1), CacheLevel(2, 2**18, 64, 1), CacheLevel(3, 2**25, 64, 2)))
    for module in ("ahead", "gathers"):
        monkeypatch.setattr(f"sparsetune.tuner.{module}.this_machine", lambda: machine)
    monkeypatch.setattr("sparsetune.tuner.ahead.machine_constants", Constants)
    far = mttkrp((300, 8000, 8000), 32, 60_000, threads)
    assert "prefetch(j, B, 8)" in far
    assert "prefetch(k, C, 8)" in far, "alone 16 rows of 256 bytes would be asked for"
    assert "prefetch(j, B, 4)" in mttkrp((300, 8000, 8000), 128, 60_000, threads), "rows of 1 KiB: not so many are under way"
    assert "prefetch(j" not in mttkrp((300, 250, 8000), 32, 60_000, threads), "most of what lies in the second level is near enough"
    assert "prefetch(j" not in mttkrp((300, 40_000, 8000), 8, 60_000, threads), "asking for a row of one line takes as long as loading it"


def test_rows_of_several_operands_share_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Either operand of 160 KiB lies in the second level when it is alone, and beside one of one row; both do not."""
    machine = replace(this_machine(), caches=(CacheLevel(1, 2**15, 64, 1), CacheLevel(2, 2**18, 64, 1), CacheLevel(3, 2**25, 64, 2)))
    for module in ("ahead", "gathers"):
        monkeypatch.setattr(f"sparsetune.tuner.{module}.this_machine", lambda: machine)
    tensor = generate("random:uniform:4000x640x640:nnz=1e5", "csf")
    rooms: dict[tuple[int, int], list[float]] = {}
    for b, c in ((32, 32), (32, 1), (1, 32)):
        operands = {"T": tensor, "B": np.ones((640, b)), "C": np.ones((640, c))}
        problem = make_problem("A(i,r,s) = T(i,j,k) * B(j,r) * C(k,s)", operands, threads=1)
        matrices = [(name, problem.operand(name), index) for name, index in (("B", "j"), ("C", "k"))]
        places = [(name, matrix, *next(chosen_by(problem, (index,)))) for name, matrix, index in matrices]
        rooms[b, c] = [room(problem, matrix, name, 2**18, *where) for name, matrix, *where in places if matrix is not None]
    assert max(rooms[32, 32]) < 0.6 * 2**18
    assert rooms[32, 1][0] == rooms[1, 32][1] == 2**18 - 640 * 8


def test_rows_of_fibres_are_asked_for_where_all_rows_together_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of entries alone are not: the loop waits for those of fibres anyway."""
    machine = replace(this_machine(), caches=(CacheLevel(1, 2**15, 64, 1), CacheLevel(2, 2**18, 64, 1), CacheLevel(3, 2**25, 64, 2)))
    for module in ("ahead", "gathers"):
        monkeypatch.setattr(f"sparsetune.tuner.{module}.this_machine", lambda: machine)
    monkeypatch.setattr("sparsetune.tuner.ahead.machine_constants", lambda: Constants(prefetch_miss=1.3))
    assert "prefetch(j, B" in mttkrp((2000, 640, 640), 32, 60_000)
    assert "prefetch(j, B" not in mttkrp((2000, 640, 64), 32, 60_000)
    monkeypatch.setattr("sparsetune.tuner.gathers.scattered_share", lambda tensor, level, rows, *_: float(rows < 2600))
    assert "prefetch" not in mttkrp((2000, 2600, 2600), 8, 60_000), "rows of one line, 160 KiB an operand"


def test_loops_do_not_wait_for_rows_that_are_asked_for() -> None:
    tensor = generate("random:uniform:300x8000x8000:nnz=1e5", "csf")
    operands = {"T": tensor, "B": np.ones((8000, 32)), "C": np.ones((8000, 32))}
    problem = make_problem("A(i,r) = T(i,j,k) * B(j,r) * C(k,r)", operands, threads=1)
    assert waits_beside(problem, "C", 2**18, tensor, 2) > 0.8
    assert waits_beside(problem, "C", 2**18, tensor, 2, ["B"]) == 0
    assert waits_beside(problem, "C", 2**18, tensor, 2, ["A"]) > 0.8


@pytest.mark.parametrize(("gain", "asked"), [(1.03, False), (1.15, True)])
def test_rows_of_operands_that_one_coordinate_chooses_are_all_prefetched_or_none(
    gain: float, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SDDMM with SpMM prefetched the rows that are multiplied and waited for those that are added: that took longer than no prefetches."""
    constants = Constants(prefetch_miss=1.0, prefetch_hit=1.0, prefetch_far=1.0, summed_miss=gain, summed_hit=gain, summed_far=gain)
    monkeypatch.setattr("sparsetune.tuner.ahead.machine_constants", lambda: constants)
    monkeypatch.setattr("sparsetune.tuner.gathers.scattered_share", lambda *_: 1.0)
    matrix, rows = generate("random:uniform:2000x2000:nnz=1e4", "csr"), np.ones((2000, 32))
    operands = {"T": matrix, "C": rows, "D": rows, "E": rows}
    chosen = str(model_choice(make_problem("A(i,l) = T(i,j) * C(i,k) * D(j,k) * E(j,l)", operands, threads=1)))
    assert ("prefetch(j, D, 8)" in chosen, "prefetch(j, E, 8)" in chosen) == (asked, asked), "with both, half as far ahead"


def test_sums_over_rows_wait_for_them_where_these_take_more_than_half_of_the_second_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum takes as long as one over rows from outside; rows that are added to others come in time from all of the level."""
    constants = Constants(summed_hit=1.0, summed_miss=1.3, prefetch_hit=1.0, prefetch_miss=1.3)
    monkeypatch.setattr("sparsetune.tuner.ahead.machine_constants", lambda: constants)
    machine = replace(this_machine(), caches=(CacheLevel(1, 2**15, 64, 1), CacheLevel(2, 2**20, 64, 1), CacheLevel(3, 2**25, 64, 2)))
    for module in ("ahead", "gathers"):
        monkeypatch.setattr(f"sparsetune.tuner.{module}.this_machine", lambda: machine)

    def is_asked_for(size: int) -> tuple[bool, bool]:
        matrix, rows = generate(f"random:uniform:{size}x{size}:nnz={10 * size}", "csr"), np.ones((size, 16))
        summed = make_problem("C(i,j) = A(i,j) * U(i,k) * V(j,k)", {"A": matrix, "U": rows, "V": rows}, "csr", threads=1)
        return "prefetch(j, V" in str(model_choice(summed)), "prefetch(j, X" in str(model_choice(spmm(matrix, 16)))

    assert is_asked_for(1000) == (False, False)
    assert is_asked_for(3600) == (True, False)


def test_rows_that_are_mostly_near_are_not_counted_among_those_a_loop_waits_for() -> None:
    far, near = Gathered(0.8, 256.0, 200.0, 0.9), Gathered(0.1, 128.0, 13.0, 1.2)
    assert far.together([near]) == far
    assert near.together([far]) == near
    assert far.together([Gathered(0.5, 128.0, 64.0, 1.0)]) == Gathered(0.8, 384.0, 264.0, pytest.approx(0.95**0.5))


def test_rows_that_come_in_order_are_not_prefetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product of dense matrices beside one with a sparse matrix goes through all rows; a prefetch was thought to make it faster."""
    monkeypatch.setattr("sparsetune.tuner.ahead.machine_constants", lambda: Constants(summed_near=1.1))
    matrix, rows = generate("random:uniform:2000x2000:nnz=3e4", "csr"), np.ones((2000, 32))
    operands = {"T": matrix, "C": rows, "D": rows, "E": np.ones((32, 32))}
    chosen = str(model_choice(make_problem("A(i,l) = T(i,k) * C(k,j) * D(k,j) * E(j,l)", operands, threads=1)))
    assert chosen.startswith("precompute(C(k,j) * D(k,j) * E(j,l), [k, l], [k, l], w)"), chosen
    assert "prefetch([0]" not in chosen


@pytest.mark.parametrize("threads", [1, 2])
def test_single_elements_are_no_rows_to_prefetch(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for each by itself takes the place of vectors that gather several: one column is multiplied as a vector is."""
    monkeypatch.setattr("sparsetune.tuner.ahead.machine_constants", lambda: Constants(prefetch_hit=1.0, prefetch_far=1.3))
    monkeypatch.setattr("sparsetune.tuner.gathers.scattered_share", lambda *_: 1.0)
    matrix = generate("random:uniform:2000x2000:nnz=1e4", "csr")
    assert "prefetch(j, X" in str(model_choice(spmm(matrix, 2, threads)))
    assert "prefetch(j, X" not in str(model_choice(spmm(matrix, 1, threads)))


def test_rows_are_prefetched_where_they_come_from_memory_alone() -> None:
    far = generate("random:uniform:60000x60000:nnz=3e5", "csr")
    assert "prefetch(j, X, 8)" in str(model_choice(spmm(far, 128)))
    near = generate("random:uniform:3000x3000:nnz=6e4", "csr")
    assert model_choice(spmm(near)) is None
    assert "prefetch" not in str(model_choice(spmm(near, threads=2)))


@pytest.mark.parametrize("threads", [1, 2])
def test_sums_ask_for_entries_ahead_where_these_come_from_memory_alone(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    long = generate("random:uniform:1000x1000:nnz=1e5", "csr")
    vectors = "parallelize(j, cpu_vector, parallel_reduction)"

    def last_level(size: int) -> None:
        machine = replace(this_machine(), caches=(CacheLevel(2, size, 64, 1),))
        for module in ("ahead", "gathers"):
            monkeypatch.setattr(f"sparsetune.tuner.{module}.this_machine", lambda: machine)

    last_level(long.nbytes)
    far = spmv(long, threads)
    assert "prefetch(j, A" in far or vectors not in far  # which the default asks for as well
    last_level(8 * long.nbytes)
    near = spmv(long, threads)
    assert vectors in near
    assert "prefetch" not in near
    short = generate("random:uniform:10000x10000:nnz=5e4", "csr")
    assert vectors not in spmv(short, threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_entries_that_others_choose_are_not_asked_for_in_order(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A product of a matrix with itself goes through it once by rows, and many times by the rows that its entries choose."""
    matrix = generate("random:banded:3000:bandwidth=8", "csr")
    machine = replace(this_machine(), caches=(CacheLevel(2, matrix.nbytes, 64, 1),))
    for module in ("ahead", "gathers"):
        monkeypatch.setattr(f"sparsetune.tuner.{module}.this_machine", lambda: machine)
    assert "prefetch" not in str(model_choice(make_problem("C(i,j) = A(i,k) * A(k,j)", {"A": matrix}, "csr", threads=threads)))
    text = "C(i,j) = A(i,j) * A(i,k) * A(k,j)"
    masked = str(model_choice(make_problem(text, {"A": matrix}, "csr", threads=threads)))
    assert "prefetch([1], j, A" in masked  # the mask is read once
    assert "prefetch([0]" not in masked


def test_rows_of_the_second_level_are_asked_for_where_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """None come from afar, and asking for those of the first level is for nothing."""
    monkeypatch.setattr("sparsetune.tuner.ahead.machine_constants", lambda: Constants(prefetch_hit=1.5))
    assert "prefetch(j, X, 16)" in str(model_choice(spmm(generate("random:uniform:2000x2000:nnz=4e4", "csr"))))
    assert "prefetch" not in str(model_choice(spmm(generate("random:banded:2000:bandwidth=5", "csr"))))


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_that_are_added_are_not_asked_for_in_caches_and_rows_that_are_summed_are(threads: int) -> None:
    """With the usual constants: rows of the last level of cache too, a few or all of them, short or long ones."""
    for name in ("random:uniform:2000x2000:nnz=4e4", "random:rmat:scale=14:nnz=1e5"):
        matrix = generate(name, "csr")
        assert all("prefetch" not in str(model_choice(spmm(matrix, columns, threads))) for columns in (7, 32))
        rows = np.ones((matrix.shape[1], 16))
        operands = {"A": matrix, "U": rows, "V": rows}
        summed = make_problem("C(i,j) = A(i,j) * U(i,k) * V(j,k)", operands, "csr", threads=threads)
        assert "prefetch(j, V" in str(model_choice(summed))


@pytest.mark.parametrize(("columns", "asked"), [(16, True), (32, False), (64, False)])
def test_of_the_second_level_only_short_rows_that_are_summed_are_asked_for(columns: int, asked: bool) -> None:
    """The loads of a long row overlap each other, so that a sum does not wait for them."""
    matrix, rows = generate("random:uniform:600x600:nnz=1e4", "csr"), np.ones((600, columns))
    problem = make_problem("C(i,j) = A(i,j) * U(i,k) * V(j,k)", {"A": matrix, "U": rows, "V": rows}, "csr", threads=1)
    assert ("prefetch(j, V" in str(model_choice(problem))) == asked


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
    monkeypatch.setattr("sparsetune.tuner.ahead.machine_constants", Constants)
    monkeypatch.setattr("sparsetune.tuner.gathers.scattered_share", lambda *_: share)
    matrix = generate("random:uniform:2000x2000:nnz=1e4", "csr")
    assert ("prefetch(j, X" in str(model_choice(spmm(matrix, 48, threads)))) == asked


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("share", "asked"), [(0.02, False), (0.6, True)])
def test_rows_are_asked_for_where_much_other_work_waits_for_them(
    share: float, asked: bool, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short fibres of a tensor are summed, and their sums multiplied further, before the next rows come."""
    monkeypatch.setattr("sparsetune.tuner.ahead.machine_constants", lambda: Constants(prefetch_miss=1.0, prefetch_far=1.0))
    monkeypatch.setattr("sparsetune.tuner.gathers.scattered_share", lambda _, level, rows, lines, beside: share if rows < 5e4 else 0.0)
    fibres = np.arange(4000)
    short = tensor((np.stack([fibres // 4, fibres % 4, RNG.integers(0, 3000, 4000)]), np.ones(4000)), "csf", (1000, 4, 3000))
    ones = {"B": np.ones((4, 16)), "C": np.ones((3000, 16))}
    products = make_problem("A(i,r,s) = T(i,j,k) * B(j,r) * C(k,s)", {"T": short, **ones}, threads=threads)
    assert (", C, " in str(model_choice(products))) == asked
    assert "prefetch" not in str(model_choice(spmm(generate("random:uniform:2000x2000:nnz=1e4", "csr"), 16, threads)))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("entries", "asked"), [(1, False), (8, True)])
def test_rows_are_not_asked_for_where_a_row_of_a_loop_around_is_waited_for_each_time(
    entries: int, asked: bool, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fibres of one entry choose a row of both factors, of which only one would be prefetched: that took 1.06 to 1.15 times as long."""
    machine = replace(this_machine(), caches=(CacheLevel(1, 2**15, 64, 1), CacheLevel(2, 2**22, 64, 1), CacheLevel(3, 2**25, 64, 2)))
    for module in ("ahead", "gathers"):
        monkeypatch.setattr(f"sparsetune.tuner.{module}.this_machine", lambda: machine)
    fibres = np.concatenate([RNG.choice(3000, 400, replace=False) for _ in range(20)])
    places = np.repeat(np.stack([np.arange(8000) // 400, fibres]), entries, axis=1)
    stored = tensor((np.vstack([places, RNG.integers(0, 1000, 8000 * entries)]), np.ones(8000 * entries)), "csf", (20, 3000, 1000))
    factors = {"U": np.ones((20, 16)), "V": np.ones((3000, 16)), "W": np.ones((1000, 16))}
    products = make_problem("S(i,j,k) = T(i,j,k) * U(i,r) * V(j,r) * W(k,r)", {"T": stored, **factors}, "csf", threads=threads)
    assert ("prefetch(k, W" in str(model_choice(products))) == asked


def test_prefetches_gain_nothing_for_rows_that_another_is_waited_for_with() -> None:
    """They take their own time as before, and those of rows that are waited for alone gain as much as before."""
    gains = (0.9, 1.2, 1.3, 1.3)
    alone, half, all_of = (time_of_prefetches(1.0, 0.0, 0.0, gains, 1.0, (beside, 0.0)) for beside in (0.0, 0.5, 1.0))
    assert (alone, half, all_of) == pytest.approx((1 / 1.2, 0.5 / 1.2 + 0.5, 1.0))
    assert time_of_prefetches(0.0, 0.0, 0.0, gains, 1.0, (1.0, 1.0)) == pytest.approx(1 / 0.9)


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
    for module in ("ahead", "gathers"):
        monkeypatch.setattr(f"sparsetune.tuner.{module}.this_machine", lambda: machine)
    assert "prefetch(j, A, 1024)" in spmv(generate("random:uniform:40000x40000:nnz=2e5", "csr"), threads)
    assert "prefetch(j, A, 1024)" not in spmv(generate("random:banded:40000:bandwidth=3", "csr"), threads)
    assert "prefetch(j, A, 1024)" not in spmv(generate("random:uniform:4000x4000:nnz=2e5", "csr"), threads)
