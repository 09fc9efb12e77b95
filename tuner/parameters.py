"""The open places of a template, filled for the operands at hand: how iterations are shared among threads, and what is prefetched.

The search tries them all. Where nothing is measured they are chosen here, from the pattern and a few constants of the machine: static
shares where rows are even, else chunks of the size that costs least; prefetches of what lies outside the caches (``ahead``); vectors of
half the width where known extents fit these better (``widths``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler.concrete.provenance import Provenance
from ..compiler.frozen import frozen
from ..compiler.native.machine import this_machine
from ..compiler.schedule import directives as d
from ..compiler.schedule.addresses import chain
from ..compiler.schedule.dependence import graph_of
from ..compiler.schedule.schedule import Schedule
from ..compiler.space.candidates import Candidate
from ..compiler.space.decorations import BUILD, UNROLL, shared_loop, shares_pattern, stream_of, vector_of
from ..compiler.space.situation import Situation, result_leaf
from ..compiler.space.template import Hole, Values
from ..compiler.storage.tensor import Tensor
from ..compiler.units import UNITS
from .ahead import fibres_ahead, rows_ahead
from .constants import Constants, machine_constants
from .facts import segments, size
from .gathers import begun_by, chosen_by, stored_reads
from .legality import applied
from .prefetches import LEAST_GAIN
from .problem import Problem
from .row_ends import UNROLLED, alone_over_batched
from .shares import chunks, dynamic_excess, largest_chunk, static_excess
from .widths import halved_build

CHUNKING = "chunking"
"""The hole that says how a parallel loop is shared among threads."""

_ELSEWHERE = 1.03  # time of a loop whose rows another thread had the last time, over that of one that keeps its rows
_GIVEN = 1.08  # the same for a way of sharing of which nothing is known here, over even shares
_AS_WRITTEN = 1.02  # factor on the time of a sharing that a template prescribes, so that it is chosen only for a clear gain
_CHUNKS = 2  # least chunks a thread: with fewer, a thread with one more than others works much longer
_FEW_ROWS = 2**9  # most rows with which a call takes no longer than looking for a better schedule; their ends are not looked at
_NEAR_SHARE = 0.25  # share of the last level of cache up to which entries come as fast as short rows are summed


@frozen
class Settled:
    """A template with its places filled, and the factor by which that changes the cost of the model."""

    schedule: Schedule
    factor: float


def settled(problem: Problem, candidate: Candidate, cost: float) -> Settled:
    """Fill the open places of a candidate for a problem; ``cost``: operations of one thread, as the model counts them."""
    graph, constants = graph_of(candidate.program.relations), machine_constants()
    values, seconds = dict(candidate.template.usual), cost * constants.operation
    factor = 1.0 if CHUNKING in values else _as_given(problem, candidate, graph, seconds)
    asked: list[str] = []
    for hole in sorted(candidate.template.holes, key=_turn):
        if hole.name == CHUNKING:
            values[hole.name], times = _shared_out(problem, candidate, hole, graph, seconds)
            factor *= times
        elif isinstance(hole.choices[-1], d.Unroll) and values.get(vector_of(hole.name.removeprefix(UNROLL)), hole) is None:
            values[hole.name], times = _unrolled(problem, candidate, hole, graph, values)
            factor *= times
        elif isinstance(hole.usual, d.Prefetch):
            values[hole.name], times = rows_ahead(problem, candidate, hole, graph, cost, asked)
            factor *= times or _asks_for_less(hole, hole.usual, values, constants)
        elif any(isinstance(choice, d.Prefetch) for choice in hole.choices):
            values[hole.name], times = prefetch, _ = fibres_ahead(problem, candidate, hole, graph)
            factor *= times
            asked += [] if prefetch is None else [prefetch.access.tensor]
        elif hole.name == BUILD and constants.halved * LEAST_GAIN <= 1:
            stepped = {index for access, _ in stored_reads(problem) for index in access.indices}
            if (build := halved_build(problem, candidate, hole, stepped)) is not None:
                values[hole.name] = build
                factor *= constants.halved
    return Settled(candidate.template.fill(values), factor)


def _turn(hole: Hole) -> int:
    """Return when a hole is filled: first who has which iterations; prefetches of entries after those of the fibres around them."""
    return 0 if hole.name == CHUNKING else 2 if isinstance(hole.usual, d.Prefetch) else 1


def _shared_out(problem: Problem, candidate: Candidate, hole: Hole, graph: Provenance, seconds: float) -> tuple[Any, float]:
    """Return the way to share a parallel loop among threads that takes the least time, and that time over the time of even shares."""
    loops = chain(candidate.program.statement, ())
    tensor = next((found for _, found in begun_by(problem, graph.originals(loops[0]))), None) if loops else None
    if problem.threads < 2:
        return hole.usual, 1.0
    if tensor is None:
        return _in_chunks(problem, candidate, hole, graph), 1.0
    apart = _is_apart(candidate.template.fill().directives)
    times = {choice: _times(choice, tensor, problem.threads, seconds, apart) for choice in hole.choices}
    found = {choice: one for choice, one in times.items() if one is not None}
    best = min(found, key=found.__getitem__, default=hole.usual)
    return best, found.get(best, 1.0)


def _in_chunks(problem: Problem, candidate: Candidate, hole: Hole, graph: Provenance) -> Any:
    """Return how to share a loop whose iterations are unknown: in the usual chunks if it has enough iterations, else evenly."""
    shared = (one for one in candidate.template.fill().directives if isinstance(one, d.Parallelize) and UNITS[one.unit].is_thread)
    lengths = [graph.constant_extent(one.index, problem.extents) for one in shared]
    match hole.usual:
        case (_, int(chunk)) if any(length is not None and length < _CHUNKS * problem.threads * chunk for length in lengths):
            return "static", None
        case usual:
            return usual


def _as_given(problem: Problem, candidate: Candidate, graph: Provenance, seconds: float) -> float:
    """Return the time of the sharing that a template prescribes over the time of even shares."""
    directives = candidate.template.fill().directives
    if problem.threads < 2 or shared_loop(directives) is None:
        return 1.0
    given = _given_share(problem, directives, graph)
    times = None if given is None else _times(*given, problem.threads, seconds, _is_apart(directives))
    return _GIVEN if times is None else times * _AS_WRITTEN


def largest_share(problem: Problem, schedule: Schedule) -> float | None:
    """Return the work of the thread that has most to do over the mean, as far as the pattern tells it; None where it does not.

    Threads get even stretches of the outermost loop, and those that are done take over pieces of others. Where threads take chunk after
    chunk the value is about 1.
    """
    if problem.threads < 2 or shared_loop(schedule.directives) is None:
        return None
    given = _given_share(problem, schedule.directives, graph_of(applied(problem, schedule).relations))
    match given:
        case ("static", None), tensor:
            return static_excess(tensor, problem.threads, _is_apart(schedule.directives))
        case ("dynamic" | "guided", int(chunk)), tensor:
            return max(1.0, problem.threads * largest_chunk(tensor, chunk))
    return None


def _is_apart(directives: Sequence[d.Directive]) -> bool:
    """Return whether each thread has results of its own, which are put together in the end."""
    shared = shared_loop(directives)
    return shared is not None and shared.race in ("temporary", "parallel_reduction")


def _given_share(problem: Problem, directives: Sequence[d.Directive], graph: Provenance) -> tuple[tuple[str, int | None], Tensor] | None:
    """Return how directives share a loop among threads, in iterations of the first level of the tensor that it goes through."""
    shared = shared_loop(directives)
    if shared is None or any(isinstance(one, d.Pos) for one in directives):
        return None
    tensor = next((found for _, found in begun_by(problem, graph.originals(shared.index))), None)
    if tensor is None:
        return None
    rows = next((one.factor for one in directives if isinstance(one, d.Split) and one.outer == shared.index), 1)
    return (shared.chunking or "static", None if shared.chunk is None else shared.chunk * rows), tensor


def _times(choice: Any, tensor: Tensor, threads: int, seconds: float, apart: bool) -> float | None:
    """Return the time of a way to share the outermost loop over the time of perfectly even shares; None where it is not known."""
    match choice:
        case ("static", None):
            return static_excess(tensor, threads, apart)
        case ("dynamic", int(chunk)):
            taking = chunks(tensor, chunk) * machine_constants().chunk / threads / max(seconds, 1e-9)
            return _ELSEWHERE * dynamic_excess(tensor, chunk, threads) + taking
    return None


def _unrolled(
    problem: Problem, candidate: Candidate, hole: Hole, graph: Provenance, values: Values
) -> tuple[d.Unroll | None, float]:
    """Return how to unroll a sum over rows of stored entries, and its time over that of batches, which are the default of short rows
    (``passes.batches``); None and 1 where that gains nothing."""
    unrolled = next((one for one in hole.choices if isinstance(one, d.Unroll) and one.factor == UNROLLED), None)
    if unrolled is None:
        return None, 1.0
    stored = chosen_by(problem, graph.originals(unrolled.index))
    rows = [(tensor, level) for _, tensor, level in stored if segments(tensor, level)]
    if len(rows) != 1 or not _matter_ends(*rows[0]):
        return None, 1.0
    remembered = machine_constants().surprises * _rememberers(problem, candidate, rows[0][0], values)
    times = alone_over_batched(*rows[0], _are_joined(problem, candidate), remembered)
    return (unrolled, times) if times * LEAST_GAIN < 1 else (None, 1.0)


def _rememberers(problem: Problem, candidate: Candidate, tensor: Tensor, values: Values) -> float:
    """Return how many threads with equal work remember as many ends of rows as those that share them, from call to call. They are threads
    that have the same rows again: a thread with more work than others leaves some to them, and chunks go to any thread."""
    directives = candidate.template.fill(values).directives
    shared = shared_loop(directives)
    if problem.threads < 2 or shared is None or shared.chunk is not None:
        return 1.0
    return problem.threads / static_excess(tensor, problem.threads, True)


def _are_joined(problem: Problem, candidate: Candidate) -> bool:
    """Return whether one loop goes through the rows of all parents: each row is summed up to an entry of a result with their pattern."""
    formats, target = problem.concretized().formats, result_leaf(candidate.program)[1].target
    situation = Situation(candidate.program, formats, problem.extents)
    return not formats[target.tensor].is_dense and shares_pattern(candidate.program, situation)


def _matter_ends(tensor: Tensor, level: int) -> bool:
    """Return whether the ends of rows decide how long a sum takes: there are more than a few, and their entries are near."""
    return segments(tensor, level) >= _FEW_ROWS and size(tensor) <= _NEAR_SHARE * this_machine().last_level_cache


def _asks_for_less(hole: Hole, prefetch: d.Prefetch, values: Values, constants: Constants) -> float:
    """Return the time of a vectorised sum over stored entries without prefetches over its default time: by default such a sum prefetches
    its entries, wherever they lie (``passes.sums``)."""
    loop = hole.name.removeprefix(stream_of(prefetch.access.tensor, ""))
    return constants.stream_hit if values.get(vector_of(loop)) is not None else 1.0
