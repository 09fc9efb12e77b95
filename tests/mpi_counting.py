"""Communicators that count the bytes in the buffers of MPI calls: an independent count of what ranks send to others."""

from __future__ import annotations

from typing import Any

import numpy as np


class Counting:
    """A communicator of mpi4py that counts its calls and those of communicators made from it.

    Attributes:
        sent: [bytes that this rank has sent to others]; shared among all communicators.
        objects: [calls that send pickled objects].
    """

    def __init__(self, comm: Any, sent: list[int] | None = None, objects: list[int] | None = None) -> None:
        self._comm, self.sent, self.objects = comm, sent or [0], objects or [0]

    def _wrapped(self, comm: Any) -> Counting:
        made = Counting(comm)
        made.sent, made.objects = self.sent, self.objects
        return made

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._comm, name)
        if name in ("Create_cart", "Sub", "Dup", "Split", "Split_type"):
            return lambda *given, **named: self._wrapped(found(*given, **named))
        if name in ("Get_rank", "Get_size", "Abort", "Ibarrier", "Barrier"):
            return found
        if name in ("allgather", "allreduce", "bcast"):
            self.objects[0] += 1
            return found
        raise AssertionError(f"{name} is not counted")

    def Reduce_scatter(self, sent: np.ndarray, kept: np.ndarray, counts: list[int], op: Any) -> None:  # noqa: N802 as mpi4py has it
        self.sent[0] += (sum(counts) - counts[self._comm.rank]) * sent.itemsize
        self._comm.Reduce_scatter(sent, kept, counts, op=op)

    def Allgatherv(self, sent: np.ndarray, kept: Any) -> None:  # noqa: N802
        self.sent[0] += (self._comm.size - 1) * sent.nbytes
        self._comm.Allgatherv(sent, kept)

    def Allgather(self, sent: np.ndarray, kept: np.ndarray) -> None:  # noqa: N802
        self.sent[0] += (self._comm.size - 1) * sent.nbytes
        self._comm.Allgather(sent, kept)

    def Alltoall(self, sent: np.ndarray, kept: np.ndarray) -> None:  # noqa: N802
        self.sent[0] += sent.nbytes // self._comm.size * (self._comm.size - 1)
        self._comm.Alltoall(sent, kept)

    def Alltoallv(self, sent: Any, kept: Any) -> None:  # noqa: N802
        self.sent[0] += sum(sent[1]) - sent[1][self._comm.rank]
        self._comm.Alltoallv(sent, kept)

    def Scatterv(self, sent: Any, kept: np.ndarray) -> None:  # noqa: N802
        self.sent[0] += sum(sent[1]) - sent[1][0] if sent is not None else 0
        self._comm.Scatterv(sent, kept)
