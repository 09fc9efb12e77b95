"""Campaigns over ranks: rank 0 owns the search, the others build and measure what it asks for.

A helper has to be on a machine like that of rank 0, since times of others say nothing about it. Helpers on one machine build side by
side and take turns at what they time (``measure.turn``). One that is lost costs its candidate: rank 0 goes on with the others.
"""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import psutil

from ...compiler.deadline import TimeOver
from ...compiler.errors import SparsetuneError
from ...compiler.frozen import frozen
from ...compiler.native.machine import this_machine
from ...compiler.native.toolchain import available_compilers
from ..measure.helpers import Answer, Question
from ..measure.policy import Policy
from ..measure.runner import Runner
from ..measure.worker_process import Worker
from ..operands import load_tensor
from ..records import Status
from ..search.strategy import Proposal
from ..suite import Item, make_item
from .world import World

_POLL_SECONDS = 0.01
_ANSWERS_SECONDS = 0.2
_SILENCE_SECONDS = 900.0  # a helper on another machine counts as lost when it is silent so long after its candidate's time is over


@frozen
class Identity:
    """Which process a rank is, and on what machine."""

    machine: str
    compilers: tuple[tuple[str, str], ...]
    host: str
    process: int

    @classmethod
    def own(cls) -> Identity:
        """Return the identity of this process."""
        compilers = tuple((compiler.name, compiler.version) for compiler in available_compilers())
        return cls(this_machine().fingerprint, compilers, socket.gethostname(), os.getpid())

    def fits(self, other: Identity) -> bool:
        """Return whether times of both processes compare: equal machines with equal compilers."""
        return (self.machine, self.compilers) == (other.machine, other.compilers)

    @property
    def lives(self) -> bool:
        """Whether the process is there; processes of other machines are taken to be."""
        if self.host != socket.gethostname():
            return True
        try:
            return psutil.Process(self.process).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False


@frozen
class Job:
    """A candidate that a helper has, and when it has to be done on the monotonic clock."""

    proposal: Proposal
    end: float


@dataclass
class Crew:
    """The helpers as rank 0 sees them; ``notes`` collects what is to be said about them."""

    comm: Any
    members: dict[int, Identity]
    notes: list[str] = field(default_factory=list)
    lost: bool = False
    _jobs: dict[int, Job] = field(default_factory=dict)
    _arriving: dict[int, Any] = field(default_factory=dict)

    @classmethod
    def gathered(cls, here: World, known: Callable[[], None]) -> Crew | None:
        """Return the helpers on rank 0; on the other ranks, serve until rank 0 is done, and return None.

        A helper calls ``known`` once rank 0 knows its process, so that rank 0 can go on if it dies.
        """
        comm, own = here.comm.Dup(), Identity.own()
        if here.rank > 0:
            comm.ssend(own, 0)
            known()
            _serve(comm)
            return None
        everybody = {rank: comm.recv(source=rank) for rank in range(1, here.size)}
        fitting = {rank: member for rank, member in everybody.items() if member.fits(own)}
        found = cls(comm, fitting)
        for rank in everybody.keys() - fitting.keys():
            found.notes.append(f"rank {rank} on {everybody[rank].host} has another machine or compilers than rank 0, and measures nothing")
            comm.send(None, rank)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        for rank in self.members:
            self.comm.send(None, rank)

    def take_up(self, item: Item, policy: Policy) -> Crew:
        """Send the helpers the next problem."""
        while self._jobs:  # candidates of an item that failed
            for _ in self.answers():
                pass
        self._drop_lost()
        for rank in self.members:
            self.comm.send((item, policy), rank)
        return self

    @property
    def some(self) -> bool:
        return bool(self.members)

    @property
    def idle(self) -> bool:
        return self.busy < len(self.members)

    @property
    def busy(self) -> int:
        return len(self._jobs)

    def start(self, proposal: Proposal, question: Question, seconds: float) -> None:
        rank = next(rank for rank in self.members if rank not in self._jobs)
        self._jobs[rank] = Job(proposal, time.monotonic() + min(seconds, _SILENCE_SECONDS) + _SILENCE_SECONDS)
        self.comm.send((question, seconds), rank)

    def answers(self) -> Iterator[Answer]:
        end = time.monotonic() + _ANSWERS_SECONDS
        while time.monotonic() < end:
            arrived = [(rank, answer) for rank in self._jobs if (answer := self._arrived(rank)) is not None]
            for rank, (built, measured, reason) in arrived:
                job = self._jobs.pop(rank)
                if reason:
                    self._leave_out(rank, reason)
                yield Answer(job.proposal, built, measured)
            if arrived:
                return
            time.sleep(_POLL_SECONDS)
        yield from self._drop_lost()

    def _arrived(self, rank: int) -> tuple[Any, Any, str] | None:
        """Return the answer of a helper if it has arrived in full: waiting for the rest of it would never end if the helper is killed."""
        if rank not in self._arriving:
            message = self.comm.improbe(source=rank)
            if message is None:
                return None
            self._arriving[rank] = message.irecv()
        whole, answer = self._arriving[rank].test()
        if not whole:
            return None
        del self._arriving[rank]
        return answer

    def _drop_lost(self) -> list[Answer]:
        now = time.monotonic()
        overdue = {rank for rank, job in self._jobs.items() if now > job.end}
        gone = [rank for rank, member in self.members.items() if rank in overdue or not member.lives]
        found = [Answer(self._jobs.pop(rank).proposal) for rank in gone if rank in self._jobs]
        for rank in gone:
            self.lost = True
            self._leave_out(rank, "was lost")
        return found

    def _leave_out(self, rank: int, reason: str) -> None:
        member = self.members.pop(rank)
        self._arriving.pop(rank, None)
        self.notes.append(f"rank {rank} on {member.host} {reason}; the others go on")
        if reason != "was lost":
            self.comm.send(None, rank)


def _serve(comm: Any) -> None:
    """Build and measure what rank 0 asks for, until it says that nothing follows."""
    bench: _Bench | None = None
    while (told := _received(comm)) is not None:
        match told:
            case (Item() as item, Policy() as policy):
                if bench is not None:
                    bench.close()
                bench = _Bench(item, policy)
            case (Question() as question, seconds):
                assert bench is not None
                comm.send(bench.answer(question, seconds), 0)
    if bench is not None:
        bench.close()


def _received(comm: Any) -> Any:
    """Return the next message of rank 0; while waiting, leave the cores to ranks that build and measure."""
    while not comm.iprobe(source=0):
        time.sleep(_POLL_SECONDS)
    return comm.recv(source=0)


class _Bench:
    """One problem on a helper; it is loaded when its first candidate comes."""

    def __init__(self, item: Item, policy: Policy) -> None:
        self._item, self._policy = item, policy
        self._worker = Worker(item.threads)
        self._runner: Runner | None = None

    def answer(self, question: Question, seconds: float) -> tuple[Any, Any, str]:
        """Return how a candidate was built, how it was measured, and why this helper cannot go on (empty if it can)."""
        end = time.monotonic() + seconds if math.isfinite(seconds) else math.inf
        try:
            runner = self._runner or self._load()
            runner.end = end
            built = runner.build(question.schedule, question.known)
            if built.status is not Status.OK or built.source in question.known:
                return built, None, ""
            return built, runner.measure(question.schedule, question.rival), ""
        except TimeOver:
            return None, None, ""
        except (SparsetuneError, MemoryError, OSError) as error:
            return None, None, f"cannot measure: {str(error).splitlines()[0] if str(error) else type(error).__name__}"

    def _load(self) -> Runner:
        problem = make_item(self._item, load_tensor(self._item.input.source))
        self._runner = Runner(problem, self._worker, self._policy)
        self._runner.prepare()
        return self._runner

    def close(self) -> None:
        if self._runner is not None:
            self._runner.close()
        self._worker.stop()
