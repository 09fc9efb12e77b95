"""Mappings to a GPU whose lanes hold tiles of a dense loop: they are listed where they fit, and right."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest
import sparsetune as st
from sparsetune.tuner.model import problem_candidates
from sparsetune.tuner.resolve import make_problem

RNG = np.random.default_rng(3)
MATRIX = RNG.random((9, 7)) * (RNG.random((9, 7)) < 0.4)
TENSOR = RNG.random((5, 6, 7)) * (RNG.random((5, 6, 7)) < 0.3)
SPMM = ("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}, None, {"A": MATRIX, "X": RNG.random((7, 8))}, "ij,jk->ik")
SDDMM = (
    "Z(i,j) = A(i,j) * C(i,k) * D(j,k)", {"A": "csr"}, "csr", {"A": MATRIX, "C": RNG.random((9, 8)), "D": RNG.random((7, 8))},
    "ij,ik,jk->ij",
)  # fmt: skip
TTM = ("T(i,j,l) = B(i,j,k) * C(k,l)", {"B": "csf"}, "compressed, compressed, dense", {"B": TENSOR, "C": RNG.random((7, 8))}, "ijk,kl->ijl")
MTTKRP = (
    "A(i,r) = B(i,j,k) * C(j,r) * D(k,r)", {"B": "csf"}, None, {"B": TENSOR, "C": RNG.random((6, 8)), "D": RNG.random((7, 8))},
    "ijk,jr,kr->ir",
)  # fmt: skip
SLICES = (MTTKRP[0], {"B": "dense, compressed, compressed"}, *MTTKRP[2:])
LISTED = {
    "SpMM": (SPMM, {"tiles of rows to threads", "rows to warps, tiles to threads", "entries to warps, tiles to threads"}),
    "SDDMM": (SDDMM, {"rows to warps, sums to threads by tiles", "entries to warps, sums to threads by tiles"}),
    "TTM": (TTM, {"fibres to warps, tiles to threads", "entries to warps, tiles to threads"}),
    "MTTKRP": (MTTKRP, {"rows to warps, tiles to threads", "entries to warps, tiles to threads"}),
    "MTTKRP of full slices": (SLICES, {"tiles of rows to threads", "rows to warps, tiles to threads"}),
}


def listed(expression: str, forms: dict[str, str], result: str | None, given: dict[str, Any]) -> list[Any]:
    stored = {name: st.tensor(data, forms[name]) if name in forms else data for name, data in given.items()}
    found = problem_candidates(make_problem(expression, stored, result, "cuda", arch="sm_90"))
    return [one for one in found if "tiles" in one.origin]


@pytest.mark.cc
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
@pytest.mark.parametrize("name", LISTED)
def test_tiles_are_listed_and_right(name: str) -> None:
    (expression, forms, result, given, subscripts), wanted = LISTED[name]
    found = listed(expression, forms, result, given)
    assert wanted <= {next((origin for origin in wanted if one.origin.endswith(origin)), "") for one in found}
    expected = np.einsum(subscripts, *given.values())
    operands = {key: st.tensor(data, forms[key]) if key in forms else data for key, data in given.items()}
    for one in found:
        last = {hole.name: hole.choices[-1] for hole in one.template.holes}
        for schedule in dict.fromkeys((str(one.template.fill()), str(one.template.fill(last)))):
            done = st.evaluate(expression, operands, output_format=result, schedule=schedule, target="cuda-executor")
            assert np.allclose(done.to_numpy() if hasattr(done, "to_numpy") else done, expected), schedule


def test_columns_that_tiles_do_not_divide_have_none() -> None:
    expression, forms, result, given, _ = SPMM
    assert not listed(expression, forms, result, given | {"X": RNG.random((7, 6))})


def test_threads_get_no_tiles_of_rows_that_are_stored() -> None:
    """They would get the rows whole: 16 tiles of 200,000 slices took 20 times as long as with a slice to half a warp."""
    expression, forms, result, given, _ = MTTKRP
    assert not any(one.origin.endswith("tiles of rows to threads") for one in listed(expression, forms, result, given))
