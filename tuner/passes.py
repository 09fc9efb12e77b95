"""The cost of loops that pass over an array again after it has left the near caches, so that its lines are loaded again; the result is
passed over once more where it is filled with zeros before sums are added to it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..compiler.concrete.nodes import Assign, Program
from ..compiler.frozen import frozen
from ..compiler.notation.nodes import Access, accesses
from ..compiler.space.distances import FAR, LINE, MEMORY
from ..compiler.views import View
from .iterations import Iterations
from .problem import Problem
from .recording import log2

_LINE_BYTES = 64
_STREAMED = 2.0**18  # elements of a filter up to which hardware fetches its rows in time from beyond the second level of cache


@frozen
class _Step:
    """An original index that a loop goes through, and how many of its values in one run of the loop."""

    index: str
    length: float


class Passes(Iterations):
    """How often the loops of one program pass over arrays; see ``Iterations`` for its arguments."""

    def __init__(self, problem: Problem, program: Program, sources: Mapping[str, str]) -> None:
        super().__init__(problem, program, sources)
        views = [access for _, leaf in self._leaves for access in accesses(leaf.value) if self._is_stored_view(access)]
        self._seen = {index for access in views for index in access.indices}  # which no loop goes through in vectors

    def _is_stored_view(self, access: Access) -> bool:
        return isinstance(self._formats.get(access.tensor), View) and self._is_stored(access)

    def passed_again(self, leaf: Assign, loops: Sequence[str], iterations: float) -> float:
        """Return what it costs that loops pass more than once over the result, stored operands and filters that leave the near cache in
        between: the lines that are loaded again, weighted by how far away they are.

        Args:
            leaf: the assignment.
            loops: around it, outermost first.
            iterations: of all of them together.
        """
        arrays = (leaf.target, *(read for read in accesses(leaf.value) if self._is_stored(read) or self._is_filter(read)))
        far = [(access, elements) for access in arrays if (elements := self._far_elements(access, self._along(access))) > FAR]
        if not far:
            return 0.0
        steps = self._steps(loops)
        return sum(self._passed_over_again(access, elements, steps, iterations) for access, elements in far)

    def filled_before(self, leaf: Assign) -> float:
        """Return what it costs to fill a dense result with zeros before an assignment adds to it: its lines go out to the far caches or
        to memory and come back once more than those of a result whose elements are stored once."""
        is_filled = leaf.operator == "+=" and not self._is_stored(leaf.target)
        elements = self._far_elements(leaf.target, self._along(leaf.target)) if is_filled else 0.0
        return 2.0 * elements / self._per_line * LINE[elements > MEMORY] if elements > FAR else 0.0

    def _passed_over_again(self, access: Access, elements: float, steps: Sequence[_Step], iterations: float) -> float:
        own = self._along(access)
        density = elements / self._everywhere(own)
        repeating = [place for place, step in enumerate(steps) if step.index not in own]
        inside = {place: density * math.prod(step.length for step in steps[place:] if step.index in own) for place in repeating}
        passed = [place for place in repeating if inside[place] > FAR and steps[place].length > 1]
        if not passed:
            return 0.0
        passes = math.prod(steps[place].length for place in passed)
        touched = iterations / math.prod(steps[place].length for place in repeating)
        line = LINE[elements > MEMORY]
        if self._is_filter(access):
            line = LINE[0] * max(0.0, log2(inside[passed[-1]] / _STREAMED))
        return (passes - 1.0) * self._lines(elements, touched) * line

    def _steps(self, loops: Sequence[str]) -> list[_Step]:
        """Return the original indices that loops go through, outermost first. A collapsed loop goes through the inner index once for each
        value of the outer one; the loops that an index was split into share its length."""
        names = [self._graph.originals(loop) for loop in loops]
        left = {name: max(1.0, self._problem.extents.get(name, 1)) for own in names for name in own}
        steps = list[_Step]()
        for place in reversed(range(len(loops))):
            around = {name for own in names[:place] for name in own}
            length = None if around.isdisjoint(names[place]) else self._graph.constant_extent(loops[place], self._problem.extents)
            room = math.inf if length is None else max(1.0, length)
            for name in reversed(names[place]):
                steps.append(_Step(name, min(room, left[name]) if name in around else left[name]))
                left[name], room = left[name] / steps[-1].length, max(1.0, room / steps[-1].length)
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

    def _lines(self, elements: float, touched: float) -> float:
        """Return how many cache lines of an array hold ``touched`` of its elements, if these are spread evenly."""
        return elements / self._per_line * (1.0 - (1.0 - min(1.0, touched / elements)) ** self._per_line)

    @property
    def _per_line(self) -> float:
        """How many elements a line of a cache has."""
        return _LINE_BYTES / self._problem.dtype.itemsize
