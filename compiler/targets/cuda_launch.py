"""Kernels of a GPU, loaded: what they are bound to, in memory of the device, and their runs there.

Every run transfers arrays of the host to the device and results back, as many bytes as ``CudaLaunch.transferred`` says.

Arrays of which kernels use 16 bytes at once begin at a multiple of 16, as memory of the device does. An operand there that begins
elsewhere, being a part of a larger one, is copied on the device by every run, and so is a result, back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.c import KERNEL
from ..errors import BuildError, ResourceError
from ..frozen import frozen
from ..ir.nodes import ArrayParameter, Function
from ..native.library import foreign_interface
from ..native.memory import readable_bytes
from ..passes.cuda import CUDA as PASSES
from ..passes.manager import VectorUnit
from ..passes.wide_loads import WIDE, wide_arrays
from ..storage.on_device import DeviceArray
from .streams import current_stream

DECLARATIONS = (
    f"int32_t {KERNEL}(void **arrays, int64_t *sizes, int64_t threads); void *st_get(int64_t bytes); void st_release(void *memory); "
    "int32_t st_upload(void *to, const void *from, int64_t bytes); int32_t st_download(void *to, const void *from, int64_t bytes); "
    "const char *st_trouble(void); int32_t st_open(const void *image); int32_t st_code(void); "
    "int32_t st_copy(void *to, const void *from, int64_t bytes); "
    "int32_t st_zero(void *memory, int64_t bytes); void *st_moment(void); double st_between(void *first, void *last); "
    "int32_t st_repeat(void *memory, const void *element, int64_t size, int64_t bytes); void st_use_stream(void *stream, int32_t waits); "
    "void st_adopt(void *memory, int64_t bytes, int32_t writable); void st_disown(void *memory); "
    "int32_t st_time(void **arrays, int64_t *sizes, int64_t threads, const int64_t *zeroed, const int64_t *made, int64_t count, "
    "int64_t flushed, int64_t runs, double *seconds); int32_t st_copy_time(int64_t bytes, int64_t runs, double *seconds);"
)

@dataclass
class CudaLaunch:
    """A loaded kernel and memory of the device for its arrays. ``transferred``: bytes that the last run moved either way."""

    kernel: CudaKernel
    arrays: Sequence[NDArray[Any] | DeviceArray | None]
    sizes: Any
    memory: Any
    threads: int
    kept: list[Any]
    transferred: int = field(default=0, init=False)

    def run(self) -> int:
        """Transfer operands of the host, run, transfer results to it. Raises ``BuildError`` where the device reports an error."""
        ffi, library, stream, self.transferred = foreign_interface(DECLARATIONS), self.kernel.library, current_stream(), 0
        library.st_use_stream(ffi.cast("void *", stream or 0), stream is None)
        places = list(zip(self.arrays, self.kernel.parameters, strict=True))
        there = [(place, parameter) for place, (array, parameter) in enumerate(places) if isinstance(array, DeviceArray)]
        moved = [each for each in there if self.memory[each[0]] != ffi.cast("void *", self.arrays[each[0]].pointer)]  # type: ignore[union-attr]
        there = [each for each in there if each not in moved]
        for place, parameter in there:
            library.st_adopt(self.memory[place], self.arrays[place].nbytes, parameter.writable)  # type: ignore[union-attr]
        try:
            for place, parameter in moved:
                if not parameter.writable or self.kernel.reads_result:
                    self._copied(place, back=False)
            status = self._between_transfers(places)
            for place, parameter in moved:
                if parameter.writable and not status:
                    self._copied(place, back=True)
            return status
        finally:
            for place, _ in there:
                library.st_disown(self.memory[place])

    def _copied(self, place: int, back: bool) -> None:
        """Copy an operand of the device to where kernels have it, or back."""
        array, memory = self.arrays[place], self.memory[place]
        assert isinstance(array, DeviceArray)
        own = foreign_interface(DECLARATIONS).cast("void *", array.pointer)
        self._moved(self.kernel.library.st_copy(*((own, memory) if back else (memory, own)), array.nbytes), 0)

    def _between_transfers(self, places: Sequence[tuple[NDArray[Any] | DeviceArray | None, ArrayParameter]]) -> int:
        """Upload arrays of the host, run, download what was written."""
        library = self.kernel.library
        for place, (array, parameter) in enumerate(places):
            if isinstance(array, np.ndarray) and (not parameter.writable or self.kernel.reads_result):
                self._moved(library.st_upload(self.memory[place], _pointer(array), array.nbytes), array.nbytes)
        status = self.kernel.call(self.memory, self.sizes, self.threads)
        if status > 1:
            self._moved(status, 0)
        for place, (array, parameter) in enumerate(places):
            if isinstance(array, np.ndarray) and parameter.writable and not status:
                self._moved(library.st_download(_pointer(array), self.memory[place], array.nbytes), array.nbytes)
        return status

    def fill(self, array: DeviceArray, value: float) -> None:
        """Set all elements of an array on the device; at most one element is transferred."""
        memory = foreign_interface(DECLARATIONS).cast("void *", array.pointer)
        if value == 0:
            return self._moved(self.kernel.library.st_zero(memory, array.nbytes), 0)
        element = np.full(1, value, array.dtype)
        return self._moved(self.kernel.library.st_repeat(memory, _pointer(element), element.nbytes, array.nbytes), element.nbytes)

    def seconds(self, runs: int, flushed: int = 0) -> list[float]:
        """Return the seconds that each of some runs takes on the device, by its own clock; operands and result are there already.

        Args:
            flushed: bytes of other memory that are written before each run; twice the second-level cache leaves it cold.

        Raises:
            ResourceError, BuildError: as ``run``.
        """
        ffi, result = foreign_interface(DECLARATIONS), self.kernel.reads_result
        if self.run():
            raise ResourceError("the device had no memory for the kernel's workspaces or result")
        places = list(zip(self.arrays, self.kernel.parameters, strict=True))
        for place, (array, _) in enumerate(places):
            if array is None:
                self.kernel.library.st_release(self.memory[place])
        zeroed = [array.nbytes if array is not None and parameter.writable and result else 0 for array, parameter in places]
        made, found = [int(array is None) for array, _ in places], ffi.new("double[]", runs)
        each = (ffi.new("int64_t[]", zeroed), ffi.new("int64_t[]", made), len(places))
        status = self.kernel.library.st_time(self.memory, self.sizes, self.threads, *each, flushed, runs, found)
        if status == 1:
            raise ResourceError("the device had no memory for the kernel's workspaces, its result, or what is written between runs")
        self._moved(status, 0)
        return list(found)

    def _moved(self, status: int, count: int) -> None:
        self.transferred += count
        if status:
            raise BuildError(f"the device reports: {self.kernel.trouble}; the kernel's result is lost")

    def left(self, pointer: int, length: int, dtype: np.dtype[Any]) -> DeviceArray:
        """Return an array that the last run made where it is; its arguments are those of ``published``."""
        return self.kernel.owning(self.memory[pointer], (self.sizes[length],), dtype)

    def published(self, pointer: int, length: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        made = np.empty(self.sizes[length], dtype)
        self._moved(self.kernel.library.st_download(_pointer(made), self.memory[pointer], made.nbytes), made.nbytes)
        self.kernel.library.st_release(self.memory[pointer])
        return made


def _pointer(array: NDArray[Any]) -> Any:
    return foreign_interface(DECLARATIONS).from_buffer(array) if array.size else foreign_interface(DECLARATIONS).NULL


@frozen
class CudaKernel:
    """A loaded kernel.

    Attributes:
        library: what is loaded, with the functions of ``DECLARATIONS``.
        call: the kernel of it, on arrays of the device.
        reads_result: whether the result's values before the run count.
        function: what was compiled, before passes; None where kernels were written by hand.
        unit: what these passes know of the GPU.
    """

    library: Any
    call: Callable[[Any, Any, int], int]
    parameters: tuple[ArrayParameter, ...]
    reads_result: bool
    compiler: str
    flags: tuple[str, ...]
    function: Function | None = None
    unit: VectorUnit = VectorUnit(0)

    @cached_property
    def wide(self) -> frozenset[str]:
        """The arrays of which kernels use 16 bytes at once; all of them where nobody knows.

        This is read only if an operand on the device begins at no multiple of 16, which is rare. So passes are run again for it, once
        for a kernel, rather than that every kernel keeps its program beside its text.
        """
        if self.function is None:
            return frozenset(parameter.name for parameter in self.parameters)
        return wide_arrays(PASSES.run(self.function, self.unit))

    @property
    def trouble(self) -> str:
        """What the library says of the last error of the device, as text for messages."""
        return foreign_interface(DECLARATIONS).string(self.library.st_trouble()).decode("utf-8", "replace")

    def copy_seconds(self, count: int, runs: int) -> list[float]:
        """Return the seconds of each of some copies of ``count`` bytes on the device. Raises ``ResourceError``, ``BuildError``."""
        found = foreign_interface(DECLARATIONS).new("double[]", runs)
        status = self.library.st_copy_time(count, runs, found)
        if status == 1:
            raise ResourceError(f"the device has no memory for two times {readable_bytes(count)}")
        if status:
            raise BuildError(f"the device reports: {self.trouble}")
        return list(found)

    def owning(self, memory: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        """Return an array over memory of the device, which is given back with it."""
        ffi, library = foreign_interface(DECLARATIONS), self.library

        def read(array: NDArray[Any], pointer: int) -> None:
            if library.st_download(_pointer(array), ffi.cast("void *", pointer), array.nbytes):
                raise BuildError(f"the device reports: {self.trouble}")

        return DeviceArray(int(ffi.cast("uintptr_t", memory)), shape, dtype, ffi.gc(memory, library.st_release), read)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        """Return an array of the device. Raises ``ResourceError`` where it has no memory for it."""
        count = prod(shape) * dtype.itemsize
        memory = self.library.st_get(count)
        if memory == foreign_interface(DECLARATIONS).NULL:
            raise ResourceError(f"the device has no {readable_bytes(count)} for the result")
        return self.owning(memory, shape, dtype)

    def bind(self, arrays: Sequence[NDArray[Any] | DeviceArray | None], sizes: Sequence[int], made: int, threads: int) -> CudaLaunch:
        """Return a launch. Raises ``ResourceError`` where the device has no memory for the arrays."""
        ffi, held = foreign_interface(DECLARATIONS), []
        for array, parameter in zip(arrays, self.parameters, strict=True):
            if isinstance(array, DeviceArray) and (array.pointer % WIDE == 0 or parameter.name not in self.wide):
                held.append(ffi.cast("void *", array.pointer))
                continue
            memory = ffi.NULL if array is None else ffi.gc(self.library.st_get(array.nbytes), self.library.st_release)
            if array is not None and memory == ffi.NULL:
                raise ResourceError(f"the device has no {readable_bytes(array.nbytes)} for an operand or the result")
            held.append(memory)
        lengths = ffi.new("int64_t[]", [*sizes, *([0] * made)])
        return CudaLaunch(self, arrays, lengths, ffi.new("void *[]", held), threads, held)
