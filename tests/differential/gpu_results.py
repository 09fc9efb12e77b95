"""Kernels for a GPU by how threads write their results: sparse ones, alone or side by side, and sums in copies of their own."""

from __future__ import annotations

from .gpu_mappings import CARRIED, SPMM, SPMV

ADD, SPGEMM, OUTER = "Z(i,j) = B(i,j) + C(i,j)", "C(i,j) = A(i,k) * B(k,j)", "Z(i,j) = b(i) * c(j)"
ALONE: tuple[tuple[str, str, str], ...] = (
    (ADD, "B=csr C=csr Z=csr", "split(i, a, b, 3)"),
    (ADD, "B=dcsr C=dcsr Z=dcsr", "split(i, a, b, 3); collapse(b, j, f); collapse(a, f, g)"),
    (ADD, "B=csr C=csr Z=csr", "assemble(Z, workspace)"),
    (ADD, "B=coo C=coo Z=coo", "split(j, a, b, 2)"),
    (SPGEMM, "A=csc B=csc C=csc", "split_up(j, a, b, 2)"),
    (OUTER, "b=compressed c=compressed Z=dcsr", "reorder(j, i)"),
    ("T(i,j,k) = B(i,j,k) + C(i,j,k)", "B=csf C=csf T=csf", "split(i, a, b, 4)"),
    ("T(i,j,l) = B(i,j,k) * C(k,l)", "B=csf T=ssd", "collapse(k, l, f)"),
    ("y(i) = A(i,j) * x(j) + b(i)", "A=csr b=compressed y=compressed", "pos(j, p, A)"),
)
"""Schedules without units, for one thread."""

_INNER: tuple[tuple[str, str, str], ...] = (
    (OUTER, "b=compressed c=compressed Z=dcsr", "parallelize(i, gpu_block, no_races); parallelize(j, gpu_thread, no_races)"),
    (OUTER, "c=compressed Z=csr", "reorder(i, j); parallelize(i, gpu_warp, no_races); parallelize(j, gpu_thread, no_races)"),
    (OUTER, "b=compressed c=compressed Z=coo", "parallelize(i, gpu_warp, no_races, lanes, 8); parallelize(j, gpu_thread, no_races)"),
    (OUTER, "b=compressed c=compressed Z=dcsr", "parallelize(j, gpu_thread, no_races)"),
    (OUTER, "b=compressed c=compressed Z=dcsr", "split(i, a, e, 3); split(j, f, g, 2); parallelize(a, gpu_block, no_races);"
                                                " parallelize(e, gpu_warp, no_races); parallelize(f, gpu_thread, no_races)"),
    (ADD, "B=csr C=csr Z=csr", "split(i, a, b, 3); parallelize(a, gpu_block, no_races)"),
    (ADD, "B=csr C=csr Z=csr", "split(i, a, b, 3); parallelize(a, gpu_block, no_races); parallelize(b, gpu_thread, no_races)"),
    (ADD, "B=dcsr C=dcsr Z=dcsr", "split(i, a, b, 3); parallelize(a, gpu_warp, no_races)"),
    (ADD, "B=csr C=csr Z=csr", "split(j, a, b, 2); parallelize(i, gpu_block, no_races); parallelize(a, gpu_warp, no_races)"),
    (ADD, "B=csr C=csr Z=csr", "split(j, a, b, 2); parallelize(a, gpu_thread, no_races)"),
    ("T(i,j,k) = B(i,j,k) + C(i,j,k)", "B=csf C=csf T=csf", "split(i, a, b, 2); split(j, c, d, 2); split(k, e, f, 2);"
     " parallelize(a, gpu_block, no_races); parallelize(c, gpu_warp, no_races); parallelize(e, gpu_thread, no_races)"),
    ("T(i,j,l) = B(i,j,k) * C(k,l)", "B=dss T=ssd", "collapse(k, l, f); parallelize(i, gpu_warp, no_races);"
     " parallelize(f, gpu_thread, atomics)"),
    ("T(i,j,l) = B(i,j,k) * C(k,l)", "B=csf C=csr T=csf", "split(i, a, b, 3); parallelize(a, gpu_block, no_races);"
     " parallelize(b, gpu_thread, no_races)"),
)  # fmt: skip
"""Loops inside of others, over parts of the first level and over later levels, that reach entries in order."""

_COLLECTED: tuple[tuple[str, str, str], ...] = (
    (OUTER, "c=compressed Z=csr", "collapse(j, i, f); split(f, a, e, 7); parallelize(a, gpu_thread, no_races)"),
    (ADD, "B=csr C=csr Z=csr", "collapse(i, j, f); split(f, a, e, 7); parallelize(a, gpu_block, no_races)"),
    (ADD, "B=dcsr C=dcsr Z=dcsr", "collapse(i, j, f); split(f, a, e, 7); parallelize(a, gpu_thread, no_races)"),
    (ADD, "B=csr C=csr Z=csr", "split(j, a, e, 3); reorder(a, i, e); parallelize(a, gpu_thread, no_races)"),
    ("Z(i,j) = B(i,j) * C(i,k) * D(j,k)", "B=csr Z=dcsr", "collapse(i, j, f); pos(f, p, B); split(p, a, e, 5);"
     " parallelize(a, gpu_block, no_races); parallelize(e, gpu_thread, no_races)"),
    ("y(i) = A(i,j) * x(j)", "A=csr y=compressed", "collapse(i, j, f); pos(f, p, A); split(p, a, e, 5);"
     " parallelize(a, gpu_block, atomics); parallelize(e, gpu_thread, atomics)"),
    ("y(i) = A(i,j) * x(j)", "A=csc y=compressed", "parallelize(j, gpu_block, atomics); parallelize([0], i, gpu_thread, no_races)"),
    ("y(i) = A(i,j) * x(j)", "A=csr y=compressed", "parallelize(i, gpu_warp, no_races); parallelize(j, gpu_thread, atomics)"),
    (SPGEMM, "A=csc B=csr C=csr", "parallelize(k, gpu_block, atomics); parallelize([0], j, gpu_thread, no_races)"),
)  # fmt: skip
"""Loops that reach entries in other orders, or rows in parts: tiles of positions, columns, sums outside."""

MTTKRP = "M(i,l) = B(i,j,k) * C(j,l) * D(k,l)"
COPIED: tuple[tuple[str, str, str], ...] = (
    (SPMV, "A=csc", "parallelize(j, gpu_block, temporary)"),
    (SPMV, "A=csc", "parallelize(j, gpu_thread, parallel_reduction)"),
    (SPMV, "A=csc", "parallelize(j, gpu_warp, temporary, lanes, 8); parallelize(i, gpu_thread, no_races)"),
    (SPMV, "A=csr", "parallelize(j, gpu_block, temporary)"),
    (SPMV, "A=csr", CARRIED.replace("split(q, t, n, 2);", "split(q, n, t, 2); reorder(b, t, n);")),
    (SPMV, "A=csc", "split(j, a, b, 3); parallelize(a, gpu_block, temporary); parallelize(b, gpu_thread, temporary)"),
    (SPMV, "A=csc", "split(j, a, b, 3); parallelize(a, gpu_block, atomics); parallelize(b, gpu_thread, temporary)"),
    (SPMV, "A=csc", "split(j, a, b, 3); parallelize(a, gpu_block, temporary); parallelize(b, gpu_thread, atomics)"),
    ("a = B(i,j) * C(i,j)", "B=csr C=csr", "parallelize(i, gpu_thread, parallel_reduction)"),
    ("a = B(i,j) * C(i,j)", "B=csr", "parallelize(i, gpu_block, temporary); parallelize(j, gpu_thread, parallel_reduction)"),
    (SPMM, "A=csr", "parallelize(i, gpu_block, no_races); parallelize(j, gpu_warp, temporary)"),
    (SPMM, "A=csr", "parallelize(i, gpu_warp, no_races); parallelize(j, gpu_thread, parallel_reduction)"),
    (SPMM, "A=csc", "parallelize(j, gpu_block, temporary); parallelize(k, gpu_thread, no_races)"),
    (MTTKRP, "B=csf", "parallelize(i, gpu_block, no_races); parallelize(j, gpu_warp, temporary); parallelize(l, gpu_thread, no_races)"),
    (MTTKRP, "B=csf", "collapse(i, j, f); pos(f, p, B); parallelize(p, gpu_block, temporary); parallelize(k, gpu_thread, temporary)"),
    (SPMM, "A=csr", "precompute(A(i,j) * X(j,k), k, k, w); parallelize(i, gpu_block, no_races); parallelize(j, gpu_warp, temporary)"),
)
"""Loops of which iterations add to the same components, with race strategies that give them copies."""


def _counted(cases: tuple[tuple[str, str, str], ...]) -> tuple[tuple[str, str, str], ...]:
    """Return cases whose results are counted first and then filled."""
    return tuple((expression, formats, f"assemble({expression[0]}, insert); {schedule}") for expression, formats, schedule in cases)


INNER, COLLECTED = _counted(_INNER), _counted(_COLLECTED)
