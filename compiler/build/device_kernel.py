"""Kernels with operands in the memory of a GPU: results stay there, and only arrays of the host are transferred."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ..errors import DataError
from ..format import dense_format
from ..storage.on_device import DeviceArray, DeviceLevel, DeviceTensor, device_array
from ..targets.target import DeviceExecutable, DeviceLaunch
from .bound import BoundKernel
from .results import shared_levels


class DeviceBoundKernel(BoundKernel):
    """A kernel with an operand in memory of a GPU. Dense results are ``DeviceArray``, sparse ones ``DeviceTensor``."""

    launch: DeviceLaunch

    def _claim(self, out: Any) -> int:
        return 0  # no memory of the host is needed; the device's is checked when it is allocated

    def _make_result(self, out: Any) -> tuple[Any, Any]:
        spec = self._spec
        if not self.kernel.target.on_device:
            raise DataError(f"operands of '{spec.name}' are in memory of a GPU; use target cuda, or copy them to the host")
        executable = cast("DeviceExecutable", self.kernel.executable)
        if spec.format != spec.requested or (spec.format.is_dense and spec.format != dense_format(len(spec.format))):
            raise DataError(f"'{spec.name}' is left on the GPU as {spec.format}, and not converted there; copy the operands to the host")
        shape, dtype = tuple(self.extents[index] for index in spec.indices), np.dtype(spec.dtype)
        if spec.format.is_dense:
            made = executable.empty(shape, dtype) if out is None else self._given(out, shape, dtype)
            return (made if out is None else out), made.flat()
        if out is not None:
            raise DataError(f"out takes dense results, but '{spec.name}' is sparse ({spec.requested}); leave it out")
        if spec.shares is None:
            return None, None
        pattern = self.operands[spec.shares]
        levels, length = shared_levels(spec, pattern, shape)
        values = pattern.values if spec.copies else executable.empty((length,), dtype)
        return DeviceTensor(shape, spec.format, levels, values), values  # type: ignore[arg-type]  # copied from an operand there

    def _given(self, out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        try:
            found = device_array(out)
        except DataError as error:
            raise DataError(f"out: {error}") from None
        if found is None or found.shape != shape or found.dtype != dtype:
            raise DataError(f"out takes the result, which is {shape} of {dtype} in memory of the GPU where operands are")
        if not found.writable:
            raise DataError("out is read-only; give another array, or none")
        for operand in self.operands.values():
            parts = (operand.values, *(array for level in operand.levels for array in level.parts.values()))
            if any(isinstance(part, DeviceArray) and found.overlaps(part) for part in parts):
                raise DataError(f"out shares memory with operand '{operand.spec.tensor}'; give another array, or none")
        return found

    def count(self) -> dict[str, int]:
        raise DataError("operations are counted on the processor; copy the operands to the host")

    def _run(self) -> Any:
        if self._flat is not None and self._initial is not None:
            self.launch.fill(self._flat, self._initial)  # type: ignore[arg-type]  # made above
        if not self._spec.copies and self._kernel_run():
            raise self._no_memory()
        if self._assembled:
            return self._assemble()
        return [self._result, *(array for array, _ in self._also.values())] if self._also else self._result

    def _assemble(self) -> DeviceTensor:
        found = {(array.part, array.level): self.launch.left(array.pointer, array.length, array.dtype) for array in self._assembled}
        shape = tuple(self.extents[index] for index in self._spec.indices)
        levels = tuple(
            DeviceLevel({str(part): array for (part, place), array in found.items() if place == level})
            for level in range(len(self._spec.format))
        )
        return DeviceTensor(shape, self._spec.format, levels, found["values", None])

    once = BoundKernel.__call__
