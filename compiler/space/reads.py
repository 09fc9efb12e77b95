"""What the statements of a member of the space read: operands and workspaces, with the protocols by which their levels are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from ..concrete.said import operand_of
from ..format import Format
from ..notation.nodes import Access, index_subscript
from .reformat import concordant_format, ordered_format
from .space import Member

Told = TypeVar("Told")


def operands_read(member: Member, formats: Mapping[str, Format], number: int) -> Iterator[tuple[Access, Format, tuple[str, ...]]]:
    """Yield the sparse operands that a statement reads: the format that suits, and the protocols of its levels, outermost first.

    Where a space has no protocols to choose, only the order of the format's levels changes, to that of the loops.

    Args:
        formats: of every tensor.
        number: of the statement.
    """
    layout = member.layout
    for place, read in enumerate(member.nestings.stored(number)):
        if not member.nestings.protocols:
            yield operand_of(read), ordered_format(read, formats[read.tensor], layout.enclosing[number]), ()
            continue
        chosen = tuple(layout.protocols.get((number, place, mode), "locate") for mode in range(len(read.subscripts)))
        access = Access(read.tensor, read.subscripts, chosen)
        form = concordant_format(access, formats[read.tensor], layout.enclosing[number])
        yield operand_of(access), form, tuple(chosen[mode] for mode in form.order)


def workspaces_read(
    member: Member, names: Mapping[int, str], spaces: Mapping[str, tuple[str, ...]], number: int
) -> Iterator[tuple[Access, tuple[str, ...]]]:
    """Yield the workspaces that a statement reads, with the protocols of their modes.

    Args:
        names: of the workspaces, by the statements that compute them.
        spaces: the indices of each workspace, by its name.
        number: of the statement.
    """
    layout, stored = member.layout, len(member.nestings.stored(number))
    for place, other in enumerate(member.nestings.table[number].workspaces, stored):
        indices, order = spaces[names[other]], layout.workspaces[other]
        if indices:
            read = Access(names[other], tuple(map(index_subscript, indices)))
            yield read, tuple(layout.protocols.get((number, place, order.index(name)), "locate") for name in indices)


def told_apart(reads: Sequence[tuple[Access, Told]]) -> Iterator[tuple[Access, int | None, Told]]:
    """Yield accesses with their values, once for equal accesses; numbered from 1 where values of equal accesses differ."""
    alike: dict[Access, list[Told]] = {}
    for access, told in reads:
        alike.setdefault(access, []).append(told)
    for access, several in alike.items():
        if len(set(several)) == 1:
            yield access, None, several[0]
        else:
            yield from ((access, place, told) for place, told in enumerate(several, 1))
