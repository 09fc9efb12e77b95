"""Semirings, dtypes and extents that a caller gives: what they mean, that they are tuned, and that records are kept by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.tuner.legality import is_legal
from sparsetune.tuner.measure.patterns import stored_places
from sparsetune.tuner.measure.semirings import evaluate_semiring
from sparsetune.tuner.measure.verify import oracle_difference
from sparsetune.tuner.resolve import make_problem

RNG = np.random.default_rng(1)
MATRIX = sp.csr_array(sp.random_array((30, 20), density=0.2, format="csr", rng=RNG))
X = RNG.random((20, 6))
SPMM = "Y(i,k) = A(i,j) * X(j,k)"
WHERE = MATRIX.toarray() != 0


def by_hand(add: np.ufunc, multiply: np.ufunc, zero: float) -> np.ndarray[Any, Any]:
    """Return the product of ``MATRIX`` and ``X`` in a semiring."""
    products = multiply(MATRIX.toarray()[:, :, None], X[None])
    return add.reduce(np.where(WHERE[:, :, None], products, zero), axis=1, initial=zero).astype(float)


SEMIRINGS = {
    ("min", "+"): by_hand(np.minimum, np.add, np.inf),
    ("max", "+"): by_hand(np.maximum, np.add, -np.inf),
    ("max", "min"): by_hand(np.maximum, np.minimum, -np.inf),
    ("or", "and"): by_hand(np.logical_or, np.logical_and, 0),
    ("+", "*"): MATRIX @ X,
}


@pytest.mark.parametrize("semiring", SEMIRINGS)
def test_meaning(semiring: tuple[str, str]) -> None:
    operands = {"A": st.tensor(MATRIX), "X": st.tensor(X)}
    stored = {name: stored_places(operand) for name, operand in operands.items()}
    dense = {name: operand.to_numpy() for name, operand in operands.items()}
    found = evaluate_semiring(parse(SPMM), dense, {"i": 30, "j": 20, "k": 6}, stored, semiring)
    np.testing.assert_allclose(found, SEMIRINGS[semiring], rtol=1e-14)


@pytest.mark.parametrize("semiring", SEMIRINGS)
def test_a_wrong_result_is_told_from_a_right_one(semiring: tuple[str, str]) -> None:
    operands, extents, right = {"A": st.tensor(MATRIX), "X": st.tensor(X)}, {"i": 30, "j": 20, "k": 6}, SEMIRINGS[semiring]
    assert oracle_difference(parse(SPMM), right, operands, extents, semiring) is None
    wrong = np.where(np.arange(180).reshape(30, 6) == 77, right + 0.5, right)
    wrong[0, 0] = 7.5
    assert oracle_difference(parse(SPMM), wrong, operands, extents, semiring) is not None


def test_added_sums_and_integers_that_are_infinite() -> None:
    kind = np.iinfo(np.int32)
    operands = {"y": np.array([1, 5], np.int32), "A": np.array([[kind.max, 2], [4, 9]], np.int32), "x": np.array([3, 7], np.int32)}
    stored = {name: np.ones(array.shape, np.bool_) for name, array in operands.items()}
    found = evaluate_semiring(parse("y(i) += A(i,j) * x(j)"), operands, {"i": 2, "j": 2}, stored, ("min", "+"))
    assert found.tolist() == [1, 5]
    assert found.dtype == np.int32
    found = evaluate_semiring(parse("y(i) = A(i,j) * x(j)"), operands, {"i": 2, "j": 2}, stored, ("min", "+"))
    assert found.tolist() == [9, 7]


def test_values_may_forbid_what_hoists_factors_out_of_sums() -> None:
    operands = {"A": MATRIX, "X": X}
    hoists = Schedule("precompute(A(i,j) * X(j,k), k, k, w)")
    tiles = Schedule("split(i, i0, i1, 4)")
    assert is_legal(make_problem(SPMM, operands, threads=1), hoists)
    assert is_legal(make_problem(SPMM, operands, threads=1, semiring=("min", "+")), hoists)
    below_zero = make_problem(SPMM, operands, threads=1, semiring=("max", "*"))
    assert not is_legal(below_zero, hoists)
    assert is_legal(below_zero, tiles)


@pytest.mark.cc
@pytest.mark.parametrize(
    "meant", [{"semiring": ("min", "+")}, {"dtype": "float32"}], ids=str
)
def test_tuned_and_looked_up_by_what_is_meant(meant: dict[str, Any], tmp_path: Path) -> None:
    database, operands = str(tmp_path / "s.sqlite"), {"A": MATRIX, "X": X}
    found = st.tune(SPMM, operands, trials=4, threads=1, database=database, schedules=["unroll(j, 2)"], **meant)
    assert set(found.trials["status"]) == {"ok"}
    places = {"threads": 1, "database": database}
    assert st.lookup(SPMM, operands, **meant, **places).origin == "exact"
    assert st.lookup(SPMM, operands, **places).origin != "exact"
    assert st.lookup(SPMM, operands, semiring=("max", "+"), **places).origin != "exact"
    right = st.evaluate(SPMM, operands, schedule="default", **meant)
    np.testing.assert_allclose(st.evaluate(SPMM, operands, **meant, **places), right, rtol=1e-6)
    again = st.tune(SPMM, operands, trials=4, threads=1, database=database, schedules=["unroll(j, 2)"], **meant)
    assert again.best == found.best


@pytest.mark.cc
def test_extents_that_no_operand_gives(tmp_path: Path) -> None:
    database = str(tmp_path / "s.sqlite")
    found = st.tune("Y(i,k) = A(i,j)", {"A": MATRIX}, trials=2, threads=1, database=database, shape={"k": 4})
    assert found.problem.extents["k"] == 4
    for extent, origin in ((4, {"exact"}), (9, {"similar", "model", "default"})):
        assert st.lookup("Y(i,k) = A(i,j)", {"A": MATRIX}, threads=1, database=database, shape={"k": extent}).origin in origin
    with pytest.raises(st.ShapeError, match="k"):
        st.lookup("Y(i,k) = A(i,j)", {"A": MATRIX}, database=database)


@pytest.mark.cc
def test_from_the_shell(call, tmp_path: Path) -> None:
    sp.save_npz(tmp_path / "a.npz", MATRIX)
    np.save(tmp_path / "x.npy", X[:, 0])
    given = ["y(i) = A(i,j) * x(j)", "-i", f"A={tmp_path / 'a.npz'}", "-i", f"x={tmp_path / 'x.npy'}", "--semiring", "min,+"]
    kept = [*given, "--db", str(tmp_path / "s.sqlite"), "--threads", "1"]
    for command, said in (("tune", "trials"), ("lookup", "exact"), ("run", "(exact)")):
        options = ["--trials", "2"] if command == "tune" else ["-o", str(tmp_path / "y.npy")] if command == "run" else []
        status, out, err = call(command, *kept, *options)
        assert status == 0, err
        assert said in out
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), SEMIRINGS["min", "+"][:, 0])
    for wrong, said in (("min", "two operators"), ("min,max,+", "unknown semiring"), ("plus,times", "unknown semiring")):
        status, _, err = call("lookup", *given[:-1], wrong)
        assert status == 2
        assert said in err
