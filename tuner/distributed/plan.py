"""``st.distributed.volume``: what an expression would move and hold over any number of ranks, from its operands alone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...compiler.errors import DataError
from ...compiler.format import Format, parse_format
from ...compiler.notation.value_types import number_dtype
from .contraction import Contraction, as_tensor, contraction_of
from .grid import checked_grid, checked_ranks
from .layout import Layout
from .pattern import Pattern
from .volume import Costs, Request, checked_extents, result_kind

FACTORS = ("replicated", "distributed")


def volume(
    expression: str,
    operands: Mapping[str, Any],
    ranks: int | None = None,
    grid: Sequence[int] | None = None,
    gather: bool = True,
    output_format: Format | str | None = None,
    shape: Mapping[str, int] | None = None,
    factors: str = "replicated",
) -> dict[str, Any]:
    """Return what ``evaluate`` would move and hold, without running it.

    Args:
        expression: index notation with one sparse operand.
        operands: by name, as ``evaluate`` takes them, or paths. With distributed ones every rank has to call this.
        ranks: how many; None: those of ``grid``, of the distributed operand, or 1.
        grid: extents of the processor grid, one a mode of the sparse operand; None: that of the distributed operand if it has as many
            ranks, else the grid that moves at most 1.1 times what the best of all grids moves, and holds least.
        gather: whether every rank gets the whole result.
        output_format: of the result; None: dense.
        shape: extents of indices that no operand determines.
        factors: "replicated": every rank has the dense operands whole, as ``evaluate`` takes ndarrays; "distributed": each element is on
            one rank, as in what ``evaluate(..., gather=False)`` returns, so that replicating them counts.

    Returns:
        ``grid``; ``bytes`` that ranks send to each other, all together; ``memory``, the bytes of the rank that holds most: its part of
        the sparse operand, its blocks of the dense ones and of the result, and the whole result where it is gathered; ``imbalance``,
        the stored entries of the rank that has most over the mean; and the parts of the bytes: ``replicate`` by operand, ``reduce``,
        ``gather``.

    Raises:
        ExpressionError: the expression has no, or several, sparse operands. DataError: the grid or the number of ranks has no meaning.
    """
    if factors not in FACTORS:
        raise DataError(f"factors is one of {', '.join(FACTORS)}, not {factors!r}")
    request = request_of(expression, _loaded(operands), gather, output_format, shape, factors == "distributed")
    return as_dict(costs(request, operands, ranks, grid))


def costs(request: Request, operands: Mapping[str, Any], ranks: int | None, grid: Sequence[int] | None) -> Costs:
    """Return the costs of a request on a grid that is given, that the sparse operand has, or that is chosen."""
    own = getattr(operands.get(request.contraction.sparse.tensor), "grid", None)
    if ranks is None:
        ranks = int(np.prod(grid if grid is not None else own if own is not None else ()))
    checked = checked_ranks(ranks)
    if grid is not None:
        chosen = checked_grid(grid, checked, request.contraction.order)
        check_repeated(request.contraction, chosen)
    elif own is not None and int(np.prod(own)) == checked and chosen_before(request.contraction, own):
        chosen = own
    else:
        chosen = request.choose(checked)
    return request.costs(chosen)


def as_dict(found: Costs) -> dict[str, Any]:
    """Return costs as ``volume`` does."""
    return {
        "grid": found.grid,
        "bytes": found.bytes,
        "memory": found.memory,
        "imbalance": found.imbalance,
        "replicate": dict(found.replicate),
        "reduce": found.reduce,
        "gather": found.gather,
    }


def chosen_before(contraction: Contraction, grid: tuple[int, ...]) -> bool:
    """Whether an expression can be computed on the grid that its operand is distributed over."""
    return all(grid[mode] == 1 for mode in contraction.repeated)


def check_repeated(contraction: Contraction, grid: tuple[int, ...]) -> None:
    """Refuse a grid that cuts a mode whose index stands twice in the sparse operand."""
    for mode in contraction.repeated:
        if grid[mode] != 1:
            index = contraction.sparse.subscripts[mode].index
            raise DataError(f"index {index} stands twice in {contraction.sparse.tensor}: the grid has to have 1 place along mode {mode}")


def request_of(
    expression: str,
    operands: Mapping[str, Any],
    gather: bool,
    output_format: Format | str | None,
    shape: Mapping[str, int] | None,
    original: bool = False,
) -> Request:
    """Return what an expression asks for, checked.

    Args:
        original: whether dense operands that are not distributed count as if they were, in their original mapping.
    """
    contraction = contraction_of(expression, operands)
    name = contraction.sparse.tensor
    shapes = {operand: shape_of(data) for operand, data in operands.items()}
    extents = checked_extents(contraction, shapes, shape or {})
    held: dict[str, Layout | str] = {}
    start = (contraction.assignment.target,) if contraction.assignment.operator == "+=" else ()
    for access in (*contraction.dense, *start):
        layout = getattr(operands[access.tensor], "layout", None)
        if isinstance(layout, Layout):
            held[access.tensor] = layout
        elif original:
            held[access.tensor] = "original"
    kinds = dtypes_of(operands)
    target = contraction.assignment.target
    result = parse_format(output_format, len(target.subscripts))
    itemsizes = {operand: kind.itemsize for operand, kind in kinds.items()} | {target.tensor: result_kind(contraction, kinds).itemsize}
    pattern = _pattern(name, operands[name])
    return Request(contraction, pattern, shapes, itemsizes, held, gather, not result.is_dense, extents)


def shape_of(data: Any) -> tuple[int, ...]:
    """Return the extents of an operand; () for numbers."""
    return tuple(int(extent) for extent in getattr(data, "shape", ()))


def dtypes_of(operands: Mapping[str, Any]) -> dict[str, np.dtype[Any]]:
    """Return the dtype of every operand; a number of Python's takes that of the arrays beside it."""
    known = [getattr(data, "dtype", None) for data in operands.values()]
    return {
        name: np.dtype(data.dtype) if isinstance(getattr(data, "dtype", None), np.dtype) else number_dtype(data, known)
        for name, data in operands.items()
    }


def _pattern(name: str, data: Any) -> Pattern:
    found = getattr(data, "pattern", None)
    return found if isinstance(found, Pattern) else Pattern.of(as_tensor(name, data))


def _loaded(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(operands, Mapping):
        return operands
    return {name: _read(data) if isinstance(data, (str, os.PathLike)) else data for name, data in operands.items()}


def _read(path: str | os.PathLike[str]) -> Any:
    from ...datasets import load

    return load(path)
