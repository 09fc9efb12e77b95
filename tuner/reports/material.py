"""What the page on performance shows: rows of races, tuned schedules, counts and sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

from ...compiler.frozen import frozen
from .records import Chosen, Count, Races, Row
from .states import States
from .workloads import KERNELS


@frozen
class Material:
    """The data of the page.

    Attributes:
        races: all rows.
        chosen: the tuned schedules.
        counts: operations of loop nests.
        sizes: shape, nonzeros and fibres by input.
    """

    races: Races
    chosen: Mapping[tuple[str, str, int], Chosen]
    counts: Sequence[Count]
    sizes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def states(self) -> States:
        return States(self.races.rows.values())

    def named(self, figure: str, kernel: str, name: str) -> str:
        """Return the name of an input for a table, with marks if its rows were taken in another state than most of the page."""
        return name + self.states.mark(row for row in self.races.rows.values() if row.race == (figure, kernel, name))

    def ordered(self, figure: str) -> list[tuple[tuple[str, str], list[Row]]]:
        """Return kernels and inputs of a figure in the order of the workloads."""
        kernels = list(KERNELS)
        return sorted(self.races.of(figure).items(), key=lambda item: (kernels.index(item[0][0]), item[0][1]))
