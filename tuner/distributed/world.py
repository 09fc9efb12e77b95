"""The ranks that run this program: MPI's communicators, sub-grids, and what this rank sends.

All transport is MPI's, through mpi4py. A program that was not started by ``mpiexec`` is the only rank of its world.
"""

from __future__ import annotations

import math
import os
from functools import cache, cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compiler.errors import BuildError
from ...compiler.native.machine import available_cores
from ..environment import code_version
from . import failure
from .layout import Layout

_WAIT = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
"""Settings of MPICH: waiting ranks leave their cores to others, which costs microseconds."""

_DIGEST = 64


@cache
def world() -> World:
    """Return the ranks of this program; MPI starts with the first call, which every rank has to make.

    Raises:
        BuildError: mpi4py or an MPI library is missing; another rank runs another version of sparsetune.
    """
    for name, value in _WAIT.items():
        os.environ.setdefault(name, value)
    try:
        mpi = import_module("mpi4py.MPI")
    except ImportError as error:
        raise BuildError(f"MPI cannot be used ({error}): pip install 'sparsetune[mpi]'") from None
    except RuntimeError as error:
        raise BuildError(f"mpi4py finds no MPI library ({str(error).splitlines()[0]}): pip install mpich") from None
    found = World(mpi.COMM_WORLD, mpi)
    if found.size > 1:
        failure.watch(found.comm)
        found.compare_versions()
    return found


class World:
    """All ranks, and the sub-grids that they make up.

    Attributes:
        rank, size: the number of this rank, and of all.
        threads: how many each rank runs by default: the cores of its machine shared among the ranks there.
        sent: bytes that this rank has sent to others with tensors; see ``volume`` for what counts.
    """

    def __init__(self, comm: Any, mpi: Any) -> None:
        self.comm, self._mpi = comm, mpi
        self.rank, self.size = int(comm.Get_rank()), int(comm.Get_size())
        self.sent = 0
        self._grids: dict[tuple[int, ...], Any] = {}
        self._groups: dict[tuple[tuple[int, ...], tuple[int, ...]], Any] = {}

    @cached_property
    def threads(self) -> int:
        """How many threads each rank runs by default, at least 1. Finding it out is a collective call when there are several ranks."""
        if self.size == 1:
            return available_cores()
        here = self.comm.Split_type(self._mpi.COMM_TYPE_SHARED)
        return max(1, available_cores() // int(here.Get_size()))

    def compare_versions(self) -> None:
        """Check that all ranks run the same code.

        Raises:
            BuildError: they do not; raised on every rank, naming the first that differs from rank 0.
        """
        mine = np.frombuffer(code_version().encode()[:_DIGEST].ljust(_DIGEST), np.uint8)
        everybody = np.empty((self.size, _DIGEST), np.uint8)
        self.comm.Allgather(mine, everybody)
        versions = [row.tobytes().decode("utf-8", "replace").strip() for row in everybody]
        for rank, version in enumerate(versions):
            if version != versions[0]:
                raise BuildError(
                    f"rank {rank} runs sparsetune {version}, but rank 0 runs {versions[0]}: install the same version for all ranks"
                )

    def reduce_scatter(self, layout: Layout, block: NDArray[Any]) -> NDArray[Any]:
        """Return this rank's share of the sum of the blocks that its sub-grid has."""
        sizes, group = layout.share_sizes(self.rank), self._group(layout)
        share = np.empty(sizes[layout.position(self.rank)], block.dtype)
        flat = np.ascontiguousarray(block).reshape(-1)
        if group is None:
            return flat
        group.Reduce_scatter(flat, share, sizes, op=self._mpi.LOR if block.dtype == np.bool_ else self._mpi.SUM)
        self.sent += flat.nbytes - share.nbytes
        return share

    def replicate(self, layout: Layout, share: NDArray[Any]) -> NDArray[Any]:
        """Return this rank's block, from the shares that its sub-grid has."""
        group, shape = self._group(layout), layout.block_shape(self.rank)
        if group is None:
            return share.reshape(shape)
        sizes = layout.share_sizes(self.rank)
        block = np.empty(math.prod(shape), share.dtype)
        group.Allgatherv(share, (block, sizes))
        self.sent += (len(sizes) - 1) * share.nbytes
        return block.reshape(shape)

    def gather(self, layout: Layout, share: NDArray[Any]) -> NDArray[Any]:
        """Return the whole tensor, on every rank, from its shares."""
        if self.size == 1:
            return share.reshape(layout.shape)
        shares = self.gather_pieces(share, [layout.share(rank)[1] - layout.share(rank)[0] for rank in range(self.size)])
        blocks: dict[tuple[int | None, ...], list[tuple[int, int]]] = {}
        for rank in range(self.size):
            blocks.setdefault(tuple(part.start for part in layout.block(rank)), []).append((layout.position(rank), rank))
        whole = np.empty(layout.shape, share.dtype)
        for members in blocks.values():
            ranks = [rank for _, rank in sorted(members)]
            joined = np.concatenate([shares[rank] for rank in ranks])
            whole[layout.block(ranks[0])] = joined.reshape(layout.block_shape(ranks[0]))
        return whole

    def gather_pieces(self, piece: NDArray[Any], sizes: list[int]) -> list[NDArray[Any]]:
        """Return the pieces of all ranks, on every rank, in their order; ``sizes`` are the numbers of their elements."""
        everything = np.empty(sum(sizes), piece.dtype)
        itemsize = piece.dtype.itemsize
        self.comm.Allgatherv(_bytes(piece), (_bytes(everything), [size * itemsize for size in sizes]))
        self.sent += (self.size - 1) * piece.nbytes
        return np.split(everything, np.cumsum(sizes)[:-1])

    def counts(self, count: int) -> list[int]:
        """Return the number that each rank hands over."""
        if self.size == 1:
            return [count]
        found = np.empty(self.size, np.int64)
        self.comm.Allgather(np.array([count], np.int64), found)
        self.sent += (self.size - 1) * 8
        return found.tolist()

    def exchange(self, records: NDArray[Any], target: NDArray[np.int64]) -> NDArray[Any]:
        """Send each record to a rank; return those that arrive, by sender and in the sender's order."""
        going, coming = np.bincount(target, minlength=self.size), np.empty(self.size, np.int64)
        self.comm.Alltoall(going, coming)
        self.sent += (self.size - 1) * 8
        return self.send(records[np.argsort(target, kind="stable")], going, coming)

    def send(self, ordered: NDArray[Any], going: NDArray[np.int64], coming: NDArray[np.int64]) -> NDArray[Any]:
        """Send records, ordered by receiver, and return those received; ``going`` and ``coming`` count them for each rank."""
        arrived, size = np.empty(int(coming.sum()), ordered.dtype), ordered.dtype.itemsize
        self.comm.Alltoallv((_bytes(ordered), (going * size).tolist()), (_bytes(arrived), (coming * size).tolist()))
        self.sent += int(going.sum() - going[self.rank]) * size
        return arrived

    def scatter(self, ordered: NDArray[Any] | None, share: NDArray[Any], sizes: list[int]) -> None:
        """Fill this rank's share from what rank 0 has, shares in the order of the ranks."""
        if ordered is not None and self.size == 1:
            share[:] = ordered
            return
        handed = None if ordered is None else (_bytes(ordered), [size * share.dtype.itemsize for size in sizes])
        filled = np.empty(share.nbytes, np.uint8)
        self.comm.Scatterv(handed, filled)
        share[:] = filled.view(share.dtype)
        self.sent += 0 if ordered is None else ordered.nbytes - share.nbytes

    def sum(self, number: int) -> int:
        """Return the sum of a number over all ranks."""
        return int(self.comm.allreduce(number))

    def _group(self, layout: Layout) -> Any:
        """Return the communicator of this rank's sub-grid; None where it is alone there."""
        if layout.replicas == 1:
            return None
        key = layout.grid, layout.used
        if key not in self._groups:
            if layout.grid not in self._grids:
                self._grids[layout.grid] = self.comm.Create_cart(layout.grid, reorder=False)
            self._groups[key] = self._grids[layout.grid].Sub([dim not in layout.used for dim in range(len(layout.grid))])
        return self._groups[key]


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).view(np.uint8) if array.size else np.empty(0, np.uint8)
