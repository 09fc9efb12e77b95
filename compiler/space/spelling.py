"""Schedules of the space as schedules of the scheduling language: the directives that make a program from the default one.

First the right-hand side is written as the algebraic form has it (``addends``), then every workspace is computed in loops of its
own over all indices that it carries (``precompute``), these loops are ordered, and shared from the outside inwards (``join``,
``recompute``). Conversions, protocols and kinds of workspaces follow; where protocols are not part of the space, operands are only put in
the order of the loops and the rest is left to the compiler. Paths to loops are found by applying the directives written so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ..concrete.assembled import handing
from ..concrete.concretize import Concretized
from ..concrete.nodes import Assign, Forall, Program, Stmt, assignments, transform
from ..concrete.said import said_of
from ..errors import ScheduleError
from ..format import Format
from ..notation.nodes import Access, Assignment, Expr, index_subscript, transform_expression
from ..notation.order_free import order_free_text
from ..schedule import directives as d
from ..schedule.addresses import Address, chain, executed, frames, path_to
from ..schedule.apply import carry_out
from ..schedule.factors import flatten
from ..schedule.schedule import Schedule
from ..workspaces import keeps_entries
from .layout import Layout, Nest
from .naming import workspace_names
from .reads import operands_read, told_apart, workspaces_read
from .reformat import kind_for_protocols
from .space import Member
from .statements import workspace_number


def spelled(member: Member, default: Concretized) -> Schedule:
    """Return the schedule that makes a member of the space from the default program of its expression.

    Args:
        member: of the space.
        default: the default program, with a format for every tensor.
    """
    return Schedule(Speller(member, default).directives())


class Speller:
    """Writes the directives of one member.

    Args:
        member, default: as in ``spelled``.
        said: how its expressions are written.
    """

    def __init__(self, member: Member, default: Concretized, said: Callable[[Expr], Expr] = lambda value: value) -> None:
        self.member = member
        self.said = said
        self.default = default
        self.formats: dict[str, Format] = dict(default.formats)
        self.table = member.nestings.table
        self.layout: Layout = member.layout
        self.numbers = tuple(sorted(self.layout.enclosing))
        self.roots = tuple(number for number in self.numbers if self.table[number].root)
        self.names = workspace_names(self.table, self.layout)
        self.consumers = {child: number for number in self.numbers for child in self.table[number].workspaces}
        self.nests = dict(_nests_of(self.layout.nest, ()))
        self.loops = {number: self._loops(number) for number in self.numbers}
        self.program = default.program
        self.written: list[d.Directive] = []

    def directives(self) -> list[d.Directive]:
        """Return the directives that turn the default program into the member, in the order in which they are applied."""
        self._convert()
        self.addends()
        self.nest_all()
        self.accumulate()
        self._reads()
        if self.member.nestings.protocols:
            self._kinds()
        return self.written

    def nest_all(self) -> None:
        """Compute workspaces, order loops, and share them."""
        for number in self.numbers[::-1]:
            for child in self.table[number].workspaces:
                if not self.table[child].summed:
                    self.precompute(number, child)
        for number in self.numbers:
            self.reorder(number)
        self.share(self.layout.nest)

    def write(self, directive: d.Directive) -> None:
        """Carry out a directive on the program, and append it to what is written."""
        self.program = carry_out(self.program, directive, self.formats)
        self.written.append(directive)

    # The loops of a single statement

    def _loops(self, number: int) -> tuple[str, ...]:
        """Return the loops of a statement, in order, without those that only recompute it.

        A loop that is shared with a producer that sums over it is one of the consumer, which then sums.
        """
        own = self.table[number].needs.union(*(self._carried(child) for child in self.table[number].workspaces))
        return tuple(name for name in self.layout.enclosing[number] if name in own)

    def _carried(self, number: int) -> tuple[str, ...]:
        """Return the indices of a workspace while no loop is shared, in the order of the loops around its reader."""
        reader = self.layout.enclosing[self.consumers[number]]
        shared = {name for nest in self.nests[number] if nest in self.nests[self.consumers[number]] for name in nest.loops}
        kept = self.table[number].carries | (shared & set(self._loops(number)))
        return tuple(name for name in reader if name in kept)

    # The algebraic form

    def addends(self) -> None:
        """Bring the program into the algebraic form that is computed, and give the result of each addend a name of its own."""
        if not self._is_form(self.program):
            self.write(d.Addends((*self._named_sums(), *map(self.addend, self.roots))))
        # the results of several roots get different names, which no text shows
        pending = iter(self.roots)

        def rule(node: Stmt) -> Stmt | None:
            if not isinstance(node, Assign) or node.target.tensor != self.table.target.tensor:
                return None
            return replace(node, target=replace(node.target, tensor=self._name(next(pending))))

        self.program = replace(self.program, statement=transform(self.program.statement, rule))
        self.formats |= {self._name(number): self.formats[self.table.target.tensor] for number in self.roots}

    def _is_form(self, program: Program) -> bool:
        """Return whether a program is one nest around the only root as it is written here."""
        statement = program.statement
        while isinstance(statement, Forall):
            statement = statement.body
        first, *others = self.roots
        if not isinstance(statement, Assign) or others or any(self.table[number].summed for number in self.numbers):
            return False
        return order_free_text(flatten(statement.value)) == order_free_text(self.addend(first))

    def _named_sums(self) -> Iterator[Assignment]:
        for number in self.numbers:
            if self.table[number].summed:
                yield Assignment(self._access(number), "=", self.addend(number))

    def addend(self, number: int) -> Expr:
        """Return the right-hand side of a statement with its producers written out, except those that are sums of their own."""

        def rule(part: Expr) -> Expr | None:
            other = workspace_number(part) if isinstance(part, Access) else None
            if other is None:
                return None
            return self._access(other) if self.table[other].summed else self.addend(other)

        return self.said(flatten(transform_expression(self.table[number].value, rule)))

    def _access(self, number: int) -> Access:
        return Access(self.names[number], tuple(map(index_subscript, self._carried(number))))

    def _name(self, number: int) -> str:
        return f"#{number}" if self.table[number].root else self.names[number]

    # Workspaces, orders, shared loops

    def precompute(self, consumer: int, number: int) -> None:
        """Write that ``consumer`` reads the value of the statement ``number`` from a workspace."""
        over = self._carried(number)
        self.write(d.Precompute(self.addend(number), over, over, self.names[number], path=self.path(self.address(consumer)) or None))

    def reorder(self, number: int) -> None:
        """Write the order of the loops around a statement, unless they are in that order already."""
        path = self.path(self.address(number))
        present = chain(self.program.statement, self.nest(number))
        wanted = self.loops[number]
        if present != wanted:
            self.write(d.Reorder(wanted, path=path or None))

    def share(self, nest: Nest) -> None:
        """Bring the statements of a nest into one loop after the other, then those of its parts."""
        members = [number for number in self.in_order() if nest in self.nests[number]]
        if len(members) == 1:
            return
        for index in nest.loops:
            for number in members[-2::-1]:
                first = self.path(self.nest(number) if index not in self.loops[number] else self.loop(number, index))
                second = self.path(self.loop(members[-1], index))
                kind = d.Join if index in self.loops[number] else d.Recompute
                self.write(kind(index, first, second))
        for part in nest.parts:
            self.share(part)

    def accumulate(self) -> None:
        """Write which workspaces are added to in the paper's space although nothing is summed."""
        if not self.member.paper_operators:
            return
        written = {assign.target.tensor: assign.operator for assign in assignments(self.program.statement)}
        for number in self.numbers:
            if not self.table[number].root and self.table[number].operator == "+=" and written[self.names[number]] == "=":
                self.write(d.Accumulate(self.names[number]))

    # Data

    def _convert(self) -> None:
        """Convert operands that all reads need in another format, and undo the default program's conversions that none needs."""
        wanted: dict[Access, set[Format]] = {access: set() for access, _ in self.default.program.conversions}
        for number in self.numbers:
            for access, form, _ in operands_read(self.member, self.formats, number):
                wanted.setdefault(access, set()).add(form)
        for access, forms in wanted.items():
            given = self.formats[access.tensor]
            form = forms.pop() if len(forms) == 1 else given
            if form.in_memory != (said_of(access, self.default.program.conversions) or given).in_memory:
                self.write(d.Convert(access, str(form.in_memory)))

    def _reads(self) -> None:
        """Convert single reads where equal accesses need different formats, and write the protocols of all."""
        for number in self.in_order():
            path = self.path(self.address(number)) or None
            operands = list(operands_read(self.member, self.formats, number))
            for access, place, form in told_apart([(access, form) for access, form, _ in operands]):
                if form.in_memory != (said_of(access, self.program.conversions) or self.formats[access.tensor]).in_memory:
                    self.write(d.Convert(access, str(form.in_memory), place=place, path=path))
            if not self.member.nestings.protocols:
                continue
            protocols = [(access, protocols) for access, _, protocols in operands]
            spaces = {space.name: space.indices for space in self.program.workspaces}
            for access, place, chosen in told_apart([*protocols, *workspaces_read(self.member, self.names, spaces, number)]):
                self.write(d.ProtocolDirective(access, chosen, place=place, path=path))

    def _kinds(self) -> None:
        sparse = not self.formats[self.table.target.tensor].is_dense
        spaces = [space for space in self.program.workspaces if space.indices]
        kinds = {space.name: kind_for_protocols(space, self.program.statement, sparse) for space in spaces}
        keeping = {name for name, kind in kinds.items() if keeps_entries(kind)}.union(map(self._name, self.roots) if sparse else ())
        asked = handing(self.program.statement, keeping)  # the workspaces that they read must know their entries too
        for name, kind in kinds.items():
            self.write(d.WorkspaceDirective(name, "list" if name in asked and kind == "dense" else kind))

    # Places in the program as it is now

    def address(self, number: int) -> Address:
        """Return the address of the assignment of a statement."""
        return self._addresses()[self._name(number)]

    def _addresses(self) -> dict[str, Address]:
        """Return the address of every assignment by what it writes, in the order in which they run."""
        return {leaf.target.tensor: address for address, leaf in executed(self.program.statement)}

    def in_order(self) -> list[int]:
        """Return the statements in the order in which they run."""
        numbers = {self._name(number): number for number in self.numbers}
        return [numbers[name] for name in self._addresses()]

    def nest(self, number: int) -> Address:
        """Return the address of the nest of loops directly around an assignment."""
        address = self.address(number)
        outside = [depth for depth, frame in enumerate(frames(self.program.statement, address)) if not isinstance(frame, Forall)]
        return address[: outside[-1] + 1] if outside else ()

    def loop(self, number: int, index: str) -> Address:
        """Return the address of the loop over an index around an assignment.

        Raises:
            ScheduleError: the loop is shared, but the language computes the assignment before it.
        """
        address = self.address(number)
        found = frames(self.program.statement, address)
        depth = next((depth for depth, frame in enumerate(found) if isinstance(frame, Forall) and frame.index == index), None)
        if depth is None:
            raise ScheduleError(f"no loop over {index} is around {self._name(number)}")
        return address[:depth]

    def path(self, address: Address) -> tuple[int, ...]:
        """Return the path to an address in the program as it is now, by which directives name its nest; empty for the outermost one."""
        return path_to(self.program.statement, address)


def _nests_of(nest: Nest, around: tuple[Nest, ...]) -> Iterator[tuple[int, tuple[Nest, ...]]]:
    """Yield every statement with the nests that it stands in, outermost first."""
    here = (*around, nest)
    if nest.statement is not None:
        yield nest.statement, here
    for part in nest.parts:
        yield from _nests_of(part, here)
