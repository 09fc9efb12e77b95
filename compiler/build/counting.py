"""Counting builds: they count what one run of a bound kernel does, so that the numbers do not depend on the machine or its load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from ..codegen.c import print_c
from ..format import dense_format
from ..lowering.kernel_spec import KernelSpec, OperandSpec
from ..passes.counting import COUNTED, COUNTS, count_operations
from ..passes.cpu import PORTABLE
from ..passes.manager import Setting, VectorUnit
from .bound import BoundKernel
from .kernel import TypedKernel
from .operands import Operand

SHOWN = ("flops", "loads", "stores", "iterations", "workspace")


class CountingKernel(TypedKernel):
    """A kernel compiled from the same specification as another one, without vectors, that counts what it does."""

    def __init__(self, spec: KernelSpec) -> None:
        function = PORTABLE.run(spec.function, VectorUnit(8))
        super().__init__(replace(spec, function=count_operations(function, Setting(VectorUnit(8), function), spec.workspaces)))

    @cached_property
    def source(self) -> str:
        """The generated C code."""
        return print_c(self.spec.function, f"{self.spec.expression}\n{self.spec.schedule}\ncounted")


    def count(self, operands: Mapping[str, Operand], extents: Mapping[str, int]) -> dict[str, int]:
        """Run once, in one thread, and return what ``BoundKernel.count`` says."""
        found = np.zeros(len(COUNTED), np.int64)
        if not self.spec.result.copies:
            name = COUNTS[0]
            taken = Operand(OperandSpec(name, name, dense_format(1), dense_format(1), (None,), "int64", (64,)), found.shape, (), found)
            BoundKernel(self, {**operands, name: taken}, extents, 1, None)()
        counts = dict(zip(COUNTED, found.tolist(), strict=True))
        return {what: counts[what] for what in SHOWN}
