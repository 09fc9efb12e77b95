"""Conversion between any two formats: unpack, sort if necessary, pack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import FormatError
from ..format import Format, parse_format
from ..levels import DENSE
from ..numpy_later import np
from .aligned import index_dtype
from .encoding import decoded, encoded
from .kernels import active
from .pack import pack
from .sealed import sealed
from .tensor import LevelArrays, Tensor
from .unpack import unpack

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROWS = parse_format("csr", 2).levels
_ENTRIES = parse_format("coo", 2).levels


def convert(tensor: Tensor, format: Format, drop_padding: bool = True) -> Tensor:
    """Return the tensor in another format; the tensor itself if it has that format.

    Args:
        tensor: any tensor.
        format: of the same order.
        drop_padding: leave out padding of dense levels (see ``unpack``).

    Raises:
        FormatError: the format has another order, or cannot hold these entries.
    """
    if len(format) != tensor.order:
        raise FormatError(f"format '{format}' has {len(format)} levels, but the tensor has {tensor.order} modes")
    if format == tensor.intact.format:
        return tensor
    if format.plain is not format or tensor.format.plain is not tensor.format:
        return encoded(convert(decoded(tensor), format.plain, drop_padding), format)
    if format.levels == tensor.format.levels == _ROWS and len(tensor.values):
        return _transposed(tensor, format)
    if format.levels == tensor.format.levels == (DENSE,) * len(format):
        return _reordered(tensor, format)
    if tensor.format.levels == _ROWS and format.levels == _ENTRIES and tensor.format.order == format.order:
        return _with_rows_named(tensor, format)
    if {tensor.format.levels, format.levels} <= {_ROWS, _ENTRIES} and _is_filled(tensor):
        if tensor.format.order == format.order:
            return _with_rows_delimited(tensor, format)
        return convert(_transposed(tensor, Format(_ROWS, format.order)), format)
    return pack(unpack(tensor, drop_padding), format, tensor.fill_value)


def _reordered(tensor: Tensor, format: Format) -> Tensor:
    """Store an array with its modes in another order."""
    stored = tensor.values.reshape([tensor.shape[mode] for mode in tensor.format.order])
    values = active().copied(stored.transpose([tensor.format.level_of(mode) for mode in format.order]))
    return Tensor.made(tensor.shape, format, tensor.levels, values, tensor.fill_value)


def _is_filled(tensor: Tensor) -> bool:
    """Whether a matrix has so many entries that passes over its rows and columns are cheap; else sorting the entries is cheaper."""
    return 0 < max(tensor.shape) <= 2 * len(tensor.values)


def _with_rows_named(tensor: Tensor, format: Format) -> Tensor:
    """Store rows as entries, which share the columns and values."""
    inner = tensor.levels[1]
    assert inner.pos is not None
    count = len(tensor.values)
    rows = active().expand(inner.pos, None, index_dtype(tensor.shape[format.order[0]]))
    entries = LevelArrays(sealed(np.array([0, count], index_dtype(count))), sealed(rows))
    return Tensor.made(tensor.shape, format, (entries, LevelArrays(crd=_columns(tensor))), tensor.values, tensor.fill_value)


def _with_rows_delimited(tensor: Tensor, format: Format) -> Tensor:
    """Store entries as rows, which share the columns and values."""
    outer = tensor.levels[0]
    assert outer.crd is not None
    pos = active().segments(outer.crd, tensor.shape[format.order[0]], len(tensor.values))
    return Tensor.made(tensor.shape, format, (LevelArrays(), LevelArrays(sealed(pos), _columns(tensor))), tensor.values, tensor.fill_value)


def _columns(tensor: Tensor) -> NDArray[Any]:
    """Return the inner coordinates of a matrix in 32 bits where they fit."""
    crd = tensor.levels[1].crd
    assert crd is not None
    return sealed(np.ascontiguousarray(crd, index_dtype(tensor.shape[tensor.format.order[1]])))


def _transposed(tensor: Tensor, format: Format) -> Tensor:
    """Store rows or entries as compressed rows of the transpose, which needs no sorting."""
    outer, inner = tensor.levels
    columns = tensor.shape[tensor.format.order[1]]
    assert inner.crd is not None
    if outer.crd is not None:
        pos, crd, values = active().transpose_entries(outer.crd, inner.crd, tensor.values, columns)
    else:
        assert inner.pos is not None
        pos, crd, values = active().transpose(inner.pos, inner.crd, tensor.values, columns)
    return Tensor.made(tensor.shape, format, (LevelArrays(), LevelArrays(sealed(pos), sealed(crd))), values, tensor.fill_value)
