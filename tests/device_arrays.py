"""Arrays as libraries of GPUs show theirs, for which memory of the processor stands in, and kernels of the executor that take them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import sparsetune as st


class Foreign:
    """An array as CuPy and torch show theirs."""

    def __init__(self, array: np.ndarray[Any, Any], **changes: Any) -> None:
        self.array, self.changes = array, changes

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        strides = None if self.array.flags.c_contiguous else self.array.strides
        data = self.array.ctypes.data, False
        return {"shape": self.array.shape, "typestr": self.array.dtype.str, "data": data, "strides": strides, "version": 3, **self.changes}


class OnlyDlpack:
    """An array that speaks DLPack alone, and says that it is on a GPU."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, **_: Any) -> Any:
        capsule = self.array.__dlpack__()
        place = ctypes.pythonapi.PyCapsule_GetPointer
        place.restype, place.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        ctypes.c_int32.from_address(int(place(capsule, b"dltensor") or 0) + 8).value = 2  # where it says on what device it is
        return capsule


class Rows:
    """A matrix in compressed rows, as CuPy has it."""

    format = "csr"

    def __init__(self, matrix: Any, **changes: np.ndarray[Any, Any]) -> None:
        self.shape = matrix.shape
        parts = {"indptr": matrix.indptr, "indices": matrix.indices, "data": matrix.data, **changes}
        self.indptr, self.indices, self.data = (Foreign(part) for part in parts.values())


class TorchRows:
    """The same, as torch has it."""

    is_cuda, layout = True, "torch.sparse_csr"

    def __init__(self, matrix: Any) -> None:
        self.shape, self.matrix = matrix.shape, matrix

    def crow_indices(self) -> Foreign:
        return Foreign(self.matrix.indptr.astype(np.int64))

    def col_indices(self) -> Foreign:
        return Foreign(self.matrix.indices.astype(np.int64))

    def values(self) -> Foreign:
        return Foreign(self.matrix.data)


def on_executor(expression: str, formats: dict[str, str], schedule: str = "", **options: Any) -> Any:
    return st.compile(expression, formats, schedule=schedule, target="cuda-executor", **options)
