"""Other processes that build and measure candidates of a problem for the one that owns the search."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from ..search.strategy import Proposal
from .outcomes import Built, Measured, Rival


@dataclass(frozen=True)
class Question:
    """A request to a helper: a candidate to build and measure.

    Attributes:
        schedule: its text in the user's names.
        known: digests of the sources that were measured before; such a candidate is not measured again.
        rival: what it is timed in turn with.
    """

    schedule: str
    known: tuple[str, ...]
    rival: Rival | None


@dataclass(frozen=True)
class Answer:
    """The outcome of a request; ``built`` is None if the helper was lost or had no time left."""

    proposal: Proposal
    built: Built | None = None
    measured: Measured | None = None


class Helpers(Protocol):
    """Helpers for one problem; each has one candidate at a time."""

    @property
    def some(self) -> bool:
        """Whether any helper is left."""
        ...

    @property
    def idle(self) -> bool:
        """Whether a helper waits for work."""
        ...

    @property
    def busy(self) -> int:
        """How many helpers work."""
        ...

    def start(self, proposal: Proposal, question: Question, seconds: float) -> None:
        """Give an idle helper work that has to be done in so many seconds."""
        ...

    def answers(self) -> Iterable[Answer]:
        """Wait a moment; return the answers that have come."""
        ...
