"""``st.distributed.tensor``: data come to the ranks from one file that all of them read, or from rank 0."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compiler.errors import DataError
from ...compiler.format import Format, parse_format
from ...compiler.storage.construct import borrowed
from ...compiler.storage.construct import tensor as stored
from ...compiler.storage.tensor import Tensor
from ...datasets.parts import FilePlan, check_lines, plan_parts, read_part
from .failure import agreed
from .grid import checked_grid
from .layout import Layout
from .tensors import DistributedArray, DistributedTensor, place
from .volume import spread_grid
from .world import World, world


def tensor(
    data: Any = None, format: Format | str | None = None, grid: Sequence[int] | None = None
) -> DistributedTensor | DistributedArray:
    """Distribute a tensor over all ranks; every rank calls it.

    Args:
        data: of rank 0, whatever the others hand over: what ``sparsetune.tensor`` takes. A plain .tns or .mtx file is read by all ranks
            together, each its range of bytes, so that every machine has to see it; other files and names are read by rank 0.
        format: how each rank stores its part of a sparse tensor; None: csf, csr for matrices.
        grid: extents of the processor grid, one a mode; None: the one on which replicating one column of a factor along every mode
            sends least.

    Returns:
        A ``DistributedTensor``, cyclic over the grid; a ``DistributedArray`` where the data are dense.

    Raises:
        DataError, FormatError: the data hold no tensor, the grid does not fit; on every rank, and the message names the first where it
            happened.
        ResourceError: a rank lacks the memory.
    """
    here = world()
    plan = _from_rank_0(here, partial(_plan, data, format))
    if isinstance(plan, FilePlan):
        return _read_together(here, plan, format, grid)
    return _scatter(here, data, format, grid)


def _from_rank_0(here: World, work: Any) -> Any:
    """Return what rank 0 finds, on every rank."""
    found = agreed(here.comm, (lambda: work()) if here.rank == 0 else (lambda: None))
    return found if here.size == 1 else here.comm.bcast(found)


def _plan(data: Any, format: Any) -> FilePlan | None:
    """Return how all ranks read the file together; None where rank 0 has or reads the data."""
    if format is not None and not isinstance(format, (str, Format)):
        parse_format(format, 0)  # says what a format is
    return plan_parts(data) if isinstance(data, (str, os.PathLike)) else None


def _read_together(here: World, plan: FilePlan, format: Any, grid: Sequence[int] | None) -> DistributedTensor:
    part = agreed(here.comm, lambda: read_part(plan, here.rank, here.size))
    told = here.comm.allgather((part.extents, part.lines, part.values.dtype.str))
    agreed(here.comm, lambda: check_lines(plan, sum(lines for _, lines, _ in told)))
    shape = tuple(map(max, zip(*(extents for extents, _, _ in told), strict=True)))
    kind = np.result_type(*(np.dtype(name) for _, _, name in told))
    wide = [np.asarray(column, np.int64) for column in part.columns]
    return _placed(here, shape, wide, part.values.astype(kind, copy=False), format, grid)


def _scatter(here: World, data: Any, format: Any, grid: Sequence[int] | None) -> DistributedTensor | DistributedArray:
    """Distribute what rank 0 has."""
    found = agreed(here.comm, lambda: _loaded(data, format) if here.rank == 0 else None)
    head = None if found is None else (found.shape, found.dtype.str, str(found.format), found.format.is_dense)
    shape, kind, form, dense = here.comm.bcast(head) if here.size > 1 else head  # type: ignore[misc]  # rank 0 has it
    if dense:
        return _scatter_dense(here, None if found is None else found.to_numpy(), shape, np.dtype(kind), grid)
    columns, values = (np.empty((len(shape), 0), np.int64), np.empty(0, kind)) if found is None else found.to_coordinates()
    return _placed(here, shape, tuple(columns), values, form if format is None else format, grid)


def _loaded(data: Any, format: Any) -> Tensor:
    if data is None:
        raise DataError("rank 0 hands over no data: a distributed tensor is made of what rank 0 has, or of a file")
    if isinstance(data, (str, os.PathLike)):
        from ...datasets import load

        return load(data, format)
    return stored(data, format) if format is not None or isinstance(data, (tuple, list)) else borrowed(data)


def _placed(
    here: World, shape: tuple[int, ...], columns: Sequence[NDArray[Any]], values: NDArray[Any], format: Any, grid: Sequence[int] | None
) -> DistributedTensor:
    def chosen() -> tuple[int, ...]:
        if not shape:
            raise DataError("a tensor of order 0 has no mode to distribute")
        parse_format(format, len(shape))
        return spread_grid(shape, here.size) if grid is None else checked_grid(grid, here.size, len(shape))

    return place(here, shape, columns, values, agreed(here.comm, chosen), format)


def _scatter_dense(
    here: World, whole: NDArray[Any] | None, shape: tuple[int, ...], kind: np.dtype[Any], grid: Sequence[int] | None
) -> DistributedArray:
    """Give every rank its share of an array, whose first mode is distributed unless a grid is given."""
    if grid is None or not shape:
        layout = Layout(shape, (here.size,), (0, *(None,) * (len(shape) - 1)) if shape else ())
    else:
        layout = Layout(shape, checked_grid(grid, here.size, len(shape)), tuple(range(len(shape))))
    sizes = [layout.share(rank)[1] - layout.share(rank)[0] for rank in range(here.size)]
    share = np.empty(sizes[here.rank], kind)
    ordered = None
    if whole is not None:
        flat = np.ascontiguousarray(whole).reshape(-1)
        ordered = np.concatenate([flat[layout.elements(rank)] for rank in range(here.size)])
    here.scatter(ordered, share, sizes)
    return DistributedArray(layout, share)
