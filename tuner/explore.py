"""The schedule space of an expression, stage by stage, and its frontier; no data needed (``sparsetune.explore``).

    >>> found = st.explore("A(i,j) = B(i,k) * C(k,j)", formats={"A": "csr", "B": "csr", "C": "csr"})
    >>> print(found.frontier[0].loop_nest)

Presets are the pipelines of papers. "pigeon" is that of Ahrens et al., "An asymptotic cost model for autoscheduling sparse
tensor programs": all schedules of least nesting depth, filtered by asymptotic time; "pigeon-taco" is the same for what the
TACO compiler can express. Without a preset deeper loop nests stay and the memory of workspaces counts besides time. A statement
that reads a workspace which nothing fills costs nothing then, since our compiler drops it; in the paper it runs and finds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, overload

from ..compiler.concrete.affine import view_subscripts
from ..compiler.concrete.check import check_semiring, formats_of, parsed
from ..compiler.concrete.concretize import started
from ..compiler.concrete.given import checked_semiring
from ..compiler.errors import ExpressionError, FormatError, TuningError
from ..compiler.format import Format, csf_format
from ..compiler.levels import COMPRESSED, DENSE
from ..compiler.notation.functions import has_functions
from ..compiler.notation.nodes import Assignment, accesses
from ..compiler.output_pattern import restriction
from ..compiler.shown import is_by_name, is_word, shown
from ..compiler.space.schedules import Schedules
from .asymptotic.algebra import Algebra, quotients_everywhere
from .asymptotic.model import CostModel
from .asymptotic.pipelines import PIPELINES
from .exploration import Exploration, FrontierSchedules
from .forests.exploration import ForestExploration
from .forests.pipelines import sparseauto, spttn
from .limits import make_limits
from .settings import EXPLORE_SECONDS
from .stage_clock import Clock

PRESETS = (None, "pigeon", "pigeon-taco", "sparseauto", "spttn")

Ranges = Mapping[str, tuple[float, float]]


@overload
def explore(
    expression: str, formats: Mapping[str, Format | str | None] | None = None, ranges: Ranges | None = None,
    preset: Literal["pigeon", "pigeon-taco"] | None = None, workspace_state: str = "exact", sunk_costs: bool | Sequence[str] = True,
    assumptions: bool | Sequence[str] = True, semiring: tuple[str, str] | None = None, time_limit: float | None = EXPLORE_SECONDS,
    memory_depth: int = 2, memory_bound: float | None = None, cache_share: float = 0.5, cost: object = None,
    output_pattern: str | None = None,
) -> Exploration: ...
@overload
def explore(
    expression: str, formats: Mapping[str, Format | str | None] | None = None, ranges: Ranges | None = None,
    preset: str | None = None, workspace_state: str = "exact", sunk_costs: bool | Sequence[str] = True,
    assumptions: bool | Sequence[str] = True, semiring: tuple[str, str] | None = None, time_limit: float | None = EXPLORE_SECONDS,
    memory_depth: int = 2, memory_bound: float | None = None, cache_share: float = 0.5, cost: object = None,
    output_pattern: str | None = None,
) -> Exploration | ForestExploration: ...
def explore(
    expression: str,
    formats: Mapping[str, Format | str | None] | None = None,
    ranges: Ranges | None = None,
    preset: str | None = None,
    workspace_state: str = "exact",
    sunk_costs: bool | Sequence[str] = True,
    assumptions: bool | Sequence[str] = True,
    semiring: tuple[str, str] | None = None,
    time_limit: float | None = EXPLORE_SECONDS,
    memory_depth: int = 2,
    memory_bound: float | None = None,
    cache_share: float = 0.5,
    cost: object = None,
    output_pattern: str | None = None,
) -> Exploration | ForestExploration:
    """Explore the schedule space of an expression without any data.

    Args:
        expression: index notation.
        formats: per tensor, the result included; what is not named is dense. Nothing given, with a preset of Ahrens et al.:
            their formats, (dense, compressed, ...) for matrices and tensors, dense for vectors.
        ranges: (least, largest) extent of indices, stored share of sparse operands ("B"), quotients of extents ("i/l"). Only
            "sparseauto" and "spttn" depend on them.
        preset: None, "pigeon", "pigeon-taco", "sparseauto" or "spttn". The last two take products of tensors; where no formats are
            given the first factor is sparse ("csf") and the others are dense.
        workspace_state: how the cost model describes workspaces: "exact", or "paper" (which forgets how a workspace's
            pattern depends on the loops outside its where).
        sunk_costs: True: reading every sparse operand ("inputs") and any single loop over a dimension, or workspace over one,
            ("dimensions") cost nothing extra. False: "dimensions" only. A sequence says exactly what is sunk: these names, and
            sets such as ``"{(i,k) | B(i,k) and C(k,j)}"``.
        assumptions: True: "nonempty". A sequence names it and others, such as ``"B(i,k) implies C(i,k)"``.
        semiring: (add, multiply) other than ("+", "*").
        time_limit: seconds after which to end, 60 unless given; None: never. Without a preset the best found by then is returned, and
            stages that did not see the whole space say so ("stopped"). Listing the result later has no limit.
        memory_depth: how many modes buffers have at most, for "sparseauto", and for the cost "dense_loops" of "spttn".
        memory_bound: elements that buffers have at most all together, even for the least sizes, for "sparseauto"; None: no bound.
        cache_share: share of the last-level cache that buffers may take where an input is at hand (``ForestExploration.chosen``).
        cost: what "spttn" minimizes: "dense_loops" (None), "buffer_dimension", "buffer_size", "cache", or a pair (phi, operator): the
            cost of a loop from what it is (``compiler.space.forests.separable.Peel``) and what it holds costs, and how costs of
            neighbours are put together.
        output_pattern: the access of an operand whose pattern the result has, as for ``evaluate``; the schedules are those of the
            expression multiplied by that pattern.

    Returns:
        An ``Exploration``; for "sparseauto" and "spttn" a ``ForestExploration``, with the same ``space``, ``stages``, ``frontier``.

    Raises:
        ExpressionError: the expression, a sunk cost or an assumption cannot be read, or ranges names an unknown index.
        FormatError: a format is unknown or does not fit.
        TuningError: the preset or the workspace state model is unknown, the time limit is no time, or the time is over.
    """
    if preset is not None and not is_word(preset, *filter(None, PRESETS)):
        known = ", ".join(repr(name) for name in PRESETS)
        raise TuningError(f"unknown preset {shown(preset)}; presets are {known}")
    if output_pattern is not None:
        asked = restriction(expression, output_pattern, semiring)
        expression, formats = asked.expression, asked.formats(_known(formats))
    if preset in ("sparseauto", "spttn"):
        make_limits(memory_bound, cache_share)
        found = _explored_forests(expression, formats, ranges, preset, semiring, time_limit, memory_depth, memory_bound, cost)
        return replace(found, cache_share=float(cache_share))
    for name, given, usual in (("memory_depth", memory_depth, 2), ("memory_bound", memory_bound, None), ("cost", cost, None)):
        if given is not usual and not (isinstance(given, int) and given == usual):
            raise TuningError(f"{name} has no meaning for preset {preset!r}; it is for 'sparseauto' and 'spttn'")
    return explore_structures(expression, formats, ranges, preset, workspace_state, sunk_costs, assumptions, semiring, time_limit)


def _explored_forests(
    expression: str,
    formats: Mapping[str, Format | str | None] | None,
    ranges: Ranges | None,
    preset: str,
    semiring: tuple[str, str] | None,
    time_limit: float | None,
    memory_depth: int,
    memory_bound: float | None,
    cost: object,
) -> ForestExploration:
    """Explore loop nest forests; arguments as for ``explore``."""
    assignment = _explorable(expression)
    if isinstance(memory_depth, bool) or not isinstance(memory_depth, int) or memory_depth < 0:
        raise TuningError(f"memory_depth is {shown(memory_depth)}: a number of modes, 0 or more, is expected")
    check_semiring(assignment.value, checked_semiring(semiring)[0], assignment)
    plain = view_subscripts(assignment, formats_of(assignment, _known(formats) or _one_sparse(assignment)))
    assignment, known = plain.assignment, plain.formats
    clock = Clock([], time_limit)
    if preset == "spttn":
        found = spttn(assignment, known, clock, cost, memory_depth, ranges)
    else:
        found = sparseauto(assignment, known, clock, ranges, memory_depth, memory_bound)
    clock.stop()
    return found


def _explorable(expression: str) -> Assignment:
    assignment = parsed(expression)
    if has_functions(assignment.value):
        raise ExpressionError(
            "schedule spaces of expressions with functions are not explored; tune searches among the usual schedules of such expressions"
        )
    return assignment


def _known(formats: Any) -> Mapping[str, Format | str | None]:
    """Return the given formats, an empty mapping for None. Raises ``FormatError`` if they are no mapping."""
    if formats is None:
        return {}
    if not is_by_name(formats):
        raise FormatError(f"formats are given by tensor, such as {{'A': 'csr'}}, not as {type(formats).__name__}")
    return formats


def _one_sparse(assignment: Assignment) -> dict[str, Format]:
    """Return compressed levels for the first factor."""
    found = accesses(assignment.value)
    return {found[0].tensor: csf_format(len(found[0].subscripts))} if found else {}


def explore_structures(
    expression: str,
    formats: Mapping[str, Format | str | None] | None = None,
    ranges: Ranges | None = None,
    preset: str | None = None,
    workspace_state: str = "exact",
    sunk_costs: bool | Sequence[str] = True,
    assumptions: bool | Sequence[str] = True,
    semiring: tuple[str, str] | None = None,
    time_limit: float | None = EXPLORE_SECONDS,
) -> Exploration:
    """Explore structures by asymptotic costs: ``explore`` without the presets of forests, with the same arguments."""
    assignment = _explorable(expression)
    plain = view_subscripts(assignment, formats_of(assignment, _known(formats) or (_paper_formats(assignment) if preset else {})))
    assignment, known_formats = plain.assignment, plain.formats
    if preset is None:  # the papers write += for any sum, into a result that is empty
        assignment, known_formats = started(assignment, known_formats)
    _check_ranges(ranges, assignment)
    if semiring is not None and (not isinstance(semiring, (tuple, list)) or len(semiring) != 2):
        raise ExpressionError(f"a semiring is a pair such as ('min', '+'), not {shown(semiring)}")
    ours = preset is None
    algebra = Algebra(*(semiring or ("+", "*")), looks_ahead=ours)
    check_semiring(assignment.value, algebra.add, assignment)
    if ours:
        algebra = replace(algebra, everywhere=quotients_everywhere(assignment, known_formats))
    stages: list[dict[str, Any]] = []
    clock = Clock(stages, time_limit)
    model = CostModel(
        assignment, known_formats, workspace_state, sunk_costs, assumptions, algebra, memory=ours, as_stored=ours, watch=clock.watch
    )
    whole, members, classes = PIPELINES[preset](assignment, known_formats, model, clock)
    clock.stop()
    space = Schedules(whole, algebra.add, algebra.multiply)
    return Exploration(expression, preset, stages, FrontierSchedules(classes, model, space), classes, space, members, model)


def _paper_formats(assignment: Assignment) -> dict[str, Format]:
    """Return (dense, compressed, ...) for every matrix and tensor, and dense for vectors."""
    orders = {access.tensor: len(access.subscripts) for access in (assignment.target, *accesses(assignment.value))}
    return {
        name: Format((DENSE,) * min(order, 1) + (COMPRESSED,) * (order - 1)) for name, order in orders.items()
    }


def _check_ranges(ranges: Ranges | None, assignment: Assignment) -> None:
    known = {name for access in (assignment.target, *accesses(assignment.value)) for name in access.indices}
    if ranges is None:
        return
    if not is_by_name(ranges):
        raise ExpressionError(f"ranges are given by index, such as {{'i': (1, 1e6)}}, not as {type(ranges).__name__}")
    for name, bounds in ranges.items():
        if name not in known:
            raise ExpressionError(f"range given for {name}, which the expression does not have; its indices are {', '.join(sorted(known))}")
        try:
            least, largest = map(float, bounds if isinstance(bounds, (tuple, list)) else ())
        except Exception:  # an object of any type may be given, and may raise anything
            raise ExpressionError(f"the range of {name} is a pair of numbers such as (1, 1e6), not {shown(bounds)}") from None
        if not 0 <= least <= largest:
            raise ExpressionError(f"the range of {name} is {least:g} to {largest:g}; give the least extent first, not below 0")
