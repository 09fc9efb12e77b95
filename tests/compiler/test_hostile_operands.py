"""Hundreds of odd objects as operands: each is taken, or refused in one line; none is followed out of its memory."""

from __future__ import annotations

import dataclasses
import decimal
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler.errors import DataError, ShapeError, SparsetuneError
from sparsetune.compiler.storage.tensor import LevelArrays, Tensor

RNG = np.random.default_rng(0)
DENSE = np.where(RNG.random((6, 5)) < 0.4, RNG.random((6, 5)), 0)
DENSE[:, 0] = 1
VECTOR = RNG.random(5)
SPMV = "y(i) = A(i,j) * x(j)"
FORMATS = ["csr", "csc", "coo", "dcsr", "dense", "hh", "dh", "dense, narrow", "ss"]
PARTS = {
    "csr": ("indptr", "indices", "data"), "csc": ("indptr", "indices", "data"), "coo": ("row", "col", "data"),
    "bsr": ("indptr", "indices", "data"), "dia": ("offsets", "data"), "lil": ("rows", "data"),
}  # fmt: skip
CHANGES: dict[str, Callable[[Any], Any]] = {
    "negative": lambda part: -part - 1,
    "huge": lambda part: part + 10**8,
    "wide": lambda part: part.astype(np.int64) + 2**40,
    "wrapping": lambda part: part.astype(np.int64) + 2**32,
    "short": lambda part: part[:-1],
    "empty": lambda part: part[:0],
    "long": lambda part: np.concatenate([part, part]),
    "reversed": lambda part: part[::-1],
    "strided": lambda part: np.repeat(part, 2, axis=0)[::2],
    "column": lambda part: part[:, None],
    "scalar": lambda part: np.array(3),
    "zeros": lambda part: part * 0,
    "nan": lambda part: part * np.nan,
    "list": lambda part: part.tolist(),
    "none": lambda part: None,
    "number": lambda part: 7,
    "memoryview": lambda part: memoryview(part),
    "unaligned": lambda part: np.frombuffer(b"x" + part.tobytes(), part.dtype, offset=1).reshape(part.shape),
    "swapped": lambda part: part.astype(part.dtype.newbyteorder(">")),
    **{kind: lambda part, kind=kind: part.astype(kind) for kind in ("f8", "c16", "O", "U8", "u8", "u4", "i2", "i1", "?", "f2", "g")},
}


def broken_arrays() -> Iterator[tuple[str, Callable[[], Any]]]:
    for name, parts in PARTS.items():
        for part in parts:
            for change, function in CHANGES.items():
                yield f"{name}.{part}.{change}", lambda name=name, part=part, function=function: changed(name, part, function)
        for shape in ((600, 500), (2, 2), (-6, -5), (6, 5, 1), (), (6.5, 5)):
            yield f"{name}.shape={shape}", lambda name=name, shape=shape: reshaped(name, shape)


def changed(name: str, part: str, function: Callable[[Any], Any]) -> Any:
    array = sp.csr_array(DENSE).asformat(name)
    try:
        setattr(array, part, function(getattr(array, part)))
    except (AttributeError, BufferError, TypeError, ValueError):  # what SciPy and NumPy refuse themselves
        return None
    return array


def reshaped(name: str, shape: Any) -> Any:
    array = sp.csr_array(DENSE).asformat(name)
    array._shape = shape
    return array


class Bad:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class RaisesAsArray:
    def __array__(self, *_given: Any, **_more: Any) -> Any:
        raise RuntimeError("no\nreally")


class NoArrayAsArray:
    def __array__(self, *_given: Any, **_more: Any) -> Any:
        return [1, 2]


def pretended(module: str, **attributes: Any) -> Any:
    """Return an object of a class that says it belongs to a library."""
    return type("Pretended", (), {"__module__": module, **attributes})()


def odd_objects() -> Iterator[tuple[str, Callable[[], Any]]]:
    things = [
        None, 3, 2.5, float("nan"), 10**400, True, 1j, "x", b"x", bytearray(5), [[1, 2], [3, 4]], [[1], [2, 3]], (1, 2), (1, 2, 3), {},
        {1}, range(5), (i for i in range(3)), len, int, types, decimal.Decimal(1), memoryview(b"abc"), slice(1), ..., NotImplemented,
        ValueError("x"), object(), np.str_("a"), np.void(b"abc"), np.float16(1), np.longdouble(1), np.array(3.0), np.empty((0, 5)),
        np.ma.array(DENSE), np.matrix(DENSE), np.zeros((6, 5), [("a", "f8")]), np.zeros((6, 5), "M8[s]"), np.broadcast_to(1.0, (6, 5)),
        DENSE[::-1, ::-1], np.asfortranarray(DENSE), DENSE.astype(">f8"), DENSE.astype(object), DENSE.astype("U5"),
        Bad(), RaisesAsArray(), NoArrayAsArray(),
        *(Bad(**{name: value}) for name in ("ndim", "shape", "dtype", "format") for value in (None, -1, "x", (), (6, 5), 10**30)),
        pretended("scipy.sparse._csr", format="csr", ndim=2, shape=(6, 5), dtype=np.dtype("f8"), tocoo=None),
        pretended("scipy.sparse._coo", format="coo", ndim=2, shape=5, dtype=np.dtype("f8"), tocoo=lambda self: self),
        pretended("sparse._coo", fill_value=0, shape=(6, 5), ndim=2, coords=np.full((2, 3), 10**8), data=np.ones(3)),
        pretended("sparse._coo", fill_value=0, shape=(6, 5), ndim=2, coords=[[1], [1, 2]], data=np.ones(3)),
        pretended("torch", layout="torch.sparse_csr", shape=(6, 5), detach=lambda self: self),
    ]  # fmt: skip
    for number, thing in enumerate(things):
        yield f"{number}: {type(thing).__name__}", lambda thing=thing: thing


OBJECTS = dict((*broken_arrays(), *odd_objects()))


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.filterwarnings("ignore")
def test_odd_operands_end_in_a_result_or_one_line(name: str) -> None:
    kernel = st.compile(SPMV, {"A": "csr"})
    calls: list[Callable[[Any], Any]] = [
        lambda data: st.tensor(data, "csr").to_numpy(),
        lambda data: st.evaluate(SPMV, {"A": data, "x": VECTOR}, schedule="default"),
        lambda data: kernel(A=data, x=VECTOR),
        lambda data: kernel.bind(A=data, x=VECTOR)(),
        lambda data: kernel(A=DENSE, x=data),
        lambda data: kernel(A=DENSE, x=VECTOR, out=data),
    ]
    said = []
    for call in calls:
        try:
            call(OBJECTS[name]())
        except SparsetuneError as error:
            said.append(str(error).splitlines()[0])
    assert all(0 < len(line) < 300 for line in said)


def stored(format: str) -> Tensor:
    return st.tensor(DENSE, format)


def with_parts(packed: Tensor, change: Callable[[np.ndarray], np.ndarray], *names: str) -> Any:
    levels = tuple(
        LevelArrays(**{name: change(part) if name in names else part for name, part in level.parts.items()}) for level in packed.levels
    )
    return dataclasses.replace(packed, levels=levels)


@pytest.mark.parametrize("format", FORMATS)
def test_tensors_put_together_by_hand_are_looked_at(format: str) -> None:
    packed = stored(format)
    again = Tensor(packed.shape, packed.format, packed.levels, packed.values, packed.fill_value)
    assert np.array_equal(again.to_numpy(), DENSE)
    wrong: list[Callable[[], Any]] = [
        lambda: dataclasses.replace(packed, shape=(2, 2)),
        lambda: dataclasses.replace(packed, shape=(6, 5, 3)),
        lambda: dataclasses.replace(packed, shape=(6, -5)),
        lambda: dataclasses.replace(packed, values=np.ones(1)),
        lambda: dataclasses.replace(packed, values=np.ones((6, 5))),
        lambda: dataclasses.replace(packed, values=None),
        lambda: dataclasses.replace(packed, values=packed.values.astype(object)),
        lambda: dataclasses.replace(packed, levels=()),
        lambda: dataclasses.replace(packed, levels=(None, None)),
        lambda: dataclasses.replace(packed, format="csr"),
        lambda: dataclasses.replace(packed, fill_value="x"),
    ]
    if format != "dense":
        wrong += [
            lambda: with_parts(packed, lambda part: part + part.dtype.type(1000), "crd"),
            lambda: with_parts(packed, lambda part: part[:-1], "crd"),
            lambda: with_parts(packed, lambda part: part.astype(np.float64), "crd"),
            lambda: with_parts(packed, lambda part: part + part.dtype.type(1000), "pos"),
            lambda: with_parts(packed, lambda part: part[::-1], "pos"),
        ]
    for refused in wrong:
        with pytest.raises((DataError, ShapeError)) as caught:
            refused()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dcsr"])
def test_coordinates_by_hand_increase(format: str) -> None:
    with pytest.raises(DataError, match="increase"):
        with_parts(stored(format), lambda part: part[::-1], "crd")


def test_hash_tables_by_hand_have_free_slots() -> None:
    pos, full, odd = np.array([0, 2]), np.array([1, 3]), np.array([1, -1, -1])
    for levels in (LevelArrays(pos, full), LevelArrays(np.array([0, 3]), odd), LevelArrays(pos, np.array([-2, -1]))):
        with pytest.raises(DataError, match="tables"):
            Tensor((5,), st.Format("hashed"), (levels,), np.ones(len(levels.parts["crd"])))
    assert Tensor((5,), st.Format("hashed"), (LevelArrays(pos, np.array([-1, -1])),), np.ones(2)).nnz == 0


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.filterwarnings("ignore")
def test_values_that_are_given_another_shape_in_place(format: str) -> None:
    kernel = st.compile(SPMV, {"A": format})
    for attribute, value in (("dtype", np.dtype(np.uint8)), ("shape", (-1, 1))):
        packed = stored(format)
        setattr(packed.values, attribute, value)
        calls: list[Callable[[Tensor], Any]] = [Tensor.to_numpy, Tensor.to_scipy, Tensor.to_coordinates]
        calls += [lambda given: given.convert("ss; 1, 0"), lambda given: kernel(A=given, x=VECTOR)]
        for call in calls:
            with pytest.raises(DataError, match=r"shape or dtype|values of type"):
                call(packed)
