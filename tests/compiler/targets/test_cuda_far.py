"""Positions beyond 32 bits: kernels for GPUs on arrays with more elements than 32 bits count, of which only the last are in memory."""

from __future__ import annotations

import mmap
import re
import shutil
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from numpy.typing import NDArray
from sparsetune.compiler.format import parse_format
from sparsetune.compiler.space.library import LIBRARY
from sparsetune.compiler.storage.on_device import DeviceArray, DeviceLevel, DeviceTensor

pytestmark = [pytest.mark.cc, pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")]

SPMV = "y(i) = A(i,j) * x(j)"
NO_RESERVE = 0x4000
"""Linux: memory that is not touched is none."""
TILES = (
    f"collapse(i, j, f); pos(f, p, A); split(p, b, q, {1 << 30}); split(q, t, n, {1 << 24}); parallelize(b, gpu_block, %s);"
    " parallelize(t, gpu_thread, %s)"
)


def in_large_tiles(name: str) -> str:
    """Return a schedule of the library, with tiles so large that few threads go through all positions before the first row."""
    sizes = iter((1 << 30, 1 << 24))
    text = next(found.text for found in LIBRARY if (found.name, found.target, found.expression) == (name, "cuda", SPMV))
    return re.sub(r"(split\(\w+, \w+, \w+, )\d+", lambda found: f"{found[1]}{next(sizes)}", text)


SCHEDULES = {
    "thread": "parallelize(i, gpu_thread, no_races)",
    "warp": "parallelize(i, gpu_warp, no_races); parallelize(j, gpu_thread, parallel_reduction)",
    "block": "parallelize(i, gpu_block, no_races); parallelize(j, gpu_thread, atomics)",
    "nonzeros": TILES % ("no_races", "atomics"),
    "carried": TILES % ("temporary", "temporary"),
    "merge path": TILES.replace("split(p, b", "merge_path(p, m); split(m, b") % ("no_races", "atomics"),
    "merge path of the library": in_large_tiles("merge path"),
    "warp per row of the library": next(found.text for found in LIBRARY if found.name == "warp per row"),
}


def array(room: mmap.mmap, dtype: type[np.generic], count: int, begin: int) -> tuple[NDArray[Any], DeviceArray]:
    """Return a part of memory as an array of the host and of the device."""
    found = np.frombuffer(room, dtype, count, begin)
    return found, DeviceArray(found.ctypes.data, found.shape, found.dtype, room)


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_positions_beyond_32_bits(schedule: str) -> None:
    begin, matrix = (1 << 31) + 5, scipy.sparse.csr_array(np.arange(1.0, 61.0).reshape(12, 5) % 4)
    count = begin + matrix.nnz
    room = mmap.mmap(-1, 16 * count + 8 * 13, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
    coordinates, crd = array(room, np.int64, count, 0)
    values, vals = array(room, np.float64, count, 8 * count)
    positions, pos = array(room, np.int64, 13, 16 * count)
    coordinates[begin:], values[begin:], positions[:] = matrix.indices, matrix.data, matrix.indptr.astype(np.int64) + begin
    far = DeviceTensor(matrix.shape, parse_format("csr", 2), (DeviceLevel({}), DeviceLevel({"pos": pos, "crd": crd})), vals)
    x = np.arange(1.0, 6.0)
    kernel = st.compile(SPMV, {"A": "csr"}, schedule=schedule, target="cuda-executor")
    found = kernel(A=far, x=x)
    np.testing.assert_array_equal(found if isinstance(found, np.ndarray) else found.to_numpy(), matrix @ x)
