"""A library of good schedules with names: those of the papers' evaluations, and some of this project.

A schedule is written for one expression; ``schedules_for`` finds those that fit another one and renames their tensors and indices.
Numbers in them are starting points. Sources: Senanayake et al., "A Sparse Iteration Space Transformation Framework", Figures 2, 4, 5 and
section 7 with the TACO schedules it refers to; Dias et al., "SparseAuto"; kernels with rows of dense operands in vector registers,
written after hand-optimized C.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import permutations

from ..frozen import frozen
from ..notation.nodes import Access, Assignment, accesses
from ..notation.parser import parse
from ..schedule.factors import canonical
from ..schedule.renaming import rename_expression
from ..schedule.schedule import Schedule


@frozen
class NamedSchedule:
    """A schedule of one expression.

    Attributes:
        name: what people call it.
        expression: what it was written for.
        formats: of the operands and results that are not dense.
        text: the schedule.
        origin: where it comes from.
        extents: extents that it requires.
        target: "cpu" or "cuda".
    """

    name: str
    expression: str
    formats: tuple[tuple[str, str], ...]
    text: str
    origin: str
    extents: tuple[tuple[str, int], ...] = ()
    target: str = "cpu"

    @property
    def schedule(self) -> Schedule:
        return Schedule(self.text)


_SPMV = ("y(i) = A(i,j) * x(j)", (("A", "csr"),))
_SPMSPV = ("y(i) = A(i,j) * x(j)", (("A", "csc"), ("x", "compressed")))
_SPMM = ("Y(i,k) = A(i,j) * X(j,k)", (("A", "csr"),))
_SDDMM = ("Z(i,k) = B(i,k) * C(i,j) * D(j,k)", (("B", "csr"), ("Z", "csr")))
_SDDMM_ROWS = ("Z(i,j) = B(i,j) * C(i,k) * D(j,k)", (("B", "csr"), ("Z", "csr")))
_TTV = ("T(i,j) = B(i,j,k) * c(k)", (("B", "csf"), ("T", "dcsr")))
_TTM = ("T(i,j,l) = B(i,j,k) * C(k,l)", (("B", "csf"), ("T", "compressed, compressed, dense")))
_MTTKRP = ("A(i,r) = B(i,j,k) * C(j,r) * D(k,r)", (("B", "dense, compressed, compressed"),))
_MTTKRP_CSF = ("A(i,r) = B(i,j,k) * C(j,r) * D(k,r)", (("B", "csf"),))
_MTTKRP4 = ("A(i,r) = B(i,j,k,l) * C(j,r) * D(k,r) * E(l,r)", (("B", "csf"),))
_TTMC = ("A(i,l,m) = B(i,j,k) * C(j,l) * D(k,m)", (("B", "csf"),))
_TTTP = ("A(i,j,k) = B(i,j,k) * C(i,r) * D(j,r) * E(k,r)", (("B", "csf"), ("A", "csf")))
_CHAIN = ("A(l,m,n) = B(i,j,k) * C(i,l) * D(j,m) * E(k,n)", (("B", "csf"),))
_SPGEMM = ("A(i,j) = B(i,k) * C(k,j)", (("A", "csr"), ("B", "csr"), ("C", "csr")))

_PAPER = "Senanayake et al."
_NAGASAKA = "Nagasaka, Nukada and Matsuoka, High-performance and memory-saving sparse general matrix-matrix multiplication"
_FIBRES = "fibres as the rows of a matrix, their sums in registers"
_OURS = "register-blocked kernels"

LIBRARY: tuple[NamedSchedule, ...] = (
    NamedSchedule("row split", *_SPMV, "split(i, i1, i2, 32); parallelize(i1, cpu_thread, no_races, dynamic, 1)", f"{_PAPER}, Figure 2d"),
    NamedSchedule(
        "position split", *_SPMV,
        "collapse(i, j, f); pos(f, p, A(i,j)); split(p, p0, p1, 16); parallelize(p0, cpu_thread, atomics)",
        f"{_PAPER}, Figures 4 and 5",
    ),
    NamedSchedule(
        "equal shares of nonzeros", *_SPMV,
        "collapse(i, j, f); pos(f, p, A); split_up(p, p0, p1, 16); parallelize(p0, cpu_thread, atomics, static)",
        _OURS,
    ),
    NamedSchedule(
        "position split, unrolled loads", *_SPMV,
        "collapse(i, j, f); pos(f, p, A(i,j)); split(p, block, pl, 8192); split(pl, warp, p2, 512); split(p2, thread, nz, 16);"
        " reorder(block, warp, thread, nz); precompute(A(i,j) * x(j), nz, nz_pre, t); unroll(nz_pre, 16);"
        " parallelize(block, gpu_block, no_races); parallelize(warp, gpu_warp, no_races); parallelize(thread, gpu_thread, atomics)",
        f"{_PAPER}, Figure 2e", target="cuda",
    ),
    NamedSchedule(
        "warp per row", *_SPMV,
        "split(i, block, warp, 8); pos(j, p, A(i,j)); split(p, p0, thread, 32); reorder(block, warp, thread, p0);"
        " parallelize(block, gpu_block, no_races); parallelize(warp, gpu_warp, no_races);"
        " parallelize(thread, gpu_thread, parallel_reduction)",
        f"{_PAPER}, section 7.3", target="cuda",
    ),
    NamedSchedule(
        "merge path", *_SPMV,
        "collapse(i, j, f); pos(f, p, A(i,j)); merge_path(p, m); split(m, block, ml, 1024); split(ml, thread, item, 8);"
        " parallelize(block, gpu_block, temporary); parallelize(thread, gpu_thread, temporary)",
        "Merrill and Garland, Merge-based Parallel Sparse Matrix-Vector Multiplication", target="cuda",
    ),
    NamedSchedule("columns of the vector", *_SPMSPV, "parallelize(j, cpu_thread, atomics, dynamic, 16)", f"{_PAPER}, section 7.2"),
    NamedSchedule(
        "row split, vectorized dense loop", *_SPMM,
        "split(i, i0, i1, 16); pos(j, p, A(i,j)); split(p, p0, p1, 8); reorder(i0, i1, p0, k, p1);"
        " parallelize(i0, cpu_thread, no_races); parallelize(k, cpu_vector, ignore_races)",
        f"{_PAPER}, section 7.2, as TACO's evaluation has it",
    ),
    NamedSchedule(
        "dense loop innermost", *_SPMM,
        "parallelize(i, cpu_thread, no_races, dynamic, 64); parallelize(k, cpu_vector, no_races)", f"{_PAPER}, section 7.2",
    ),
    NamedSchedule(
        "position split, threads over columns", *_SPMM,
        "collapse(i, j, f); pos(f, p, A(i,j)); split(p, block, p1, 64); split(p1, warp, nz, 8); split(k, k0, thread, 32);"
        " reorder(block, warp, thread, k0, nz); bound(k0, k0b, 4, max_exact); unroll(k0b, 4); parallelize(block, gpu_block, no_races);"
        " parallelize(warp, gpu_warp, no_races); parallelize(thread, gpu_thread, atomics)",
        f"{_PAPER}, section 7.2", (("k", 128),), "cuda",
    ),
    NamedSchedule(
        "shares of warps, rows loaded ahead", *_SPMM,
        "collapse(i, j, f); pos(f, p, A(i,j)); split(p, block, p1, 1024); split(p1, warp, nz, 128); reorder(block, warp, k, nz);"
        " unroll(nz, 4); parallelize(block, gpu_block, no_races); parallelize(warp, gpu_warp, no_races);"
        " parallelize(k, gpu_thread, atomics)",
        _OURS, (("k", 32),), "cuda",
    ),
    NamedSchedule(
        "shares of warps, rows loaded ahead", *_SPMM,
        "collapse(i, j, f); pos(f, p, A(i,j)); split(p, block, p1, 512); split(p1, warp, nz, 64); split(k, lane, k1, 4);"
        " reorder(block, warp, lane, nz, k1); unroll(nz, 4); parallelize(block, gpu_block, no_races);"
        " parallelize(warp, gpu_warp, no_races); parallelize(lane, gpu_thread, atomics)",
        _OURS, (("k", 128),), "cuda",
    ),
    NamedSchedule(
        "row per warp, pairs of columns across lanes", *_SPMM,
        "split(k, k0, k1, 64); split(k1, lane, pair, 2); reorder(i, lane, j, k0, pair);"
        " precompute(A(i,j) * X(j,k), [k0, pair], [k0, pair], w); parallelize(i, gpu_warp, no_races);"
        " parallelize(lane, gpu_thread, no_races)",
        _OURS, (("k", 128),), "cuda",
    ),
    NamedSchedule(
        "shares of eight lanes, rows loaded ahead", *_SDDMM_ROWS,
        "collapse(i, j, f); pos(f, p, B(i,j)); split(p, block, p1, 1024); split(p1, warp, nz, 32); split(k, lane, k1, 4); unroll(nz, 2);"
        " parallelize(block, gpu_block, no_races); parallelize(warp, gpu_warp, no_races, lanes, 8);"
        " parallelize(lane, gpu_thread, parallel_reduction)",
        _OURS, (("k", 32),), "cuda",
    ),
    NamedSchedule(
        "position split, parallel reduction", *_SDDMM,
        "split(i, i0, i1, 16); pos(k, p, B(i,k)); split(p, p0, p1, 8); reorder(i0, i1, p0, j, p1);"
        " parallelize(i0, cpu_thread, no_races); parallelize(p1, cpu_vector, parallel_reduction)",
        f"{_PAPER}, section 7.2, as TACO's evaluation has it",
    ),
    NamedSchedule(
        "collapsed position split", *_TTV,
        "collapse(i, j, f); pos(f, p, B(i,j,k)); split(p, p0, p1, 16); parallelize(p0, cpu_thread, no_races)",
        f"{_PAPER}, section 7.2",
    ),
    NamedSchedule(
        "collapsed position split", *_TTM,
        "collapse(i, j, f); pos(f, p, B(i,j,k)); split(p, p0, p1, 16); pos(k, q, B(i,j,k)); split(q, q0, q1, 8);"
        " reorder(p0, p1, q0, l, q1); parallelize(p0, cpu_thread, no_races); parallelize(q1, cpu_vector, parallel_reduction)",
        f"{_PAPER}, section 7.2, as TACO's evaluation has it",
    ),
    NamedSchedule(
        "fibre workspace", *_MTTKRP,
        "split(i, i0, i1, 16); precompute(B(i,j,k) * D(k,r), r, r, w); parallelize(i0, cpu_thread, no_races)", f"{_PAPER}, section 7.2",
    ),
    NamedSchedule(
        "rows in registers", *_SPMM,
        "precompute(A(i,j) * X(j,k), k, k, w); prefetch(j, X, 12); parallelize(i, cpu_thread, no_races, dynamic, 64)",
        _OURS, (("k", 32),),
    ),
    NamedSchedule(
        "blocks of rows in registers", *_SPMM,
        "split(k, k0, k1, 32); reorder(i, k0, j, k1); precompute(A(i,j) * X(j,k), k1, k1, w); prefetch(j, X, 12);"
        " parallelize(i, cpu_thread, no_races, dynamic, 64)",
        _OURS, (("k", 128),),
    ),
    NamedSchedule(
        "vector dot products", *_SDDMM_ROWS,
        "precompute(C(i,k) * D(j,k), [], [], t); prefetch(j, D, 4); parallelize(i, cpu_thread, no_races, dynamic, 64);"
        " parallelize(k, cpu_vector, parallel_reduction)",
        _OURS, (("k", 128),),
    ),
    NamedSchedule(
        "fibres and rows in registers", *_MTTKRP,
        "precompute(B(i,j,k) * D(k,r), r, r, w); precompute(w(r) * C(j,r), r, r, v); prefetch([0, 0], k, D, 8);"
        " parallelize(i, cpu_thread, no_races, dynamic, 16)",
        _OURS, (("r", 32),),
    ),
    NamedSchedule(
        "fibres and rows in registers", *_MTTKRP4,
        "precompute(B(i,j,k,l) * E(l,r), r, r, w); precompute(w(r) * D(k,r), r, r, v); precompute(v(r) * C(j,r), r, r, u);"
        " prefetch([0, 0, 0], l, E, 8); parallelize(i, cpu_thread, no_races, dynamic, 16)",
        _OURS, (("r", 32),),
    ),
    NamedSchedule(
        "factorized and fused", *_TTMC,
        "precompute(B(i,j,k) * D(k,m), m, m, w); prefetch([0], k, D, 8); parallelize(i, cpu_thread, no_races, dynamic, 16)",
        "Dias et al., factorize and fuse",
    ),
    NamedSchedule(
        "hoisted product of rows", *_TTTP,
        "precompute(C(i,r) * D(j,r), r, r, w); precompute(w(r) * E(k,r), [], [], t); parallelize(i, cpu_thread, no_races, dynamic, 16);"
        " parallelize([1, 0], r, cpu_vector, parallel_reduction)",
        _OURS, (("r", 32),),
    ),
    NamedSchedule("two fused loops", *_CHAIN, "reorder(l, i, j, k, m, n); loopfuse(2, true, [])", "Dias et al., Figure 2b"),
    NamedSchedule(
        "nested fused loops", *_CHAIN,
        "reorder(l, i, j, k, m, n); loopfuse(2, true, []); reorder([1], m, k, j, n); factors([1], t1, D, E); loopfuse(2, true, [1])",
        "Dias et al., Figure 2e",
    ),
    NamedSchedule(
        "warp per row", *_SPGEMM,
        "assemble(A, insert); parallelize(i, gpu_warp, no_races); parallelize([0], j, gpu_thread, no_races)",
        f"{_NAGASAKA}, one warp to a row, in one order", target="cuda",
    ),
    NamedSchedule(
        "block per row", *_SPGEMM,
        "assemble(A, insert); parallelize(i, gpu_block, no_races); parallelize([0], k, gpu_warp, atomics);"
        " parallelize([0], j, gpu_thread, no_races)",
        f"{_NAGASAKA}, one block to a row", target="cuda",
    ),
    NamedSchedule(
        "fibre per thread", *_TTV, "collapse(i, j, f); pos(f, p, B(i,j,k)); parallelize(p, gpu_thread, no_races)", _FIBRES, target="cuda"
    ),
    NamedSchedule(
        "fibre per half warp", *_TTM,
        "collapse(i, j, f); pos(f, p, B(i,j,k)); reorder(p, l, k); parallelize(p, gpu_warp, no_races, lanes, 16);"
        " parallelize(l, gpu_thread, no_races)",
        _FIBRES, (("l", 16),), "cuda",
    ),
    NamedSchedule(
        "equal shares of fibres", *_MTTKRP_CSF,
        "reorder(i, j, r, k); precompute(B(i,j,k) * D(k,r), [], [], w); collapse(i, j, f); pos(f, p, B(i,j,k)); split(p, b, n, 16);"
        " reorder(b, r, n); parallelize(b, gpu_warp, no_races); parallelize(r, gpu_thread, atomics)",
        _FIBRES, target="cuda",
    ),
    NamedSchedule(
        "slice per warp, sums in registers", *_TTMC,
        "split(m, m0, m1, 8); reorder(i, l, m0, j, k, m1); precompute(B(i,j,k) * C(j,l) * D(k,m), m1, m1, w); collapse(l, m0, c);"
        " parallelize(i, gpu_warp, no_races); parallelize(c, gpu_thread, no_races)",
        _FIBRES, (("l", 16), ("m", 16)), "cuda",
    ),
    NamedSchedule("rows in pieces", *_SPGEMM, "parallelize(i, cpu_thread, no_races, dynamic, 64)", _OURS),
)


def schedules_for(
    assignment: Assignment, target: str = "cpu", extents: Mapping[str, int] | None = None
) -> Iterator[tuple[NamedSchedule, Schedule]]:
    """Yield the schedules of the library for expressions of the same form, with the names of this one.

    Args:
        assignment: the expression.
        target: "cpu" or "cuda".
        extents: those that are known, by index: schedules that require others are left out; None: no schedule is.
    """
    subscripted = sum(map(bool, (access.subscripts for access in (assignment.target, *accesses(assignment.value)))))
    for named in LIBRARY:  # only texts with as many tensors and indices are parsed
        if named.target == target and named.expression.count("(") == subscripted:
            names = same_form(_read(named.expression), assignment)
            if names is not None and (extents is None or all(extents.get(names[index]) == extent for index, extent in named.extents)):
                tensors = (assignment.target, *accesses(assignment.value))
                taken = {name for access in tensors for name in (access.tensor, *access.indices)}
                yield named, named.schedule.rename(names, taken)


@cache
def _read(expression: str) -> Assignment:
    """Return the assignment that schedules were written for; read once, since several schedules share one."""
    return parse(expression)


def same_form(known: Assignment, wanted: Assignment) -> dict[str, str] | None:
    """Return the names of ``wanted`` by those of ``known`` where the two differ in names and the order of factors only."""
    ours, theirs = accesses(known.value), accesses(wanted.value)
    if len(ours) != len(theirs) or len(ours) > 6 or known.operator != wanted.operator:
        return None
    for order in permutations(theirs):
        names = _matching((known.target, *ours), (wanted.target, *order))
        if names is not None and canonical(rename_expression(known.value, names)) == canonical(wanted.value):
            return names
    return None


def _matching(ours: tuple[Access, ...], theirs: tuple[Access, ...]) -> dict[str, str] | None:
    names: dict[str, str] = {}
    for mine, other in zip(ours, theirs, strict=True):
        if len(mine.subscripts) != len(other.subscripts) or not (mine.is_plain and other.is_plain):
            return None
        pairs = [(mine.tensor, other.tensor), *((a.index, b.index) for a, b in zip(mine.subscripts, other.subscripts, strict=True))]
        if any(names.setdefault(old, new) != new for old, new in pairs):
            return None
    return names if len(set(names.values())) == len(names) else None

