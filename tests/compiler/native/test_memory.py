"""Memory of kernels: what is released comes back, what is held is nobody else's, what grows keeps its alignment."""

from __future__ import annotations

import itertools
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from hypothesis import given, settings
from hypothesis import strategies as draw
from sparsetune.compiler.native.library import foreign_interface, load_source

KEPT, BLOCKS = 1 << 26, 64
_FUNCTIONS = (
    "extern void *st_spares; void st_release(void *memory); void *reserve(int64_t *capacity, int64_t size); "
    "void *allocate(int64_t length, int64_t size); void *grow(void *array, int64_t *capacity, int64_t needed, int64_t size); "
    "void *trim(void *array, int64_t length, int64_t size); int64_t kept(void); int64_t count(void); "
    "void drop(void); void divide(void *array);"
)
_SOURCE = """#include "st_memory.h"
void *reserve(int64_t *capacity, int64_t size) { return st_reserve(capacity, (size_t)size); }
void *allocate(int64_t length, int64_t size) { return st_allocate(length, (size_t)size); }
void *grow(void *array, int64_t *capacity, int64_t needed, int64_t size) { return st_grow(array, capacity, needed, (size_t)size); }
void *trim(void *array, int64_t length, int64_t size) { return st_trim(array, length, (size_t)size); }
int64_t kept(void) { return (int64_t)st_spares->bytes; }
int64_t count(void) { return st_spares->count; }
void drop(void) { st_spares_drop(); }
void divide(void *array) { madvise((void *)(((uintptr_t)array + (1 << 23)) / 4096 * 4096), 4096, MADV_NOHUGEPAGE); }
"""


@pytest.fixture(scope="module")
def memory() -> Any:
    """The functions of st_memory.h on a set of spares of their own."""
    library = load_source(_SOURCE, _FUNCTIONS)
    library.st_spares = _SET
    return library


_SET = foreign_interface(_FUNCTIONS).new("char[4096]")


def _address(pointer: Any) -> int:
    return int(foreign_interface(_FUNCTIONS).cast("intptr_t", pointer))


def test_released_memory_comes_back(memory: Any) -> None:
    memory.drop()
    first = memory.allocate(100_000, 8)
    memory.st_release(first)
    assert memory.kept() >= 800_000
    again = memory.allocate(95_000, 8)
    assert again == first
    assert memory.count() == 0
    memory.st_release(again)
    other = memory.allocate(50_000, 8)  # would waste half of it
    assert other != first
    memory.st_release(other)
    memory.drop()
    assert (memory.kept(), memory.count()) == (0, 0)


def test_memory_that_grows_takes_the_largest_spare_and_its_room(memory: Any) -> None:
    memory.drop()
    blocks = [memory.allocate(length, 8) for length in (100_000, 300_000, 200_000)]
    for block in blocks:
        memory.st_release(block)
    capacity = foreign_interface(_FUNCTIONS).new("int64_t *", 5_000_000)
    taken = memory.reserve(capacity, 8)
    assert taken == blocks[1]
    assert 300_000 <= capacity[0] <= 301_000
    trimmed = memory.trim(taken, 299_000, 8)
    assert trimmed == taken  # nothing to gain
    memory.st_release(trimmed)
    capacity[0] = 100
    small = memory.reserve(capacity, 8)
    assert capacity[0] == 100
    memory.st_release(small)
    memory.drop()


def test_memory_that_grew_too_large_for_a_spare_begins_in_new_memory(memory: Any) -> None:
    """Threads that fill a result would leave what a small spare has no room for in their own arrays, and copy it in the end."""
    capacity = foreign_interface(_FUNCTIONS).new("int64_t *")

    def reserved() -> int:
        """Return how many bytes an array gets that may need as many as are kept at most."""
        capacity[0] = KEPT
        memory.st_release(memory.trim(memory.reserve(capacity, 1), 1, 1))
        return capacity[0]

    memory.drop()
    for _ in range(8):  # what tests before have let go is forgotten
        reserved()
    memory.st_release(memory.allocate(1 << 23, 1))
    assert 1 << 23 <= reserved() < 1 << 24
    memory.drop()
    memory.st_release(memory.allocate(1 << 23, 1))
    memory.st_release(memory.allocate(KEPT + 1, 1))
    assert reserved() == KEPT
    assert memory.count() == 1
    assert 1 << 23 <= reserved() < 1 << 24
    memory.drop()


@pytest.mark.parametrize(("least", "divided"), [(2, False), (1 << 21, False), (1 << 23, True)])
def test_what_grows_keeps_its_content_and_alignment(memory: Any, least: int, divided: bool) -> None:
    memory.drop()
    ffi = foreign_interface(_FUNCTIONS)
    capacity, written = ffi.new("int64_t *", least), 0
    array = memory.allocate(least, 8)
    while capacity[0] < 3e7:
        view = np.frombuffer(ffi.buffer(array, capacity[0] * 8), np.int64)
        view[written:] = np.arange(written, capacity[0])
        written = capacity[0]
        if divided:
            memory.divide(array)  # the system does not move what has two kinds of pages
        array = memory.grow(array, capacity, written + 1, 8)
        assert _address(array) % 128 == 0
        assert np.array_equal(np.frombuffer(ffi.buffer(array, written * 8), np.int64), np.arange(written))
    array = memory.trim(array, 1000, 8)
    assert np.array_equal(np.frombuffer(ffi.buffer(array, 8000), np.int64), np.arange(1000))
    memory.st_release(array)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="reads Linux's list of mappings")
def test_large_memory_is_one_mapping(memory: Any) -> None:
    """The system moves nothing that stands in two mappings: arrays that grow would be copied."""
    memory.drop()
    array = memory.allocate(1 << 26, 1)
    lines = [line.split()[0].split("-") for line in Path("/proc/self/maps").read_text().splitlines()]
    spans = [(int(low, 16), int(high, 16)) for low, high in lines]
    assert any(low <= _address(array) and _address(array) + (1 << 26) <= high for low, high in spans)
    memory.st_release(array)
    memory.drop()


@settings(max_examples=60, deadline=None)
@given(draw.lists(draw.tuples(draw.integers(0, 30), draw.integers(0, 1 << 24), draw.booleans()), max_size=60))
def test_held_memory_is_nobody_elses_and_little_is_kept(memory: Any, steps: list[tuple[int, int, bool]]) -> None:
    memory.drop()
    ffi = foreign_interface(_FUNCTIONS)
    held: dict[int, tuple[Any, int]] = {}
    for place, size, grows in steps:
        if place in held:
            memory.st_release(held.pop(place)[0])
        else:
            capacity = ffi.new("int64_t *", size)
            block = memory.reserve(capacity, 1) if grows else memory.allocate(size, 1)
            held[place] = block, capacity[0]
        assert memory.kept() <= KEPT
        assert memory.count() <= BLOCKS
        ranges = sorted((_address(block), _address(block) + size) for block, size in held.values())
        assert all(start % 128 == 0 for start, _ in ranges)
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ranges))
    for block, _ in held.values():
        memory.st_release(block)
    memory.drop()


def _products() -> tuple[Any, scipy.sparse.csr_array]:
    matrix = scipy.sparse.random_array((20_000, 20_000), density=1e-4, format="csr", rng=np.random.default_rng(5))
    kernel = st.compile("C(i,j) = A(i,k) * B(k,j)", formats={"A": "csr", "B": "csr", "C": "csr"})
    return kernel.bind(A=matrix, B=matrix, threads=1), (matrix @ matrix).tocsr()


def test_results_that_are_let_go_make_room_for_the_next() -> None:
    product, _ = _products()
    held = product()
    seen = set()
    for _ in range(6):
        result = product()
        assert not np.may_share_memory(result.values, held.values)
        seen.add(result.values.ctypes.data)
        del result
    assert len(seen) <= 2


_FAULTS = """
import resource, numpy, scipy.sparse, sparsetune as st
matrix = scipy.sparse.random_array((900, 900), density=0.005, format="csr", rng=numpy.random.default_rng(5))
kernel = st.compile("C(i,j) = A(i,k) * B(k,j)", formats={"A": "csr", "B": "csr", "C": "csr"})
product = kernel.bind(A=matrix, B=matrix, threads=1)
def faults(calls):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(calls):
        result = product()
    assert 2**17 < result.nbytes < 2**18, result.nbytes
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / calls
faults(10)
print(faults(50))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="spares are kept on Linux")
def test_small_results_need_no_new_pages_in_each_call() -> None:
    """What is free at the end of its memory goes back to the system from 128 KiB on, and would be cleared for the next call."""
    done = subprocess.run([sys.executable, "-c", _FAULTS], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 10  # of 50 to 80 pages


def test_python_threads_share_spares() -> None:
    def run(_: int) -> bool:
        product, expected = _products()
        expected.sort_indices()
        return all(np.allclose(product().values, expected.data, rtol=1e-12) for _ in range(8))

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(run, range(6)))


def test_results_may_outlive_everything_else() -> None:
    code = (
        "import builtins, numpy as np, sparsetune as st, scipy.sparse\n"
        "matrix = scipy.sparse.random_array((20_000, 20_000), density=1e-4, format='csr', rng=np.random.default_rng(5))\n"
        "kernel = st.compile('C(i,j) = A(i,k) * B(k,j)', formats={'A': 'csr', 'B': 'csr', 'C': 'csr'})\n"
        "builtins.kept = [kernel(A=matrix, B=matrix) for _ in range(3)]\n"  # gone when nearly all of the interpreter is
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
