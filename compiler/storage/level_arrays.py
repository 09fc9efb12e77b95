"""The arrays of one level of a stored tensor, by the names that its kind gives them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .sealed import is_sealed, kept

if TYPE_CHECKING:
    from numpy.typing import NDArray


class LevelArrays:
    """The arrays of one level: flat, contiguous arrays by name. ``levels`` says for each kind which arrays it has, and what they hold.

    Positions (``pos``) and coordinates (``crd``) are int32 or int64, each array by itself, unless the kind says otherwise.
    They cannot be written: arrays that are not sealed yet are copied (``storage.sealed``).
    """

    __slots__ = ("__weakref__", "parts")
    parts: Mapping[str, NDArray[Any]]

    def __init__(self, pos: NDArray[Any] | None = None, crd: NDArray[Any] | None = None, **others: NDArray[Any] | None) -> None:
        given = {"pos": pos, "crd": crd, **others}
        object.__setattr__(self, "parts", MappingProxyType({name: kept(array) for name, array in given.items() if array is not None}))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"the arrays of a level stay as they are; {name} cannot be set")

    @classmethod
    def borrowed(cls, pos: NDArray[Any], crd: NDArray[Any]) -> LevelArrays:
        """Return a level over foreign arrays, which have just been checked, for the duration of one call."""
        made = object.__new__(cls)
        object.__setattr__(made, "parts", MappingProxyType({"pos": pos, "crd": crd}))
        return made

    def owned(self) -> LevelArrays:
        """Return a level that may be kept: itself, unless it is borrowed."""
        return self if all(map(is_sealed, self.parts.values())) else LevelArrays(**self.parts)

    def having(self, **others: NDArray[Any]) -> LevelArrays:
        """Return the level with some of its arrays replaced."""
        return LevelArrays(**{**self.parts, **others})

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (dict(self.parts),)

    @property
    def pos(self) -> NDArray[Any] | None:
        """The array that delimits the children of each parent; None if the level has none."""
        return self.parts.get("pos")

    @property
    def crd(self) -> NDArray[Any] | None:
        """The coordinates, one a position; None if the level has none."""
        return self.parts.get("crd")

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays of the level."""
        return sum(array.nbytes for array in self.parts.values())


def _made(parts: dict[str, NDArray[Any]]) -> LevelArrays:
    return LevelArrays(**parts)
