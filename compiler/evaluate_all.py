"""Several expressions in order, of which later ones read the results of earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from .concrete.check import check_assignment, tensor_names
from .errors import ExpressionError
from .frozen import frozen
from .notation.nodes import Assignment, accesses
from .notation.parser import parse
from .output_pattern import named_operand
from .shared_products import computed_together
from .storage.recalled import recalled

KEPT = 256  # expressions that a process keeps at hand
BY_RESULT = ("output_format", "output_pattern", "schedule")
"""Options that may be given for each result by its name."""

OF_EACH = frozenset((*BY_RESULT, "shape"))
"""Options of which each expression is told its own part."""

LIMITING = ("dtype", "memory_bound", "cache_share", "boundary")
"""Options that each expression follows on its own."""


@frozen
class Sequential:
    """One expression of several.

    Attributes:
        text: of the expression.
        result: its name.
        operands: the names that it reads.
        indices: every index that it has.
        assignment: as it was read.
    """

    text: str
    result: str
    operands: tuple[str, ...]
    indices: frozenset[str]
    assignment: Assignment


def in_order(expressions: Sequence[str], operands: Mapping[str, Any], patterns: Any = None) -> list[Sequential]:
    """Check that expressions can be computed one after another.

    Args:
        patterns: of the results, as ``output_pattern``; what they name is used, and need not be in an expression.

    Raises:
        ExpressionError: two results have one name, an operand is missing, or no expression uses it.
    """
    if isinstance(expressions, str) or not isinstance(expressions, Sequence):
        raise ExpressionError(f"expressions are given as a list of texts, not as {type(expressions).__name__}")
    if not isinstance(operands, Mapping):
        raise ExpressionError(f"operands are given by name, {{'A': A, ...}}, not as {type(operands).__name__}")
    found: list[Sequential] = []
    made: dict[str, int] = {}
    used: set[str] = set()
    for number, text in enumerate(expressions, 1):
        if not isinstance(text, str):
            parse(text)  # says what an expression is
        one = _sequential(text)
        own = named_operand(_of(patterns, one.result))
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
def _sequential(text: str) -> Sequential:
    assignment = parse(text)
    check_assignment(assignment, affine=True)
    everything = (assignment.target, *accesses(assignment.value))
    indices = frozenset(index for access in everything for index in access.indices)
    return Sequential(assignment.text, assignment.target.tensor, tensor_names(assignment), indices, assignment)


def evaluate_all(
    expressions: Sequence[str], operands: Mapping[str, Any], compute: Callable[..., Any], options: Mapping[str, Any]
) -> list[Any]:
    """Compute expressions in order; see ``sparsetune.evaluate_all``.

    Args:
        compute: ``evaluate``, called with an expression, its operands and its options.
        options: of all expressions; those of ``BY_RESULT`` may be mappings by the name of the result.
    """
    ordered = in_order(expressions, operands, options.get("output_pattern"))
    _check_options(ordered, options)
    shape: Mapping[str, int] = options.get("shape") or {}
    available = {name: recalled(data) for name, data in operands.items()} if len(ordered) > 1 else dict(operands)
    results, shared = list[Any](), dict[str, Any]()
    free = _free(ordered, options)
    alike = {name: value for name, value in options.items() if name not in OF_EACH}
    for place, one in enumerate(ordered):
        if one.result not in shared and one.result in free:
            rest = [other.assignment for other in ordered[place:]]
            shared |= computed_together(rest, free, available, options.get("semiring"), options.get("threads"))
        if one.result in shared:
            available[one.result] = shared[one.result]
            results.append(shared[one.result])
            continue
        own = {name: _of(options.get(name), one.result) for name in BY_RESULT}
        own = {name: value for name, value in own.items() if value is not None}
        extents = {index: extent for index, extent in shape.items() if index in one.indices}
        result = compute(one.text, {name: available[name] for name in one.operands}, shape=extents or None, **alike, **own)
        available[one.result] = result
        results.append(result)
    return results


def _free(ordered: Sequence[Sequential], options: Mapping[str, Any]) -> frozenset[str]:
    """Return the results that may be made together with others: nothing is said of how they are to be made."""
    if any(options.get(name) is not None for name in LIMITING) or options.get("target") != "cpu":
        return frozenset()
    shape: Mapping[str, int] = options.get("shape") or {}
    return frozenset(
        one.result
        for one in ordered
        if _of(options["output_format"], one.result) in (None, "dense")
        and _of(options.get("output_pattern"), one.result) is None
        and _of(options["schedule"], one.result) == "auto"
        and not one.indices.intersection(shape)
        and one.result not in shape
    )


def _of(option: Any, result: str) -> Any:
    """Return what an option says for a result; None where it says nothing."""
    if option is None or isinstance(option, str):
        return option
    return option.get(result) if isinstance(option, Mapping) else option


def _check_options(ordered: Sequence[Sequential], options: Mapping[str, Any]) -> None:
    """Refuse options for what no expression has."""
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
