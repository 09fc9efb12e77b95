"""Intel MKL's sparse BLAS through its single dynamic library (the ``mkl`` wheel), called with ctypes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from ...compiler.storage.aligned import aligned_copy, aligned_full
from ..measure.timing import least_of
from ..problem import Problem
from .products import MatrixProduct, matrix_product

_NON_TRANSPOSE, _GENERAL, _ROW_MAJOR = 10, 20, 101
_HINT_CALLS = 1000
_LETTERS = {"float64": "d", "float32": "s"}


class _Description(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int))


class MklPeer:
    """Products with one sparse matrix; with and without ``mkl_sparse_optimize``, whichever is faster."""

    name = "mkl"

    def version(self) -> str | None:
        if _library() is None:
            return None
        try:
            return metadata.version("mkl")
        except metadata.PackageNotFoundError:
            return "unknown"

    def prepare(self, problem: Problem) -> Callable[[], Any] | None:
        product, library = matrix_product(problem), _library()
        if product is None or library is None or product.other_is_sparse or str(problem.dtype) not in _LETTERS:
            return None
        if len({product.matrix.dtype, product.other.dtype}) != 1 or max(len(product.matrix.values), *product.matrix.shape) >= 2**31:
            return None
        variants = [_Call(library, product, optimize, problem.threads) for optimize in (False, True)]
        return min(variants, key=lambda call: least_of(call, 1, 3))


class _Call:
    """One product with its operands; calling it fills and returns the result."""

    def __init__(self, library: Any, product: MatrixProduct, optimize: bool, threads: int) -> None:
        self._threads = threads
        library.MKL_Set_Num_Threads(threads)  # an optimized handle keeps the number it was made with
        matrix: Any = product.matrix.to_scipy()
        matrix = (matrix.T if product.transposed else matrix).tocsr()
        self._pos, self._crd = (np.ascontiguousarray(part, np.int32) for part in (matrix.indptr, matrix.indices))
        self._values = aligned_copy(matrix.data)
        other: Any = product.other.to_numpy()
        self._other = aligned_copy(np.ascontiguousarray(other)).reshape(other.shape)
        shape = (matrix.shape[0], *other.shape[1:])
        self._result = aligned_full(int(np.prod(shape)), 0, other.dtype).reshape(shape)
        self._letter = _LETTERS[str(other.dtype)]
        self._number = ctypes.c_double if self._letter == "d" else ctypes.c_float
        self._library, self._handle = library, ctypes.c_void_p()
        self._description = _Description(_GENERAL, 0, 0)
        rows, columns = (ctypes.c_int(int(extent)) for extent in matrix.shape)
        self._check("create_csr", ctypes.byref(self._handle), ctypes.c_int(0), rows, columns, _pointer(self._pos),
                    _pointer(self._pos[1:]), _pointer(self._crd), _pointer(self._values))  # fmt: skip
        if optimize:
            hints: list[Any] = [self._handle, ctypes.c_int(_NON_TRANSPOSE), self._description]
            if other.ndim == 1:
                library.mkl_sparse_set_mv_hint(*hints, ctypes.c_int(_HINT_CALLS))
            else:
                width = ctypes.c_int(int(other.shape[-1]))
                library.mkl_sparse_set_mm_hint(*hints, ctypes.c_int(_ROW_MAJOR), width, ctypes.c_int(_HINT_CALLS))
            library.mkl_sparse_optimize(self._handle)

    def __call__(self) -> Any:
        one, zero = self._number(1.0), self._number(0.0)
        operation = ctypes.c_int(_NON_TRANSPOSE)
        self._library.MKL_Set_Num_Threads(self._threads)  # another call may have asked for others since
        if self._other.ndim == 1:
            self._check("mv", operation, one, self._handle, self._description, _pointer(self._other), zero, _pointer(self._result))
        else:
            width = ctypes.c_int(int(self._other.shape[-1]))
            layout = ctypes.c_int(_ROW_MAJOR)
            given, made = _pointer(self._other), _pointer(self._result)
            self._check("mm", operation, one, self._handle, self._description, layout, given, width, width, zero, made, width)
        return self._result

    def _check(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, f"mkl_sparse_{self._letter}_{name}")(*arguments)
        if status:
            raise RuntimeError(f"mkl_sparse_{self._letter}_{name} returned status {status}")


@cache
def _library() -> Any:
    """Return MKL, or None where it is not installed.

    It is told to share GNU's OpenMP with our kernels: threads of another runtime spin for 200 ms after each call, on the cores that
    the next call needs.
    """
    os.environ.setdefault("MKL_THREADING_LAYER", "GNU")
    with contextlib.suppress(OSError):
        ctypes.CDLL("libgomp.so.1", mode=ctypes.RTLD_GLOBAL)
    places = [Path(sys.prefix) / "lib", *(Path(folder).parents[1] for folder in sys.path if folder.endswith("site-packages"))]
    names = [str(found) for place in places for found in sorted(place.glob("libmkl_rt.so*"))]
    for name in (*names, "libmkl_rt.so"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
