"""The executor of CUDA kernels finds the faults that kernels are known to have, and none in those that have none."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from sparsetune.compiler.native.library import CSRC

pytestmark = [pytest.mark.cc, pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")]

MAIN = """
typedef void (*st_one)(st_array<const double>, st_array<double>);
static const st_one kernels[] = {%s};
int main(int, char **given) {
  const int n = 64;
  st_host host;
  double *a = host.allocate<double>(n, false), *y = host.allocate<double>(n, true), begin[n];
  for (int k = 0; k < n; k++) begin[k] = k;
  st_upload(a, begin, sizeof begin);
  host.launch(atoi(given[2]), {n, 768}, kernels[atoi(given[1])], a, y);
  const int status = host.status();
  printf("%%s\\n", st_trouble());
  if (!status && getenv("ST_ADDED")) return !printf("%%lld", (long long)st_added);
  if (!status) for (int k = 0; k < 4; k++) printf("%%g ", y[k]);
  return status;
}
"""
LAUNCHED = (
    "ST_LAUNCHED(double, t, 64, 0); ST_LAUNCHED(int32_t, u, 64, 512); const int64_t me = st_thread_of_block();"
)
SHARED = "ST_SHARED(double, t, 64); const int64_t me = st_thread_of_block();"

SORTED = (
    "ST_SHARED(int32_t, keys, 300); for (int64_t k = st_thread_of_block(); k < 300; k += 64) keys[k] = (int32_t)((k * 7 + 5) % {0});"
    " st_barrier_of_block(); if ({2}) st_sort_of_{1}(keys, {0}); st_barrier_of_block(); for (int64_t k = st_thread_of_block(); k < 64;"
    " k += 64) y[k] = k < 4 && k < {0} ? (double)(keys[k] + keys[{0} - 1 - k]) : 0.0;"
)
"""So many keys, a permutation of the numbers below, in order: the first and the last add up to the largest."""

RIGHT = {
    "every thread its own": ("y[st_thread_of_grid()] = 2 * a[st_thread_of_grid()];", [0, 2, 4, 6]),
    "through shared memory": (f"{SHARED} t[me] = a[me]; st_barrier_of_block(); y[me] = t[63 - me];", [63, 62, 61, 60]),
    "through what it is launched with": (
        f"{LAUNCHED} t[me] = a[me]; u[me] = 1; st_barrier_of_block(); y[me] = t[63 - me] + u[me];", [64, 63, 62, 61],
    ),
    "inside a warp": (f"{SHARED} t[me] = a[me]; st_barrier_of_warp(); y[me] = t[me ^ 1];", [1, 0, 3, 2]),
    "sums of warps": ("y[st_thread_of_block()] = st_add_of_threads_of_warp((double)a[st_thread_of_block()]);", [496, 496, 496, 496]),
    "sums of warps of 8 lanes": ("y[st_thread_of_block()] = st_add_of_threads_of_warp<8>((double)a[st_thread_of_block()]);", [28] * 4),
    "some of the warps of 4 lanes": (
        "y[st_thread_of_block()] = 0; if (st_warp_of_block<4>() % 3 == 0) y[st_thread_of_block()] ="
        " st_add_of_threads_of_warp<4>((double)a[st_thread_of_block()]);", [6] * 4,
    ),
    "counts of lanes": ("y[st_thread_of_block()] = st_count_of_lanes<8>(a[st_thread_of_block()] > 2);", [5] * 4),
    "largest of the warps of 2 lanes": ("y[st_thread_of_block()] = st_max_of_warps_of_block<2>((double)st_warp_of_block<2>());", [31] * 4),
    "inside a warp of 2 lanes": (f"ST_WARPS_OF(2); {SHARED} t[me] = a[me]; st_barrier_of_warp<2>(); y[me] = t[me ^ 1];", [1, 0, 3, 2]),
    "sums of the block": ("y[st_thread_of_block()] = st_add_of_threads_of_block((double)a[st_thread_of_block()]);", [2016] * 4),
    "largest of the warps": ("y[st_thread_of_block()] = st_max_of_warps_of_block((double)st_warp_of_block());", [1] * 4),
    "shuffles": ("y[st_thread_of_block()] = st_shuffle((double)a[st_thread_of_block()], 2);", [2, 3, 0, 1]),
    "atomic updates": ("st_atomic_add(y, st_thread_of_block() % 2, 1.0);", [32, 32, 0, 0]),
    "the same value read by all": ("y[st_thread_of_block()] = a[7];", [7, 7, 7, 7]),
    **{
        f"{count} keys in order by a {group}": (SORTED.format(count, group, first), [count - 1] * 4)
        for group, first in (("block", "true"), ("warp", "st_warp_of_block() == 0"))
        for count in (11, 32, 33, 130, 257)
    },
    "one warp alone sums": (
        "if (st_warp_of_block() == 0) { double s = st_add_of_threads_of_warp(1.0); if (st_first_of_warp()) y[0] = s; }", [32, 0, 0, 0],
    ),
}  # fmt: skip
WRONG = {
    "wide loads between 16 bytes": ("double r[2]; st_load_wide(r, a, 1, 2); y[0] = r[0];", "from element 1 on, which do not"),
    "wide stores between 16 bytes": ("double r[2] = {1, 2}; if (st_first_of_block()) st_store_wide(y, 3, r, 2);", "from element 3 on"),
    "wide loads of three": ("double r[3]; st_load_wide(r, a, 0, 3); y[0] = r[0];", "moves 24 bytes, 16 at a time"),
    "wide loads over a row's end": ("double r[2]; st_load_wide(r, a, 0, 4); y[0] = r[0];", "moves 32 bytes, .* an array of 16"),
    "wide stores over others": ("double r[2] = {1, 2}; if (st_lane() < 2) st_store_wide(y, 0, r, 2);", "race on element 0"),
    "lanes that add together order nothing": (
        f"{SHARED} t[me] = a[me]; st_atomic_add(y, 0, 1.0); if (me) y[me] = t[me ^ 1];", "race on element|before anything was written",
    ),
    "race on one element": ("y[0] = a[st_thread_of_block()];", "race on element 0"),
    "updates without locks": ("y[st_thread_of_block() % 8] += 1.0;", "race on element"),
    "missing barrier": (f"{SHARED} t[me] = a[me]; y[me] = t[63 - me];", "race on element|before anything was written"),
    "barrier of the warp for the block": (f"{SHARED} t[me] = a[me]; st_barrier_of_warp(); y[me] = t[63 - me];", "race on element"),
    "barrier of fewer lanes": (f"ST_WARPS_OF(4); {SHARED} t[me] = a[me]; st_barrier_of_warp<4>(); y[me] = t[me ^ 4];", "race on element"),
    "barrier of lanes that the kernel does not name": (
        f"{SHARED} t[me] = a[me]; st_barrier_of_warp<8>(); y[me] = t[me ^ 8];", "race on element",
    ),
    "shuffle of 8 lanes for 32": (
        f"{SHARED} t[me] = a[me]; y[me] = st_shuffle<8>(1.0, 1); y[me] += t[me ^ 16];", "race on element",
    ),
    "written again too early": (
        f"{SHARED} t[me] = a[me]; st_barrier_of_block(); y[me] = t[63 - me]; t[me] = 0;", "race on element .* what another thread",
    ),
    "atomic after plain, before any barrier": ("if (st_thread_of_block() == 5) y[0] = 0; st_atomic_add(y, 0, 1.0);", "race on element 0"),
    "atomic beside plain": ("st_atomic_add(y, 0, 1.0); if (st_first_of_block()) y[0] = 3;", "race on element 0"),
    "out of bounds": ("y[st_thread_of_block() + 1] = 1;", "uses element 64, which is out of bounds"),
    "before the array": ("y[st_thread_of_block() - 1] = 1;", "uses element -1, which is out of bounds"),
    "shared out of bounds": (f"{SHARED} t[me + 1] = 1; y[me] = 0;", "uses element 64, which is out of bounds"),
    "more than it is launched with": (
        "ST_LAUNCHED(double, t, 64, 512); t[0] = a[0]; y[0] = t[0];", "shares bytes 512 to 1024, and the kernel is launched with 768",
    ),
    "launched with for another array": (
        "ST_LAUNCHED(double, t, 64, 0); ST_LAUNCHED(int32_t, u, 64, 496); t[0] = u[0]; y[0] = t[0];", "some of which another array has",
    ),
    "own array out of bounds": ("double r[4]; for (int k = 0; k <= 4; k++) r[k] = k; y[0] = r[0];", "uses element 4, which is out of"),
    "not given anything": (
        f"{SHARED} st_atomic_add(t, me % 8, 1.0); st_barrier_of_block(); y[me] = t[me % 8];", "reads element . before anything",
    ),
    "not written yet": (f"{SHARED} if (me < 63) t[me] = 1; st_barrier_of_block(); y[me] = t[me];", "reads element 63 before anything"),
    "shuffle in a branch": (
        "if (st_lane() < 16) y[st_thread_of_block()] = st_add_of_threads_of_warp(1.0);", "waits at a shuffle that 16 lanes of its warp",
    ),
    "shuffle beyond its lanes": ("y[st_thread_of_block()] = st_shuffle<8>(1.0, 8);", "takes a value of thread .*, which is no lane of its"),
    "shuffle beyond the warp": ("y[st_thread_of_block()] = st_shuffle(1.0, 32);", "takes a value of thread .*, which is no lane of its"),
    "the same function in two branches": (
        "double s; if (st_lane() % 2) s = st_add_of_threads_of_warp(1.0); else s = st_add_of_threads_of_warp(2.0);"
        " y[st_thread_of_block()] = s;", "branches that lanes part at",
    ),
    "two branches": (
        "double s; if (st_lane() < 16) s = st_add_of_threads_of_warp(1.0); else s = st_max_of_threads_of_warp(1.0);"
        " y[st_thread_of_block()] = s;", "branches that lanes part at",
    ),
    "barrier in a branch": (
        "if (st_thread_of_block() < 40) st_barrier_of_block(); y[st_thread_of_block()] = 1;", "barrier of the block that some threads do",
    ),
    "two barriers": (
        "if (st_thread_of_block() < 32) st_barrier_of_block(); else { y[0] = 1; st_barrier_of_block(); } y[0] = 1;", "race|at another",
    ),
    "barrier beside a shuffle": (
        "if (st_thread_of_block() < 32) st_barrier_of_block(); else if (st_lane() < 9) st_barrier_of_warp(); else st_barrier_of_block();",
        "waits",
    ),
}  # fmt: skip


BLOCKS = {
    "all blocks write": ("if (st_first_of_block()) y[5] = 1;", "race on element 5"),
    "one block writes what all add to": (
        "if (st_block_of_grid() == 0 && st_first_of_block()) y[0] = 0; st_barrier_of_block(); st_atomic_add(y, 0, 1.0);",
        "race on element 0",
    ),
    "all blocks add": ("st_atomic_add(y, 3, 1.0);", [0, 0, 0, 128]),
}
ADDED = {
    "all lanes to one element": ("st_atomic_add(y, 0, a[st_thread_of_block()]);", 2, [2016, 0, 0, 0]),
    "warps to one each": ("st_atomic_add(y, st_warp_of_block(), 1.0);", 2, [32, 32, 0, 0]),
    "lanes to several": ("st_atomic_add(y, st_lane() / 16, 1.0);", 64, [32, 32, 0, 0]),
    "one lane to another": ("st_atomic_add(y, st_lane() == 9, 1.0);", 64, [62, 2, 0, 0]),
    "some lanes": ("if (st_thread_of_block() < 40) st_atomic_add(y, 0, 1.0);", 1 + 8, [40, 0, 0, 0]),
    "rows of several lengths": (
        "for (int64_t k = 0; k < (st_lane() < 4 ? 3 : 2); k++) st_atomic_add(y, k, 1.0);", 2 + 2 + 8, [64, 64, 8, 0],
    ),
    "both branches": ("if (st_lane() % 2) st_atomic_add(y, 1, 1.0); else st_atomic_add(y, 0, 1.0);", 64, [32, 32, 0, 0]),
}  # fmt: skip
"""Atomic additions: how many come to memory."""

BODIES = {**RIGHT, **WRONG, **BLOCKS, **{name: (body, "") for name, (body, *_) in ADDED.items()}}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All kernels ``part(a, y)`` in one program: a is 0, 1, 2 ..., y zeros."""
    folder = tmp_path_factory.mktemp("executor")
    kernels = [
        f"ST_KERNEL(64) part{number}(ST_ARRAY(const double) a, ST_ARRAY(double) y) {{ {body} }}\n"
        for number, (body, _) in enumerate(BODIES.values())
    ]
    names = ", ".join(f"part{number}" for number in range(len(kernels)))
    (folder / "kernels.cpp").write_text('#include "st_cuda.h"\n' + "".join(kernels) + MAIN % names)
    flags = ["-O0", "-std=gnu++17", "-DST_EXECUTOR", "-w", "-fsanitize=bounds", "-I", str(CSRC)]
    subprocess.run(["g++", *flags, str(folder / "kernels.cpp"), "-o", str(folder / "kernels")], check=True)
    return folder / "kernels"


def run(program: Path, name: str, blocks: int = 1) -> tuple[str, list[float]]:
    """Run a kernel. Return what was found and the first elements of y."""
    number = str([*BODIES].index(name))
    done = subprocess.run([str(program), number, str(blocks)], capture_output=True, text=True, check=False, timeout=60)
    first, *rest = done.stdout.splitlines() or [""]
    assert (done.returncode == 0) == (first == ""), (done.returncode, done.stdout, done.stderr)
    return first, [float(word) for word in " ".join(rest).split()]


@pytest.mark.parametrize("name", ADDED)
def test_lanes_that_add_to_one_element_go_to_memory_once(name: str, program: Path) -> None:
    _, count, sums = ADDED[name]
    assert run(program, name) == ("", sums)
    command = [str(program), str([*BODIES].index(name)), "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env={"ST_ADDED": "1"})
    assert int(done.stdout) == count


@pytest.mark.parametrize("name", RIGHT)
def test_kernels_without_faults_run(name: str, program: Path) -> None:
    assert run(program, name) == ("", RIGHT[name][1])


@pytest.mark.parametrize("name", WRONG)
def test_faults_are_found(name: str, program: Path) -> None:
    found, _ = run(program, name)
    assert re.search(WRONG[name][1], found), found


def test_blocks_wait_for_none_of_the_others(program: Path) -> None:
    assert "race on element 5" in run(program, "all blocks write", 2)[0]
    assert "race on element 0" in run(program, "one block writes what all add to", 2)[0]
    assert run(program, "all blocks write", 1)[0] == ""
    assert run(program, "all blocks add", 2) == ("", BLOCKS["all blocks add"][1])


AGAIN = """
#include "st_cuda.h"
%s
template <class K> void execute(K kernel) {
  st_host host;
  double *a = host.allocate<double>(64, true), *y = host.allocate<double>(64, true);
  host.launch(1, {64, 768}, kernel, a, y);
  const int status = host.status();
  printf("%%d %%s\\n", status, st_trouble());
}
int main() {
%s
}
"""
"""Executions one after another in a process; of each its status and what was found."""


def test_a_fault_is_of_its_execution_alone(tmp_path: Path) -> None:
    """After each fault a kernel without any, which shares memory of the same places, runs; and each fault is found after all others."""
    right = f"{LAUNCHED} t[me] = a[me]; u[me] = 1; st_barrier_of_block(); y[me] = t[63 - me] + u[me];"
    bodies = [right, *(body for body, _ in WRONG.values())]
    taken = "(ST_ARRAY(const double) a, ST_ARRAY(double) y)"
    kernels = [f"ST_KERNEL(64) part{number}{taken} {{ {body} }}" for number, body in enumerate(bodies)]
    calls = [f"  execute(part{number}); execute(part0);" for number in range(1, len(bodies))]
    (tmp_path / "again.cpp").write_text(AGAIN % ("\n".join(kernels), "\n".join(calls)))
    flags = ["-O0", "-std=gnu++17", "-DST_EXECUTOR", "-w", "-fsanitize=bounds", "-I", str(CSRC)]
    subprocess.run(["g++", *flags, str(tmp_path / "again.cpp"), "-o", str(tmp_path / "again")], check=True)
    lines = subprocess.run([str(tmp_path / "again")], capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    assert lines[1::2] == ["0 "] * len(WRONG)
    for name, line in zip(WRONG, lines[::2], strict=True):
        assert line.startswith("2 "), (name, line)
        assert re.search(WRONG[name][1], line), (name, line)


def test_arrays_that_are_only_read_cannot_be_written() -> None:
    text = '#include "st_cuda.h"\nST_KERNEL(32) part(ST_ARRAY(const double) a) { a[0] = 1; }'
    command = ["g++", "-x", "c++", "-fsyntax-only", "-std=gnu++17", "-DST_EXECUTOR", "-I", str(CSRC), "-"]
    assert subprocess.run(command, input=text, text=True, capture_output=True, check=False).returncode != 0
