"""The cases of the report on GPUs: kernels, the schedules that compete for each, and operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse

from ...compiler.frozen import frozen
from ...compiler.notation.nodes import accesses
from ...compiler.notation.parser import parse
from ...compiler.space.library import schedules_for
from ...compiler.storage.construct import tensor
from ...compiler.storage.tensor import Tensor
from ..model import model_choice
from ..problem import Problem
from ..resolve import make_problem
from .gpu_tensor_mappings import MTTKRP, TTM, TTMC, TTV
from .gpu_work import lengths, products


@frozen
class GpuCase:
    """An expression over one sparse input, and mappings to a GPU by name.

    Attributes:
        order: number of modes of the input.
        columns: extents that are compile-time constants.
        square: whether the input is multiplied by itself, and has to be square.
        most: most stored entries of an input (products of entries, if it is multiplied by itself), since computing the expected result
            takes long.
        serial: mappings that give a whole row or column to one thread, each with the most entries (or products) of a row or column with
            which it runs: with more it takes seconds.
    """

    name: str
    expression: str
    formats: tuple[tuple[str, str], ...]
    mappings: tuple[tuple[str, str], ...]
    order: int = 2
    columns: tuple[tuple[str, int], ...] = ()
    square: bool = False
    most: int | None = None
    serial: tuple[tuple[str, int], ...] = ()

    @property
    def reads_all(self) -> bool:
        """Whether every entry of the input is read, whatever the other operands store."""
        return all(form != "compressed" for _, form in self.formats)

    def takes(self, what: str, data: Tensor) -> bool:
        """Return whether a mapping takes less than seconds on an input (``serial``)."""
        most = dict(self.serial).get(what)
        if most is None:
            return True
        rows = products(data) if self.square else lengths(data, dict(self.formats)["A"] == "csc")
        return int(rows.max(initial=0)) <= most

    def schedules(self) -> Iterator[tuple[str, str | None]]:
        """Yield names and schedules: the default, those of the library that fit, then the mappings."""
        formats = dict(self.formats)
        yield DEFAULT, None
        for named, schedule in schedules_for(parse(self.expression), "cuda"):
            if set(named.extents) <= set(self.columns) and all(formats.get(name) == form for name, form in dict(named.formats).items()):
                yield named.name, str(schedule)
        yield from self.mappings

    def choice(self, operands: Mapping[str, Any]) -> str | None:
        """Return the schedule that the static model chooses for operands, on any GPU; None: the default."""
        found = model_choice(self.problem(operands))
        return None if found is None else str(found)

    def problem(self, operands: Mapping[str, Any]) -> Problem:
        """Return what the static model knows of operands."""
        formats = dict(self.formats)
        stored = {name: tensor(data, formats[name]) if name in formats else data for name, data in operands.items()}
        return make_problem(self.expression, stored, formats.get(parse(self.expression).target.tensor), "cuda", arch=USUAL_ARCH)

    def operands(self, data: Tensor) -> dict[str, Any]:
        """Return operands: the input for every sparse matrix or tensor, by columns if the format asks for it; seeded random numbers for
        the others, nine in ten of which are 0 in a sparse vector.
        """
        assignment, rng = parse(self.expression), np.random.default_rng(0)
        sparse = {name for name, _ in self.formats if name != assignment.target.tensor}
        extents = dict(self.columns)
        found: dict[str, Any] = {}
        for access in sorted(accesses(assignment.value), key=lambda access: (access.tensor not in sparse, len(access.indices) == 1)):
            if access.tensor in sparse and len(access.indices) > 1:
                found[access.tensor] = data if dict(self.formats)[access.tensor] != "csc" else scipy.sparse.csc_array(data.to_scipy())
                extents |= dict(zip(access.indices, data.shape, strict=True))
                continue
            made = rng.random(tuple(extents[index] for index in access.indices))
            found[access.tensor] = made * (rng.random(made.shape) < 0.1) if access.tensor in sparse else made
        return found


def _nonzeros(names: str, of: str, block: int, thread: int, races: tuple[str, str] = ("no_races", "atomics")) -> str:
    """Return a mapping by equal shares of stored entries: ``block`` to a block, and of these ``thread`` to a thread."""
    return (
        f"{names}; pos(f, p, {of}); split(p, b, q, {block}); split(q, t, n, {thread}); parallelize(b, gpu_block, {races[0]});"
        f" parallelize(t, gpu_thread, {races[1]})"
    )


DEFAULT = "default"
"""Name of the mapping that the compiler makes without a schedule."""
CHOSEN = "chosen by the static model: "
"""How the name of a mapping begins that is made for one input without any measurement; its schedule follows."""
USUAL_ARCH = "sm_90"
"""The architecture that choices are made for; the model is that of one GPU, so they are the same for all."""
CPU = "32 rows to a thread"
"""Name of a schedule for processors when it runs on a GPU (section 7.3)."""
PLAIN = "position split, neither temporary nor unrolling"
UNROLLED = "position split, unrolled loads"
"""Names of two mappings: the second is Figure 2e; the first lacks what makes that 1.36 times as fast in section 7.3."""

_ROWS = "parallelize(i, gpu_warp, no_races); parallelize(j, gpu_thread, parallel_reduction)"
_PATH = "collapse(i, j, f); pos(f, p, A); merge_path(p, m); split(m, b, q, 512); split(q, t, n, 4);"
_SPMV = (
    (PLAIN, "collapse(i, j, f); pos(f, p, A(i,j)); split(p, block, pl, 8192); split(pl, warp, p2, 512); split(p2, thread, nz, 16);"
     " parallelize(block, gpu_block, no_races); parallelize(warp, gpu_warp, no_races); parallelize(thread, gpu_thread, atomics)"),
    ("row to a thread", "parallelize(i, gpu_thread, no_races)"),
    (CPU, "split(i, i0, i1, 32); parallelize(i0, gpu_thread, no_races)"),
    ("row to a warp", _ROWS),
    *((f"row to {lanes} lanes", _ROWS.replace("no_races", f"no_races, lanes, {lanes}")) for lanes in (2, 4, 8, 16)),
    *((f"row to {lanes} lanes, {ahead} at a time", f"{_ROWS.replace('no_races', f'no_races, lanes, {lanes}')}; unroll(j, {ahead})")
      for lanes, ahead in ((2, 4), (4, 4), (8, 2), (8, 4), (16, 2), (16, 4), (32, 2), (32, 4))),
    *((f"{block} nonzeros to a block, {thread} to a thread", _nonzeros("collapse(i, j, f)", "A", block, thread))
      for block, thread in ((256, 2), (512, 4), (1024, 8), (2048, 8))),
    *((f"{block} nonzeros to a block, {thread} to a thread, carried in order",
       _nonzeros("collapse(i, j, f)", "A", block, thread, ("temporary", "temporary"))) for block, thread in ((512, 4), (2048, 8))),
    *((f"{block} nonzeros to a block, {thread} to a thread, products first",
       f"collapse(i, j, f); pos(f, p, A(i,j)); split(p, b, q, {block}); split(q, t, n, {thread});"
       f" precompute(A(i,j) * x(j), n, m, w); unroll(m, {thread}); parallelize(b, gpu_block, no_races);"
       " parallelize(t, gpu_thread, atomics)")
      for block, thread in ((512, 4), (1024, 4), (1024, 8), (2048, 8))),
    ("merge path, 512 items to a block, 4 to a thread",
     f"{_PATH} parallelize(b, gpu_block, no_races); parallelize(t, gpu_thread, atomics)"),
    ("merge path, 512 items to a block, 4 to a thread, carried in order",
     f"{_PATH} parallelize(b, gpu_block, temporary); parallelize(t, gpu_thread, temporary)"),
)  # fmt: skip
_PAIRS = "split(k, t, k1, 2); reorder(i, t, j, k1); precompute(A(i,j) * X(j,k), k1, k1, w); collapse(i, t, f);"
_FOURS = "split(k, t, k1, 4); reorder(i, t, j, k1); precompute(A(i,j) * X(j,k), k1, k1, w);"
_APART = "split(k, u, t, 64); split(t, l, v, 2); reorder(i, l, j, u, v); precompute(A(i,j) * X(j,k), [u, v], [u, v], w);"
_A_WARP_EACH = "parallelize(i, gpu_warp, no_races); parallelize(t, gpu_thread, no_races)"


def _shares_of_warps(block: int, warp: int, ahead: int, columns: int) -> tuple[str, str]:
    """Return the name and schedule of a mapping by equal shares of stored entries for warps; each lane has ``columns`` columns, and loads
    ``ahead`` rows at a time.

    If ``block`` equals ``warp``, the schedule has no level of blocks.
    """
    tiles, lanes = ("", "k, n") if columns == 1 else (f" split(k, t, k1, {columns});", "t, n, k1")
    who = "a warp" if columns != 2 else "16 lanes"
    race = f"parallelize(w, gpu_warp, no_races); parallelize({lanes[0]}, gpu_thread, atomics)"
    if block == warp:
        cut, order, name = f"split(p, w, n, {warp});", f"w, {lanes}", f"{warp} nonzeros to {who}"
    else:
        cut, order = f"split(p, b, q, {block}); split(q, w, n, {warp});", f"b, w, {lanes}"
        name = f"{block} nonzeros to a block, {warp} to {who}"
        race = f"parallelize(b, gpu_block, no_races); {race}"
    return f"{name}, {ahead} at a time", f"collapse(i, j, f); pos(f, p, A); {cut}{tiles} reorder({order}); unroll(n, {ahead}); {race}"


_SPMM = (
    ("two columns of a row to a thread, wide loads", f"{_PAIRS} parallelize(f, gpu_thread, no_races)"),
    ("two columns of a row to a thread, wide loads, 8 at a time", f"{_PAIRS} unroll([0], j, 8); parallelize(f, gpu_thread, no_races)"),
    ("two columns of a row to a thread, wide loads, 40 registers", f"{_PAIRS} parallelize(f, gpu_thread, no_races, registers, 40)"),
    ("row to a warp, wide loads", f"{_FOURS} {_A_WARP_EACH}"),
    ("32 nonzeros to a block, carried in order", "collapse(i, j, f); pos(f, p, A); split(p, b, n, 32); reorder(b, k, n);"
     " parallelize(b, gpu_block, temporary); parallelize(k, gpu_thread, no_races)"),
    ("row to a warp, sums in registers", "reorder(i, k, j); parallelize(i, gpu_warp, no_races); parallelize(k, gpu_thread, no_races)"),
    ("row to a block", "parallelize(i, gpu_block, no_races); parallelize(k, gpu_thread, no_races)"),
    ("32 nonzeros to a block", "collapse(i, j, f); pos(f, p, A); split(p, b, n, 32); reorder(b, k, n); parallelize(b, gpu_block, no_races);"
     " parallelize(k, gpu_thread, atomics)"),
)  # fmt: skip
_SPMM_32 = (
    *_SPMM,
    *((f"row to a warp, sums in registers, {ahead} at a time", f"reorder(i, k, j); unroll(j, {ahead}); parallelize(i, gpu_warp, no_races);"
       " parallelize(k, gpu_thread, no_races)") for ahead in (4, 8)),
    ("four columns of a row to a thread, wide loads, 2 at a time", f"{_FOURS} collapse(i, t, f); unroll([0], j, 2);"
     " parallelize(f, gpu_thread, no_races)"),
    ("four columns of a row to a thread, wide loads, 40 registers", f"{_FOURS} collapse(i, t, f); parallelize(f, gpu_thread, no_races,"
     " registers, 40)"),
    *(_shares_of_warps(block, warp, ahead, 1)
      for block, warp, ahead in ((256, 32, 4), (512, 64, 4), (16, 16, 4), (32, 32, 4), (64, 64, 4), (128, 128, 4))),
    *(_shares_of_warps(block, warp, ahead, 2) for block, warp, ahead in ((1024, 64, 4), (2048, 128, 4))),
)  # fmt: skip
_SPMM_128 = (
    *_SPMM,
    ("row to a warp, pairs of columns 64 apart, wide loads, 2 at a time",
     f"{_APART} unroll([0], j, 2); {_A_WARP_EACH.replace('(t,', '(l,')}"),
    ("row to a warp, wide loads, 4 at a time", f"{_FOURS} unroll([0], j, 4); {_A_WARP_EACH}"),
    *(_shares_of_warps(block, warp, ahead, 4)
      for block, warp, ahead in ((256, 32, 2), (512, 64, 2), (1024, 128, 4), (16, 16, 2), (32, 32, 2), (64, 64, 4))),
)  # fmt: skip
_SPMSPV = (
    ("column to a warp", "parallelize(j, gpu_warp, atomics); parallelize(i, gpu_thread, atomics)"),
    ("column to a block", "parallelize(j, gpu_block, atomics); parallelize(i, gpu_thread, atomics)"),
    ("8 entries of the vector to a block, one to a warp", "pos(j, p, x); split(p, b, w, 8); parallelize(b, gpu_block, atomics);"
     " parallelize(w, gpu_warp, atomics); parallelize(i, gpu_thread, atomics)"),
    ("column to a thread", "parallelize(j, gpu_thread, atomics)"),
    ("column to 8 lanes", "parallelize(j, gpu_warp, atomics, lanes, 8); parallelize(i, gpu_thread, atomics)"),
    *((f"column to a block of {threads}", f"pos(i, p, A); split(p, q, t, {threads}); reorder(j, t, q);"
       " parallelize(j, gpu_block, atomics); parallelize(t, gpu_thread, atomics)") for threads in (32, 64, 128)),
)  # fmt: skip
_DOTS = "parallelize(k, gpu_thread, parallel_reduction)"
_DOTS_OF_EIGHT = "parallelize(t, gpu_thread, parallel_reduction)"
_EIGHT = "gpu_warp, no_races, lanes, 8"
_SDDMM = (
    ("8 nonzeros to a block, one to a warp", "collapse(i, j, f); pos(f, p, B); split(p, b, w, 8); parallelize(b, gpu_block, no_races);"
     f" parallelize(w, gpu_warp, no_races); {_DOTS}"),
    ("row to a warp", f"parallelize(i, gpu_warp, no_races); {_DOTS}"),
    *((f"row to a warp, {ahead} at a time", f"unroll(j, {ahead}); parallelize(i, gpu_warp, no_races); {_DOTS}") for ahead in (4, 8)),
    ("row to 8 lanes, wide loads, 2 at a time", f"split(k, t, k1, 4); unroll(j, 2); parallelize(i, {_EIGHT}); {_DOTS_OF_EIGHT}"),
    *((f"{block} nonzeros to a block, {warp} to a warp, {ahead} at a time",
       f"collapse(i, j, f); pos(f, p, B); split(p, b, q, {block}); split(q, w, n, {warp}); unroll(n, {ahead});"
       f" parallelize(b, gpu_block, no_races); parallelize(w, gpu_warp, no_races); {_DOTS}")
      for block, warp, ahead in ((256, 32, 2), (512, 64, 4), (1024, 128, 4))),
    *((f"{block} nonzeros to a block, {warp} to 8 lanes, wide loads, {ahead} at a time",
       f"collapse(i, j, f); pos(f, p, B); split(p, b, q, {block}); split(q, w, n, {warp}); split(k, t, k1, 4); unroll(n, {ahead});"
       f" parallelize(b, gpu_block, no_races); parallelize(w, {_EIGHT}); {_DOTS_OF_EIGHT}")
      for block, warp, ahead in ((512, 16, 2), (1024, 32, 4), (2048, 64, 4))),
    *((f"{warp} nonzeros to 8 lanes, wide loads, {ahead} at a time",
       f"collapse(i, j, f); pos(f, p, B); split(p, w, n, {warp}); split(k, t, k1, 4); unroll(n, {ahead}); parallelize(w, {_EIGHT});"
       f" {_DOTS_OF_EIGHT}") for warp, ahead in ((8, 2), (16, 2), (32, 4))),
    ("16 nonzeros to 8 lanes, wide loads, 2 at a time, 48 registers", "collapse(i, j, f); pos(f, p, B); split(p, w, n, 16);"
     f" split(k, t, k1, 4); unroll(n, 2); parallelize(w, {_EIGHT}); parallelize(t, gpu_thread, parallel_reduction, registers, 48)"),
    ("256 nonzeros to a block, one to 8 lanes, wide loads", "collapse(i, j, f); pos(f, p, B); split(p, b, w, 256); split(k, t, k1, 4);"
     f" parallelize(b, gpu_block, no_races); parallelize(w, {_EIGHT}); {_DOTS_OF_EIGHT}"),
)  # fmt: skip
_SPGEMM = (
    ("row to a block, its threads along a row of B", "assemble(C, insert); parallelize(i, gpu_block, no_races);"
     " parallelize([0], j, gpu_thread, no_races)"),
)  # fmt: skip

SPMV = GpuCase("SpMV", "y(i) = A(i,j) * x(j)", (("A", "csr"),), _SPMV,
               serial=((DEFAULT, 200_000), ("row to a thread", 200_000), (CPU, 10_000)))  # fmt: skip
FAR = ("warp per row", UNROLLED, "merge path", "2048 nonzeros to a block, 8 to a thread")
"""The mappings of SpMV that run on more than 2^31 entries."""

KERNELS = (
    SPMV,
    GpuCase("SpMM 32", "Y(i,k) = A(i,j) * X(j,k)", (("A", "csr"),), _SPMM_32, columns=(("k", 32),)),
    GpuCase("SpMM 128", "Y(i,k) = A(i,j) * X(j,k)", (("A", "csr"),), _SPMM_128, columns=(("k", 128),)),
    GpuCase("SDDMM 32", "Z(i,j) = B(i,j) * C(i,k) * D(j,k)", (("B", "csr"), ("Z", "csr")), _SDDMM, columns=(("k", 32),)),
    GpuCase("SpMSpV", "y(i) = A(i,j) * x(j)", (("A", "csc"), ("x", "compressed")), _SPMSPV,
            serial=((DEFAULT, 50_000), ("column to a thread", 50_000))),
    GpuCase("SpGEMM", "C(i,j) = A(i,k) * B(k,j)", (("A", "csr"), ("B", "csr"), ("C", "csr")), _SPGEMM, square=True,
            most=500_000_000, serial=((DEFAULT, 4096),)),
    GpuCase("TTV", "T(i,j) = B(i,j,k) * c(k)", (("B", "csf"), ("T", "dcsr")), TTV, order=3),
    GpuCase("TTM 16", "T(i,j,l) = B(i,j,k) * C(k,l)", (("B", "csf"), ("T", "compressed, compressed, dense")), TTM, 3, (("l", 16),)),
    GpuCase("TTMc 16", "R(i,l,m) = B(i,j,k) * C(j,l) * D(k,m)", (("B", "csf"),), TTMC, 3, (("l", 16), ("m", 16)), most=2_000_000),
    GpuCase("MTTKRP 32", "A(i,r) = B(i,j,k) * C(j,r) * D(k,r)", (("B", "csf"),), MTTKRP, 3, (("r", 32),)),
)


def kernels_for(data: Tensor) -> Iterator[GpuCase]:
    """Yield the kernels that fit an input."""
    for kernel in KERNELS:
        if kernel.order != data.order or (kernel.square and data.shape[0] != data.shape[1]):
            continue
        if kernel.most is None or (products(data).sum() if kernel.square else data.nnz) <= kernel.most:
            yield kernel
