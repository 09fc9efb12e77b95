"""Many kernels in one C file: building an object for each of thousands of cases would take hours."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cffi
from sparsetune.compiler.build.kernel import TypedKernel
from sparsetune.compiler.codegen.c import KERNEL
from sparsetune.compiler.native import blas, team
from sparsetune.compiler.native.library import CSRC
from sparsetune.compiler.targets.c import NativeKernel

PLAIN_FLAGS = ("-O0", "-w")
SANITIZERS = ("-O1", "-g", "-w", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")


def build_together(kernels: Sequence[TypedKernel], folder: Path, name: str, flags: Sequence[str] = PLAIN_FLAGS) -> None:
    """Compile kernels into one shared object and give each its function, as ``TypedKernel.load`` would.

    Args:
        kernels: in any number; their sources are generated here.
        folder: where the C file and the object go.
        name: of both files.
        flags: of the compiler.
    """
    source, target = folder / f"{name}.c", folder / f"{name}.so"
    source.write_text(together([kernel.source for kernel in kernels]))
    command = ["gcc", "-std=gnu11", "-shared", "-fPIC", "-fwrapv", *flags, "-I", str(CSRC), str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the C compiler failed on {source}:\n{done.stderr[:4000]}")
    ffi = cffi.FFI()
    ffi.cdef("".join(f"int32_t {KERNEL}_{number}(void **arrays, int64_t *sizes, int64_t threads);" for number in range(len(kernels))))
    ffi.cdef(f"void st_release(void *memory); {team.DECLARATION} {blas.DECLARATION}")
    library: Any = ffi.dlopen(str(target))
    if "st_loop.h" in source.read_text():
        team.join_team(library)
    if "st_blas.h" in source.read_text():
        blas.join_blas(library)
    for number, kernel in enumerate(kernels):
        kernel.__dict__["library"] = library  # the object is unloaded with the last reference to it
        kernel.__dict__["executable"] = NativeKernel(getattr(library, f"{KERNEL}_{number}"), "gcc", tuple(flags), library.st_release)


def together(sources: Sequence[str]) -> str:
    """Return one translation unit: includes and definitions once, kernels numbered."""
    includes: dict[str, None] = {}
    definitions: dict[str, None] = {}
    bodies = []
    for number, source in enumerate(sources):
        head, body = source.split(f"int32_t {KERNEL}(", 1)
        head, region, functions = head.partition("typedef struct {\n  st_loop ")
        own = f"{region}{functions}int32_t {KERNEL}_{number}({body}"
        bodies.append(re.sub(r"\bst_(region|parallel)(\d*)\b", rf"st_\1\2_of_{number}", own))
        lines = iter(head.splitlines())
        for line in lines:
            if line.startswith("#include"):
                includes[line] = None
            elif line.startswith("static inline") and not line.endswith("}"):
                whole = [line]
                while whole[-1] != "}":
                    whole.append(next(lines))
                definitions["\n".join(whole)] = None
            elif line and not line.startswith("/*"):
                definitions[line] = None
    return "\n".join((*includes, "", *definitions, "", *bodies))
