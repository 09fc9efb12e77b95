"""The open places of a template, filled for the operands at hand: how iterations are shared among threads, and what is prefetched.

The search tries them all. Where nothing is measured they are chosen here, from the pattern and a few constants of the machine: static
shares where rows are even, else chunks of the size that costs least; prefetches only of what lies outside the caches, since elsewhere they
cost instructions and gain nothing; vectors of half the width where known extents fit these better (``widths``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler.concrete.loop_tag import FAR_AHEAD
from ..compiler.concrete.provenance import Provenance
from ..compiler.frozen import frozen
from ..compiler.native.machine import this_machine
from ..compiler.notation.nodes import accesses
from ..compiler.schedule import directives as d
from ..compiler.schedule.addresses import at, chain, follow, leaves
from ..compiler.schedule.dependence import graph_of
from ..compiler.schedule.schedule import Schedule
from ..compiler.space.candidates import Candidate
from ..compiler.space.decorations import BUILD, UNROLL, shares_pattern, stream_of, vector_of
from ..compiler.space.situation import Situation, result_leaf
from ..compiler.space.template import Hole, Values
from ..compiler.storage.tensor import Tensor
from ..compiler.units import UNITS
from .constants import Constants, machine_constants
from .facts import position_count, segments, size
from .gathers import begun_by, chosen_by, gathers_from_afar, is_summed, level_bytes, missed_share, stored_reads, waits_beside
from .legality import applied
from .prefetches import LINE, Gathered, distance_ahead, own_share, time_of_prefetches
from .problem import Problem
from .row_ends import UNROLLED, alone_over_batched
from .shares import chunks, dynamic_excess, largest_chunk, static_excess
from .widths import halved_build

CHUNKING = "chunking"
"""The hole that says how a parallel loop is shared among threads."""

_LEAST_GAIN = 1.02  # speed that a prefetch or sums one by one have to promise, over that without them
_ELSEWHERE = 1.03  # time of a loop whose rows another thread had the last time, over that of one that keeps its rows
_GIVEN = 1.08  # the same for a way of sharing of which nothing is known here, over even shares
_AS_WRITTEN = 1.02  # factor on the time of a sharing that a template prescribes, so that it is chosen only for a clear gain
_CHUNKS = 2  # least chunks a thread: with fewer, a thread with one more than others works much longer
_FEW_ROWS = 2**9  # most rows with which a call takes no longer than looking for a better schedule; their ends are not looked at
_NEAR_SHARE = 0.25  # share of the last level of cache up to which entries come as fast as short rows are summed
_CACHE_SHARE = 0.5  # share of the last level of cache that one operand has to itself
_SUMMED_SHARE = 0.5  # share of the second level of cache beyond which sums over rows take as long as over rows from outside, as measured


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
    for hole in sorted(candidate.template.holes, key=lambda hole: hole.name != CHUNKING):  # first who has which iterations
        if hole.name == CHUNKING:
            values[hole.name], times = _shared_out(problem, candidate, hole, graph, seconds)
            factor *= times
        elif isinstance(hole.choices[-1], d.Unroll) and values.get(vector_of(hole.name.removeprefix(UNROLL)), hole) is None:
            values[hole.name], times = _unrolled(problem, candidate, hole, graph, values)
            factor *= times
        elif isinstance(hole.usual, d.Prefetch):
            values[hole.name], times = _prefetched(problem, candidate, hole, graph, cost)
            factor *= times or _asks_for_less(hole, hole.usual, values, constants)
        elif hole.name == BUILD and constants.halved * _LEAST_GAIN <= 1:
            stepped = {index for access, _ in stored_reads(problem) for index in access.indices}
            if (build := halved_build(problem, candidate, hole, stepped)) is not None:
                values[hole.name] = build
                factor *= constants.halved
    return Settled(candidate.template.fill(values), factor)


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
    if problem.threads < 2 or _shared_loop(directives) is None:
        return 1.0
    given = _given_share(problem, directives, graph)
    times = None if given is None else _times(*given, problem.threads, seconds, _is_apart(directives))
    return _GIVEN if times is None else times * _AS_WRITTEN


def largest_share(problem: Problem, schedule: Schedule) -> float | None:
    """Return the work of the thread that has most to do over the mean, as far as the pattern tells it; None where it does not.

    Threads get even stretches of the outermost loop, and those that are done take over pieces of others. Where threads take chunk after
    chunk the value is about 1.
    """
    if problem.threads < 2 or _shared_loop(schedule.directives) is None:
        return None
    given = _given_share(problem, schedule.directives, graph_of(applied(problem, schedule).relations))
    match given:
        case ("static", None), tensor:
            return static_excess(tensor, problem.threads, _is_apart(schedule.directives))
        case ("dynamic" | "guided", int(chunk)), tensor:
            return max(1.0, problem.threads * largest_chunk(tensor, chunk))
    return None


def _shared_loop(directives: Sequence[d.Directive]) -> d.Parallelize | None:
    """Return the directive that gives a loop to threads."""
    return next((one for one in directives if isinstance(one, d.Parallelize) and UNITS[one.unit].is_thread), None)


def _is_apart(directives: Sequence[d.Directive]) -> bool:
    """Return whether each thread has results of its own, which are put together in the end."""
    shared = _shared_loop(directives)
    return shared is not None and shared.race in ("temporary", "parallel_reduction")


def _given_share(problem: Problem, directives: Sequence[d.Directive], graph: Provenance) -> tuple[tuple[str, int | None], Tensor] | None:
    """Return how directives share a loop among threads, in iterations of the first level of the tensor that it goes through."""
    shared = _shared_loop(directives)
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
    return (unrolled, times) if times * _LEAST_GAIN < 1 else (None, 1.0)


def _rememberers(problem: Problem, candidate: Candidate, tensor: Tensor, values: Values) -> float:
    """Return how many threads with equal work remember as many ends of rows as those that share them, from call to call. They are threads
    that have the same rows again: a thread with more work than others leaves some to them, and chunks go to any thread."""
    directives = candidate.template.fill(values).directives
    shared = _shared_loop(directives)
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


def _prefetched(
    problem: Problem, candidate: Candidate, hole: Hole, graph: Provenance, cost: float
) -> tuple[d.Prefetch | None, float | None]:
    """Return the prefetch of a hole, and the time with it over the time without; None for each where it is not worth it."""
    assert isinstance(hole.usual, d.Prefetch)
    name = hole.usual.access.tensor
    operand, originals = problem.operand(name), graph.originals(hole.usual.index)
    if operand is None:
        return None, None
    if not operand.format.is_dense:  # its entries are read in order, so hardware fetches them ahead too
        begun = _comes_in_order(problem, candidate, hole.usual, graph)
        far = next((one for one in hole.choices if isinstance(one, d.Prefetch) and one.distance >= FAR_AHEAD), None)
        if begun and far is not None and size(operand) > level_bytes(2) and gathers_from_afar(problem, originals):
            return far, machine_constants().stream_miss
        return (hole.usual, 1.0) if begun and size(operand) > _CACHE_SHARE * this_machine().last_level_cache else (None, None)
    places = _chosen_inside(problem, candidate, hole.usual, originals)
    if not places:
        return None, None
    each = _each(problem, candidate, places, cost)
    asked = [one.usual for one in candidate.template.holes if isinstance(one.usual, d.Prefetch) and one != hole]
    beside = [one.access.tensor for one in asked if (one.path, one.index) == (hole.usual.path, hole.usual.index)]
    found = _gathered(problem, name, originals, places, each)
    together = found.together(_gathered(problem, other, originals, places, each) for other in beside)
    if together.times * _LEAST_GAIN > 1:
        return None, None
    choices = {choice.distance: choice for choice in hole.choices if isinstance(choice, d.Prefetch)}
    return choices[distance_ahead(tuple(choices), hole.usual.distance, together, level_bytes(1))], together.times


def _comes_in_order(problem: Problem, candidate: Candidate, prefetch: d.Prefetch, graph: Provenance) -> bool:
    """Return whether the entries that a prefetch asks for are read once, as they are stored: the nest reads them in fibres of the outermost
    loop. Fibres that another operand's coordinates choose are read again and again, so that most come from a cache."""
    statement = candidate.program.statement
    loops, stored = chain(statement, ()), problem.operand(prefetch.access.tensor)
    if not loops or stored is None or problem.is_compound:
        return False
    first, last = stored.format.order[0], stored.format.order[-1]
    nest = at(statement, follow(statement, prefetch.path or ()))
    reads = [read for _, leaf in leaves(nest) for read in accesses(leaf.value) if read.tensor == prefetch.access.tensor and read.is_plain]
    ends = [read for read in reads if read.subscripts[last].index in graph.originals(prefetch.index)]
    return any(read.subscripts[first].index in graph.originals(loops[0]) for read in ends)


def _chosen_inside(
    problem: Problem, candidate: Candidate, prefetch: d.Prefetch, originals: tuple[str, ...]
) -> list[tuple[str, Tensor, int]]:
    """Return where coordinates of some indices are stored, as in ``chosen_by``, of the operands that the nest of a prefetch reads: in nests
    that read none, rows come in order."""
    statement, sources = candidate.program.statement, problem.concretized().sources
    nest = at(statement, follow(statement, prefetch.path or ()))
    inside = {sources.get(read.tensor, read.tensor) for _, leaf in leaves(nest) for read in accesses(leaf.value)}
    return [place for place in chosen_by(problem, originals) if any(problem.operand(read) is place[1] for read in inside)]


def _each(problem: Problem, candidate: Candidate, places: Sequence[tuple[str, Tensor, int]], cost: float) -> float:
    """Return the operations of a loop for each row that it gathers: those on all that belongs to a fibre of a tensor, over its entries. 0
    for matrices: all their work is on the rows themselves."""
    rows = max((position_count(tensor, level) for _, tensor, level in places if level > 1), default=0.0)
    sharers = 1 if _shared_loop(candidate.template.fill().directives) is None else problem.threads
    return cost * sharers / rows if rows else 0.0


def _gathered(
    problem: Problem, name: str, originals: tuple[str, ...], places: Sequence[tuple[str, Tensor, int]], each: float
) -> Gathered:
    """Return what prefetching an operand's rows, which coordinates stored in some places choose, makes of the time of their loop; ``each``:
    operations of the loop for each row."""
    operand = problem.operand(name)
    if operand is None or not operand.format.is_dense:
        return Gathered(0.0, 0.0, 0.0, 1.0)
    summed = is_summed(problem, name, originals)
    second = level_bytes(2) if not summed else int(_SUMMED_SHARE * level_bytes(2))
    levels = level_bytes(1), second, int(_CACHE_SHARE * this_machine().last_level_cache)
    near, outside, far = (
        max((missed_share(problem, operand, name, size, *where) for where in places), default=0.0) for size in levels
    )
    beside = tuple(max((waits_beside(problem, name, size, *where[1:]) for where in places), default=0.0) for size in levels[:2])
    near, far = max(near, outside), min(far, outside)
    read = (access for access in accesses(problem.assignment.value) if access.tensor == name)
    rows = max((problem.extents[index] for access in read for index in access.indices if index in originals), default=1)
    row = size(operand) / max(rows, 1)
    gains = machine_constants().prefetched(summed, row)
    times = time_of_prefetches(near, outside, far, gains, own_share(row / operand.dtype.itemsize, each), beside)
    return Gathered(near, row, near * max(row, LINE), times)
