"""Tags of loops: who runs the iterations, and how."""

from __future__ import annotations

from typing import Literal as OneOf

from ...frozen import frozen

Member = OneOf["block", "warp", "thread"]
Group = OneOf["grid", "block", "warp"]


@frozen
class Parallel:
    """Iterations are cut into chunks that threads claim, as many at most as the kernel's ``threads`` argument says.

    A chunk belongs to the share of the work that is its number modulo that argument, whichever thread runs it. With static chunks
    of no given size they are equal.
    """

    chunking: str | None = None  # static, dynamic, guided; ordered: threads always claim the next one
    chunk: int | None = None


SHARE_NUMBER = "share_number"
"""The intrinsic that gives the number of the share to which an iteration of the parallel loop around belongs."""

SHARE_BEGIN = "share_begin"
"""The intrinsic that gives the first iteration of that share; of loops whose chunks are static and of no given size, so that shares are
runs of iterations."""


@frozen
class Vector:
    """Iterations go to vector lanes. Scalars declared outside and updated by an associative op inside are reductions.

    ``vectors`` is how many vectors a step takes, each with accumulators of its own; None: as many as suit. Where there are less
    than ``least`` iterations, they run one by one; so do those that make no whole vector, where how many there are is ``foreseen``.
    """

    vectors: int | None = None
    least: int = 0
    foreseen: bool = False


@frozen
class Simd:
    """The C compiler is told that it may run iterations in lanes; ``reductions`` are the scalars updated in all of them, by operator.

    Only the pass ``passes.offered`` makes it, of loops that have no vector form.
    """

    reductions: tuple[tuple[str, tuple[str, ...]], ...] = ()


@frozen
class Unroll:
    """The C compiler is told to unroll the loop by a factor."""

    factor: int


@frozen
class Dealt:
    """Iterations are dealt out in turn to the blocks, warps or threads of a GPU: to all of them, or to those of one block or warp.

    What stands around the loop and inside a loop over blocks or warps is done once by each of them.

    Attributes:
        lanes: of each warp that iterations are dealt out to; with fewer than 32, the other lanes of the processor's warp are others'.
        at_once: of its iterations whose elements a thread loads before it computes with the first of them.
        registers: that each thread has at most; 0: as many as the compiler gives it.
    """

    unit: Member
    within: Group = "grid"
    lanes: int = 32
    at_once: int = 1
    registers: int = 0
