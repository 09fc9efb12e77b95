"""What the static model counts beside iterations: operands that meet, copies, results out of order, arrays that are cleared."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler.concrete.annihilation import Patterns
from sparsetune.compiler.deadline import Deadline, Steps
from sparsetune.compiler.schedule.addresses import leaves
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.datasets.generate import generate
from sparsetune.tuner import model
from sparsetune.tuner.costs import operations
from sparsetune.tuner.model import model_choice
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.resolve import make_problem

BY_TRANSPOSE = "C(i,j) = A(i,k) * A(j,k)"
TRIANGLES = "t = A(i,j) * A(j,k) * A(i,k)"
COLUMNS = 'convert(A(j,k), "dense, compressed; 1, 0"); reorder(i, k, j)'


def square(size: int, density: float) -> sp.csr_array:
    return sp.random_array((size, size), density=density, format="csr", rng=np.random.default_rng(1))


def choice(expression: str, result: str | None, threads: int = 1, **operands: Any) -> str:
    found = model_choice(make_problem(expression, operands, result, threads=threads))
    return "" if found is None else str(found)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("result", ["csr", "dense"])
@pytest.mark.parametrize(
    "operand", [sp.eye_array(3000, format="csr"), square(1000, 0.01), square(200, 0.5)], ids=["diagonal", "1%", "half"]
)
def test_rows_are_multiplied_by_a_copy_in_columns(operand: sp.csr_array, result: str, threads: int) -> None:
    """Instead of every row with every row, which steps through all entries of both."""
    found = choice(BY_TRANSPOSE, result, threads, A=operand)
    mirrored = COLUMNS.replace("j,k", "i,k").replace("i, k, j", "j, k, i")  # as good where the result is dense
    assert found.startswith((COLUMNS, mirrored) if result == "dense" else COLUMNS)


@pytest.mark.parametrize(("density", "chosen"), [(0.01, True), (1e-5, False)])
def test_what_is_far_cheaper_is_chosen_after_the_time_too(monkeypatch: pytest.MonkeyPatch, density: float, chosen: bool) -> None:
    """On skewed rows judging took all the time, and rows were multiplied with all rows: hours in place of seconds."""
    now, in_time = [0.0], model.rank

    def judged(*given: Any) -> list[model.Ranked]:
        found = in_time(*given)
        now[0] = 2.0
        return found

    monkeypatch.setattr(model, "rank", judged)
    expression = BY_TRANSPOSE if chosen else "C(i,j) = A(i,k) * B(k,j)"
    operands = {name: square(1000, density) for name in "AB" if f"{name}(" in expression}
    found = model_choice(make_problem(expression, operands, "csr", threads=2), Deadline(1.0, lambda: now[0]))
    assert (found is not None) == chosen


def test_where_assignments_do_something_is_found_once_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once for each set of loops around them that is counted."""
    problem = make_problem("Y(i,k) = A(i,j) * X(j,k)", {"A": square(300, 0.02), "X": np.ones((300, 16))}, threads=2)
    found, asked, expression = problem.concretized(), list[object](), Patterns.expression
    monkeypatch.setattr(Patterns, "expression", lambda self, value, *rest: asked.append(value) or expression(self, value, *rest))
    assert operations(problem, found.program, found.sources) > 0
    assert asked == [leaf.value for _, leaf in leaves(found.program.statement)]


def test_a_choice_that_is_cut_short_is_the_same_on_a_slow_machine() -> None:
    """It is cut after so many steps; only where these take much longer than usual does time count, lest it go on for minutes."""
    factors = {name: np.ones((12, 4)) for name in "BCD"}
    entries = np.random.default_rng(3).integers(0, 12, (4, 400))
    operands = {"A": st.tensor((entries, np.ones(400)), "csf", (12,) * 4), **factors}

    def found(seconds_a_reading: float) -> tuple[int, str, bool]:
        times = count(0.0, seconds_a_reading)
        deadline = Deadline(0.2, Steps(5e-4, clock=lambda: next(times)))
        problem = make_problem("Y(i,r,s,t) = A(i,j,k,l) * B(j,r) * C(k,s) * D(l,t)", operands, threads=2)
        listed = model.problem_candidates(problem, deadline.part(5 / 8))
        return len(listed), str(model_choice(problem, deadline)), deadline.cut

    quick, slow, hopeless = (found(seconds) for seconds in (1e-5, 9e-4, 1e-2))
    assert quick == slow
    assert quick[2]
    assert hopeless[0] < quick[0]


def test_products_that_suit_are_not_copied() -> None:
    assert "convert" not in choice("C(i,j) = A(i,k) * B(k,j)", "csr", A=square(500, 0.02), B=square(500, 0.02))


def test_results_that_would_come_out_of_order_are_worth_copies() -> None:
    found = choice("C(i,j) = A(k,i) * B(j,k)", "csr", A=square(1000, 0.02), B=square(1000, 0.02))
    assert found.count("convert") == 2
    assert "reorder(i, k, j)" in found


def test_an_array_is_worth_clearing_where_rows_are_not_few_of_many() -> None:
    """Entries of a row of products are looked up in an array, but not where clearing it for every row takes longer than marking one."""
    assert "precompute(A(i,j) * A(j,k), [i, k], [i, k], w)" in choice(TRIANGLES, None, A=square(2000, 0.01))
    assert "precompute(A(i,k), k, k, w1); workspace(w1, list)" in choice(TRIANGLES, None, A=square(20_000, 2e-4))


def test_a_workspace_filled_inside_a_loop_does_not_drive_it() -> None:
    """One value that is set where two rows meet: all rows meet all the same, and nothing is saved."""
    problem = make_problem("C(i,j) = A(i,j) * A(i,k) * A(k,j)", {"A": square(2000, 2e-3)}, "csr")
    joined = "join(i, [0], [1]); join(k, [0], [1]); join(j, [0], [1])"
    inside = f"addends(A(i,j) * A(i,k) * A(k,j)); precompute(A(i,j) * A(i,k), [i, k, j], [i, k, j], w); {joined}"
    assert model.expected_cost(problem, Schedule(inside)) > 0.8 * model.expected_cost(problem, Schedule())


def test_entries_of_a_workspace_are_gone_through_where_they_meet_others() -> None:
    """A product that a mask cuts afterwards is gone through whole."""
    problem = make_problem("C(i,j) = A(i,j) * A(i,k) * A(k,j)", {"A": square(2000, 2e-3)}, "csr")
    product = square(2000, 2e-3) @ square(2000, 2e-3)
    whole = "addends(A(i,j) * A(i,k) * A(k,j)); precompute(A(i,k) * A(k,j), [i, j], [i, j], w); join(i, [0], [1])"
    assert model.expected_cost(problem, Schedule(whole)) > 15 * product.nnz


def test_a_sum_over_all_rows_is_shared_by_threads() -> None:
    """Each thread has a sum of its own."""
    assert "parallelize(i, cpu_thread, temporary" in choice(TRIANGLES, None, 2, A=square(20_000, 2e-4))


@pytest.mark.parametrize(("expression", "width"), [("y(i) = A(i,j) * x(j)", ()), ("y(i,k) = A(i,j) * x(j,k)", (16,))])
def test_entries_cost_what_rows_do(expression: str, width: tuple[int, ...]) -> None:
    """Rows that threads cut are added to atomically, two for each; the others are summed as if rows were shared out."""
    coordinates = np.stack([np.repeat(np.arange(2_000), 50), np.tile(np.arange(50), 2_000)])
    matrix = st.tensor((coordinates, np.ones(100_000)), "csr", (2_000, 50))
    problem = make_problem(expression, {"A": matrix, "x": np.ones((50, *width))}, threads=2)
    pieces = "collapse(i, j, f); pos(f, p, A); {}; parallelize(p0, cpu_thread, atomics)"
    rows, *entries = (
        model.expected_cost(problem, Schedule(schedule))
        for schedule in (
            "parallelize(i, cpu_thread, no_races)",
            pieces.format("split_up(p, p0, p1, 16)"),
            pieces.format("split(p, p0, p1, 50000)"),
        )
    )
    assert entries == pytest.approx([rows, rows], rel=0.02)


@pytest.mark.parametrize(
    ("source", "chosen"), [("random:uniform:30x25x35x20x40:nnz=12000", False), ("random:uniform:8x8x8x8x40:nnz=80000", True)]
)
def test_little_is_gained_from_fibres_of_one_entry(source: str, chosen: bool) -> None:
    """Multiplying once a fibre saves what entries of long ones multiply; short ones take the time of their ends all the same."""
    entries: Any = generate(source, "csf")
    factors = {name: np.ones((extent, 16)) for name, extent in zip("BCDE", entries.shape[1:], strict=True)}
    found = choice("A(i,r) = T(i,j,k,l,m) * B(j,r) * C(k,r) * D(l,r) * E(m,r)", None, T=entries, **factors)
    assert ("precompute" in found) == chosen


@pytest.mark.parametrize(("matrix", "columns"), [
    (sp.random_array((400_000, 1000), density=5e-5, format="csr", rng=np.random.default_rng(1)), 8),
    (square(20_000, 3e-4), 1),
], ids=["most rows empty", "one column"])  # fmt: skip
def test_pieces_of_rows_have_ends_and_empty_rows_are_stored_too(matrix: sp.csr_array, columns: int) -> None:
    """Threads get whole rows: loops over pieces of each row, or of all entries, end and store as many rows, and gain nothing."""
    found = choice("Y(i,k) = A(i,j) * X(j,k)", None, threads=2, A=matrix, X=np.ones((matrix.shape[1], columns)))
    assert "parallelize(i, cpu_thread, no_races" in found
    assert "pos(" not in found


def test_a_loop_has_no_more_lanes_than_iterations() -> None:
    """With one column the innermost loop is no vector: the sum of a row is."""
    found = choice("Y(i,k) = A(i,j) * X(j,k)", None, A=square(1000, 0.1), X=np.ones((1000, 1)))
    assert "reorder" in found
    assert "parallelize(j, cpu_vector, parallel_reduction)" in found


def test_lines_of_a_workspace_come_once_for_all_stored_elements_in_them() -> None:
    """A product is scattered into a workspace beyond the second level of cache: an entry costs less where eight fall into a line."""
    rows, columns = 300, 1600

    def saved(step: int) -> float:
        """Return what it costs less to scatter along rows than across them, with what it costs less to read them after that."""
        stored = np.arange(0, columns, step)
        coordinates = np.stack([np.repeat(np.arange(rows), len(stored)), np.tile(stored, rows)])
        matrix = st.tensor((coordinates, np.ones(coordinates.shape[1])), "csf", (rows, columns))
        problem = make_problem("y(l) = A(i,j) * c(l) * d(j)", {"A": matrix, "c": np.ones(4), "d": np.ones(columns)})
        schedules = [f"reorder(l,i,j); precompute(A(i,j) * c(l), [{names}], [{names}], w)" for names in ("i, j", "j, i")]
        along, across = (model.expected_cost(problem, Schedule(schedule)) for schedule in schedules)
        return across - along

    entries = 4 * rows * columns  # a line is reached once for eight of them, in place of eight times; alone in it, each time
    assert (saved(1) - saved(16)) / entries == pytest.approx(2 * 3 * 7 / 8, rel=0.05)


def _ttmc(rows: int, extent: int, threads: int) -> Problem:
    """A tensor of about four entries a row, and a result with a row of 16 times ``extent`` elements for each."""
    random = np.random.default_rng(4)
    places = np.stack([random.integers(0, size, 4 * rows) for size in (rows, 11, 300)])
    t = st.tensor((places, np.ones(4 * rows)), "dense, compressed, compressed", (rows, 11, 300))
    operands = {"T": t, "B": np.ones((11, 16)), "C": np.ones((300, extent))}
    return make_problem("A(i,r,s) = T(i,j,k) * B(j,r) * C(k,s)", operands, threads=threads)


@pytest.mark.parametrize(("rows", "is_kept"), [(300, False), (20_000, True)], ids=["near", "in memory"])
def test_rows_of_a_result_in_memory_are_kept_until_they_are_stored(rows: int, is_kept: bool) -> None:
    """A result that is added to has been filled with zeros before: its lines go to memory and come back once more."""
    once = "precompute(T(i,j,k) * C(k,s), s, s, w)"
    twice = f"{once}; precompute(w(s) * B(j,r), [r, s], [r, s], v)"
    added, stored = (model.expected_cost(_ttmc(rows, 16, 1), Schedule(text)) for text in (once, twice))
    assert (added > 1.5 * stored) == is_kept


@pytest.mark.parametrize("extent", [8, 16], ids=["in registers", "in memory"])
def test_tiles_of_entries_sum_rows_no_faster_than_threads_that_have_whole_rows(extent: int) -> None:
    """Sums of 256 elements counted as if they stayed in registers: tiles of entries took 3.4 times as long as what else there was."""
    tiles = "collapse(i, j, f); collapse(f, k, g); pos(g, p, T); split_up(p, p0, p1, 2); parallelize(p0, cpu_thread, atomics)"
    problem = _ttmc(300, extent, 2)
    rows, entries = (model.expected_cost(problem, Schedule(text)) for text in ("parallelize(i, cpu_thread, no_races)", tiles))
    assert entries > rows


_BY_ROWS = "precompute(T(i,j,k) * C(k,s), s, s, w); precompute(w(s) * B(j,r), [r, s], [r, s], v); parallelize(i, cpu_thread, no_races)"
_BY_FOREST = (
    "collapse(i, j, f); pos(f, p, T(i,j,k)); precompute(T(i,j,k) * C(k,s), [p, s], [p, s], w); reorder([1], r, p, s); "
    "workspace(w, positions); parallelize([1], r, cpu_thread, no_races); parallelize([0], p, cpu_thread, no_races)"
)


def test_an_array_that_one_thread_clears_and_several_fill_moves_between_their_caches() -> None:
    """On a tensor of 1400 fibres with about 100 entries each a forest took 1.4 times as long as rows, and counted as 1.03 times."""
    random, fibres, each = np.random.default_rng(2), 1400, 100
    i, j = np.divmod(random.permutation(73 * 73)[:fibres], 73)
    k = np.concatenate([random.permutation(12_960)[:each] for _ in range(fibres)])
    places = np.stack([np.repeat(i, each), np.repeat(j, each), k])
    t = st.tensor((places, np.ones(fibres * each)), "dense, compressed, compressed", (73, 73, 12_960))
    operands = {"T": t, "B": np.ones((73, 16)), "C": np.ones((12_960, 16))}
    problem = make_problem("A(i,r,s) = T(i,j,k) * B(j,r) * C(k,s)", operands, threads=2)
    rows, forest = (model.expected_cost(problem, Schedule(text)) for text in (_BY_ROWS, _BY_FOREST))
    assert forest > 1.15 * rows


@pytest.mark.parametrize("tiles", [False, True], ids=["one by one", "in tiles of threads"])
def test_rows_that_a_loop_over_positions_sums_are_stored_once_in_tiles_alone(tiles: bool) -> None:
    """Without tiles the result is filled and added to, as it is without positions."""
    rows, positions = 20_000, "precompute(T(i,j,k) * C(k,s), s, s, w); collapse(i, j, f); pos(f, p, T)"
    text = f"{positions}; split_up(p, p0, p1, 2); parallelize(p0, cpu_thread, atomics)" if tiles else positions
    near, far = (model.expected_cost(_ttmc(count, 16, 1), Schedule(text)) for count in (rows // 100, rows))
    filled = 2.0 * rows * 256 / 8 * 10.0
    assert (far > 100 * near + filled / 2) != tiles


@pytest.mark.parametrize(("extent", "entries"), [(16, 1), (17, 4)], ids=["gathered", "too long to be gathered"])
def test_atomic_updates_are_those_of_rows_that_tiles_share(extent: int, entries: int) -> None:
    tiles = "collapse(i, j, f); pos(f, p, T); split_up(p, p0, p1, {}); parallelize(p0, cpu_thread, atomics)"
    text = f"precompute(T(i,j,k) * C(k,s), s, s, w); {tiles}"
    few, many = (model.expected_cost(_ttmc(2000, extent, 2), Schedule(text.format(count))) for count in (2, 200))
    updates = 198 * 2 * 16 * extent * entries  # two rows a tile, once each or once for each entry
    assert many - few == pytest.approx(35 * updates / 2, rel=0.2)  # 35 operations, by two threads


def test_a_slight_gain_is_taken_with_two_threads_as_with_one_where_both_are_serial() -> None:
    given = {"A": square(150, 0.2), "x": np.ones(150)}
    serial = choice("y(i) = A(i,j) * x(j)", None, **given)
    assert serial == "parallelize(j, cpu_vector, parallel_reduction)"
    assert choice("y(i) = A(i,j) * x(j)", None, threads=2, **given) == serial


_TTMC4 = "reorder(i, j, k, o, {order}, n); precompute(T(i,j,k,o) * E(o,n), n, n, w1); precompute(w1(n) * D(k,m), [m, n], [m, n], w2)"


@pytest.mark.parametrize(("extent", "jumps"), [(8, False), (10, False), (16, False), (24, True), (32, False)])
def test_rows_are_added_to_in_the_order_in_which_they_are_stored(extent: int, jumps: bool) -> None:
    """A load waits for a store a large power of two before it: rows in another order took 1.4 times as long with 16 elements, 2.3 times
    with 32. With 24 the row that is read again and again decides, which stays in registers: 0.9 of the time."""
    tensor = generate("random:uniform:12x9x8x11:nnz=2000", "csf")
    factors = {name: np.ones((size, extent)) for name, size in zip("CDE", (9, 8, 11), strict=True)}
    problem = make_problem("A(i,l,m,n) = T(i,j,k,o) * C(j,l) * D(k,m) * E(o,n)", {"T": tensor, **factors}, threads=1)
    in_order, across = (model.expected_cost(problem, Schedule(_TTMC4.format(order=order))) for order in ("l, m", "m, l"))
    assert across < in_order if jumps else across > 1.04 * in_order


def test_a_loop_around_one_over_other_elements_of_the_result_makes_no_vectors() -> None:
    """It was thought to, and a Tucker core that adds to one element after another was chosen: it takes eight times as long."""
    tensor = generate("random:uniform:12x9x8x11:nnz=2000", "csf")
    factors = {name: np.ones((size, 16)) for name, size in zip("CDEF", (12, 9, 8, 11), strict=True)}
    problem = make_problem("A(p,q,r,s) = T(i,j,k,l) * C(i,p) * D(j,q) * E(k,r) * F(l,s)", {"T": tensor, **factors}, threads=1)
    made = "precompute(T(i,j,k,l) * F(l,s), s, s, w1); precompute(w1(s) * E(k,r), [r, s], [r, s], w2)"
    rows, single = (
        Schedule(f"reorder(i, j, k, l, {order}); {made}; precompute(w2(r,s) * D(j,q), [q, r, s], [q, r, s], w3)")
        for order in ("p, q, r, s", "q, r, s, p")
    )
    assert model.expected_cost(problem, single) > 1.5 * model.expected_cost(problem, rows)
    sources = [st.compile(problem.expression, {"T": "csf"}, dict.fromkeys("pqrs", 16), one).source for one in (rows, single)]
    assert ["_u *)&A_vals[" in source for source in sources] == [True, False], "elements are added to by vectors, or one by one"
    assert "q, r, s, p" not in str(model_choice(problem))


def test_a_few_entries_are_not_converted_in_each_call_for_a_slight_gain() -> None:
    source = np.random.default_rng(1)
    operands = {"T": generate("random:uniform:800x900x700:nnz=2e4", "csf"), "C": source.random((900, 24)), "D": source.random((700, 24))}
    operands["E"] = source.random((24, 20))
    assert "convert" not in choice("A(i,n) = T(i,j,k) * C(j,l) * D(k,l) * E(l,n)", None, **operands)


def test_a_converted_operand_is_gone_through_with_its_empty_rows() -> None:
    """Rows of a matrix stored by columns are dense: a nest over all pairs of rows and columns was taken for one over those with entries."""
    large = sp.csr_array((np.ones(1), ([5], [7])), shape=(10**7, 10**7))
    problem = make_problem("C(i,j) = A(i,k) * B(k,j)", {"A": large, "B": large}, "csr", threads=2)
    pairs = Schedule('addends(A(i,k) * B(k,j)); convert(B(k,j), "dense, compressed; 1, 0"); reorder(i, j, k)')
    assert model.expected_cost(problem, pairs) > 1e13
    assert model.expected_cost(problem, Schedule("")) < 1e9
    assert "reorder(i, j, k)" not in str(model_choice(problem))
