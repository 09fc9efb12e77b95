"""Several expressions computed in order; later ones may read the results of earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from threading import Lock
from typing import Any

from .build.chain import Chain, chained
from .build.repeat import MISS, Repeat, Repeats
from .concrete.result_format import AUTO
from .errors import SparsetuneError
from .evaluate import repeats_of
from .frozen import frozen
from .native.team import thread_count
from .sequence import BY_RESULT, KEPT, Sequential, check_options, in_order, said_for, sequential
from .shared_products import computed_together, may_share
from .shared_scores import Known, Shared, known_operands, may_have_scores, with_scores
from .shown import is_word
from .storage.recalled import recalled
from .units import is_processor

OF_EACH = frozenset((*BY_RESULT, "shape"))
"""Options of which each expression gets only its own part."""

LIMITING = ("dtype", "memory_bound", "cache_share", "boundary")
"""Options with which expressions are neither rewritten nor computed together."""

SELDOM = ("shape", "memory_bound", "cache_share", "boundary", "output_pattern")
"""Options with which every call is planned anew."""

TELLING = ("output_format", "schedule", "dtype", "target", "convert", "semiring")
"""The other options on which a plan depends."""

_told = itemgetter(*TELLING)
_plans: dict[Hashable, _Plan] = {}
_planning = Lock()  # held while a plan is added to ``_plans``


@frozen(eq=False)
class _Step:
    """One expression of a sequence, with its own options.

    Attributes:
        one: the expression.
        options: those of ``OF_EACH`` that are given for it.
        again: a list with one item, its kept calls; None if the sequence is not kept.
        together: the kept calls that compute it together with later ones that share partial products with it.
    """

    one: Sequential
    options: Mapping[str, Any]
    again: list[Repeats[Repeat] | None]
    together: Repeats[Chain]


@frozen(eq=False)
class _Plan:
    """All of a call of ``evaluate_all`` that depends only on expressions, names and options, checked.

    Attributes:
        free: the results that may be computed in one pass together with others.
        untold: the results whose expressions may be rewritten to read a shared product; empty if nothing can be shared.
        scores: for operands met before, the rewritten expressions.
        chains: a list with one item, the kept calls of all steps together; None if there is one step or they do not fit together.
    """

    steps: tuple[_Step, ...]
    free: frozenset[str]
    untold: frozenset[str]
    scores: dict[tuple[Known, ...], Shared | None]
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
        options: the options of all expressions; those of ``BY_RESULT`` may be mappings by the name of the result.
        evidence: returns a value that changes when a lookup may find another schedule; None: no call is kept.
    """
    known = evidence() if evidence is not None else None
    plan = _kept_plan(expressions, operands, options, known) if evidence is not None else None
    if plan is None:
        plan = _plan(expressions, operands, options)
    alone = len(plan.steps) == 1
    available = dict(operands) if alone else {name: recalled(data) for name, data in operands.items()}
    if plan.untold and (shared := _with_scores(plan, available)) is not None:
        with suppress(SparsetuneError):  # the error is better raised for the expressions as they were written
            return _all_but_shared(plan, shared, available, compute, options, evidence)
    threads = options.get("threads")
    count: int | None = None
    if (chains := plan.chains[0]) is not None:
        count = thread_count(threads)
        made = chains.with_threads(available, count)
        if made is not MISS:
            return [made[step.one.result] for step in plan.steps]
    results, made, calls = list[Any](), dict[str, Any](), _Calls(chains is not None)
    for place, step in enumerate(plan.steps):
        one, again = step.one, step.again[0]
        if again is not None and count is None:
            count = thread_count(threads)
        if one.result in plan.free and one.result not in made:
            made |= _together(plan, place, available, options, count, calls)
        if one.result not in made:
            own = {name: available[name] for name in one.operands}
            result = again.with_threads(own, count) if again is not None and count is not None else MISS
            calls.add((one.result,), again, result is not MISS)
            if result is MISS:
                alike = {name: value for name, value in options.items() if name not in OF_EACH}
                result = compute(one.text, own, **alike, **step.options)
                if again is not None:
                    step.again[0] = _again(one, step.options, options, known)
            made[one.result] = result
        available[one.result] = made[one.result]
        results.append(made[one.result])
    if chains is not None and calls.come_again:
        chain = chained(calls.made)
        if chain is None:
            plan.chains[0] = None
        else:
            chains.keep(chain)
    return results


def _all_but_shared(
    plan: _Plan, shared: Shared, available: Mapping[str, Any], compute: Callable[..., Any], options: Mapping[str, Any],
    evidence: Callable[[], Hashable] | None,
) -> list[Any]:  # fmt: skip
    """Compute the rewritten expressions, and return their results without the shared products."""
    formats = {step.one.result: form for step in plan.steps if (form := step.options.get("output_format")) is not None}
    told = {**options, "output_format": {**formats, **dict(shared.formats)}}
    made = evaluate_all(shared.texts, dict(available), compute, told, evidence)
    new = {name for name, _ in shared.formats}
    return [result for text, result in zip(shared.texts, made, strict=True) if sequential(text).result not in new]


class _Calls:
    """The calls of a sequence, by the names of their results. If all of them are like earlier ones, they make a chain."""

    def __init__(self, come_again: bool) -> None:
        self.come_again = come_again
        self.made: list[tuple[tuple[str, ...], Repeats[Any]]] = []

    def add(self, names: tuple[str, ...], known: Repeats[Any] | None, is_known: bool) -> None:
        self.come_again = self.come_again and is_known
        if known is not None:
            self.made.append((names, known))


def _together(
    plan: _Plan, place: int, available: Mapping[str, Any], options: Mapping[str, Any], count: int | None, calls: _Calls
) -> dict[str, Any]:
    """Return the results of a step and of later ones that are computed in one pass with it; empty if it is better computed alone."""
    step = plan.steps[place]
    found: Any = step.together.with_threads(available, count) if count is not None else MISS
    is_known = found is not MISS
    if not is_known:
        rest = [other.one.assignment for other in plan.steps[place:]]
        found, call = computed_together(rest, plan.free, available, options.get("semiring"), options.get("threads"))
        if call is not None:
            step.together.keep(call)
    if found:
        calls.add(tuple(found), step.together, is_known)
    return found


def _plan(expressions: Sequence[str], operands: Mapping[str, Any], options: Mapping[str, Any]) -> _Plan:
    """Check a call and plan it. Raises ``ExpressionError`` if something does not fit."""
    ordered = in_order(expressions, operands, options.get("output_pattern"))
    check_options(ordered, options)
    untold = _untold(ordered, options)
    free = _dense(untold, options)
    if not may_share([one.assignment for one in ordered if one.result in free]):
        free = frozenset()
    if options.get("semiring") is not None or not may_have_scores([one.assignment for one in ordered], untold):
        untold = frozenset()
    return _Plan(tuple(_Step(one, _own(one, options), [None], Repeats()) for one in ordered), free, untold, {}, [None])


def _own(one: Sequential, options: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: said_for(options.get(name), one.result) for name in BY_RESULT}
    shape: Mapping[str, int] = options.get("shape") or {}
    own["shape"] = {index: extent for index, extent in shape.items() if index in one.indices} or None
    return {name: value for name, value in own.items() if value is not None}


def _kept_plan(expressions: Sequence[str], operands: Any, options: Mapping[str, Any], known: Hashable) -> _Plan | None:
    """Return the plan of a call, kept from an earlier like one if there is any; None for calls whose plans are not kept, because
    they cannot be hashed or have one of the options ``SELDOM``."""
    if type(expressions) not in (list, tuple) or type(operands) is not dict or any(options[name] is not None for name in SELDOM):
        return None
    told = tuple(map(_key, _told(options)))
    key = tuple(expressions), tuple(operands), told, known
    try:
        plan = _plans.get(key)
    except Exception:  # it cannot be hashed or compared; the full preparation of the call accepts or refuses it
        return None
    if plan is None:
        plan = _plan(expressions, operands, options)
        for step in plan.steps:
            step.again[0] = _again(step.one, step.options, options, known)
        if len(plan.steps) > 1 and all(step.again[0] is not None for step in plan.steps):
            plan.chains[0] = Repeats()
        with _planning:
            while len(_plans) >= KEPT:
                del _plans[next(iter(_plans))]
            _plans[key] = plan
    return plan


def _again(one: Sequential, own: Mapping[str, Any], options: Mapping[str, Any], known: Hashable) -> Repeats[Repeat] | None:
    """Return the kept calls of ``evaluate`` for an expression."""
    schedule, limits = own.get("schedule", "auto"), (None, None)
    kind, target, convert, semiring = (options[name] for name in ("dtype", "target", "convert", "semiring"))
    known = known if is_word(schedule, "auto") else None
    return repeats_of(one.text, own.get("output_format"), schedule, kind, target, convert, semiring, limits, known)


def _key(option: Any) -> Any:
    return (dict, *option.items()) if type(option) is dict else option


def _untold(ordered: Sequence[Sequential], options: Mapping[str, Any]) -> frozenset[str]:
    """Return the results whose computation may be rewritten, because no option says how they are to be computed."""
    if any(options.get(name) is not None for name in LIMITING) or not is_processor(options.get("target")):
        return frozenset()
    shape: Mapping[str, int] = options.get("shape") or {}
    return frozenset(
        one.result
        for one in ordered
        if not is_word(said_for(options["output_format"], one.result), AUTO)
        and said_for(options.get("output_pattern"), one.result) is None
        and is_word(said_for(options["schedule"], one.result), "auto")
        and not one.indices.intersection(shape)
        and one.result not in shape
    )


def _dense(untold: frozenset[str], options: Mapping[str, Any]) -> frozenset[str]:
    """Return the results that are dense."""
    forms = {result: said_for(options["output_format"], result) for result in untold}
    return frozenset(result for result, form in forms.items() if form is None or is_word(form, "dense"))


def _with_scores(plan: _Plan, available: Mapping[str, Any]) -> Shared | None:
    """Return expressions that compute once what occurs several times in those of a plan; None where that does not pay."""
    operands = known_operands(available)
    if operands is None:
        return None
    if operands not in plan.scores:
        formats = {step.one.result: step.options.get("output_format") for step in plan.steps}
        found = with_scores(tuple(step.one.assignment for step in plan.steps), plan.untold, formats, operands)
        if len(plan.scores) >= KEPT:
            plan.scores.clear()
        plan.scores[operands] = found
        return found
    return plan.scores[operands]
