"""Compressed levels: ``pos`` (parents + 1) delimits each parent's segment of ``crd``, one coordinate per position, sorted.

A parent has each coordinate once, unless the next level is a singleton (COO)."""

from __future__ import annotations

from ..numpy_later import np
from ..storage.aligned import index_dtype
from ..storage.kernels import active
from ..storage.level_arrays import LevelArrays
from ..storage.sealed import sealed
from .segments import Segmented, check_positions, check_sorted, check_types, pack_unordered
from .traversal import Claimed, Column, Frontier


class Compressed(Segmented):
    """The kind of level that stores the coordinates of each parent as a sorted segment of ``crd``, delimited by ``pos``."""

    letters = "sc"
    repeats = True
    appends = True

    def pack(self, frontier: Frontier, column: Column) -> tuple[LevelArrays, Frontier]:
        if not frontier.ordered:
            return pack_unordered(frontier, column, lambda counts: counts, hashed=False)
        children, parents = column.children, frontier.count
        entries = len(column.found)
        parent = frontier.positions(entries) if frontier.identity else frontier.position
        if children < entries:
            pos, crd, child = active().compress(column.first, column.last, parent, parents, column.coordinates, children)
            return LevelArrays(sealed(pos), sealed(crd)), Frontier(children, child)
        pos = np.array([0, children], index_dtype(children)) if parent is None else active().segments(parent, parents, children)
        return LevelArrays(sealed(pos), column.coordinates), Frontier(children, identity=True)

    def check(self, claimed: Claimed) -> int:
        check_types(claimed, "pos", "crd")
        check_positions(claimed)
        check_sorted(claimed, claimed.parts["crd"])
        return len(claimed.parts["crd"])


COMPRESSED = Compressed("compressed")
