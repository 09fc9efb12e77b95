"""Tags of loops: which units run the iterations, and how."""

from __future__ import annotations

from typing import Literal as OneOf

from ...frozen import frozen
from ...units import Member as Member

Group = OneOf["grid", "block", "warp"]


@frozen
class Parallel:
    """Iterations are cut into chunks, which threads claim. The kernel's argument ``threads`` says how many threads run at most.

    The number of a chunk modulo that argument is the share of the work to which it belongs, whichever thread runs it. Static chunks
    without a given size are of equal length, one for each share.
    """

    chunking: str | None = None  # static, dynamic, guided; ordered: threads always claim the next one
    chunk: int | None = None


SHARE_NUMBER = "share_number"
"""The intrinsic that gives the number of the share to which the current iteration of the parallel loop belongs."""

SHARE_BEGIN = "share_begin"
"""The intrinsic that gives the first iteration of that share. It is for loops with static chunks without a given size, where shares are
runs of consecutive iterations."""


@frozen
class Vector:
    """Iterations become lanes of vectors. Scalars that are declared outside and updated inside by an associative operator are reductions.

    ``vectors`` is how many vectors a step takes, each with its own accumulators; None: the pass decides. Fewer than ``least`` iterations
    run one by one. If the number of iterations is ``foreseen``, so do those at the end that fill no whole vector.
    """

    vectors: int | None = None
    least: int = 0
    foreseen: bool = False


@frozen
class Simd:
    """The C compiler may run iterations in lanes; ``reductions`` has, by operator, the scalars that all iterations update.

    Only the pass ``passes.offered`` makes it, for loops that have no vector form.
    """

    reductions: tuple[tuple[str, tuple[str, ...]], ...] = ()


@frozen
class Unroll:
    """The C compiler is asked to unroll the loop by a factor."""

    factor: int


@frozen
class Dealt:
    """Iterations are dealt out in turn to the blocks, warps or threads (``unit``) of a grid, block or warp (``within``) of a GPU.

    Statements around such a loop, inside a loop over blocks or warps, are run once by each block or warp.

    Attributes:
        lanes: threads of a warp. With fewer than 32, several such warps share a warp of the hardware.
        at_once: how many iterations' elements a thread loads before it computes with the first of them.
        registers: the most registers of a thread; 0: the compiler decides.
    """

    unit: Member
    within: Group = "grid"
    lanes: int = 32
    at_once: int = 1
    registers: int = 0
