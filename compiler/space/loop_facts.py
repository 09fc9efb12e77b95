"""Facts about the loops of the whole space: the directives that fit them, the orders that they may have, which of them are alike."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from functools import cached_property

from ..concrete.concretize import Concretized
from ..format import Format
from ..notation.nodes import Access
from ..units import UNITS
from .nestings import Nestings
from .options import Facts, Options
from .pieces import Pieces, Run
from .whole_plan import Orders, Place


class LoopFacts:
    """What is known of loops around statements, as far as the open choices need it.

    Args:
        default: the default program.
        target: the left side.
        stored: the operands that are stored.
        pieces: what indices become.
        nestings: of the loops that they become.
        options: which choices are open.
        extents: compile-time constants, by index.
    """

    def __init__(
        self, default: Concretized, target: Access, stored: tuple[str, ...], pieces: Pieces, nestings: Nestings, options: Options,
        extents: Mapping[str, int],
    ) -> None:  # fmt: skip
        self.stored, self.options = stored, options
        self._default, self._target, self._pieces, self._nestings, self._extents = default, target, pieces, nestings, extents
        self._sides: dict[tuple[str, tuple[int, ...]], tuple[bool, ...]] = {}
        self._read: dict[tuple[int, ...], tuple[str, ...]] = {}
        self._stored_here: dict[tuple[int, ...], frozenset[str]] = {}
        self._facts: dict[tuple[str, tuple[int, ...]], Facts] = {}
        self._told_alike: dict[Hashable, int] = {}

    def with_options(self, options: Options) -> LoopFacts:
        """Return the facts for other open choices; facts that do not depend on them are kept."""
        other = object.__new__(LoopFacts)
        other.__dict__.update(self.__dict__)
        other.options, other._facts, other._told_alike = options, {}, {}
        return other

    # How operands are stored

    @property
    def result(self) -> Format:
        """The format of the result."""
        return self._default.formats[self._target.tensor]

    @cached_property
    def in_memory(self) -> Mapping[str, Format]:
        """How the default program reads the stored operands: their formats in memory, which views of them share."""
        said = {operand.tensor: form for operand, form in self._default.program.conversions}
        return {name: said.get(name, self._default.formats[name]).in_memory for name in self.stored}

    @cached_property
    def held(self) -> Orders:
        """The orders in which the default program reads the modes of the stored operands, as they are in memory."""
        return tuple(self.in_memory[name].order for name in self.stored)

    @cached_property
    def _modes_in_memory(self) -> Mapping[str, Mapping[int, tuple[int, ...]]]:
        return {name: self._default.formats[name].modes_in_memory for name in self.stored}

    def read(self, statements: Sequence[int]) -> tuple[str, ...]:
        """Return the operands that some statements read."""
        known = self._read.get(tuple(statements))
        if known is None:
            found = (access.tensor for number in statements for access in self._nestings.table[number].operands)
            known = self._read[tuple(statements)] = tuple(dict.fromkeys(found))
        return known

    # Which directives one loop can have

    def of(self, loop: str, statements: tuple[int, ...]) -> Facts:
        """Return what is known of a loop around some statements."""
        known = self._facts.get((loop, statements))
        if known is None:
            known = self._facts[loop, statements] = self._known_of(loop, statements)
        return known

    def _known_of(self, loop: str, statements: tuple[int, ...]) -> Facts:
        operands = self.read(statements)
        if not self.options.fitting:
            return Facts((True,) * len(operands), units=self.options.units)
        run = self._pieces.runs[loop]
        completed = frozenset(run.indices if loop == run.loops[-1] else ())
        stored = [name for name in operands if self._has_coordinates(name, completed)]
        finds = bool(stored) or any(self._has_coordinates(name, completed) for name in self._handed_on(loop, statements))
        found = tuple(finds and bool(completed & self._pieces.choosing[name]) for name in operands)
        extent = self._extents.get(loop) if run.is_plain else None
        return Facts(found, len(stored) > 1, run.is_plain and loop in self._target.indices, extent, self._units(run, statements))

    def _has_coordinates(self, name: str, completed: frozenset[str]) -> bool:
        return bool(completed & self._pieces.coordinates.get(name, frozenset()))

    def _handed_on(self, loop: str, statements: tuple[int, ...]) -> Iterator[str]:
        """Yield the operands whose coordinates the loop may go through in a workspace that was filled before it."""
        table = self._nestings.table
        for other in (other for number in statements for other in table[number].workspaces if other not in statements):
            if loop in table[other].carries:
                yield from self.read(tuple(sorted(table.subtree(other))))

    def _units(self, run: Run, statements: tuple[int, ...]) -> tuple[str, ...]:
        """Return the units that may run a loop: threads that share the outermost level assemble sparse results together."""
        form, units = self.result, self.options.units
        if form.is_dense or not any(self._nestings.table[number].root for number in statements):
            return units
        outermost = self._target.subscripts[form.order[0]].indices
        return tuple(unit for unit in units if not UNITS[unit].is_vector and run.is_plain and run.indices == outermost)

    # Orders

    def is_in_order(self, place: Place, loop: str) -> bool:
        """Return whether the indices that a loop completes are stored below those that are complete already."""
        if not place.orders:
            return True
        scope, run = place.scope, self._pieces.runs[loop]
        left = {name for name in scope.loops if name != loop}
        if not left.isdisjoint(run.loops):
            return True
        pending = {index for name in left for index in self._pieces.runs[name].indices}
        return not any(
            pending.intersection(above)
            for number in scope.statements
            for access in self._nestings.stored(number)
            for index in run.indices
            for above in self._above(access, index, pending, place.orders)
        )

    def _above(self, access: Access, index: str, pending: Collection[str], orders: Orders) -> Iterator[tuple[str, ...]]:
        """Yield the indices of the levels above the one at which an operand stores the coordinates that an index settles: no other index
        of its subscript is pending."""
        subscripts = self._pieces.narrowed(access).subscripts
        modes = self._modes_in_memory[access.tensor]
        names = [
            tuple(name for own in modes[mode] for name in subscripts[own].indices) for mode in orders[self.stored.index(access.tensor)]
        ]
        level = next((number for number, several in enumerate(names) if index in several), 0)
        if level and not set(pending).intersection(names[level]):
            yield from names[:level]

    # Loops that are alike

    def sort(self, name: str, statements: tuple[int, ...]) -> tuple[int, tuple[bool, ...]]:
        """Return a key that is equal for two loops around some statements if they are interchangeable."""
        facts = self.of(name, statements)
        told = facts, self._placed(name, statements) if self.options.in_order else ()
        return self._told_alike.setdefault(told, len(self._told_alike)), self._side(name, statements)

    def _placed(self, name: str, statements: tuple[int, ...]) -> tuple[str, ...]:
        """Return the indices of a loop whose place among others depends on how operands are stored."""
        known = self._stored_here.get(statements)
        if known is None:
            read = (access for number in statements for access in self._nestings.stored(number))
            found = {index for access in read for index in self._pieces.narrowed(access).indices}
            known = self._stored_here[statements] = frozenset(found)
        return tuple(index for index in self._pieces.runs[name].indices if index in known)

    def _side(self, name: str, statements: tuple[int, ...]) -> tuple[bool, ...]:
        known = self._sides.get((name, statements))
        if known is None:
            table = self._nestings.table
            told = [flag for number in statements for flag in (name in table[number].needs, name in table[number].carries)]
            summed = [name in table[number].summed for number in statements]
            known = self._sides[name, statements] = (*told, *summed, name in table.target.indices)
        return known
