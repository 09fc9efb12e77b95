"""Loops given to warps and threads of a GPU, with the numbers that are open: lanes of a warp, registers of a thread."""

from __future__ import annotations

from .. import units
from ..schedule import directives as d
from .template import Hole, Part, opened

LANES = Hole("lanes", (32, 16, 8, 4, 2))  # lanes that work on a row together
REGISTERS = Hole("registers", ((None, None), *((units.REGISTERS, count) for count in (48, 40, 32, 64, 128))))  # most registers of a thread


def to_threads(loop: str, race: str, path: tuple[int, ...] | None = None) -> Part:
    """Return a loop given to threads, which may have fewer registers than the compiler would give them, or more."""
    return opened(d.Parallelize(loop, "gpu_thread", race, path=path), chunking__chunk=REGISTERS)


def to_warps(loop: str, **open_too: Hole) -> Part:
    """Return a loop given to warps, which may have fewer lanes than 32, so that short rows leave none of them without work."""
    return opened(d.Parallelize(loop, "gpu_warp", "no_races", units.LANES, 32), chunk=LANES, **open_too)
