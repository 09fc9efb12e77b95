"""More objects that somebody gives as an operand: broken parts of sparse arrays, memory of other owners, objects of the standard
library."""

from __future__ import annotations

import collections
import ctypes
import dataclasses
import enum
import functools
import itertools
import mmap
import queue
import re
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from odd_matrices import FORMATS, MATRIX, Make, changed


def containers() -> dict[str, Make]:
    """Return how to make each object, by a name."""
    return {**parts_of_sparse(), **edges_of_sparse(), **memory(), **numbers(), **of_the_library(), **pairs()}


def parts_of_sparse() -> dict[str, Make]:
    """Sparse arrays with one part replaced; some are still valid."""
    of_csr: dict[str, tuple[str, Callable[[Any], Any]]] = {
        "data strided": ("data", lambda a: np.repeat(a, 2)[::2]),
        "data reversed": ("data", lambda a: a[::-1].copy()[::-1]),
        "data in a memoryview": ("data", memoryview),
        "data of float16": ("data", lambda a: a.astype("f2")),
        "data of long doubles": ("data", lambda a: a.astype("g")),
        "data masked": ("data", lambda a: np.ma.masked_equal(a, 2)),
        "data a matrix": ("data", np.asmatrix),
        "data of records": ("data", lambda a: np.zeros(len(a), "i4,f8")),
        "data of bytes": ("data", lambda a: a.view("V8")),
        "indices strided": ("indices", lambda a: np.repeat(a, 2)[::2]),
        "indices of truths": ("indices", lambda a: a.astype(bool)),
        "indices of the other byte order": ("indices", lambda a: a.astype(">i4")),
        "indices beyond int64": ("indices", lambda a: a.astype(np.uint64) + np.uint64(2**63)),
        "indptr strided": ("indptr", lambda a: np.repeat(a, 2)[::2]),
        "indptr of int8": ("indptr", lambda a: a.astype(np.int8)),
        "indptr of the other byte order": ("indptr", lambda a: a.astype(">i8")),
        "indptr masked": ("indptr", lambda a: np.ma.masked_equal(a, 2)),
        "shape of order 3": ("_shape", lambda a: (4, 4, 1)),
        "shape negative": ("_shape", lambda a: (-4, 4)),
        "shape None": ("_shape", lambda a: None),
    }
    found: dict[str, Make] = {f"csr, {what}": lambda name=name, make=make: changed(name, make) for what, (name, make) in of_csr.items()}
    others: dict[str, tuple[str, str, Any]] = {
        "coords None": ("coo", "coords", None),
        "coords of floats": ("coo", "coords", (np.full(6, 0.5), np.zeros(6))),
        "coords of lists": ("coo", "coords", ([0] * 6, [1] * 6)),
        "one row of coords": ("coo", "coords", (np.arange(6),)),
        "coords negative": ("coo", "coords", (np.full(6, -1), np.zeros(6, int))),
        "coords too large": ("coo", "coords", (np.full(6, 7), np.zeros(6, int))),
        "data of two modes": ("coo", "data", np.ones((6, 1))),
        "data a number": ("coo", "data", 3.0),
        "data of objects": ("coo", "data", np.array([None] * 6)),
        "rows None": ("lil", "rows", None),
        "offsets None": ("dia", "offsets", None),
        "offsets of floats": ("dia", "offsets", np.full(5, 0.5)),
        "blocks of two modes": ("bsr", "data", np.ones((2, 2))),
        "no blocks": ("bsr", "data", np.ones((0, 0, 0))),
        "indptr of blocks beyond": ("bsr", "indptr", np.arange(5) + 50),
    }
    for what, (form, name, part) in others.items():
        found[f"{form}, {what}"] = lambda form=form, name=name, part=part: replaced(form, name, part)
    keys: dict[str, Any] = {
        "out of range": (9, 9), "negative": (-1, 0), "text": "a", "of order 3": (0, 0, 0), "of floats": (0.5, 0.5),
    }  # fmt: skip
    found |= {f"dok, a key {what}": lambda key=key: keyed(key, 1.0) for what, key in keys.items()}
    found |= {f"dok, a value {value!r}": lambda value=value: keyed((0, 0), value) for value in ("x", 1j, [1])}
    for name, entry in {"out of range": 9, "negative": -1, "text": "a"}.items():
        found[f"lil, a column {name}"] = lambda entry=entry: listed("rows", entry)
    for name, entry in {"text": "a", "complex": 1j, "a list": [1]}.items():
        found[f"lil, a value {name}"] = lambda entry=entry: listed("data", entry)
    return found


def replaced(form: str, name: str, part: Any) -> Any:
    found = sp.coo_array(MATRIX).asformat(form)
    setattr(found, name, part)
    return found


def keyed(key: Any, value: Any) -> Any:
    found = sp.dok_array(MATRIX)
    found._dict[key] = value  # type: ignore[attr-defined]
    return found


def listed(name: str, entry: Any) -> Any:
    found = sp.lil_array(MATRIX)
    for part in ("rows", "data"):
        getattr(found, part)[3] = [entry] if part == name else getattr(found, part)[3][:1]
    return found


def edges_of_sparse() -> dict[str, Make]:
    """Sparse arrays of every format without rows, without columns, with zeros that are stored, and of orders 1 and 3."""
    found: dict[str, Make] = {}
    for form in FORMATS:
        for shape in ((0, 0), (0, 4), (4, 0)):
            found[f"{form} of shape {shape}"] = lambda form=form, shape=shape: sp.coo_array(np.zeros(shape)).asformat(form)
        found[f"{form} with zeros stored"] = lambda form=form: sp.coo_array(
            (np.array([0.0, 1, 0, 2]), (np.arange(4), np.arange(4)[::-1])), (4, 4)
        ).asformat(form)
    found["coo of order 3 with duplicates"] = lambda: sp.coo_array((np.ones(3), ([0, 0, 1], [0, 0, 1], [1, 1, 1])), (4, 4, 4))
    found["coo vector with duplicates"] = lambda: sp.coo_array((np.ones(3), (np.array([0, 0, 3]),)), (4,))
    found["dok vector"] = lambda: sp.dok_array(MATRIX[0])
    found["csr, int64, unsorted, duplicates"] = lambda: sp.csr_array(
        (np.array([1.0, 2, 3, 4]), np.array([3, 1, 3, 0], np.int64), np.array([0, 3, 3, 4, 4], np.int64)), (4, 4)
    )
    found["bsr of 2 x 2"] = lambda: sp.csr_array(MATRIX).tobsr((2, 2))
    found["bsr of 1 x 4"] = lambda: sp.csr_array(MATRIX).tobsr((1, 4))
    found["csr of a class of its own"] = lambda: type("Mine", (sp.csr_array,), {"__module__": "scipy.mine"})(MATRIX)
    return found


class Four(ctypes.Structure):
    _fields_ = [("numbers", ctypes.c_double * 4)]


def released() -> Any:
    view = memoryview(bytearray(32))
    view.release()
    return view


def memory() -> dict[str, Make]:
    """Memory of other owners, in the ways that they offer it."""
    return {
        "memoryview, cast": lambda: memoryview(MATRIX.tobytes()).cast("d"),
        "memoryview, two modes": lambda: memoryview(MATRIX.tobytes()).cast("B").cast("d", (4, 4)),
        "memoryview, backwards": lambda: memoryview(MATRIX[::-1].copy()[::-1]),
        "memoryview of float16": lambda: memoryview(MATRIX.astype("f2")),
        "memoryview, released": released,
        "memoryview of bytes": lambda: memoryview(b"abcd"),
        "ctypes array": lambda: (ctypes.c_double * 4)(1, 2, 3, 4),
        "ctypes matrix": lambda: ((ctypes.c_double * 4) * 4)(),
        "ctypes structure": Four,
        "ctypes pointer": lambda: ctypes.pointer(ctypes.c_double(3)),
        "ctypes characters": lambda: ctypes.create_string_buffer(32),
        "ctypes NULL": ctypes.c_void_p,
        "mmap": lambda: mmap.mmap(-1, 128),
        "array without strides": lambda: np.lib.stride_tricks.as_strided(np.ones(1), (4, 4), (0, 0)),
        "array that overlaps itself": lambda: np.lib.stride_tricks.sliding_window_view(np.arange(7.0), 4),
        "masked array, all": lambda: np.ma.masked_all((4, 4)),
        "masked array, hard": lambda: np.ma.array(MATRIX, mask=MATRIX == 1, hard_mask=True),
        "array of itself": itself,
        "array of numbers and None": lambda: np.array([[1, 2.5, True, None]] * 4, object),
        "array of huge numbers": lambda: np.full((4, 4), 10**30, object),
    }


def itself() -> Any:
    found = np.empty(4, object)
    found[0] = found
    return found


class Lying(float):
    def __float__(self) -> float:
        raise RuntimeError("odd")

    __mul__ = __add__ = __int__ = __float__


def numbers() -> dict[str, Make]:
    """Numbers at the edges of types, and of classes of their own."""
    found: dict[str, Make] = {f"number {n}": lambda n=n: n for n in (2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, -0.0, 5e-324)}
    return {
        **found,
        "enum": lambda: enum.Enum("E", "a b"),
        "member of an enum": lambda: enum.Enum("E", "a b").a,
        "member of an IntEnum": lambda: enum.IntEnum("E", "a b").a,
        "member of a StrEnum": lambda: enum.StrEnum("E", "a b").a,
        "int of a class of its own": lambda: type("I", (int,), {})(3),
        "float that lies": lambda: Lying(3.5),
        "Polynomial": lambda: np.polynomial.Polynomial([1, 2, 3, 4]),
        "ufunc": lambda: np.sqrt,
        "finfo": lambda: np.finfo(float),
        "grid": lambda: np.mgrid,
    }


@dataclasses.dataclass
class Point:
    x: float = 1
    y: float = 2


def dead() -> Any:
    return weakref.proxy(Point())


def of_the_library() -> dict[str, Make]:
    """Objects of Python's standard library."""
    makes: tuple[Make, ...] = (
        Point, lambda: Point, dead, lambda: weakref.ref(Point), threading.Lock, queue.Queue, lambda: re.compile("a"),
        itertools.count, lambda: itertools.cycle([1]), lambda: itertools.repeat(1.0), lambda: itertools.chain([1], [2]),
        lambda: reversed([1, 2]), lambda: {0: 1}.keys(), lambda: {0: 1}.values(), lambda: {(0, 1): 2.0}, property,
        lambda: collections.UserDict({(0, 1): 2.0}), lambda: collections.UserList([1.0, 2, 3, 4]), lambda: collections.UserString("a"),
        lambda: functools.partial(np.ones, 4), lambda: compile("1", "", "eval"), lambda: (row for row in MATRIX),
        lambda: [np.float32(1)] * 4, lambda: [np.array(1.0)] * 4, lambda: [sp.csr_array(MATRIX)] * 4, lambda: [range(4)] * 4,
        lambda: [memoryview(MATRIX[0].copy())] * 4, lambda: [2**70, 1.5, 2, 3], lambda: [b"1"] * 4, lambda: [1j, "a", 2, 3],
        lambda: [True, None, False, True], lambda: [np.ones(3), np.ones(4)], lambda: [[]] * 4, lambda: "a" * 300 + ".mtx", lambda: "1.5",
    )  # fmt: skip
    return {f"library {number}": make for number, make in enumerate(makes)}


def pairs() -> dict[str, Make]:
    """Pairs of coordinates and values, and pairs of other things."""
    at, two = np.array([[0, 2], [1, 0]]), np.ones(2)
    makes: tuple[Make, ...] = (
        lambda: (at.astype(np.uint64), two), lambda: (at.astype(object), two), lambda: (at + 2**62, two), lambda: (at > 0, two),
        lambda: (at[:, ::-1], two[::-1]), lambda: (at, np.array(["a", "b"])), lambda: (at, two[:, None]), lambda: (at, 1.0),
        lambda: (np.zeros((0, 2), int), two), lambda: (np.zeros((2, 0), int), np.ones(0)), lambda: (None, None), lambda: (at, None),
        lambda: (sp.csr_array(MATRIX), sp.csr_array(MATRIX)), lambda: ((n for n in "a"), (n for n in "b")),
        lambda: ([[0, 1], [2]], [1.0, 2.0]), lambda: (at.tolist(), [1.0, "x"]), lambda: (at.T[:1], np.ones(1)),
    )  # fmt: skip
    return {f"pair {number}": make for number, make in enumerate(makes)}
