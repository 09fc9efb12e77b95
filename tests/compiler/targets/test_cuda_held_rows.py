"""Rows of products that a thread of a GPU holds are added up in one pass over them, which stops where rows end."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sparsetune as st
from differential import gpu
from differential.gpu_mappings import SPMV, dense
from differential.whole_numbers import reference
from numpy.typing import NDArray
from sparsetune.compiler.format import parse_format
from sparsetune.compiler.storage.on_device import DeviceArray, DeviceLevel, DeviceTensor

pytestmark = pytest.mark.cc
needs_cxx = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
MATRIX = "collapse(i, j, f); pos(f, p, A(i,j)); "
TENSOR = "collapse(i, j, e); collapse(e, k, f); pos(f, p, B(i,j,k)); "
SHARES = (
    "split(p, b, q, 64); split(q, t, n, {held}); precompute({product}, n, m, w); unroll(m, {held});"
    " parallelize(b, gpu_block, {blocks}); parallelize(t, gpu_thread, {race})"
)
ROWS: tuple[tuple[str, str, str], ...] = (
    (SPMV, "A=csr", MATRIX),
    (SPMV, "A=dcsr", MATRIX),
    ("y(j) = A(i,j) * x(i)", "A=csc", MATRIX.replace("i, j, f", "j, i, f")),
    ("y(i) = B(i,j,k) * c(k)", "B=csf", TENSOR),
    ("T(i,j) = B(i,j,k) * c(k)", "B=csf", TENSOR),
    ("T(i,j) = B(i,j,k) * c(k)", "B=dss", TENSOR),
)
"""Sums by rows of one and of several levels."""
ROWLESS: tuple[tuple[str, str, str], ...] = (("a = A(i,j) * x(j)", "A=csr", MATRIX), ("y(k) = B(i,j,k) * c(k)", "B=csf", TENSOR))


def schedule(expression: str, positions: str, race: str = "atomics", held: int = 8) -> str:
    blocks = "no_races" if race == "atomics" else race
    return positions + SHARES.format(held=held, product=expression.split(" = ")[1], blocks=blocks, race=race)


def formats(text: str) -> dict[str, str]:
    return dict(part.split("=") for part in text.split())


def sparse(rng: np.random.Generator, shape: tuple[int, ...], pattern: str) -> NDArray[np.float64]:
    """Return whole numbers whose rows end where shares do, in the middle of them, several in one share, or one beyond many blocks."""
    values, flat = rng.integers(1, 5, shape).astype(float), (-1, shape[-1])
    lengths = np.zeros(values.reshape(flat).shape[0], int)
    match pattern:
        case "short":
            lengths = rng.integers(0, 4, len(lengths))
        case "eight each":
            lengths[:] = 8
        case "one row":
            lengths[len(lengths) // 2] = shape[-1]
        case "between empty ones":
            lengths[:: max(2, len(lengths) // 3)] = 5
        case "any":
            lengths = np.minimum(rng.geometric(0.05, len(lengths)) - 1, shape[-1])
    kept = np.arange(shape[-1]) < lengths[:, None]
    return values * rng.permuted(kept, axis=1).reshape(shape)


PATTERNS = ("short", "eight each", "one row", "between empty ones", "any", "none")


def test_places_are_gone_through_once() -> None:
    for expression, form, positions in ROWS[:3]:
        text = st.compile(expression, formats(form), schedule=schedule(expression, positions), target="cuda", arch="sm_90").source
        passes = re.findall(r"if \(st_has_place\(places\w*, (\w+)\) && \(int32_t\)\1 == row_end", text)
        assert len(passes) == 3, text  # whole shares in whole blocks and in the last one, and the last share
        assert "while (" not in text.split("#if ST_HOST")[0]
        assert text.count("st_gallop_") == 3


def test_ends_of_outer_rows_are_looked_for_where_inner_ones_end() -> None:
    text = st.compile(ROWS[3][0], {"B": "csf"}, schedule=schedule(ROWS[3][0], TENSOR), target="cuda", arch="sm_90").source
    found = text.index("== row_end")
    assert "while (" not in text
    assert "<= at_B2) {" in text[found:]
    assert text.index("st_atomic_add(y_vals, i", found) > text.index("<= at_B2) {", found)


@needs_cxx
@pytest.mark.parametrize("race", ["atomics", "temporary"])
@pytest.mark.parametrize("held", [4, 8, 32])
def test_rows_that_begin_and_end_anywhere(race: str, held: int, tmp_path: Path) -> None:
    cases = ROWS if race == "temporary" else (*ROWS, *ROWLESS)
    made = [st.compile(text, formats(form), schedule=schedule(text, by, race, held), target=gpu.TARGET) for text, form, by in cases]
    gpu.build([kernel.default_kernel for kernel in made], tmp_path, "rows")
    rng = np.random.default_rng(0)
    for kernel, (expression, form, _) in zip(made, cases, strict=True):
        for pattern in PATTERNS:
            for rows in (1, 30, 150):
                extents = {"i": rows if "A(" in expression else 5, "j": 300 if "A(" in expression else rows, "k": 40}
                arrays = _arrays(expression, formats(form), extents, pattern, rng)
                expected = reference(expression, arrays, extents)
                np.testing.assert_array_equal(dense(kernel(**arrays)), expected, err_msg=f"{expression}, {form}, {pattern}, {rows}")


def _arrays(expression: str, form: dict[str, str], extents: dict[str, int], pattern: str, rng: np.random.Generator) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in re.findall(r"\w+\([\w,]+\)", expression.split(" = ")[1]):
        name, indices = part[0], part[2:-1].split(",")
        shape = tuple(extents[index] for index in indices)
        found[name] = sparse(rng, shape, pattern) if name in form else rng.integers(1, 5, shape).astype(float)
    return found


@needs_cxx
@pytest.mark.parametrize(
    ("semiring", "dtype"), [(("min", "+"), "float64"), (("max", "*"), "float32"), (("or", "and"), "bool"), (("+", "*"), "float32")]
)
@pytest.mark.parametrize("race", ["atomics", "temporary"])
def test_zeros_of_other_sums(semiring: tuple[str, str], dtype: str, race: str) -> None:
    operation = {"min": np.minimum, "max": np.maximum, "or": np.logical_or, "+": np.add}[semiring[0]]
    multiply = {"+": np.add, "*": np.multiply, "and": np.logical_and}[semiring[1]]
    rng = np.random.default_rng(1)
    kernel = st.compile(SPMV, {"A": "csr"}, schedule=schedule(SPMV, MATRIX, race), target=gpu.TARGET, semiring=semiring, dtype=dtype)
    zero = {"min": np.inf, "max": -np.inf}.get(semiring[0], 0)
    for pattern in PATTERNS:
        given = sparse(rng, (40, 50), pattern)
        rows, columns = np.nonzero(given)
        matrix = st.tensor((np.stack((rows, columns)), given[rows, columns].astype(dtype)), "csr", given.shape)
        x = rng.integers(-4, 5, 50).astype(dtype)
        expected = np.full(40, zero, dtype)
        operation.at(expected, rows, multiply(given[rows, columns].astype(dtype), x[columns]))
        np.testing.assert_array_equal(dense(kernel(A=matrix, x=x)), expected, err_msg=pattern)


@needs_cxx
@pytest.mark.parametrize("begin", [0, 3, 8, 70])
def test_entries_before_the_first_row_are_of_none(begin: int) -> None:
    """Other libraries give arrays of which a matrix has a part."""
    given = sparse(np.random.default_rng(2), (9, 30), "any")
    rows, columns = np.nonzero(given)
    crd, pos = np.zeros(begin + len(rows), np.int32), np.zeros(10, np.int32)
    values = np.full(len(crd), 1000.0)
    crd[begin:], values[begin:] = columns, given[rows, columns]
    pos[:] = begin + np.append(0, np.cumsum((given != 0).sum(axis=1)))
    held = [DeviceArray(array.ctypes.data, array.shape, array.dtype, array) for array in (pos, crd, values)]
    matrix = DeviceTensor(given.shape, parse_format("csr", 2), (DeviceLevel({}), DeviceLevel({"pos": held[0], "crd": held[1]})), held[2])
    x = np.arange(1.0, 31.0)
    for race in ("atomics", "temporary"):
        kernel = st.compile(SPMV, {"A": "csr"}, schedule=schedule(SPMV, MATRIX, race), target="cuda-executor")
        np.testing.assert_array_equal(kernel(A=matrix, x=x).to_numpy(), given @ x)


@needs_cxx
def test_every_run_gives_the_same_bits() -> None:
    """The sums are made in the order of the places, and carried in order."""
    rng = np.random.default_rng(3)
    given = sparse(rng, (60, 80), "any") * rng.random((60, 80))
    x = rng.random(80)
    kernel = st.compile(SPMV, {"A": "csr"}, schedule=schedule(SPMV, MATRIX, "temporary"), target=gpu.TARGET)
    bound = kernel.bind(A=given, x=x)
    first = np.array(bound())
    assert all(np.array_equal(np.array(bound()), first) for _ in range(3))
    np.testing.assert_allclose(first, given @ x)
