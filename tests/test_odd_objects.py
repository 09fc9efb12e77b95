"""Whatever is given as an operand, the result is right or one clear line says what is wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import odd_containers
import odd_objects
import pytest
import scipy.sparse as sp
import sparsetune as st

pytestmark = pytest.mark.filterwarnings("ignore")  # of NumPy and torch about the objects

M = odd_objects.MATRIX
CSR = sp.csr_array(M)
ONES = np.ones(4)
SPMV, SPMM, SDDMM = "y(i) = A(i,j) * x(j)", "Y(i,k) = A(i,j) * X(j,k)", "S(i,j) = A(i,j) * U(i,k) * V(j,k)"
QUICK = 'build(auto, "-O0")'
Way = tuple[Callable[[Any], Any], Callable[[Any], Any]]


@pytest.fixture(scope="module")
def ways() -> dict[str, Way]:
    """By name: what is done with an object, and what that gives for the array that it stands for."""
    spmv, spmm = (st.compile(text, {"A": "csr"}, schedule=QUICK) for text in (SPMV, SPMM))

    def evaluate(text: str, **operands: Any) -> Any:
        return st.evaluate(text, operands, schedule=QUICK)

    return {
        "tensor": (lambda given: st.tensor(given).to_numpy(), lambda array: array),
        "evaluate A": (lambda given: evaluate(SPMV, A=given, x=ONES), lambda array: array @ ONES),
        "evaluate x": (lambda given: evaluate(SPMV, A=CSR, x=given), lambda array: M @ array),
        "evaluate X": (lambda given: evaluate(SPMM, A=CSR, X=given), lambda array: M @ array),
        "evaluate U": (lambda given: evaluate(SDDMM, A=CSR, U=given, V=M), lambda array: M * (array @ M.T)),
        "kernel A": (lambda given: spmv(A=given, x=ONES), lambda array: array @ ONES),
        "kernel x": (lambda given: spmv(A=CSR, x=given), lambda array: M @ array),
        "kernel X": (lambda given: spmm(A=CSR, X=given), lambda array: M @ array),
        "bind A": (lambda given: spmv.bind(A=given, x=ONES)(), lambda array: array @ ONES),
        "bind x": (lambda given: spmv.bind(A=CSR, x=given)(), lambda array: M @ array),
    }


OBJECTS = {**odd_objects.objects(), **odd_containers.containers()}
GROUPS = [sorted(OBJECTS)[part::16] for part in range(16)]


@pytest.mark.cc
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: f"{group[0]} ...")
def test_an_odd_object_is_read_rightly_or_refused_in_one_line(group: list[str], ways: dict[str, Way]) -> None:
    accepted = 0
    for name in group:
        for way, (run, right) in ways.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    found = run(OBJECTS[name]())
                except st.SparsetuneError as error:
                    first = str(error).partition("\n")[0]
                    assert 10 < len(first) < 500, (name, way, first)
                    continue
                except Exception as error:
                    raise AssertionError(f"{way} of {name!r}: {type(error).__name__}: {error}") from error
            expected = right(odd_objects.stands_for(OBJECTS[name]()))
            assert np.shape(found) == expected.shape, (name, way)
            assert np.allclose(found, expected, rtol=1e-3, equal_nan=True), (name, way)
            accepted += 1
    assert accepted


def test_tune_refuses_what_evaluate_refuses() -> None:
    refused = 0
    for name in sorted(OBJECTS):
        try:
            st.tensor(OBJECTS[name]())
        except st.SparsetuneError:
            refused += 1
            with pytest.raises(st.SparsetuneError):
                st.tune(SPMV, {"A": OBJECTS[name](), "x": ONES}, trials=1)
    assert refused


def test_there_are_hundreds() -> None:
    assert len(OBJECTS) > 800  # as many as NumPy, SciPy and pandas alone give; other installed libraries add theirs
