"""A schedule of the whole space by its choices, and the places of a derivation where they are made."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple, TypeAlias

from ..format import Format
from ..frozen import frozen
from .grammar import Derivation
from .nestings import Loop, Scope
from .pieces import Division, Treatment
from .space import Member

Told: TypeAlias = "tuple[str | None, Hashable]"
"""The unit that runs a loop, and a value of ``Options.told``."""

LoopOf: TypeAlias = "tuple[str, frozenset[int]]"
"""A loop of a nest: its index and the statements inside it."""


Orders: TypeAlias = "tuple[tuple[int, ...], ...]"
"""Orders in which the modes of operands are read."""


@frozen
class Place:
    """A scope of the structural space, and what was decided around it.

    Attributes:
        scope: statements and the loops that they still need.
        units: how many of the parallel units are used around it.
        nested: whether some loop around it is run by no unit.
        orders: in which the modes of the stored operands are read; empty where loops may come in any order.
    """

    scope: Scope
    units: int = 0
    nested: bool = False
    orders: Orders = ()


class Start(NamedTuple):
    """Where derivations begin: a division of the indices, the number of a grouping, and orders as those of a ``Place``."""

    division: Division
    number: int
    orders: Orders = ()


@frozen
class Opened:
    """A loop, and the unit that runs it."""

    loop: Loop
    unit: str | None = None


@frozen(eq=False)
class Plan:
    """A schedule of the whole space by its choices.

    Attributes:
        member: of the structural space, over the loops that indices become.
        treatments: how every run of indices becomes loops.
        flipped: (statement, read, mode) of the operands' modes that are not traversed as their levels are made for.
        formats: of operands that are converted.
        assembly: of the result; None: the compiler chooses, as where ``kinds`` of workspaces are None.
        build: (compiler, flags), or None.
        told: the directives on loops.
    """

    member: Member
    treatments: tuple[Treatment, ...]
    flipped: frozenset[tuple[int, int, int]] = frozenset()
    formats: Mapping[str, Format | None] = field(default_factory=dict)
    assembly: str | None = None
    build: tuple[str | None, str | None] | None = None
    kinds: Mapping[int, str | None] = field(default_factory=dict)
    told: Mapping[LoopOf, Told] = field(default_factory=dict)


@frozen
class Chosen:
    """A schedule by its derivation: where it begins, what is chosen beside the nest (``WholeSpace.data``), the nest."""

    start: Start
    data: Hashable
    tree: Derivation


def given_workspaces(scopes: Sequence[Scope]) -> list[tuple[int, bool]]:
    """Return the workspaces that scopes are given, and whether they have modes."""
    return sorted({(number, bool(indices)) for part in scopes for number, indices in part.given})
