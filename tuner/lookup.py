"""Run-time lookup: the schedule to use for an expression on these operands, from what was learned, and why.

What is known is weighed by the gain over the default that is to be expected, doubts taken off:

1. *exact*: a campaign on this machine decided for these very sizes and patterns, with this version, this compiler and these flags. Where
   one of these has changed, the record still counts as that of a similar input at distance 0, and ``tune`` tries its schedule again.
2. *similar*: the nearest inputs of the same kernel, formats, dtypes, target and threads on this machine, no farther away than
   ``SIMILAR_BOUND`` (``features.distance``). Every schedule that won on one of them is judged by what was measured of it on all of
   them, near ones counting more; the farther they are, the larger is the doubt. Where this machine knows none, those of a machine of the
   same kind that ship with the package (``shipped``) count, as if they were ``STRANGE`` farther away.
3. *model*: the static model's choice, where it expects a gain (``tuner.model``); beside similar inputs it is asked if the nearest is
   ``MODEL_ASKED_FROM`` away or more. Where no winner on these is convincing, what the model foretells and what the nearest campaign
   found are weighed by how sure each is.
4. *default*: unless something is expected to be ``prospects.LEAST_GAIN`` times as fast.

This module and what it imports need the standard library, numpy and the compiler only.
"""

from __future__ import annotations

import math
import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import DTypeLike

from ..compiler.concrete.affine import Boundary
from ..compiler.format import Format, parse_format
from ..compiler.native.machine import this_machine
from ..compiler.schedule.directives import Convert
from ..compiler.schedule.schedule import Schedule
from .features import by_features, distance
from .legality import usable
from .limits import make_limits
from .match import Match
from .model import CHOICE_SECONDS, Choice, choice_deadline, further_seconds, static_choice
from .problem import Problem
from .recorded_problem import recorded
from .recording import Recording, plain
from .records import Decision, Measurement
from .replay import keep_recording
from .resolve import make_problem
from .shares import USUAL_CHUNK, dynamic_excess, static_excess
from .shipped import shipped_decisions
from .urls import sqlite_path

if TYPE_CHECKING:
    from .prospects import Evidence

SIMILAR_BOUND = 2.0
"""Farthest that a known input may be away: all sizes differ by a factor of two and the lengths of fibres by about three."""

STRANGE = 0.6
"""The distance that another machine of the same kind is taken for."""

MODEL_ASKED_FROM = 0.75
"""Distance of the nearest known input from which on the static model is asked beside it."""

NEIGHBOURS = 5
"""Known inputs that are asked, the nearest ones."""

_REMEMBERED = 1024
_CUT_SHORT = "the static model stopped"


def look_up(
    url: str,
    expression: str,
    operands: Mapping[str, Any],
    output_format: Format | str | None,
    target: str,
    threads: int | None,
    arch: str | None,
    memory_bound: float | None,
    cache_share: float | None,
    semiring: tuple[str, str] | None,
    dtype: DTypeLike | None,
    shape: Mapping[str, Any] | None,
    boundary: Boundary,
    like: str | None,
) -> tuple[Match, bool]:
    """Return the schedule for operands from the database at a URL, and whether the same will be found for others that look like them.

    Args:
        like: digest of the kind of question under which a recording of the choice is kept; None: none is.

    Raises:
        TuningError, SparsetuneError, BuildError: as ``asking.lookup``, whose arguments these are.
    """
    limits = make_limits(memory_bound, cache_share)
    problem = make_problem(expression, operands, output_format, target, threads, "", shape, arch, limits, semiring, dtype, boundary)
    recording = None if like is None or problem.is_compound else Recording()
    match = lookup_in(url, problem, recording)
    is_lasting = _CUT_SHORT not in match.note and not _rests_on_values(problem, match.schedule)
    if like is not None and recording is not None and recording.is_whole and recording.steps and is_lasting:
        keep_recording(like, recording, match)
    return match, is_lasting


def _rests_on_values(problem: Problem, schedule: Schedule) -> bool:
    """Return whether a schedule is right for some operands only: it stores half of a symmetric matrix, or narrow coordinates."""
    conversions = (one for one in schedule.directives if isinstance(one, Convert))
    wanted = [parse_format(one.format, len(problem.formats[one.access.tensor])) for one in conversions]
    return any(one.plain is not one for one in wanted)


def lookup_in(url: str, problem: Problem, recording: Recording | None = None) -> Match:
    """Return the schedule for a problem from the database at a URL, and record how it is chosen where the static model alone decides."""
    path = sqlite_path(url)
    if path is not None and not os.path.exists(os.path.expanduser(path)):
        return lookup_problem(problem, NOTHING, recording=recording)
    from .database import open_database  # of which a lookup without a database needs nothing

    with open_database(url, read_only=True) as store:
        return lookup_problem(problem, store, recording=recording)


class _Nothing:
    """A database without records."""

    def decisions(self, **_filters: Any) -> Iterable[Decision]:
        return ()

    def measurements(self, **_filters: Any) -> Iterable[Measurement]:
        return ()


NOTHING = _Nothing()


def lookup_problem(
    problem: Problem, store: Evidence, shipped: Sequence[Decision] | None = None, recording: Recording | None = None
) -> Match:
    """Return the schedule for a problem from an open database, or part of one, and from what ships (None: all of it)."""
    note, known = "", known_inputs(problem, store)
    exact = next((decision for away, decision in known if away == 0.0), None)
    if exact is not None:
        from .staleness import staleness, unaltered  # of which a lookup that knows no such input needs nothing

        schedule = unaltered(problem, exact)
        if schedule is None:
            schedule = usable(problem, exact.schedule)
        note = "" if schedule is None else staleness(problem, exact, schedule)
        if schedule is not None and not note:
            return Match(schedule, "exact", exact.seconds, 0.0)
    if shipped is None:
        shipped = shipped_decisions(problem.workload)
    found = _by_evidence(problem, store, known, shipped, None if known else recording)
    return replace(found, note="; ".join(filter(None, (note, found.note))))


def known_inputs(problem: Problem, store: Evidence) -> list[tuple[float, Decision]]:
    """Return the latest decision for every input of this workload with its distance, nearest first."""
    workload = problem.workload
    limits = problem.limits.given
    found = (decision for decision in store.decisions(workload=workload.key) if decision.workload == workload)  # keys can be out of date
    told = [decision for decision in found if _searched(decision) in ({}, limits)]
    if told:
        from .environment import code_version  # of which a lookup without records needs nothing

        version = code_version()
        told.sort(key=lambda decision: (decision.code == version, _searched(decision) == limits))
    latest = {decision.input.key: decision for decision in told}
    near = [(distance(problem.input, decision.input), decision) for decision in latest.values()]
    return sorted(near, key=lambda pair: (pair[0], pair[1].input.key))


def _searched(decision: Decision) -> dict[str, Any]:
    """Return the limits of a campaign; the schedule of a campaign without limits is used wherever it keeps the present ones."""
    return {name: decision.policy[name] for name in ("memory_bound", "cache_share") if name in decision.policy}


def _by_evidence(
    problem: Problem,
    store: Evidence,
    known: list[tuple[float, Decision]],
    shipped: Sequence[Decision],
    recording: Recording | None,
) -> Match:
    """Return what is expected to gain most, doubts taken off: winners on similar inputs of this machine, where there are none those that
    ship, and the model's choice where the nearest of these is far away."""
    near = [(away, decision) for away, decision in known if away <= SIMILAR_BOUND][:NEIGHBOURS]
    strange = 0.0 if near else STRANGE
    near = near or shipped_inputs(problem, shipped)[:NEIGHBOURS]
    if not near:
        return _without_evidence(problem, shipped, recording)
    from .prospects import most_promising  # of which a lookup that knows no input near this one needs nothing

    choice, note = _model_choice(problem) if near[0][0] + strange > MODEL_ASKED_FROM else (None, "")
    return most_promising(problem, store, near, strange, choice, note)


def shipped_inputs(problem: Problem, shipped: Sequence[Decision]) -> list[tuple[float, Decision]]:
    """Return what ships of a problem's workload from machines of this kind, within ``SIMILAR_BOUND``, nearest first."""
    workload, machine = problem.workload, this_machine()
    same = [
        (by_features(problem.input, decision.input), decision) for decision in shipped
        if replace(decision.workload, machine=workload.machine) == workload and not _searched(decision)
        and decision.environment.get("system") == machine.system and decision.environment.get("vector_bytes") == machine.vector_bytes
    ]  # fmt: skip
    return sorted((pair for pair in same if pair[0] <= SIMILAR_BOUND), key=lambda pair: (pair[0], pair[1].input.key))


def _without_evidence(problem: Problem, shipped: Sequence[Decision], recording: Recording | None) -> Match:
    if recording is not None:
        shipped_inputs(recorded(problem, recording), shipped)  # that none is near belongs to the recording
    choice, note = _model_choice(problem, recording)
    return Match(Schedule(), "default", note=note) if choice is None else Match(choice.schedule, "model", note=note)


def _model_choice(problem: Problem, recording: Recording | None = None) -> tuple[Choice | None, str]:
    """Return the model's choice and a note on it.

    It takes milliseconds, ``CHOICE_SECONDS`` and more for products of many factors, so inputs of the same kernel and about the same
    sizes share one.
    """
    stored = (operand for operand in problem.operands.values() if not operand.format.is_dense)
    threads = problem.threads
    excesses = (
        (static_excess(one, threads), static_excess(one, threads, True), dynamic_excess(one, USUAL_CHUNK, threads)) for one in stored
    )
    shares = tuple(round(4 * math.log2(excess)) for found in excesses for excess in found)
    key = (problem.workload.key, problem.limits, shares, tuple((name, round(value)) for name, value in problem.input.features))
    if key not in _modelled:
        seconds = CHOICE_SECONDS + further_seconds(problem)
        deadline = choice_deadline(seconds)
        choice = static_choice(problem if recording is None else recorded(problem, recording), deadline)
        choice = None if choice is None else replace(choice, gain=plain(choice.gain))
        note = f"{_CUT_SHORT} after {seconds:g} s, before it had seen all candidates" if deadline.cut else ""
        text = "" if choice is None else problem.to_canonical(choice.schedule)
        _modelled[key] = choice, text, note
        while len(_modelled) > _REMEMBERED:
            _modelled.popitem(last=False)
        return None if choice is None else replace(choice, schedule=problem.from_canonical(text)), note  # legal; named as later
    if recording is not None:
        recording.is_whole = False  # nothing was recorded of how this was chosen
    choice, text, note = _modelled[key]
    schedule = None if choice is None else usable(problem, text)
    return None if choice is None or schedule is None else replace(choice, schedule=schedule), note


_modelled: OrderedDict[tuple[Any, ...], tuple[Choice | None, str, str]] = OrderedDict()
