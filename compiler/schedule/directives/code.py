"""Directives about code: what a routine of BLAS computes, and how the rest is built."""

from __future__ import annotations

from typing import Final

from ...frozen import frozen
from .directive import Directive, Parameter

CALL_LOOPS: Final = {"gemm": 3, "gemv": 2, "ger": 2, "axpy": 1, "dot": 1}
"""Routines of BLAS, and how many loops each replaces."""

CALLS: Final = tuple(CALL_LOOPS)


@frozen
class Call(Directive):
    """Let BLAS compute the last loops around an assignment."""

    keyword = "call"
    parameters = (Parameter("routine", "choice", CALLS),)
    routine: str


@frozen
class Build(Directive):
    """Choose compiler and flags among those of ``build_options``; None, the default compiler, is written ``auto``."""

    keyword = "build"
    parameters = (Parameter("compiler", "compiler"), Parameter("flags", "flags", default=None))
    compiler: str | None
    flags: str | None = None
