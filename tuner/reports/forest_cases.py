"""The cases of the report on loop nest forests: kernels of the papers, their inputs, nests by hand, and the kernels by NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import isqrt, prod
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ...compiler.frozen import frozen
from ...compiler.native.machine import this_machine
from ...compiler.notation.nodes import Access, accesses
from ...compiler.notation.parser import parse
from ...datasets.generate import generate
from ..problem import Problem
from ..resolve import make_problem


@frozen
class Case:
    """A kernel on one input: T is sparse, S has its pattern, the rest is dense.

    Attributes:
        name: that of kernel and input.
        expression: index notation.
        source: name of the synthetic input (``random:...``).
        dims: extents that T does not give.
        hand: schedules written by hand.
    """

    name: str
    expression: str
    source: str
    dims: Mapping[str, int]
    hand: tuple[str, ...] = ()

    def problem(self) -> Problem:
        """Return the case with operands, on one thread."""
        assignment, stored = parse(self.expression), generate(self.source, "csf")
        sparse = next(access for access in accesses(assignment.value) if access.tensor == "T")
        extents = {**self.dims, **dict(zip(sparse.indices, stored.shape, strict=True))}
        source, operands = np.random.default_rng(0), dict[str, Any]()
        for access in accesses(assignment.value):
            operands[access.tensor] = stored if access.tensor == "T" else source.random([extents[name] for name in access.indices])
        return make_problem(self.expression, operands, "csf" if assignment.target.tensor == "S" else None, threads=1)


THREE = ("random:uniform:2000x1500x1000:nnz=3e5", "random:zipf:3000x2000x4000:nnz=3e5")
FOUR = ("random:uniform:300x200x250x150:nnz=2e5", "random:zipf:2000x300x1500x500:nnz=2e5")
FIVE = ("random:uniform:60x50x70x40x80:nnz=1e5", "random:zipf:500x400x60x300x80:nnz=1e5")
SIX = ("random:uniform:20x20x20x20x20x20:nnz=1e5",)
TWO = ("random:uniform:20000x20000:nnz=3e5", "random:rmat:scale=14:nnz=3e5", "random:banded:15000:bandwidth=10")

_APART = "loopfuse(4,true,[]); loopfuse(3,true,[0])"

FAMILY: tuple[tuple[str, str, tuple[str, ...], Mapping[str, int], tuple[str, ...]], ...] = (
    *((f"MTTKRP3 mode {mode}", text, THREE, {"r": 32}, ()) for mode, text in enumerate((
        "A(i,r) = T(i,j,k) * B(j,r) * C(k,r)", "A(j,r) = T(i,j,k) * B(i,r) * C(k,r)", "A(k,r) = T(i,j,k) * B(i,r) * C(j,r)"), 1)),
    ("MTTKRP4", "A(i,r) = T(i,j,k,l) * B(j,r) * C(k,r) * D(l,r)", FOUR, {"r": 32}, ()),
    ("MTTKRP5", "A(i,r) = T(i,j,k,l,m) * B(j,r) * C(k,r) * D(l,r) * E(m,r)", FIVE, {"r": 16}, ()),
    *((f"TTMc3 mode {mode}", text, THREE, {"r": 16, "s": 16}, ()) for mode, text in enumerate((
        "A(i,r,s) = T(i,j,k) * U(j,r) * V(k,s)", "A(j,r,s) = T(i,j,k) * U(i,r) * V(k,s)", "A(k,r,s) = T(i,j,k) * U(i,r) * V(j,s)"), 1)),
    ("TTMc4", "A(i,r,s,t) = T(i,j,k,l) * U(j,r) * V(k,s) * W(l,t)", FOUR, {"r": 8, "s": 8, "t": 8}, ()),
    ("TTMc5", "A(i,r,s,t,u) = T(i,j,k,l,m) * U(j,r) * V(k,s) * W(l,t) * X(m,u)", FIVE[:1], {"r": 4, "s": 4, "t": 4, "u": 4}, ()),
    ("TTTP3", "S(i,j,k) = T(i,j,k) * U(i,r) * V(j,r) * W(k,r)", THREE, {"r": 32}, ()),
    ("TTTP4", "S(i,j,k,l) = T(i,j,k,l) * U(i,r) * V(j,r) * W(k,r) * X(l,r)", FOUR, {"r": 32}, ()),
    ("completion residual", "S(i,j,k) = T(i,j,k) - T(i,j,k) * U(i,r) * V(j,r) * W(k,r)", THREE, {"r": 16}, ()),
    ("TTTc6", "Z(e,n) = T(i,j,k,l,m,n) * A(i,a) * B(a,j,b) * C(b,k,c) * D(c,l,d) * E(d,m,e)", SIX, dict.fromkeys("abcde", 4), ()),
    ("SDDMM-SpMM", "A(i,l) = T(i,j) * C(i,k) * D(j,k) * E(j,l)", TWO, {"k": 32, "l": 32}, ("loopfuse(3,true,[])",)),
    ("SDDMM-SpMM-GEMM", "A(i,m) = T(i,j) * C(i,k) * D(j,k) * E(j,l) * F(l,m)", TWO, {"k": 32, "l": 32, "m": 32}, (_APART,)),
    ("SpMMH-GEMM", "A(i,l) = T(i,k) * C(k,j) * D(k,j) * E(j,l)", TWO, {"j": 32, "l": 32}, ("loopfuse(3,true,[])",)),
    ("SpTTM-TTM", "A(i,l,m) = T(i,j,k) * C(j,l) * D(k,m)", THREE, {"l": 16, "m": 16}, ()),
    ("SpTTM-TTM-TTM", "A(l,m,n) = T(i,j,k) * C(i,l) * D(j,m) * E(k,n)", THREE, {"l": 16, "m": 16, "n": 16}, ()),
    ("MTTKRP-GEMM", "A(i,m) = T(i,k,l) * C(l,j) * D(k,j) * E(j,m)", THREE, {"j": 32, "m": 32}, ("loopfuse(3,true,[])",)),
    ("two factors of one index", "A(i,n) = T(i,j,k) * C(j,l) * D(k,l) * E(l,n)", THREE, {"l": 32, "n": 16}, ("loopfuse(3,true,[])",)),
    ("Tucker core of order 4", "A(p,q,r,s) = T(i,j,k,l) * C(i,p) * D(j,q) * E(k,r) * F(l,s)", FOUR, dict.fromkeys("pqrs", 8), ()),
)  # fmt: skip
"""Kernels: name, expression, inputs, further extents, nests by hand."""

CASES = {
    f"{name}, {source}": Case(f"{name}, {source}", text, source, dims, hand)
    for name, text, sources, dims, hand in FAMILY
    for source in sources
}

FIGURE_2 = "A(l,m,n) = T(i,j,k) * C(i,l) * D(j,m) * E(k,n)"
NESTS = {
    "a": "",
    "b": "reorder(l,m,i,j,k,n); loopfuse(3,true,[]); reorder([1],n,k)",
    "c": "reorder(l,i,j,k,m,n); loopfuse(2,true,[]); reorder([1],m,k,j,n)",
    "d": "reorder(l,i,j,k,m,n); loopfuse(2,true,[]); reorder([1],m,k,j,n); loopfuse(2,true,[1])",
    "e": "reorder(l,i,j,k,m,n); loopfuse(2,true,[]); reorder([1],m,j,k,n); loopfuse(2,true,[1])",
}
"""The nests of SparseAuto's Figure 2, with loop depth and memory depth 6/0, 5/1, 5/2, 4/2, 4/2."""


def four_cases() -> Iterator[Case]:
    """Yield the cases of SparseAuto's section 3.1, sized for this machine; the second as a sweep over buffer sizes."""
    nests, few, more = tuple(NESTS.values()), dict.fromkeys("lmn", 4), dict.fromkeys("lmn", 8)
    yield Case("1: the shallowest is best", FIGURE_2, "random:uniform:2000x150x150:nnz=5e5", more, nests)
    most = min(isqrt(int(1.5 * this_machine().last_level_cache / 8)), 3500)  # a larger tensor takes minutes to make
    for side in (most // 4, most // 2, most):
        share = 8 * side * side / this_machine().last_level_cache
        source = f"random:uniform:4x{side}x{side}:nnz={3 * side * side // 2}"
        yield Case(f"2: a buffer of {share:.2g} of the cache", FIGURE_2, source, few, nests)
    yield Case("3: the deepest is best", FIGURE_2, "random:uniform:500x500x100000:nnz=10000", more, nests)
    yield Case("4: neither is", FIGURE_2, "random:uniform:1000x2000x2000:nnz=30000", more, nests)


def composed(problem: Problem) -> Callable[[], Any]:
    """Return the kernel by NumPy and SciPy.

    Factors are gathered for every stored entry, multiplied by ``einsum``, and summed by a product with a sparse matrix; factors without an
    index of the sparse tensor are multiplied afterwards. If the right side is no product it is a residual: the product is subtracted from
    the stored values.
    """
    assignment, stored = problem.assignment, problem.operands["T"]
    factors = list(dict.fromkeys(access for access in accesses(assignment.value) if access.tensor != "T"))
    sparse = next(access for access in accesses(assignment.value) if access.tensor == "T")
    coordinates, values = stored.to_coordinates()
    places = dict(zip(sparse.indices, coordinates, strict=True))
    arrays = {name: operand.to_numpy() for name, operand in problem.operands.items() if name != "T"}
    near = [access for access in factors if set(access.indices) & set(places)]
    far = [access for access in factors if access not in near]
    target = assignment.target.indices
    letters = {name: chr(ord("a") + number) for number, name in enumerate(problem.extents)}
    kept = [name for name in problem.extents if name not in places and (name in target or any(name in access.indices for access in far))]
    kept = [name for name in kept if any(name in access.indices for access in near)]
    text = ",".join(["Z", *("Z" + "".join(letters[name] for name in access.indices if name not in places) for access in near)])
    text += "->Z" + "".join(letters[name] for name in kept)
    shared = assignment.target.tensor == "S"
    rows = [] if shared else [name for name in target if name in places]
    extents = [problem.extents[name] for name in rows]
    place = np.ravel_multi_index([places[name] for name in rows], extents) if rows else np.zeros(len(values), np.int64)
    entries: Any = np.ones(len(values)), (place, np.arange(len(values)))
    sums = scipy.sparse.csr_array(entries, (prod(extents), len(values)))
    last = ",".join("".join(letters[name] for name in names) for names in ([*rows, *kept], *(access.indices for access in far)))
    last += "->" + "".join(letters[name] for name in target)
    subtracts = len(accesses(assignment.value)) > len(factors) + 1

    def run() -> Any:
        gathered = [_gathered(arrays[access.tensor], access, places) for access in near]
        product = np.einsum(text, values, *gathered, optimize=True)
        if shared:
            return values - product if subtracts else product
        summed = (sums @ product.reshape(len(values), -1)).reshape(*extents, *product.shape[1:])
        return np.einsum(last, summed, *(arrays[access.tensor] for access in far), optimize=True)

    return run


def _gathered(array: NDArray[Any], access: Access, places: Mapping[str, NDArray[np.int64]]) -> NDArray[Any]:
    """Return an array gathered at every stored entry: the first axis is the entry, the others the modes that the sparse tensor lacks."""
    stored = [mode for mode, name in enumerate(access.indices) if name in places]
    others = [mode for mode, name in enumerate(access.indices) if name not in places]
    return np.transpose(array, (*stored, *others))[tuple(places[access.indices[mode]] for mode in stored)]
