"""Compound subscripts: how far indices go, what is read outside, affine left sides, every use in one line of notation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sparsetune as st
from shifted_values import IMAGE, KINDS, MATRIX, B, shifted, value

pytestmark = pytest.mark.cc


@pytest.mark.parametrize("kind", KINDS)
def test_one_operand_in_every_kind_of_level(kind: str) -> None:
    stored = st.tensor(B, kind)
    assert value("y = B(3)", B=stored) == 0
    assert value("y = B(4)", B=stored) == 5
    assert np.array_equal(value("y(i) = B(i+1)", B=stored), B[1:])
    assert np.array_equal(value("y(i) = B(7-i)", B=stored), B[::-1])
    assert np.array_equal(value("y(i) = B(2*i+1)", B=stored), B[1::2])
    assert np.array_equal(value("y(i) = B(i-2)", shape={"i": 10}, B=stored), np.r_[0, 0, B])
    assert np.array_equal(value("y(i) = B(i-2)", shape={"i": 10}, boundary="wrap", B=stored), B[(np.arange(10) - 2) % 8])
    assert np.array_equal(value("y(i) = B(i+1)", "s", B=stored), B[1:])
    assert np.array_equal(value("y(i) = B(i) - B(i+1) + B(i-1)", B=stored), B - shifted(B, 1) + shifted(B, -1))
    assert np.array_equal(value("y(i) = B(i) * B(i+1)", "s", B=stored), B * shifted(B, 1))
    assert np.array_equal(value("y(i) = B(i) * B(i+1)", boundary={"i": "wrap"}, B=stored), B * np.roll(B, -1))


@pytest.mark.parametrize(("form", "left"), [("csr", "dcsr"), ("csc", "csr"), ("coo", "dd"), ("dense", "coo")])
def test_windows_of_matrices(form: str, left: str) -> None:
    rng = np.random.default_rng(5)
    matrix = rng.integers(0, 3, (7, 9)) * 1.0
    weights = rng.integers(1, 4, (2, 3)) * 1.0
    wanted = sum(weights[p, q] * matrix[p : p + 6, q : q + 7] for p in range(2) for q in range(3))
    assert np.array_equal(value("Y(i,j) = A(i+p,j+q) * F(p,q)", left, A=st.tensor(matrix, form), F=weights), wanted)
    assert value("s = A(i,i+2)", A=st.tensor(matrix, form)) == np.trace(matrix, 2)


def test_indices_go_as_far_as_every_subscript_stays_inside() -> None:
    def length(expression: str, **extents: int) -> int:
        operands = {name: np.ones(extent) for name, extent in extents.items()}
        return len(value(expression, **operands))

    assert length("y(i) = B(i+j) * F(j)", B=10, F=2) == 9
    assert length("y(i) = B(i+j) * F(j)", B=10, F=3) == 8
    assert length("y(i) = B(3*i)", B=10) == 4
    assert length("y(i) = B(i+1) * C(i+4)", B=10, C=7) == 3
    assert length("y(i) = B(i+j) * F(j)", B=2, F=5) == 0
    assert length("y(i) = B(9-2*i)", B=10) == 5


@pytest.mark.parametrize(
    ("expression", "operands", "shape", "message"),
    [
        ("y(i) = B(i-1)", {"B": 4}, None, "at i = 0 'i - 1' of mode 0 of operand 'B' reaches -1"),
        ("y(i) = B(i+j)", {"B": 4}, None, "how far index 'i' goes: it stands in 'i \\+ j' of mode 0 of operand 'B' beside 'j'"),
        ("y(i) = B(5)", {"B": 4}, None, "'5' of mode 0 of operand 'B' is outside of its extent 4"),
        ("y(i-1) = B(i)", {"B": 4}, None, "subscript 'i - 1' of the result 'y' reaches -1; results begin at 0: add 1 to it"),
        ("y(2*i) = B(i)", {"B": 4}, {"y": (5,)}, "reaches 6, but mode 0 of the result was to have extent 5; give 7 or more"),
        ("y(2*i) = B(i)", {"B": 4}, {"y": (5, 5)}, "the shape of 'y' has 2 extents, but it has 1 modes"),
        ("y(2*i) = B(i)", {"B": 4}, {"y": 5}, "the name of the result 'y' must be given with its shape"),
    ],
)
def test_what_has_no_range_is_refused(expression: str, operands: dict[str, int], shape: Any, message: str) -> None:
    with pytest.raises(st.ShapeError, match=message):
        value(expression, shape=shape, **{name: np.ones(extent) for name, extent in operands.items()})


def test_what_has_no_meaning_is_refused() -> None:
    with pytest.raises(st.ExpressionError, match="only dense results take"):
        value("y(2*i) = B(i)", "s", B=B)
    with pytest.raises(st.ExpressionError, match="a boundary is 'fill' or 'wrap', not 'mirror'"):
        value("y(i) = B(i+1)", boundary="mirror", B=B)
    with pytest.raises(st.ExpressionError, match="boundary given for index 'k'"):
        value("y(i) = B(i+1)", boundary={"k": "wrap"}, B=B)
    with pytest.raises(st.ExpressionError, match="boundary is 'fill', 'wrap' or one of these by index"):
        value("y(i) = B(i+1)", boundary=3, B=B)


def test_left_sides_scatter() -> None:
    weights = np.array([1.0, 10, 100])
    for kind in ("d", "s"):
        stored = st.tensor(B, kind)
        wanted = np.zeros(17)
        for i in range(8):
            wanted[2 * i : 2 * i + 3] += B[i] * weights
        assert np.array_equal(value("y(2*i+j) = B(i) * F(j)", B=stored, F=weights), wanted)
        assert np.array_equal(value("y(2*i+j) = B(i) * F(j)", shape={"y": (20,)}, B=stored, F=weights), np.r_[wanted, 0, 0, 0])
        assert np.array_equal(value("y(7-i) = B(i)", B=stored), B[::-1])
        assert np.array_equal(value("Y(i,2) = B(i)", B=stored), np.c_[0 * B, 0 * B, B])
        assert np.array_equal(value("Y(i,i+1) = B(i)", B=stored), np.eye(8, 9, 1) * B[:, None])
        assert np.array_equal(value("y(i+1) += B(i)", B=stored, y=np.ones(9)), np.r_[1, B + 1])
        assert np.array_equal(value("y(i+j) = B(i)", shape={"j": 2}, B=stored), np.r_[B, 0] + np.r_[0, B])


def test_shapes_of_results_may_be_given_whole() -> None:
    assert st.evaluate("Y(i,j) = B(i)", {"B": B}, shape={"Y": (8, 2)}).shape == (8, 2)
    with pytest.raises(st.ShapeError, match="index 'i' has"):
        st.evaluate("Y(i,j) = B(i)", {"B": B}, shape={"Y": (7, 2)})


def test_the_convolution_and_its_transposition_are_adjoint() -> None:
    rng = np.random.default_rng(3)
    x, weights = rng.random(40) * (rng.random(40) < 0.3), rng.random(4)
    y = value("y(i) = x(3*i+2*j) * F(j)", x=st.tensor(x, "s"), F=weights)
    v = rng.random(len(y))
    back = value("z(3*i+2*j) = v(i) * F(j)", shape={"z": (40,)}, v=v, F=weights)
    assert np.isclose(y @ v, x @ back, rtol=1e-14)


def test_semirings_hold_their_identity_where_nothing_is() -> None:
    stored = st.tensor((np.array([[1, 4]]), np.array([-3.0, 7])), "s", (8,), fill_value=-np.inf)
    found = st.evaluate("y(i) = B(i+j) * W(j)", {"B": stored, "W": np.zeros(2)}, semiring=("max", "+"), schedule="default")
    assert np.array_equal(found, [-3, -3, -np.inf, 7, 7, -np.inf, -np.inf])


def test_functions_and_quotients_see_what_is_read_outside() -> None:
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = B / shifted(B, 1)
    assert np.array_equal(value("y(i) = B(i) / B(i+1)", B=B), wanted, equal_nan=True)
    assert np.array_equal(value("y(i) = exp(B(i+1)) - B(i)", B=B), np.exp(shifted(B, 1)) - B)
    assert np.array_equal(value("y(i) = max(B(i+1), B(i))", B=st.tensor(B, "s")), np.maximum(shifted(B, 1), B))


def test_compiled_kernels_know_their_boundary_and_shape() -> None:
    kernel = st.compile("y(i) = B(i+j) * F(j)", {"B": "s"}, shape={"i": 9}, boundary="wrap")
    weights = np.array([1.0, 2])
    bound = kernel.bind(B=st.tensor(B, "s"), F=weights)
    wanted = [sum(B[(i + j) % 8] * weights[j] for j in range(2)) for i in range(9)]
    assert np.array_equal(bound(), wanted)
    assert bound.count()["flops"] > 0
    assert "B(i + j) * F(j)" in kernel.loop_nest
    assert len(st.compile("y(i) = B(i+j) * F(j)", {"B": "s"})(B=st.tensor(B, "s"), F=weights)) == 7
    with pytest.raises(st.ExpressionError, match=r"operand 'F' of .* is missing"):
        st.compile("y(2*i) = B(i) * F(i)")(B=B)


@pytest.mark.parametrize("kind", ["s", "n", "p", "d"])
@pytest.mark.parametrize("order", ["i, j", "j, i"])
def test_what_wraps_goes_around_as_often_as_it_is_asked_to(kind: str, order: str) -> None:
    weights = np.array([1.0, 10, 100])
    for length in (0, 1, 8, 21):
        for expression, place in (("y(i) = B(i+j-3) * F(j)", (1, 1, -3)), ("y(i) = B(2*i+3*j) * F(j)", (2, 3, 0))):
            found = st.evaluate(
                expression, {"B": st.tensor(B, kind), "F": weights}, schedule=f"reorder({order})", shape={"i": length},
                boundary="wrap", target="interpreter",
            )  # fmt: skip
            i, j = np.ogrid[:length, :3]
            assert np.array_equal(found, (B[(place[0] * i + place[1] * j + place[2]) % 8] * weights).sum(axis=1))
    empty = {"B": st.tensor(np.zeros(0), kind), "F": weights}
    assert st.evaluate("y(i) = B(i+j) * F(j)", empty, schedule="default", shape={"i": 0}, boundary="wrap").shape == (0,)


@pytest.mark.parametrize("form", ["csr", "dcsr", "coo", "sp"])
@pytest.mark.parametrize("order", ["i, j, p, q", "p, q, i, j", "p, i, q, j", "i, p, q, j", "p, i, j, q", "j, i, p, q"])
def test_loops_may_stand_in_any_order_that_storage_admits(form: str, order: str) -> None:
    operands = {"A": st.tensor(MATRIX * 1.0, form), "F": np.arange(1.0, 7).reshape(2, 3)}
    wanted = sum(operands["F"][p, q] * MATRIX[p : p + 6, q : q + 6] for p in range(2) for q in range(3))
    found = st.evaluate(IMAGE, operands, schedule=f"reorder({order})", target="interpreter", convert="never")
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize(
    ("directive", "reason"),
    [
        ("pos(q, z, A)", "no loop goes through all its positions"),
        ('convert(A(i,p,j,q), 0, "csc")', "all its reads are converted together"),
        ("reorder(j, q, i, p)", "this order runs through"),
    ],
)
def test_schedules_that_views_do_not_take_are_refused(directive: str, reason: str) -> None:
    with pytest.raises(st.ScheduleError, match=reason):
        st.compile(IMAGE, {"A": "csr"}, schedule=directive)


@pytest.mark.parametrize("directive", ["parallelize(i, cpu_thread, no_races)", "split(i, a, b, 4); parallelize(a, cpu_thread, no_races)"])
def test_rows_of_results_are_dealt_to_threads(directive: str) -> None:
    operands = {"A": st.tensor(MATRIX * 1.0, "csr"), "F": np.ones((2, 3))}
    found = st.evaluate(IMAGE, operands, schedule=directive, threads=2)
    assert np.array_equal(found, st.evaluate(IMAGE, operands, schedule="default"))


@pytest.mark.parametrize("order", ["i, j, y1", "i, y1, j", "y1, i, j", "y1, j, i", "j, y1, i", "j, i, y1"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_scatters_does_so_in_any_order(kind: str, order: str) -> None:
    operands = {"B": st.tensor(B, kind), "F": np.array([1.0, 10, 100])}
    found = st.evaluate("y(2*i+3*j) = B(i) * F(j)", operands, schedule=f"reorder({order})", target="interpreter")
    wanted = np.zeros(21)
    for i, j in np.ndindex(8, 3):
        wanted[2 * i + 3 * j] += B[i] * operands["F"][j]
    assert np.array_equal(found, wanted)


def test_kernels_may_choose_their_schedule() -> None:
    operands = {"B": st.tensor(B, "s"), "F": np.ones(2)}
    assert np.array_equal(st.compile("y(i) = B(i+j) * F(j)", {"B": "s"}, schedule="auto")(**operands), B[:-1] + B[1:])


@pytest.mark.parametrize(
    ("expression", "form", "order"),
    [
        ("y(2*i+1) = A(i,j) * x(j)", "csr", "i, y1, j"),
        ("y(7-i) = A(i,j) * x(j)", "csr", "i, y1, j"),
        ("y(2*i+j) = A(i,j) * x(j)", "dense", "j, i, y1"),
        ("Y(i+j,j) = A(i,j) * x(j)", "csr", "i, j, Y1"),
    ],
)
def test_indices_in_subscripts_of_results_choose_components(expression: str, form: str, order: str) -> None:
    """No two values of the index write one component, unless another index of the subscript changes inside its loop."""
    operands = {"A": st.tensor(MATRIX * 1.0, form), "x": np.arange(1.0, MATRIX.shape[1] + 1)}
    kernel = st.compile(expression, {"A": form}, schedule=f"reorder({order}); parallelize(i, cpu_thread, no_races)")
    assert "st_atomic" not in kernel.source
    assert np.array_equal(kernel(**operands), st.evaluate(expression, operands, schedule="default"))


def test_sums_of_indices_that_change_together_may_be_equal() -> None:
    for expression in ("y(i+j) = A(i,j) * x(j)", "Y(i+j,k) = A(i,j) * X(j,k)"):
        with pytest.raises(st.ScheduleError, match="iterations of i write the same components"):
            st.compile(expression, {"A": "csr"}, schedule="parallelize(i, cpu_thread, no_races)")
