"""What lookup returns: a schedule, where it comes from, and why."""

from __future__ import annotations

from ..compiler.frozen import frozen
from ..compiler.schedule.schedule import Schedule
from ..compiler.units import HARDWARE

TARGETS = tuple(HARDWARE)
"""The targets that schedules are tuned for."""

MEANING = {
    "exact": "tuned on this very input",
    "similar": "tuned on a similar input",
    "model": "nothing similar was tuned; chosen by the static model",
    "default": "nothing similar was tuned, and the static model expects no gain",
}
"""What each origin means."""


@frozen
class Match:
    """What lookup found.

    Attributes:
        schedule: to be used.
        origin: "exact", "similar", "model" or "default".
        time: seconds that the schedule took on the known input; None where there is none.
        distance: of the known input from this one; None where there is none.
        note: what a user should know of the answer, such as that candidates were left out for lack of time; mostly empty.
    """

    schedule: Schedule
    origin: str
    time: float | None = None
    distance: float | None = None
    note: str = ""

    @property
    def reason(self) -> str:
        """The schedule and why it is used, in one line."""
        away = f" at distance {self.distance:.2f}" if self.distance else ""
        took = f", where it took {self.time:.3g} s" if self.time is not None else ""
        why = f"{self.origin}: {MEANING[self.origin]}{away}{took}" + (f"; {self.note}" if self.note else "")
        return f"{str(self.schedule) or 'the default schedule'} ({why})"
