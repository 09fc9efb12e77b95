"""``costs`` of compiled expressions: Figure 2 of SparseAuto, and what counting builds count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sparsetune as st

FIGURE_2 = "A(l,m,n) = B(i,j,k) * C(i,l) * D(j,m) * E(k,n)"
NESTS = {
    "": (6, 0),
    "reorder(l,m,i,j,k,n); loopfuse(3,true,[]); reorder([1],n,k)": (5, 1),
    "reorder(l,i,j,k,m,n); loopfuse(2,true,[]); reorder([1],m,k,j,n)": (5, 2),
    "reorder(l,i,j,k,m,n); loopfuse(2,true,[]); reorder([1],m,k,j,n); loopfuse(2,true,[1])": (4, 2),
    "reorder(l,i,j,k,m,n); loopfuse(2,true,[]); reorder([1],m,j,k,n); loopfuse(2,true,[1])": (4, 2),
}
EXTENTS = {"i": 7, "j": 6, "k": 5, "l": 4, "m": 3, "n": 2, "r": 4}


def values(operands: dict[str, Any], sparse: str) -> dict[str, int]:
    found: dict[str, int] = dict(EXTENTS)
    for number, level in enumerate(operands[sparse].levels, 1):
        if level.crd is not None:
            found[f"nnz_{sparse}_{number}"] = len(level.crd)
    return found


def dense(*shape: int) -> np.ndarray:
    return np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)


def sparse(form: str, *shape: int) -> st.Tensor:
    source = np.random.default_rng(5)
    return st.tensor(source.integers(1, 4, shape) * (source.random(shape) < 0.3).astype(float), form)


@pytest.mark.parametrize("schedule", NESTS)
def test_figure_2(schedule: str) -> None:
    operands = {"B": sparse("csf", 7, 6, 5), "C": dense(7, 4), "D": dense(6, 3), "E": dense(5, 2)}
    kernel = st.compile(FIGURE_2, formats={"B": "csf"}, schedule=schedule)
    costs = kernel.costs
    assert (costs["loop_depth"], costs["memory_depth"]) == NESTS[schedule]
    counted = kernel.bind(**operands, threads=1).count()
    assert eval(str(costs["memory"]), values(operands, "B")) == counted["workspace"]
    assert 0.5 * counted["flops"] <= eval(str(costs["time"]), values(operands, "B")) <= counted["flops"]


@pytest.mark.parametrize(
    ("expression", "form", "schedule", "time", "memory"),
    [
        ("A(i,r) = B(i,j,k) * C(j,r) * D(k,r)", "csf", "", "3 * nnz_B_3 * r", "0"),
        ("A(i,r) = B(i,j,k) * C(j,r) * D(k,r)", "csf", "precompute(B(i,j,k) * D(k,r), r, r, w)", "2 * nnz_B_2 * r + 2 * nnz_B_3 * r", "r"),
        ("A(i,r) = B(i,j) * C(j,r)", "csr", "", "2 * nnz_B_2 * r", "0"),
        ("A(i,r) = B(i,j) * C(j,r)", "csr", "split(i, i0, i1, 4); parallelize(i0, cpu_thread, no_races)", "2 * nnz_B_2 * r", "0"),
        ("A(i,r) = B(i,j) * C(j,r)", "ds", "parallelize(i, cpu_thread, no_races)", "2 * nnz_B_2 * r", "0"),
        ("A(i,j) = B(i,j) + D(i,j)", "csr", "", "i * j", "0"),
    ],
)
def test_costs_are_texts(expression: str, form: str, schedule: str, time: str, memory: str) -> None:
    costs = st.compile(expression, formats={"B": form}, schedule=schedule).costs
    assert (costs["time"], costs["memory"]) == (time, memory)
