"""Limits on the memory of workspaces: a user's bound, and a share of the last-level cache."""

from __future__ import annotations

import math
from functools import cache
from numbers import Real
from typing import TYPE_CHECKING, Any

from ..compiler.concrete.nodes import Program
from ..compiler.concrete.provenance import Provenance
from ..compiler.errors import TuningError
from ..compiler.frozen import frozen
from ..compiler.native.machine import this_machine
from ..compiler.schedule.dependence import graph_of
from ..compiler.shown import shown
from ..compiler.space.lifespans import together
from ..compiler.space.memory import buffers_of, counted_positions
from .facts import position_count

if TYPE_CHECKING:
    from .problem import Problem


@frozen
class Limits:
    """Limits on the memory of workspaces.

    Attributes:
        memory_bound: elements of workspaces and buffers at one time, as ``k.costs["memory"]`` counts them; None: no bound.
        cache_share: share of the last-level cache that the workspaces of all threads may fill; None: the share that
            ``configs/machines.toml`` gives, or the bytes of the operands where these are more.
    """

    memory_bound: float | None = None
    cache_share: float | None = None

    @property
    def given(self) -> dict[str, float]:
        """The limits that a user gave, by name."""
        named = {"memory_bound": self.memory_bound, "cache_share": self.cache_share}
        return {name: value for name, value in named.items() if value is not None}

    def binds(self, elements: float) -> bool:
        """Return whether so many elements are above the bound."""
        return self.memory_bound is not None and elements > self.memory_bound

    def hold(self, wanted: float, operands: int) -> bool:
        """Return whether the workspaces of all threads may take ``wanted`` bytes where the operands take so many."""
        machine = this_machine()
        if self.cache_share is not None:
            return wanted <= self.cache_share * machine.last_level_cache
        return wanted <= operands or wanted <= _workspace_share(machine.model) * machine.last_level_cache


@cache
def _workspace_share(processor: str) -> float:
    from .machine_settings import load_machine  # imported here: it needs a parser of TOML, which most lookups do without

    return load_machine(processor).workspace_share


NO_LIMITS = Limits()
"""The limits if nobody gives any."""


def make_limits(memory_bound: float | None = None, cache_share: float | None = None) -> Limits:
    """Return checked limits.

    Raises:
        TuningError: the bound is no number of elements, or the share is none.
    """
    if memory_bound is not None and not (_is_number(memory_bound) and memory_bound >= 0):
        raise TuningError(f"memory_bound is {shown(memory_bound)}: a number of elements is expected")
    if cache_share is not None and not (_is_number(cache_share) and 0 < cache_share <= 1):
        raise TuningError(f"cache_share is {shown(cache_share)}: a share above 0 and up to 1 is expected")
    bound = None if memory_bound is None or memory_bound == math.inf else float(memory_bound)
    return Limits(bound, None if cache_share is None else float(cache_share))


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value)
    except Exception:  # a number that no float holds, or an object of any class
        return False


def workspace_elements(program: Program, problem: Problem) -> float:
    """Return how many elements the workspaces of one thread that are in memory at one time have at most, scalars left out, and the
    buffers of loops through subsections.

    Args:
        program: scheduled.
        problem: gives formats and sizes.
    """
    graph, formats, extents = graph_of(program.relations), problem.formats, problem.extents
    held = ((factor * extents.get(index, 1) for factor, index in sizes) for sizes in buffers_of(program, formats))
    buffers = sum(math.prod(factors, start=1.0) for factors in held)
    lengths = {space: math.prod(_length(index, graph, problem) for index in space.indices) for space in program.workspaces if space.indices}
    return buffers + max(sum(lengths.get(space, 0.0) for space in spaces) for spaces in together(program))


def _length(index: str, graph: Provenance, problem: Problem) -> float:
    """Return how many values an index has at most."""
    positions = counted_positions(graph, index, problem.formats)
    operand = None if positions is None else problem.operand(positions[0].tensor)
    if positions is not None and operand is not None:
        return position_count(operand, positions[1])
    known = graph.constant_extent(index, problem.extents)
    return 1.0 * (known if known is not None else math.prod(problem.extents.get(name, 1) for name in graph.originals(index)))
