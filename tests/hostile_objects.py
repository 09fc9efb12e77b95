"""Objects that lie, or fail when they are asked, given as operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from odd_matrices import MATRIX, Make


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


FAILURES: tuple[BaseException, ...] = (
    ValueError("odd"),
    TypeError("odd"),
    RuntimeError("odd"),
    KeyError("odd"),
    ZeroDivisionError("odd"),
    OSError("odd"),
    RecursionError("odd"),
    StopIteration("odd"),
    AssertionError("odd"),
    UnicodeDecodeError("utf-8", b"", 0, 1, "odd"),
    SystemError("odd"),
    BufferError("odd"),
)


def hostile() -> dict[str, Make]:
    """Objects whose methods fail or lie."""
    found: dict[str, Make] = {}

    def defined(method: str, answer: Callable[..., Any]) -> Make:
        return lambda: type("Odd", (), {method: answer})()

    def failing(error: BaseException) -> Callable[..., Any]:
        def fail(*_: Any, **__: Any) -> Any:
            raise error

        return fail

    answers: dict[str, Any] = {
        "None": None,
        "text": "x",
        "itself": ...,
        "3": 3,
        "a list": [1, 2],
        "objects": np.array([None]),
        "a vector": np.ones(4),
    }
    for method in (
        "__array__",
        "__dlpack__",
        "__len__",
        "__iter__",
        "__getitem__",
        "__float__",
        "__index__",
        "__fspath__",
        "__array_ufunc__",
        "__torch_function__",
    ):
        for error in FAILURES[:4] if method not in ("__array__", "__dlpack__") else FAILURES:
            found[f"{method} raises {type(error).__name__}"] = defined(method, failing(error))
        for what, answer in answers.items():
            found[f"{method} gives {what}"] = defined(method, lambda self, *_, answer=answer, **__: self if answer is ... else answer)
    lies: dict[str, Any] = {
        "empty": {},
        "None": None,
        "no pointer": {"shape": (4, 4), "typestr": "<f8", "version": 3},
        "bad type": {"shape": (4, 4), "typestr": "zz", "data": (0, True), "version": 3},
        "negative": {"shape": (-4, 4), "typestr": "<f8", "data": (8, True), "version": 3},
        "text": "lie",
    }
    for what, lie in lies.items():
        found[f"__array_interface__ {what}"] = lambda lie=lie: type("Odd", (), {"__array_interface__": lie})()
    for error in FAILURES:
        found[f"shape raises {type(error).__name__}"] = lambda error=error: Hostile(shape=error)
        found[f"dtype raises {type(error).__name__}"] = lambda error=error: Hostile(shape=(4, 4), ndim=2, dtype=error)
    attributes: dict[str, dict[str, Any]] = {
        "shape": {"shape": (4, 4)},
        "shape of text": {"shape": "ab", "dtype": "f8"},
        "shape and dtype": {"shape": (4, 4), "dtype": np.dtype("f8")},
        "everything of csr": {"shape": (4, 4), "dtype": np.dtype("f8"), "format": "csr", "data": None, "indices": None, "indptr": None},
        "coo": {"shape": (4, 4), "coords": 3, "data": 4, "fill_value": 0},
        "layout": {"layout": "torch.strided", "shape": (4, 4)},
        "values": {"values": MATRIX},
        "todense": {"todense": lambda: MATRIX},
        "toarray": {"toarray": lambda: MATRIX},
        "tocoo": {"tocoo": lambda: None},
        "numpy": {"numpy": lambda: MATRIX},
        "tocsr": {"tocsr": lambda: "no"},
        "format": {"format": "csr"},
        "levels": {"levels": (), "format": None},
        "T": {"T": None},
        "ndim": {"ndim": -1},
    }
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
