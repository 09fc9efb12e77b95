"""Work counted by the interpreter: galloping is logarithmic, hypersparse operands cost what they store, not their extents."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from differential.interpreted import interpreted
from sparsetune.compiler.ir.evaluate import Counts
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.storage.construct import tensor
from sparsetune.compiler.storage.tensor import Tensor

MILLION = 1_000_000


def vector(coordinates: np.ndarray, extent: int) -> Tensor:
    return tensor((coordinates[None], np.ones(len(coordinates))), "compressed", (extent,))


def few(rng: np.random.Generator, form: str, extent: int = MILLION, count: int = 40) -> Tensor:
    """Return a matrix of some entries scattered over a huge shape, a few of them in common rows and columns."""
    coordinates = rng.integers(0, extent, (2, count))
    coordinates[:, : count // 2] %= 8
    return tensor((coordinates, rng.integers(1, 9, count).astype(float)), form, (extent, extent))


def counted(expression: str, formats: dict[str, str], operands: dict[str, Any], schedule: str = "") -> tuple[Any, Counts]:
    bound = compile_kernel(expression, formats, schedule=schedule).bind_operands(operands, 1)
    return interpreted(bound)


def merge_steps(counts: Counts) -> int:
    """Return passes of loops and coordinates that searches look at."""
    return counts.iterations + counts.probes


def spread(kind: str, rng: np.random.Generator, extent: int) -> np.ndarray:
    match kind:
        case "anywhere":
            return np.sort(rng.choice(extent, 100, replace=False))
        case "even":
            return np.arange(100) * (extent // 100)
        case "beginning":
            return np.arange(100)
        case "end":
            return extent - 100 + np.arange(100)
        case _:
            return np.sort(np.unique((extent * rng.random(100) ** 6).astype(int)))


@pytest.mark.parametrize("kind", ["anywhere", "even", "beginning", "end", "skewed"])
@pytest.mark.parametrize("swapped", [False, True])
def test_galloping_through_a_long_list(kind: str, swapped: bool) -> None:
    rng = np.random.default_rng(len(kind))
    length, extent = MILLION, 3 * MILLION
    short, long = spread(kind, rng, extent), np.sort(rng.choice(extent, length, replace=False))
    names = ("B", "A") if swapped else ("A", "B")
    operands = dict(zip(names, (vector(short, extent), vector(long, extent)), strict=True))
    formats = {"A": "compressed", "B": "compressed"}
    result, counts = counted("y = A(i) * B(i)", formats, operands)
    assert result == len(np.intersect1d(short, long))
    assert merge_steps(counts) <= 100 * (2 + math.log2(length))


def test_two_fingers_and_locating_are_choices() -> None:
    rng = np.random.default_rng(5)
    short, long = np.sort(rng.choice(5000, 10, replace=False)), np.arange(0, 5000, 2)
    operands, formats = {"A": vector(short, 5000), "B": vector(long, 5000)}, {"A": "compressed", "B": "compressed"}
    steps = {}
    for how in ("two_finger", "gallop", "locate"):
        result, counts = counted("y = A(i) * B(i)", formats, operands, f"merge(i, {how})")
        assert result == len(np.intersect1d(short, long))
        steps[how] = merge_steps(counts)
    assert steps["two_finger"] > 2000
    assert steps["gallop"] < 200
    assert steps["locate"] <= 10 * (1 + math.ceil(math.log2(2501)))


HYPERSPARSE = [
    ("C(i,j) = A(i,j) + B(i,j)", {"A": "dcsr", "B": "dcsr", "C": "dcsr"}),
    ("C(i,j) = A(i,j) * B(i,j)", {"A": "dcsr", "B": "dcsr", "C": "dcsr"}),
    ("C(i,j) = A(i,j) - 2 * B(i,j)", {"A": "coo", "B": "coo", "C": "coo"}),
    ("C(j,i) = A(i,j)", {"A": "dcsr", "C": "dcsr"}),
    ("C(i,j) = A(i,k) * B(k,j)", {"A": "dcsr", "B": "dcsr", "C": "dcsr"}),
    ("C(i,j) = A(i,k) * B(k,j)", {"A": "dcsr", "B": "csr", "C": "dcsr"}),
    ("C(i,j) = A(i,k) * B(j,k)", {"A": "dcsr", "B": "dcsr", "C": "dcsr"}),
    ("y(i) = A(i,j) * B(i,j)", {"A": "dcsr", "B": "dcsr", "y": "compressed"}),
    ("s = A(i,j) * B(i,j)", {"A": "dcsr", "B": "csr"}),
    ("s = A(i,j) * B(j,i)", {"A": "dcsr", "B": "dcsr"}),
]


@pytest.mark.parametrize(("expression", "formats"), HYPERSPARSE)
def test_hypersparse_work_is_proportional_to_entries(expression: str, formats: dict[str, str]) -> None:
    work = {}
    for extent in (1000, MILLION):
        rng = np.random.default_rng(3)
        operands = {name: few(rng, formats[name], extent) for name in ("A", "B") if f"{name}(" in expression}
        _, counts = counted(expression, formats, operands)
        work[extent] = counts.iterations + counts.loads + counts.stores
    assert work[MILLION] <= 1.3 * work[1000] + 200
    assert work[MILLION] < 20_000


def test_a_sum_of_five_matrices_compiles_to_little_code() -> None:
    names = "BCDEF"
    expression = "A(i,j) = " + " + ".join(f"{name}(i,j)" for name in names)
    for form in ("csr", "dcsr", "coo"):
        source = compile_kernel(expression, dict.fromkeys((*names, "A"), form)).source
        assert len(source.splitlines()) < 1500


def test_which_of_two_is_ahead_is_asked_once() -> None:
    source = compile_kernel("C(i,j) = A(i,j) + B(i,j)", dict.fromkeys("ABC", "csr")).source
    assert "if (j_A == j_B) {" in source
    assert "} else if (j_A < j_B) {" in source
    assert "st_min" not in source


def test_scattered_rows_are_asked_for_ahead() -> None:
    source = compile_kernel("C(i,j) = A(i,k) * B(k,j)", dict.fromkeys("ABC", "csr")).source
    asked = [array for array in ("A2_crd", "B2_pos", "B2_crd", "B_vals") if f"st_prefetch({array}, " in source]
    assert asked == ["B2_pos", "B2_crd", "B_vals"]


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_a_transposition_takes_over_the_pattern_and_is_converted(form: str) -> None:
    rng = np.random.default_rng(1)
    dense = rng.integers(1, 9, (30, 20)) * (rng.random((30, 20)) < 0.3)
    matrix = tensor(dense.astype(float), form)
    compiled = compile_kernel("C(j,i) = A(i,j)", {"A": form, "C": form})
    found = compiled(A=matrix)
    assert str(found.format) == str(matrix.format)
    assert (found.to_numpy() == dense.T).all()
    assert (matrix.to_numpy() == dense).all()


@pytest.mark.parametrize("kind", ["list", "hashed"])
@pytest.mark.parametrize("modes", [1, 2])
def test_a_workspace_that_is_only_located_is_neither_sorted_nor_searched(kind: str, modes: int) -> None:
    rng = np.random.default_rng(7)
    shape = (6, 40, 50)[: modes + 1]
    dense = rng.integers(1, 9, shape) * (rng.random(shape) < 0.4)
    other = rng.integers(1, 9, shape[1:]) * (rng.random(shape[1:]) < 0.3)
    indices = ",".join("jl"[:modes])
    formats = {"B": "csf", "D": "csf" if modes == 2 else "compressed"}
    operands = {name: tensor(array.astype(float), formats[name]) for name, array in (("B", dense), ("D", other))}
    schedule = f"precompute(B(i,{indices}), [{indices}], [{indices}], w); workspace(w, {kind}); protocol(w, {{}})"
    expression = f"y = B(i,{indices}) * D({indices})"
    stepped, located = (counted(expression, formats, operands, schedule.format(", ".join([how] * modes))) for how in ("step", "locate"))
    assert stepped[0] == located[0] == (dense * other).sum()
    source = compile_kernel(expression, formats, schedule=schedule.format(", ".join(["locate"] * modes))).source
    assert "st_sort" not in source
    assert located[1].iterations <= np.count_nonzero(dense) * 2 + np.count_nonzero(other) + 100
    searches = np.count_nonzero(dense) + np.count_nonzero(other) if kind == "hashed" else 0
    assert located[1].probes <= searches
