"""The sizes that an exploration admits: ranges of extents, of shares of stored entries, and of quotients of extents.

Entries are taken to be spread evenly (Dias et al., section 5.2): of a tensor with extents I1 .. Ik and a share s of entries stored,
a prefix of m coordinates has an entry below it with probability 1 - (1 - s) ** (I(m+1) * .. * Ik).
"""

from __future__ import annotations

import math
import random
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ...compiler.errors import ExpressionError
from ...compiler.frozen import frozen
from ...compiler.shown import is_by_name
from ...compiler.space.forests.contraction import Contraction
from ...compiler.space.forests.costs import position_symbols

Range = tuple[float, float]
_USUAL = Path(__file__).resolve().parents[2] / "configs" / "ranges.toml"


@cache
def usual_ranges() -> dict[str, Range]:
    """Return the ranges that hold where none are given: of extents ("extent") and shares ("share"), from configs/ranges.toml."""
    found: dict[str, Any] = tomllib.loads(_USUAL.read_text(encoding="utf-8"))
    return {name: (float(low), float(high)) for name, (low, high) in found.items()}


@frozen
class Stored:
    """A sparse operand in some order of its levels.

    Attributes:
        name: of the operand.
        levels: their indices, outermost first.
        symbols: for each level the symbol for its number of positions.
    """

    name: str
    levels: tuple[str, ...]
    symbols: tuple[str, ...]


@frozen
class Domain:
    """All admitted sizes.

    Attributes:
        contraction: what is computed, with operands as they are stored.
        extents: the range of each extent, by index.
        shares: the range of the share of entries that each sparse operand stores, by name.
        quotients: the range of quotients of two extents, by their indices.
        stored: the sparse operands, in every order of levels that costs may use.
    """

    contraction: Contraction
    extents: Mapping[str, Range]
    shares: Mapping[str, Range]
    quotients: Mapping[tuple[str, str], Range]
    stored: tuple[Stored, ...]

    def knowing(self, other: Contraction) -> Domain:
        """Return the domain with symbols for the operands of another contraction, in the orders of their levels there, added."""
        given = dict(self.contraction.chains)
        found = list[Stored]()
        for operand, _ in other.chains:
            name, levels = other.operands[operand].tensor, other.names_in_order(other.levels(operand))
            found.append(Stored(name, levels, position_symbols(name, other.names_in_order(given[operand]), levels)))
        return replace(self, stored=tuple(dict.fromkeys((*self.stored, *found))))

    @property
    def is_point(self) -> bool:
        """Whether one choice of sizes is admitted."""
        return all(low == high for low, high in (*self.extents.values(), *self.shares.values()))

    def points(self, count: int, seed: int = 0) -> list[dict[str, float]]:
        """Return up to ``count`` admitted sizes: corners, and points between that are evenly spread over orders of magnitude; at least one
        if any size is admitted."""
        if self.is_point:
            return [self.sizes({name: low for name, (low, _) in (*self.extents.items(), *self.shares.items())})]
        source = random.Random(seed)
        found = []
        for number in range(20 * count):
            values = {name: _drawn(low, high, source, number) for name, (low, high) in (*self.extents.items(), *self.shares.items())}
            if self._admits(values):
                found.append(self.sizes(values))
            if len(found) == count:
                break
        return found

    def _admits(self, values: Mapping[str, float]) -> bool:
        tight = 1e-9
        return all(
            low * (1 - tight) <= values[one] / values[other] <= high * (1 + tight) for (one, other), (low, high) in self.quotients.items()
        )

    def sizes(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return a value for every symbol that costs may have: extents, and stored positions of every level."""
        found = {name: values[name] for name in self.extents}
        for operand in self.stored:
            share = values[operand.name]
            for level, symbol in enumerate(operand.symbols, 1):
                above = math.prod(values[name] for name in operand.levels[:level])
                below = math.prod(values[name] for name in operand.levels[level:])
                found[symbol] = above * _hit(share, below)
        return found


def _hit(share: float, below: float) -> float:
    """Return the probability that at least one of ``below`` components is stored."""
    return 1.0 if share >= 1 else -math.expm1(below * math.log1p(-share))


def _drawn(low: float, high: float, source: random.Random, number: int) -> float:
    if low == high:
        return low
    if number % 2 == 0:
        return source.choice((low, high))
    return math.exp(source.uniform(math.log(low), math.log(high)))


def domain_of(contraction: Contraction, ranges: Mapping[str, Range] | None, others: Iterable[Contraction] = ()) -> Domain:
    """Return the domain of ranges by index, by sparse operand (share), and by quotient such as "i/l"; ``usual_ranges`` for the rest.

    Args:
        contraction: what is computed.
        ranges: as the user gave them.
        others: the same contraction with operands in other orders of their levels.

    Raises:
        ExpressionError: a key is none of these, or a range is not two positive numbers, the least first.
    """
    usual = usual_ranges()
    names = [contraction.operands[number].tensor for number, _ in contraction.chains]
    extents = dict.fromkeys(contraction.indices, usual["extent"])
    shares = dict.fromkeys(names, usual["share"])
    quotients: dict[tuple[str, str], Range] = {}
    for key, (low, high) in checked_ranges(ranges):
        one, slash, other = (part.strip() for part in key.partition("/"))
        if slash and one in extents and other in extents:
            quotients[one, other] = (low, high)
        elif not slash and one in shares and high <= 1:
            shares[one] = (low, high)
        elif not slash and one in extents and low >= 1:
            extents[one] = (low, high)
        else:
            raise ExpressionError(
                f"range of {key}, {low:g} to {high:g}: ranges are of extents ({', '.join(extents)}; 1 and more), of stored shares"
                f" ({', '.join(shares) or 'no operand is sparse'}; up to 1), and of quotients of extents, 'i/l'"
            )
    found = Domain(contraction, extents, shares, quotients, ())
    for one in (contraction, *others):
        found = found.knowing(one)
    return found


def checked_ranges(ranges: Mapping[str, Range] | None) -> Iterator[tuple[str, Range]]:
    """Yield the ranges as numbers. Raises ``ExpressionError``: one is not a pair of positive numbers, the least first."""
    if ranges is not None and not is_by_name(ranges):
        raise ExpressionError(f"ranges are given by index, such as {{'i': (1, 1e6)}}, not as {type(ranges).__name__}")
    for key, bounds in (ranges or {}).items():
        try:
            low, high = map(float, bounds)
        except (TypeError, ValueError):
            raise ExpressionError(f"the range of {key} is a pair of numbers such as (1, 1e6), not {bounds!r}") from None
        if not 0 < low <= high < math.inf:
            raise ExpressionError(f"the range of {key} is {low:g} to {high:g}; give two positive numbers, the least first")
        yield str(key), (low, high)
