"""The races of default schedules: operations that SciPy and PyData/sparse have too, on one matrix."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from ...compiler.frozen import frozen
from ...compiler.pipeline import compile_kernel
from ...compiler.storage.block import block, unblock
from ...compiler.storage.construct import tensor
from ...compiler.storage.native import helper_threads
from ...compiler.storage.tensor import Tensor
from .workloads import random_dense

Run = Callable[[], Any]
Runs = dict[tuple[str, int], Run]
"""Functions by variant and threads."""

OURS, SCIPY, SORTED, PYDATA = "sparsetune", "scipy", "scipy, sorted", "sparse"
COLUMNS = 32  # columns of the dense factor of SpMM
BLOCK = (4, 4)


@frozen
class Case:
    """One operation on one matrix."""

    operation: str
    runs: Runs


def kernels(matrix: Tensor) -> Iterator[Case]:
    """Yield the kernels that read a CSR matrix, and its transpose where there is a second sparse operand."""
    theirs = _scipy(matrix)
    other, pydata = theirs.T.tocsr(), _pydata(matrix)
    vector, dense = random_dense("x", (matrix.shape[1],)), random_dense("X", (matrix.shape[1], COLUMNS))
    yield Case("SpMV", {
        **_ours("y(i) = A(i,j) * x(j)", {"A": matrix, "x": vector}),
        (SCIPY, 1): lambda: theirs @ vector,
        **_with(pydata, lambda array: array @ vector),
    })  # fmt: skip
    yield Case(f"SpMM, {COLUMNS} columns", {
        **_ours("Y(i,k) = A(i,j) * X(j,k)", {"A": matrix, "X": dense}),
        (SCIPY, 1): lambda: theirs @ dense,
        **_with(pydata, lambda array: array @ dense),
    })  # fmt: skip
    yield Case("transpose", {**_ours("C(j,i) = A(i,j)", {"A": matrix}, sparse=True), (SCIPY, 1): lambda: theirs.T.tocsr()})
    if matrix.shape[0] == matrix.shape[1]:
        turned = _pydata(tensor(other, "csr"))
        yield Case("A + A^T", {
            **_ours("C(i,j) = A(i,j) + B(i,j)", {"A": matrix, "B": tensor(other, "csr")}, sparse=True),
            (SCIPY, 1): lambda: theirs + other,
            **_with(pydata, lambda array: array + turned),
        })  # fmt: skip
        yield Case("A * A^T, by elements", {
            **_ours("C(i,j) = A(i,j) * B(i,j)", {"A": matrix, "B": tensor(other, "csr")}, sparse=True),
            (SCIPY, 1): lambda: theirs * other,
        })  # fmt: skip


def products(matrix: Tensor) -> Iterator[Case]:
    """Yield the product of a CSR matrix with itself; SciPy leaves the indices of a product unsorted."""
    theirs = _scipy(matrix)

    def ordered() -> Any:
        product = theirs @ theirs
        product.sort_indices()
        return product

    yield Case("SpGEMM", {
        **_ours("C(i,j) = A(i,k) * B(k,j)", {"A": matrix, "B": matrix}, sparse=True),
        (SCIPY, 1): lambda: theirs @ theirs,
        (SORTED, 1): ordered,
        **_with(_pydata(matrix), lambda array: array @ array),
    })  # fmt: skip


def conversions(matrix: Tensor) -> Iterator[Case]:
    """Yield conversions between formats that SciPy has too, ours also on all cores. Where our result is sorted, SciPy's is made sorted."""
    rows = _scipy(matrix)
    columns, entries, blocks = rows.tocsc(), rows.tocoo(), rows.tobsr(blocksize=BLOCK) if _divides(matrix) else None
    as_columns, as_entries = matrix.convert("csc"), matrix.convert("coo")
    shuffled = _shuffled(entries)
    pairs: list[tuple[str, Run, Run]] = [
        ("CSR to CSC", lambda: matrix.convert("csc"), rows.tocsc),
        ("CSC to CSR", lambda: as_columns.convert("csr"), columns.tocsr),
        ("CSR to COO", lambda: matrix.convert("coo"), rows.tocoo),
        ("CSC to COO by columns", lambda: as_columns.convert("coo; 1, 0"), columns.tocoo),
        ("COO to CSR", lambda: as_entries.convert("csr"), entries.tocsr),
        ("COO to CSC", lambda: as_entries.convert("csc"), entries.tocsc),
        ("unsorted COO to CSR", lambda: tensor(shuffled, "csr"), lambda: _summed(shuffled.tocsr())),
    ]
    if blocks is not None:
        blocked = block(matrix, BLOCK)
        pairs += [
            ("CSR to BSR 4x4", lambda: block(matrix, BLOCK), lambda: _ordered(rows.tobsr(blocksize=BLOCK))),
            ("CSR to BSR 4x4, SciPy's blocks as they come", lambda: block(matrix, BLOCK), lambda: rows.tobsr(blocksize=BLOCK)),
            ("BSR 4x4 to CSR", lambda: unblock(blocked), blocks.tocsr),
        ]
    for name, ours, scipy in pairs:
        teams = sorted({1, helper_threads()})
        yield Case(name, {**{(OURS, threads): _on(threads, ours) for threads in teams}, (SCIPY, 1): scipy})


def _ordered(blocks: Any) -> Any:
    blocks.sort_indices()
    return blocks


def _ours(expression: str, operands: Mapping[str, Any], sparse: bool = False) -> Runs:
    result = expression.partition("(")[0]
    formats = {name: operand.format for name, operand in operands.items() if isinstance(operand, Tensor)}
    compiled = compile_kernel(expression, {**formats, result: "csr"} if sparse else formats)
    return {(OURS, 1): _on(1, compiled.bind_operands(operands, 1))}  # native helpers, which may convert it, have their own threads


def _on(threads: int, run: Run) -> Run:
    """Return a run during which native helpers use so many threads."""

    def limited() -> Any:
        before = os.environ.get("SPARSETUNE_THREADS")
        os.environ["SPARSETUNE_THREADS"] = str(threads)
        try:
            return run()
        finally:
            if before is None:
                del os.environ["SPARSETUNE_THREADS"]
            else:
                os.environ["SPARSETUNE_THREADS"] = before

    return limited


def _scipy(matrix: Tensor) -> Any:
    """Return a CSR array that shares the tensor's memory, and knows that it is sorted and without duplicates."""
    array: Any = matrix.to_scipy()
    array.has_canonical_format = True
    return array


def _summed(array: Any) -> Any:
    array.sum_duplicates()
    return array


def _shuffled(entries: Any) -> Any:
    order = np.random.default_rng(0).permutation(entries.nnz)
    row, column = (axis[order] for axis in (entries.row, entries.col))
    return type(entries)((entries.data[order], (row, column)), shape=entries.shape)


def _divides(matrix: Tensor) -> bool:
    return all(extent % inner == 0 for extent, inner in zip(matrix.shape, BLOCK, strict=True))


def _pydata(matrix: Tensor) -> Any:
    """Return PyData's compressed rows of a matrix; None where the library is missing."""
    return import_module("sparse").GCXS.from_scipy_sparse(matrix.to_scipy()) if find_spec("sparse") is not None else None


def _with(array: Any, run: Callable[[Any], Any]) -> Runs:
    return {} if array is None else {(PYDATA, 1): lambda: run(array)}
