"""The static model: estimates how fast schedules are relative to one another, without running them.

It ranks schedules by their ``costs`` for the search, and chooses where nothing was measured; it is not meant to predict seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from ..compiler.concrete.depth import MOST_FACTORS, check_depth
from ..compiler.concrete.nodes import Program
from ..compiler.deadline import Deadline, Steps
from ..compiler.errors import TuningError
from ..compiler.format import Format
from ..compiler.frozen import frozen
from ..compiler.notation.nodes import accesses
from ..compiler.schedule.addresses import enclosing_loops, leaves
from ..compiler.schedule.apply import apply_schedule
from ..compiler.schedule.dependence import graph_of
from ..compiler.schedule.directives import Parallelize
from ..compiler.schedule.factors import flatten, product_factors
from ..compiler.schedule.schedule import Schedule
from ..compiler.space.candidates import Candidate, candidates
from ..compiler.space.races import by_race, meets_everywhere
from ..compiler.space.selection import RULES_ALONE, Selection
from ..compiler.space.situation import FEW_FACTORS
from ..compiler.units import UNITS
from ..compiler.views import View
from .constants import machine_constants
from .costs import operations
from .facts import positions
from .legality import is_legal
from .limits import workspace_elements
from .parameters import settled
from .problem import Problem

LEAST_GAIN = 1.2
"""The model must expect a schedule to be this many times as fast as the default before it is used unmeasured."""

SLIGHT_GAIN = 1.05
"""The same for a schedule that keeps the loops and threads of the default."""

NEAR = 1.5
"""Candidates of up to this many times the least cost have their open places filled and are judged again."""

FAR = 5.0
"""A schedule that is expected to be this many times as fast as the default makes the reference result in place of it."""

CHOICE_SECONDS = 0.8
"""About how many seconds a choice may take, counted in steps: products of many factors have very many candidates."""

SLACK = 2.0
"""Choices whose steps take this many times as long as usual end by processor time."""

_FACTOR_SECONDS = 0.05  # more for each factor beyond ``FEW_FACTORS``: so many more products of two are made, and judged
_STEP = 5e-4  # seconds that a step of a choice takes
_NANOSECOND = 1e-9  # the unit of costs on a GPU, in seconds


def choice_deadline(seconds: float) -> Deadline:
    """Return a deadline of about so many seconds that counts steps, so that the choice does not depend on how busy the machine is. If
    steps take more than ``SLACK`` times as long as usual, it ends by time all the same."""
    return Deadline(seconds, Steps(_STEP, SLACK))


def further_seconds(problem: Problem) -> float:
    """Return how many seconds more a choice may take where products have many factors."""
    return _FACTOR_SECONDS * max(0, _factors(problem) - FEW_FACTORS)


def _factors(problem: Problem) -> int:
    return len(product_factors(flatten(problem.assignment.value)))


@frozen
class Ranked:
    """A candidate with its usual parameters and what the model says of it."""

    candidate: Candidate
    schedule: Schedule
    cost: float


@frozen
class Choice:
    """What the model chooses.

    Attributes:
        schedule: which is legal.
        gain: how many times the time of it the default is expected to take.
        is_slight: whether loops and threads are those of the default.
    """

    schedule: Schedule
    gain: float
    is_slight: bool = False


def model_choice(problem: Problem, deadline: Deadline | None = None) -> Schedule | None:
    """Return the schedule of ``static_choice``; None where there is none."""
    found = static_choice(problem, deadline)
    return None if found is None else found.schedule


def static_choice(problem: Problem, deadline: Deadline | None = None) -> Choice | None:
    """Return what the static model expects to be clearly faster than the default; None where it expects nothing to be.

    It is chosen among the candidates whose workspaces keep the problem's limits (Dias et al., section 5.3). When the deadline is over, the
    cheapest of those judged by then is still chosen if the default is expected to take ``FAR`` times as long.

    Args:
        problem: gives the operands.
        deadline: until which candidates are generated (most of the time) and judged; None: ``CHOICE_SECONDS`` from now, or more for
            long products.

    Raises:
        TuningError: the default has more elements of workspaces than the memory bound allows, and so has all that was found.
        ScheduleError: the default has too many nested loops to be compiled, and no forest, which has fewer, is sought.
    """
    if _factors(problem) > MOST_FACTORS:
        check_depth(problem.concretized().program)
    deadline = deadline or choice_deadline(CHOICE_SECONDS + further_seconds(problem))
    found = problem_candidates(problem, deadline.part(5 / 8))
    if problem.formats[problem.assignment.target.tensor].is_dense and not problem.is_on_gpu:  # else results of their own never pay
        found = [one for item in found for one in (by_race([item]) if meets_everywhere(item) else [item])]
    elements = {id(one): workspace_elements(one.program, problem) for one in found}
    each = problem.dtype.itemsize * problem.threads

    def fits(one: Candidate) -> bool:
        return problem.limits.hold(elements[id(one)] * each, problem.nbytes)

    bound = any(problem.limits.binds(elements[id(one)]) for one in found if not one.template)
    ranked = rank(problem, [one for one in found if bound or not one.template or fits(one)], deadline)
    default = next((one for one in ranked if not one.candidate.template), None)
    if default is None:
        return None
    if bound:
        within = (one for one in ranked if not problem.limits.binds(elements[id(one.candidate)]))
        first = next((one for one in within if is_legal(problem, one.schedule)), None)
        if first is None:
            raise nothing_within(problem, min(elements.values()))
        return Choice(first.schedule, max(default.cost, 1.0) / max(first.cost, 1.0))
    able = [one for one in ranked if one is not default and one.cost <= default.cost]

    def asked(item: tuple[float, Schedule, bool]) -> float:
        predicted, _, is_slight = item
        return predicted * (SLIGHT_GAIN if is_slight else LEAST_GAIN)

    for predicted, schedule, is_slight in sorted(_settled(problem, able, default, deadline), key=asked):
        if asked((predicted, schedule, is_slight)) > default.cost or (deadline.over and FAR * predicted > default.cost):
            continue
        if is_legal(problem, schedule):
            return Choice(schedule, max(default.cost, 1.0) / max(predicted, 1.0), is_slight)
    return None


def _settled(problem: Problem, able: Sequence[Ranked], default: Ranked, deadline: Deadline) -> Iterator[tuple[float, Schedule, bool]]:
    """Yield for each of the cheapest candidates, its open places filled for the operands: the expected cost, the schedule, and whether its
    loop nest is that of the default."""
    fill = settled
    if problem.is_on_gpu:
        from .device_costs import settled_on_device as fill  # imported here: kernels on the processor do without
    for place, found in enumerate(able):
        late = deadline.over and (place > 0 or FAR * found.cost > default.cost)
        if late or found.cost > NEAR * able[0].cost:
            return
        filled = fill(problem, found.candidate, found.cost)
        alike = found.candidate.structure == default.candidate.program and not _deals(filled.schedule)
        yield found.cost * filled.factor, filled.schedule, alike


def _deals(schedule: Schedule) -> bool:
    """Whether a schedule gives iterations to threads, or to the units of a GPU."""
    return any(isinstance(each, Parallelize) and not UNITS[each.unit].is_vector for each in schedule)


def nothing_within(problem: Problem, least: float | None = None) -> TuningError:
    """Return the error that no schedule found keeps the memory bound."""
    found = "" if least is None else f"; the least found has {least:g}, and tune looks at more"
    return TuningError(f"no schedule of '{problem.expression}' has workspaces of at most {problem.limits.memory_bound:g} elements{found}")


def problem_candidates(
    problem: Problem, deadline: Deadline | None = None, selection: Selection = RULES_ALONE
) -> tuple[Candidate, ...]:
    """Return the candidates of a problem, the default first, as far as they are found before a deadline; see ``candidates``."""
    fibres = {name: positions(operand) for name, operand in problem.operands.items() if is_plainly_stored(problem, name)}
    return candidates(
        problem.assignment, problem.formats, problem.constants, problem.threads, deadline, problem.extents, fibres, selection,
        problem.semiring, problem.has_blas, problem.joins, problem.target,
    )  # fmt: skip


def rank(problem: Problem, found: Sequence[Candidate], deadline: Deadline | None = None) -> list[Ranked]:
    """Return candidates with their costs, the cheapest first; of those of equal cost the ones whose loops come in the order in which
    tensors are stored (Dias et al., section 5.3), then in their order.

    Candidates that are not judged when a deadline is over come last, at infinite cost. Two are always judged: the default, the first of
    all, and the first forest, as all others of a long product may be far too slow.
    """
    sources = problem.concretized().sources
    forest = next((place for place, candidate in enumerate(found) if candidate.origin.startswith("forest")), 0)

    def cost(place: int, candidate: Candidate) -> float:
        late = place not in (0, forest) and deadline is not None and deadline.over
        return math.inf if late else _cost(problem, candidate.program, sources)

    ranked = [Ranked(candidate, candidate.template.fill(), cost(place, candidate)) for place, candidate in enumerate(found)]
    formats = {**problem.formats, **{name: problem.formats[source] for name, source in sources.items()}}

    def in_order(tied: list[Ranked]) -> list[Ranked]:
        return sorted(tied, key=lambda item: disagreements(item.candidate.program, formats)) if len(tied) > 1 else tied

    ranked.sort(key=lambda item: item.cost)
    return [item for _, tied in groupby(ranked, key=lambda item: item.cost) for item in in_order(list(tied))]


def disagreements(program: Program, formats: Mapping[str, Format]) -> int:
    """Return in how many pairs of modes of operands and result the loops around an assignment come in another order than stored ones."""
    graph, found = graph_of(program.relations), 0
    for address, leaf in leaves(program.statement):
        order = [name for loop in enclosing_loops(program.statement, address) for name in graph.originals(loop)]
        for access in (leaf.target, *accesses(leaf.value)):
            form = access.stored or formats.get(access.tensor)
            if form is not None and access.is_plain:
                modes = (access.subscripts[mode].index for mode in form.order)
                places = [order.index(name) for name in modes if name in order]
                found += sum(one > other for place, one in enumerate(places) for other in places[place + 1 :])
    return found


def expected_gain(problem: Problem, schedule: Schedule) -> tuple[float, float]:
    """Return the cost of the default schedule over that of a legal one, and about how many seconds the default takes."""
    found = problem.concretized()
    default = _cost(problem, found.program, found.sources)
    unit = _NANOSECOND if problem.is_on_gpu else machine_constants().operation
    return default / max(expected_cost(problem, schedule), 1.0), default * unit


def expected_cost(problem: Problem, schedule: Schedule) -> float:
    """Return the cost of a legal schedule, by which candidates are ranked: in operations of a processor, or in nanoseconds of a GPU."""
    found = problem.concretized()
    return _cost(problem, apply_schedule(found.program, schedule, found.formats, problem.constants), found.sources)


def _cost(problem: Problem, program: Program, sources: Mapping[str, str]) -> float:
    if not problem.is_on_gpu:
        return operations(problem, program, sources)
    from .device_costs import device_cost  # imported here: kernels on the processor do without

    return device_cost(problem, program, sources)


def is_plainly_stored(problem: Problem, name: str) -> bool:
    """Whether an operand stores coordinates and is read at plain subscripts alone."""
    form = problem.formats.get(name)
    return form is not None and not form.is_dense and not isinstance(form, View)
