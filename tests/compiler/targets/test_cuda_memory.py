"""A GPU whose memory ends at any moment: the error says so, nothing stays behind, and the next run is right."""

from __future__ import annotations

import gc
import shutil
from itertools import count
from pathlib import Path

import cffi
import numpy as np
import pytest
import sparsetune as st
from differential.gpu import build_on_processor
from differential.gpu_mappings import EXTENTS, MAPPINGS, dense, operands
from differential.whole_numbers import reference
from sparsetune.compiler.errors import ResourceError

pytestmark = [pytest.mark.cc, pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")]

BLOCKS = "assemble(C, insert); parallelize(i, gpu_block, no_races); parallelize([0], j, gpu_thread, no_races)"
LIMITED = {
    "product": MAPPINGS["product"],
    "product by blocks": (*MAPPINGS["product"][:2], BLOCKS),
    **{name: MAPPINGS[name] for name in ("sum", "transposed", "sparse result", "sums carried in order", "bitmap", "two dense factors")},
}
"""Results that are counted, scanned and filled, workspaces of every thread, slots for sums: each asks for memory between its kernels."""


@pytest.mark.slow
def test_memory_that_ends_between_any_two_kernels(tmp_path: Path) -> None:
    made = {name: st.compile(text, formats, schedule=given, target="cuda-executor") for name, (text, formats, given) in LIMITED.items()}
    build_on_processor([kernel.default_kernel for kernel in made.values()], tmp_path, "limited")
    ffi = cffi.FFI()
    ffi.cdef("void st_executor_allow(int64_t count); int64_t st_executor_held(void);")
    machine = ffi.dlopen(str(tmp_path / "limited.so"))
    for name, kernel in made.items():
        expression, formats, _ = LIMITED[name]
        arrays = operands(expression, formats, 0, 0.3)
        expected, held = reference(expression, arrays, EXTENTS), machine.st_executor_held()
        for allowed in count():
            machine.st_executor_allow(allowed)
            try:
                found = dense(kernel(**arrays))
            except ResourceError:
                pass
            else:
                break
            gc.collect()
            assert machine.st_executor_held() == held, f"{name}, {allowed} allocations"
        assert allowed > len(arrays)
        machine.st_executor_allow(-1)
        np.testing.assert_array_equal(found, expected, err_msg=name)
