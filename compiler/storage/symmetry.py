"""Converts rows of symmetric matrices to the half that a symmetric level stores, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import FormatError
from ..numpy_later import np
from .aligned import aligned_empty, index_dtype
from .kernels import active
from .level_arrays import LevelArrays
from .sealed import sealed
from .tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray


def halved(tensor: Tensor, refusal: str) -> Tensor:
    """Return the rows of a symmetric matrix without the entries beyond the diagonal.

    Args:
        tensor: a dense level above a compressed one.
        refusal: the start of the message if the matrix is not symmetric.

    Raises:
        FormatError: an entry differs from the one across the diagonal, or there is none.
    """
    rows, columns = tensor.shape
    if rows != columns:
        raise FormatError(f"{refusal} is symmetric, and the matrix is {rows} x {columns}; use compressed")
    pos, crd = _arrays(tensor)
    _check(tensor, pos, crd, refusal)
    kept = np.flatnonzero(crd <= active().expand(pos, None, crd.dtype))
    ends = np.searchsorted(kept, pos).astype(index_dtype(len(kept)))
    level = LevelArrays(sealed(ends), sealed(crd[kept]))
    return Tensor.made(tensor.shape, tensor.format, (LevelArrays(), level), active().gather(tensor.values, kept), tensor.fill_value)


def whole(tensor: Tensor) -> Tensor:
    """Return the whole rows of a symmetric matrix, given the half that ``halved`` returns; the format stays the same."""
    extent = tensor.shape[0]
    pos, crd = _arrays(tensor)
    own = active().expand(pos, None, crd.dtype)
    beyond = np.flatnonzero(crd < own)
    starts = np.searchsorted(beyond, pos)
    above, columns, values = active().transpose(starts, crd[beyond], tensor.values[beyond], extent)
    count = len(crd) + len(columns)
    wide = np.dtype(np.int64)
    ends = (pos.astype(wide) + above).astype(index_dtype(count))
    below = active().expand(pos, above[:-1].astype(wide), wide) + np.arange(len(crd))
    behind = active().expand(above, pos[1:].astype(wide), wide) + np.arange(len(columns))
    found, both = aligned_empty(count, crd.dtype), aligned_empty(count, tensor.dtype)
    for places, coordinates, entries in ((below, crd, tensor.values), (behind, columns, values)):
        active().scatter(coordinates.astype(crd.dtype, copy=False), places, found)
        active().scatter(entries, places, both)
    level = LevelArrays(sealed(ends), sealed(found))
    return Tensor.made(tensor.shape, tensor.format, (LevelArrays(), level), both, tensor.fill_value)


def count_whole(tensor: Tensor) -> int:
    """Return how many entries the whole matrix has."""
    pos, crd = _arrays(tensor)
    return 2 * len(crd) - int(np.count_nonzero(crd == active().expand(pos, None, crd.dtype)))


def is_symmetric(tensor: Tensor) -> bool:
    """Whether a matrix of rows equals its transpose bit by bit, where all NaN count as equal."""
    return tensor.shape[0] == tensor.shape[1] and _broken(tensor, *_arrays(tensor)) is None


def _arrays(tensor: Tensor) -> tuple[NDArray[Any], NDArray[Any]]:
    pos, crd = tensor.levels[1].pos, tensor.levels[1].crd
    assert pos is not None
    assert crd is not None
    return pos, crd


def _check(tensor: Tensor, pos: NDArray[Any], crd: NDArray[Any], refusal: str) -> None:
    place = _broken(tensor, pos, crd)
    if place is None:
        return
    row, column = int(np.searchsorted(pos, place, side="right")) - 1, int(crd[place])
    across = int(pos[column]) + int(np.searchsorted(crd[pos[column] : pos[column + 1]], row))
    there = across < int(pos[column + 1]) and int(crd[across]) == row
    here, opposite = (tuple(pair[mode] for mode in tensor.format.order) for pair in ((row, column), (column, row)))
    value = f"{tensor.values[across] if there else 'nothing'} at {opposite}"
    raise FormatError(f"{refusal} is symmetric, and there is {tensor.values[place]} at {here}, but {value}; use compressed")


def _broken(tensor: Tensor, pos: NDArray[Any], crd: NDArray[Any]) -> int | None:
    """Return the place of an entry that differs from the one across the diagonal; None if there is none."""
    other_pos, other_crd, other_values = active().transpose(pos, crd, tensor.values, tensor.shape[1])
    if not np.array_equal(pos, other_pos) or not np.array_equal(crd, other_crd):
        return _lonely(pos, crd, other_pos, other_crd)
    values = tensor.values
    differ = (values != other_values) & ~((values != values) & (other_values != other_values))
    return int(np.argmax(differ)) if differ.any() else None


def _lonely(pos: NDArray[Any], crd: NDArray[Any], other_pos: NDArray[Any], other_crd: NDArray[Any]) -> int:
    """Return the place of an entry without one across the diagonal, in the first row in which the pattern and its transpose differ."""
    longer = np.flatnonzero(pos != other_pos)
    row = int(longer[0]) - 1 if len(longer) else len(pos) - 1
    alike = int(pos[row])
    if (unlike := np.flatnonzero(crd[:alike] != other_crd[:alike])).size:
        row = int(np.searchsorted(pos, unlike[0], side="right")) - 1
    mine, others = crd[pos[row] : pos[row + 1]], other_crd[other_pos[row] : other_pos[row + 1]]
    if (alone := np.flatnonzero(~np.isin(mine, others))).size:
        return int(pos[row] + alone[0])
    column = int(others[~np.isin(others, mine)][0])
    return int(pos[column]) + int(np.searchsorted(crd[pos[column] : pos[column + 1]], row))
