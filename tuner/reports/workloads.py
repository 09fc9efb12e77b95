"""The kernels and inputs of the published figures, with short names for inputs.

The synthetic inputs are of the kinds that the literature uses: uniform, power law, stencils, Zipf tensors, with 3 to 26 million nonzeros,
always the same for the same name. Real inputs come from the data folder; those whose file is missing are left out.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...compiler.errors import DataError
from ...compiler.frozen import frozen
from ...compiler.notation.parser import parse
from ...compiler.storage.aligned import aligned_empty
from ...compiler.storage.construct import tensor
from ...compiler.storage.tensor import Tensor
from ..extents import known_extents, reads
from ..problem import Problem
from ..resolve import make_problem

SYNTHETIC: Mapping[str, str] = {
    "uni200k": "random:uniform:200000x200000:nnz=4e6",
    "rmat18": "random:rmat:scale=18:nnz=4e6",
    "sten40": "random:stencil27:40",
    "sten100": "random:stencil27:100",
    "t3uni": "random:uniform:2000x2000x2000:nnz=3e6",
    "t3zipf": "random:zipf:12000x9000x28000:nnz=5e6",
    "t3long": "random:uniform:300x200x20000:nnz=3e6",
    "t4": "random:uniform:183x24x1140x1717:nnz=3.3e6",
}
"""Short names of generated inputs; any other name is one of the catalogue."""

_LARGE_MATRICES = ("uni200k", "rmat18")
_REAL_MATRICES = ("cnr-2000", "soc-Slashdot0902", "copter2", "mnist_t10k")
_REAL_TENSORS = ("omniglot_small1", "tij_pres_InVS15", "flights-3m_od_day", "fb15k-237")
_TENSORS = ("t3uni", "t3zipf", "t3long", *_REAL_TENSORS)


@frozen
class KernelCase:
    """A kernel with one sparse operand.

    Attributes:
        name: as tables show it.
        expression: index notation.
        sparse: name of the sparse operand.
        dims: extents that the sparse operand does not give.
        result: format of the result; None: dense.
        inputs: short names of the inputs that it is measured on.
    """

    name: str
    expression: str
    sparse: str
    dims: Mapping[str, int]
    result: str | None
    inputs: tuple[str, ...]


_SPMM = "Y(i,k) = A(i,j) * X(j,k)"
_TTMC = "A(i,r,s) = T(i,j,k) * B(j,r) * C(k,s)"
KERNELS = {
    case.name: case
    for case in (
        KernelCase("SpMV", "y(i) = A(i,j) * x(j)", "A", {}, None, (*_LARGE_MATRICES, "sten100", *_REAL_MATRICES)),
        KernelCase("SpMM 32", _SPMM, "A", {"k": 32}, None, (*_LARGE_MATRICES, "sten40", *_REAL_MATRICES)),
        KernelCase("SpMM 128", _SPMM, "A", {"k": 128}, None, (*_LARGE_MATRICES, "sten40", *_REAL_MATRICES)),
        KernelCase(
            "SDDMM 128",
            "S(i,j) = A(i,j) * U(i,k) * V(j,k)",
            "A",
            {"k": 128},
            "csr",
            (*_LARGE_MATRICES, "sten40", *_REAL_MATRICES),
        ),
        KernelCase("TTV", "A(i,j) = T(i,j,k) * c(k)", "T", {}, "dense, compressed", _TENSORS),
        KernelCase("TTM 32", "A(i,j,r) = T(i,j,k) * B(k,r)", "T", {"r": 32}, "dense, compressed, dense", _TENSORS),
        KernelCase("MTTKRP 32", "A(i,r) = T(i,j,k) * B(j,r) * C(k,r)", "T", {"r": 32}, None, _TENSORS),
        KernelCase(
            "MTTKRP 32, order 4",
            "A(i,r) = T(i,j,k,l) * B(j,r) * C(k,r) * D(l,r)",
            "T",
            {"r": 32},
            None,
            ("t4", "flights-3m"),
        ),
        KernelCase("TTMc 16x16", _TTMC, "T", {"r": 16, "s": 16}, None, _TENSORS),
        KernelCase("TTMc 64x64", _TTMC, "T", {"r": 64, "s": 64}, None, ("t3uni", "t3long", *_REAL_TENSORS[:3])),
    )
}


def load_input(name: str) -> Tensor | None:
    """Return an input as float64, its first level dense and the others compressed; None where its file is missing."""
    from ...datasets.generate import PREFIX
    from ...datasets.inputs import fetch, load

    spec = SYNTHETIC.get(name, name)
    if not spec.startswith(PREFIX):
        try:
            fetch(spec)
        except DataError:
            return None
    loaded = load(spec)
    wanted = ", ".join(["dense"] + ["compressed"] * (loaded.order - 1))
    return tensor(loaded, wanted, dtype=np.float64)


def problem_of(case: KernelCase, operands: Mapping[str, Any], name: str, threads: int) -> Problem:
    """Return the problem of a case on operands."""
    return make_problem(case.expression, operands, case.result, threads=threads, name=name)


def operands_of(case: KernelCase, source: Tensor) -> dict[str, Any]:
    """Return the sparse operand with the dense ones that it needs, of its type: seeded, uniform in [0, 1), 64-byte aligned."""
    assignment = parse(case.expression)
    extents = known_extents(assignment, {case.sparse: source.shape}, case.dims)
    operands: dict[str, Any] = {case.sparse: source}
    for access in reads(assignment):
        if access.tensor not in operands:
            shape = tuple(extents[index] for index in access.indices)
            operands[access.tensor] = tensor(random_dense(access.tensor, shape, source.dtype))
    return operands


def random_dense(name: str, shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Return values in [0, 1) of float64 or float32, always the same for a name and a shape, aligned."""
    values = aligned_empty(math.prod(shape), dtype)
    np.random.default_rng(zlib.crc32(name.encode())).random(out=values, dtype=values.dtype.type)
    return values.reshape(shape)
