"""Results on the pattern of an operand: ``output_pattern="I(x,y,z,:)"``, as submanifold convolutions have it (DESIGN 4.2).

The expression is multiplied by a tensor that holds the identity of multiplication at the pattern, so that loops step through the pattern
and look the rest up, and one that holds the identity of addition there is added, so that every place of the pattern is in the result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .concrete.affine import fresh, names_of
from .concrete.check import check_assignment, tensor_names
from .errors import ExpressionError
from .evaluate import checked_operands
from .format import Format
from .frozen import frozen
from .lowering.context import loop_type
from .lowering.semiring import identity
from .notation.nodes import Assignment
from .notation.parser import parse
from .pipeline import checked_semiring, supported_dtype
from .storage.construct import tensor
from .storage.tensor import Tensor

_PATTERN = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\(([^()]*)\)|\[([^\[\]]*)\])?\s*")


@frozen
class OutputPattern:
    """The access whose pattern a result has.

    Attributes:
        tensor: the operand.
        order: how many modes the operand has to have.
        modes: for each index of the result that it names, the mode of the operand; the other modes are projected out.
    """

    tensor: str
    order: int
    modes: tuple[tuple[str, int], ...]


@frozen
class Restricted:
    """An expression whose result has the pattern of an operand, and what it is computed on."""

    expression: str
    operands: Mapping[str, Any]
    output_format: Format | str


def restricted(
    expression: str, operands: Mapping[str, Any], pattern: str, output_format: Format | str | None = None,
    semiring: tuple[str, str] | None = None, dtype: DTypeLike | None = None,
) -> Restricted:  # fmt: skip
    """Return an expression on the pattern of an operand as one that ``evaluate`` takes.

    Args:
        expression: index notation.
        operands: by name; the one of the pattern need not be in the expression.
        pattern: its access, ``"I(x,y,:)"``: indices of the left side, and ":" for modes that are projected out; ``"I"`` alone where it
            has the indices of the left side in order. Indices of the left side that are not named are dense.
        output_format: None: the named indices compressed, the others dense.
        semiring, dtype: as for ``evaluate``.

    Raises:
        ExpressionError: the pattern is none of an operand, or not along the left side.
    """
    assignment = parse(expression)
    check_assignment(assignment, affine=True)
    used = tensor_names(assignment)
    if not isinstance(operands, Mapping):
        checked_operands(expression, used, operands)  # says how they are given
    found = output_pattern(pattern, assignment, operands)
    checked_operands(expression, used, {name: data for name, data in operands.items() if name in used or name != found.tensor})
    stored = operands[found.tensor]
    stored = stored if isinstance(stored, Tensor) else tensor(stored)
    if found.order != stored.order:
        raise ExpressionError(f"output_pattern {pattern!r} is of {found.order} modes, but '{found.tensor}' has {stored.order}")
    names = names_of(assignment) | set(operands)
    one, zero = fresh(f"{found.tensor}_pattern", names), fresh(f"{found.tensor}_zero", names)
    indices = ", ".join(name for name, _ in found.modes)
    kept = {name: data for name, data in operands.items() if name in used or name != found.tensor}
    add, multiply = checked_semiring(semiring)
    kind = np.dtype(dtype) if dtype is not None else np.result_type(*(_dtype(kept[name]) for name in kept if name in used), stored.dtype)
    kind = np.dtype(supported_dtype(kind, None))
    element = loop_type(str(kind))
    coordinates, shape = _projected(stored, [mode for _, mode in found.modes])
    levels = "s" * len(shape)
    fill = identity(add, element)
    for name, held in ((one, identity(multiply, element)), (zero, fill)):
        values = np.full(coordinates.shape[1], held, kind)
        kept[name] = tensor((coordinates, values), levels, shape, fill_value=fill)
    target, _, value = expression.partition("=")
    return Restricted(
        f"{target.strip()} = {one}({indices}) * ({value}) + {zero}({indices})", kept,
        _format(assignment, found) if output_format is None else output_format,
    )  # fmt: skip


def output_pattern(pattern: str, assignment: Assignment, operands: Mapping[str, Any]) -> OutputPattern:
    """Return the access that a text means.

    Raises:
        ExpressionError: it is none.
    """
    told = f"output_pattern {pattern!r}"
    match = _PATTERN.fullmatch(pattern) if isinstance(pattern, str) else None
    if match is None:
        raise ExpressionError(f"{told} is no access of an operand, such as 'I(x,y,:)'")
    name, *written = match.groups()
    target = assignment.target
    if not target.is_plain:
        raise ExpressionError(f"{told}: the left side {target} scatters, which only dense results take")
    if assignment.operator != "=":
        raise ExpressionError(f"{told}: '+=' adds to what is there, which has a pattern of its own; write '='")
    if name not in operands:
        raise ExpressionError(f"{told}: there is no operand '{name}'; there are {', '.join(sorted(operands))}")
    inside = next((text for text in written if text is not None), None)
    parts = list(target.indices) if inside is None else [part.strip() for part in inside.split(",")]
    named = [part for part in parts if part != ":"]
    for part in named:
        if part not in target.indices:
            raise ExpressionError(f"{told}: '{part}' is neither ':' nor an index of the left side, {', '.join(target.indices) or 'none'}")
    if len(set(named)) < len(named) or not named:
        raise ExpressionError(f"{told}: it has to name indices of the left side, each once")
    modes = {part: mode for mode, part in enumerate(parts) if part != ":"}
    return OutputPattern(name, len(parts), tuple((index, modes[index]) for index in target.indices if index in modes))


def _dtype(data: Any) -> Any:
    found = getattr(data, "dtype", None)
    return found if isinstance(found, np.dtype) else tensor(data).dtype


def _projected(stored: Tensor, modes: list[int]) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """Return the coordinates that something is stored at in some modes, sorted, each once, and the extents of these."""
    coordinates, _ = stored.to_coordinates()
    shape = tuple(stored.shape[mode] for mode in modes)
    chosen = np.asarray(coordinates)[modes].astype(np.int64)
    if not chosen.shape[1]:
        return chosen, shape
    order = np.lexsort(chosen[::-1])
    chosen = chosen[:, order]
    first = np.r_[True, (chosen[:, 1:] != chosen[:, :-1]).any(axis=0)]
    return np.ascontiguousarray(chosen[:, first]), shape


def _format(assignment: Assignment, pattern: OutputPattern) -> str:
    """Return the format of a result: what is named compressed, then what is not, dense."""
    indices = assignment.target.indices
    named = [name for name, _ in pattern.modes]
    order = [*named, *(name for name in indices if name not in named)]
    if len(named) == len(indices) == 2:
        return "csr"
    levels = ", ".join(["compressed"] * len(named) + ["dense"] * (len(indices) - len(named)))
    return f"{levels}; {', '.join(str(indices.index(name)) for name in order)}"
