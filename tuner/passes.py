"""The cost of loops that pass over an array again after it has left the near caches, so that its lines are loaded again; the result is
passed over once more where it is filled with zeros before sums are added to it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..compiler.concrete.nodes import Assign, Program
from ..compiler.frozen import frozen
from ..compiler.notation.nodes import Access, accesses
from ..compiler.schedule.addresses import Address, enclosing_loops
from ..compiler.space.distances import FAR, LINE, MEMORY
from ..compiler.views import View
from .iterations import Iterations
from .problem import Problem
from .steps import log2

_LINE_BYTES = 64
_STREAMED = 2.0**18  # elements of a filter up to which hardware fetches its rows in time from beyond the second level of cache


@frozen
class _Step:
    """An original index that a loop goes through.

    Attributes:
        index: the original index.
        length: how many values it can have in one run of the loop.
        times: how many it has on average.
    """

    index: str
    length: float
    times: float


class Passes(Iterations):
    """How often the loops of one program pass over arrays; see ``Iterations`` for its arguments."""

    def __init__(self, problem: Problem, program: Program, sources: Mapping[str, str]) -> None:
        super().__init__(problem, program, sources)
        views = [access for _, leaf in self._leaves for access in accesses(leaf.value) if self._is_stored_view(access)]
        self._seen = {index for access in views for index in access.indices}  # which no loop goes through in vectors

    def _is_stored_view(self, access: Access) -> bool:
        return isinstance(self._formats.get(access.tensor), View) and self._is_stored(access)

    def passed_again(self, address: Address, leaf: Assign, iterations: float) -> float:
        """Return what it costs that loops pass more than once over the result, stored operands and filters that leave the near cache in
        between: the lines that are loaded again, weighted by how far away they are.

        Args:
            address: of the assignment.
            leaf: the assignment.
            iterations: of all loops around it together.
        """
        arrays = (leaf.target, *(read for read in accesses(leaf.value) if self._is_stored(read) or self._is_filter(read)))
        far = [(access, elements) for access in arrays if (elements := self._far_elements(access, self._along(access))) > FAR]
        if not far:
            return 0.0
        steps = self._counted(address, leaf, enclosing_loops(self._program.statement, address))
        return sum(self._passed_over_again(leaf, access, elements, steps, iterations) for access, elements in far)

    def filled_before(self, leaf: Assign) -> float:
        """Return what it costs to fill a dense result with zeros before an assignment adds to it: its lines go out to the far caches or
        to memory and come back once more than those of a result whose elements are stored once."""
        is_filled = leaf.operator == "+=" and not self._is_stored(leaf.target)
        elements = self._far_elements(leaf.target, self._along(leaf.target)) if is_filled else 0.0
        return 2.0 * elements / self._per_line * LINE[elements > MEMORY] if elements > FAR else 0.0

    def _passed_over_again(self, leaf: Assign, access: Access, elements: float, steps: Sequence[_Step], iterations: float) -> float:
        own = self._along(access)
        density = elements / self._everywhere(own)
        repeating = [place for place, step in enumerate(steps) if step.index not in own]
        inside = {place: density * math.prod(step.length for step in steps[place:] if step.index in own) for place in repeating}
        last = max((place for place in repeating if inside[place] > FAR and steps[place].times > 1), default=None)
        if last is None:
            return 0.0
        passes = math.prod(step.times for step in steps[: last + 1])
        touched = iterations / math.prod(steps[place].times for place in repeating if place > last) / passes
        run = self._together(access, steps[last:])
        loaded = self._lines(elements, touched, run)
        missed = 1.0 - FAR / elements if loaded * self._per_line < FAR else 1.0  # of random lines, the cache still has its share
        line = LINE[elements > MEMORY] * (2.0 if access == leaf.target else 1.0)  # lines of the result go back too
        if self._is_filter(access):
            line = LINE[0] * max(0.0, log2(inside[last] / _STREAMED))
        return (passes * loaded - self._lines(elements, passes * touched, run)) * missed * line

    def _together(self, access: Access, steps: Sequence[_Step]) -> float:
        """Return how many elements in a row a pass over a dense array touches where it touches one."""
        form, run = self._formats.get(access.tensor), 1.0
        if form is None or isinstance(form, View) or not form.is_dense or not access.is_plain:
            return run
        for mode in reversed(form.order):
            originals = self._graph.originals(access.subscripts[mode].index)
            times = math.prod(step.times for step in steps if step.index in originals)
            if times < self._everywhere(set(originals)):
                break
            run *= times
        return run

    def _counted(self, address: Address, leaf: Assign, loops: Sequence[str]) -> list[_Step]:
        """Return the steps of loops around an assignment with how often each of them runs: a loop through the stored entries of a fibre
        runs as often as it has entries, on average."""
        steps, through, before = list[_Step](), set[str](), 1.0
        for step in self._steps(loops):
            through.add(step.index)
            count = max(before, min(before * step.length, self._points(through, address, leaf)))
            steps.append(replace(step, times=count / before))
            before = count
        return steps

    def _steps(self, loops: Sequence[str]) -> list[_Step]:
        """Return the original indices that loops go through, outermost first. A collapsed loop goes through the inner index once for each
        value of the outer one; the loops that an index was split into share its length."""
        names = [self._graph.originals(loop) for loop in loops]
        left = {name: max(1.0, self._problem.extents.get(name, 1)) for own in names for name in own}
        steps = list[_Step]()
        for place in reversed(range(len(loops))):
            around = {name for own in names[:place] for name in own}
            extent = None if around.isdisjoint(names[place]) else self._graph.constant_extent(loops[place], self._problem.extents)
            room = math.inf if extent is None else max(1.0, extent)
            for name in reversed(names[place]):
                length = min(room, left[name]) if name in around else left[name]
                steps.append(_Step(name, length, length))
                left[name], room = left[name] / length, max(1.0, room / length)
        return steps[::-1]

    def _is_filter(self, access: Access) -> bool:
        """Whether a read is of a filter: a dense operand all of which meets each window of a stored one."""
        form = self._formats.get(access.tensor)
        return form is not None and form.is_dense and not isinstance(form, View) and not self._seen.isdisjoint(access.indices)

    def _along(self, access: Access) -> set[str]:
        """Return the original indices that lead through an array; of a compound subscript only the one that goes farthest, since the
        others lead to what is near."""
        form, indices = self._formats.get(access.tensor), access.indices
        if isinstance(form, View):
            own = [[access.subscripts[mode].index for mode, _ in part.terms] for part in form.subscripts]
            indices = tuple(max(names, key=lambda name: self._problem.extents.get(name, 1)) for names in own if names)
        return {original for index in indices for original in self._graph.originals(index)}

    def _far_elements(self, access: Access, own: set[str]) -> float:
        """Return how many elements a dense result, a dense operand or a stored operand has; 0 for everything else."""
        form = self._formats.get(access.tensor)
        if self._is_stored(access):
            return 1.5 * self._prefixes[self._sources.get(access.tensor, access.tensor)][-1]  # values, and coordinates of half their size
        return self._everywhere(own) if form is not None and form.is_dense else 0.0

    def _lines(self, elements: float, touched: float, run: float = 1.0) -> float:
        """Return how many cache lines of an array hold ``touched`` of its elements, if runs of so many of them are spread evenly."""
        return elements / self._per_line * (1.0 - (1.0 - min(1.0, touched / elements)) ** max(1.0, self._per_line / run))

    @property
    def _per_line(self) -> float:
        """How many elements a line of a cache has."""
        return _LINE_BYTES / self._problem.dtype.itemsize
