"""Patterned levels: compressed levels that store equal fibres once, where coordinates are relative to the parent's number.

``distances`` holds coordinates minus the parent's number, ``start`` where the distances of each parent begin, and ``pos`` the positions
of each parent. A stencil on a grid has few patterns, so that its distances stay in the first cache, and a nonzero of a float64 matrix
takes 8 bytes of memory plus a share of 8 bytes for its row. The loop over a row is that of compressed levels: nothing is unpacked. If no
two fibres are alike, each has its own distances.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..ir.arithmetic import ONE, ZERO, add, minimum, subtract
from ..ir.nodes import I64, Call, Select, Type, Value
from ..numpy_later import np
from ..storage.aligned import index_dtype
from ..storage.kernels import active
from ..storage.level_arrays import LevelArrays
from ..storage.sealed import sealed
from .compressed import COMPRESSED
from .kind import LevelKind, Parts
from .level import Level
from .segments import Segmented, check_types
from .traversal import Claimed

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Patterned(Segmented):
    """Compressed levels that store equal fibres only once; coordinates are relative to the parent's number."""

    letters = "t"
    relative = True

    @property
    def plain(self) -> LevelKind:
        return COMPRESSED

    def types(self, width: Type) -> dict[str, Type]:
        return {"pos": width, "start": width, "distances": width}

    def positions(self, parts: Parts, parents: int, extent: int) -> int:
        return int(parts["pos"][-1])

    def encoded(self, arrays: LevelArrays, extent: int, refusal: str) -> LevelArrays:
        assert arrays.pos is not None
        assert arrays.crd is not None
        start, distances = active().patterns(arrays.pos, arrays.crd, index_dtype(max(extent, len(arrays.pos))))
        return LevelArrays(arrays.pos, start=sealed(start), distances=sealed(distances))

    def decoded(self, arrays: LevelArrays, extent: int) -> LevelArrays:
        return LevelArrays(arrays.pos, sealed(_coordinates(arrays.parts).astype(index_dtype(extent), copy=False)))

    def check(self, claimed: Claimed) -> int:
        check_types(claimed, "pos", "start", "distances")
        pos, start, distances = (claimed.parts[part] for part in ("pos", "start", "distances"))
        fits = len(pos) == claimed.parents + 1 and len(start) == claimed.parents and int(pos[0]) == 0 and not (np.diff(pos) < 0).any()
        claimed.require(fits, f"has {claimed.parents} positions + 1, which begin at 0 and do not decrease, and as many starts")
        inside = (start >= 0) & (start <= len(distances) - np.diff(pos))
        claimed.require(bool(inside.all()), f"has starts from which on enough of {len(distances)} distances follow")
        return COMPRESSED.check(replace(claimed, parts={"pos": pos, "crd": _coordinates(claimed.parts)}))

    def sampled(self, parts: Parts, places: NDArray[np.int64], extent: int) -> NDArray[np.int64]:
        parents = np.searchsorted(parts["pos"], places, side="right") - 1
        return parts["distances"][places + _shifts(parts)[parents]].astype(np.int64) + parents

    def under(self, level: Level, parent: Value, present: Value | None) -> Level:
        shift = subtract(level.load("start", parent), level.load("pos", parent))
        if present is not None:
            parent, shift = Select(present, parent, ZERO, I64), Select(present, shift, ZERO, I64)
        return replace(level, origin=parent, shift=shift)

    def coordinate(self, level: Level, position: Value) -> Value:
        origin, shift = _place(level)
        return add(origin, level.load("distances", add(position, shift)))

    def search(self, level: Level, low: Value, high: Value, coordinate: Value, function: str, *more: Value) -> Value:
        origin, shift = _place(level)
        range_ = add(low, shift), add(high, shift)
        found = Call(function, (level.reference("distances"), *range_, subtract(coordinate, origin), *more), I64)
        return subtract(found, shift)

    def readable(self, level: Level, position: Value) -> Value:
        """Return a position up to the last one of this parent: other parents have other patterns."""
        return minimum(position, subtract(self.begin(level, add(_place(level)[0], ONE)), ONE))


def _place(level: Level) -> tuple[Value, Value]:
    """Return the parent, and what to add to its positions to find their distances."""
    assert level.origin is not None, f"level of {level.index} stands below no parent"
    assert level.shift is not None
    return level.origin, level.shift


def _shifts(parts: Parts) -> NDArray[np.int64]:
    return parts["start"].astype(np.int64) - parts["pos"][:-1]


def _coordinates(parts: Parts) -> NDArray[Any]:
    pos, kind = parts["pos"], np.dtype(np.int64)
    places = active().expand(pos, _shifts(parts), kind)
    places += np.arange(len(places))
    found = active().expand(pos, None, kind)
    found += active().gather(parts["distances"], places)
    return found


PATTERNED = Patterned("patterned")
