"""Finds the schedule of a space that a program is: its structure is read off the statement and looked up in the grammar.

Names of workspaces, the order of operands and the nesting of where statements without a loop in between do not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..concrete.nodes import Assign, Forall, Program, Stmt, assignments, in_sequence
from ..frozen import frozen
from ..notation.nodes import Access, Expr, accesses
from ..notation.printer import show
from .forms import canonical_text
from .grammar import Derivation
from .nestings import Cut, Executed, Loop, Nestings, Scope


@frozen
class Read:
    """A nest of a program: loops around one assignment, or around parts that run one after another."""

    loops: tuple[str, ...]
    assign: Assign | None
    parts: tuple[Read, ...] = ()

    def assigns(self) -> Iterator[Assign]:
        """Yield the assignments of the nest in the order in which they stand."""
        if self.assign is not None:
            yield self.assign
        for part in self.parts:
            yield from part.assigns()


def read_nest(statement: Stmt) -> Read:
    """Return a statement with where statements and blocks merged into sequences of parts, producers first."""
    loops: list[str] = []
    while isinstance(statement, Forall):
        loops.append(statement.index)
        statement = statement.body
    if isinstance(statement, Assign):
        return Read(tuple(loops), statement)
    return Read(tuple(loops), None, tuple(map(read_nest, in_sequence(statement))))


def program_key(program: Program, target: Access) -> tuple[str, ...] | None:
    """Return the ``Grouping.key`` that a program has, or None if its workspaces are not each written and read once."""
    written = assignments(program.statement)
    producers = {assign.target.tensor: assign for assign in written if assign.target.tensor != target.tensor}
    reads = [access.tensor for assign in written for access in accesses(assign.value) if access.tensor in producers]
    once = len(set(reads)) == len(reads) == len(producers) == sum(assign.target.tensor != target.tensor for assign in written)
    if not once:
        return None

    def leaf(value: Expr) -> str:
        if not isinstance(value, Access):
            return show(value)
        inner = producers.get(value.tensor)
        return show(Access(value.tensor, value.subscripts)) if inner is None else f"[{canonical_text(inner.value, leaf)}]"

    return tuple(sorted(canonical_text(assign.value, leaf) for assign in written if assign.target.tensor == target.tensor))


class Recognizer:
    """Finds the derivation of a program among the nests of one grouping with the program's key."""

    def __init__(self, nestings: Nestings, program: Program) -> None:
        self.nestings = nestings
        self.table = nestings.table
        self.nest = read_nest(program.statement)
        self.producers = {assign.target.tensor: assign for assign in assignments(program.statement)}
        self.numbers: dict[int, int] = {}  # id of an assignment -> its statement
        self.order: dict[tuple[int, int], Access] = {}  # (statement, sparse read) -> the access in the program

    def derivation(self, top: Scope) -> Derivation | None:
        """Return the choices that lead from the scope of a whole program to this one; None if the grammar does not make its nest."""
        roots = [assign for assign in self.nest.assigns() if assign.target.tensor == self.table.target.tensor]
        texts = {number: self.table.text(number) for number in top.statements if self.table[number].root}
        for assign in roots:
            number = next(number for number, text in texts.items() if text == self._text(assign))
            del texts[number]
            self._match(number, assign)
        return self._derive(top, self.nest)

    def summary(self) -> dict[int, tuple[str, frozenset[tuple[str, str]]]]:
        """Return what the derivation leaves open: each statement's operator, and index and protocol of each written mode."""
        found = {}
        for assign in self.nest.assigns():
            target = assign.target
            protocols = target.protocols or ("",) * len(target.subscripts)
            found[self.numbers[id(assign)]] = (assign.operator, frozenset(zip(map(str, target.subscripts), protocols, strict=True)))
        return found

    def _text(self, assign: Assign) -> str:
        return canonical_text(assign.value, self._leaf)

    def _leaf(self, value: Expr) -> str:
        if isinstance(value, Access):
            inner = self.producers.get(value.tensor)
            return show(Access(value.tensor, value.subscripts)) if inner is None else f"[{self._text(inner)}]"
        return show(value)

    def _match(self, number: int, assign: Assign) -> None:
        """Pair the operands of a statement with those of the assignment that has the same text."""
        self.numbers[id(assign)] = number
        pending: dict[str, list[Access]] = {}
        for access in accesses(assign.value):
            pending.setdefault(self._leaf(access), []).append(access)
        sparse = [access for access in self.table[number].operands if access.tensor in self.nestings.sparse]
        for place, access in enumerate(sparse):
            self.order[number, place] = pending[show(access)].pop(0)
        for place, other in enumerate(self.table[number].workspaces, len(sparse)):
            found = pending[f"[{self.table.text(other)}]"].pop(0)
            self.order[number, place] = found
            self._match(other, self.producers[found.tensor])

    def _derive(self, scope: Scope, nest: Read) -> Derivation | None:
        if nest.loops:
            inner = self.nestings.continued(scope, Loop(nest.loops[0]))
            if inner is None:
                return None
            choices = self._choices(scope, nest.loops[0])
            rest = self._derive(inner[0], Read(nest.loops[1:], nest.assign, nest.parts))
            return None if rest is None or choices is None else Derivation(Loop(nest.loops[0]), choices, (rest,))
        if nest.assign is not None:
            label = Executed(self.numbers[id(nest.assign)])
            return None if self.nestings.continued(scope, label) is None else Derivation(label, 0, ())
        sides = sorted(((self._statements(part), part) for part in nest.parts), key=lambda side: side[0][-1])
        label = Cut(tuple(statements for statements, _ in sides))
        scopes = self.nestings.continued(scope, label)
        if scopes is None:
            return None
        trees = [self._derive(part, side) for part, (_, side) in zip(scopes, sides, strict=True)]
        known = tuple(tree for tree in trees if tree is not None)
        return Derivation(label, 0, known) if len(known) == len(trees) else None

    def _statements(self, nest: Read) -> tuple[int, ...]:
        return tuple(sorted(self.numbers[id(assign)] for assign in nest.assigns()))

    def _choices(self, scope: Scope, name: str) -> int | None:
        """Return the protocols of the modes over ``name`` as the grammar's number, or None if one is missing."""
        if not self.nestings.protocols:
            return 0
        choices = 0
        given = dict(scope.given)
        for bit, (number, place, mode) in enumerate(self.nestings.protocol_modes(scope, name)):
            access = self.order[number, place]
            stored = sum(operand.tensor in self.nestings.sparse for operand in self.table[number].operands)
            if place >= stored:
                wanted = given[self.table[number].workspaces[place - stored]][mode]
                if wanted not in access.indices:
                    return None
                mode = access.indices.index(wanted)
            if len(access.protocols) != len(access.subscripts):
                return None
            choices |= (access.protocols[mode] == "locate") << bit
        return choices


def recognised(nestings: Nestings, top: Scope, program: Program, build: Callable[[Derivation], Program]) -> Derivation | None:
    """Return the derivation that stands for a program among the nests of one grouping, or None.

    Args:
        nestings: the nests of a grouping with the program's key.
        top: the scope of the whole program.
        program: the program.
        build: writes a derivation as a program.
    """
    reader = Recognizer(nestings, program)
    derivation = reader.derivation(top)
    if derivation is None:
        return None
    writer = Recognizer(nestings, build(derivation))
    writer.derivation(top)
    return derivation if reader.summary() == writer.summary() else None
