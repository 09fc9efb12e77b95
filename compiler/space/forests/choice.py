"""The forests that are worth trying on operands of known or guessed size: the cheapest of every contraction path, cheapest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import inf

from .contraction import Contraction
from .forest import Forest
from .optimum import Optimizer
from .paths import PathRules
from .peeling import ForestRules, Peeling
from .work import Sizes, work

MOST_OPERANDS = 6
"""Products of more have too many contraction trees to look at each."""
MOST_AT_ONCE = 4
"""Products of up to so many are split into terms of several factors too."""
MOST_ELEMENTS = 2.0**27
"""Elements of the largest buffer."""
_UNKNOWN_EXTENT = 4096.0
_UNKNOWN_RUN = 8.0


def promising(contraction: Contraction, sizes: Sizes, watch: Callable[[], None]) -> Iterator[Forest]:
    """Yield the cheapest forest of every contraction path, by their work; ``watch`` is called before each path is looked at."""
    count = len(contraction.operands)
    if not 2 < count <= MOST_OPERANDS:
        return
    peeling = Peeling(contraction, ForestRules(PathRules(pairwise=count > MOST_AT_ONCE)))
    optimizer = Optimizer(peeling, work(sizes, MOST_ELEMENTS))
    found: list[tuple[float, int, Forest]] = []
    for path in peeling.paths():
        watch()
        best = optimizer.optimum(path)
        if best.forest is not None and best.cost < inf:
            found.append((best.cost, len(found), best.forest))
    for _, _, forest in sorted(found, key=lambda one: one[:2]):
        yield forest


def sizes_of(contraction: Contraction, extents: Mapping[str, int], fibres: Mapping[str, tuple[float, ...]]) -> Sizes:
    """Return sizes where those that are not known are guessed.

    Args:
        contraction: what is computed.
        extents: by index, as far as they are known.
        fibres: by operand, how many positions each level has, as far as they are known.
    """
    known = {name: float(extents.get(name, _UNKNOWN_EXTENT)) for name in contraction.indices}
    counts = {}
    for number, chain in contraction.chains:
        given = fibres.get(contraction.operands[number].tensor)
        counts[number] = given if given is not None and len(given) == len(chain) else _guessed(contraction, chain, known)
    return Sizes(known, counts)


def _guessed(contraction: Contraction, chain: tuple[int, ...], extents: Mapping[str, float]) -> tuple[float, ...]:
    """Return positions of levels whose fibres below the first are short."""
    counts: list[float] = []
    for index in chain:
        extent = extents[contraction.indices[index]]
        counts.append(counts[-1] * min(extent, _UNKNOWN_RUN) if counts else extent)
    return tuple(counts)
