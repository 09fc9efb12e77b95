"""Narrow levels: compressed levels with coordinates of two bytes: ``crd`` is uint16 and relative to ``base``, one coordinate per parent.

Kernels that wait for memory are faster with fewer bytes: a nonzero of a float64 matrix takes 10 bytes instead of 12. The fibres of grids,
bands and blocks span few enough coordinates; matrices with wider fibres stay compressed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import FormatError
from ..ir.arithmetic import ONE, ZERO, add, minimum, subtract
from ..ir.nodes import I64, U16, Select, Type, Value
from ..numpy_later import np
from ..storage.aligned import index_dtype
from ..storage.kernels import active
from ..storage.level_arrays import LevelArrays
from ..storage.sealed import sealed
from .compressed import COMPRESSED
from .kind import LevelKind, Parts
from .level import Level
from .segments import Segmented, check_positions, check_sorted, check_types
from .traversal import Claimed

if TYPE_CHECKING:
    from numpy.typing import NDArray

REACH = 2**16
"""The most coordinates that a fibre of a narrow level may span, from its first to its last one, both counted."""


class Narrow(Segmented):
    """Compressed levels with coordinates of two bytes, relative to a base for each parent."""

    letters = "n"
    relative = True

    @property
    def plain(self) -> LevelKind:
        return COMPRESSED

    def types(self, width: Type) -> dict[str, Type]:
        return {"pos": width, "crd": U16, "base": width}

    def encoded(self, arrays: LevelArrays, extent: int, refusal: str) -> LevelArrays:
        assert arrays.pos is not None
        assert arrays.crd is not None
        pos = arrays.pos.astype(index_dtype(len(arrays.crd)), copy=False)
        distances, base, reach = active().distances(pos, arrays.crd, index_dtype(extent))
        if reach > REACH:
            raise FormatError(
                f"{refusal} is narrow, and one of its fibres reaches over {reach} coordinates, more than {REACH}; use compressed"
            )
        return LevelArrays(pos, sealed(distances), base=sealed(base))

    def decoded(self, arrays: LevelArrays, extent: int) -> LevelArrays:
        return LevelArrays(arrays.pos, sealed(_widened(arrays.parts, index_dtype(extent))))

    def check(self, claimed: Claimed) -> int:
        check_types(claimed, "pos", "base")
        check_positions(claimed)
        crd, base = claimed.parts["crd"], claimed.parts["base"]
        claimed.require(crd.dtype == np.uint16 and len(base) == claimed.parents, "has distances of 16 bits and one base a parent")
        check_sorted(claimed, active().expand(claimed.parts["pos"], base.astype(np.int64), np.dtype(np.int64)) + crd)
        return len(crd)

    def sampled(self, parts: Parts, places: NDArray[np.int64], extent: int) -> NDArray[np.int64]:
        parents = np.searchsorted(parts["pos"], places, side="right") - 1
        return parts["crd"][places].astype(np.int64) + parts["base"][parents]

    def under(self, level: Level, parent: Value, present: Value | None) -> Level:
        first = level.load("base", parent)
        return replace(level, origin=first if present is None else Select(present, first, ZERO, I64))

    def coordinate(self, level: Level, position: Value) -> Value:
        assert level.origin is not None, f"level of {level.index} stands below no parent"
        return add(level.origin, level.load("crd", position))

    def search(self, level: Level, low: Value, high: Value, coordinate: Value, function: str, *more: Value) -> Value:
        if level.origin is not None:
            coordinate = subtract(coordinate, level.origin)
        return super().search(level, low, high, coordinate, function, *more)

    def within(self, level: Level, coordinate: Value) -> Value:
        """Return a safe coordinate: that of a position of the next parent, counted from this parent's base, may be past the extent."""
        return minimum(coordinate, subtract(level.extent, ONE))


def _widened(parts: Parts, kind: np.dtype[Any]) -> NDArray[Any]:
    crd = active().expand(parts["pos"], parts["base"].astype(kind, copy=False), kind)
    np.add(crd, parts["crd"], out=crd, casting="same_kind")
    return crd


NARROW = Narrow("narrow")
