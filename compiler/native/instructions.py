"""Checks that this processor has the instructions that flags allow a compiler to use: a missing one would end the whole process."""

from __future__ import annotations

import re
from functools import cache

from ..errors import BuildError
from .toolchain import Compiler, machine_flags

_CHOOSES = re.compile(r"-m(?:arch|cpu)=(?!native$)|-mavx|-mfma")
"""Matches flags that choose instructions other than those of this machine."""

_INSTRUCTIONS = re.compile(
    r"#define __(SSE3|SSSE3|SSE4_[12]|AVX2?|AVX512(?:F|CD|BW|DQ|VL|VBMI2?|IFMA|VNNI|BITALG|VPOPCNTDQ|FP16|BF16)|AVXVNNI\w*?|AVX10_\w+?"
    r"|APX_F|FMA4?|F16C|BMI2?|LZCNT|POPCNT|MOVBE|TBM|XOP|ARM_FEATURE_(?:SVE2?|ATOMICS|DOTPROD|FP16_VECTOR_ARITHMETIC))(?:__)? "
)
"""Matches macros for instructions that a compiler uses by itself; instructions that need intrinsics do not matter."""

_SECONDS = 10.0


def check_instructions(compiler: Compiler, flags: tuple[str, ...]) -> None:
    """Refuse flags that ask for instructions which this processor does not have.

    Raises:
        BuildError: an instruction is missing; the message names it and the flag. Unknown flags are refused later, by the compiler.
    """
    chosen = tuple(flag for flag in flags if _CHOOSES.match(flag))
    if not chosen:
        return
    here, wanted = _instructions(compiler, machine_flags()), _instructions(compiler, chosen)
    missing = sorted(wanted - here) if here is not None and wanted is not None else []
    if missing:
        lacking, asked = ", ".join(missing), " ".join(chosen)
        raise BuildError(f"this processor has no {lacking}, which {asked} asks for; write -march=native or leave it out")


@cache
def _instructions(compiler: Compiler, flags: tuple[str, ...]) -> frozenset[str] | None:
    """Return the sets of instructions that a compiler uses with the flags; None if it refuses them."""
    from .supervised import run_program  # imported late: printing the source of a kernel does not need it

    try:
        ended = run_program((*compiler.command, *flags, "-dM", "-E", "-x", "c", "/dev/null"), _SECONDS)
    except OSError:
        return None
    return frozenset(_INSTRUCTIONS.findall(ended.output)) if ended.status == 0 else None
