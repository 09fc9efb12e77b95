"""Several expressions in order, of which later ones read the results of earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import itemgetter
from threading import Lock
from typing import Any

from .build.chain import Chain, chained
from .build.repeat import MISS, Repeat, Repeats
from .concrete.check import check_assignment, tensor_names
from .errors import ExpressionError
from .evaluate import repeats_of
from .frozen import frozen
from .native.team import thread_count
from .notation.nodes import Assignment, accesses
from .notation.parser import parse
from .output_pattern import named_operand
from .shared_products import computed_together, may_share
from .shown import is_word
from .storage.recalled import recalled

KEPT = 256  # expressions that a process keeps at hand
BY_RESULT = ("output_format", "output_pattern", "schedule")
"""Options that may be given for each result by its name."""

OF_EACH = frozenset((*BY_RESULT, "shape"))
"""Options of which each expression is told its own part."""

LIMITING = ("dtype", "memory_bound", "cache_share", "boundary")
"""Options that each expression follows on its own."""

SELDOM = ("shape", "memory_bound", "cache_share", "boundary", "output_pattern")
"""Options with which a call is planned anew each time."""

TELLING = ("output_format", "schedule", "dtype", "target", "convert", "semiring")
"""The other options on which a plan hangs."""

_told = itemgetter(*TELLING)
_plans: dict[Hashable, _Plan] = {}
_planning = Lock()  # while a plan is put among the others


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
    if not isinstance(expressions, (list, tuple)):
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


@frozen(eq=False)
class _Step:
    """One expression of a sequence, with what the options say of it alone.

    Attributes:
        one: the expression.
        options: those of ``OF_EACH`` that are said for it.
        again: the calls kept of it, alone in a list; none where the sequence is not kept.
    """

    one: Sequential
    options: Mapping[str, Any]
    again: list[Repeats[Repeat] | None]


@frozen(eq=False)
class _Plan:
    """All of a call of ``evaluate_all`` that hangs on expressions, names and options, checked.

    Attributes:
        free: the results that may be made together with others.
        chains: the calls kept of all steps together, alone in a list; none where there is one step, or they do not fit together.
    """

    steps: tuple[_Step, ...]
    free: frozenset[str]
    chains: list[Repeats[Chain] | None]


def evaluate_all(
    expressions: Sequence[str],
    operands: Mapping[str, Any],
    compute: Callable[..., Any],
    options: Mapping[str, Any],
    evidence: Callable[[], Hashable] | None = None,
) -> list[Any]:
    """Compute expressions in order; see ``sparsetune.evaluate_all``.

    Args:
        compute: ``evaluate``, called with an expression, its operands and its options.
        options: of all expressions; those of ``BY_RESULT`` may be mappings by the name of the result.
        evidence: gives what changes when another schedule may be found; None: nothing is kept for calls that come again.
    """
    known = evidence() if evidence is not None else None
    plan = _kept_plan(expressions, operands, options, known) if evidence is not None else None
    if plan is None:
        plan = _plan(expressions, operands, options)
    alone = len(plan.steps) == 1
    available = dict(operands) if alone else {name: recalled(data) for name, data in operands.items()}
    threads = options.get("threads")
    count: int | None = None
    if (chains := plan.chains[0]) is not None:
        count = thread_count(threads)
        made = chains.with_threads(available, count)
        if made is not MISS:
            return made
    comes_again = chains is not None
    results, shared = list[Any](), dict[str, Any]()
    for place, step in enumerate(plan.steps):
        one = step.one
        if one.result in plan.free and one.result not in shared:
            rest = [other.one.assignment for other in plan.steps[place:]]
            shared |= computed_together(rest, plan.free, available, options.get("semiring"), threads)
        if one.result in shared:
            result = shared[one.result]
        else:
            own = {name: available[name] for name in one.operands}
            result, again = MISS, step.again[0]
            if again is not None:
                count = thread_count(threads) if count is None else count
                result = again.with_threads(own, count)
            if result is MISS:
                comes_again = False
                alike = {name: value for name, value in options.items() if name not in OF_EACH}
                result = compute(one.text, own, **alike, **step.options)
                if again is not None:
                    step.again[0] = _again(one, step.options, options, known)
        available[one.result] = result
        results.append(result)
    if chains is not None and comes_again:
        chain = chained([(step.one.result, again) for step in plan.steps if (again := step.again[0]) is not None])
        if chain is None:
            plan.chains[0] = None
        else:
            chains.keep(chain)
    return results


def _plan(expressions: Sequence[str], operands: Mapping[str, Any], options: Mapping[str, Any]) -> _Plan:
    """Check a call. Raises ``ExpressionError`` for what does not fit."""
    ordered = in_order(expressions, operands, options.get("output_pattern"))
    _check_options(ordered, options)
    free = _free(ordered, options)
    if not may_share([one.assignment for one in ordered if one.result in free]):
        free = frozenset()
    return _Plan(tuple(_Step(one, _own(one, options), [None]) for one in ordered), free, [None])


def _own(one: Sequential, options: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: _of(options.get(name), one.result) for name in BY_RESULT}
    shape: Mapping[str, int] = options.get("shape") or {}
    own["shape"] = {index: extent for index, extent in shape.items() if index in one.indices} or None
    return {name: value for name, value in own.items() if value is not None}


def _kept_plan(expressions: Sequence[str], operands: Any, options: Mapping[str, Any], known: Hashable) -> _Plan | None:
    """Return the plan of a call like one before; None where a part of it cannot be told from others by a key, or is seldom given."""
    if type(expressions) not in (list, tuple) or type(operands) is not dict or any(options[name] is not None for name in SELDOM):
        return None
    told = tuple(map(_key, _told(options)))
    key = tuple(expressions), tuple(operands), told, known
    try:
        plan = _plans.get(key)
    except Exception:  # not to be hashed or compared: the whole path takes or refuses it
        return None
    if plan is None:
        plan = _plan(expressions, operands, options)
        for step in plan.steps:
            step.again[0] = _again(step.one, step.options, options, known)
        if len(plan.steps) > 1 and not plan.free and all(step.again[0] is not None for step in plan.steps):
            plan.chains[0] = Repeats()
        with _planning:
            while len(_plans) >= KEPT:
                del _plans[next(iter(_plans))]
            _plans[key] = plan
    return plan


def _again(one: Sequential, own: Mapping[str, Any], options: Mapping[str, Any], known: Hashable) -> Repeats[Repeat] | None:
    """Return the calls that ``evaluate`` keeps of an expression."""
    schedule, limits = own.get("schedule", "auto"), (None, None)
    kind, target, convert, semiring = (options[name] for name in ("dtype", "target", "convert", "semiring"))
    known = known if is_word(schedule, "auto") else None
    return repeats_of(one.text, own.get("output_format"), schedule, kind, target, convert, semiring, limits, known)


def _key(option: Any) -> Any:
    return (dict, *option.items()) if type(option) is dict else option


def _free(ordered: Sequence[Sequential], options: Mapping[str, Any]) -> frozenset[str]:
    """Return the results that may be made together with others: nothing is said of how they are to be made."""
    if any(options.get(name) is not None for name in LIMITING) or options.get("target") != "cpu":
        return frozenset()
    shape: Mapping[str, int] = options.get("shape") or {}
    return frozenset(
        one.result
        for one in ordered
        if ((form := _of(options["output_format"], one.result)) is None or is_word(form, "dense"))
        and _of(options.get("output_pattern"), one.result) is None
        and is_word(_of(options["schedule"], one.result), "auto")
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
