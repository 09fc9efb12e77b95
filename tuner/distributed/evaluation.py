"""``st.distributed.evaluate``: an expression with one sparse operand over all ranks.

The method is that of Kanakagiri and Solomonik, section 5.2: the sparse operand stays where it is. Each rank gets the blocks of the dense
operands that its part meets and runs the kernel of one machine on them. The results are summed over the sub-grids that share a block.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...compiler.evaluate import evaluate as evaluate_locally
from ...compiler.format import Format, parse_format
from ...compiler.notation.nodes import Access
from ...compiler.notation.printer import show
from ...compiler.schedule.schedule import Schedule
from ...compiler.storage.construct import from_entries
from ...compiler.storage.tensor import Tensor
from ..asking import choose
from .contraction import Contraction, as_tensor, contraction_of
from .grid import checked_grid, coordinates_of
from .layout import Layout
from .pattern import Pattern, local_shapes
from .plan import check_repeated, chosen_before, request_of, shape_of
from .scatter import tensor
from .tensors import DistributedArray, DistributedTensor, gather_entries, place, place_own
from .volume import check_sparse_result, checked_extents, spread_grid
from .world import World, world


def evaluate(
    expression: str,
    operands: Mapping[str, Any],
    grid: Sequence[int] | None = None,
    gather: bool = True,
    output_format: Format | str | None = None,
    schedule: str | Schedule = "auto",
    shape: Mapping[str, int] | None = None,
    dtype: DTypeLike | None = None,
    threads: int | None = None,
    database: str | os.PathLike[str] | None = None,
) -> Any:
    """Compute an expression over all ranks; every rank calls it with the same arguments.

    Args:
        expression: index notation with one sparse operand, which stands in every addend as a factor.
        operands: by name. The sparse one is a ``DistributedTensor``, the path of a file, or the same tensor on every rank, of which each
            takes its part. Dense ones are the same array on every rank, or a ``DistributedArray``.
        grid: extents of the processor grid, one for each mode of the sparse operand, which is redistributed if it has another grid; None:
            the grid that it has, else the one that suits the expression best.
        gather: True: every rank gets the whole result. False: each rank keeps its part.
        output_format: of the result; None: dense.
        schedule: of the kernel that each rank runs: "auto" (database, then static model), "default", a text, or a ``Schedule``.
        shape: extents of indices that no operand determines, by index.
        dtype: of the values; None: ``numpy.result_type`` of the operands.
        threads: how many each rank runs; None: $SPARSETUNE_THREADS, or the cores of its machine shared among the ranks there.
        database: path or URL; None: the default one.

    Returns:
        An ndarray, a numpy scalar or a ``Tensor`` on every rank; with ``gather=False`` a ``DistributedArray`` or ``DistributedTensor``.

    Raises:
        ExpressionError: the expression has several sparse operands, none, or is not linear in it.
        SparsetuneError: operands, grid or format do not fit; MPI is missing.
    """
    here = world()
    ready = {name: _held(data) for name, data in operands.items()} if isinstance(operands, Mapping) else operands
    contraction = contraction_of(expression, ready)
    target = contraction.assignment.target
    extents = checked_extents(contraction, {name: shape_of(data) for name, data in ready.items()}, shape or {})
    form = parse_format(output_format, len(target.subscripts))
    if not form.is_dense:
        check_sparse_result(contraction)
    part = _distributed(here, contraction, expression, ready, grid, gather, output_format, shape)
    parts = {contraction.sparse.tensor: _local_part(here, contraction, part)}
    parts |= {access.tensor: _local_block(here, contraction, access, ready[access.tensor], part.grid) for access in contraction.dense}
    options = (output_format, schedule, _local_extents(here, contraction, part, extents, shape), dtype, threads or _threads(here), database)
    made = _run(f"{show(target)} = {show(contraction.assignment.value)}", parts, *options)
    whole = tuple(extents[index] for index in target.indices)
    start = ready[target.tensor] if contraction.assignment.operator == "+=" else None
    if isinstance(made, Tensor):
        return _sparse_result(here, contraction, part, made, whole, form, gather)
    layout = contraction.layout(target, whole, part.grid)
    found = DistributedArray(layout, here.reduce_scatter(layout, np.asarray(made)))
    found = found if start is None else DistributedArray(layout, found.share + _share(layout, start, here))
    if not gather:
        return found
    result = found.gather()
    return result if result.ndim else result[()]


def _held(data: Any) -> Any:
    """Return an operand in the form in which all ranks have it; a file is read by all of them together."""
    if isinstance(data, (str, os.PathLike)):
        return tensor(data)
    return data.to_numpy() if isinstance(data, Tensor) and data.format.is_dense else data


def _distributed(
    here: World,
    contraction: Contraction,
    expression: str,
    operands: Mapping[str, Any],
    grid: Sequence[int] | None,
    gather: bool,
    output_format: Any,
    shape: Mapping[str, int] | None,
) -> DistributedTensor:
    """Return the sparse operand on the grid to compute on."""
    name = contraction.sparse.tensor
    given = operands[name]
    chosen = None if grid is None else checked_grid(grid, here.size, contraction.order)
    if chosen is not None:
        check_repeated(contraction, chosen)
    if isinstance(given, DistributedTensor):
        if chosen is None:
            chosen = given.grid if chosen_before(contraction, given.grid) else _undivided_grid(contraction, given, here)
        return given.redistribute(chosen)
    whole = as_tensor(name, given)
    if chosen is None:
        chosen = request_of(expression, operands, gather, output_format, shape).choose(here.size)
    columns, values = whole.to_coordinates()
    mine = Pattern.of(whole).owners(chosen) == here.rank
    return place_own(here, whole.shape, [column[mine] for column in columns], values[mine], chosen, whole.format)


def _undivided_grid(contraction: Contraction, given: DistributedTensor, here: World) -> tuple[int, ...]:
    """Return a grid that distributes no index twice."""
    return spread_grid(given.shape, here.size, [mode not in contraction.repeated for mode in range(contraction.order)])


def _local_part(here: World, contraction: Contraction, part: DistributedTensor) -> Tensor:
    """Return this rank's part of the sparse operand in the extents that its other operands have.

    Where an index stands twice, a mode that the grid does not distribute is cut down to the coordinates of the one that it does.
    """
    if not contraction.repeated:
        return part.local
    columns, values = part.local.to_coordinates()
    places, extents = coordinates_of(here.rank, part.grid), list(part.local.shape)
    kept, cut = np.ones(len(values), bool), list(columns)
    for mode in contraction.repeated:
        dim = contraction.dim_of[contraction.sparse.subscripts[mode].index]
        kept &= columns[mode] % part.grid[dim] == places[dim]
        cut[mode], extents[mode] = columns[mode] // part.grid[dim], extents[dim]
    return from_entries(tuple(extents), tuple(column[kept] for column in cut), values[kept], part.format)


def _local_block(here: World, contraction: Contraction, access: Access, data: Any, grid: tuple[int, ...]) -> Any:
    """Return the part of a dense operand that this rank's part of the sparse one meets."""
    if isinstance(data, (int, float)) or not shape_of(data):
        return data.gather() if isinstance(data, DistributedArray) else data
    layout = contraction.layout(access, shape_of(data), grid)
    block = data.block(layout) if isinstance(data, DistributedArray) else np.asarray(data)[layout.block(here.rank)]
    places = coordinates_of(here.rank, grid)
    for mode, (subscript, dim) in enumerate(zip(access.subscripts, layout.dims, strict=True)):
        other = contraction.dim_of.get(subscript.index)
        if dim is None and other is not None:  # its index stands twice: the grid distributes the first place
            block = block[(slice(None),) * mode + (slice(places[other], None, grid[other]),)]
    return np.ascontiguousarray(block)


def _local_extents(
    here: World, contraction: Contraction, part: DistributedTensor, extents: Mapping[str, int], given: Mapping[str, int] | None
) -> dict[str, int]:
    """Return the extents that a caller gives, cut down to this rank's part."""
    local = local_shapes(part.shape, part.grid)[here.rank]
    return {index: int(local[contraction.dim_of[index]]) if index in contraction.dim_of else extents[index] for index in given or {}}


def _threads(here: World) -> int | None:
    return None if "SPARSETUNE_THREADS" in os.environ else here.threads


def _run(
    expression: str, operands: Mapping[str, Any], output_format: Any, schedule: Any, shape: Any, dtype: Any, threads: Any, database: Any
) -> Any:
    """Compute an expression on this rank, as ``sparsetune.evaluate`` does."""

    def chosen(*_request: Any) -> Schedule:
        return choose(expression, operands, output_format=output_format, threads=threads, database=database)

    return evaluate_locally(expression, operands, output_format, schedule, shape, dtype, threads=threads, choose=chosen)


def _share(layout: Layout, start: Any, here: World) -> NDArray[Any]:
    """Return this rank's share of the operand that ``+=`` starts from."""
    if isinstance(start, DistributedArray):
        return start.redistribute(layout).share
    begin, end = layout.share(here.rank)
    return np.asarray(start)[layout.block(here.rank)].reshape(-1)[begin:end]


def _sparse_result(
    here: World, contraction: Contraction, part: DistributedTensor, made: Tensor, shape: tuple[int, ...], form: Format, gather: bool
) -> Tensor | DistributedTensor:
    """Return a sparse result from the parts that the ranks have computed."""
    target, places = contraction.assignment.target, coordinates_of(here.rank, part.grid)
    columns, values = made.to_coordinates()
    dims = [contraction.dim_of.get(index) for index in target.indices]
    whole = [column if dim is None else column * part.grid[dim] + places[dim] for column, dim in zip(columns, dims, strict=True)]
    if contraction.stays_in_place(part.grid):
        if gather:
            return gather_entries(here, shape, whole, values, form)
        if contraction.keeps_modes:
            grid = tuple(1 if dim is None else part.grid[dim] for dim in dims)
            return place_own(here, shape, whole, values, grid, form)
    grid = spread_grid(shape, here.size, [dim is not None for dim in dims])
    moved = place(here, shape, whole, values, grid, form)
    return moved.gather() if gather else moved
