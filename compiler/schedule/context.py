"""The facts by which the directives of one schedule are checked: formats, extents, conversions, protocols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..concrete.nodes import Program, assignments, assignments_in_loops, loops, reads, targets
from ..concrete.said import operand_of, said_of, saying
from ..errors import FormatError
from ..format import Format, parse_format
from ..frozen import frozen
from ..levels import LevelKind
from ..notation.nodes import Access, accesses
from .dependence import graph_of
from .directives import Convert, ProtocolDirective
from .rules import Rule, refuse
from .schedule import Schedule


@frozen
class Context:
    """Formats of operands and result, known extents, and the conversions and protocols of operands, with the keys of ``said_of``."""

    types: Mapping[str, Format]
    extents: Mapping[str, int]
    conversions: tuple[tuple[Access, Format], ...] = ()
    protocols: tuple[tuple[Access, tuple[str, ...]], ...] = ()

    def format_of(self, access: Access) -> Format | None:
        """Return the format in which an access is read or written, or None for workspaces."""
        return access.stored or said_of(access, self.conversions) or self.types.get(access.tensor)

    def protocols_of(self, access: Access) -> tuple[str, ...]:
        """Return the protocol of every level of an access, outermost first; empty if the schedule gives none."""
        return access.protocols or said_of(access, self.protocols) or ()

    def levels(self, access: Access) -> tuple[tuple[LevelKind, tuple[str, ...]], ...]:
        """Return the kind and the indices of each level of an access, outermost first; empty for workspaces."""
        form = self.format_of(access)
        if form is None:
            return ()
        return tuple((kind, access.subscripts[mode].indices) for kind, mode in zip(form.levels, form.order, strict=True))


    def having_views(self, program: Program) -> Context:
        """Return the context with the formats of views as a program reads them."""
        views = [(operand, form) for operand, form in program.conversions if form.in_memory is not form]
        conversions = self.conversions
        for operand, form in views:
            conversions = saying(operand, form, conversions)
        return self if conversions == self.conversions else replace(self, conversions=conversions)

    def seen_in_order(self, program: Program) -> Program:
        """Return the program with views read in the order of its loops, if that does not change how their operands are stored."""
        graph, found = graph_of(program.relations), program.conversions
        for loops_around, assign in assignments_in_loops(program.statement):
            known = graph.known_after(loops_around)
            for access in accesses(assign.value):
                form = self.format_of(access)
                if form is None or form.in_memory is form or not all(name in known for name in access.indices):
                    continue
                wanted = form.following([known[part.index] for part in access.subscripts])
                if wanted != form and wanted.in_memory == form.in_memory:
                    found = saying(operand_of(access), wanted, found)
        return program if found == program.conversions else replace(program, conversions=found)


def context_of(program: Program, schedule: Schedule, types: Mapping[str, Format], extents: Mapping[str, int]) -> Context:
    """Return the context of a schedule. Conversions and protocols hold for the whole program, at any place in the schedule."""
    conversions, protocols = program.conversions, tuple[tuple[Access, tuple[str, ...]], ...]()
    for directive in schedule:
        if isinstance(directive, Convert) and directive.is_general and directive.access.tensor in types:
            try:
                held = types[directive.access.tensor]
                wanted = held.read_from(parse_format(directive.format, len(held.in_memory)))
            except FormatError:
                continue  # it is refused later, when it is applied
            conversions = saying(directive.access, wanted, conversions)
        elif isinstance(directive, ProtocolDirective) and directive.is_general:
            protocols = saying(directive.access, directive.protocols, protocols)
    return Context(types, extents, conversions, protocols)


def check_new(names: tuple[str, ...], program: Program) -> None:
    """Refuse names that are taken, or given twice."""
    taken = names_of(program)
    for place, name in enumerate(names):
        if name in taken:
            refuse(Rule.NAMES_NEW, f"the name {name} is taken; choose another")
        if name in names[:place]:
            refuse(Rule.NAMES_NEW, f"the name {name} is given twice")


def names_of(program: Program) -> frozenset[str]:
    """Return every name of a program: tensors, workspaces, indices, and loops that were replaced."""
    tensors = {*targets(program.statement), *(access.tensor for access in reads(program.statement))}
    made = {name for relation in graph_of(program.relations).relations for name in (*relation.parents, *relation.children)}
    named = {name for access in reads(program.statement) for name in access.indices}
    written = {name for assign in assignments(program.statement) for name in assign.target.indices}
    return frozenset({*tensors, *made, *named, *written, *loops(program.statement), *(space.name for space in program.workspaces)})


LARGEST, LARGEST_CHUNK, MOST_COPIES = 2**62, 2**31 - 1, 128
"""The largest factor or range; the largest distance or chunk; the most iterations of an unrolled loop, since compilers take seconds for
more."""


def check_positive(value: int, what: str, most: int = LARGEST, least: int = 1) -> None:
    """Refuse numbers below ``least`` or above ``most``, for which arithmetic could overflow."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        wanted = "a positive integer" if least else "an integer that is not negative"
        refuse(Rule.NUMBERS_POSITIVE, f"{what} must be {wanted}, not {value}")
    if value > most:
        refuse(Rule.NUMBERS_POSITIVE, f"{what} must be {most} at most, not {value}")
