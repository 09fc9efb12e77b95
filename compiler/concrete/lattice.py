"""Iteration lattices: which operands must be stepped through together so that no coordinate of an index is missed.

The domain of an index is an expression of set algebra over the operands that store its coordinates: a product meets in
the intersection, a sum in the union, an operand that does not store the index is everywhere (``concrete.annihilation`` says it
of every operator). The lattice of a domain is the set of its points, each a set of operands that are not exhausted yet (Kjolstad
et al., "The tensor algebra compiler", section 5; called iteration lattice by Senanayake et al., section 5.4).

A loop is made for the ``cover`` of a domain: complements cannot be stepped through, so a loop over one visits everything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeAlias

from ..errors import ScheduleError
from ..frozen import frozen
from ..notation.nodes import Access
from ..notation.printer import show

Point: TypeAlias = frozenset[Access]

MOST_POINTS = 4096
"""Most cases that a loop may distinguish; the code for more would be too long."""


@frozen
class Everywhere:
    """All coordinates of the index."""


@frozen
class Nowhere:
    """No coordinate: the value is the fill value throughout."""


@frozen
class Stored:
    """The coordinates that the next level of an operand stores."""

    access: Access


@frozen
class Undecided:
    """All coordinates or none: indices other than the present one decide whether something is stored."""


@frozen
class Complement:
    """All coordinates but those of a part: 0 divided by what is not stored is NaN."""

    part: Domain


@frozen
class Intersection:
    """The coordinates that all parts have, as in a product."""

    parts: tuple[Domain, ...]


@frozen
class Union:
    """The coordinates that some part has, as in a sum."""

    parts: tuple[Domain, ...]


Domain: TypeAlias = Everywhere | Nowhere | Undecided | Stored | Complement | Intersection | Union

EVERYWHERE, NOWHERE, UNDECIDED = Everywhere(), Nowhere(), Undecided()


def intersect(parts: Iterable[Domain]) -> Domain:
    """Return the intersection, without parts that change nothing."""
    flat = (inner for part in parts for inner in (part.parts if isinstance(part, Intersection) else (part,)))
    kept = tuple(dict.fromkeys(part for part in flat if not isinstance(part, Everywhere)))
    if NOWHERE in kept:
        return NOWHERE
    if not kept:
        return EVERYWHERE
    return kept[0] if len(kept) == 1 else Intersection(kept)


def unite(parts: Iterable[Domain]) -> Domain:
    """Return the union, without empty and repeated parts; ``EVERYWHERE`` stays beside the stored parts it covers."""
    flat = (inner for part in parts for inner in (part.parts if isinstance(part, Union) else (part,)))
    kept = tuple(dict.fromkeys(part for part in flat if part != NOWHERE))
    if not kept:
        return NOWHERE
    return kept[0] if len(kept) == 1 else Union(kept)


def complement(part: Domain) -> Domain:
    """Return the complement."""
    if is_everywhere(part):
        return NOWHERE
    return EVERYWHERE if is_nowhere(part) else Complement(part)


def cover(domain: Domain) -> Domain:
    """Return the least domain without complements that contains a domain: what a loop runs through.

    The cover of a complement is everything, together with its operands, so that the loop tells apart whether they are present."""
    match domain:
        case Undecided():
            return EVERYWHERE
        case Complement(part):
            return unite((EVERYWHERE, *(Stored(access) for access in stored_operands(part))))
        case Intersection(parts):
            return intersect(map(cover, parts))
        case Union(parts):
            return unite(map(cover, parts))
        case _:
            return domain


def without(domain: Domain, accesses: frozenset[Access]) -> Domain:
    """Return the domain with some operands taken to be everywhere, because they are located and not stepped through."""
    match domain:
        case Stored(access) if access in accesses:
            return EVERYWHERE
        case Intersection(parts):
            return intersect(without(part, accesses) for part in parts)
        case Union(parts):
            return unite(without(part, accesses) for part in parts)
        case _:
            return domain


def stored_operands(domain: Domain) -> tuple[Access, ...]:
    """Return the operands that a domain names, in order of first appearance."""
    match domain:
        case Stored(access):
            return (access,)
        case Intersection(parts) | Union(parts):
            return tuple(dict.fromkeys(access for part in parts for access in stored_operands(part)))
        case Complement(part):
            return stored_operands(part)
        case _:
            return ()


def points(domain: Domain) -> tuple[Point, ...]:
    """Return the points of the iteration lattice of a cover, larger ones first; the empty point stands for a dense loop.

    Raises:
        ScheduleError: there are more than ``MOST_POINTS``; they double with every addend.
    """
    return _listed(_points(domain, least=False), domain)


def least_points(domain: Domain) -> tuple[Point, ...]:
    """Return the points of the lattice that hold no smaller one, larger ones first: what must be present for a value to exist.

    Raises:
        ScheduleError: there are more than ``MOST_POINTS``; they double with every factor that is a sum.
    """
    return _listed(_points(domain, least=True), domain)


def only_point(domain: Domain) -> Point | None:
    """Return the point of a lattice that has one alone, as that of a product has."""
    match domain:
        case Everywhere():
            return frozenset()
        case Stored(access):
            return frozenset({access})
        case Intersection(parts) | Union(parts):
            found = [only_point(part) for part in parts]
            kept = [point for point in found if point is not None]
            if len(kept) < len(found) or (isinstance(domain, Union) and len(set(kept)) > 1):
                return None
            return frozenset().union(*kept)
        case _:
            return None


def is_everywhere(domain: Domain) -> bool:
    """Return whether a domain holds all coordinates for any stored entries: the empty point is in its lattice."""
    match domain:
        case Intersection(parts):
            return all(map(is_everywhere, parts))
        case Union(parts):
            return any(map(is_everywhere, parts))
        case Complement(part):
            return is_nowhere(part)
        case _:
            return isinstance(domain, Everywhere)


def is_nowhere(domain: Domain) -> bool:
    """Return whether a domain holds no coordinate for any stored entries."""
    match domain:
        case Intersection(parts):
            return any(map(is_nowhere, parts))
        case Union(parts):
            return all(map(is_nowhere, parts))
        case Complement(part):
            return is_everywhere(part)
        case _:
            return isinstance(domain, Nowhere)


def is_undecided(domain: Domain) -> bool:
    """Return whether a domain depends on what other indices decide."""
    match domain:
        case Intersection(parts) | Union(parts):
            return any(map(is_undecided, parts))
        case Complement(part):
            return is_undecided(part)
        case _:
            return domain == UNDECIDED


def _points(domain: Domain, least: bool) -> frozenset[Point]:
    """Return the points of a lattice, or those that hold no smaller one."""
    match domain:
        case Everywhere():
            return frozenset({frozenset()})
        case Nowhere():
            return frozenset()
        case Stored(access):
            return frozenset({frozenset({access})})
        case Intersection(parts):
            found = frozenset({frozenset[Access]()})
            for part in parts:
                found = _joined(found, _points(part, least))
            return smallest(found) if least else found
        case Union(parts):
            found = frozenset[Point]()
            for part in parts:
                more = _points(part, least)
                found = found | more if least else found | more | _joined(found, more)
            return smallest(found) if least else found
        case Undecided() | Complement():
            raise TypeError("only covers have points")


def _joined(left: frozenset[Point], right: frozenset[Point]) -> frozenset[Point]:
    if len(left) * len(right) > MOST_POINTS:
        raise ScheduleError(f"one loop would distinguish more than {MOST_POINTS} cases of what is stored; compute the expression in parts")
    return frozenset(one | other for one in left for other in right)


def smallest(points: Collection[Point]) -> frozenset[Point]:
    """Return the points that hold no smaller one."""
    return frozenset(point for point in points if not any(other < point for other in points))


def _listed(found: frozenset[Point], domain: Domain) -> tuple[Point, ...]:
    places = {access: place for place, access in enumerate(stored_operands(domain))}
    return tuple(sorted(found, key=lambda point: (-len(point), sorted(places[access] for access in point))))


def met(lattice: Collection[Point]) -> tuple[Access, ...]:
    """Return the operands of a lattice in the same order on every run."""
    return tuple(sorted(frozenset().union(*lattice), key=lambda access: (show(access), access.protocols)))
