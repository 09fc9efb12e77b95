"""Blocked layouts: a tensor of order n becomes one of order 2n, whose last n modes lie inside a block (BCSR for n = 2)."""

from __future__ import annotations

from ..errors import ShapeError
from ..format import Format, parse_format
from .construct import default_sparse_format
from .entries import Entries
from .native_blocks import Rows, blocked_rows, plain_rows
from .pack import pack
from .sealed import sealed
from .shape import checked_shape
from .tensor import LevelArrays, Tensor
from .unpack import unpack

_CSR = parse_format("csr", 2)
_BCSR = Format("dense, compressed, dense, dense")


def block(tensor: Tensor, block_shape: tuple[int, ...], format: Format | str | None = None) -> Tensor:
    """Return the tensor cut into blocks.

    Args:
        tensor: a tensor of order n.
        block_shape: extents of a block, one per mode; blocks at the far edges are padded where they do not divide the shape.
        format: of order 2n; None: csr (csf for other orders than 2) of dense blocks.

    Returns:
        The tensor of order 2n with ``blocked[I, J, ..., i, j, ...] = tensor[I * b0 + i, J * b1 + j, ...]``.

    Raises:
        ShapeError: the block shape has another order, or an extent below 1.
    """
    extents = checked_shape(block_shape)
    if len(extents) != tensor.order or any(extent < 1 for extent in extents):
        raise ShapeError(f"a block shape has one extent from 1 on for each of the {tensor.order} modes, not {block_shape}")
    outer = tuple(-(-whole // inner) for whole, inner in zip(tensor.shape, extents, strict=True))
    chosen = _block_format(tensor.order) if format is None else parse_format(format, 2 * tensor.order)
    if tensor.format == _CSR and chosen == _BCSR:
        found = blocked_rows(_rows(tensor), (tensor.shape[0], tensor.shape[1]), (extents[0], extents[1]), tensor.fill_value)
        if found is not None:
            levels = (LevelArrays(), LevelArrays(*map(sealed, found[:2])), LevelArrays(), LevelArrays())
            return Tensor.made(outer + extents, chosen, levels, found[2], tensor.fill_value)
    entries = unpack(tensor, drop_padding=True)
    divided = [divmod(column, extent) for column, extent in zip(entries.coordinates, extents, strict=True)]
    columns = tuple(quotient for quotient, _ in divided) + tuple(remainder for _, remainder in divided)
    return pack(Entries(outer + extents, columns, entries.values), chosen, tensor.fill_value)


def unblock(blocked: Tensor, shape: tuple[int, ...] | None = None, format: Format | str | None = None) -> Tensor:
    """Return the plain tensor of a blocked one; fill values that only pad dense blocks are left out.

    Args:
        blocked: a tensor of order 2n as ``block`` returns it.
        shape: extents of the result, where they were no multiples of the block's; None: the product of both.
        format: of order n; None: csr, or csf for other orders than 2.

    Raises:
        ShapeError: the order is odd, or entries lie outside the shape.
    """
    order = blocked.order // 2
    if blocked.order % 2:
        raise ShapeError(f"a blocked tensor has two modes for each mode of the plain one, not {blocked.order} modes")
    inner = blocked.shape[order:]
    full = tuple(blocks * extent for blocks, extent in zip(blocked.shape, inner, strict=False))
    extents = full if shape is None else checked_shape(shape)
    if len(extents) != order or any(given > most for given, most in zip(extents, full, strict=True)):
        raise ShapeError(f"blocks of shape {inner} cover a tensor of shape {full}, not one of shape {shape}")
    chosen = default_sparse_format(order) if format is None else parse_format(format, order)
    if blocked.format == _BCSR and chosen == _CSR and extents == full:
        found = plain_rows(_rows(blocked), (full[0], full[1]), (inner[0], inner[1]), blocked.fill_value)
        if found is not None:
            return Tensor.made(full, chosen, (LevelArrays(), LevelArrays(*map(sealed, found[:2]))), found[2], blocked.fill_value)
    entries = unpack(blocked, drop_padding=True)
    outer_columns, inner_columns = entries.coordinates[:order], entries.coordinates[order:]
    columns = tuple(
        quotient.astype("int64") * extent + remainder
        for quotient, extent, remainder in zip(outer_columns, inner, inner_columns, strict=True)
    )
    if any(len(column) and int(column.max()) >= extent for column, extent in zip(columns, extents, strict=True)):
        raise ShapeError(f"entries of the blocked tensor lie outside the shape {shape}")
    return pack(Entries(extents, columns, entries.values), chosen, blocked.fill_value)


def _rows(tensor: Tensor) -> Rows:
    arrays = tensor.levels[1]
    assert arrays.pos is not None
    assert arrays.crd is not None
    return arrays.pos, arrays.crd, tensor.values


def _block_format(order: int) -> Format:
    return Format((*default_sparse_format(order).levels, *("dense",) * order))
