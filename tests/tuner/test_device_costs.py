"""The static model of GPUs: which mapping it expects to wait least, by the lengths of rows."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from sparsetune.compiler.passes.block_sizes import THREADS
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.tuner.device_costs import USUAL, Counted, Device, device_cost, nanoseconds
from sparsetune.tuner.device_lanes import _PASSED, _TURN
from sparsetune.tuner.device_work import DeviceWork, Work
from sparsetune.tuner.model import expected_cost, static_choice
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.reports.gpu_fit import FITTED, Race, loss, moved, races
from sparsetune.tuner.reports.gpu_rows import OURS, read_rows
from sparsetune.tuner.reports.markdown import geometric_mean
from sparsetune.tuner.resolve import make_problem

ROOT = Path(__file__).parents[2]
MEASURED = [row for row in read_rows(ROOT / "results" / "gpu.csv") if (row.part, row.who, row.right) == ("kernels", OURS, "yes")]
DATA = {file.name: file for file in (ROOT.parent / "shared" / "data").rglob("*.gz")}

SPMV = "y(i) = A(i,j) * x(j)"
ROWS, WARPS = "parallelize(i, gpu_thread, no_races)", "parallelize(i, gpu_warp, no_races); parallelize(j, gpu_thread, parallel_reduction)"
SHARES = (
    "collapse(i, j, f); pos(f, p, A); split(p, b, q, 512); split(q, t, n, 4); parallelize(b, gpu_block, no_races);"
    " parallelize(t, gpu_thread, atomics)"
)


def problem(rows: int, columns: int, each: int, longest: int = 0, expression: str = SPMV) -> Problem:
    """Rows of so many entries, and one that may be longer."""
    counts = np.full(rows, each)
    counts[0] = max(each, longest)
    pos = np.concatenate(([0], np.cumsum(counts)))
    crd = np.concatenate([np.arange(counts[0]), np.tile(np.arange(each), rows - 1)]).astype(np.int32)
    matrix = scipy.sparse.csr_array((np.ones(pos[-1]), crd, pos.astype(np.int32)), shape=(rows, columns))
    dense = {"x": np.ones(columns)} if expression == SPMV else {"X": np.ones((columns, 64))}
    return make_problem(expression, {"A": matrix, **dense}, target="cuda", arch="sm_90")


def chosen(given: Problem) -> str:
    found = static_choice(given)
    return "" if found is None else str(found.schedule)


def test_rows_go_to_threads_warps_or_shares_of_entries_by_their_lengths() -> None:
    short, long, odd = problem(200_000, 500, 2), problem(4000, 4000, 300), problem(20_000, 100_000, 5, 100_000)
    assert [min((ROWS, WARPS, SHARES), key=lambda text: expected_cost(given, Schedule(text))) for given in (short, long, odd)] == [
        ROWS, WARPS, SHARES,
    ]  # fmt: skip


@pytest.mark.parametrize(("rows", "each", "longest", "unit"), [(4000, 300, 0, "gpu_warp"), (20_000, 5, 50_000, "pos(")])
def test_the_choice_without_records_depends_on_the_data(rows: int, each: int, longest: int, unit: str) -> None:
    assert unit in chosen(problem(rows, 50_000, each, longest))


def test_the_default_costs_what_rows_to_threads_do() -> None:
    given = problem(1000, 50, 20)
    found = given.concretized()
    assert device_cost(given, found.program, found.sources) == expected_cost(given, Schedule(ROWS))


def test_lanes_of_a_warp_are_as_many_as_rows_have_entries_for() -> None:
    def cost(lanes: int) -> float:
        return expected_cost(problem(400_000, 50, 6), Schedule(WARPS.replace("no_races", f"no_races, lanes, {lanes}")))

    assert cost(4) < cost(32)
    assert cost(8) < cost(32)


def test_columns_of_a_dense_operand_are_the_work_of_lanes() -> None:
    given = problem(20_000, 20_000, 30, expression="Y(i,k) = A(i,j) * X(j,k)")
    lanes = "reorder(i, k, j); parallelize(i, gpu_warp, no_races); parallelize(k, gpu_thread, no_races)"
    assert expected_cost(given, Schedule(lanes)) < 0.5 * expected_cost(given, Schedule(ROWS))
    assert "gpu_" in chosen(given)


def test_more_bytes_take_longer_however_well_they_are_shared() -> None:
    few, many = (expected_cost(problem(rows, 1000, 100), Schedule(WARPS)) for rows in (50_000, 100_000))
    assert many > 1.5 * few


SPMM = "Y(i,k) = A(i,j) * X(j,k)"
ALONE = "reorder(i, k, j); parallelize(i, gpu_warp, no_races); parallelize(k, gpu_thread, no_races)"
TILES = "split(k, t, v, 2); reorder(i, t, j, v); precompute(A(i,j) * X(j,k), v, v, w); {}"


def test_lanes_that_hold_neighbouring_columns_in_registers_load_less() -> None:
    given = problem(100_000, 100_000, 17, expression=SPMM)
    tiled = TILES.format("parallelize(i, gpu_warp, no_races); parallelize(t, gpu_thread, no_races)")
    assert expected_cost(given, Schedule(tiled)) < 0.9 * expected_cost(given, Schedule(ALONE))
    assert "precompute" in chosen(given)


def test_lanes_with_rows_of_their_own_lose_them_from_the_cache_unless_there_are_fewer() -> None:
    given = problem(200_000, 500, 60)
    many, few = (expected_cost(given, Schedule(f"{ROWS[:-1]}{more})")) for more in ("", ", registers, 128"))
    assert few < many


def works(given: Problem, schedule: str) -> list[Work]:
    found = given.concretized()
    program = apply_schedule(found.program, Schedule(schedule), found.formats, given.constants)
    return list(DeviceWork(given, program, found.sources).works())


def test_entries_whose_rows_several_lanes_share_are_looked_for_at_every_level() -> None:
    shares = "collapse(i, j, f); collapse(f, k, g); pos(g, p, B); split(p, b, q, 512); split(q, t, n, 4); {}"
    units = shares.format("parallelize(b, gpu_block, no_races); parallelize(t, gpu_thread, atomics)")
    tensor = np.zeros((40, 30, 20))
    tensor[:, :3, :2] = 1.0
    given = make_problem("y(i) = B(i,j,k) * c(k)", {"B": st.tensor(tensor, "csf"), "c": np.ones(20)}, target="cuda", arch="sm_90")
    (of_tensor,), (of_matrix,) = works(given, units), works(problem(40, 500, 6), SHARES)
    assert of_tensor.searches == pytest.approx(math.log2(40) + math.log2(120))
    assert of_matrix.searches == pytest.approx(math.log2(40))
    assert of_tensor.tracked == 2 * of_matrix.tracked
    assert of_matrix.atomics == pytest.approx(40 + 240 / 4, rel=0.05)  # one for each row, and one for each lane


HELD = (
    "collapse(i, j, f); pos(f, p, A(i,j)); split(p, b, q, 1024); split(q, t, n, 8); precompute(A(i,j) * x(j), n, m, w); unroll(m, 8);"
    " parallelize(b, gpu_block, no_races); parallelize(t, gpu_thread, atomics)"
)


def test_lanes_that_hold_entries_go_through_them_once_and_stop_where_rows_of_a_warp_end() -> None:
    """Where each entry is a row, lanes stop at all; where a row has 400, they do where one of the 32 has an end."""
    short, loads = works(problem(4000, 500, 1), HELD)
    long = works(problem(400, 500, 400), HELD)[0]
    more = works(problem(4000, 500, 1), HELD.replace("n, 8)", "n, 16)").replace("unroll(m, 8)", "unroll(m, 16)"))[0]
    assert loads.tracked == 0
    assert more.tracked == 2 * short.tracked
    stops = (long.tracked / short.tracked * (_PASSED + _TURN) - _PASSED) / _TURN
    assert stops == pytest.approx(1 - (1 - 1 / 400) ** 32)


def test_lanes_that_hold_more_entries_have_more_registers_whatever_is_asked_for() -> None:
    given, sixteen = problem(400, 500, 40), HELD.replace("n, 8)", "n, 16)").replace("unroll(m, 8)", "unroll(m, 16)")
    assert works(given, HELD)[0].registers == 60
    assert works(given, sixteen)[0].registers == 100
    assert works(given, f"{sixteen[:-1]}, registers, 40)")[0].registers == 100
    assert works(given, f"{HELD[:-1]}, registers, 200)")[0].registers == 200
    assert works(given, ROWS)[0].registers is None


def test_a_block_has_its_usual_threads_where_rows_of_any_length_are_dealt_to_them() -> None:
    given = problem(1000, 500, 5)
    of_rows = "parallelize(i, gpu_block, no_races); parallelize(j, gpu_thread, parallel_reduction)"
    assert works(given, of_rows)[0].lanes == THREADS
    assert works(given, SHARES)[0].lanes == 128


def test_sums_of_rows_that_units_share_are_kept_element_by_element_where_rows_end() -> None:
    """Shares of 64 entries, of rows of 8, have 8 ends beside their own; a lane has 16 elements of each row."""
    held = "collapse(i, j, f); pos(f, p, A(i,j)); split(p, b, n, 64); reorder(b, l, n, k); parallelize(b, gpu_block, {0}); {1}"
    matrix, dense = problem(1000, 500, 8).operand("A"), {"B": np.ones((500, 16)), "C": np.ones((500, 4))}
    given = make_problem("Y(i,k,l) = A(i,j) * B(j,k) * C(j,l)", {"A": matrix, **dense}, target="cuda", arch="sm_90")
    lanes = "parallelize(l, gpu_thread, no_races)"
    assert works(given, held.format("temporary", lanes))[0].kept == pytest.approx(9 * 16)
    assert works(given, held.format("atomics", lanes.replace("no_races", "atomics")))[0].kept == 0


def test_units_smaller_than_a_warp_go_apart_where_rows_are_inside_of_rows() -> None:
    """Instructions of fibres' entries are issued for each unit alone; with one level of rows units stay together."""
    slices = "parallelize(i, gpu_warp, no_races, lanes, {}); parallelize(l, gpu_thread, no_races)"
    tensor = st.tensor(np.ones((64, 9, 9)), "csf")
    given = make_problem("T(i,j,l) = B(i,j,k) * C(k,l)", {"B": tensor, "C": np.ones((9, 32))}, "ssd", "cuda", arch="sm_90")
    warps, parts = (works(given, slices.format(lanes))[0].instructions for lanes in (32, 4))
    assert parts > 4 * warps
    rows = problem(1000, 500, 40)
    of_rows = "parallelize(i, gpu_warp, no_races, lanes, {}); parallelize(j, gpu_thread, parallel_reduction)"
    together, few = (works(rows, of_rows.format(lanes))[0].instructions for lanes in (32, 8))
    assert few < together


def test_lanes_of_a_block_with_rows_of_their_own_load_what_they_lost_again() -> None:
    """Two rows to a thread of a block lose as much as a row to a thread of the grid."""
    of_blocks = "split(i, b, q, 256); split(q, t, n, 2); parallelize(b, gpu_block, no_races); parallelize(t, gpu_thread, no_races)"
    given = problem(200_000, 500, 60)
    alone, beside = works(given, ROWS)[0], works(given, of_blocks)[0]
    assert beside.streams == alone.streams > 0
    assert beside.own == pytest.approx(alone.own)


def test_rows_that_lanes_gather_alone_cost_a_sector_each() -> None:
    given = problem(50_000, 50_000, 20, expression=SPMM)
    assert expected_cost(given, Schedule(ROWS)) > 3 * expected_cost(given, Schedule(ALONE))


def test_a_lane_with_several_rows_of_a_block_takes_as_long_as_the_longest() -> None:
    """Lanes wait for the longest of their own rows, not for the mean of the block's."""
    of_blocks = "split(i, b, q, 256); split(q, t, n, 2); parallelize(b, gpu_block, no_races); parallelize(t, gpu_thread, no_races)"
    fibres = "collapse(i, j, f); pos(f, p, B); split(p, b, q, 256); split(q, t, n, 2); parallelize(b, gpu_block, no_races);"
    tensor = np.zeros((100, 30, 400))
    tensor[:, :, 0], tensor[7, 7, :] = 1.0, 1.0
    operands = {"B": st.tensor(tensor, "csf"), "c": np.ones(400)}
    given = make_problem("T(i,j) = B(i,j,k) * c(k)", operands, "dcsr", "cuda", arch="sm_90")
    (work,) = works(given, f"{fibres} parallelize(t, gpu_thread, no_races)")
    assert work.longest == pytest.approx(400 / (2 * tensor.sum() / 3000))
    (matrix,) = works(problem(2000, 500, 5), of_blocks)
    assert matrix.longest == 1.0


def test_what_a_workspace_is_filled_with_is_waited_for_too() -> None:
    given = problem(1000, 500, 400, expression=SPMM)
    held = "precompute(A(i,j) * X(j,k), k, k, w); parallelize(i, gpu_thread, no_races)"
    both = works(given, held)
    waits = replace(USUAL, launch=0, sector=0, instruction=0, shuffle=0, near_byte=0, byte=0)
    together, *apart = (nanoseconds(Counted(tuple(each), 0.0, 0.0), waits) for each in (both, both[:1], both[1:]))
    assert min(apart) > 2 * USUAL.thread
    assert together == pytest.approx(sum(apart) - USUAL.thread)


def test_of_a_collapsed_loop_whose_rows_are_stored_units_get_rows() -> None:
    tensor = np.zeros((50, 6, 7))
    tensor[::5] = 1.0
    operands = {"B": st.tensor(tensor, "csf"), "C": np.ones((6, 32)), "D": np.ones((7, 32))}
    given = make_problem("A(i,r) = B(i,j,k) * C(j,r) * D(k,r)", operands, target="cuda", arch="sm_90")
    tiles = "split(r, t, v, 2); reorder(i, t, j, k, v); precompute(B(i,j,k) * C(j,r) * D(k,r), v, v, w); collapse(i, t, c);"
    assert works(given, f"{tiles} parallelize(c, gpu_thread, no_races)")[-1].units == 10


def test_converting_an_operand_costs_more_than_a_kernel() -> None:
    given = problem(5000, 5000, 10)
    converted = Schedule(f'convert(A(i,j), "compressed, compressed"); {ROWS}')
    assert expected_cost(given, converted) > 10 * expected_cost(given, Schedule(ROWS))


INPUTS = ("cage10.mtx.gz", "delaunay_n15.mtx.gz", "email-Enron.mtx.gz", "luxembourg_osm.mtx.gz", "fb15k-237.tns.gz")
needs_races = pytest.mark.skipif(not MEASURED or not DATA.keys() >= set(INPUTS), reason="no measured mappings, or no data")


@pytest.fixture(scope="module")
def measured() -> list[Race]:
    return list(races(MEASURED, [str(DATA[name]) for name in INPUTS]))


@needs_races
@pytest.mark.parametrize("name", INPUTS)
def test_of_measured_mappings_the_cheapest_by_the_model_is_nearly_the_fastest(name: str, measured: list[Race]) -> None:
    kept = [race.share(USUAL) for race in measured if race.input == name]
    assert geometric_mean(kept) > 0.75
    assert min(kept) > 0.5


def bias(measured: list[Race], device: Device) -> float:
    """Return the mean over mappings of the natural logarithm of the cost over the measured time."""
    return float(np.mean([math.log(nanoseconds(asked, device) / taken) for race in measured for asked, taken in race.mappings]))


LOSS, BIAS = 0.48063, 0.00530
"""Of the usual constants on these inputs. What changes the model changes them: see by part "fit" of the report whether it is better."""


@needs_races
def test_costs_are_those_with_which_the_constants_were_fitted(measured: list[Race]) -> None:
    assert loss(measured, USUAL) == pytest.approx(LOSS, abs=1e-5)
    assert bias(measured, USUAL) == pytest.approx(BIAS, abs=1e-5)


@needs_races
@pytest.mark.parametrize("name", [name for name in FITTED if name != "conversion"])
def test_races_tell_every_constant_from_others_but_the_one_of_conversions(name: str, measured: list[Race]) -> None:
    """No measured mapping converts an operand."""
    for factor in (0.9, 1.1):
        device = moved(USUAL, name, factor)
        assert abs(loss(measured, device) - LOSS) + abs(bias(measured, device) - BIAS) > 5e-5


def test_a_thread_alone_takes_far_longer_to_sort_what_it_adds_to_a_table_than_a_warp() -> None:
    matrix = scipy.sparse.diags_array([1.0] * 17, offsets=range(-8, 9), shape=(50_000, 50_000), format="csr")
    given = make_problem("C(i,j) = A(i,k) * B(k,j)", {"A": matrix, "B": matrix}, "csr", target="cuda", arch="sm_90")
    warps = "assemble(C, insert); parallelize(i, gpu_warp, no_races); parallelize([0], j, gpu_thread, no_races)"
    assert 2 * expected_cost(given, Schedule(warps)) < expected_cost(given, Schedule(""))
