"""Iteration lattices: which operands must be stepped through together so that no coordinate of an index is missed.

The domain of an index is an expression of set algebra over the operands that store its coordinates: a product meets in
the intersection, a sum in the union, an operand that does not store the index is everywhere. The lattice of a domain is
the set of its points, each a set of operands that are not exhausted yet (Kjolstad et al., "The tensor algebra compiler",
section 5; called iteration lattice by Senanayake et al., section 5.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ..notation.nodes import Access
from ..notation.printer import show

Point: TypeAlias = frozenset[Access]


@dataclass(frozen=True)
class Everywhere:
    """All coordinates of the index."""


@dataclass(frozen=True)
class Nowhere:
    """No coordinate: the value is the fill value throughout."""


@dataclass(frozen=True)
class Stored:
    """The coordinates that the next level of an operand stores."""

    access: Access


@dataclass(frozen=True)
class Intersection:
    parts: tuple[Domain, ...]


@dataclass(frozen=True)
class Union:
    parts: tuple[Domain, ...]


Domain: TypeAlias = Everywhere | Nowhere | Stored | Intersection | Union

EVERYWHERE, NOWHERE = Everywhere(), Nowhere()


def intersect(parts: tuple[Domain, ...]) -> Domain:
    """Return the intersection, without parts that change nothing."""
    if NOWHERE in parts:
        return NOWHERE
    kept = tuple(dict.fromkeys(part for part in parts if part != EVERYWHERE))
    if not kept:
        return EVERYWHERE
    return kept[0] if len(kept) == 1 else Intersection(kept)


def unite(parts: tuple[Domain, ...]) -> Domain:
    """Return the union, without empty and repeated parts; ``EVERYWHERE`` stays beside the stored parts it covers."""
    kept = tuple(dict.fromkeys(part for part in parts if part != NOWHERE))
    if not kept:
        return NOWHERE
    return kept[0] if len(kept) == 1 else Union(kept)


def without(domain: Domain, accesses: frozenset[Access]) -> Domain:
    """Return the domain with some operands taken to be everywhere, because they are located and not stepped through."""
    match domain:
        case Stored(access) if access in accesses:
            return EVERYWHERE
        case Intersection(parts):
            return intersect(tuple(without(part, accesses) for part in parts))
        case Union(parts):
            return unite(tuple(without(part, accesses) for part in parts))
        case _:
            return domain


def stored(domain: Domain) -> tuple[Access, ...]:
    """Return the operands that a domain names, in order of first appearance."""
    match domain:
        case Stored(access):
            return (access,)
        case Intersection(parts) | Union(parts):
            return tuple(dict.fromkeys(access for part in parts for access in stored(part)))
        case _:
            return ()


def points(domain: Domain) -> tuple[Point, ...]:
    """Return the points of the iteration lattice, larger ones first; the empty point stands for a dense loop."""
    operands = stored(domain)
    found = _points(domain)
    return tuple(sorted(found, key=lambda point: (-len(point), sorted(operands.index(access) for access in point))))


def _points(domain: Domain) -> frozenset[Point]:
    match domain:
        case Everywhere():
            return frozenset({frozenset()})
        case Nowhere():
            return frozenset()
        case Stored(access):
            return frozenset({frozenset({access})})
        case Intersection(parts):
            found = frozenset({frozenset()})
            for part in parts:
                found = frozenset(left | right for left in found for right in _points(part))
            return found
        case Union(parts):
            found = frozenset()
            for part in parts:
                more = _points(part)
                found = found | more | frozenset(left | right for left in found for right in more)
            return found


def met(lattice: tuple[Point, ...]) -> tuple[Access, ...]:
    """Return the operands of a lattice in an order that does not depend on sets."""
    return tuple(sorted(frozenset().union(*lattice), key=lambda access: (show(access), access.protocols)))
