"""A table of pointers to the functions of the BLAS that SciPy ships, for all kernels of this process (csrc/st_blas.h)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from .library import CSRC, declared_in, foreign_interface
from .runtimes import loaded_objects

DECLARATION = "extern void *st_blas;"
"""Declares the pointer to the table in an object that calls BLAS."""

ROUTINES = tuple(f"{letter}{routine}" for routine in ("gemm", "gemv", "ger", "axpy", "dot") for letter in "sd")

_THREADS = (
    ("scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"),
    ("openblas_get_num_threads", "openblas_set_num_threads"),
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
    ("bli_thread_get_num_threads", "bli_thread_set_num_threads"),
)
"""The functions that get and set the number of threads in the libraries on which SciPy is built: OpenBLAS, MKL, BLIS. Others have no
threads."""


_HELD = Lock()
"""Who holds the BLAS to one thread: two at once would take each other's number for the one before."""


def join_blas(library: Any) -> None:
    """Point a loaded object to the table of this process."""
    library.st_blas = foreign_interface(_declarations()).cast("void *", _table())


@cache
def _table() -> Any:
    """Return the table; it lives as long as the process."""
    from scipy.linalg import cython_blas

    table = foreign_interface(_declarations()).new("st_blas_table *")
    for name in ROUTINES:
        setattr(table, name, foreign_interface(_declarations()).cast("void *", _pointer(cython_blas.__pyx_capi__[name])))
    counters = next(_counters(), None)
    if counters is not None:
        table.threads, table.set_threads = (foreign_interface(_declarations()).cast("void *", place) for place in counters)
    return table


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold the BLAS of SciPy to the calling thread: its threads spin for a while after each product, on cores on which others are timed."""
    told = _counts()
    if told is None:
        yield
        return
    count, change = told
    with _HELD:
        before = count()
        change(1)
        try:
            yield
        finally:
            change(before)


@cache
def _counts() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Return the functions that get and set the number of threads of SciPy's BLAS; None if it has none."""
    import scipy.linalg  # noqa: F401  # so that it is loaded

    tell, change = next(_counters(), (None, None))
    return None if tell is None or change is None else (ctypes.CFUNCTYPE(ctypes.c_int)(tell), ctypes.CFUNCTYPE(None, ctypes.c_int)(change))


def _pointer(capsule: object) -> int:
    """Return what a capsule points to."""
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, name(capsule))


def _counters() -> Iterator[tuple[int, int]]:
    """Yield the functions that get and set the number of threads of each loaded BLAS; SciPy's own comes first."""
    for path in sorted(_loaded(), key=lambda path: "scipy" not in path):
        with suppress(OSError):
            library = ctypes.CDLL(path)
            for names in _THREADS:
                with suppress(AttributeError):
                    tell, change = (ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in names)
                    if tell and change:
                        yield tell, change


def _loaded() -> set[str]:
    """Return the loaded shared objects that are a BLAS by their names."""
    return {path for path in loaded_objects() if any(word in Path(path).name.lower() for word in ("blas", "mkl_rt", "blis"))}


@cache
def _declarations() -> str:
    return declared_in(CSRC / "st_blas.h")
