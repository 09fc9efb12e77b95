"""Kernels as people call them: ``k(A=A, x=x)``, or ``b = k.bind(A=A, x=x)`` once and ``b()`` many times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeAlias

from ..attention import noted_if_long
from ..concrete.given import checked_operands
from ..ir.memory import numpy_type
from ..ir.nodes import STEP
from ..lowering.kernel_spec import KernelSpec
from ..native.team import thread_count
from ..numpy_later import np
from ..schedule.schedule import Schedule
from ..storage.on_device import DeviceArray
from ..targets.c import C
from ..targets.target import Executable, Target
from .bound import BoundKernel
from .copies import read_in_place
from .operands import Expected, Operand, find_extents, prepare
from .results import Assembled, fill_of
from .stages import kernel_source, kernel_stages
from .workspaces import Workspace, workspaces

COMPILE_SECONDS = 120.0
"""How long compiling one kernel may take."""


Apart: TypeAlias = Callable[[frozenset[str]], "TypedKernel | None"]
"""Returns a kernel that reads stored operands whose rows lie apart in memory, or as many of these as it can; None for none."""


class TypedKernel:
    """A compiled kernel for one expression, formats, schedule and target, and for given dtypes and index widths.

    Calling it with operands by name returns the result: an ndarray where it is dense (a numpy scalar for order 0), else
    a Tensor. ``threads`` is the number of shares into which work is cut, and the most threads that run (default: $SPARSETUNE_THREADS,
    or the cores that this process may use). The same number gives the same bits in every call, except with atomic updates.
    ``out`` takes a dense result. An expression that has operands called ``threads`` or ``out`` gives these words to them.

    Raises (when called or bound):
        ExpressionError: an operand is missing or not used.
        ShapeError: extents disagree.
        DataError: values, ``out`` or ``threads`` do not fit.
        ResourceError: there is no memory for the result, or for what the schedule keeps meanwhile.
    """

    def __init__(self, spec: KernelSpec, target: Target = C, apart: Apart | None = None) -> None:
        self.spec, self.target, self.apart = spec, target, apart

    @cached_property
    def source(self) -> str:
        """The generated code."""
        return kernel_source(self.spec, self.target)

    @cached_property
    def stages(self) -> dict[str, str]:
        """The kernel after every stage and pass, in order and by name: concrete notation, loop IR, source (``build.stages``)."""
        return kernel_stages(self.spec, self.target)

    @property
    def schedule(self) -> Schedule:
        """The schedule that the kernel was compiled with."""
        return Schedule(self.spec.schedule)

    @property
    def loop_nest(self) -> str:
        """Readable concrete index notation."""
        return self.spec.loop_nest

    @cached_property
    def executable(self) -> Executable:
        """The loaded code. It is compiled at first use, with a note to the user if that takes long."""
        with noted_if_long(f"compiling '{self.spec.expression}', once for all processes"):
            return self.target.compile(self.spec, self.source, COMPILE_SECONDS)

    @cached_property
    def fill(self) -> Any:
        """The fill value of the result and of every sparse operand."""
        return fill_of(self.spec.result)

    @cached_property
    def assembled(self) -> tuple[Assembled, ...]:
        """The arrays of assembled results, which the kernel allocates and hands over."""
        found, sizes = [], len(self.spec.function.sizes)
        for slot, parameter in enumerate(self.spec.function.arrays):
            if parameter.assembled:
                part, level = parameter.source[1], parameter.source[2] if len(parameter.source) == 3 else None
                kind = np.dtype(self.spec.result.dtype) if part == "values" else numpy_type(parameter.type)
                found.append(Assembled(slot, sizes + len(found), part, level, kind))
        return tuple(found)

    @cached_property
    def stepped(self) -> frozenset[str]:
        """The operands, by key, whose rows may lie apart in memory."""
        return frozenset(size.source[0] for size in self.spec.function.sizes if size.source[1] == STEP)

    @cached_property
    def workspaces(self) -> tuple[Workspace, ...]:
        """The arrays that the kernel allocates and whose lengths follow from the sizes of operands."""
        return workspaces(self.spec.function)

    @cached_property
    def _expected(self) -> tuple[Expected, ...]:
        return tuple(Expected.of(operand, self.fill) for operand in self.spec.operands)

    @cached_property
    def _own_names(self) -> frozenset[str]:
        return frozenset(operand.tensor for operand in self.spec.operands if not operand.point)

    def load(self, timeout: float = COMPILE_SECONDS) -> TypedKernel:
        """Compile and load now, and return the kernel.

        Raises:
            BuildError: the compiler is missing, fails, or takes longer than ``timeout`` seconds.
        """
        if "executable" not in self.__dict__:
            self.__dict__["executable"] = self.target.compile(self.spec, self.source, timeout)
        return self

    def __call__(self, /, **operands: Any) -> Any:
        threads, out = self._options(operands)
        return self.bind_operands(operands, threads, out, once=True)()

    def bind(self, /, **operands: Any) -> BoundKernel:
        """Check and convert operands once; see ``BoundKernel``."""
        threads, out = self._options(operands)
        return self.bind_operands(operands, threads, out)

    def _options(self, operands: dict[str, Any]) -> tuple[Any, Any]:
        """Remove ``threads`` and ``out`` from the given keywords, and return them."""
        threads = None if "threads" in self._own_names else operands.pop("threads", None)
        out = None if "out" in self._own_names else operands.pop("out", None)
        return threads, out

    def bind_operands(
        self,
        operands: Mapping[str, Any],
        threads: int | None = None,
        out: Any = None,
        extents: Mapping[str, int] | None = None,
        once: bool = False,
    ) -> BoundKernel:
        """Bind operands given as a mapping.

        Args:
            extents: extents of indices that no operand determines.
            once: the bound kernel is called once, right away.
        """
        spec = self.spec
        if operands.keys() != self._own_names:
            names = dict.fromkeys(operand.tensor for operand in spec.operands if not operand.point)
            checked_operands(spec.expression, tuple(names), operands)
        prepared: dict[str, Operand] = {}
        for wanted in self._expected:  # a tensor that is read in several formats has several entries
            if wanted.spec.key not in prepared:
                prepared[wanted.spec.key] = prepare(wanted, operands.get(wanted.spec.tensor), once, spec.unit)
        kernel = (self._for_rows_apart(prepared) if once else None) or self
        return self._bound(prepared)(kernel, prepared, find_extents(spec, prepared, extents or {}), thread_count(threads), out)

    def _for_rows_apart(self, operands: Mapping[str, Operand]) -> TypedKernel | None:
        """Return the kernel that reads operands whose rows lie apart without copies; None where there is none, or nothing to gain."""
        keys = frozenset() if self.apart is None else read_in_place(operands)
        return self.apart(keys) if self.apart is not None and keys else None

    def _bound(self, operands: Mapping[str, Operand]) -> type[BoundKernel]:
        if all(type(operand.values) is not DeviceArray for operand in operands.values()):
            return BoundKernel
        from .device_kernel import DeviceBoundKernel  # few programs need it

        return DeviceBoundKernel

    def __repr__(self) -> str:
        return f"TypedKernel({self.spec.expression!r}, schedule={self.spec.schedule!r})"
