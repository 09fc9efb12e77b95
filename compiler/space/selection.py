"""Which part of the space is listed: rules are named filters that can be left out; closed stages can be opened."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType

from ..frozen import frozen
from ..schedule.schedule import Schedule

UNDOMINATED, DRAWN, TILES, ENCODINGS = "undominated", "drawn", "tiles", "encodings"
RULES = ("order", "chain", "blocks", "products", "conversion", "forest", "gather", "marked", UNDOMINATED, DRAWN, TILES, ENCODINGS)
"""Named filters, each of which keeps some loop nests or transformations of the space; without any the default nest is left."""

CLOSED = ("merges", "protocols", "formats", "results", "threads", "compilers")
"""Stages whose choices are left to the compiler unless they are opened."""


@frozen
class Selection:
    """A part of the space.

    Attributes:
        without: filters of ``RULES`` that are left out.
        opened: stages of ``CLOSED`` that have all their choices.
        nests: schedules of loops and workspaces that are found in other ways, by the name of the way.
        tiles: how many transformations of loops are drawn.
        seed: of the draws.
        compilers: names of compilers other than the default one, for the stage "compilers".
    """

    without: Collection[str] = ()
    opened: Collection[str] = ()
    nests: Mapping[str, Sequence[Schedule]] = field(default_factory=lambda: MappingProxyType({}))
    tiles: int = 0
    seed: int = 0
    compilers: tuple[str, ...] = ()

    def keeps(self, origin: str) -> bool:
        """Return whether the nests that a filter finds are listed."""
        return origin not in self.without


RULES_ALONE = Selection()
"""The usual selection: all rules, with the usual stages."""
