"""Objects that somebody gives as an operand: right ones of every kind, wrong ones, and ones that lie."""

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
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp

MATRIX = np.array([[0, 2, 0, 1], [0, 0, 0, 0], [3, 0, 1, 0], [0, 1, 0, 2]], dtype=float)
"""What every right object stands for: small whole numbers, which are the same in every dtype; the second row is empty."""

Make = Callable[[], Any]


def objects() -> dict[str, Make]:
    """Return how to make each object, by a name; each is made anew for every use."""
    return {**dense(), **of_python(), **of_numpy(), **hostile(), **sparse(), **broken_sparse(), **of_others()}


def dense() -> dict[str, Make]:
    """Arrays of every dtype and layout."""
    found: dict[str, Make] = {}
    for code in (*"?bBhHiIlLqQefdgFDG", ">f8", ">i4", ">f4", "<u2", ">c16", "m8[s]", "M8[s]", "S3", "U3", "V8", "O"):
        found[f"dtype {code}"] = lambda code=code: MATRIX.astype(np.float64 if code == "V8" else float).astype(code) if code != "V8" else MATRIX.view("V8")
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
    """What Python has, and people try."""
    values: dict[str, Make] = {
        "None": lambda: None, "ellipsis": lambda: ..., "NotImplemented": lambda: NotImplemented, "True": lambda: True, "3": lambda: 3,
        "2.5": lambda: 2.5, "1j": lambda: 1j, "10**30": lambda: 10**30, "-10**400": lambda: -(10**400), "nan": lambda: float("nan"),
        "empty text": lambda: "", "text": lambda: "A", "numbers in text": lambda: "1 2; 3 4", "path": lambda: pathlib.Path("nowhere.mtx"),
        "path of another kind": lambda: "nowhere.xyz", "folder": lambda: "/", "bytes": lambda: b"1234", "bytearray": lambda: bytearray(32),
        "NUL in text": lambda: "a\0b.mtx", "surrogate": lambda: "\udcff.mtx", "range": lambda: range(4), "slice": lambda: slice(4),
        "generator": lambda: (k for k in range(4)), "iterator": lambda: iter([1, 2]), "map": lambda: map(float, "1234"),
        "zip": lambda: zip([1], [2], strict=True), "set": lambda: {1, 2}, "frozenset": lambda: frozenset((1, 2)), "dict": lambda: {"a": 1},
        "empty list": list, "empty dict": dict, "empty tuple": tuple, "list of None": lambda: [None] * 4, "list of texts": lambda: list("abcd"),
        "list of numbers in texts": lambda: list("1234"), "ragged": lambda: [[1, 2], [3]], "deep": deep, "loop": loop,
        "list of dicts": lambda: [{}] * 4, "list of sets": lambda: [{1}] * 4, "list of objects": lambda: [object()] * 4,
        "Decimal": lambda: decimal.Decimal("2.5"), "list of Decimal": lambda: [[decimal.Decimal(int(v)) for v in row] for row in MATRIX],
        "Fraction": lambda: fractions.Fraction(5, 2), "list of Fraction": lambda: [[fractions.Fraction(int(v)) for v in row] for row in MATRIX],
        "date": lambda: datetime.date(2026, 1, 1), "dates": lambda: [datetime.datetime(2026, 1, 1)] * 4, "time": lambda: datetime.timedelta(3),
        "class": lambda: int, "type of array": lambda: np.ndarray, "function": lambda: len, "lambda": lambda: lambda: 1,
        "module": lambda: np, "object": object, "exception": lambda: ValueError("x"), "file": lambda: io.StringIO("1 2"),
        "bytes file": lambda: io.BytesIO(b"1"), "array": lambda: array.array("d", [1, 2, 3, 4]), "array of texts": lambda: array.array("u", "abcd"),
        "deque": lambda: collections.deque([1, 2, 3, 4]), "Counter": lambda: collections.Counter("abc"), "namespace": types.SimpleNamespace,
        "namedtuple": lambda: collections.namedtuple("P", "x y")(1, 2), "mappingproxy": lambda: types.MappingProxyType({}), "uuid": uuid.uuid4,
        "pair": lambda: (np.array([[0, 2], [1, 0]]), np.array([2.0, 3.0])), "pair of wrong lengths": lambda: (np.zeros((2, 3), int), np.ones(2)),
        "pair out of range": lambda: (np.array([[0, 99], [1, -1]]), np.ones(2)), "pair of floats": lambda: (np.ones((2, 2)) / 2, np.ones(2)),
        "pair of texts": lambda: ("ab", "cd"), "triple": lambda: ([0], [1], [2.0]), "pair of lists": lambda: ([[0, 2], [1, 0]], [2.0, 3.0]),
        "large numbers": lambda: [[2**63] * 4] * 4, "larger numbers": lambda: [[2**64] * 4] * 4, "huge numbers": lambda: [[10**400] * 4] * 4,
        "complex list": lambda: [[1j] * 4] * 4, "bools": lambda: (MATRIX != 0).tolist(),
    }  # fmt: skip
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
    """What NumPy has beside arrays of numbers."""
    scalars = ("float64", "float32", "float16", "longdouble", "int8", "uint64", "bool_", "complex64", "complex128", "clongdouble")
    found: dict[str, Make] = {f"numpy {name}": lambda name=name: getattr(np, name)(2) for name in scalars}
    others: dict[str, Make] = {
        "str_": lambda: np.str_("a"), "bytes_": lambda: np.bytes_(b"a"), "void": lambda: np.void(b"abcd"), "datetime64": lambda: np.datetime64("NaT"),
        "timedelta64": lambda: np.timedelta64(3), "dtype": lambda: np.dtype("f8"), "objects": lambda: np.array([[None] * 4] * 4),
        "objects that are numbers": lambda: MATRIX.astype(int).astype(object), "objects 0-d": lambda: np.array(None), "poly1d": lambda: np.poly1d([1, 2]),
        "flat": lambda: MATRIX.flat, "nditer": lambda: np.nditer(MATRIX), "rng": np.random.default_rng, "huge view": lambda: np.broadcast_to(np.float64(1), (2**40, 4)),
        "huge row": lambda: np.broadcast_to(np.float64(1), (4, 2**50)), "33 modes": lambda: np.ones((1,) * 33), "char": lambda: np.char.array(["a"] * 4),
        "StringDType": lambda: np.array(["a"] * 4, np.dtypes.StringDType()), "memmap": lambda: memmap(),
        "masked scalar": lambda: np.ma.masked, "structured scalar": lambda: np.zeros(1, "i4,f8")[0], "sub-array dtype": lambda: np.zeros(4, "(4,)f8"),
        "uint64 large": lambda: np.full((4, 4), 2**64 - 1, np.uint64), "longdouble large": lambda: np.full((4, 4), np.longdouble(1e300)) ** 2,
        "int64 large": lambda: np.full((4, 4), 2**62), "float16 large": lambda: np.full((4, 4), 60000, np.float16),
    }  # fmt: skip
    return {**found, **{f"numpy {name}": make for name, make in others.items()}}


def memmap() -> Any:
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        found = np.memmap(file.name, float, "w+", shape=MATRIX.shape)
        found[:] = MATRIX
        return found


class Hostile:
    """An object whose attributes are those given; a value that is an exception is raised instead."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__["_given"] = attributes

    def __getattr__(self, name: str) -> Any:
        try:
            value = self.__dict__["_given"][name]
        except KeyError:
            raise AttributeError(name) from None
        if isinstance(value, BaseException):
            raise value
        return value


FAILURES: tuple[BaseException, ...] = (ValueError("odd"), TypeError("odd"), RuntimeError("odd"), KeyError("odd"), ZeroDivisionError("odd"), OSError("odd"),
    RecursionError("odd"), StopIteration("odd"), AssertionError("odd"), UnicodeDecodeError("utf-8", b"", 0, 1, "odd"), SystemError("odd"), BufferError("odd"))  # fmt: skip


def hostile() -> dict[str, Make]:
    """Objects whose methods fail or lie."""
    found: dict[str, Make] = {}

    def defined(method: str, answer: Callable[..., Any]) -> Make:
        return lambda: type("Odd", (), {method: answer})()

    def failing(error: BaseException) -> Callable[..., Any]:
        def fail(*_: Any, **__: Any) -> Any:
            raise error

        return fail

    answers: dict[str, Any] = {"None": None, "text": "x", "itself": ..., "3": 3, "a list": [1, 2], "objects": np.array([None]), "a vector": np.ones(4)}
    for method in ("__array__", "__dlpack__", "__len__", "__iter__", "__getitem__", "__float__", "__index__", "__fspath__", "__array_ufunc__", "__torch_function__"):
        for error in FAILURES[:4] if method not in ("__array__", "__dlpack__") else FAILURES:
            found[f"{method} raises {type(error).__name__}"] = defined(method, failing(error))
        for what, answer in answers.items():
            found[f"{method} gives {what}"] = defined(method, lambda self, *_, answer=answer, **__: self if answer is ... else answer)
    lies: dict[str, Any] = {
        "empty": {}, "None": None, "no pointer": {"shape": (4, 4), "typestr": "<f8", "version": 3}, "bad type": {"shape": (4, 4), "typestr": "zz", "data": (0, True), "version": 3},
        "negative": {"shape": (-4, 4), "typestr": "<f8", "data": (8, True), "version": 3},
        "text": "lie",
    }  # fmt: skip
    for what, lie in lies.items():
        found[f"__array_interface__ {what}"] = lambda lie=lie: type("Odd", (), {"__array_interface__": lie})()
    for error in FAILURES:
        found[f"shape raises {type(error).__name__}"] = lambda error=error: Hostile(shape=error)
        found[f"dtype raises {type(error).__name__}"] = lambda error=error: Hostile(shape=(4, 4), ndim=2, dtype=error)
    attributes: dict[str, dict[str, Any]] = {
        "shape": {"shape": (4, 4)}, "shape of text": {"shape": "ab", "dtype": "f8"}, "shape and dtype": {"shape": (4, 4), "dtype": np.dtype("f8")},
        "everything of csr": {"shape": (4, 4), "dtype": np.dtype("f8"), "format": "csr", "data": None, "indices": None, "indptr": None},
        "coo": {"shape": (4, 4), "coords": 3, "data": 4, "fill_value": 0}, "layout": {"layout": "torch.strided", "shape": (4, 4)}, "values": {"values": MATRIX},
        "todense": {"todense": lambda: MATRIX}, "toarray": {"toarray": lambda: MATRIX}, "tocoo": {"tocoo": lambda: None}, "numpy": {"numpy": lambda: MATRIX},
        "tocsr": {"tocsr": lambda: "no"}, "format": {"format": "csr"}, "levels": {"levels": (), "format": None}, "T": {"T": None}, "ndim": {"ndim": -1},
    }  # fmt: skip
    for what, given in attributes.items():
        found[f"attribute {what}"] = lambda given=given: Hostile(**given)
    found["__class__ lies"] = lambda: type("Odd", (), {"__class__": property(lambda _: np.ndarray)})()
    found["__class__ raises"] = lambda: type("Odd", (), {"__class__": property(failing(ValueError("odd")))})()
    found["every attribute raises"] = lambda: type("Odd", (), {"__getattribute__": failing(ValueError("odd"))})()
    found["repr raises"] = lambda: type("Odd", (), {"__repr__": failing(ValueError("odd"))})()
    found["hash raises"] = lambda: type("Odd", (), {"__hash__": failing(ValueError("odd"))})()
    found["eq raises"] = lambda: type("Odd", (), {"__eq__": failing(ValueError("odd"))})()
    found["bool raises"] = lambda: type("Odd", (), {"__bool__": failing(ValueError("odd"))})()
    found["class whose name is long"] = lambda: type("Odd" * 200, (), {})()
    return found


FORMATS = ("csr", "csc", "coo", "dok", "lil", "dia", "bsr")


def sparse() -> dict[str, Make]:
    """Every format of SciPy, as an array and as a matrix, of every dtype that it has."""
    found: dict[str, Make] = {}
    for form in FORMATS:
        for kind in ("array", "matrix"):
            for code in ("f8", "f4", "i8", "i4", "u1", "?", "c16", "g"):
                found[f"{form}_{kind} {code}"] = lambda form=form, kind=kind, code=code: getattr(sp, f"{form}_{kind}")(MATRIX.astype(code))
            found[f"{form}_{kind} empty"] = lambda form=form, kind=kind: getattr(sp, f"{form}_{kind}")((4, 4))
            found[f"{form}_{kind} transposed"] = lambda form=form, kind=kind: getattr(sp, f"{form}_{kind}")(MATRIX.T).T
    found["csr int64 indices"] = lambda: changed("indices", lambda a: a.astype(np.int64))
    found["csr unsorted"] = unsorted
    found["csr duplicates"] = lambda: sp.csr_array((np.array([1.0, 1, 1, 3, 1, 1, 2]), [1, 1, 3, 0, 2, 1, 3], [0, 3, 3, 5, 7]), (4, 4))
    found["coo duplicates"] = lambda: sp.coo_array(([1.0, 1, 1, 3, 1, 1, 2], ([0, 0, 0, 2, 2, 3, 3], [1, 1, 3, 0, 2, 1, 3])), (4, 4))
    found["coo vector"] = lambda: sp.coo_array(MATRIX[0])
    found["csr vector"] = lambda: sp.csr_array(sp.coo_array(MATRIX[0]))
    found["coo of order 3"] = lambda: sp.coo_array(MATRIX[None])
    found["csr read-only"] = lambda: changed("data", read_only)
    found["csr with explicit zeros"] = lambda: sp.csr_array((np.where(MATRIX.ravel() >= 0, MATRIX.ravel(), 0), np.tile(range(4), 4), range(0, 17, 4)), (4, 4))
    found["csr of objects"] = lambda: changed("data", lambda a: a.astype(object))
    found["csr with room"] = lambda: changed("data", lambda a: np.append(a, 7.0), lambda a: np.append(a, 0))
    return found


def changed(name: str, change: Callable[[Any], Any], also: Callable[[Any], Any] | None = None) -> Any:
    found = sp.csr_array(MATRIX)
    setattr(found, name, change(getattr(found, name)))
    if also is not None:
        found.indices = also(found.indices)
    return found


def read_only(values: Any) -> Any:
    values.flags.writeable = False
    return values


def unsorted() -> Any:
    found = sp.csr_array(MATRIX)
    found.indices[:2], found.data[:2] = found.indices[:2][::-1].copy(), found.data[:2][::-1].copy()
    found.has_sorted_indices = False
    return found


def broken_sparse() -> dict[str, Make]:
    """Sparse matrices whose arrays do not fit together."""
    changes: dict[str, tuple[str, Callable[[Any], Any]]] = {
        "index too large": ("indices", lambda a: a + 100), "index negative": ("indices", lambda a: a - 50), "indices of floats": ("indices", lambda a: a + 0.5),
        "indices too short": ("indices", lambda a: a[:-2]), "data too short": ("data", lambda a: a[:-2]), "indptr too short": ("indptr", lambda a: a[:-1]),
        "indptr falls": ("indptr", lambda a: a[::-1].copy()), "indptr beyond": ("indptr", lambda a: a + 40), "indptr negative": ("indptr", lambda a: a - 3),
        "data None": ("data", lambda a: None), "indices None": ("indices", lambda a: None), "data text": ("data", lambda a: np.array(["x"] * len(a))),
        "indptr a list": ("indptr", list), "indices a list": ("indices", list), "data of two modes": ("data", lambda a: a[:, None]), "_shape lies": ("_shape", lambda a: (2, 2)),
        "_shape huge": ("_shape", lambda a: (2**60, 2**60)), "_shape text": ("_shape", lambda a: "ab"), "data of dates": ("data", lambda a: a.astype("M8[s]")),
        "unsigned indices": ("indices", lambda a: a.astype(np.uint32)), "narrow indices": ("indices", lambda a: a.astype(np.int8)),
    }  # fmt: skip
    return {f"broken csr: {what}": lambda name=name, change=change: changed(name, change) for what, (name, change) in changes.items()}


def of_others() -> dict[str, Make]:
    """What other packages have, where they are installed."""
    return {**of_pandas(), **of_pydata(), **of_networkx(), **of_torch()}


def of_pandas() -> dict[str, Make]:
    import pandas as pd

    found: dict[str, Make] = {
        "frame": lambda: pd.DataFrame(MATRIX), "frame of texts": lambda: pd.DataFrame(MATRIX.astype(str)), "sparse frame": lambda: pd.DataFrame(MATRIX).astype(pd.SparseDtype(float, 0)),
        "frame with names": lambda: pd.DataFrame(MATRIX, columns=list("abcd")), "frame of two kinds": lambda: pd.DataFrame({"a": [1.0] * 4, "b": ["x"] * 4}),
        "empty frame": pd.DataFrame, "series": lambda: pd.Series(MATRIX[0]), "nullable integers": lambda: pd.Series([1, 5, 2, 3], dtype="Int64"),
        "sparse series": lambda: pd.Series(MATRIX[0]).astype(pd.SparseDtype(float, 0)), "sparse array": lambda: pd.arrays.SparseArray(MATRIX[0]), "index": lambda: pd.Index([1, 2, 3, 4]),
        "categorical": lambda: pd.Categorical(list("abca")), "timestamps": lambda: pd.date_range("2026", periods=4), "NA": lambda: pd.NA, "NaT": lambda: pd.NaT,
        "texts": lambda: pd.Series(list("abcd")), "nullable floats": lambda: pd.array([1.0, 5.0, 2.0, 3.0], dtype="Float64"), "intervals": lambda: pd.interval_range(0, 4), "Timestamp": lambda: pd.Timestamp(0),
    }  # fmt: skip
    return {f"pandas {name}": make for name, make in found.items()}


def of_pydata() -> dict[str, Make]:
    if not find_spec("sparse"):
        return {}
    import sparse

    found: dict[str, Make] = {
        "COO": lambda: sparse.COO(MATRIX), "GCXS": lambda: sparse.GCXS.from_numpy(MATRIX), "DOK": lambda: sparse.DOK.from_numpy(MATRIX), "fill 1": lambda: sparse.COO(MATRIX, fill_value=1.0),
        "bool": lambda: sparse.COO(MATRIX != 0), "order 3": lambda: sparse.COO(MATRIX[None]), "complex": lambda: sparse.COO(MATRIX + 0j), "float16": lambda: sparse.COO(MATRIX.astype("f2")),
    }  # fmt: skip
    return {f"PyData {name}": make for name, make in found.items()}


def of_networkx() -> dict[str, Make]:
    if not find_spec("networkx"):
        return {}
    import networkx as nx

    found: dict[str, Make] = {
        "Graph": lambda: nx.from_numpy_array(MATRIX + MATRIX.T), "DiGraph": lambda: nx.from_numpy_array(MATRIX, create_using=nx.DiGraph), "MultiGraph": nx.MultiGraph,
        "empty": nx.Graph, "names": lambda: nx.Graph([("a", "b"), ("c", "d")]), "nodes": lambda: nx.path_graph(4).nodes, "edges": lambda: nx.path_graph(4).edges, "adjacency": lambda: nx.path_graph(4).adj,
    }  # fmt: skip
    return {f"networkx {name}": make for name, make in found.items()}


def of_torch() -> dict[str, Make]:
    if not find_spec("torch"):
        return {}
    import torch

    t = lambda: torch.from_numpy(MATRIX.copy())  # noqa: E731
    kinds = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128", "float8_e5m2", "uint16", "uint32", "uint64")
    found: dict[str, Make] = {name: lambda name=name: t().to(getattr(torch, name)) for name in kinds}
    for name in ("float64", "float32", "float16", "bfloat16", "int64", "bool", "complex128"):
        for layout in ("coo", "csr", "csc"):
            found[f"{layout} {name}"] = lambda name=name, layout=layout: getattr(t().to(getattr(torch, name)), f"to_sparse_{layout}" if layout != "coo" else "to_sparse")()
    found |= {
        "bsr": lambda: t().to_sparse_bsr((2, 2)), "bsc": lambda: t().to_sparse_bsc((2, 2)), "grad": lambda: t().requires_grad_(), "sparse grad": lambda: t().to_sparse().requires_grad_(), "csr grad": lambda: t().to_sparse_csr().requires_grad_(),
        "meta": lambda: t().to("meta"), "quantized": lambda: torch.quantize_per_tensor(t().float(), 0.1, 0, torch.qint8), "conjugate": lambda: (t() + 0j).conj(), "negated": lambda: (t() * 1j).conj().imag,
        "uncoalesced": lambda: torch.sparse_coo_tensor([[0, 0, 0, 2, 2, 3, 3], [1, 1, 3, 0, 2, 1, 3]], torch.tensor([1.0, 1, 1, 3, 1, 1, 2]).double(), (4, 4)), "transposed": lambda: t().T, "strided": lambda: t().repeat(2, 2)[::2, :4],
        "expanded": lambda: t()[:1].expand(4, 4), "scalar": lambda: torch.tensor(2.0), "hybrid": lambda: t().to_sparse(1), "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "Parameter": lambda: torch.nn.Parameter(t()),
        "Size": lambda: torch.Size((4, 4)), "dtype": lambda: torch.float64, "module": lambda: torch.nn.Linear(4, 4), "storage": lambda: t().untyped_storage(), "mkldnn": lambda: t().float().to_mkldnn(),
    }  # fmt: skip
    return {f"torch {name}": make for name, make in found.items()}


def stands_for(given: Any) -> np.ndarray[Any, Any]:
    """Return the array of an object, as its own package has it."""
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
        np.add.at(found, tuple(coordinates), values)
        return found
    return wide(np.asarray(given))


def wide(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
