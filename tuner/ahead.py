"""Which rows and entries a candidate prefetches, and how far ahead: those that lie outside the caches, since elsewhere prefetches cost
instructions and gain nothing."""

from __future__ import annotations

from collections.abc import Sequence

from ..compiler.concrete.loop_tag import FAR_AHEAD
from ..compiler.concrete.provenance import Provenance
from ..compiler.native.machine import this_machine
from ..compiler.notation.nodes import accesses
from ..compiler.schedule import directives as d
from ..compiler.schedule.addresses import at, chain, follow, leaves
from ..compiler.space.candidates import Candidate
from ..compiler.space.decorations import shared_loop
from ..compiler.space.template import Hole
from ..compiler.storage.tensor import Tensor
from .constants import machine_constants
from .facts import position_count, size
from .gathers import chosen_by, gathers_from_afar, is_summed, level_bytes, missed_share, room, waits_beside
from .prefetches import LEAST_GAIN, LINE, Gathered, distance_ahead, own_share, time_of_fibre_prefetches, time_of_prefetches
from .problem import Problem

CACHE_SHARE = 0.5
"""Share of the last level of cache that one operand has to itself."""

_SUMMED_SHARE = 0.5  # share of the second level of cache beyond which sums over rows take as long as over rows from outside, as measured


def rows_ahead(
    problem: Problem, candidate: Candidate, hole: Hole, graph: Provenance, cost: float, asked: Sequence[str]
) -> tuple[d.Prefetch | None, float | None]:
    """Return the prefetch of what stored entries choose, or of these, and the time with it over the time without; None for each where it is
    not worth it. ``asked``: operands whose rows loops around it prefetch."""
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
        return (hole.usual, 1.0) if begun and size(operand) > CACHE_SHARE * this_machine().last_level_cache else (None, None)
    places = _chosen_inside(problem, candidate, hole.usual, originals)
    if not places:
        return None, None
    each = _each(problem, candidate, places, cost)
    usual = [one.usual for one in candidate.template.holes if isinstance(one.usual, d.Prefetch) and one != hole]
    beside = [one.access.tensor for one in usual if (one.path, one.index) == (hole.usual.path, hole.usual.index)]
    found = _gathered(problem, name, originals, places, each, asked)
    together = found.together(_gathered(problem, other, originals, places, each, asked) for other in beside)
    if together.times * LEAST_GAIN > 1:
        return None, None
    if asked:  # the rows of fibres are a part of what can be under way
        return hole.usual, together.times
    choices = {choice.distance: choice for choice in hole.choices if isinstance(choice, d.Prefetch)}
    return choices[distance_ahead(tuple(choices), hole.usual.distance, together, level_bytes(1))], together.times


def fibres_ahead(problem: Problem, candidate: Candidate, hole: Hole, graph: Provenance) -> tuple[d.Prefetch | None, float]:
    """Return the prefetch of dense rows that the fibres of a tensor choose, and the time with it over the time without; None and 1 where it
    is not worth it. It is not for rows of one line: asking for it takes as long as loading it."""
    choices = {choice.distance: choice for choice in hole.choices if isinstance(choice, d.Prefetch)}
    prefetch = choices[min(choices)]
    name, originals = prefetch.access.tensor, graph.originals(prefetch.index)
    operand, places = problem.operand(name), _chosen_inside(problem, candidate, prefetch, originals)
    if operand is None or not operand.format.is_dense or not places or (row := _row(problem, name, operand, originals)) <= LINE:
        return None, 1.0
    near, outside, far = _shares(problem, name, operand, places, _levels(False), together=True)
    times = time_of_fibre_prefetches(near, outside, far)
    if times * LEAST_GAIN > 1:
        return None, 1.0
    return choices[distance_ahead(tuple(choices), min(choices), Gathered(near, row, near * row, times), level_bytes(1))], times


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
    sharers = 1 if shared_loop(candidate.template.fill().directives) is None else problem.threads
    return cost * sharers / rows if rows else 0.0


def _gathered(
    problem: Problem, name: str, originals: tuple[str, ...], places: Sequence[tuple[str, Tensor, int]], each: float, asked: Sequence[str]
) -> Gathered:
    """Return what prefetching an operand's rows, which coordinates stored in some places choose, makes of the time of their loop; ``each``:
    operations of the loop for each row; ``asked``: operands whose rows loops around it prefetch."""
    operand = problem.operand(name)
    if operand is None or not operand.format.is_dense:
        return Gathered(0.0, 0.0, 0.0, 1.0)
    summed, row = is_summed(problem, name, originals), _row(problem, name, operand, originals)
    levels = _levels(summed)
    near, outside, far = _shares(problem, name, operand, places, levels, together=bool(asked))
    beside = tuple(max((waits_beside(problem, name, size, *where[1:], asked) for where in places), default=0.0) for size in levels[:2])
    gains = machine_constants().prefetched(summed, row)
    times = time_of_prefetches(near, outside, far, gains, own_share(row / operand.dtype.itemsize, each), beside)
    return Gathered(near, row, near * max(row, LINE), times)


def _levels(summed: bool) -> tuple[int, int, int]:
    """Return the bytes of each level of cache that rows may fill; ``summed``: whether each is summed up."""
    second = level_bytes(2) if not summed else int(_SUMMED_SHARE * level_bytes(2))
    return level_bytes(1), second, int(CACHE_SHARE * this_machine().last_level_cache)


def _shares(
    problem: Problem, name: str, operand: Tensor, places: Sequence[tuple[str, Tensor, int]], levels: tuple[int, int, int], together: bool
) -> tuple[float, float, float]:
    """Return which shares of an operand's rows come from outside each level of cache; ``together``: which rows of other operands share.
    Where the loop waits for the rows of fibres anyway, that others come from a bit farther is not worth asking for them."""

    def share(cache: int) -> float:
        rooms = ((where, room(problem, operand, name, cache, *where) if together else cache) for where in places)
        return max((missed_share(problem, operand, name, left, *where) for where, left in rooms), default=0.0)

    near, outside, far = map(share, levels)
    return max(near, outside), outside, min(far, outside)


def _row(problem: Problem, name: str, operand: Tensor, originals: tuple[str, ...]) -> float:
    """Return the bytes of an operand that one coordinate of some indices chooses."""
    read = (access for access in accesses(problem.assignment.value) if access.tensor == name)
    rows = max((problem.extents[index] for access in read for index in access.indices if index in originals), default=1)
    return size(operand) / max(rows, 1)
