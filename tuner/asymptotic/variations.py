"""What is left of a scope's statements when some operands have no entry: the cases of the abstract interpretation.

The rules are those of ``Algebra.live``, on the statements of a grouping: a statement whose value is the fill value does nothing, and a
producer whose workspace nothing reads is not run. If the algebra looks ahead, a statement that reads a workspace whose producer does
nothing, in the same scope, reads its fill value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from ...compiler.notation.nodes import Access, Expr, Literal, accesses, transform_expression
from ...compiler.space.nestings import Nestings
from ...compiler.space.statements import workspace_number
from .algebra import Algebra

Read = tuple[int, int]
"""A statement, and the place of a sparse operand or workspace among its reads, as ``Nestings.read_indices`` numbers them."""

Variation = tuple[tuple[int, frozenset[int]], ...]
"""The statements that do something, in ascending order, each with the reads that are left in it."""


class Rest(NamedTuple):
    """One way to go on when a loop is opened: the variation that is left, and the stepped reads that must have an entry for it."""

    variation: int
    present: tuple[Read, ...]


class Variations:
    """The variations of the statements of a space, numbered; 0 is the one in which nothing is done."""

    def __init__(self, nestings: Nestings, algebra: Algebra) -> None:
        self._algebra = algebra
        self._nestings = nestings
        self._values: dict[int, Expr] = {}
        self._accesses: dict[int, tuple[Access, ...]] = {}
        self._variations: list[Variation] = [()]
        self._reads: list[frozenset[Read]] = [frozenset()]
        self._workspaces: list[frozenset[int]] = [frozenset()]
        self._numbers: dict[Variation, int] = {(): 0}
        self._left: dict[tuple[int, frozenset[int]], frozenset[int] | None] = {}
        self._rests: dict[tuple[int, tuple[int, ...], frozenset[Read]], tuple[Rest, ...]] = {}
        self._parts: dict[tuple[int, tuple[int, ...]], int] = {}

    def _number(self, variation: Variation) -> int:
        number = self._numbers.setdefault(variation, len(self._variations))
        if number == len(self._variations):
            reads = frozenset((statement, place) for statement, places in variation for place in places)
            workspaces = (workspace_number(self.reads(statement)[place]) for statement, place in reads)
            self._variations.append(variation)
            self._reads.append(reads)
            self._workspaces.append(frozenset(workspace for workspace in workspaces if workspace is not None))
        return number

    def reads(self, statement: int) -> tuple[Access, ...]:
        """Return the sparse operands, then the workspaces, that a statement reads."""
        known = self._accesses.get(statement)
        if known is None:
            value = self._values[statement] = transform_expression(self._nestings.table[statement].value, _copied)
            known = self._accesses[statement] = _reads(value, self._nestings.sparse)
        return known

    def whole(self, statements: tuple[int, ...]) -> int:
        """Return the variation of some statements in which every operand has entries."""
        full = {number: frozenset(range(len(self.reads(number)))) for number in statements}
        return self._number(self._settled(full, statements))

    def part(self, variation: int, statements: tuple[int, ...]) -> int:
        """Return the variation of some statements within one of more; nothing is done if the last of them does nothing."""
        known = self._parts.get((variation, statements))
        if known is None:
            part = tuple(entry for entry in self._variations[variation] if entry[0] in statements)
            known = self._number(part if part and part[-1][0] == statements[-1] else ())
            self._parts[variation, statements] = known
        return known

    def reads_of(self, variation: int) -> frozenset[Read]:
        """Return the reads that are left in a variation."""
        return self._reads[variation]

    def workspaces(self, variation: int) -> frozenset[int]:
        """Return the workspaces that are read in a variation."""
        return self._workspaces[variation]

    def rests(self, variation: int, statements: tuple[int, ...], stepped: frozenset[Read]) -> tuple[Rest, ...]:
        """Return what may be left after a loop steps through some reads; those with the same rest and more needs are dropped."""
        key = (variation, statements, stepped)
        known = self._rests.get(key)
        if known is None:
            known = self._rests[key] = tuple(self._enumerated(self._variations[variation], statements, sorted(stepped)))
        return known

    def goes_on(self, variation: int, statements: tuple[int, ...], stepped: frozenset[Read]) -> bool:
        """Whether anything is left where none of the reads that a loop steps through has an entry."""
        return any(not rest.present for rest in self.rests(variation, statements, stepped))

    def _enumerated(self, variation: Variation, statements: tuple[int, ...], stepped: list[Read]) -> Iterator[Rest]:
        needs: dict[Variation, set[frozenset[Read]]] = {}
        for flags in product((True, False), repeat=len(stepped)):
            absent = {read for read, there in zip(stepped, flags, strict=True) if not there}
            left = {number: frozenset(place for place in places if (number, place) not in absent) for number, places in variation}
            rest = self._settled(left, statements)
            if rest:
                remaining = {(number, place) for number, places in rest for place in places}
                needs.setdefault(rest, set()).add(frozenset(remaining.intersection(stepped)))
        for rest, options in needs.items():
            for present in options:
                if not any(other < present for other in options):
                    yield Rest(self._number(rest), tuple(sorted(present)))

    def _settled(self, left: dict[int, frozenset[int]], statements: tuple[int, ...]) -> Variation:
        """Drop what does nothing and what nothing reads; nothing is left if the scope's last statement does nothing."""
        table = self._nestings.table
        produced = {other for number in statements for other in table[number].workspaces}
        if self._algebra.looks_ahead:
            left = self._without_unfilled(left, produced.intersection(statements).difference(left))
        wanted = {number for number in statements if number not in produced}
        found: dict[int, frozenset[int]] = {}
        for number in sorted(left, reverse=True):
            rest = self._simplified(number, left[number]) if number in wanted else None
            if rest is not None:
                found[number] = rest
                workspaces = (workspace_number(self.reads(number)[place]) for place in rest)
                wanted.update(other for other in workspaces if other is not None)
        if statements[-1] not in found and not any(table[number].root for number in found):
            return ()
        return tuple(sorted(found.items()))

    def _without_unfilled(self, left: dict[int, frozenset[int]], unfilled: set[int]) -> dict[int, frozenset[int]]:
        """Drop what reads workspaces that stay unfilled: those given, and those whose producers thereby do nothing either."""
        found: dict[int, frozenset[int]] = {}
        for number in sorted(left):
            reads = self.reads(number)
            found[number] = frozenset(place for place in left[number] if workspace_number(reads[place]) not in unfilled)
            if self._simplified(number, found[number]) is None:
                unfilled.add(number)
        return found

    def _simplified(self, number: int, left: frozenset[int]) -> frozenset[int] | None:
        """Return the reads that are left in a statement; None if its value is the fill value."""
        key = (number, left)
        if key not in self._left:
            reads = self.reads(number)
            fills = {id(access): self._algebra.fill(access.tensor) for place, access in enumerate(reads) if place not in left}
            value = self._algebra.simplified(transform_expression(self._values[number], lambda node: fills.get(id(node))))
            remaining = {id(access) for access in accesses(value)}
            done = isinstance(value, Literal) and value.value == self._algebra.zero
            self._left[key] = None if done else frozenset(place for place, access in enumerate(reads) if id(access) in remaining)
        return self._left[key]


def _copied(value: Expr) -> Expr | None:
    """Copy accesses, so that equal ones are told apart."""
    return replace(value) if isinstance(value, Access) else None


def _reads(value: Expr, sparse: frozenset[str]) -> tuple[Access, ...]:
    """Return the sparse operands, then the workspaces, that an expression reads."""
    found = accesses(value)
    stored = [access for access in found if access.tensor in sparse]
    return (*stored, *(access for access in found if workspace_number(access) is not None))
