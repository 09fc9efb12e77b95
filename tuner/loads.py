"""The cost of loads and stores of an assignment: from which cache they come, how often, and which stay in registers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

from ..compiler.concrete.nodes import Assign, Program
from ..compiler.concrete.said import said_of
from ..compiler.native.machine import held_vectors, this_machine
from ..compiler.notation.nodes import Access, accesses
from ..compiler.schedule.addresses import Address, enclosing_loops
from ..compiler.space.distances import REGISTERS, distance, passed_through, workspace_distance
from ..compiler.space.memory import counted_positions
from ..compiler.views import View
from .passes import Passes
from .problem import Problem

_ROUNDED = 1e-9  # relative difference that rounding makes between two ways to count the same
_JUMPED, _ALIASED = 1.3, 2.0  # time of updates of elements that lie apart, and of those a multiple of so many bytes apart, over others
_ALIASES = 2048  # half of the distance of addresses that a processor first takes for the same
_TOGETHER = 0.75  # cost of a load of consecutive values, in a loop whose other accesses are scattered, over that of a scattered load


class Loads(Passes):
    """The loads and stores of one program; see ``Iterations`` for its arguments."""

    def __init__(self, problem: Problem, program: Program, sources: Mapping[str, str]) -> None:
        super().__init__(problem, program, sources)
        self._elements = {space.name: self._size(space.indices) for space in program.workspaces}
        self._registers = {space.name for space in program.workspaces if self._fits_registers(space.indices)}

    def _is_streamed(self, access: Access, address: Address, leaf: Assign) -> bool:
        """Whether loops go through all of a workspace in order, so that hardware fetches its lines ahead."""
        if access.tensor not in self._elements:
            return False
        loops = enclosing_loops(self._program.statement, address)
        own = self._originals(access.indices) & self._originals(loops)
        first = next((place for place, loop in enumerate(loops) if not own.isdisjoint(self._graph.originals(loop))), len(loops))
        around = self._originals(loops[:first])
        everywhere = self._points(around, address, leaf) * self._everywhere(own - around)
        return self._points(around | own, address, leaf) >= (1 - _ROUNDED) * everywhere

    def _read(self, access: Access, innermost: set[str], apart: bool, is_streamed: bool) -> float:
        """Return the operations of a load; ``apart``: other accesses of its loop are scattered."""
        if is_streamed:
            return passed_through(self._elements[access.tensor], self._per_line)
        return distance(self._array_elements(access)) * (_TOGETHER if apart and self._is_contiguous([access], innermost) else 1.0)

    def _loaded(self, access: Access, leaf: Assign, address: Address, loops: Sequence[str]) -> float:
        """Return in which share of its runs an innermost loop loads its row: a row of a few vectors that does not change with the loops
        directly around it stays in registers while these run (``passes.held``), if rows that stay there longer leave room."""
        held, innermost = self._moved(access, loops), set(self._graph.originals(loops[-1])) if loops else set[str]()
        if not loops or held == len(loops) - 1 or not self._is_contiguous([access], innermost):
            return 1.0
        length = self._graph.constant_extent(loops[-1], self._problem.constants)
        longer = {one for one in accesses(leaf.value) if self._moved(one, loops) < held and self._moves(one, innermost)}
        if length is None or self._vectors(length) * (1 + len(longer)) > self._room:
            return 1.0
        runs = self._points(self._originals(loops[:-1]), address, leaf)
        return self._points(self._originals(loops[:held]), address, leaf) / runs if runs else 1.0

    def _moved(self, access: Access, loops: Sequence[str]) -> int:
        """Return how many of the loops around the innermost one are around a row of an access: the last of them moves it."""
        moving = [place for place, loop in enumerate(loops[:-1]) if self._moves(access, set(self._graph.originals(loop)))]
        return moving[-1] + 1 if moving else 0

    @cached_property
    def _room(self) -> float:
        """How many vectors of rows the registers have room for besides small workspaces."""
        return held_vectors(this_machine().vector_bytes) - sum(self._vectors(self._elements[name]) for name in self._registers)

    def _vectors(self, elements: float) -> float:
        return math.ceil(elements * self._problem.dtype.itemsize / this_machine().vector_bytes)

    def _reached(self, leaf: Assign, innermost: set[str], is_streamed: bool) -> float:
        """Return how many times longer a store to an array takes than one to the first level of cache. Where stored coordinates choose
        neighbouring elements one after another, the cache line is loaded once for all of them."""
        elements = self._elements.get(leaf.target.tensor, 0.0)
        if is_streamed:
            return passed_through(elements, self._per_line)
        far = workspace_distance(elements)
        if far == 1.0 or self._originals(leaf.target.indices[-1:]) != innermost:
            return far
        runs = [run for access in accesses(leaf.value) if (run := self._run(access, innermost)) >= 1.0]
        share = min((self._lines(self._everywhere(innermost), run) / run for run in runs), default=1.0)
        return 1.0 + (far - 1.0) * min(1.0, share)

    def jumped(self, leaf: Assign, loops: Sequence[str]) -> float:
        """Return how many times longer updates of a dense result take because the loops around them do not follow the order in which its
        modes are stored. (Workspaces are laid out along the loops that fill them.)

        Rows that lie apart are not fetched ahead. A load of a row waits for a store to the row before it if their addresses have the same
        last bits, as those of rows a large power of two apart.
        """
        form = self._formats.get(leaf.target.tensor)
        if form is None or isinstance(form, View) or not form.is_dense or len(form.order) < 2 or not leaf.target.is_plain:
            return 1.0
        order = [set(self._graph.originals(leaf.target.subscripts[mode].index)) for mode in form.order]
        moving = [own for loop in reversed(loops) if (own := set(self._graph.originals(loop))) & self._originals(leaf.target.indices)]
        for place, own in enumerate(moving[:2]):
            if own <= order[-1 - place]:
                continue
            mode = next(mode for mode, names in enumerate(order) if names & own)
            if any(self._is_stored(read) and not own.isdisjoint(read.indices) for read in accesses(leaf.value)):
                return 1.0
            apart = self._everywhere(set().union(*order[mode + 1 :])) * self._problem.dtype.itemsize
            return _JUMPED if apart % _ALIASES else _ALIASED
        return 1.0

    def _run(self, access: Access, innermost: set[str]) -> float:
        """Return how many coordinates of an index an operand stores below one parent, on average; 0: it stores none."""
        form, positions = self._formats.get(access.tensor), self._prefixes.get(self._sources.get(access.tensor, access.tensor))
        if form is None or positions is None or isinstance(form, View):
            return 0.0
        order = [{access.subscripts[mode].index} for mode in form.order]
        level = order.index(innermost) if innermost in order else 0
        return positions[level] / positions[level - 1] if level and positions[level - 1] else 0.0

    def _moves(self, access: Access, innermost: set[str]) -> bool:
        """Return whether each iteration of the innermost loop touches another value of a tensor that is in memory."""
        if access.tensor in self._registers:
            return False
        originals = {original for index in access.indices for original in self._graph.originals(index)}
        return bool(originals & innermost)

    def _array_elements(self, access: Access) -> float:
        """Return how many elements the array has that an access reads, a workspace or a dense operand."""
        form = self._formats.get(access.tensor)
        if form is not None and form.is_dense:
            return self._everywhere(set(access.indices))
        return self._elements.get(access.tensor, 0.0)

    def _is_contiguous(self, touched: Sequence[Access], innermost: set[str]) -> bool:
        """Return whether the innermost loop runs over the last mode of dense tensors, and over no stored level."""
        if len(innermost) != 1:
            return False
        (index,) = innermost
        for access in touched:
            places = [mode for mode, subscript in enumerate(access.subscripts) if index in self._graph.originals(subscript.index)]
            if not places:
                continue
            form = said_of(access, self._program.conversions) or self._problem.formats.get(self._sources.get(access.tensor, access.tensor))
            if isinstance(form, View):
                if not form.steps_along(places):
                    return False
                continue
            last = len(access.subscripts) - 1 if form is None else form.order[-1]
            if places != [last] or (form is not None and form.levels[-1].stores_coordinates):
                return False
        return True

    def _size(self, indices: Sequence[str]) -> float:
        """Return how many elements an array over some indices has, as far as extents are known."""
        return math.prod(self._length(index) for index in indices)

    def _length(self, index: str) -> float:
        positions = counted_positions(self._graph, index, self._formats)
        if positions is not None:
            access, level = positions
            return self._prefixes[self._sources.get(access.tensor, access.tensor)][level]
        return 1.0 * (self._graph.constant_extent(index, self._problem.extents) or 1)

    def _fits_registers(self, indices: Sequence[str]) -> bool:
        lengths = [self._graph.constant_extent(index, self._problem.extents) for index in indices]
        return all(length is not None for length in lengths) and math.prod(length or 0 for length in lengths) <= REGISTERS
