"""Kernels as people call them: ``k(A=A, x=x)``, or ``b = k.bind(A=A, x=x)`` once and ``b()`` many times."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attention import noted_if_long
from ..errors import DataError, ResourceError
from ..frozen import frozen
from ..ir.memory import numpy_type
from ..ir.nodes import PAST_CACHES, ArrayParameter
from ..lowering.kernel_spec import KernelSpec
from ..native.machine import available_cores, this_machine
from ..native.memory import FLOOR, claim
from ..native.team import thread_count
from ..schedule.schedule import Schedule
from ..storage.aligned import ALIGNMENT
from ..storage.on_device import DeviceArray
from ..storage.pooled import pooled_empty
from ..storage.sealed import pin
from ..storage.tensor import Tensor
from ..targets.c import C
from ..targets.target import Executable, Target
from .operands import Expected, Operand, find_extents, prepare, refuse_names
from .results import assembled_result, dense_result, empty_result, fill_of, requested_form, shared_levels
from .stages import kernel_source, kernel_stages
from .workspaces import Workspace, workspace_bytes, workspaces

COMPILE_SECONDS = 120.0
"""For compiling one kernel."""


class TypedKernel:
    """A compiled kernel for one expression, formats, schedule and target, and for given dtypes and index widths.

    Calling it with operands by name returns the result: an ndarray where it is dense (a numpy scalar for order 0), else
    a Tensor. ``threads`` is into how many shares work is cut, and how many threads run at most (default: $SPARSETUNE_THREADS, or
    the cores that this process may use); the same number gives the same bits in every call, atomic updates aside.
        ``out`` takes a dense result. An expression that has operands called ``threads`` or ``out`` gives these words to them.

    Raises (when called or bound):
        ExpressionError: an operand is missing or not used.
        ShapeError: extents disagree.
        DataError: values, ``out`` or ``threads`` do not fit.
        ResourceError: there is no memory for the result, or for what the schedule keeps meanwhile.
    """

    def __init__(self, spec: KernelSpec, target: Target = C) -> None:
        self.spec, self.target = spec, target

    @cached_property
    def source(self) -> str:
        """The generated code."""
        return kernel_source(self.spec, self.target)

    @cached_property
    def stages(self) -> dict[str, str]:
        """The kernel after every stage and pass, by its name, in order: concrete notation, loop IR, source (``build.stages``)."""
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
        """The loaded code; compiled at first use, which is said where it takes long."""
        with noted_if_long(f"compiling '{self.spec.expression}', once for all processes"):
            return self.target.compile(self.spec, self.source, COMPILE_SECONDS)

    @cached_property
    def fill(self) -> Any:
        """The fill value of the result: what a sparse operand does not store is taken for it."""
        return fill_of(self.spec.result)

    @cached_property
    def assembled(self) -> tuple[Assembled, ...]:
        """The arrays that the kernel hands over."""
        found, sizes = [], len(self.spec.function.sizes)
        for slot, parameter in enumerate(self.spec.function.arrays):
            if parameter.assembled:
                part, level = parameter.source[1], parameter.source[2] if len(parameter.source) == 3 else None
                kind = np.dtype(self.spec.result.dtype) if part == "values" else numpy_type(parameter.type)
                found.append(Assembled(slot, sizes + len(found), part, level, kind))
        return tuple(found)

    @cached_property
    def workspaces(self) -> tuple[Workspace, ...]:
        """The memory that the kernel asks for by itself, as far as the sizes of operands tell."""
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
        """Take the keywords that are no operands out of the keywords given."""
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
            once: the bound kernel is called once, at once.
        """
        spec = self.spec
        if operands.keys() != self._own_names:
            refuse_names(spec, operands)
        prepared: dict[str, Operand] = {}
        for wanted in self._expected:  # a tensor that is read at several indices comes several times
            if wanted.spec.key not in prepared:
                prepared[wanted.spec.key] = prepare(wanted, operands.get(wanted.spec.tensor), once, spec.unit)
        return self._bound(prepared)(self, prepared, find_extents(spec, prepared, extents or {}), thread_count(threads), out)

    def _bound(self, operands: Mapping[str, Operand]) -> type[BoundKernel]:
        if all(type(operand.values) is not DeviceArray for operand in operands.values()):
            return BoundKernel
        from .device_kernel import DeviceBoundKernel  # with the target that it is for

        return DeviceBoundKernel

    def __repr__(self) -> str:
        return f"TypedKernel({self.spec.expression!r}, schedule={self.spec.schedule!r})"


@frozen
class Assembled:
    """Where a kernel leaves one array of an assembled result: slots of its pointer and length, and what it is."""

    pointer: int
    length: int
    part: str
    level: int | None
    dtype: np.dtype[Any]


class BoundKernel:
    """A kernel with its operands. Calling it runs the kernel at C speed and returns the result.

    Values that were not converted are seen as they are at the time of each call; index arrays are the kernel's own, and what it
    points to stays where it is as long as it lives: ``ndarray.resize`` is refused. A dense result, and the values of a
    sparse one that shares the pattern of an operand, live in one array (64-byte aligned, or ``out``), which every call
    fills anew and returns: copy it to keep it. Assembled sparse results are new each time. A kernel with further results returns a
    list of all.

    Several threads may call it at once: each has a result of its own, but for ``out``, which they fill one after another.
    """

    def __init__(self, kernel: TypedKernel, operands: Mapping[str, Operand], extents: Mapping[str, int], threads: int, out: Any) -> None:
        self.kernel = kernel
        self.threads = threads
        self._caller, self._of_other_callers = threading.get_ident(), threading.local()
        self._taken = None if out is None else threading.Lock()
        self.operands, self.extents, self._spec = operands, extents, kernel.spec.result
        self._assembled = kernel.assembled
        self.claimed = self._claim(out)
        self._result, self._flat = self._make_result(out)
        self._also = {other.name: dense_result(other, extents, None, operands) for other in kernel.spec.also}
        self.launch = kernel.executable.bind(*self.arguments(), len(self._assembled), threads)
        self._kernel_run = self.launch.run
        self._pins = [pin(operand.values) for operand in operands.values()]
        self._pins += [pin(flat) for flat in (self._flat, *(flat for _, flat in self._also.values())) if flat is not None]
        self._initial = kernel.fill if self._spec.initial == "zero" else None
        self._is_scalar = self._flat is not None and not self._spec.indices and out is None
        self._converts = self._spec.format != self._spec.requested
        summed = (extents[index] for index in kernel.spec.indices if index not in self._spec.indices)
        if self._spec.shares is not None and 0 in summed:  # a sum of nothing stores nothing, whatever the pattern
            self._result = empty_result(self._spec, extents, kernel.fill)

    def __call__(self) -> Any:
        if self._taken is not None:
            with self._taken:
                return self._run()
        return self._run() if threading.get_ident() == self._caller else self._own()._run()

    def __repr__(self) -> str:
        spec, extents = self.kernel.spec, ", ".join(f"{index}={extent}" for index, extent in self.extents.items())
        return f"BoundKernel({spec.expression!r}, {extents}, threads={self.threads}, schedule={spec.schedule!r})"

    def _own(self) -> BoundKernel:
        """Return this kernel with a result for the thread that calls, which is not the one that bound it."""
        kept = self._of_other_callers
        if not hasattr(kept, "bound"):
            kept.bound = type(self)(self.kernel, self.operands, self.extents, self.threads, None)
        return kept.bound

    def _run(self) -> Any:
        if self._initial is not None and self._flat is not None:
            self._flat.fill(self._initial)
        if not self._spec.copies and self._kernel_run():
            raise self._no_memory()
        if self._is_scalar:
            assert self._flat is not None
            return self._flat[0]
        if self._also:
            return [self._result, *(array for array, _ in self._also.values())]
        if self._assembled:
            return self._assemble()
        return requested_form(self._spec, self._result) if self._converts else self._result

    once = __call__

    def count(self) -> dict[str, int]:
        """Return what one run in one thread does: exact numbers, the same on every machine, from a counting build.

        Returns:
            flops: scalar operations on values, a fused multiply-add being two, vectors by lanes.
            loads, stores: elements of arrays that are read and written, an updated one being both.
            iterations: bodies of loops that are entered, all loops together.
            workspace: the most elements of the schedule's workspaces that are alive at once; scalars are none.

        Raises:
            BuildError: the compiler is missing or fails.
            ResourceError: there is no memory for another result.
        """
        from .counting import CountingKernel  # which is a kernel

        return CountingKernel(self.kernel.spec).count(self.operands, self.extents)

    def arguments(self) -> tuple[list[NDArray[Any] | None], list[int]]:
        """Return the arrays and sizes that the kernel runs on, in the order of its parameters; None for arrays that it makes."""
        function = self.kernel.spec.function
        arrays = [None if parameter.assembled else self._array(parameter) for parameter in function.arrays]
        return arrays, [self._size(size.source) for size in function.sizes]

    def _size(self, source: tuple[str, str] | tuple[str, str, int]) -> int:
        if len(source) == 2:
            return self.threads if source[0] == "threads" else self.extents[source[1]]
        key, what, place = source
        if what == PAST_CACHES:
            return int(_passes_caches(self._also[key][1] if key in self._also else self._flat))
        return self.operands[key].lengths[place] if what == "length" else self.operands[key].shape[place]

    def _claim(self, out: Any) -> int:
        """See that there is memory for a dense result and all workspaces together, and return how many bytes they take."""
        spec, kernel, made = self._spec, self.kernel, 0
        if out is None and all(kind.inserts for kind in spec.format.levels) and spec.shares is None:
            shapes = ([self.extents[index] for index in result.indices] for result in kernel.spec.results)
            made = sum(map(math.prod, shapes)) * np.dtype(spec.dtype).itemsize
        if kernel.workspaces:
            sizes = {size.name: self._size(size.source) for size in kernel.spec.function.sizes if size.source[1] != PAST_CACHES}
            made += workspace_bytes(kernel.workspaces, sizes, min(self.threads, available_cores()))
        if made > FLOOR:
            what = "with its workspaces " if kernel.workspaces else ""
            claim(made, f"the result '{spec.name}' {what}of '{kernel.spec.expression}'", "ask for a sparse one: output_format='csr'")
        return made

    def _make_result(self, out: Any) -> tuple[Any, NDArray[Any] | None]:
        """Return the result that every call fills, and its flat storage; nothing for results that are assembled."""
        spec = self._spec
        if spec.format.is_dense:
            return dense_result(spec, self.extents, out, self.operands)
        if out is not None:
            raise DataError(f"out takes dense results, but '{spec.name}' is sparse ({spec.requested}); leave it out")
        if spec.shares is None:
            return None, None
        pattern = self.operands[spec.shares]
        shape = tuple(self.extents[index] for index in spec.indices)
        levels, length = shared_levels(spec, pattern, shape)
        values = pattern.values if spec.copies else pooled_empty(length, spec.dtype)
        return Tensor.made(shape, spec.format, levels, values, self.kernel.fill), values

    def _array(self, parameter: ArrayParameter) -> NDArray[Any]:
        key, part = parameter.source[:2]
        level = parameter.source[2] if len(parameter.source) == 3 else None
        if key in self._also:
            return self._also[key][1]
        if key != self._spec.name:
            return self.operands[key].array(part, level)
        if part == "values":
            assert self._flat is not None
            return self._flat
        assert self._spec.shares is not None
        return self.operands[self._spec.shares].array(part, level)

    def _no_memory(self) -> ResourceError:
        return no_memory(self.kernel.spec.expression)

    def _assemble(self) -> Any:
        """Take over the arrays that the kernel left in its slots."""
        found = {(array.part, array.level): self.launch.published(array.pointer, array.length, array.dtype) for array in self._assembled}
        made = assembled_result(self._spec, self.extents, found, self.kernel.fill)
        return requested_form(self._spec, made) if self._converts else made


def no_memory(expression: str) -> ResourceError:
    """Return what is raised where a kernel could not have the memory that it asked for while it ran."""
    return ResourceError(f"there was not enough memory to compute '{expression}'; use a schedule with smaller workspaces")


def _passes_caches(result: NDArray[Any] | None) -> bool:
    """Return whether a result takes most of the caches, and begins where vectors of any size may be written past them."""
    assert result is not None
    return result.nbytes > this_machine().last_level_cache // 2 and result.ctypes.data % ALIGNMENT == 0
