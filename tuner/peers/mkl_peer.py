"""Intel MKL's sparse BLAS through its single dynamic library (the ``mkl`` wheel), called with ctypes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from ...compiler.storage.aligned import aligned_copy, aligned_full
from ...compiler.storage.tensor import Tensor
from ..measure.sampling import least_of
from ..problem import Problem
from .products import MatrixProduct, matrix_product, matrix_sum

_NON_TRANSPOSE, _GENERAL, _ROW_MAJOR = 10, 20, 101
_HINT_CALLS = 1000
_LETTERS = {"float64": "d", "float32": "s"}
UNSORTED = "mkl unsorted"


class _Description(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int))


class MklPeer:
    """Products with one sparse matrix, with and without ``mkl_sparse_optimize``, whichever is faster; and products and sums of two.

    Args:
        unsorted: True: only products and sums of two sparse matrices, with rows left in the order in which MKL makes them. False: all
            of its kernels, with sorted rows, as in our results.
    """

    def __init__(self, unsorted: bool = False) -> None:
        self.unsorted = unsorted
        self.name = UNSORTED if unsorted else "mkl"

    def version(self) -> str | None:
        if _library() is None:
            return None
        try:
            return metadata.version("mkl")
        except metadata.PackageNotFoundError:
            return "unknown"

    def prepare(self, problem: Problem) -> Callable[[], Any] | None:
        product, addends, library = matrix_product(problem), matrix_sum(problem), _library()
        both = (product.matrix, product.other) if product is not None else addends
        if both is None or library is None or str(problem.dtype) not in _LETTERS:
            return None
        if both[0].dtype != both[1].dtype or any(max(len(one.values), *one.shape) >= 2**31 for one in both):
            return None
        if product is None:
            return _SparseSum(library, both, not self.unsorted, problem.threads)
        if product.other_is_sparse:
            return _SparseProduct(library, product, not self.unsorted, problem.threads)
        if self.unsorted:
            return None
        variants = [_Call(library, product, optimize, problem.threads) for optimize in (False, True)]
        return min(variants, key=lambda call: least_of(call, 1, 3))


class _Call:
    """One product with its operands; calling it fills and returns the result."""

    def __init__(self, library: Any, product: MatrixProduct, optimize: bool, threads: int) -> None:
        self._threads = threads
        library.MKL_Set_Num_Threads(threads)  # an optimized handle keeps the number it was made with
        self._matrix = _Matrix(library, product.matrix, product.transposed)
        other: Any = product.other.to_numpy()
        self._other = aligned_copy(np.ascontiguousarray(other)).reshape(other.shape)
        shape = (self._matrix.shape[0], *other.shape[1:])
        self._result = aligned_full(int(np.prod(shape)), 0, other.dtype).reshape(shape)
        self._number = ctypes.c_double if self._matrix.letter == "d" else ctypes.c_float
        self._library, self._handle = library, self._matrix.handle
        self._description = _Description(_GENERAL, 0, 0)
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
        self._library.MKL_Set_Num_Threads(self._threads)  # another call may have changed it
        if self._other.ndim == 1:
            self._matrix.check("mv", operation, one, self._handle, self._description, _pointer(self._other), zero, _pointer(self._result))
        else:
            width = ctypes.c_int(int(self._other.shape[-1]))
            layout = ctypes.c_int(_ROW_MAJOR)
            given, made = _pointer(self._other), _pointer(self._result)
            self._matrix.check("mm", operation, one, self._handle, self._description, layout, given, width, width, zero, made, width)
        return self._result


class _Matrix:
    """A sparse matrix as MKL knows it: a handle of rows, and the arrays behind it."""

    def __init__(self, library: Any, given: Tensor, transposed: bool = False) -> None:
        matrix: Any = given.to_scipy()
        matrix = (matrix.T if transposed else matrix).tocsr()
        self.library, self.handle, self.shape, self.letter = library, ctypes.c_void_p(), matrix.shape, _LETTERS[str(given.dtype)]
        self._pos, self._crd = (np.ascontiguousarray(part, np.int32) for part in (matrix.indptr, matrix.indices))
        self._values = aligned_copy(matrix.data)
        rows, columns = (ctypes.c_int(int(extent)) for extent in matrix.shape)
        self.check("create_csr", ctypes.byref(self.handle), ctypes.c_int(0), rows, columns, _pointer(self._pos),
                   _pointer(self._pos[1:]), _pointer(self._crd), _pointer(self._values))  # fmt: skip

    def __del__(self) -> None:
        if self.handle:
            self.library.mkl_sparse_destroy(self.handle)

    def check(self, name: str, *arguments: Any) -> None:
        """Call a function of the type of the values. Raises RuntimeError where it says that something is wrong."""
        _succeed(f"mkl_sparse_{self.letter}_{name}", getattr(self.library, f"mkl_sparse_{self.letter}_{name}")(*arguments))


def _succeed(name: str, status: int) -> None:
    if status:
        raise RuntimeError(f"{name} returned status {status}")


class _SparseResult(ABC):
    """An operation on two sparse matrices; calling it makes a new result, with sorted rows if asked for."""

    def __init__(self, library: Any, left: _Matrix, right: _Matrix, ordered: bool, threads: int) -> None:
        self._library, self._ordered, self._threads = library, ordered, threads
        self._left, self._right = left, right

    def __call__(self) -> _Made:
        self._library.MKL_Set_Num_Threads(self._threads)
        made = _Made(self._left, (self._left.shape[0], self._right.shape[1]))
        self._make(ctypes.c_int(_NON_TRANSPOSE), ctypes.byref(made.handle))
        if self._ordered:
            _succeed("mkl_sparse_order", self._library.mkl_sparse_order(made.handle))
        return made

    @abstractmethod
    def _make(self, operation: Any, made: Any) -> None:
        """Call MKL, which writes the handle of the result to ``made``."""


class _SparseProduct(_SparseResult):
    """A product of two sparse matrices."""

    def __init__(self, library: Any, product: MatrixProduct, ordered: bool, threads: int) -> None:
        library.MKL_Set_Num_Threads(threads)
        left = _Matrix(library, product.matrix, product.transposed)
        is_square = product.other is product.matrix and product.transposed == product.other_transposed
        right = left if is_square else _Matrix(library, product.other, product.other_transposed)
        super().__init__(library, left, right, ordered, threads)

    def _make(self, operation: Any, made: Any) -> None:
        _succeed("mkl_sparse_spmm", self._library.mkl_sparse_spmm(operation, self._left.handle, self._right.handle, made))


class _SparseSum(_SparseResult):
    """A sum of two sparse matrices."""

    def __init__(self, library: Any, addends: tuple[Tensor, Tensor], ordered: bool, threads: int) -> None:
        library.MKL_Set_Num_Threads(threads)
        super().__init__(library, _Matrix(library, addends[0]), _Matrix(library, addends[1]), ordered, threads)

    def _make(self, operation: Any, made: Any) -> None:
        one = ctypes.c_double(1.0) if self._left.letter == "d" else ctypes.c_float(1.0)
        self._left.check("add", operation, self._left.handle, one, self._right.handle, made)


class _Made:
    """A sparse matrix that MKL made, and that is freed with this object."""

    def __init__(self, like: _Matrix, shape: tuple[int, int]) -> None:
        self.shape, self.handle, self._like = shape, ctypes.c_void_p(), like

    def __del__(self) -> None:
        if self.handle:
            self._like.library.mkl_sparse_destroy(self.handle)

    def to_scipy_sparse(self) -> Any:
        """Return a copy as a SciPy array in rows, sorted."""
        import scipy.sparse

        numbers = [ctypes.c_int() for _ in range(3)]
        parts = [ctypes.c_void_p() for _ in range(4)]
        self._like.check("export_csr", self.handle, *(ctypes.byref(part) for part in (*numbers, *parts)))
        pos = np.append(_copied(parts[0], self.shape[0], np.int32), 0)
        if self.shape[0]:
            pos[-1] = _copied(parts[1], self.shape[0], np.int32)[-1]
        kind = np.float64 if self._like.letter == "d" else np.float32
        entries = (_copied(parts[3], int(pos[-1]), kind), _copied(parts[2], int(pos[-1]), np.int32), pos)
        made = scipy.sparse.csr_array(entries, shape=self.shape)
        made.sort_indices()
        return made

    def todense(self) -> np.ndarray[Any, Any]:
        return self.to_scipy_sparse().toarray()


def _copied(place: ctypes.c_void_p, count: int, kind: Any) -> np.ndarray[Any, Any]:
    """Return a copy of an array that MKL holds at an address."""
    size = count * np.dtype(kind).itemsize
    return np.frombuffer(ctypes.string_at(place, size), kind).copy() if size else np.zeros(0, kind)


@cache
def _library() -> Any:
    """Return MKL, or None where it is not installed.

    It is told to run on GNU's OpenMP: threads of Intel's spin for 200 ms after each call, on cores that the other kernels of a race need.
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
