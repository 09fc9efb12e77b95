"""Race strategies of loops whose iterations add to several components: members of a GPU have copies, which are added up in order."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import sparsetune as st
from differential import gpu
from differential.gpu_mappings import SPMM, SPMV
from differential.gpu_results import COPIED
from differential.scheduled import SHAPES, Scheduled, kinds_of

pytestmark = pytest.mark.cc
needs_cxx = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")


@needs_cxx
def test_copies_are_added_up(tmp_path: Path) -> None:
    given = [Scheduled(number, expression, kinds_of(formats), schedule) for number, (expression, formats, schedule) in enumerate(COPIED)]
    made = [gpu.compiled(case) for case in given]
    gpu.build([kernel.default_kernel for kernel in made], tmp_path, "kernels")
    for case, kernel in zip(given, made, strict=True):
        assert gpu.fault(case, kernel, (*gpu.MANY, (len(SHAPES), "blocks"))) is None, case


@needs_cxx
def test_every_run_gives_the_same_bits() -> None:
    kernel = st.compile(SPMV, {"A": "csc"}, schedule="parallelize(j, gpu_thread, temporary)", target=gpu.TARGET)
    assert "st_atomic" not in kernel.source
    rng = np.random.default_rng(0)
    matrix, x = rng.random((40, 300)) * (rng.random((40, 300)) < 0.5), rng.random(300)
    found = kernel(A=matrix, x=x)
    np.testing.assert_allclose(found, matrix @ x, rtol=1e-13)
    assert np.array_equal(found, kernel(A=matrix, x=x))


def test_a_copy_has_the_components_that_the_loop_chooses() -> None:
    schedule = "parallelize(i, gpu_block, no_races); parallelize(j, gpu_warp, temporary)"
    text = st.compile(SPMM, {"A": "csr"}, {"k": 4}, schedule, target="cuda", arch="sm_90").source
    assert "const int64_t st_each = 32;" in text  # 4 components of a row for each of 8 warps


def test_tables_have_no_copies() -> None:
    schedule = "assemble(C, insert); parallelize(i, gpu_warp, no_races); parallelize(k, gpu_thread, temporary)"
    with pytest.raises(st.ScheduleError, match="several threads add to components of w, which is not dense, so that they have no copies"):
        _ = st.compile(
            "C(i,j) = A(i,k) * B(k,j)", dict.fromkeys("ABC", "csr"), schedule=schedule, target="cuda", arch="sm_90"
        ).source
