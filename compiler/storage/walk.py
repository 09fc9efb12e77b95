"""The state of unpacking between two levels of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..frozen import frozen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@frozen
class Walk:
    """The state of a walk down the levels of a stored tensor.

    Args:
        columns: the coordinates, by level, of the positions that the walk has reached.
        positions: the positions reached; None if they are all positions of the level, in order.
        count: how many positions the walk has reached.
    """

    columns: tuple[NDArray[Any], ...] = ()
    positions: NDArray[np.int64] | None = None
    count: int = 1

    def down(self, repeated: Callable[[NDArray[Any]], NDArray[Any]], column: NDArray[Any], positions: NDArray[np.int64] | None) -> Walk:
        """Return the walk one level further, with the columns so far repeated for the children."""
        from .sealed import sealed  # imported here: the joins of sketches walk without it

        return Walk((*(sealed(repeated(above)) for above in self.columns), column), positions, len(column))

    def alongside(self, column: NDArray[Any]) -> Walk:
        """Return the walk one level further, if each position has one child at the same position."""
        return Walk((*self.columns, column), self.positions, self.count)
