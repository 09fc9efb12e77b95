"""Searches of blocks and warps of a GPU: all lanes look at once for what all of them need."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from differential import gpu
from sparsetune.compiler.native.library import CSRC

pytestmark = pytest.mark.cc
needs_cxx = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
SPMM = "Y(i,k) = A(i,j) * X(j,k)"
SHARES = (
    "collapse(i, j, f); pos(f, p, A); split(p, b, q, 32); split(q, w, n, 8); reorder(b, w, k, n); parallelize(b, gpu_block, no_races);"
    " parallelize(w, gpu_warp, no_races); parallelize(k, gpu_thread, atomics)"
)
WARPS = (
    "collapse(i, j, f); pos(f, p, A); split(p, w, n, 8); reorder(w, k, n); parallelize(w, gpu_warp, no_races);"
    " parallelize(k, gpu_thread, atomics)"
)


def test_lanes_look_together_for_what_is_the_block_s_and_alone_for_what_is_their_own() -> None:
    text = st.compile(SPMM, {"A": "csr"}, schedule=SHARES, target="cuda", arch="sm_90").source
    assert text.count("= st_upper_bound_of_warp_i32(") == 2  # the block's row, and in what the block has that of the warp
    assert "= st_upper_bound_i32(" not in text
    threads = "collapse(i, j, f); pos(f, p, A); split(p, b, q, 64); split(q, t, n, 2); parallelize(b, gpu_block, no_races);"
    text = st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}, schedule=f"{threads} parallelize(t, gpu_thread, atomics)", target="cuda",
                      arch="sm_90").source  # fmt: skip
    together, alone = text.index("= st_upper_bound_of_warp_i32("), text.index("= st_upper_bound_i32(")
    assert together < text.index("st_thread_of_block()") < alone


@needs_cxx
@pytest.mark.parametrize("schedule", [SHARES, WARPS, WARPS.replace("gpu_warp, no_races", "gpu_warp, no_races, lanes, 4")])
@pytest.mark.parametrize(
    ("density", "shape"),
    [(0.02, (1500, 11)), (0.9, (3, 70)), (0.3, (33, 9)), (0.0, (5, 5)), (1.0, (1, 40)), (0.002, (2100, 9)), (0.5, (64, 4))],
)
def test_first_rows_are_found_in_many_and_in_few(schedule: str, density: float, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    kernel = st.compile(SPMM, {"A": "csr"}, schedule=schedule, target=gpu.TARGET)
    matrix = scipy.sparse.csr_array(rng.integers(1, 5, shape) * (rng.random(shape) < density).astype(float))
    x = rng.integers(1, 5, (shape[1], 5)).astype(float)
    np.testing.assert_array_equal(kernel(A=matrix, X=x), matrix @ x)


ENTRIES = "collapse(j, k, f); collapse(i, f, g); pos(g, p, B); split(p, t, q, 5); parallelize(t, gpu_thread, atomics)"


@needs_cxx
@pytest.mark.parametrize(("expression", "formats", "schedule"), [
    ("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr"},
     "collapse(k, j, f); pos(f, p, B); split(p, t, q, 4); reorder(i, t, q); parallelize(i, gpu_thread, no_races)"),
    ("y(j) = A(i) * B(i,j,k) * c(k)", {"A": "compressed", "B": "csf"}, ENTRIES),
    ("y(j) = A(i,j) * B(i,j,k) * c(k)", {"A": "csr", "B": "csf"}, ENTRIES),
    ("y(i) = A(j) * B(i,j,k) * c(k)", {"A": "compressed", "B": "csf"}, ENTRIES),
])  # fmt: skip
def test_rows_that_another_operand_does_not_have_are_passed_over(expression: str, formats: dict[str, str], schedule: str) -> None:
    """A cursor that stayed before the entries of such a row was looked up the row's parent for again, and for ever."""
    rng, extents = np.random.default_rng(0), {"i": 7, "j": 11, "k": 5}
    left, *factors = re.findall(r"\((.*?)\)", expression.replace(",", ""))
    names = re.findall(r"(\w)\(", expression.partition("=")[2])
    shapes = [tuple(extents[index] for index in indices) for indices in factors]
    values = [rng.integers(1, 4, shape) * (rng.random(shape) < 0.4).astype(float) for shape in shapes]
    kernel = st.compile(expression, formats, schedule=schedule, target=gpu.TARGET)
    found = kernel(**dict(zip(names, values, strict=True)))
    np.testing.assert_array_equal(found, np.einsum(f"{','.join(factors)}->{left}", *values))


FOUND = """
#include "st_cuda.h"
#include <algorithm>
#include <random>
#include <sys/mman.h>
template <class T> ST_KERNEL_OF_TYPES(32) part(ST_ARRAY(const T) crd, const int64_t low, const int64_t high, const int64_t key,
                                               ST_ARRAY(int64_t) found) {
  int64_t at[10] = {st_search(crd, low, high, key, false), st_search(crd, low, high, key, true)};
  at[2] = st_search_of_warp<32>(crd, low, high, key, false);
  at[3] = st_search_of_warp<32>(crd, low, high, key, true);
  at[4] = st_search_of_warp<4>(crd, low, high, key, true);
  at[5] = st_gallop(crd, low, high, key, (int64_t)1);
  at[6] = st_gallop(crd, low, high, key, (int64_t)3);
  at[7] = st_gallop(crd, low, high, key, INT64_C(1) << 40);
  at[8] = high > low ? st_path_fibre(crd, low, high - 1, key) : (int64_t)0;
  at[9] = high > low ? st_path_fibre_of_warp<32>(crd, low, high - 1, key) : (int64_t)0;
  if (st_first_of_block()) for (int k = 0; k < 10; k++) found[k] = at[k];
}
static int wrong = 0;
template <class T> void check(const T *crd, int64_t low, int64_t high, int64_t key) {
  st_host host;
  int64_t *const found = host.allocate<int64_t>(10, true), got[10];
  host.launch(1, 32, part<T>, crd, low, high, key, found);
  st_download(got, found, sizeof got);
  const int64_t first = std::lower_bound(crd + low, crd + high, key) - crd, past = std::upper_bound(crd + low, crd + high, key) - crd;
  int64_t fibre = low;
  const bool ends = high - low < 5000 && (high == low || (int64_t)crd[low] >= 0);
  if (ends)
    while (fibre < high - 1 && (int64_t)crd[fibre + 1] + fibre < key) fibre++;
  for (int k = 0; k < (ends ? 10 : 8); k++) {
    const int64_t wanted = k == 1 || k == 3 || k == 4 ? past : k < 8 ? first : high > low ? fibre : 0;
    if (got[k] == wanted && !host.status()) continue;
    if (wrong++ < 5) printf("%d of %d bytes: %lld .. %lld, %lld: %lld, not %lld; %s\\n", k, (int)sizeof(T), (long long)low,
                            (long long)high, (long long)key, (long long)got[k], (long long)wanted, st_trouble());
  }
}
template <class T> void few(int64_t least = 0) {
  std::mt19937 random(5);
  for (int64_t count : {0, 1, 2, 3, 31, 32, 33, 34, 70, 1025}) {
    std::vector<T> crd(count + 9);
    for (T &each : crd) each = (T)(least + random() % (count + 3));
    std::sort(crd.begin(), crd.end());
    st_adopt(crd.data(), crd.size() * sizeof(T), false);
    for (int64_t key : {(int64_t)0, (int64_t)1, count / 2, count, count + 3, (int64_t)-1, (int64_t)-7, least, least + count / 2,
                        INT64_C(0x7fffffff), -INT64_C(0x7fffffff), INT64_C(1) << 31, INT64_C(1) << 32, INT64_C(1) << 50,
                        -(INT64_C(1) << 40)})
      for (int64_t low : {0, 7}) check(crd.data(), low, low + count, key);
    st_disown(crd.data());
  }
}
template <class T> void many(int64_t key) {
  const int64_t count = (INT64_C(1) << 32) + 77, begin = count - 30;
  T *const crd = (T *)mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  for (int64_t k = begin; k < count; k++) crd[k] = (T)(key + k - begin);
  st_adopt(crd, count * sizeof(T), false);
  for (int64_t low : {INT64_C(3), begin - (INT64_C(1) << 31), begin + 2})
    for (int64_t wanted : {(int64_t)0, key, key + 11, key + 100}) check(crd, low, count, wanted);
  munmap(crd, count * sizeof(T));
}
int main() {
  few<uint16_t>();
  few<int32_t>();
  few<int64_t>();
  few<int32_t>(-40);
  few<int32_t>(-INT64_C(0x7fffffff));
  few<int64_t>(-(INT64_C(1) << 33));
  many<int32_t>(5);
  many<int32_t>(0x7fffffff - 29);
  many<int64_t>(INT64_C(1) << 33);
  const int64_t begin = INT64_C(1) << 33;
  for (int64_t low = 0; low <= 32; low++)
    for (int64_t high = 0; high <= 32; high++)
      for (int64_t place = 0; place < 32; place++)
        wrong += st_has_place(st_places(begin, begin + low, begin + high), place) != (low <= place && place < high);
  if (st_places(begin, INT64_C(9), INT64_C(5)) || st_places(begin, 2 * begin, begin)) wrong++;
  if (wrong) puts("wrong");
  return wrong;
}
"""


@needs_cxx
def test_searches_find_what_is_there_in_any_number_of_coordinates_of_any_width(tmp_path: Path) -> None:
    """They count in 32 bits: coordinates and keys may go beyond these, and so may what is searched."""
    (tmp_path / "found.cpp").write_text(FOUND)
    flags = ["-O0", "-std=gnu++17", "-DST_EXECUTOR", "-w", "-fwrapv", "-I", str(CSRC)]
    subprocess.run(["g++", *flags, str(tmp_path / "found.cpp"), "-o", str(tmp_path / "found")], check=True)
    assert subprocess.run([str(tmp_path / "found")], capture_output=True, text=True, check=False).stdout == ""


def test_threads_ask_one_number_which_of_their_elements_are_of_a_row() -> None:
    schedule = (
        "collapse(i, j, f); pos(f, p, A(i,j)); split(p, b, q, 64); split(q, t, n, 8); precompute(A(i,j) * x(j), n, m, w); unroll(m, 8);"
        " parallelize(b, gpu_block, no_races); parallelize(t, gpu_thread, atomics)"
    )
    text = st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}, schedule=schedule, target="cuda", arch="sm_90").source
    assert "int64_t places = st_places(p_low_2, at_A2, p_end_2);" in text
    assert "if (st_has_place(places, p_A2_2)) {" in text
