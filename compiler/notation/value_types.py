"""The type of values in which an expression is computed, and checks of its constants and operators for that type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..errors import DataError
from ..shown import shown
from ..source import pointing
from .functions import FUNCTIONS, MOST_EXPONENT, whole_exponent
from .nodes import Apply, Assignment, Div, Literal, Neg, walk_expression

TYPES = {
    "float64": "f64", "float32": "f32", "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip
"""The types with which kernels compute: NumPy's names, and the types of the loop IR."""


def result_dtype(assignment: Assignment, dtypes: Iterable[DTypeLike]) -> np.dtype:
    """Return the dtype that NumPy would give: the common dtype of the operands. Constants are weak, ``/`` gives floats, and functions
    such as exp take floats.

    It is float64 if there are no operands.
    """
    given = [np.dtype(kind) for kind in dtypes]
    if not given:
        return np.dtype(np.float64)
    nodes = list(walk_expression(assignment.value))
    weak = [type(node.value)() for node in nodes if isinstance(node, Literal)]
    kind = np.result_type(*given, *weak)
    divides = any(isinstance(node, Div) or (isinstance(node, Apply) and FUNCTIONS[node.function].of_floats) for node in nodes)
    return np.dtype(np.float64) if divides and kind.kind != "f" else kind


def number_dtype(number: Any, others: Iterable[Any]) -> np.dtype:
    """Return the dtype of a Python number beside arrays: the arrays' dtype if it can hold the number, as in NumPy, else its own.

    ``others`` are the ``dtype`` attributes of all operands; those that are not dtypes of numbers are ignored.
    """
    try:
        own = np.asarray(number).dtype
    except Exception:  # a foreign class may raise anything
        raise DataError(f"{shown(number)} is no number") from None
    given = [kind for kind in others if isinstance(kind, np.dtype) and kind.kind in "biuf"]
    if type(number) not in (float, int) or not given:
        return own
    found = np.result_type(*given, number)
    return found if found.kind not in "iu" or _holds(found, number) else own


def check_values(assignment: Assignment, kind: np.dtype) -> None:
    """Refuse constants and operators that have no meaning for a dtype.

    Raises:
        DataError: a constant cannot be held exactly by an integer type, or ``-`` stands between truth values.
    """
    for node in walk_expression(assignment.value):
        if isinstance(node, Literal) and kind.kind in "iu" and not _holds(kind, node.value):
            raise DataError(f"constant {node.value} of '{assignment.text}' is no value of type {kind}; convert an operand to a wider type")
        if isinstance(node, Apply) and node.function == "pow" and kind.kind != "f" and whole_exponent(node.arguments[1]) is None:
            message = f"a power of whole numbers has a constant exponent from 0 to {MOST_EXPONENT}; convert an operand to floats for others"
            raise DataError(pointing(message, assignment.text, node.span))
        if isinstance(node, Neg) and kind.kind == "b":
            message = "'-' has no meaning for values of type bool; convert the operands to a type of numbers"
            raise DataError(pointing(message, assignment.text, node.span))


def _holds(kind: np.dtype, value: int | float) -> bool:
    ends = np.iinfo(kind)
    return ends.min <= value <= ends.max and value == int(value)
