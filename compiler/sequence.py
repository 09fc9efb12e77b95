"""Checks a sequence of expressions, each of which reads operands and earlier results, and splits options among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from .concrete.check import KEPT, parsed, tensor_names
from .errors import ExpressionError
from .frozen import frozen
from .notation.nodes import Assignment, accesses
from .output_pattern import named_operand

BY_RESULT = ("output_format", "output_pattern", "schedule")
"""Options that may be given for each result by its name."""


@frozen
class Sequential:
    """One expression of several.

    Attributes:
        text: the text of the expression.
        result: the name of its result.
        operands: the names that it reads.
        indices: the names of all its indices.
        assignment: the parsed expression.
    """

    text: str
    result: str
    operands: tuple[str, ...]
    indices: frozenset[str]
    assignment: Assignment


def in_order(expressions: Sequence[str], operands: Mapping[str, Any], patterns: Any = None) -> list[Sequential]:
    """Check that expressions can be computed one after another.

    Args:
        patterns: the option ``output_pattern``; the operands that it names count as used, even if no expression reads them.

    Raises:
        ExpressionError: two results have one name, an operand is missing, or no expression uses it.
    """
    if not isinstance(expressions, (list, tuple)):
        raise ExpressionError(f"expressions are given as a list of texts, not as {type(expressions).__name__}")
    if not isinstance(operands, Mapping):
        raise ExpressionError(f"operands are given by name, {{'A': A, ...}}, not as {type(operands).__name__}")
    found: list[Sequential] = []
    made: dict[str, int] = {}
    used: set[str] = set()
    for number, text in enumerate(expressions, 1):
        if not isinstance(text, str):
            parsed(text)  # raises an error that says what an expression is
        one = sequential(text)
        own = named_operand(said_for(patterns, one.result))
        if own is not None and own not in one.operands:
            one = replace(one, operands=(*one.operands, own))
        for name in one.operands:
            if name not in operands and name not in made:
                raise ExpressionError(f"operand '{name}' of '{text}' is missing; give it by its name, or compute it before")
            used |= {name} if name not in made else set()
        if one.result in made:
            raise ExpressionError(f"expressions {made[one.result]} and {number} both compute '{one.result}'; give one another name")
        made[one.result] = number
        found.append(one)
    for name in operands:
        if name not in used:
            known = ", ".join(sorted(used)) or "none"
            raise ExpressionError(f"operand '{name}' is not used in any of the expressions; their operands are {known}")
    return found


@lru_cache(KEPT)
def sequential(text: str) -> Sequential:
    """Read an expression. Raises ``ExpressionError``."""
    assignment = parsed(text)
    everything = (assignment.target, *accesses(assignment.value))
    indices = frozenset(index for access in everything for index in access.indices)
    return Sequential(assignment.text, assignment.target.tensor, tensor_names(assignment), indices, assignment)


def said_for(option: Any, result: str) -> Any:
    """Return the value of an option for one result; None if it gives none."""
    if option is None or isinstance(option, str):
        return option
    return option.get(result) if isinstance(option, Mapping) else option


def check_options(ordered: Sequence[Sequential], options: Mapping[str, Any]) -> None:
    """Raise ``ExpressionError`` for options that name a result or an index that no expression has."""
    results = {one.result for one in ordered}
    for option in BY_RESULT:
        if isinstance(options.get(option), Mapping):
            for name in options[option]:
                if name not in results:
                    shown = ", ".join(sorted(results))
                    raise ExpressionError(f"{option} names '{name}', which no expression computes; results are {shown}")
    indices = {index for one in ordered for index in one.indices}
    for index in options.get("shape") or {}:
        if index not in indices:
            shown = ", ".join(sorted(indices))
            raise ExpressionError(f"extent given for index '{index}', which no expression has; their indices are {shown}")
