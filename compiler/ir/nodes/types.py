"""Types of the loop IR: scalars, vectors of them, and two opaque ones."""

from __future__ import annotations

from functools import cache

from ...frozen import frozen
from ...kept import Kept


@frozen
class Type:
    """A scalar type, by the letter of its kind and its width in bits: i8 ... i64, u8 ... u64, f32, f64, bool.

    Two types are opaque (see ``ir.intrinsics``): ``map``, a hash map from 64-bit keys to ordinals, and ``parts``, numbered places where
    threads leave arrays. The type of a vector has its number of lanes after an x, as in ``f64x8``; only passes such as
    ``passes.vectorize`` make vectors.
    """

    name: str

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Type) and self.name == other.name)

    def __hash__(self) -> int:
        return hash(self.name)

    @Kept
    def is_float(self) -> bool:
        return self.name.startswith("f")

    @Kept
    def lanes(self) -> int:
        """How many scalars a value has: 1, or the lanes of a vector."""
        return int(self.name.partition("x")[2] or 1)

    @Kept
    def element(self) -> Type:
        """The scalar type of one lane."""
        return _named(self.name.partition("x")[0]) if "x" in self.name else self

    def vector(self, lanes: int) -> Type:
        """The vector of ``lanes`` scalars of this type; the scalar type itself for one lane."""
        return _named(f"{self.element.name}x{lanes}") if lanes > 1 else self.element

    @Kept
    def bytes(self) -> int:
        """The size of a value in memory."""
        return self.lanes * (1 if self.element.name == "bool" else int(self.element.name[1:]) // 8)


@cache
def _named(name: str) -> Type:
    """Return the one object for a name, which makes comparing types fast."""
    return Type(name)


U16, I32, I64, F32, F64, BOOL, MAP, PARTS = (_named(name) for name in ("u16", "i32", "i64", "f32", "f64", "bool", "map", "parts"))
OPAQUE = (MAP, PARTS)
