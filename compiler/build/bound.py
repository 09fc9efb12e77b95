"""Kernels with their operands: everything is checked and converted, so that a call only runs."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import DataError, ResourceError
from ..ir.nodes import PAST_CACHES, STEP, ArrayParameter
from ..native.machine import available_cores, this_machine
from ..native.memory import FLOOR, claim
from ..numpy_later import np
from ..storage.aligned import ALIGNMENT
from ..storage.kernels import light
from ..storage.pooled import pooled_empty
from ..storage.sealed import pin
from ..storage.tensor import Tensor
from .copies import read_copies, row_step
from .operands import Operand
from .results import assembled_result, dense_result, empty_result, published, requested_form, shared_levels
from .workspaces import workspace_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .kernel import TypedKernel


class BoundKernel:
    """A kernel with its operands. Calling it runs the kernel at C speed and returns the result.

    Each call reads the current values of operands that were not converted; index arrays do not change. Dense ones that do not begin with
    a cache line may be copied in each call, where that pays (``build.copies``). While the kernel lives,
    NumPy refuses to resize the arrays that it reads (``ndarray.resize``). A dense result, and the values of a sparse one that
    shares the pattern of an operand, live in one array (64-byte aligned, or ``out``), which every call fills anew and returns:
    copy it to keep it. Assembled sparse results are new each time. A kernel with several results returns a list of all.

    Several threads may call it at once: each gets a result of its own. With ``out`` there is one result, and the calls run one
    after another.
    """

    def __init__(self, kernel: TypedKernel, operands: Mapping[str, Operand], extents: Mapping[str, int], threads: int, out: Any) -> None:
        self.kernel = kernel
        self.threads = threads
        self._caller, self._of_other_callers = threading.get_ident(), threading.local()
        self._taken = None if out is None else threading.Lock()
        self.operands, self.extents, self._spec = operands, extents, kernel.spec.result
        self._assembled = kernel.assembled
        self.claimed = self._claim(out)
        self._copies = read_copies(operands, kernel.target.on_device, kernel.stepped)
        self._result, self._flat = self._make_result(out)
        self._also = {other.name: dense_result(other, extents, None, operands) for other in kernel.spec.also}
        self.launch = kernel.executable.bind(*self._arguments(), len(self._assembled), threads)
        self._kernel_run = self.launch.run
        self._pins = [pin(operand.values) for operand in operands.values()]
        self._pins += [pin(flat) for flat in (self._flat, *(flat for _, flat in self._also.values())) if flat is not None]
        self._initial = kernel.fill if self._spec.initial == "zero" else None
        self._is_scalar = self._flat is not None and not self._spec.indices and out is None
        self._converts = self._spec.format != self._spec.requested
        summed = (extents[index] for index in kernel.spec.indices if index not in self._spec.indices)
        if self._spec.shares is not None and 0 in summed:  # a sum over no terms stores no entries
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
        """Return a copy of this kernel, with a result of its own, for a calling thread other than the one that bound it."""
        kept = self._of_other_callers
        if not hasattr(kept, "bound"):
            kept.bound = type(self)(self.kernel, self.operands, self.extents, self.threads, None)
        return kept.bound

    def _run(self) -> Any:
        if self._copies:
            self._copy()
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

    def _copy(self) -> None:
        for key, copy in self._copies.items():
            light(copy.size).copy(self.operands[key].values, copy)

    def count(self) -> dict[str, int]:
        """Count what one run in one thread does. The numbers are exact and the same on every machine: a counting build finds them.

        Returns:
            flops: scalar operations on values. A fused multiply-add counts as two, an operation on vectors once for each lane.
            loads, stores: elements of arrays that are read and written. An updated element counts as both.
            iterations: how often a loop body is entered, over all loops.
            workspace: the most elements of the schedule's workspaces that exist at once. Scalars do not count.

        Raises:
            BuildError: the compiler is missing or fails.
            ResourceError: there is no memory for another result.
        """
        from .counting import CountingKernel  # imports build.kernel, which imports this module

        return CountingKernel(self.kernel.spec).count(self.operands, self.extents)

    def arguments(self) -> tuple[list[NDArray[Any] | None], list[int]]:
        """Return the arrays and sizes that the kernel runs on, in the order of its parameters; None for arrays that it makes. Copies of
        operands hold their values of now."""
        self._copy()
        return self._arguments()

    def _arguments(self) -> tuple[list[NDArray[Any] | None], list[int]]:
        function = self.kernel.spec.function
        arrays = [None if parameter.assembled else self._array(parameter) for parameter in function.arrays]
        return arrays, [self._size(size.source) for size in function.sizes]

    def _size(self, source: tuple[str, str] | tuple[str, str, int]) -> int:
        if len(source) == 2:
            return self.threads if source[0] == "threads" else self.extents[source[1]]
        key, what, place = source
        if what == PAST_CACHES:
            return int(_passes_caches(self._also[key][1] if key in self._also else self._flat))
        if what == STEP:
            return row_step(self.operands[key].values)
        return self.operands[key].lengths[place] if what == "length" else self.operands[key].shape[place]

    def _claim(self, out: Any) -> int:
        """Check that there is memory for a dense result and all workspaces together, and return how many bytes they take."""
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
        if part == "values" and key in self._copies:
            return self._copies[key]
        if part == "values" and key in self.kernel.stepped:
            return self.operands[key].values[:1, :1].reshape(-1)
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
        made = assembled_result(self._spec, self.extents, published(self.launch, self._assembled), self.kernel.fill)
        return requested_form(self._spec, made) if self._converts else made


def no_memory(expression: str) -> ResourceError:
    """Return the error to raise when a kernel runs out of memory."""
    return ResourceError(f"there was not enough memory to compute '{expression}'; use a schedule with smaller workspaces")


def _passes_caches(result: NDArray[Any] | None) -> bool:
    """Return whether a result would fill most of the last-level cache, and is aligned for vector stores that bypass the caches."""
    assert result is not None
    return result.nbytes > this_machine().last_level_cache // 2 and result.ctypes.data % ALIGNMENT == 0
