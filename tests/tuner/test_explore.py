"""Explorations and what is said of them: stages, frontier, verdicts on a user's program, errors."""

from __future__ import annotations

import json

import numpy as np
import pytest
from space_samples import CSR, KERNELS, PRODUCT
from sparsetune.compiler.concrete.nodes import Program
from sparsetune.compiler.errors import ExpressionError, FormatError, ScheduleError, SparsetuneError, TuningError
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.space.protocolized import parse_protocolized
from sparsetune.compiler.storage.construct import tensor
from sparsetune.tuner.explanation import described
from sparsetune.tuner.explore import explore

CHAIN = "A(i,j) = B(i,k) * C(k,l) * D(l,j)"
INNER = "forall(i,j,k) A(i,j) += B(i:step,k:step) * C(k:step,j:step)"
LOOPS = ("inputs", "{(i)}", "{(j)}", "{(k)}")  # sunk, but no workspaces
GUSTAVSON = "forall(i,k,j) A(i,j) += B(i,k) * C(k,j)"


def stages(found) -> list[tuple[str, int]]:
    assert all(set(stage) == {"stage", "kept", "seconds"} and stage["seconds"] >= 0 for stage in found.stages)
    return [(stage["stage"], stage["kept"]) for stage in found.stages]


def test_stages_of_presets():
    assert stages(explore(KERNELS["SpMV2"], preset="pigeon"))[1:] == [("min_depth", 144), ("undominated", 28)]
    assert stages(explore(KERNELS["SpMV2"], preset="pigeon-taco"))[1:] == [("min_depth", 144), ("taco", 24), ("undominated", 24)]
    own = stages(explore(KERNELS["SpMV2"], {"B": "csr", "C": "csr"}))
    assert [name for name, _ in own] == ["generated", "undominated"]
    assert stages(explore(KERNELS["SpMV"], {}, preset="pigeon"))[1:] == [("min_depth", 8), ("undominated", 4)]
    given = explore(KERNELS["SpGEMM2"], dict.fromkeys("ABCD", "csr"), preset="pigeon", workspace_state="paper")
    assert stages(given)[-2:] == [("min_depth", 20736), ("undominated", 292)]


def test_frontier_schedules_say_what_they_cost():
    found = explore(PRODUCT, CSR)
    assert len(found.frontier) == 2
    gustavson = found.frontier[0]
    assert "A(i:append,j:insert) += B(i:step,k:step) * C(k:locate,j:step)" in gustavson.loop_nest
    assert gustavson.task_set == "{(i)} + {(i,k) | B(i,k)} + {(i,j,k) | B(i,k) and C(k,j)}"  # all rows: they are stored dense
    assert gustavson.time == "I + nnz(B) + |{(i,j,k) | B(i,k) and C(k,j)}|"
    assert gustavson.memory == "|{(j) | exists i1,k1: B(i1,k1) and C(k1,j)}|"  # the result's, below the appended mode
    assert found.frontier[-1].loop_nest != gustavson.loop_nest
    assert len(found.frontier[1:3]) == 1
    assert len({one.annotated for one in found.frontier}) == 2
    with pytest.raises(IndexError):
        found.frontier[2]


def test_workspaces_over_one_dimension_may_count():
    found = explore(PRODUCT, CSR, sunk_costs=LOOPS)
    assert len(found.frontier) == 6
    assert found.frontier[0].memory == "0"  # inner products need none, and more time
    assert found.compare(INNER, GUSTAVSON).verdict == "incomparable"


def test_schedules_of_one_cost_show_one_time():
    found = explore(PRODUCT, CSR | {"B": "dcsr"})
    assert len(found.classes) == len({one.time for one in found.frontier}) == 1
    assert len({one.task_set for one in found.frontier}) == 2  # all rows or those with entries, which is sunk


def test_the_default_of_a_sum_is_not_beaten():
    # A loop through the rows of C meets the empty ones too: whatever stands inside of it runs for all of them.
    found = explore("A(i,j) = B(i,j) + C(i,k) * D(k,j)", {"A": "csr", "B": "csr", "C": "csr"})
    assert found.why("") == "no schedule of the frontier is cheaper"
    rows = "forall(i,j) {A(i,j) += B(i:step,j:step); forall(k) A(i,j) += C(i:step,k:step) * D(k:locate,j:locate)}"
    assert found.compare("", rows).verdict == "cheaper"


@pytest.mark.parametrize("form", ["csr", "dense"])
def test_what_is_added_to_has_a_frontier(form: str):
    """The given value is an operand like others, under a name of its own."""
    expression, formats = "A(i,j) += B(i,k) * C(k,j)", {"A": form, "B": "csr", "C": "csr"}
    found = explore(expression, formats)
    assert all("A_initial" in str(one.schedule) and one.schedule in found.space for one in found.frontier)
    source = np.random.default_rng(0)
    a, b, c = (source.integers(1, 5, (6, 6)) * (source.random((6, 6)) < 0.4) for _ in range(3))
    best = found.frontier[0].schedule
    kernel = compile_kernel(expression, formats, schedule=best)
    result = kernel(A=tensor(a, form), B=tensor(b, "csr"), C=tensor(c, "csr"))
    assert np.array_equal(result if isinstance(result, np.ndarray) else result.to_numpy(), a + b @ c)


def test_less_memory_in_the_same_time_is_not_called_cheaper():
    found = explore(CHAIN, dict.fromkeys("ABCD", "csr"), sunk_costs=LOOPS)
    made, used = "B(i:step,k:step) * C(k:locate,l:step)", "D(l:locate,j:step)"
    vector = f"forall(i) (forall(l,j) A(i,j) += w(l:step) * {used} where forall(k,l) w(l) += {made})"
    matrix = f"(forall(i,l,j) A(i,j) += w(i:step,l:step) * {used} where forall(i,k,l) w(i,l) += {made})"
    assert found.compare(vector, matrix).verdict == "cheaper"
    assert found.compare_text(vector, matrix).startswith("the first takes the same time and needs less memory than the second\n")
    assert found.compare_text(matrix, vector).startswith("the first takes the same time and needs more memory than the second\n")


def test_a_dense_result_needs_no_workspace():
    found = explore(PRODUCT, {"B": "csr", "C": "csr"})
    assert len(found.frontier) == 12
    assert {one.memory for one in found.frontier} == {"0"}


def test_memory_is_what_workspaces_store():
    found = explore(CHAIN, dict.fromkeys("ABCD", "csr"))
    memories = {one.memory for one in found.frontier}
    assert "0" not in memories
    assert any(memory.startswith("|{(j) | ") for memory in memories)
    assert any(" + " in memory for memory in memories)


def test_items_of_the_frontier_are_schedules():
    found = explore(PRODUCT, CSR)
    for one in found.frontier:
        assert isinstance(one.schedule, Schedule)
        assert one.schedule in found.space
        assert found.compare(one, str(one.schedule)).verdict == "equivalent"
        assert (one.loop_depth, one.memory_depth) == (3, 0)
        assert "schedule of time" in repr(one)


def test_the_space_before_pruning():
    found = explore(PRODUCT, CSR, preset="pigeon")
    assert found.space.count() == found.stages[0]["kept"] == 96
    assert len({str(schedule) for schedule in found.space}) == 96
    assert all(schedule in found.space for schedule in found.space.sample(5, seed=2))
    assert "" in found.space


def test_items_of_the_frontier_keep_the_semiring():
    found = explore("d(i) = B(i,j) * c(j)", {"B": "csr"}, semiring=("min", "+"))
    assert {(one.program.add, one.program.multiply) for one in found.frontier} == {("min", "+")}


def test_who_beats_a_program_and_why():
    found = explore(PRODUCT, {"B": "csr", "C": "csr"})
    text = found.why(INNER)
    assert "this schedule is cheaper than the given one" in text
    assert "by the homomorphism i -> i, j -> j, k -> k" in text
    assert "is in no task of this schedule" in text
    assert "(and 11 of the same cost)" in text
    ((one, comparison),) = found.beaten_by(INNER)
    assert one.count == 12
    assert comparison.verdict == "cheaper"
    assert found.why(GUSTAVSON) == "no schedule of the frontier is cheaper"
    assert found.why(found.frontier[3]) == "no schedule of the frontier is cheaper"


def test_programs_are_compared_in_any_form():
    found = explore(PRODUCT, {"B": "csr", "C": "csr"})
    statement = parse_protocolized(INNER)
    assert found.compare(INNER, GUSTAVSON).verdict == "costlier"
    assert explore(PRODUCT, CSR).compare(INNER, GUSTAVSON).verdict == "costlier"  # Gustavson's needs a vector then
    assert found.compare(statement, Program(statement)).verdict == "equivalent"
    assert found.compare_text(GUSTAVSON, INNER).startswith("the first is cheaper than the second\n")
    assert found.annotated(GUSTAVSON).count("\n") == 3


def test_directives_are_programs_too():
    found = explore(PRODUCT, CSR)
    assert found.why("") == "no schedule of the frontier is cheaper"  # the default is Gustavson's algorithm
    assert "w(j:step)" in found.annotated("")
    two = explore("A(i,j) = B(i,k) * C(k,l) * D(l,j)", {"B": "csr", "C": "csr", "D": "csr"})
    fused = "precompute(B(i,k) * C(k,l), l, lw, w)"
    assert two.compare(fused, "").verdict == "cheaper"  # less time, and a vector that the default does not need
    assert two.compare(Schedule(fused), fused).verdict == "equivalent"
    assert "for l" in two.annotated(fused)
    with pytest.raises(ScheduleError, match="directive 1"):
        found.why("reorder(i, q)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("forall(i) C(i,i) = B(i,i)", "does not write the result A"),
        ("forall(i,j,k) A(i,j) += B(i,k) * Z(k,j)", "reads Z"),
        ("forall(i,j,q) A(i,j) += B(i,q) * C(q,j)", "has the index q"),
        ("forall(i,j,k) A(i,j) += B(i,k)", "does not read C"),
        ("forall(i,j,k) A(i,j) +=", "expected"),
        ("forall(", "expected"),
    ],
)
def test_programs_that_do_not_fit(text, message):
    with pytest.raises(ExpressionError, match=message):
        explore(PRODUCT, CSR).why(text)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"preset": "auto"}, TuningError, "presets are None, 'pigeon', 'pigeon-taco', 'sparseauto', 'spttn'"),
        ({"preset": "taco"}, TuningError, "unknown preset 'taco'"),
        ({"workspace_state": "exactly"}, TuningError, "models are exact, paper"),
        ({"ranges": {"q": (1, 2)}}, ExpressionError, "range given for q"),
        ({"ranges": {"i": (5, 2)}}, ExpressionError, "the range of i"),
        ({"ranges": 5}, ExpressionError, "ranges are given by index"),
        ({"ranges": {"i": 5}}, ExpressionError, "a pair of numbers such as"),
        ({"ranges": {"i": ("a", "b")}}, ExpressionError, "a pair of numbers such as"),
        ({"semiring": ("+", "xor")}, ExpressionError, "unknown operator 'xor'"),
        ({"semiring": "min"}, ExpressionError, "a semiring is a pair"),
        ({"semiring": 5}, ExpressionError, "a semiring is a pair"),
        ({"semiring": ("min", "+"), "expression": "a(i) = b(i) - c(i)", "formats": None}, ExpressionError, "has no meaning"),
        ({"sunk_costs": 5}, ExpressionError, "a sequence of texts, not 5"),
        ({"assumptions": None}, ExpressionError, "a sequence of texts, not None"),
        ({"sunk_costs": ("{(i,i) | B(i,k)}",)}, ExpressionError, "names an index twice"),
        ({"memory_depth": 1}, TuningError, "memory_depth has no meaning for preset None; it is for 'sparseauto' and 'spttn'"),
        ({"preset": "pigeon", "memory_bound": 100}, TuningError, "memory_bound has no meaning for preset 'pigeon'"),
        ({"preset": "pigeon-taco", "cost": "cache_misses"}, TuningError, "cost has no meaning for preset 'pigeon-taco'"),
        ({"time_limit": "5"}, TuningError, "a positive number of seconds"),
        ({"time_limit": float("nan")}, TuningError, "a positive number of seconds"),
        ({"formats": {"Z": "csr"}}, FormatError, "format given for Z"),
    ],
)
def test_requests_that_are_wrong(options, error, message):
    with pytest.raises(error, match=message) as caught:
        explore(**{"expression": PRODUCT, "formats": CSR} | options)
    assert isinstance(caught.value, SparsetuneError)


def test_sums_of_four_sparse_matrices():
    found = explore("A(i,j) = B(i,j) + C(i,j) + D(i,j) + E(i,j)", dict.fromkeys("ABCDE", "csr"))
    assert stages(found) == [("generated", 991232), ("undominated", 1328)]


@pytest.mark.parametrize(
    "expression", ["a = 3", "a = b", "a = b * c", "a(i) = 2", "a(i) = 0", "a = B(i,i)", "A(i,j) = B(i,j) * B(j,i)", "a = b / c(i)",
                   "a(i) = -b(i) * (c(i) + D(i,j))", "a(i) += B(i,j) * c(j)", "A(i,j) = B(i,j) + 2", "a(i) = B(i,j) * 0"]
)  # fmt: skip
def test_odd_expressions_have_an_answer(expression):
    formats = {"B": "csr", "D": "csr"} if "B(" in expression else {}
    found = explore(expression, {name: form for name, form in formats.items() if f"{name}(" in expression})
    answer = described(found, schedule="", limit=3)
    assert answer["frontier"]
    assert answer["schedule"]["verdict"]


def test_users_take_costs_and_facts_for_granted():
    product = KERNELS["SpGEMM"]
    sunk = explore(product, preset="pigeon", sunk_costs=("inputs", "dimensions", "{(i,j,k) | B(i,k)}"))
    assert sunk.stages[-1]["kept"] > 12  # what reads C for entries of B alone costs nothing extra now
    with pytest.raises(ExpressionError, match="has no index q"):
        explore(product, preset="pigeon", sunk_costs=("{(q)}",))
    beaten = "forall(i,k,j) A(i,j) += B(i:step,k:locate) * C(k:step,j:step)"
    assert explore(product, preset="pigeon").beaten_by(beaten)
    everything = ("inputs", "dimensions", "{(i,k)}", "{(i,j,k) | C(k,j)}")
    assert not explore(product, preset="pigeon", sunk_costs=everything).beaten_by(beaten)


def test_expressions_that_are_wrong():
    with pytest.raises(ExpressionError, match="column"):
        explore("A(i,j) = B(i,k *")


def test_what_is_told_of_an_exploration_is_json():
    product = "forall(i,j,k) a(i) += B(i,j) * C(j,k) * d(k)"
    answer = described(explore("a(i) = B(i,j) * C(j,k) * d(k)", {"B": "csr", "C": "csr"}), product, 2)
    assert set(answer) == {"expression", "stages", "frontier", "schedule"}
    keys = {"schedule", "loop_nest", "time", "memory", "task_set", "loop_depth", "memory_depth"}
    assert [set(one) for one in answer["frontier"]] == [keys] * 2
    assert "cheaper" in answer["schedule"]["verdict"]
    assert json.loads(json.dumps(answer)) == answer
    assert len(described(explore(PRODUCT, CSR))["frontier"]) == 2


def test_every_cost_is_told_first():
    answer = described(explore(KERNELS["SpGEMM2"], preset="pigeon", workspace_state="paper"), limit=4)
    assert len({one["task_set"] for one in answer["frontier"]}) == 4


def test_other_semirings():
    found = explore("d(i) = B(i,j) * c(j)", {"B": "csr"}, semiring=("min", "+"))
    assert stages(found)[-1] == ("undominated", 4)
    matrix, vector = np.array([[3.0, 1], [np.inf, np.inf], [2, 5]]), np.array([1.0, 4])
    for one in found.frontier:
        kernel = compile_kernel("d(i) = B(i,j) * c(j)", {"B": "csr"}, schedule=one.schedule, semiring=("min", "+"))
        assert (one.program.add, one.program.multiply) == ("min", "+")
        np.testing.assert_array_equal(kernel(B=tensor(matrix, "csr", fill_value=np.inf), c=vector), [4, np.inf, 3])


@pytest.mark.parametrize(("expression", "formats", "time"), [
    ("y(i) = s(i) / b(i)", {"s": "s"}, "I"), ("y = s(i) / b(i)", {"s": "s"}, "nnz(s)"), ("y = s(i) / t(i)", {"s": "s", "t": "s"}, "I"),
    ("y(i) = s(i) / b(i)", {"s": "s", "y": "s"}, "nnz(s)"),
])  # fmt: skip
def test_quotients_cost_what_their_loops_visit(expression: str, formats: dict[str, str], time: str) -> None:
    """A zero below the line counts in terms of dense results that are not summed, and where it is not stored."""
    assert {str(item.time) for item in explore(expression, formats=formats).frontier} == {time}
