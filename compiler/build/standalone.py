"""A kernel as files that compile without this package: its source, the headers that it includes, a main that times it, and a Makefile."""

from __future__ import annotations

import re

from ..native.library import CSRC
from ..targets.cuda import compile_flags
from .kernel import TypedKernel
from .timed import timed

_INCLUDED = re.compile(r'#include "(st_\w+\.h)"')
_MAKEFILE = """# {title}
{compiler} ?= {default}

kernel.so: {source} {headers}
\t$({compiler}) {flags} -I . -o $@ {source}
{more}
clean:
\trm -f kernel.so kernel_on_cpu.so timed
.PHONY: clean
"""
_TIMED = """
# runs it on the arguments of operands.bin: make timed && ./timed
timed: main.c {source} {headers}
\t$(CC) -std=gnu11 -O3 -march=native -fopenmp-simd -I . -o $@ main.c {source} -lm
"""
_ON_CPU = """
# the same kernel thread by thread on the processor, everything that it does checked
kernel_on_cpu.so: {source} {headers}
\t$(CXX) -O0 -std=gnu++17 -DST_EXECUTOR -w -fwrapv -fsanitize=bounds -shared -fPIC -I . -x c++ -o $@ {source}
"""


def standalone(kernel: TypedKernel, arch: str | None = None) -> dict[str, str | bytes]:
    """Return the contents of each file by its name. Kernels in C come with a main, except those with compound subscripts.

    Args:
        arch: architecture of the GPU, such as "sm_90", for which the Makefile compiles CUDA; None: "native", that of the machine.
    """
    on_gpu = kernel.target.on_device
    source = "kernel.cu" if on_gpu else "kernel.c"
    headers = _headers(kernel.source)
    main: dict[str, str | bytes] = {}
    names = {"title": kernel.spec.expression, "source": source, "headers": " ".join(headers)}
    if on_gpu:
        flags = " ".join(compile_flags(arch or "native"))
        make = _MAKEFILE.format(compiler="NVCC", default="nvcc", flags=flags, more=_ON_CPU.format(**names), **names)
    else:
        flags = "-std=gnu11 -O3 -march=native -fopenmp-simd -shared -fPIC"
        more = _TIMED.format(**names) if (main := timed(kernel)) else ""
        make = _MAKEFILE.format(compiler="CC", default="cc", flags=flags, more=more, **names).replace("CC ?= cc\n", "")
    return {source: _parameters(kernel) + kernel.source, **headers, "Makefile": make, **main}


def _headers(source: str) -> dict[str, str]:
    """Return the headers of csrc/ that a source includes, and those that these include."""
    found: dict[str, str] = {}
    pending = _INCLUDED.findall(source)
    while pending:
        name = pending.pop()
        if name not in found:
            found[name] = (CSRC / name).read_text(encoding="utf-8")
            pending += _INCLUDED.findall(found[name])
    return dict(sorted(found.items()))


def _parameters(kernel: TypedKernel) -> str:
    """Return a comment that says what the kernel is called with."""
    function = kernel.spec.function
    lines = ["int32_t st_kernel(void **arrays, int64_t *sizes, int64_t threads) returns 0, or 1 when there was no memory."]
    for slot, array in enumerate(function.arrays):
        how = "made by the kernel" if array.assembled else "written" if array.writable else "read"
        lines.append(f"arrays[{slot}]: {array.type.name}, {' '.join(map(str, array.source))}, {how}")
    lines += [f"sizes[{slot}]: {' '.join(map(str, size.source))}" for slot, size in enumerate(function.sizes)]
    made = [array.name for array in function.arrays if array.assembled]
    lines += [f"sizes[{len(function.sizes) + place}]: length of {name}, set by the kernel" for place, name in enumerate(made)]
    return "".join(f"/* {line} */\n" for line in lines)
