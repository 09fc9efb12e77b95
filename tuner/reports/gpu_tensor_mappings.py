"""Mappings of kernels over tensors of three modes to a GPU, which compete in the report (``gpu_cases``)."""

from __future__ import annotations

_FIBRES = "collapse(i, j, f); pos(f, p, B(i,j,k));"
_NONZEROS = "collapse(j, k, f); collapse(i, f, g); pos(g, p, B(i,j,k));"
_LANES = "parallelize({}, gpu_warp, no_races, lanes, {})"
_PAIR = "split({0}, t, {0}1, 2);"
"""Gives two columns to a thread, which loads them with one instruction."""

TTV = (
    *((f"fibre to a thread, {registers} registers", f"{_FIBRES} parallelize(p, gpu_thread, no_races, registers, {registers})")
      for registers in (48, 64)),
    ("8 fibres to a block, one to a warp", f"{_FIBRES} split(p, b, w, 8); parallelize(b, gpu_block, no_races);"
     " parallelize(w, gpu_warp, no_races); parallelize(k, gpu_thread, parallel_reduction)"),
    ("512 nonzeros to a block, 4 to a thread", f"{_NONZEROS} split(p, b, q, 512); split(q, t, n, 4); parallelize(b, gpu_block, no_races);"
     " parallelize(t, gpu_thread, atomics)"),
)  # fmt: skip
TTM = (
    ("slice to a block", "pos(i, p, B); parallelize(p, gpu_block, no_races); parallelize(l, gpu_thread, no_races)"),
    ("fibre to half a warp, 4 nonzeros at a time", f"{_FIBRES} reorder(p, l, k); unroll(k, 4); {_LANES.format('p', 16)};"
     " parallelize(l, gpu_thread, no_races)"),
    ("fibre to a quarter of a warp, wide loads", f"{_FIBRES} {_PAIR.format('l')} reorder(p, t, k, l1);"
     f" precompute(B(i,j,k) * C(k,l), l1, l1, w); {_LANES.format('p', 8)}; parallelize(t, gpu_thread, no_races)"),
    ("fibre to a quarter of a warp, wide loads, 32 registers", f"{_FIBRES} {_PAIR.format('l')} reorder(p, t, k, l1);"
     f" precompute(B(i,j,k) * C(k,l), l1, l1, w); {_LANES.format('p', 8)}; parallelize(t, gpu_thread, no_races, registers, 32)"),
    ("32 nonzeros to half a warp", f"{_NONZEROS} split(p, b, n, 32); reorder(b, l, n); {_LANES.format('b', 16)};"
     " parallelize(l, gpu_thread, atomics)"),
)  # fmt: skip
_ROW = "parallelize(i, gpu_warp, no_races); parallelize({}, gpu_thread, no_races)"
MTTKRP = (
    ("slice to a block", "parallelize(i, gpu_block, no_races); parallelize(r, gpu_thread, atomics)"),
    ("16 nonzeros to a block", f"{_NONZEROS} split(p, b, n, 16); reorder(b, r, n); parallelize(b, gpu_block, no_races);"
     " parallelize(r, gpu_thread, atomics)"),
    *((f"{block} nonzeros to a block, {warp} to a warp", f"{_NONZEROS} split(p, b, q, {block}); split(q, w, n, {warp});"
       " reorder(b, w, r, n); parallelize(b, gpu_block, no_races); parallelize(w, gpu_warp, no_races); parallelize(r, gpu_thread, atomics)")
      for block, warp in ((128, 16), (512, 64))),
    ("slice to a warp, sums in registers", f"reorder(i, r, j, k); {_ROW.format('r')}"),
    ("slice to a warp, sums in registers, 40 registers", "reorder(i, r, j, k); parallelize(i, gpu_warp, no_races);"
     " parallelize(r, gpu_thread, no_races, registers, 40)"),
    ("slice to half a warp, wide loads, 40 registers", f"{_PAIR.format('r')} reorder(i, t, j, k, r1);"
     f" precompute(B(i,j,k) * C(j,r) * D(k,r), r1, r1, w); {_LANES.format('i', 16)};"
     " parallelize(t, gpu_thread, no_races, registers, 40)"),
    ("slice to half a warp, wide loads", f"{_PAIR.format('r')} reorder(i, t, j, k, r1); precompute(B(i,j,k) * C(j,r) * D(k,r), r1, r1, w);"
     f" {_LANES.format('i', 16)}; parallelize(t, gpu_thread, no_races)"),
    *((f"{fibres} fibres to a warp, their sums in registers", "reorder(i, j, r, k); precompute(B(i,j,k) * D(k,r), [], [], w);"
       f" {_FIBRES} split(p, b, n, {fibres}); reorder(b, r, n); parallelize(b, gpu_warp, no_races); parallelize(r, gpu_thread, atomics)")
      for fibres in (4, 64)),
    *((f"{fibres} fibres to a warp, 4 nonzeros at a time", "reorder(i, j, r, k); precompute(B(i,j,k) * D(k,r), [], [], w);"
       f" {_FIBRES} split(p, b, n, {fibres}); reorder(b, r, n); unroll([0], k, 4); parallelize(b, gpu_warp, no_races);"
       " parallelize(r, gpu_thread, atomics)") for fibres in (4, 16)),
    ("8 fibres to half a warp, wide loads", f"{_PAIR.format('r')} reorder(i, j, t, k, r1); precompute(B(i,j,k) * D(k,r), r1, r1, w);"
     f" {_FIBRES} split(p, b, n, 8); reorder(b, t, n); {_LANES.format('b', 16)}; parallelize(t, gpu_thread, atomics)"),
)  # fmt: skip
_EIGHT = "split(m, m0, m1, 8);"
TTMC = (
    ("slice to a block, columns to threads", "parallelize(i, gpu_block, no_races); parallelize(m, gpu_thread, no_races)"),
    ("slice to a block, rows to warps", "parallelize(i, gpu_block, no_races); parallelize(l, gpu_warp, no_races);"
     " parallelize(m, gpu_thread, no_races)"),
    ("slice to a warp, columns to threads", "parallelize(i, gpu_warp, no_races); parallelize(m, gpu_thread, no_races)"),
    ("slice to a block, an element to a thread", "reorder(i, l, m, j, k); collapse(l, m, c); parallelize(i, gpu_block, no_races);"
     " parallelize(c, gpu_thread, no_races)"),
    ("slice to a warp, fibre by fibre, 8 elements to a thread", f"{_EIGHT} reorder(i, l, m0, j, k, m1); precompute(B(i,j,k) * D(k,m), m1,"
     f" m1, w); precompute(w(m1) * C(j,l), m1, m1, v); collapse(l, m0, c); {_ROW.format('c')}"),
    ("8 fibres to a warp, 8 elements to a thread", f"{_EIGHT} reorder(i, j, l, m0, k, m1); precompute(B(i,j,k) * D(k,m), m1, m1, w);"
     f" collapse(l, m0, c); {_FIBRES} split(p, b, n, 8); reorder(b, c, n); parallelize(b, gpu_warp, no_races);"
     " parallelize(c, gpu_thread, atomics)"),
)  # fmt: skip
