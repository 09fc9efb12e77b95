"""The target interpreter: kernels are texts of the loop IR, which are parsed and run in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..frozen import frozen
from ..ir.interpret import Outcome, interpret
from ..ir.intrinsics import INTRINSICS, Intrinsic
from ..ir.nodes import Function
from ..ir.parser import parse_function
from ..ir.printer import show_function
from ..lowering.kernel_spec import KernelSpec
from ..passes.manager import PassList, VectorUnit
from ..units import PROCESSOR

NAME = "loop IR interpreter"


@dataclass
class InterpretedLaunch:
    """A program with its arrays. ``outcome`` is the result of the last run, with the counts of its operations."""

    function: Function
    arrays: Sequence[NDArray[Any] | None]
    sizes: Sequence[int]
    races: bool
    outcome: Outcome | None = field(default=None, init=False)

    def run(self) -> int:
        """Run the program. Raises ``InterpreterError`` if it does something that no kernel may do."""
        self.outcome = interpret(self.function, self.arrays, self.sizes, races=self.races)
        return 0

    def published(self, pointer: int, length: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        assert self.outcome is not None, "it has not run"
        return self.outcome.published[self.function.arrays[pointer].name].astype(dtype, copy=False)


@frozen
class InterpretedKernel:
    """A program that was parsed from its text. ``races``: whether races are ignored, as its schedule says."""

    function: Function
    races: bool
    compiler: str = NAME
    flags: tuple[str, ...] = ()

    def bind(self, arrays: Sequence[NDArray[Any] | None], sizes: Sequence[int], made: int, threads: int) -> InterpretedLaunch:
        return InterpretedLaunch(self.function, arrays, sizes, self.races)


@frozen
class Interpreter:
    """Runs loop IR as lowering makes it, serially; checks every access and counts operations. It is for examination, not for speed."""

    name: str = "interpreter"
    language: str = "loops"
    units: tuple[str, ...] = PROCESSOR.units
    memory: tuple[str, ...] = ("heap", "registers")
    groups: tuple[str, ...] = ()
    intrinsics: Mapping[str, Intrinsic] = field(default_factory=lambda: INTRINSICS)
    passes: PassList = field(default_factory=lambda: PassList([]))
    on_device: bool = PROCESSOR.on_device
    has_architectures: bool = PROCESSOR.has_architectures

    def vectors(self, spec: KernelSpec) -> VectorUnit:
        return VectorUnit(8)

    def print(self, function: Function, heading: str) -> str:
        return show_function(function) + "\n"

    def built_by(self, spec: KernelSpec, source: str) -> tuple[str, str]:
        return NAME, ""

    def compile(self, spec: KernelSpec, source: str, timeout: float) -> InterpretedKernel:
        return InterpretedKernel(parse_function(source), "ignore_races" in spec.schedule)


INTERPRETER = Interpreter()
