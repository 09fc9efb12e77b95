"""What a schedule costs by the static model: from its loop nest and the sizes of the operands, without running anything.

In each iteration of the loops around it (``iterations``) an assignment costs its multiplications (one operation at least; an addition is
fused to it), and one operation for each value that it loads or stores, more where the array is larger than a cache. Values in registers,
and values that the innermost loop does not move through, cost nothing. A loop over contiguous values of dense tensors counts by vectors,
and costs something each time it starts; operations of sums over short rows of stored entries take longer. Where stored operands meet,
a loop steps through all that each of them stores. Matrix products by BLAS have a cost of their own (``routines``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import takewhile

from ..compiler.concrete.nodes import Assign, Forall, Program, Where
from ..compiler.ir.limits import LONGEST_ROW
from ..compiler.native.machine import this_machine
from ..compiler.notation.nodes import Access, accesses, operation_count
from ..compiler.schedule.addresses import Address, at, enclosing_loops, frames
from ..compiler.schedule.directives import CALL_LOOPS
from ..compiler.space.conversions import converting
from ..compiler.space.decorations import shares_pattern
from ..compiler.space.distances import LANES, NEAR, REGISTERS, START, cleared
from ..compiler.space.situation import Situation
from .constants import Constants, machine_constants
from .cut_rows import CutRows
from .encodings import converted_operands
from .problem import Problem
from .products import Products
from .routines import matrix_product
from .stepping import Stepping
from .steps import log2

_HALVED = 2.0  # operations that adding one half of a vector to the other costs
_STEP = 2.0  # operations that going on to the next stored coordinate costs
_STRAIGHT_VECTORS = 1  # longest innermost loop, in vectors, that is compiled without a branch
_HELD_REGISTERS = 16  # most registers that hold a result while it is summed up
_BESIDE = 2.0  # operations that load and store an element of a row that is summed beside the result and too long for registers
_HANDED = 150.0  # operations that it costs to clear a line of an array whose lines other threads fill: it comes from their caches and back
_ATOMIC = 35.0  # operations that an atomic update costs (measured: 4.4 ns)
_CONVERTED = 1.8e-4  # seconds that converting a dense operand takes in each call besides its entries (measured: 1.7e-4 to 2.4e-4)
_COPIED = (2.0, 20.0)  # operations to clear an element of a thread's own result and to add it to that of all: near, and farther away
_UNORDERED = 60.0  # further operations for an entry of a sparse result that is written in another order than it is stored in


def operations(problem: Problem, program: Program, sources: Mapping[str, str], constants: Constants | None = None) -> float:
    """Return the cost of a program on the operands of a problem.

    Args:
        problem: gives the operands.
        program: a scheduled program of its expression.
        sources: the user's name of every operand in the program.
        constants: of the machine; None: those of this one.
    """
    return _Costs(problem, program, sources, constants or machine_constants()).total()


def scalar_operations(problem: Problem, program: Program, sources: Mapping[str, str]) -> float:
    """Return how many scalar operations a run of a program does, a fused multiply-add being two, without what conversions cost.

    Iterations are counted as for ``operations``.
    """
    return _Costs(problem, program, sources, machine_constants()).scalar_operations()


class _Costs(Products, Stepping, CutRows):
    """Costs of one program on the operands of a problem; see ``operations``."""

    def __init__(self, problem: Problem, program: Program, sources: Mapping[str, str], constants: Constants) -> None:
        super().__init__(problem, program, sources)
        self._constants = constants

    def total(self) -> float:
        done = sum(self._leaf(address, leaf) + self._entering(address, leaf) for address, leaf in self._leaves)
        beginning = self._constants.start / self._constants.operation * self._starts()
        return done + self._meetings() + self._fibres() + self._clearing() + self._conversions() + beginning

    def scalar_operations(self) -> float:
        return sum(
            self._points(self._covered(address), address, leaf) * (operation_count(leaf.value) + (leaf.operator == "+="))
            for address, leaf in self._leaves
        )

    def _leaf(self, address: Address, leaf: Assign) -> float:
        called = (frame.tag.routine for frame in frames(self._program.statement, address) if isinstance(frame, Forall))
        if (routine := next((one for one in called if one in ("gemm", "gemv")), None)) is not None:
            return self._by_blas(address, leaf, CALL_LOOPS[routine])
        loops = enclosing_loops(self._program.statement, address)
        iterations = self._points(self._covered(address), address, leaf)
        first = self._summed_first(leaf, loops)
        gathered = bool(first) and self._is_gathered(leaf, loops)
        sums = self._row_sums(address, leaf, loops, first) if gathered else iterations
        by_row = bool(first) and self._graph.space(loops[-1]) == "position"
        innermost = first if by_row else set(self._graph.originals(loops[-1])) if loops else set()
        contiguous = innermost.isdisjoint(self._seen) and self._is_contiguous((leaf.target, *accesses(leaf.value)), innermost)
        around = None if contiguous else self._vector_loop(address, leaf)
        apart = not contiguous and around is None and not self._is_over_stored(leaf, innermost)
        is_read = self._moves if around is None else self.varies  # with lanes outside, each value is read for all of them
        reads = [access for access in accesses(leaf.value) if is_read(access, innermost)]
        streamed = {access for access in (leaf.target, *reads) if contiguous and self._is_streamed(access, address, leaf)}
        loaded = [self._loaded(one, leaf, address, loops) if around is None else 1.0 for one in reads]
        read = sum(share * self._read(one, innermost, apart, one in streamed) for share, one in zip(loaded, reads, strict=True))
        in_tiles = gathered and self._runs_in_tiles(address)
        elements = self._far_elements(leaf.target, self._along(leaf.target)) if in_tiles else 0.0  # empty ones are stored too
        reached = self._reached(leaf, innermost, leaf.target in streamed) * self.jumped(leaf, loops)
        stored = 2.0 * reached * max(min(iterations, sums), elements) / max(1.0, iterations)
        stored += _BESIDE if gathered and self._row_elements(leaf, loops) > self._held_room() else 0.0
        written = stored if self._moves(leaf.target, innermost) else 0.0
        held, kept = self._held(leaf.target, loops), 0.0
        if held is not None and any(self._moves(leaf.target, set(self._graph.originals(loop))) for loop in loops[held:]):
            times = self._points(self._originals(loops[:held]), address, leaf)
            written, kept = 0.0, stored * times * self._held_elements(leaf.target, loops[held:])
        lanes = self._lanes(around or loops[-1]) if contiguous or around else 1.0
        started = sums if by_row else self._points(self._originals(loops[:-1]), address, leaf) if len(loops) > 1 else 0.0
        each = (self.multiplied(leaf, address, loops, innermost, contiguous) + read + written) / lanes + self._put_in_order(leaf, loops)
        start = 0.0 if not started else START / lanes if around else self._start(loops, leaf)
        again = self.passed_again(address, leaf, iterations) + (0.0 if held is not None or in_tiles else self.filled_before(leaf))
        done = iterations * each + kept / lanes + start * started
        if lanes == 1.0 and self._sums_short_rows(address, leaf, loops):
            done *= self._constants.short_sums / self._constants.operation
        return self._shared_out(address, done + again, leaf)

    def _by_blas(self, address: Address, leaf: Assign, count: int) -> float:
        """Return what an assignment costs whose three innermost loops are a product of two matrices by BLAS, or whose two innermost loops
        one of a matrix and a vector. BLAS takes several threads where no loop around it does."""
        loops = enclosing_loops(self._program.statement, address)
        around, own = loops[:-count], loops[-count:]
        dealt = any(isinstance(frame, Forall) and frame.tag.is_threaded for frame in frames(self._program.statement, address))
        kept = [self._length(loop) for loop in own if loop in leaf.target.indices]
        summed = [self._length(loop) for loop in own if loop not in leaf.target.indices]
        each = matrix_product(*(*kept, 1.0)[:2], *summed, threads=1 if dealt else self._problem.threads)
        return self._shared_out(address, self._points(self._originals(around), address, leaf) * each, leaf)

    def _vector_loop(self, address: Address, leaf: Assign) -> str | None:
        """Return the loop whose iterations become lanes of vectors, with the loops inside running for all of them at once
        (``passes.vectorize``): of the dense loops directly around an assignment, the outermost that goes through consecutive values. If
        the loops inside go through other elements of what is written, it has to be so short that the C compiler writes it out."""
        own = takewhile(lambda frame: isinstance(frame, Forall), reversed(frames(self._program.statement, address)))
        found, inside, touched = None, set[str](), (leaf.target, *accesses(leaf.value))
        for frame in own:
            assert isinstance(frame, Forall)
            names = set(self._graph.originals(frame.index))
            if frame.tag.is_threaded or self._is_over_stored(leaf, names) or not names.isdisjoint(self._seen):
                break
            able = self._is_straight(frame.index) or not self.varies(leaf.target, inside)
            found = frame.index if able and self._is_contiguous(touched, names) and self.varies(leaf.target, names) else found
            inside |= names
        return found

    def _is_over_stored(self, leaf: Assign, innermost: set[str]) -> bool:
        """Whether an innermost loop goes through stored coordinates."""
        return any(self._is_stored(access) and not innermost.isdisjoint(access.indices) for access in accesses(leaf.value))

    def _lanes(self, loop: str, most: float = LANES) -> float:
        """Return the lanes that vectors in a loop have: at most its number of iterations; by default, how many times as fast it is."""
        length = self._graph.constant_extent(loop, self._problem.extents)
        return most if length is None else min(most, max(1.0, length))

    def _start(self, loops: Sequence[str], leaf: Assign) -> float:
        """Return what it costs each time that the innermost loop begins. If it sums, the lanes of the vector are added up afterwards, and
        the sum is multiplied by the factors that do not change.

        If it is code without a branch: the product of the factors that it does not change, and the next coordinate of the loop around it.
        """
        around, innermost = self._originals(loops[-2:-1]), self._originals(loops[-1:])
        summed = self._is_contiguous((leaf.target, *accesses(leaf.value)), innermost) and not self.varies(leaf.target, innermost)
        straight = self._is_straight(loops[-1])
        lanes = self._lanes(loops[-1], this_machine().vector_bytes / self._problem.dtype.itemsize)
        steps = straight and any(self._is_stored(access) and not around.isdisjoint(access.indices) for access in accesses(leaf.value))
        begun = self.begun(leaf.value, innermost, around, summed) if straight or summed else 0.0
        started = START if summed or not straight else 0.0
        return started + (_STEP if steps else 0.0) + begun + (_HALVED * log2(lanes) if summed else 0.0)

    def _is_straight(self, loop: str) -> bool:
        """Return whether a loop is a few vectors of code without a branch: its extent is known and small."""
        length = self._graph.constant_extent(loop, self._problem.constants)
        if not self._seen.isdisjoint(self._graph.originals(loop)):
            return False  # subsections are stepped through
        return length is not None and length * self._problem.dtype.itemsize <= _STRAIGHT_VECTORS * this_machine().vector_bytes

    def _clearing(self) -> float:
        """Return what it costs to clear the arrays that are summed into, each time the statement is entered that fills and reads them.

        One thread clears an array that several fill: its lines come from the caches of those that filled it before, and go there again.
        """
        total, statement = 0.0, self._program.statement
        for address, leaf in self._leaves:
            name = leaf.target.tensor
            if name in self._arrays and leaf.operator == "+=":
                sides = (length for length in reversed(range(len(address))) if address[length] == 1)
                living = next(address[:length] for length in sides if isinstance(at(statement, address[:length]), Where))
                elements, entered = self._elements[name], self._points(self._covered(living), address, leaf)
                total += cleared(elements, self._per_line) * entered / self._threads(living)
                if elements > REGISTERS and self._threads(address) > self._threads(living):
                    total += _HANDED * elements / self._per_line * entered / self._threads(living)
        return total

    def _put_in_order(self, leaf: Assign, loops: Sequence[str]) -> float:
        """Return what an entry of a sparse result costs besides being written, where loops do not come in the order of its levels."""
        form = self._formats.get(leaf.target.tensor)
        if form is None or form.is_dense or not leaf.target.is_plain:
            return 0.0
        around = [name for loop in loops for name in self._graph.originals(loop)]
        places = [around.index(name) for mode in form.order if (name := leaf.target.subscripts[mode].index) in around]
        if places == sorted(places) or shares_pattern(self._program, Situation(self._program, self._formats, self._problem.extents)):
            return 0.0
        return _UNORDERED

    def _held(self, target: Access, loops: Sequence[str]) -> int | None:
        """Return the place of the outermost loop inside which a sum goes to so few elements that they stay in registers; None: there is
        no such loop."""
        originals = {original for index in target.indices for original in self._graph.originals(index)}
        places = [place for place, loop in enumerate(loops) if originals.isdisjoint(self._graph.originals(loop))]
        form = self._formats.get(target.tensor)
        if form is not None and not form.is_dense:
            return None
        room = self._held_room()
        return next((place for place in places if self._held_elements(target, loops[place:]) <= room), None)

    def _held_room(self) -> float:
        """Return how many elements of a sum stay in registers."""
        return _HELD_REGISTERS * this_machine().vector_bytes / self._problem.dtype.itemsize

    def _is_gathered(self, leaf: Assign, loops: Sequence[str]) -> bool:
        """Return whether a row that loops through positions sum is short enough to be kept beside the result until it is done."""
        return self._row_elements(leaf, loops) <= LONGEST_ROW

    def _row_elements(self, leaf: Assign, loops: Sequence[str]) -> float:
        """Return how many elements of the result one position adds to, in a nest with a loop through positions."""
        return self._held_elements(leaf.target, loops[loops.index(self._through_positions(loops)[-1]) + 1 :])

    def _runs_in_tiles(self, address: Address) -> bool:
        """Return whether threads have tiles of positions, whose whole rows are stored once (``passes.whole_rows``)."""
        tags = (frame.tag for frame in frames(self._program.statement, address) if isinstance(frame, Forall))
        return any(tag.is_threaded and tag.race == "atomics" for tag in tags)

    def _held_elements(self, target: Access, loops: Sequence[str]) -> float:
        """Return how many elements of a result some loops go through; infinitely many where an extent is not known to the compiler."""
        originals = {original for index in target.indices for original in self._graph.originals(index)}
        own = (loop for loop in loops if not originals.isdisjoint(self._graph.originals(loop)))
        return math.prod(self._problem.constants.get(loop, math.inf) for loop in own)

    def _shared_out(self, address: Address, operations: float, leaf: Assign) -> float:
        """Return the operations of one thread, with those that keep the threads of a parallel loop apart."""
        outside: set[str] = set()
        for frame in frames(self._program.statement, address):
            if not isinstance(frame, Forall):
                continue
            if frame.tag.is_threaded:
                entered = self._points(outside, address, leaf)
                shared = leaf.target.tensor not in self._elements  # not a workspace, of which each thread has its own
                if shared and frame.tag.race == "atomics":
                    operations += _ATOMIC * self._updates(address, leaf, frame.index)
                if shared and frame.tag.race == "temporary":
                    operations += entered * self._copies_apart()
                return operations / self._sharers(frame.index)
            outside.update(self._graph.originals(frame.index))
        return operations

    def _updates(self, address: Address, leaf: Assign, parallel: str) -> float:
        """Return how often a parallel loop adds to the result. Loops that are inside all loops of the result sum in registers first."""
        loops, components = enclosing_loops(self._program.statement, address), self._originals(leaf.target.indices)
        own = [place for place, loop in enumerate(loops) if loop == parallel or components.intersection(self._graph.originals(loop))]
        around = loops[: own[-1] + 1]
        first = self._summed_first(leaf, around)
        if not first:
            return self._points(self._originals(around), address, leaf)
        each = 1.0 if self._is_gathered(leaf, around) else self._entries_of_a_row(address, leaf, around, first)
        if self._originals([parallel]) - first <= components:
            return each * self._cut(address, leaf, around)
        return each * self._row_sums(address, leaf, around, first)  # rows of other pieces are added to the same elements

    def _copies_apart(self) -> float:
        """Return what it costs that each thread has a result of its own."""
        elements = math.prod((self._problem.extents[index] for index in self._problem.assignment.target.indices), start=1.0)
        return _COPIED[elements > NEAR] * self._problem.threads * elements

    def _conversions(self) -> float:
        converted = converted_operands(self._problem, self._program, self._sources)
        begun = _CONVERTED / self._constants.operation
        return sum(begun * stored.is_dense + entries * converting(stored, wanted) for entries, stored, wanted in converted)
