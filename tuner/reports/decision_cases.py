"""The items that decisions are published for (kernel, input, type, threads), in an order in which every beginning samples the whole."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import numpy as np

from ...compiler.errors import DataError, ShapeError
from ...compiler.frozen import frozen
from ...compiler.notation.parser import parse
from ...compiler.storage.construct import tensor
from ...compiler.storage.tensor import Tensor
from ...datasets.catalogue import local_files
from ...datasets.inputs import announced_shape, load
from ..extents import known_extents, reads
from ..problem import Problem
from ..resolve import make_problem
from .workloads import KERNELS, KernelCase, operands_of

Thing = TypeVar("Thing")

MOST_PRODUCTS = 3e7
"""Most scalar products of a product of sparse matrices; inputs with more are left out."""

MOST_ELEMENTS = 1e8
"""Most elements of a dense operand or result; inputs with larger ones are left out."""

LEAST_BYTES = 20_000
"""Least bytes of a file to be an input: with smaller ones the cost of a call would be measured."""

GENERATED = {
    2: (
        "random:uniform:200000x200000:nnz=2e6", "random:rmat:scale=17:nnz=2e6", "random:stencil27:40", "random:banded:150000:bandwidth=8",
        "random:stencil5:700x700", "random:rmat:scale=14:nnz=3e5", "random:uniform:300000x300000:nnz=9e5",
        "random:block:40000x40000:block=4x4:nnz=1e6",
    ),
    3: ("random:uniform:1000x1000x1000:nnz=1e6", "random:zipf:6000x4500x14000:nnz=1.5e6", "random:uniform:300x200x20000:nnz=1e6"),
    4: ("random:uniform:183x24x1140x1717:nnz=1e6",),
}  # fmt: skip
"""Generated inputs, by order."""

_SUM, _BY_TRANSPOSE, _SQUARE = "A+B", "SpGEMM A*A^T", ("SpGEMM A*A", "triangles")
_SPMM, _SDDMM = "Y(i,k) = A(i,j) * X(j,k)", "S(i,j) = A(i,j) * U(i,k) * V(j,k)"


def _case(name: str, expression: str, dims: Mapping[str, int] | None = None, result: str | None = None) -> KernelCase:
    return KernelCase(name, expression, "A", dims or {}, result, ())


CASES: Mapping[str, KernelCase] = {
    case.name: case
    for case in (
        _case("SpMV", "y(i) = A(i,j) * x(j)"),
        _case("SpMM 32", _SPMM, {"k": 32}),
        _case("SDDMM 16", _SDDMM, {"k": 16}, "csr"),
        _case(_SQUARE[0], "C(i,j) = A(i,k) * A(k,j)", result="csr"),
        KERNELS["MTTKRP 32"],
        _case("SpMM 7", _SPMM, {"k": 7}),
        _case(_SUM, "C(i,j) = A(i,j) + B(i,j)", result="csr"),
        KERNELS["TTV"],
        _case("SpMM 128", _SPMM, {"k": 128}),
        _case("SDDMM 128", _SDDMM, {"k": 128}, "csr"),
        KERNELS["TTMc 16x16"],
        _case("SpMM 8", _SPMM, {"k": 8}),
        KERNELS["MTTKRP 32, order 4"],
        _case("SpMM 1", _SPMM, {"k": 1}),
        _case("SpMM 4", _SPMM, {"k": 4}),
        KERNELS["TTM 32"],
        _case(_BY_TRANSPOSE, "C(i,j) = A(i,k) * A(j,k)", result="csr"),
        _case(_SQUARE[1], "t = A(i,j) * A(j,k) * A(i,k)"),
    )
}

FIRST = (
    "SpMV", "SpMM 7", "SpMM 32", "SpMM 128", "SDDMM 16", _SQUARE[0], "MTTKRP 32", "TTV", "TTMc 16x16",
)  # fmt: skip
"""The kernels that are measured before the others."""

FIRST_INPUTS = 48
"""How many inputs each of them is measured on first; at least forty of these fit."""

FIRST_BYTES = 2_500_000
"""Most bytes of such an input: these have up to about a million entries, so that many of them are measured in an hour."""

DTYPES = ("float64", "float32")
THREADS = (2, 1)
_APART = 5  # each kernel begins so many inputs after the one before, so that a few rounds see most inputs
_SELDOM = 3  # rounds in float64 for each round in float32


@frozen
class Item:
    """One kernel on one input."""

    kernel: str
    input: str
    dtype: str
    threads: int

    @property
    def text(self) -> str:
        return f"{self.kernel}, {self.input}, {self.dtype}, {self.threads} thread{'s' if self.threads > 1 else ''}"


def inputs() -> Mapping[str, Sequence[str]]:
    """Return the names of inputs by kind, "matrix" and "tensor": the files of the data folder and what comes with the package.

    Every beginning of them has small and large inputs.
    """
    files = {name: path for name, path in local_files().items() if "/" not in name and path.stat().st_size >= LEAST_BYTES}
    by_size = sorted(files, key=lambda name: (-files[name].stat().st_size, name))
    matrices = [name for name in by_size if ".mtx" in files[name].name]
    tensors = [name for name in by_size if ".tns" in files[name].name]
    return {
        "matrix": mixed(spread(matrices), GENERATED[2], 4),
        "tensor": mixed(spread(tensors), (*GENERATED[3], *GENERATED[4]), 4),
    }


def first_inputs() -> Mapping[str, Sequence[str]]:
    """Return the names of the files that kernels are measured on first, by kernel: spread over sizes, square ones where a kernel asks."""
    files = {name: path for name, path in local_files().items() if path.stat().st_size <= FIRST_BYTES}
    found = {kind: [name for name in names if name in files] for kind, names in inputs().items()}
    found["square"] = [name for name in found["matrix"] if len(set(announced_shape(files[name]) or (1, 2))) == 1]
    kinds = {kernel: "square" if kernel in _SQUARE else _kind(CASES[kernel]) for kernel in FIRST}
    return {kernel: found[kind][:FIRST_INPUTS] for kernel, kind in kinds.items()}


def _kind(case: KernelCase) -> str:
    return "matrix" if case.sparse == "A" else "tensor"


def stages(first: Mapping[str, Sequence[str]] | None = None) -> dict[Item, int]:
    """Return the items that come before all others, in order, each with its stage: 0 in float64, 1 in float32.

    Args:
        first: names of inputs by kernel; None: ``first_inputs()``.
    """
    first = first_inputs() if first is None else first
    return {
        Item(kernel, names[turn], dtype, threads): stage
        for stage, dtype in enumerate(DTYPES)
        for turn in range(max(map(len, first.values()), default=0))
        for kernel, names in first.items() if turn < len(names)
        for threads in THREADS
    }  # fmt: skip


LAST_STAGE = len(DTYPES)
"""The stage of items that ``stages`` does not name."""


def items(found: Mapping[str, Sequence[str]] | None = None, first: Mapping[str, Sequence[str]] | None = None) -> list[Item]:
    """Return all items: those of ``stages``, then rounds over kernels and threads, each with the next input of each kernel. After every
    ``_SELDOM`` rounds in float64 comes one in float32.

    Args:
        found: names of inputs by kind; None: ``inputs()``.
        first: as of ``stages``.
    """
    return list(dict.fromkeys([*stages(first), *_in_rounds(found or inputs())]))


def _in_rounds(found: Mapping[str, Sequence[str]]) -> list[Item]:
    ordered: list[tuple[tuple[int, int, int, int], Item]] = []
    for number, case in enumerate(CASES.values()):
        names = found[_kind(case)]
        for place, name in enumerate(_begun_at(names, _APART * number)):
            for kind, dtype in enumerate(DTYPES):
                turn = place if kind == 0 else _SELDOM * (place + 1)
                ordered += [((turn, kind, number, -threads), Item(case.name, name, dtype, threads)) for threads in THREADS]
    return [item for _, item in sorted(ordered, key=lambda pair: pair[0])]


def _begun_at(names: Sequence[Thing], place: int) -> Sequence[Thing]:
    """Return a list rotated to begin at a place, since kernels begin at different inputs."""
    place %= max(1, len(names))
    return (*names[place:], *names[:place])


def spread(names: Sequence[Thing]) -> list[Thing]:
    """Return a sorted list in the order of van der Corput's sequence: every beginning is spread over the whole."""
    bits = max(1, (len(names) - 1).bit_length())
    turned = (int(f"{place:0{bits}b}"[::-1], 2) for place in range(2**bits))
    return [names[place] for place in turned if place < len(names)]


def mixed(names: Sequence[Thing], others: Sequence[Thing], every: int) -> list[Thing]:
    """Return names with one of the others after every ``every`` of them, and the others that are left at the end."""
    found, rest = list[Thing](), list(others)
    for place, name in enumerate(names, 1):
        found.append(name)
        if place % every == 0 and rest:
            found.append(rest.pop(0))
    return [*found, *rest]


@cache
def source_of(name: str) -> Tensor:
    """Return an input as float64, its first level dense and the others compressed. Raises ``SparsetuneError``."""
    loaded = load(name)
    if loaded.dtype.kind == "c":
        raise DataError("its values are complex")
    return tensor(loaded, ", ".join(["dense"] + ["compressed"] * (loaded.order - 1)), dtype=np.float64)


def problem_of(item: Item) -> Problem:
    """Return the problem of an item.

    Raises:
        ShapeError: the input does not fit the kernel, or is too large for it.
        SparsetuneError: it cannot be read.
    """
    case, source = CASES[item.kernel], source_of(item.input)
    _check_fits(case, source)
    return make_problem(case.expression, operands(case, typed(source, item.dtype)), case.result, threads=item.threads, name=item.input)


def operands(case: KernelCase, source: Tensor) -> dict[str, Any]:
    """Return the operands of a case. The second operand of a sum is the transpose, or if that has another shape, the columns reversed."""
    if case.name != _SUM:
        return operands_of(case, source)
    matrix: Any = source.to_scipy()
    other = matrix.T if source.shape[0] == source.shape[1] else matrix[:, ::-1]
    return {"A": source, "B": tensor(other.tocsr(), source.format)}


def typed(source: Tensor, dtype: str) -> Tensor:
    """Return a tensor with values of a type."""
    return source if source.dtype == np.dtype(dtype) else tensor(source, source.format, dtype=np.dtype(dtype))


def _check_fits(case: KernelCase, source: Tensor) -> None:
    assignment = parse(case.expression)
    target, read = assignment.target, reads(assignment)
    order = next(len(access.indices) for access in read if access.tensor == case.sparse)
    if order != source.order:
        raise ShapeError(f"it is of order {source.order}")
    if case.name in _SQUARE and source.shape[0] != source.shape[1]:
        raise ShapeError("it is not square")
    if (count := _products(case, source)) > MOST_PRODUCTS:
        raise ShapeError(f"it has {count:.1e} products, more than {MOST_PRODUCTS:.0e}")
    extents = known_extents(assignment, {case.sparse: source.shape}, case.dims)
    dense = [access for access in read if access.tensor not in (case.sparse, "B" if case.name == _SUM else "")]
    dense += [target] if case.result is None else []
    largest = max((math.prod(extents[index] for index in access.indices) for access in dense), default=0)
    if largest > MOST_ELEMENTS:
        raise ShapeError(f"a dense operand or result has {largest:.1e} elements, more than {MOST_ELEMENTS:.0e}")


def _products(case: KernelCase, source: Tensor) -> float:
    """Return how many pairs of entries a kernel of several sparse operands multiplies; 0 for other kernels."""
    if case.name not in (*_SQUARE, _BY_TRANSPOSE):
        return 0.0
    matrix: Any = source.to_scipy()
    rows = np.diff(matrix.tocsr().indptr).astype(np.float64)
    columns = np.bincount(matrix.tocsr().indices, minlength=source.shape[1]).astype(np.float64)
    return float(columns @ (columns if case.name == _BY_TRANSPOSE else rows))
