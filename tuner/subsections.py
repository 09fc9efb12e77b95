"""How often loops over compound subscripts find something, from the positions that the levels of an operand have.

Entries count as spread evenly below the positions that a level really has. A loop over an index of a subscript whose other indices are not
known yet visits the offsets whose subsections are not empty, if the coordinates of the levels above are known; else it visits every offset
(Liu et al., "Compiler support for sparse tensor convolutions", section 3).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from ..compiler.concrete.arithmetic import INTEGERS
from ..compiler.concrete.relations.sum import Unresolved
from ..compiler.levels.subsection import Subsection
from ..compiler.notation.nodes import Access
from ..compiler.views import Subscript, View

Modes = Mapping[int, tuple[str, int]]
"""By mode of a view: its index, and the extent of that."""


def combinations_found(view: View, access: Access, positions: Sequence[float], shape: Sequence[int], extents: Mapping[str, int],
                       covered: Collection[str]) -> float:  # fmt: skip
    """Return for how many combinations of covered indices an operand has entries, with loops in the order of its levels.

    Args:
        view: the format in which it is read.
        access: the read, with plain subscripts.
        positions: how many each stored level has, outermost first.
        shape: of the stored tensor.
        extents: of all indices.
        covered: the indices whose loops are counted.
    """
    modes: Modes = {mode: (part.index, extents[part.index]) for mode, part in enumerate(access.subscripts)}
    everywhere = math.prod(float(extent) for index, extent in dict(modes.values()).items() if index in covered)
    windows: list[tuple[float, float]] = []  # of each level: the share of coordinates that it stores below a parent, how many are visited
    parents, opened = 1.0, False
    for mode, count in zip(view.stored.order, positions, strict=True):
        extent = max(1, shape[mode])
        looked_at = _looked_at(view.subscripts[mode], modes, covered, extent)
        if looked_at is None or (opened and not _finds(view, mode, modes, covered)):
            break
        windows.append((min(1.0, count / parents / extent) if parents else 0.0, looked_at))
        parents, opened = count, opened or looked_at > 1
    share = 1.0
    for stored, looked_at in reversed(windows):
        share = 1.0 - (1.0 - stored * share) ** looked_at
    return everywhere * share


def _finds(view: View, stored_mode: int, modes: Modes, covered: Collection[str]) -> bool:
    """Whether loops over covered indices of a subscript find its offsets below parents whose coordinates are open (``lowering.across``)."""
    subscript = view.subscripts[stored_mode]
    terms = dict(subscript.terms)
    own = [level for level, mode in enumerate(view.order) if mode in terms and modes[mode][0] in covered]
    kind = view.levels[own[-1]]
    return isinstance(kind, Subsection) and _reach(subscript, modes, covered) < modes[view.order[own[-1]]][1]


def _looked_at(subscript: Subscript, modes: Modes, covered: Collection[str], extent: int) -> float | None:
    """Return how many stored coordinates a subscript may have when its covered indices are known; None: none of them is covered."""
    if not any(modes[mode][0] in covered for mode, _ in subscript.terms):
        return None
    return float(min(extent, 1 + _reach(subscript, modes, covered)))


def _reach(subscript: Subscript, modes: Modes, covered: Collection[str]) -> int:
    """Return how far a subsection reaches in which the covered indices of a subscript are known."""
    terms = tuple((max(1, modes[mode][1]), factor) for mode, factor in subscript.terms if modes[mode][0] not in covered)
    return Unresolved(INTEGERS, subscript.constant, terms).reach
