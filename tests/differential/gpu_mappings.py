"""Mappings of kernels to a GPU, by name: what tests of the CUDA target generate, compile and run."""

from __future__ import annotations

from typing import Any

import numpy as np
import sparsetune as st
from sparsetune.compiler.notation.nodes import accesses
from sparsetune.compiler.notation.parser import parse

SPMV, SPMM = "y(i) = A(i,j) * x(j)", "Y(i,k) = A(i,j) * X(j,k)"
WARPS = "parallelize(i, gpu_warp, no_races); parallelize(j, gpu_thread, parallel_reduction)"
BLOCKS = "parallelize(i, gpu_block, no_races); parallelize(j, gpu_thread, parallel_reduction)"
NONZEROS = (
    "collapse(i, j, f); pos(f, p, A); split(p, b, q, 256); split(q, t, n, 8); parallelize(b, gpu_block, no_races);"
    " parallelize(t, gpu_thread, atomics)"
)
CARRIED = (
    "collapse(i, j, f); pos(f, p, A); split(p, b, q, 64); split(q, t, n, 2); parallelize(b, gpu_block, temporary);"
    " parallelize(t, gpu_thread, temporary)"
)
SHARED = (
    "split(k, k0, k1, 8); reorder(i, k0, j, k1); precompute(A(i,j) * X(j,k), k1, k1, w); parallelize(i, gpu_block, no_races);"
    " parallelize([1], k1, gpu_thread, no_races)"
)
SPGEMM = "C(i,j) = A(i,k) * B(k,j)"
CSR = {"A": "csr", "B": "csr", "C": "csr"}
PATH = (
    "collapse(i, j, f); pos(f, p, A); merge_path(p, m); split(m, b, q, 64); split(q, t, n, 4); parallelize(b, gpu_block, temporary);"
    " parallelize(t, gpu_thread, temporary)"
)
MAPPINGS = {
    "merge path": (SPMV, {"A": "csr"}, PATH),
    "merge path of fibres": ("M(i,l) = B(i,j,k) * C(j,l) * D(k,l)", {"B": "csf"}, "collapse(j, k, f); collapse(i, f, g);"
                             " pos(g, p, B(i,j,k)); merge_path(p, m); split(m, b, n, 16); reorder(b, l, n);"
                             " parallelize(b, gpu_block, no_races); parallelize(l, gpu_thread, atomics)"),
    "row to a thread": (SPMV, {"A": "csr"}, ""),
    "row to a warp": (SPMV, {"A": "csr"}, WARPS),
    "row to eight lanes": (SPMV, {"A": "csr"}, WARPS.replace("no_races", "no_races, lanes, 8") + "; unroll(j, 4)"),
    "row to a block": (SPMV, {"A": "csr"}, BLOCKS),
    "equal shares of nonzeros": (SPMV, {"A": "csr"}, NONZEROS),
    "shares of blocks": (
        SPMV, {"A": "csr"}, "collapse(i, j, f); pos(f, p, A); split_up(p, b, q, 3); split(q, t, n, 4); parallelize(b, gpu_block, atomics);"
        " parallelize(t, gpu_thread, atomics)",
    ),
    "columns": (SPMV, {"A": "csc"}, "parallelize(j, gpu_thread, atomics)"),
    "columns of a sparse vector": (SPMV, {"A": "csc", "x": "compressed"}, "parallelize(j, gpu_warp, atomics);"
                                   " parallelize(i, gpu_thread, atomics)"),
    "coordinates": (SPMV, {"A": "coo"}, "collapse(i, j, f); pos(f, p, A); split(p, b, t, 64); parallelize(b, gpu_block, no_races);"
                    " parallelize(t, gpu_thread, atomics)"),
    "entries one by one": (SPMV, {"A": "csr"}, "collapse(i, j, f); pos(f, p, A); split(p, b, t, 64); parallelize(b, gpu_block, no_races);"
                           " parallelize(t, gpu_thread, atomics)"),
    "pairs of columns": (SPMM, {"A": "csr"}, "split(k, t, k1, 2); reorder(i, t, j, k1); precompute(A(i,j) * X(j,k), k1, k1, w);"
                         " collapse(i, t, f); parallelize(f, gpu_thread, no_races)"),
    "tiles of rows and columns": (SPMM, {"A": "csr"}, "reorder(i, k, j); collapse(i, k, f); split(f, b, t, 48);"
                                  " parallelize(b, gpu_block, no_races); parallelize(t, gpu_thread, no_races)"),
    "sparse result": (SPMV, {"A": "csr", "y": "compressed"}, "parallelize(i, gpu_thread, no_races); assemble(y, insert)"),
    "dense rows": (SPMM, {"A": "csr"}, "parallelize(i, gpu_block, no_races); parallelize(k, gpu_thread, no_races)"),
    "dense rows, sums in registers": (SPMM, {"A": "csr"}, "reorder(i, k, j); parallelize(i, gpu_warp, no_races);"
                                      " parallelize(k, gpu_thread, no_races)"),
    "rows by nonzeros": (SPMM, {"A": "csr"}, "collapse(i, j, f); pos(f, p, A); split(p, b, n, 32); reorder(b, k, n);"
                         " parallelize(b, gpu_block, no_races); parallelize(k, gpu_thread, atomics)"),
    "sampled": ("Z(i,j) = B(i,j) * C(i,k) * D(j,k)", {"B": "csr", "Z": "csr"}, "collapse(i, j, f); pos(f, p, B); split(p, b, w, 8);"
                " parallelize(b, gpu_block, no_races); parallelize(w, gpu_warp, no_races); parallelize(k, gpu_thread, parallel_reduction)"),
    "fibres to warps": ("T(i,j) = B(i,j,k) * c(k)", {"B": "csf", "T": "dcsr"}, "collapse(i, j, f); pos(f, p, B(i,j,k)); split(p, b, w, 8);"
                        " parallelize(b, gpu_block, no_races); parallelize(w, gpu_warp, no_races);"
                        " parallelize(k, gpu_thread, parallel_reduction)"),
    "tensor times matrix": ("T(i,j,l) = B(i,j,k) * C(k,l)", {"B": "csf"}, "pos(i, p, B); parallelize(p, gpu_block, no_races);"
                            " parallelize(l, gpu_thread, no_races)"),
    "matricized tensor": ("M(i,l) = B(i,j,k) * C(j,l) * D(k,l)", {"B": "csf"}, "parallelize(i, gpu_block, no_races);"
                          " parallelize(l, gpu_thread, atomics)"),
    "matricized tensor by nonzeros": ("M(i,l) = B(i,j,k) * C(j,l) * D(k,l)", {"B": "csf"}, "collapse(j, k, f); collapse(i, f, g);"
                                      " pos(g, p, B(i,j,k)); split(p, b, n, 16); reorder(b, l, n); parallelize(b, gpu_block, no_races);"
                                      " parallelize(l, gpu_thread, atomics)"),
    "two dense factors": ("R(i,l,m) = B(i,j,k) * C(j,l) * D(k,m)", {"B": "csf"}, "parallelize(i, gpu_block, no_races);"
                          " parallelize(m, gpu_thread, no_races)"),
    "sums carried in order": (SPMV, {"A": "csr"}, CARRIED),
    "sums of coordinates carried": (SPMV, {"A": "coo"}, CARRIED.replace("64", "60")),
    "rows of sums carried": (SPMM, {"A": "csr"}, "collapse(i, j, f); pos(f, p, A); split(p, b, n, 16); reorder(b, k, n);"
                             " parallelize(b, gpu_block, temporary); parallelize(k, gpu_thread, no_races)"),
    "carried to slices": ("M(i,l) = B(i,j,k) * C(j,l) * D(k,l)", {"B": "csf"}, "collapse(j, k, f); collapse(i, f, g); pos(g, p, B(i,j,k));"
                          " split(p, b, q, 12); split(q, w, n, 4); reorder(b, w, l, n); parallelize(b, gpu_block, temporary);"
                          " parallelize(w, gpu_warp, temporary); parallelize(l, gpu_thread, no_races)"),
    "carried to fibres": ("T(i,j) = B(i,j,k) * c(k)", {"B": "csf", "T": "dcsr"}, "collapse(j, k, f); collapse(i, f, g); pos(g, p, B);"
                          " split(p, t, n, 4); parallelize(t, gpu_thread, temporary)"),
    "product": (SPGEMM, CSR, ""),
    "product of dense result": (SPGEMM, {"A": "csr", "B": "csr"}, "parallelize(i, gpu_warp, no_races);"
                                " parallelize(j, gpu_thread, no_races)"),
    "bitmap": (SPMV, {"A": "csr", "y": "bitmap"}, ""),
    "sum": ("Z(i,j) = B(i,j) + C(i,j)", {"B": "csr", "C": "csr", "Z": "csr"}, ""),
    "sum by warps": ("Z(i,j) = B(i,j) + C(i,j)", {"B": "csr", "C": "csr", "Z": "csr"}, "parallelize(i, gpu_warp, no_races);"
                     " assemble(Z, insert)"),
    "inner product": ("a = B(i,j) * C(i,j)", {"B": "csr", "C": "csr"}, "parallelize(i, gpu_thread, atomics)"),
    "blocks of one sum": ("a = x(i) * z(i)", {}, "split(i, b, t, 64); parallelize(b, gpu_block, atomics);"
                          " parallelize(t, gpu_thread, parallel_reduction)"),
    "transposed": ("Z(i,j) = 2 * B(j,i)", {"B": "csr", "Z": "csr"}, ""),
    "hashed result of one thread": ("y(i) = A(j,i) * x(j)", {"A": "csr", "y": "hashed"}, "assemble(y, insert)"),
    "one thread": ("y(i) = A(i,j) * x(j)", {"A": "csr", "x": "compressed"}, "bound(i, ib, 0, min_exact)"),
}  # fmt: skip
EXTENTS = {"i": 19, "j": 14, "k": 37, "l": 6, "m": 3}


def operands(expression: str, formats: dict[str, str], seed: int = 0, density: float = 0.2) -> dict[str, np.ndarray[Any, Any]]:
    """Return whole numbers, of which every order of adding gives the same."""
    rng, found = np.random.default_rng(seed), {}
    for access in accesses(parse(expression).value):
        shape = tuple(EXTENTS[name] for name in access.indices)
        values = rng.integers(1, 5, shape).astype(float)
        found[access.tensor] = values * (rng.random(shape) < density) if access.tensor in formats else values
    return found


def dense(result: Any) -> np.ndarray[Any, Any]:
    return result.to_numpy() if isinstance(result, st.Tensor) else np.asarray(result)


def source(name: str) -> str:
    expression, formats, schedule = MAPPINGS[name]
    return st.compile(expression, formats, schedule=schedule, target="cuda", arch="sm_90").source
