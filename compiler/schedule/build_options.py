"""What ``build`` accepts: compilers of known families, and flags from a fixed list.

A schedule is data: it may come from databases and files of others, and is tried while tuning. So it may not name programs or
files, nor flags that change how IEEE arithmetic treats NaN and infinity. Only ``SPARSETUNE_CC`` can name other programs, with
any arguments, since the user sets it.
"""

from __future__ import annotations

import re
from typing import Final

from ..source import quoted

_COMPILER = re.compile(r"(?:gcc|clang)(?:-[1-9][0-9]?)?")

_X86 = """
    x86-64 x86-64-v2 x86-64-v3 x86-64-v4 nocona core2 nehalem westmere sandybridge ivybridge haswell broadwell skylake skylake-avx512
    cascadelake cannonlake cooperlake icelake-client icelake-server tigerlake rocketlake alderlake raptorlake meteorlake arrowlake
    arrowlake-s lunarlake pantherlake sapphirerapids emeraldrapids graniterapids graniterapids-d diamondrapids sierraforest grandridge
    clearwaterforest bonnell silvermont goldmont goldmont-plus tremont gracemont knl knm k8 k8-sse3 amdfam10 barcelona btver1 btver2
    bdver1 bdver2 bdver3 bdver4 znver1 znver2 znver3 znver4 znver5
"""
_ARM = """
    armv8-a armv8.1-a armv8.2-a armv8.3-a armv8.4-a armv8.5-a armv8.6-a armv8.7-a armv8.8-a armv8.9-a armv9-a armv9.1-a armv9.2-a
    armv9.3-a armv9.4-a armv9.5-a cortex-a53 cortex-a55 cortex-a57 cortex-a72 cortex-a73 cortex-a75 cortex-a76 cortex-a77 cortex-a78
    cortex-a710 cortex-a715 cortex-a720 cortex-x1 cortex-x2 cortex-x3 cortex-x4 neoverse-n1 neoverse-n2 neoverse-n3 neoverse-v1
    neoverse-v2 neoverse-v3 neoverse-512tvb grace a64fx ampere1 ampere1a ampere1b thunderx2t99 apple-m1 apple-m2 apple-m3 apple-m4
"""
_POWER = "power8 power9 power10 power11"

PROCESSORS: Final = frozenset(("native", "generic", *_X86.split(), *_ARM.split(), *_POWER.split()))
"""The values of ``-march=``, ``-mtune=`` and ``-mcpu=``; not every compiler knows all of them."""

LEVELS: Final = ("-O0", "-O1", "-O2", "-O3")

FLAGS: Final = frozenset((
    *LEVELS, "-funroll-loops", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fwrapv", "-fno-tree-vectorize",
    "-mavx", "-mavx2", "-mfma", "-mavx512f", "-mavx512vl", "-mavx512bw", "-mavx512dq", "-mavx512cd",
))  # fmt: skip
"""Flags without a value: common ones, and those that this package adds, so that recorded flags can be used again."""

VALUES: Final = {
    "-march": PROCESSORS,
    "-mtune": PROCESSORS,
    "-mcpu": PROCESSORS,
    "-mprefer-vector-width": frozenset(("none", "128", "256", "512")),
    "-ffp-contract": frozenset(("off", "on", "fast")),
}
"""Flags with a value, with the allowed values."""

MOST_FLAGS: Final = 32

_SHOWN = 200  # letters: paths are long


def compiler_fault(name: str) -> str | None:
    """Return why a schedule may not name this compiler; None if it may. Allowed are gcc and clang, also with a version, such as gcc-12."""
    if _COMPILER.fullmatch(name):
        return None
    return (
        f"{quoted(name, _SHOWN)} is no compiler that a schedule may name: auto, gcc, clang, or one of a version such as gcc-12; "
        "other programs are named by SPARSETUNE_CC"
    )


def flags_fault(text: str) -> str | None:
    """Return why a schedule may not use these flags, which are separated by blanks; None if it may. The first wrong flag is named."""
    flags = text.split(" ")
    for flag in filter(None, flags):
        name, sign, value = flag.partition("=")
        if sign and name in VALUES:
            if value not in VALUES[name]:
                return f"the flag {quoted(flag, _SHOWN)} has a value that is not known; write for example {name}={_example(name)}"
        elif flag not in FLAGS:
            known = ", ".join((*(f"{name}=" for name in VALUES), *sorted(FLAGS.difference(LEVELS))))
            return f"the flag {quoted(flag, _SHOWN)} is none that a schedule may ask for: {LEVELS[0]} to {LEVELS[-1]}, {known}"
    if sum(map(bool, flags)) > MOST_FLAGS:
        return f"more than {MOST_FLAGS} flags, from {quoted(text, _SHOWN)} on"
    return None


def _example(name: str) -> str:
    return "native" if VALUES[name] is PROCESSORS else max(VALUES[name] - {"none"})
