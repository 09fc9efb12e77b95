"""CUDA C++: what is generated of schedules, what is refused, and what callers see."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from differential import gpu
from differential.gpu_mappings import CARRIED, MAPPINGS, NONZEROS, SHARED, SPMM, SPMV, operands, source
from sparsetune.compiler.errors import BuildError, ScheduleError
from sparsetune.compiler.ir.parser import parse_function
from sparsetune.compiler.ir.printer import show_function
from sparsetune.compiler.kernel import Signature
from sparsetune.compiler.passes.cuda import CUDA as PASSES
from sparsetune.compiler.passes.manager import VectorUnit
from sparsetune.compiler.space.library import LIBRARY

pytestmark = pytest.mark.cc
needs_cxx = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")


@needs_cxx
def test_workspaces_of_a_block_are_shared_between_barriers() -> None:
    kernel = st.compile(SPMM, {"A": "csr"}, schedule=SHARED, target=gpu.TARGET)
    assert "ST_SHARED(double, w, 8);" in kernel.source
    assert "st_barrier_of_block();" in kernel.source
    arrays = operands(SPMM, {"A": "csr"})
    np.testing.assert_array_equal(kernel(**arrays), arrays["A"] @ arrays["X"])


def test_sums_of_a_warp_are_shuffled_and_stored_once() -> None:
    text = source("row to a warp")
    assert "ty += st_add_of_threads_of_warp(ty_own);" in text
    assert "if (st_first_of_warp()) {\n      y_vals[i] = ty;" in text
    assert "st_atomic" not in text
TILES = (
    "split(k, t, k1, 4); reorder(i, t, j, k1); precompute(A(i,j) * X(j,k), k1, k1, w); parallelize(i, gpu_warp, no_races);"
    " parallelize(t, gpu_thread, no_races)"
)


@needs_cxx
@pytest.mark.parametrize(
    ("schedule", "extent", "dtype", "call"),
    [
        (TILES, 8, "float32", "st_load_wide_from(X_vals_row, X_vals, k_low, j * 8, 4);"),
        (TILES, 8, "float64", "st_load_wide_from(X_vals_row, X_vals, k_low, j * 8, 4);"),
        ("parallelize(i, gpu_thread, no_races)", 16, "float32", "st_load_wide(X_vals_row, X_vals, j * 16, 16);"),
        (TILES, 6, "float32", None),  # rows begin between multiples of four
        (TILES.replace("k1, 4)", "k1, 2)"), 6, "float64", "st_load_wide_from(X_vals_row, X_vals, k_low, j * 6, 2);"),
        (TILES, None, "float32", None),
    ],
)
def test_neighbouring_elements_are_loaded_together_where_they_are_aligned(
    schedule: str, extent: int | None, dtype: str, call: str | None
) -> None:
    known = {} if extent is None else {"k": extent}
    kernel = st.compile(SPMM, {"A": "csr"}, known, schedule, dtype=dtype, target=gpu.TARGET)
    assert ("st_load_wide" in kernel.source) == ("st_store_wide" in kernel.source) == (call is not None)
    assert call is None or call in kernel.source
    arrays = {name: values.astype(dtype) for name, values in operands(SPMM, {"A": "csr"}).items()}
    arrays["X"] = np.tile(arrays["X"], (1, 2))[:, : extent or 37]
    np.testing.assert_array_equal(kernel(**arrays), arrays["A"] @ arrays["X"])


@needs_cxx
def test_sums_that_are_carried_need_no_atomics() -> None:
    text = source("sums carried in order")
    assert "st_atomic" not in text
    assert "st_device.carry(y_vals_to, y_vals_kept, y_vals, y_vals_slots, 1, 0);" in text
    rng = np.random.default_rng(0)
    matrix, x = scipy.sparse.csr_array(rng.random((3, 400)) * (rng.random((3, 400)) < 0.9)), rng.random(400)
    found = st.compile(SPMV, {"A": "csr"}, schedule=CARRIED, target=gpu.TARGET)(A=matrix, x=x)
    np.testing.assert_allclose(found, matrix.toarray() @ x, rtol=1e-14)


def test_atomic_sums_are_gathered_first() -> None:
    text = source("equal shares of nonzeros")
    assert "y_vals_sum += A_vals[p_A2] * x_vals[j];" in text
    assert "st_upper_bound_i32(A2_pos" in text


def test_shares_of_nonzeros_are_one_kernel_without_waiting() -> None:
    text = source("equal shares of nonzeros")
    assert "st_device.take(" not in text
    assert "st_device.launch((A2_length + 255) / 256, 32," in text  # a tile of 256 has 32 of 8
    assert "b_end = (A2_length + 255) / 256;" in text
    assert "st_barrier_of_block" not in text


ROWS_OF_FIBRES = "parallelize(i, gpu_{unit}, no_races{lanes}); parallelize(l, gpu_thread, no_races)"
TTM, FIBRES = "T(i,j,l) = B(i,j,k) * C(k,l)", {"B": "csf", "T": "compressed, compressed, dense"}


@pytest.mark.parametrize(("unit", "lanes"), [("block", ""), ("warp", ""), ("warp", ", lanes, 4")])
@pytest.mark.parametrize("known", [{"l": 6}, {}])
def test_threads_that_keep_to_their_columns_do_not_wait(unit: str, lanes: str, known: dict[str, int]) -> None:
    """Whichever fibre's row comes next, a column of it is of the same thread."""
    kernel = st.compile(TTM, FIBRES, known, schedule=ROWS_OF_FIBRES.format(unit=unit, lanes=lanes), target="cuda", arch="sm_90")
    assert f"st_thread_of_{unit}" in kernel.source
    assert "st_barrier_of" not in kernel.source


def test_threads_look_for_rows_among_those_of_their_block() -> None:
    text = source("equal shares of nonzeros")
    of_block, of_thread = text.index("st_upper_bound_of_warp_i32(A2_pos, 1, i_size + 1, p_low)"), text.index("for (int64_t t =")
    assert of_block < of_thread < text.index("st_upper_bound_i32(A2_pos, first_A1 + 1, past_A1 + 1, p_low_2)")
    assert text.count("i_size + 1, p_low") == 1


def test_entries_of_one_long_row_go_to_all_warps() -> None:
    text = source("sampled")
    assert "for (int64_t w = st_warp_of_block() + p_low, w_end = p_high; w < w_end; w += st_warps_of_block()) {" in text
    assert "st_device.fill" not in text  # every entry is written, so nothing is before


def test_loads_that_are_unrolled_ask_for_no_rows() -> None:
    """Senanayake et al., Figure 2e: products are computed first, whatever rows they belong to."""
    named = next(found for found in LIBRARY if found.name == "position split, unrolled loads")
    text = st.compile(named.expression, dict(named.formats), schedule=named.text, target="cuda", arch="sm_90").source
    loads = text[text.index("double t[16] = {0};") :].split("first_A1")[0]
    assert "ST_UNROLL(16)" in loads
    assert "int64_t j = A2_crd_row[nz_pre_2];" in loads
    assert "A2_pos" not in loads


def test_a_sparse_result_is_counted_scanned_and_filled() -> None:
    text = source("product")
    host = text[text.index("ST_EXPORT") :]
    first, scan, second = host.index("st_kernel_part"), host.index("st_device.scan("), host.rindex("st_device.launch(")
    assert first < scan < second
    assert host.count("st_device.publish(") == 3


def test_positions_beyond_32_bits() -> None:
    compiled = st.compile(SPMV, {"A": "csr"}, schedule=NONZEROS, target="cuda", arch="sm_90")
    wide = compiled.kernel_for(Signature((("A", "float64"), ("x", "float64")), (("A", (64, 64)), ("x", (64,))), wide=True)).source
    assert "ST_ARRAY(const int64_t) A2_pos" in wide
    assert "int32_t p" not in wide


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("parallelize(i, gpu_block, temporary); precompute(A(i,j) * x(j), j, j, w)", "directive 2"),
        ("parallelize(i, cpu_thread, no_races)", "target cuda has no such unit; it has gpu_block, gpu_thread, gpu_warp"),
    ],
)
def test_what_has_no_form_is_refused(schedule: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        _ = st.compile(SPMV, {"A": "csr"}, schedule=schedule, target="cuda", arch="sm_90").source


def test_nothing_runs_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    kernel = st.compile(SPMV, {"A": "csr"}, target="cuda", arch="sm_90")
    assert str(kernel.schedule) == "parallelize(i, gpu_thread, no_races, registers, 48)"
    with pytest.raises(BuildError, match=r"^target cuda needs an NVIDIA GPU"):
        kernel(A=np.eye(3), x=np.ones(3))


@needs_cxx
def test_functions_of_expressions_have_the_values_of_numpy() -> None:
    kernel = st.compile("y(i) = exp(x(i)) + pow(x(i), 2.5) + tanh(x(i)) * sqrt(x(i)) + abs(log(x(i)))", target=gpu.TARGET)
    x = np.linspace(0.1, 2, 40)
    np.testing.assert_allclose(kernel(x=x), np.exp(x) + x**2.5 + np.tanh(x) * np.sqrt(x) + np.abs(np.log(x)))


@needs_cxx
def test_transfers_are_counted() -> None:
    kernel = st.compile(SPMV, {"A": "csr"}, target=gpu.TARGET)
    stored, x = scipy.sparse.eye_array(10, format="csr"), np.ones(10)
    bound = kernel.bind(A=stored, x=x)
    np.testing.assert_array_equal(bound(), x)
    assert bound.launch.transferred == 11 * 4 + 10 * 4 + 10 * 8 + 10 * 8 + 10 * 8
    x *= 2
    np.testing.assert_array_equal(bound(), x)


@needs_cxx
def test_dense_blocks_without_entries_take_no_place() -> None:
    """Below a compressed level: the place where one would go is that of the next one, which another thread fills."""
    order = (2, 0, 1)
    kernel = st.compile(
        "A(j,i,l) = B(l,j,i)",
        {"B": "dense, dense, compressed", "A": st.Format("compressed, dense, compressed", order)},
        target=gpu.TARGET,
    )
    b = np.zeros((7, 3, 4))
    b[2, 1, 3], b[4, 0, 0], b[4, 2, 1] = 1.0, 2.0, 3.0
    found = kernel(B=st.tensor(b, format="dense, dense, compressed"))
    assert found.nnz == 3
    np.testing.assert_array_equal(found.to_numpy(), b.transpose(1, 2, 0))


@needs_cxx
def test_faults_of_kernels_are_errors() -> None:
    kernel = st.compile(SPMV, {"A": "csr"}, target="cuda-executor").default_kernel
    kernel.__dict__["source"] = kernel.source.replace("y_vals[i] = ty", "y_vals[0] = ty")
    with pytest.raises(BuildError, match=r"^the device reports: block 0, thread \d+: race on element 0"):
        kernel(A=scipy.sparse.eye_array(10, format="csr"), x=np.ones(10))


@pytest.mark.parametrize("name", MAPPINGS)
def test_texts_of_every_stage_are_read_back(name: str) -> None:
    expression, formats, schedule = MAPPINGS[name]
    kernel = st.compile(expression, formats, schedule=schedule, target="cuda", arch="sm_90").default_kernel
    functions = [kernel.spec.function, *(made for _, made in PASSES.stages(kernel.spec.function, VectorUnit(0)))]
    for made in functions:
        text = show_function(made)
        again = parse_function(text)
        assert show_function(again) == text


@pytest.mark.parametrize(("unit", "shown"), [("gpu_warp, no_races", "lanes, 8"), ("gpu_thread, no_races", "registers, 48")])
def test_loop_nests_say_what_a_warp_or_thread_has(unit: str, shown: str) -> None:
    kernel = st.compile(SPMV, {"A": "csr"}, schedule=f"parallelize(i, {unit}, {shown})", target="cuda", arch="sm_90")
    assert kernel.loop_nest.splitlines()[0] == f"for i  [{unit}, {' '.join(reversed(shown.split(', ')))}]:"


def test_a_c_compiler_is_refused_as_it_compiles_no_kernels_for_gpus() -> None:
    with pytest.raises(st.ScheduleError, match=r"^build\(...\) names a C compiler, and kernels for target cuda are not compiled by one"):
        st.compile(SPMV, {"A": "csr"}, schedule='build(gcc, "-O3")', target="cuda", arch="sm_90")
