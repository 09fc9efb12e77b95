"""The type of values in which an expression is computed, and checks of its constants and operators for that type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from ..numpy_later import np
from ..shown import shown
from ..source import pointing
from .functions import FUNCTIONS, MOST_EXPONENT, whole_exponent
from .nodes import Apply, Assignment, Div, Literal, Neg, walk_expression

if TYPE_CHECKING:
    pass

TYPES = {
    "float64": "f64", "float32": "f32", "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip
"""The types with which kernels compute: NumPy's names, and the types of the loop IR."""

_FLOATS = {"float32", "float64"}


def result_dtype(assignment: Assignment, dtypes: Iterable[str]) -> str:
    """Return the name of the dtype that NumPy would give: the common dtype of the operands. Constants are weak, ``/`` gives floats, and
    functions such as exp take floats.

    It is float64 if there are no operands.
    """
    given = tuple(dict.fromkeys(dtypes)) or ("float64",)
    if len(given) == 1 and given[0] in _FLOATS:
        return given[0]
    nodes = list(walk_expression(assignment.value))
    weak = [type(node.value)() for node in nodes if isinstance(node, Literal)]
    kind = np.result_type(*map(np.dtype, given), *weak)
    divides = any(isinstance(node, Div) or (isinstance(node, Apply) and FUNCTIONS[node.function].of_floats) for node in nodes)
    return "float64" if divides and kind.kind != "f" else kind.name


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


def check_values(assignment: Assignment, kind: str) -> None:
    """Refuse constants and operators that have no meaning for a dtype, given by its name.

    Raises:
        DataError: a constant cannot be held exactly by an integer type, or ``-`` stands between truth values.
    """
    for node in walk_expression(assignment.value):
        if isinstance(node, Literal) and "int" in kind and not _holds(np.dtype(kind), node.value):
            raise DataError(f"constant {node.value} of '{assignment.text}' is no value of type {kind}; convert an operand to a wider type")
        if isinstance(node, Apply) and node.function == "pow" and kind not in _FLOATS and whole_exponent(node.arguments[1]) is None:
            message = f"a power of whole numbers has a constant exponent from 0 to {MOST_EXPONENT}; convert an operand to floats for others"
            raise DataError(pointing(message, assignment.text, node.span))
        if isinstance(node, Neg) and kind == "bool":
            message = "'-' has no meaning for values of type bool; convert the operands to a type of numbers"
            raise DataError(pointing(message, assignment.text, node.span))


def _holds(kind: np.dtype, value: int | float) -> bool:
    ends = np.iinfo(kind)
    return ends.min <= value <= ends.max and value == int(value)
