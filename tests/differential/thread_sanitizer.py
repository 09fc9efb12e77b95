"""Runs kernels under ThreadSanitizer, in a program of their own.

The team of threads there is one that starts all threads for each call, and gives each a part of the pieces where the real one would: that
one (csrc/st_team.c, which has tests of its own) lets the caller do small jobs alone, in which no race would be seen.
"""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sparsetune.compiler.build.bound import BoundKernel
from sparsetune.compiler.codegen.c import KERNEL
from sparsetune.compiler.native.library import CSRC

TIMES = 3
RACE = "WARNING: ThreadSanitizer: data race"


@cache
def is_there() -> bool:
    """Whether the compiler has the sanitizer's library."""
    command = ["gcc", "-fsanitize=thread", "-x", "c", "-", "-o", os.devnull]
    return subprocess.run(command, input="int main(void) { return 0; }", capture_output=True, text=True, check=False).returncode == 0


def report(bound: BoundKernel, threads: int, folder: Path) -> str:
    """Return what the sanitizer says of a kernel on its operands, "" if nothing.

    Raises:
        RuntimeError: the program cannot be compiled, or fails for another reason.
    """
    source, program = folder / "kernel.c", folder / "kernel"
    source.write_text(f"{bound.kernel.source}\n{_TEAM}\n{_main(bound, threads, folder)}")
    flags = ["-std=gnu11", "-O1", "-g", "-w", "-pthread", "-fwrapv", "-fsanitize=thread", "-I", str(CSRC)]
    command = ["gcc", *flags, str(source), "-o", str(program), "-lm"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        raise RuntimeError(built.stderr[:2000])
    environment = {**os.environ, "TSAN_OPTIONS": "exitcode=66"}
    done = subprocess.run([str(program)], capture_output=True, text=True, env=environment, timeout=600, check=False)
    if done.returncode not in (0, 66):
        raise RuntimeError(f"status {done.returncode}: {done.stderr[:2000]}")
    return done.stderr if RACE in done.stderr else ""


def _main(bound: BoundKernel, threads: int, folder: Path) -> str:
    """Return a main function that reads the kernel's arguments from files and calls it several times."""
    arrays, sizes = bound.arguments()
    lines = ["", "#include <stdio.h>", "#include <stdlib.h>", _READ, "int main(void) {"]
    names = []
    for number, array in enumerate(arrays):
        names.append("NULL" if array is None else f'read_array("{_saved(array, folder / f"{number}.bin")}", {max(1, array.nbytes)})')
    lines.append(f"  void *arrays[] = {{{', '.join(names) or 'NULL'}}};")
    lines.append(f"  int64_t sizes[] = {{{', '.join(map(str, [*sizes, *(0 for _ in bound.kernel.assembled), 0]))}}};")
    lines.append("  st_team = run_all;")
    lines.append(f"  for (int n = 0; n < {TIMES}; n++) if ({KERNEL}(arrays, sizes, {threads})) return 1;")
    return "\n".join([*lines, "  return 0;", "}", ""])


_TEAM = """#include <pthread.h>
#include <stdlib.h>
#include "st_team.h"
typedef struct { st_work *work; const void *context; st_claims claims; pthread_t thread; } part;
static void *run_part(void *given) {
  part *own = given;
  const int64_t piece = st_next(&own->claims);
  if (piece >= 0) own->work(own->context, &own->claims, piece);
  return NULL;
}
static void run_all(int64_t threads, int64_t pieces, bool own, st_work *work, const void *context) {
  const int64_t count = own ? threads : 1;
  st_lane *lanes = aligned_alloc(64, count * sizeof *lanes);
  part *parts = malloc(threads * sizeof *parts);
  for (int64_t n = 0; n < count; n++) lanes[n] = (st_lane){pieces * n / count, pieces * (n + 1) / count};
  for (int64_t n = 0; n < threads; n++) {
    parts[n] = (part){work, context, {lanes, (int32_t)count, (int32_t)(n % count), 1, false}};
    pthread_create(&parts[n].thread, NULL, run_part, &parts[n]);
  }
  for (int64_t n = 0; n < threads; n++) pthread_join(parts[n].thread, NULL);
  free(parts);
  free(lanes);
}"""

_READ = """static void *read_array(const char *path, size_t bytes) {
  void *array = aligned_alloc(64, (bytes + 63) / 64 * 64);
  FILE *file = fopen(path, "rb");
  size_t got = fread(array, 1, bytes, file);
  fclose(file);
  return got <= bytes ? array : NULL;
}"""


def _saved(array: NDArray[np.generic], path: Path) -> Path:
    path.write_bytes(np.ascontiguousarray(array).tobytes())
    return path
