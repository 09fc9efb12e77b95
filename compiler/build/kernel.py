"""Kernels as people call them: ``k(A=A, x=x)``, or ``b = k.bind(A=A, x=x)`` once and ``b()`` many times."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, SparsetuneError
from ..loops.nodes import ArrayParameter, SizeParameter
from ..lowering.kernel_spec import KernelSpec
from ..native.machine import available_cores
from ..schedule.schedule import Schedule
from ..storage import Tensor
from .executable import Executable, build, interface, kernel_source
from .operands import Operand, check_names, find_extents, prepare
from .results import assembled_result, dense_result, fill_of, owned_array, requested_form

MOST_THREADS = 1024
"""OpenMP's runtime ends the process when it cannot start as many threads as it is told."""


class Kernel:
    """A compiled kernel for one expression, formats, schedule and target.

    Calling it with operands by name returns the result: an ndarray where it is dense (a numpy scalar for order 0), else
    a Tensor. ``threads`` is how many threads run (default: $SPARSETUNE_THREADS, or the cores that this process may use);
    ``out`` takes a dense result. An expression that has operands called ``threads`` or ``out`` gives these words to them.

    Raises (when called or bound):
        ExpressionError: an operand is missing or not used.
        ShapeError: extents disagree.
        DataError: values, ``out`` or ``threads`` do not fit.
        SparsetuneError: there was no memory for the result.
    """

    def __init__(self, spec: KernelSpec) -> None:
        self.spec = spec

    @cached_property
    def source(self) -> str:
        """The generated C code."""
        return kernel_source(self.spec)

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
        """The loaded code; compiled at first use."""
        return build(self.spec, self.source)

    def load(self, timeout: float = 120.0) -> Kernel:
        """Compile and load now, and return the kernel.

        Raises:
            BuildError: the compiler is missing, fails, or takes longer than ``timeout`` seconds.
        """
        if "executable" not in self.__dict__:
            self.__dict__["executable"] = build(self.spec, self.source, timeout)
        return self

    def __call__(self, /, **operands: Any) -> Any:
        threads, out = self._options(operands)
        return self.bind_operands(operands, threads, out).once()

    def bind(self, /, **operands: Any) -> BoundKernel:
        """Check and convert operands once; see ``BoundKernel``."""
        threads, out = self._options(operands)
        return self.bind_operands(operands, threads, out)

    def _options(self, operands: dict[str, Any]) -> tuple[Any, Any]:
        """Take the keywords that are no operands out of the keywords given."""
        own = {operand.tensor for operand in self.spec.operands}
        return tuple(operands.pop(word, None) if word not in own else None for word in ("threads", "out"))  # type: ignore[return-value]

    def bind_operands(
        self, operands: Mapping[str, Any], threads: int | None = None, out: Any = None, extents: Mapping[str, int] | None = None
    ) -> BoundKernel:
        """Bind operands given as a mapping.

        Args:
            extents: extents of indices that no operand determines.
        """
        spec = self.spec
        check_names(spec, operands)
        fill = fill_of(spec.result)
        prepared = {operand.key: prepare(operand, operands[operand.tensor], fill) for operand in spec.operands}
        return BoundKernel(self, prepared, find_extents(spec, prepared, extents or {}), thread_count(threads), out)

    def __repr__(self) -> str:
        return f"Kernel({self.spec.expression!r}, schedule={self.spec.schedule!r})"


class BoundKernel:
    """A kernel with its operands. Calling it runs the kernel at C speed and returns the result.

    Operands that were not converted are seen as they are at the time of each call. A dense result, and the values of a
    sparse one that shares the pattern of an operand, live in one array (64-byte aligned, or ``out``), which every call
    fills anew and returns: copy it to keep it. Assembled sparse results are new each time.
    """

    def __init__(self, kernel: Kernel, operands: Mapping[str, Operand], extents: Mapping[str, int], threads: int, out: Any) -> None:
        self.kernel = kernel
        self.threads = threads
        self._operands = operands
        self._extents = extents
        self._spec = kernel.spec.result
        self._function = kernel.executable.call
        ffi = interface()
        parameters = kernel.spec.function.arrays
        assembled = [parameter for parameter in parameters if parameter.assembled]
        self._sizes = ffi.new("int64_t[]", [self._size(size) for size in kernel.spec.function.sizes] + [0] * len(assembled))
        self._result, self._flat = self._make_result(out)
        self._kept = [None if parameter.assembled else ffi.from_buffer("char[]", self._array(parameter)) for parameter in parameters]
        self._arrays = ffi.new("void *[]", [ffi.NULL if held is None else ffi.cast("void *", held) for held in self._kept])
        self._assembled = [
            (slot, len(kernel.spec.function.sizes) + rank, parameter)
            for rank, (slot, parameter) in enumerate((slot, parameter) for slot, parameter in enumerate(parameters) if parameter.assembled)
        ]
        self._initial = fill_of(self._spec) if self._spec.initial == "zero" else None
        self._is_scalar = self._flat is not None and not self._spec.indices and out is None
        self._converts = self._spec.format != self._spec.requested

    def __call__(self) -> Any:
        if self._initial is not None and self._flat is not None:
            self._flat.fill(self._initial)
        if self._function(self._arrays, self._sizes, self.threads):
            self._fail()
        if self._is_scalar:
            return self._flat[0]  # type: ignore[index]  # scalars are dense
        if self._assembled:
            return self._assemble()
        return requested_form(self._spec, self._result) if self._converts else self._result

    once = __call__

    def _size(self, parameter: SizeParameter) -> int:
        match parameter.source:
            case ("index", index):
                return self._extents[index]
            case (key, "length", int(level)):
                return self._operands[key].lengths[level]
            case (key, "extent", int(mode)):
                return self._operands[key].shape[mode]
        raise AssertionError(f"size parameter {parameter.name} has unknown source {parameter.source}")

    def _make_result(self, out: Any) -> tuple[Any, NDArray[Any] | None]:
        """Return the result that every call fills, and its flat storage; nothing for results that are assembled."""
        spec = self._spec
        if spec.format.is_dense:
            return dense_result(spec, self._extents, out, self._operands)
        if out is not None:
            raise DataError(f"out takes dense results, but '{spec.name}' is sparse ({spec.requested}); leave it out")
        if spec.shares is None:
            return None, None
        pattern = self._operands[spec.shares]
        values = np.empty(0, spec.dtype) if pattern.values.size == 0 else _like(pattern.values, spec.dtype)
        shape = tuple(self._extents[index] for index in spec.indices)
        return Tensor(shape, spec.format, pattern.levels, values, fill_of(spec)), values

    def _array(self, parameter: ArrayParameter) -> NDArray[Any]:
        key, part, *level = parameter.source
        if key == self._spec.name and part == "values":
            assert self._flat is not None
            return self._flat
        holder = self._operands[self._spec.shares] if key == self._spec.name and self._spec.shares is not None else self._operands[key]
        return holder.array(part, level[0] if level else None)  # type: ignore[arg-type]  # levels are ints

    def _assemble(self) -> Any:
        """Take over the arrays that the kernel left in its slots."""
        found: dict[tuple[str, int | None], NDArray[Any]] = {}
        for slot, size, parameter in self._assembled:
            _, part, *level = parameter.source
            kind = np.dtype(self._spec.dtype) if part == "values" else np.dtype(f"int{8 * parameter.type.bytes}")
            found[part, level[0] if level else None] = owned_array(self._arrays[slot], self._sizes[size], kind)  # type: ignore[index]
        made = assembled_result(self._spec, self._extents, found)
        return requested_form(self._spec, made) if self._converts else made

    def _fail(self) -> None:
        expression = self.kernel.spec.expression
        raise SparsetuneError(f"there was not enough memory to compute '{expression}'; use a schedule with smaller workspaces")


def _like(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    from ..storage.aligned import aligned_empty

    return aligned_empty(values.size, dtype)


def thread_count(threads: int | None) -> int:
    """Return how many threads a kernel runs with: as many as said, or $SPARSETUNE_THREADS, or the available cores.

    Raises:
        DataError: the number is none that this machine can run.
    """
    asked: Any = threads
    if asked is None:
        asked = os.environ.get("SPARSETUNE_THREADS")
        if not asked:
            return available_cores()
        if not asked.isdecimal() or not 1 <= int(asked) <= MOST_THREADS:
            raise DataError(f"SPARSETUNE_THREADS is a whole number from 1 to {MOST_THREADS}, not {asked!r}")
        return int(asked)
    if isinstance(asked, bool) or not isinstance(asked, (int, np.integer)) or not 1 <= asked <= MOST_THREADS:
        raise DataError(f"threads is a whole number from 1 to {MOST_THREADS}, not {asked!r}")
    return int(asked)
