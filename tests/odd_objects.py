"""Objects that somebody gives as an operand: valid ones of every kind, invalid ones, and ones that lie."""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import fractions
import io
import pathlib
import types
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from hostile_objects import hostile
from odd_matrices import MATRIX, Make, broken_sparse, of_others, sparse


def objects() -> dict[str, Make]:
    """Return how to make each object, by a name; each is made anew for every use."""
    return {**dense(), **of_python(), **of_numpy(), **hostile(), **sparse(), **broken_sparse(), **of_others()}


def dense() -> dict[str, Make]:
    """Arrays of every dtype and layout."""
    found: dict[str, Make] = {}
    for code in (*"?bBhHiIlLqQefdgFDG", ">f8", ">i4", ">f4", "<u2", ">c16", "m8[s]", "M8[s]", "S3", "U3", "V8", "O"):
        found[f"dtype {code}"] = lambda code=code: MATRIX.view(code) if code == "V8" else MATRIX.astype(code)
    layouts: dict[str, Callable[[np.ndarray[Any, Any]], Any]] = {
        "Fortran": np.asfortranarray,
        "reversed": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
        "strided": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
        "unaligned": lambda a: np.frombuffer(b"\0" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape),
        "transposed": lambda a: a.T.copy().T,
        "read-only": lambda a: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),
        "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
        "matrix": np.asmatrix,
        "masked": lambda a: np.ma.masked_equal(a, 2),
        "masked, nothing": np.ma.asarray,
        "subclass": lambda a: a.view(type("Mine", (np.ndarray,), {})),
        "record": lambda a: a.view(np.recarray),
        "structured": lambda a: np.array(a, dtype=[("x", float), ("y", int)]),
        "one more mode": lambda a: a[None],
        "memoryview": lambda a: memoryview(a.copy()),
        "no rows": lambda a: a[:0],
        "no columns": lambda a: a[:, :0],
        "nothing": lambda a: a[:0, :0],
        "vector": lambda a: a[0],
        "one number": lambda a: a[0, 1],
        "0-d": lambda a: np.array(a[0, 1]),
        "list": lambda a: a.tolist(),
        "tuple": lambda a: tuple(map(tuple, a.tolist())),
        "list of arrays": list,
        "array of arrays": lambda a: np.array([*map(np.asarray, a), None], object)[:-1],
        "dict of rows": lambda a: dict(enumerate(a)),
        "frozen": lambda a: frozenset(map(tuple, a.tolist())),
        "larger": lambda a: np.zeros((7, 7), a.dtype),
    }
    for layout, change in layouts.items():
        for code in ("f8", "f4", "i8", "?", "c16", ">f8", "f2"):
            found[f"{layout} {code}"] = lambda change=change, code=code: change(MATRIX.astype(code))
    return found


def of_python() -> dict[str, Make]:
    """Objects of Python that people try."""
    values: dict[str, Make] = {
        "None": lambda: None,
        "ellipsis": lambda: ...,
        "NotImplemented": lambda: NotImplemented,
        "True": lambda: True,
        "3": lambda: 3,
        "2.5": lambda: 2.5,
        "1j": lambda: 1j,
        "10**30": lambda: 10**30,
        "-10**400": lambda: -(10**400),
        "nan": lambda: float("nan"),
        "empty text": lambda: "",
        "text": lambda: "A",
        "numbers in text": lambda: "1 2; 3 4",
        "path": lambda: pathlib.Path("nowhere.mtx"),
        "path of another kind": lambda: "nowhere.xyz",
        "folder": lambda: "/",
        "bytes": lambda: b"1234",
        "bytearray": lambda: bytearray(32),
        "NUL in text": lambda: "a\0b.mtx",
        "surrogate": lambda: "\udcff.mtx",
        "range": lambda: range(4),
        "slice": lambda: slice(4),
        "generator": lambda: (k for k in range(4)),
        "iterator": lambda: iter([1, 2]),
        "map": lambda: map(float, "1234"),
        "zip": lambda: zip([1], [2], strict=True),
        "set": lambda: {1, 2},
        "frozenset": lambda: frozenset((1, 2)),
        "dict": lambda: {"a": 1},
        "empty list": list,
        "empty dict": dict,
        "empty tuple": tuple,
        "list of None": lambda: [None] * 4,
        "list of texts": lambda: list("abcd"),
        "list of numbers in texts": lambda: list("1234"),
        "ragged": lambda: [[1, 2], [3]],
        "deep": deep,
        "loop": loop,
        "list of dicts": lambda: [{}] * 4,
        "list of sets": lambda: [{1}] * 4,
        "list of objects": lambda: [object()] * 4,
        "Decimal": lambda: decimal.Decimal("2.5"),
        "list of Decimal": lambda: [[decimal.Decimal(int(v)) for v in row] for row in MATRIX],
        "Fraction": lambda: fractions.Fraction(5, 2),
        "list of Fraction": lambda: [[fractions.Fraction(int(v)) for v in row] for row in MATRIX],
        "date": lambda: datetime.date(2026, 1, 1),
        "dates": lambda: [datetime.datetime(2026, 1, 1)] * 4,
        "time": lambda: datetime.timedelta(3),
        "class": lambda: int,
        "type of array": lambda: np.ndarray,
        "function": lambda: len,
        "lambda": lambda: lambda: 1,
        "module": lambda: np,
        "object": object,
        "exception": lambda: ValueError("x"),
        "file": lambda: io.StringIO("1 2"),
        "bytes file": lambda: io.BytesIO(b"1"),
        "array": lambda: array.array("d", [1, 2, 3, 4]),
        "array of texts": lambda: array.array("u", "abcd"),
        "deque": lambda: collections.deque([1, 2, 3, 4]),
        "Counter": lambda: collections.Counter("abc"),
        "namespace": types.SimpleNamespace,
        "namedtuple": lambda: collections.namedtuple("P", "x y")(1, 2),
        "mappingproxy": lambda: types.MappingProxyType({}),
        "uuid": uuid.uuid4,
        "pair": lambda: (np.array([[0, 2], [1, 0]]), np.array([2.0, 3.0])),
        "pair of wrong lengths": lambda: (np.zeros((2, 3), int), np.ones(2)),
        "pair out of range": lambda: (np.array([[0, 99], [1, -1]]), np.ones(2)),
        "pair of floats": lambda: (np.ones((2, 2)) / 2, np.ones(2)),
        "pair of texts": lambda: ("ab", "cd"),
        "triple": lambda: ([0], [1], [2.0]),
        "pair of lists": lambda: ([[0, 2], [1, 0]], [2.0, 3.0]),
        "large numbers": lambda: [[2**63] * 4] * 4,
        "larger numbers": lambda: [[2**64] * 4] * 4,
        "huge numbers": lambda: [[10**400] * 4] * 4,
        "complex list": lambda: [[1j] * 4] * 4,
        "bools": lambda: (MATRIX != 0).tolist(),
    }
    return {f"python {name}": make for name, make in values.items()}


def deep() -> Any:
    found: Any = 1.0
    for _ in range(80):
        found = [found]
    return found


def loop() -> Any:
    found: list[Any] = []
    found.append(found)
    return found


def of_numpy() -> dict[str, Make]:
    """Objects of NumPy other than arrays of numbers."""
    scalars = ("float64", "float32", "float16", "longdouble", "int8", "uint64", "bool_", "complex64", "complex128", "clongdouble")
    found: dict[str, Make] = {f"numpy {name}": lambda name=name: getattr(np, name)(2) for name in scalars}
    others: dict[str, Make] = {
        "str_": lambda: np.str_("a"),
        "bytes_": lambda: np.bytes_(b"a"),
        "void": lambda: np.void(b"abcd"),
        "datetime64": lambda: np.datetime64("NaT"),
        "timedelta64": lambda: np.timedelta64(3),
        "dtype": lambda: np.dtype("f8"),
        "objects": lambda: np.array([[None] * 4] * 4),
        "objects that are numbers": lambda: MATRIX.astype(int).astype(object),
        "objects 0-d": lambda: np.array(None),
        "poly1d": lambda: np.poly1d([1, 2]),
        "flat": lambda: MATRIX.flat,
        "nditer": lambda: np.nditer(MATRIX),
        "rng": np.random.default_rng,
        "huge view": lambda: np.broadcast_to(np.float64(1), (2**40, 4)),
        "huge row": lambda: np.broadcast_to(np.float64(1), (4, 2**50)),
        "33 modes": lambda: np.ones((1,) * 33),
        "char": lambda: np.char.array(["a"] * 4),
        "StringDType": lambda: np.array(["a"] * 4, np.dtypes.StringDType()),
        "memmap": lambda: memmap(),
        "masked scalar": lambda: np.ma.masked,
        "structured scalar": lambda: np.zeros(1, "i4,f8")[0],
        "sub-array dtype": lambda: np.zeros(4, "(4,)f8"),
        "uint64 large": lambda: np.full((4, 4), 2**64 - 1, np.uint64),
        "longdouble large": lambda: np.full((4, 4), np.longdouble(1e300)) ** 2,
        "int64 large": lambda: np.full((4, 4), 2**62),
        "float16 large": lambda: np.full((4, 4), 60000, np.float16),
    }
    return {**found, **{f"numpy {name}": make for name, make in others.items()}}


def memmap() -> Any:
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        found = np.memmap(file.name, float, "w+", shape=MATRIX.shape)
        found[:] = MATRIX
        return found


def stands_for(given: Any) -> np.ndarray[Any, Any]:
    """Return the array of an object, as its own package converts it."""
    library = type(given).__module__.partition(".")[0]
    if library == "torch":
        plain = given.detach()
        return wide(plain.to_dense().resolve_conj().resolve_neg().numpy())
    if sp.issparse(given):
        return wide(given.toarray())
    if library == "sparse":
        return wide(given.todense())
    if isinstance(given, tuple) and isinstance(given[0], (np.ndarray, list)):
        coordinates, values = map(np.asarray, given)
        found = np.zeros(coordinates.max(1) + 1)
        np.add.at(found, tuple(coordinates), values if len(coordinates) else values.sum())
        return found
    return wide(np.asarray(given))


def wide(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
