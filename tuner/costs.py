"""What a schedule costs by the static model: from its loop nest and the sizes of the operands, without running anything.

Every assignment of the loop nest costs, per iteration of the loops around it (``iterations``), its multiplications (one operation at least,
to which an addition is fused) and one more for each value that it loads or stores and that is neither in registers nor left alone by the
innermost loop, or more where its array is larger than a cache; an innermost loop over contiguous values of dense tensors counts by vectors,
and costs something each time it starts. Where stored operands meet, a loop steps through all that each of them stores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..compiler.concrete.nodes import Assign, Forall, Program, Where, said_of
from ..compiler.native.machine import this_machine
from ..compiler.notation.nodes import Access, Expr, Mul, accesses
from ..compiler.schedule.addresses import Address, at, enclosing_loops, frames
from ..compiler.space.decorations import shares_pattern
from ..compiler.space.forests.transposed import CONVERSION
from ..compiler.space.forests.work import FAR as FAR_ELEMENTS
from ..compiler.space.forests.work import NEAR as NEAR_ELEMENTS
from ..compiler.space.memory import counted_positions
from ..compiler.space.program_costs import operation_count
from ..compiler.space.situation import Situation
from ..compiler.views import View
from .constants import machine_constants
from .cut_rows import CutRows
from .passes import Passes
from .problem import Problem
from .stepping import Stepping

_VECTOR_LANES = 4.0  # what vectors gain in kernels that also wait for memory
_TOGETHER = 0.75  # of a load along consecutive values in a loop whose other accesses are apart: it is still one of a vector
_START = 4.0  # operations that starting an innermost loop costs
_STEP = 2.0  # operations that going on to the next stored coordinate costs
_STRAIGHT_VECTORS = 1  # of an innermost loop that is code without a branch
_REGISTER_ELEMENTS = 256  # of a workspace; beyond them come those that the first and second level of cache hold (``work.NEAR``, ``FAR``)
_HELD_REGISTERS = 16  # that hold a result while it is summed up
_ATOMIC = 10.0  # operations that an atomic update costs
_CLEARED = 1.0  # operations that clearing an element of an array costs which the first level of cache holds
_UNORDERED = 60.0  # operations that an entry of a sparse result costs which is not written in the order in which it is stored


def operations(problem: Problem, program: Program, sources: Mapping[str, str]) -> float:
    """Return the cost of a program on the operands of a problem.

    Args:
        problem: gives the operands.
        program: a scheduled program of its expression.
        sources: the user's name of every operand in the program.
    """
    return _Costs(problem, program, sources).total()


def scalar_operations(problem: Problem, program: Program, sources: Mapping[str, str]) -> float:
    """Return how many scalar operations a run of a program does, a fused multiply-add being two, without what conversions cost.

    Iterations are counted as for ``operations``.
    """
    return _Costs(problem, program, sources).scalar_operations()


def converted_entries(problem: Problem, program: Program, sources: Mapping[str, str]) -> int:
    """Return how many entries of operands a program converts; other views of the same memory convert nothing."""
    names = [(sources.get(read.tensor, read.tensor), form) for read, form in program.conversions]
    moved = [problem.operand(name) for name, form in names if name in problem.formats and form.in_memory != problem.formats[name].in_memory]
    return sum(len(operand.values) for operand in moved if operand is not None)


def _distance(elements: float) -> float:
    """Return how much longer than from the first level of cache it takes to get a value of an array."""
    return 1.0 if elements <= NEAR_ELEMENTS else 2.0 if elements <= FAR_ELEMENTS else 4.0


def _start_operations() -> float:
    """Return how many operations the start of a parallel loop takes the time of."""
    constants = machine_constants()
    return constants.start / constants.operation


class _Costs(Passes, Stepping, CutRows):
    """Costs of one program on the operands of a problem."""

    def __init__(self, problem: Problem, program: Program, sources: Mapping[str, str]) -> None:
        super().__init__(problem, program, sources)
        self._elements = {space.name: self._size(space.indices) for space in program.workspaces}
        self._registers = {space.name for space in program.workspaces if self._fits_registers(space.indices)}

    def total(self) -> float:
        done = sum(self._leaf(address, leaf) + self._entering(address, leaf) for address, leaf in self._leaves)
        return done + self._meetings() + self._fibres() + self._clearing() + self._conversions()

    def scalar_operations(self) -> float:
        return sum(
            self._points(self._covered(address), address, leaf) * (operation_count(leaf.value) + (leaf.operator == "+="))
            for address, leaf in self._leaves
        )

    def _leaf(self, address: Address, leaf: Assign) -> float:
        loops = enclosing_loops(self._program.statement, address)
        iterations = self._points(self._covered(address), address, leaf)
        first = self._summed_first(leaf, loops)
        sums = self._row_sums(address, leaf, loops, first) if first else iterations
        by_row = bool(first) and self._graph.space(loops[-1]) == "position"
        innermost = first if by_row else set(self._graph.originals(loops[-1])) if loops else set()
        contiguous = innermost.isdisjoint(self._seen) and self._is_contiguous((leaf.target, *accesses(leaf.value)), innermost)
        apart = not contiguous and not self._is_over_stored(leaf, innermost)
        read = sum(self._read(access, innermost, apart) for access in accesses(leaf.value) if self._moves(access, innermost))
        written = 2.0 * self._reached(leaf, innermost) if self._moves(leaf.target, innermost) else 0.0
        written *= min(1.0, sums / max(1.0, iterations))
        held, kept = self._held(leaf.target, loops), 0.0
        if written and held is not None:
            times = self._points(self._originals(loops[:held]), address, leaf)
            written, kept = 0.0, written * times * self._held_elements(leaf.target, loops[held:])
        lanes = self._lanes(loops[-1]) if contiguous else 1.0
        started = sums if by_row else self._points(self._originals(loops[:-1]), address, leaf) if len(loops) > 1 else 0.0
        each = (self._multiplied(leaf.value, innermost) + read + written) / lanes + self._put_in_order(leaf, loops)
        start = self._start(loops, leaf) if started else 0.0
        again = self.passed_again(leaf, loops, iterations)
        return self._shared_out(address, iterations * each + kept / lanes + start * started + again, leaf)

    def _read(self, access: Access, innermost: set[str], apart: bool) -> float:
        """Return the operations of a load; ``apart``: other accesses of its loop are of values far from one another."""
        return _distance(self._array_elements(access)) * (_TOGETHER if apart and self._is_contiguous([access], innermost) else 1.0)

    def _reached(self, leaf: Assign, innermost: set[str]) -> float:
        """Return how much longer than to the first level of cache it takes to store to an array: where stored coordinates choose elements
        of a line one after another, it comes once for all of them."""
        far = _distance(self._elements.get(leaf.target.tensor, 0.0))
        if far == 1.0 or self._originals(leaf.target.indices[-1:]) != innermost:
            return far
        runs = [run for access in accesses(leaf.value) if (run := self._run(access, innermost)) >= 1.0]
        share = min((self._lines(self._everywhere(innermost), run) / run for run in runs), default=1.0)
        return 1.0 + (far - 1.0) * min(1.0, share)

    def _run(self, access: Access, innermost: set[str]) -> float:
        """Return how many coordinates of an index an operand stores below one parent, on average; 0: it stores none."""
        form, positions = self._formats.get(access.tensor), self._prefixes.get(self._sources.get(access.tensor, access.tensor))
        if form is None or positions is None or isinstance(form, View):
            return 0.0
        order = [{access.subscripts[mode].index} for mode in form.order]
        level = order.index(innermost) if innermost in order else 0
        return positions[level] / positions[level - 1] if level and positions[level - 1] else 0.0

    def _is_over_stored(self, leaf: Assign, innermost: set[str]) -> bool:
        """Whether an innermost loop goes through stored coordinates."""
        return any(self._is_stored(access) and not innermost.isdisjoint(access.indices) for access in accesses(leaf.value))

    def _lanes(self, loop: str) -> float:
        """Return the gain of vectors in a loop: at most its number of iterations."""
        length = self._graph.constant_extent(loop, self._problem.extents)
        return _VECTOR_LANES if length is None else min(_VECTOR_LANES, max(1.0, float(length)))

    def _start(self, loops: Sequence[str], leaf: Assign) -> float:
        """Return what it costs each time that the innermost loop begins: one that is code without a branch has nothing to begin with, but
        the loop around it may have to read the next coordinate."""
        if not self._is_straight(loops[-1]):
            return _START
        around = set(self._graph.originals(loops[-2]))
        steps = any(self._is_stored(access) and not around.isdisjoint(access.indices) for access in accesses(leaf.value))
        return _STEP if steps else 0.0

    def _is_straight(self, loop: str) -> bool:
        """Return whether a loop is a few vectors of code without a branch: its extent is known and small."""
        length = self._graph.constant_extent(loop, self._problem.constants)
        if not self._seen.isdisjoint(self._graph.originals(loop)):
            return False  # subsections are stepped through
        return length is not None and length * self._problem.dtype.itemsize <= _STRAIGHT_VECTORS * this_machine().vector_bytes

    def _clearing(self) -> float:
        """Return what it costs to clear arrays that are summed into, as often as the statement is entered that fills and reads them."""
        total, statement = 0.0, self._program.statement
        for address, leaf in self._leaves:
            name = leaf.target.tensor
            if name in self._arrays and name not in self._registers and leaf.operator == "+=":
                sides = (length for length in reversed(range(len(address))) if address[length] == 1)
                living = next(address[:length] for length in sides if isinstance(at(statement, address[:length]), Where))
                elements, entered = self._elements[name], self._points(self._covered(living), address, leaf)
                total += _CLEARED * _distance(elements) * elements * entered / self._threads(living)
        return total

    def _put_in_order(self, leaf: Assign, loops: Sequence[str]) -> float:
        """Return what an entry of a sparse result costs beside being written, where loops do not come in the order of its levels."""
        form = self._formats.get(leaf.target.tensor)
        if form is None or form.is_dense or not leaf.target.is_plain:
            return 0.0
        around = [name for loop in loops for name in self._graph.originals(loop)]
        places = [around.index(name) for mode in form.order if (name := leaf.target.subscripts[mode].index) in around]
        if places == sorted(places) or shares_pattern(self._program, Situation(self._program, self._formats, self._problem.extents)):
            return 0.0
        return _UNORDERED

    def _moves(self, access: Access, innermost: set[str]) -> bool:
        """Return whether each iteration of the innermost loop touches another value of a tensor that is in memory."""
        if access.tensor in self._registers:
            return False
        originals = {original for index in access.indices for original in self._graph.originals(index)}
        return bool(originals & innermost)

    def _held(self, target: Access, loops: Sequence[str]) -> int | None:
        """Return the place of the outermost loop inside of which what a sum goes to is a few elements that stay in registers while the sum
        is made; None: they never do."""
        originals = {original for index in target.indices for original in self._graph.originals(index)}
        places = [place for place, loop in enumerate(loops) if originals.isdisjoint(self._graph.originals(loop))]
        form = self._formats.get(target.tensor)
        if form is not None and not form.is_dense:
            return None
        room = _HELD_REGISTERS * this_machine().vector_bytes / self._problem.dtype.itemsize
        return next((place for place in places if self._held_elements(target, loops[place:]) <= room), None)

    def _held_elements(self, target: Access, loops: Sequence[str]) -> float:
        """Return how many elements of a result some loops go through; infinitely many where an extent is not known to the compiler."""
        originals = {original for index in target.indices for original in self._graph.originals(index)}
        own = (loop for loop in loops if not originals.isdisjoint(self._graph.originals(loop)))
        return math.prod(self._problem.constants.get(loop, math.inf) for loop in own)

    def _multiplied(self, value: Expr, innermost: set[str]) -> float:
        """Return the operations on values in an iteration of the innermost loop; what stands still in it is multiplied once before."""
        if not isinstance(value, Mul):
            return max(1.0, float(operation_count(value)))
        moving = sum(self._varies(factor, innermost) for factor in value.operands)
        return max(1.0, moving - 1.0 + (moving < len(value.operands)))

    def _varies(self, factor: Expr, innermost: set[str]) -> bool:
        return any(innermost.intersection(self._graph.originals(index)) for access in accesses(factor) for index in access.indices)

    def _array_elements(self, access: Access) -> float:
        """Return how large the array is that an access reads: of a workspace, or of a dense operand."""
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

    def _shared_out(self, address: Address, operations: float, leaf: Assign) -> float:
        """Return the operations of one thread, and what sharing them costs each time the parallel loop is entered."""
        outside: set[str] = set()
        for frame in frames(self._program.statement, address):
            if not isinstance(frame, Forall):
                continue
            if frame.tag.unit == "cpu_thread":
                entered = self._points(outside, address, leaf)
                shared = leaf.target.tensor not in self._elements  # what is no workspace of a thread's own
                if shared and frame.tag.race == "atomics":
                    operations += _ATOMIC * self._updates(address, leaf, frame.index)
                if shared and frame.tag.race == "temporary":
                    operations += entered * self._result_size() * self._problem.threads
                return operations / self._sharers(frame.index) + entered * _start_operations()
            outside.update(self._graph.originals(frame.index))
        return operations

    def _updates(self, address: Address, leaf: Assign, parallel: str) -> float:
        """Return how often a parallel loop adds to the result: what loops inside of all that belongs to it run through is summed before."""
        loops, components = enclosing_loops(self._program.statement, address), self._originals(leaf.target.indices)
        own = [place for place, loop in enumerate(loops) if loop == parallel or components.intersection(self._graph.originals(loop))]
        around = loops[: own[-1] + 1]
        if self._summed_first(leaf, around):
            return self._cut(address, leaf, around)
        return self._points(self._originals(around), address, leaf)

    def _result_size(self) -> float:
        return math.prod(float(self._problem.extents[index]) for index in self._problem.assignment.target.indices)

    def _size(self, indices: Sequence[str]) -> float:
        """Return how many elements an array over some indices has, as far as extents are known."""
        return math.prod(self._length(index) for index in indices)

    def _length(self, index: str) -> float:
        positions = counted_positions(self._graph, index, self._formats)
        if positions is not None:
            access, level = positions
            return self._prefixes[self._sources.get(access.tensor, access.tensor)][level]
        return float(self._graph.constant_extent(index, self._problem.extents) or 1)

    def _conversions(self) -> float:
        return CONVERSION * converted_entries(self._problem, self._program, self._sources)

    def _fits_registers(self, indices: Sequence[str]) -> bool:
        lengths = [self._graph.constant_extent(index, self._problem.extents) for index in indices]
        return all(length is not None for length in lengths) and math.prod(length or 0 for length in lengths) <= _REGISTER_ELEMENTS
