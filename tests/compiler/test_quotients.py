"""Quotients of zeros: a dense result has them wherever they stand, whatever the schedule (DESIGN 4.5)."""

from __future__ import annotations

import numpy as np
import pytest
import sparsetune as st
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.pipeline import compile_kernel

ABOVE = np.array([0.0, 2.0, 0.0, 3.0, 0.0])
BELOW = np.array([0.0, 1.0, 2.0, 0.0, 0.0])
MATRIX, VECTOR = 2 * np.eye(5), np.ones(5)
QUOTIENT = np.array([np.nan, 2.0, 0.0, np.inf, np.nan])
S, T = st.tensor(ABOVE, "compressed"), st.tensor(BELOW, "compressed")

pytestmark = pytest.mark.cc


@pytest.mark.parametrize("schedule", [
    "", "split(i, o, n, 2)", "precompute(s(i) / b(i), i, i, w)", "precompute(s(i) / b(i), i, iw, w)", "precompute(s(i) / b(i), [], [], w)",
    "precompute(s(i) / b(i), i, i, w); workspace(w, list)", "precompute(b(i), i, i, w)", "precompute(s(i), i, iw, w)",
    "parallelize(i, cpu_thread, no_races)", "merge(i, locate)",
])  # fmt: skip
def test_a_zero_below_the_line_counts_under_every_schedule(schedule: str) -> None:
    found = st.compile("y(i) = s(i) / b(i)", formats={"s": "compressed"}, schedule=schedule)(s=S, b=BELOW)
    np.testing.assert_array_equal(found, QUOTIENT)


def test_a_loop_over_the_entries_above_the_line_would_leave_out_what_is_not_zero() -> None:
    with pytest.raises(ScheduleError, match=r"s\(i\) / b\(i\) is not zero elsewhere"):
        st.compile("y(i) = s(i) / b(i)", formats={"s": "compressed"}, schedule="pos(i, p, s)")
    summed = st.compile("y = s(i) / b(i)", formats={"s": "compressed"}, schedule="pos(i, p, s)")
    assert summed(s=S, b=BELOW) == np.inf


def test_a_sum_skips_nothing_that_a_denominator_from_outside_makes_a_nan() -> None:
    """Of a sum over i of s(i) / t(j), every zero above a t(j) that is not stored is a NaN."""
    with pytest.raises(ScheduleError, match="not zero elsewhere"):
        st.compile("y(j) = s(i) / t(j)", formats={"s": "compressed", "t": "compressed"}, schedule="pos(i, p, s)")
    found = st.compile("y(j) = s(i) / t(j)", formats={"s": "compressed", "t": "compressed"})(s=S, t=T)
    np.testing.assert_array_equal(found, [np.nan, 5.0, 2.5, np.nan, np.nan])


@pytest.mark.parametrize(("expression", "wanted"), [
    ("y(i) = s(i) / b(i) + A(i,j) * x(j)", QUOTIENT + 2),
    ("y(i) = A(i,j) * x(j) + s(i) / b(i)", QUOTIENT + 2),
    ("y(i) = s(i) / b(i) + x(i)", QUOTIENT + 1),
    ("y(i) = x(i) - s(i) / b(i)", 1 - QUOTIENT),
    ("y(i) = s(i) / b(i) * A(i,j)", np.array([0.0, 4.0, 0.0, np.nan, 0.0])),
])  # fmt: skip
def test_a_term_that_is_not_summed_counts_everywhere_beside_others(expression: str, wanted: np.ndarray) -> None:
    given = {"s": S, "b": BELOW, "A": MATRIX, "x": VECTOR}
    used = {name: operand for name, operand in given.items() if f"{name}(" in expression}
    with np.errstate(all="ignore"):
        found = st.compile(expression, formats={"s": "compressed"})(**used)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("below", ["t(i)", "(t(i) + 0)", "(0 + t(i))", "-(-t(i))", "(1 * t(i))", "(0 - t(i) + 0)"])
@pytest.mark.parametrize("schedule", ["", "precompute(t(i), i, i, w)", "precompute(t(i), i, i, w); workspace(w, dense)"])
def test_adding_nothing_to_a_denominator_stores_nothing(below: str, schedule: str) -> None:
    """Neither s(0) nor t(0) is stored, so the sum has 0 / 0 in it."""
    found = st.compile(f"y = s(i) / {below}", formats={"s": "compressed", "t": "compressed"}, schedule=schedule)(s=S, t=T)
    assert np.isnan(found)


def test_vectors_are_refused_where_a_quotient_keeps_loops_from_having_them() -> None:
    with pytest.raises(ScheduleError, match="meets dense operands"):
        compile_kernel("y(i) = s(i) / b(i)", {"s": "compressed"}, {}, "parallelize(i, cpu_vector, no_races)")
    vectors = compile_kernel("y = s(i) / b(i)", {"s": "compressed"}, {}, "parallelize(i, cpu_vector, parallel_reduction)")
    assert "cpu_vector" in str(vectors.schedule)
