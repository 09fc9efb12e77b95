"""Symmetric levels: compressed levels of a symmetric matrix that store only the coordinates up to the diagonal in each row.

Products read half of the values and coordinates, and use each entry twice (``concrete/mirrored.py``). For other expressions,
``storage/symmetry.py`` makes the whole matrix of the half.
"""

from __future__ import annotations

from ..numpy_later import np
from ..storage.kernels import active
from .compressed import COMPRESSED
from .kind import LevelKind
from .segments import Segmented
from .traversal import Claimed


class Symmetric(Segmented):
    """Compressed levels of a symmetric matrix that store each row only up to the diagonal."""

    letters = "m"
    mirrors = True

    @property
    def plain(self) -> LevelKind:
        return COMPRESSED

    def misplaced(self, above: LevelKind | None) -> str | None:
        if above is None or not above.full:
            return f"a {self} level stands below a dense one, as in 'dense, {self}'"
        return None

    def check(self, claimed: Claimed) -> int:
        children = COMPRESSED.check(claimed)
        rows = active().expand(claimed.parts["pos"], None, np.dtype(np.int64))
        claimed.require(bool((claimed.parts["crd"] <= rows).all()), "has coordinates up to the row's own")
        claimed.require(claimed.parents == claimed.extent, f"is of a square matrix, not of {claimed.parents} rows of {claimed.extent}")
        return children


SYMMETRIC = Symmetric("symmetric")
