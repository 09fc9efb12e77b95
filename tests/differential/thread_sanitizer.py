"""Runs kernels under ThreadSanitizer, in a program of their own.

The runtime of GCC's OpenMP is not instrumented, so that its barriers are taken for races. Clang's tells the sanitizer of its
synchronisation through the tool Archer (Atzeni et al., "ARCHER: effectively spotting data races in large OpenMP applications").
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sparsetune.compiler.build.kernel import BoundKernel
from sparsetune.compiler.codegen.c import KERNEL
from sparsetune.compiler.native.library import CSRC

TIMES = 3
RACE = "WARNING: ThreadSanitizer: data race"


@cache
def archer() -> Path | None:
    """Return the library of Archer that belongs to clang, or None."""
    if shutil.which("clang") is None:
        return None
    found = subprocess.run(["clang", "-print-resource-dir"], capture_output=True, text=True, check=False).stdout.strip()
    libraries = (parent / "libarcher.so" for parent in Path(found).parents)
    return next((library for library in libraries if library.exists()), None) if found else None


def report(bound: BoundKernel, threads: int, folder: Path) -> str:
    """Return what the sanitizer says of a kernel on its operands, "" if nothing.

    Raises:
        RuntimeError: the program cannot be compiled, or fails for another reason.
    """
    source, program = folder / "kernel.c", folder / "kernel"
    source.write_text(bound.kernel.source + _main(bound, threads, folder))
    flags = ["-std=gnu11", "-O1", "-g", "-w", "-fopenmp", "-fwrapv", "-fsanitize=thread", "-I", str(CSRC)]
    built = subprocess.run(["clang", *flags, str(source), "-o", str(program), "-lm"], capture_output=True, text=True, check=False)
    if built.returncode:
        raise RuntimeError(built.stderr[:2000])
    options = {"OMP_TOOL_LIBRARIES": str(archer()), "TSAN_OPTIONS": "ignore_noninstrumented_modules=1 exitcode=66"}
    done = subprocess.run([str(program)], capture_output=True, text=True, env={**os.environ, **options}, timeout=600, check=False)
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
    lines.append(f"  for (int n = 0; n < {TIMES}; n++) if ({KERNEL}(arrays, sizes, {threads})) return 1;")
    return "\n".join([*lines, "  return 0;", "}", ""])


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
