"""The states (machine, date, commit) in which the rows of a page were taken, and marks for rows of other states than most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from string import ascii_lowercase

from .records import Taken

State = tuple[str, str]
"""Machine and commit."""


class States:
    """The states of rows. The state of most rows is the page's own and has no mark; the others are (b), (c) ..."""

    def __init__(self, rows: Iterable[Taken]) -> None:
        found = list(rows)
        self._counts: Counter[State] = Counter(_state(row) for row in found)
        self._dates: dict[State, list[str]] = {}
        for row in found:
            self._dates.setdefault(_state(row), []).append(row.date)
        self._order = [state for state, _ in self._counts.most_common()]

    def mark(self, rows: Iterable[Taken]) -> str:
        """Return the marks for the rows of one line; empty if all are of the page's own state."""
        places = sorted({self._order.index(_state(row)) for row in rows} - {0})
        return "".join(f" ({_letter(place)})" for place in places)

    def is_own_machine(self, row: Taken) -> bool:
        """Whether a row was taken on the machine of the page's own state."""
        return row.machine == self._order[0][0]

    @property
    def text(self) -> str:
        """Machine, date and commit of the rows, a line for each state."""
        lines = []
        for place, state in enumerate(self._order):
            machine, commit = (part or "unknown" for part in state)
            dates = sorted(filter(None, self._dates[state]))
            when = "date unknown" if not dates else dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
            mark = f"({_letter(place)}) " if place else ""
            lines.append(f"- {mark}{machine}, {when}, commit {commit}: {self._counts[state]} rows")
        return "Machine, date and commit of the rows; lines without a mark have rows of the first:\n\n" + "\n".join(lines)


def _state(row: Taken) -> State:
    return row.machine, row.commit


def _letter(place: int) -> str:
    return ascii_lowercase[place] if place < len(ascii_lowercase) else str(place)
