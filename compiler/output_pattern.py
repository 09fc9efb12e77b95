"""Results on the pattern of an operand: ``output_pattern="I(x,y,z,:)"``, as submanifold convolutions have it (DESIGN 4.2).

The expression is multiplied by a tensor that stores the identity of multiplication at every place of the pattern, so that loops step
through the pattern and look up the rest. A tensor that stores the identity of addition there is added, so that every place of the
pattern is in the result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .concrete.affine import names_of
from .concrete.check import formats_of, parsed, tensor_names
from .concrete.given import checked_dtype, checked_operands, checked_semiring, supported_dtype
from .errors import ExpressionError
from .format import Format
from .fresh import fresh
from .frozen import frozen
from .lowering.semiring import identity
from .lowering.tensor_types import loop_type
from .notation.nodes import Assignment
from .shown import shown
from .storage.construct import tensor
from .storage.tensor import Tensor

_PATTERN = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\(([^()]*)\)|\[([^\[\]]*)\])?\s*")


@frozen
class OutputPattern:
    """The access that gives a result its pattern.

    Attributes:
        text: as it was written.
        tensor: the operand.
        order: how many modes the operand has to have.
        modes: for each index of the result that the pattern names, the mode of the operand. The other modes are projected out.
    """

    text: str
    tensor: str
    order: int
    modes: tuple[tuple[str, int], ...]


@frozen
class Restriction:
    """An expression whose result has the pattern of an operand, before there are operands.

    Attributes:
        expression: what is computed: the value times ``one``, plus ``zero``.
        written: the expression as it was given.
        pattern: the access that gives the result its pattern.
        one, zero: the names of the tensors that store the identities of multiplication and of addition at the pattern.
        reads: the operands of the given expression.
        result: the name of the result.
        usual_format: the result's format if none is asked for: the named indices compressed, the others dense.
        add, multiply, dtype: the semiring and the dtype of the computation; dtype None: ``numpy.result_type`` of the operands.
    """

    expression: str
    written: str
    pattern: OutputPattern
    one: str
    zero: str
    reads: tuple[str, ...]
    result: str
    usual_format: str
    add: str
    multiply: str
    dtype: np.dtype[Any] | None

    def formats(self, formats: Mapping[str, Format | str | None]) -> dict[str, Format | str | None]:
        """Return the formats for ``expression``: the given ones, and those of ``one`` and ``zero``."""
        if not isinstance(formats, Mapping):
            formats_of(parsed(self.expression), formats)  # raises an error that says how formats are given
        held = "s" * len(self.pattern.modes)
        read = {name: form for name, form in formats.items() if name in self.reads or name != self.pattern.tensor}
        return {self.result: self.usual_format, **read, self.one: held, self.zero: held}

    def operands(self, operands: Mapping[str, Any]) -> dict[str, Any]:
        """Return the operands of ``expression``: the given ones that it reads, and ``one`` and ``zero``.

        Raises:
            ExpressionError: the operand that gives the pattern is missing, or has another number of modes.
        """
        pattern = self.pattern
        if not isinstance(operands, Mapping):
            checked_operands(self.written, self.reads, operands)  # raises an error that says how operands are given
        if pattern.tensor not in operands:
            shown = ", ".join(sorted(operands)) or "none"
            raise ExpressionError(f"output_pattern {pattern.text!r}: there is no operand '{pattern.tensor}'; there are {shown}")
        kept = {name: data for name, data in operands.items() if name in self.reads or name != pattern.tensor}
        checked_operands(self.written, self.reads, kept)
        stored = operands[pattern.tensor]
        stored = stored if isinstance(stored, Tensor) else tensor(stored)
        if pattern.order != stored.order:
            raise ExpressionError(f"output_pattern {pattern.text!r} is of {pattern.order} modes, but '{pattern.tensor}' has {stored.order}")
        kind = self.dtype or np.result_type(*(_dtype(kept[name]) for name in kept if name in self.reads), stored.dtype)
        kind = np.dtype(supported_dtype(kind, None))
        coordinates, shape = _projected(stored, [mode for _, mode in pattern.modes])
        fill = identity(self.add, loop_type(str(kind)))
        for name, held in ((self.one, identity(self.multiply, loop_type(str(kind)))), (self.zero, fill)):
            kept[name] = tensor((coordinates, np.full(coordinates.shape[1], held, kind)), "s" * len(shape), shape, fill_value=fill)
        return kept


def restriction(expression: str, pattern: str, semiring: tuple[str, str] | None = None, dtype: DTypeLike | None = None) -> Restriction:
    """Return what is to be computed so that the result has the pattern of an operand.

    Args:
        expression: index notation.
        pattern: the operand's access, ``"I(x,y,:)"``: indices of the left side, and ":" for modes that are projected out; ``"I"`` alone
            if its modes are the indices of the left side in order. Indices of the left side that are not named are dense. The operand
            need not occur in the expression.
        semiring, dtype: as for ``evaluate``.

    Raises:
        ExpressionError: the pattern is not an access, or does not fit the left side.
    """
    assignment = parsed(expression)
    found = output_pattern(pattern, assignment)
    reads, names = tensor_names(assignment), names_of(assignment) | {found.tensor}
    one, zero = fresh(f"{found.tensor}_pattern", names), fresh(f"{found.tensor}_zero", names)
    indices = ", ".join(name for name, _ in found.modes)
    target, _, value = expression.partition("=")
    return Restriction(
        f"{target.strip()} = {one}({indices}) * ({value}) + {zero}({indices})", expression, found, one, zero, reads,
        assignment.target.tensor, _format(assignment, found), *checked_semiring(semiring), checked_dtype(dtype),
    )  # fmt: skip


def output_pattern(pattern: str, assignment: Assignment) -> OutputPattern:
    """Parse the text of a pattern.

    Raises:
        ExpressionError: it is not an access, or does not fit the left side.
    """
    told = f"output_pattern {shown(pattern)}"
    match = _PATTERN.fullmatch(pattern) if isinstance(pattern, str) else None
    if match is None:
        raise ExpressionError(f"{told} is no access of an operand, such as 'I(x,y,:)'")
    name, *written = match.groups()
    target = assignment.target
    if not target.is_plain:
        raise ExpressionError(f"{told}: the left side {target} scatters, which only dense results take")
    if assignment.operator != "=":
        raise ExpressionError(f"{told}: '+=' adds to what is there, which has a pattern of its own; write '='")
    if name == target.tensor:
        raise ExpressionError(f"{told}: '{name}' is the result; name an operand")
    inside = next((text for text in written if text is not None), None)
    parts = list(target.indices) if inside is None else [part.strip() for part in inside.split(",")]
    named = [part for part in parts if part != ":"]
    for part in named:
        if part not in target.indices:
            raise ExpressionError(f"{told}: '{part}' is neither ':' nor an index of the left side, {', '.join(target.indices) or 'none'}")
    if len(set(named)) < len(named) or not named:
        raise ExpressionError(f"{told}: it has to name indices of the left side, each once")
    modes = {part: mode for mode, part in enumerate(parts) if part != ":"}
    return OutputPattern(pattern, name, len(parts), tuple((index, modes[index]) for index in target.indices if index in modes))


def named_operand(pattern: str) -> str | None:
    """Return the operand that the text of a pattern names; None if the text is not an access."""
    match = _PATTERN.fullmatch(pattern) if isinstance(pattern, str) else None
    return None if match is None else match[1]


def _dtype(data: Any) -> Any:
    found = getattr(data, "dtype", None)
    return found if isinstance(found, np.dtype) else tensor(data).dtype


def _projected(stored: Tensor, modes: list[int]) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """Return the stored coordinates projected to some modes, sorted and without duplicates, and the extents of these modes."""
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
    """Return the format of a result: the named indices compressed, then the others dense."""
    indices = assignment.target.indices
    named = [name for name, _ in pattern.modes]
    order = [*named, *(name for name in indices if name not in named)]
    if len(named) == len(indices) == 2:
        return "csr"
    levels = ", ".join(["compressed"] * len(named) + ["dense"] * (len(indices) - len(named)))
    return f"{levels}; {', '.join(str(indices.index(name)) for name in order)}"
