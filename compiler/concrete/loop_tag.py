"""How one loop is carried out: by which units, in which chunks, unrolled, with which prefetches."""

from __future__ import annotations

from ..frozen import frozen
from ..notation.nodes import Access
from ..units import LANES, REGISTERS, UNITS, Member

FAR_AHEAD = 1024
"""Distance of a prefetch, in entries, from which on it goes to the second level of cache. The first level can wait
for a few lines only. Lines from memory would occupy it for long, and what the loop gathers would wait."""


PRIVATE = ("temporary", "parallel_reduction")
"""Race strategies by which each thread has sums of its own: they keep apart the iterations of their own loop only."""


@frozen
class LoopTag:
    """How one loop is carried out; what is None keeps its default.

    Attributes:
        unit: cpu_thread, cpu_vector, gpu_block, gpu_warp, gpu_thread.
        race: no_races, ignore_races, atomics, temporary, parallel_reduction.
        chunking: static, dynamic or guided, as in OpenMP, where ``chunk`` counts the iterations of a chunk; "lanes", where it counts the
            lanes of a warp; or "registers", where it is the most registers of a thread.
        unroll: unroll factor.
        merge: two_finger, gallop, locate or bitmap: how sparse operands meet in this loop.
        prefetch: (operand, iterations ahead) pairs; see ``said_of`` for what names an operand.
        routine: gemm, gemv, ger, axpy or dot of BLAS, which does this loop and those in it.
    """

    unit: str | None = None
    race: str | None = None
    chunking: str | None = None
    chunk: int | None = None
    unroll: int | None = None
    merge: str | None = None
    prefetch: tuple[tuple[Access, int], ...] = ()
    routine: str | None = None

    @property
    def is_dealt(self) -> bool:
        """Whether iterations are distributed: to threads of the processor, or to blocks, warps or threads of a GPU."""
        return self.unit is not None and not UNITS[self.unit].is_vector

    @property
    def is_vector(self) -> bool:
        """Whether iterations become lanes of vectors."""
        return self.unit is not None and UNITS[self.unit].is_vector

    @property
    def is_threaded(self) -> bool:
        """Whether iterations are distributed to threads of the processor."""
        return self.unit is not None and UNITS[self.unit].is_thread

    @property
    def keeps_sums(self) -> bool:
        """Whether by its race strategy each thread has sums of its own, which are added up behind the loop."""
        return self.race in PRIVATE

    @property
    def member(self) -> Member | None:
        """The group inside which a GPU distributes iterations; None where it does not."""
        return None if self.unit is None else UNITS[self.unit].member

    @property
    def lanes(self) -> int:
        """How many lanes a warp has to which iterations are distributed."""
        return self.chunk if self.chunking == LANES and self.chunk is not None else WARP_LANES[-1]

    @property
    def registers(self) -> int | None:
        """How many registers each thread of the loop has at most; None: as many as the compiler gives it."""
        return self.chunk if self.chunking == REGISTERS else None

    @property
    def is_on_gpu(self) -> bool:
        """Whether units of a GPU take the iterations."""
        return self.member is not None


PLAIN = LoopTag()

WARP_LANES = (2, 4, 8, 16, 32)
"""Lanes that a warp of a GPU may have: all, or a part that works on iterations of its own."""

THREAD_REGISTERS = range(16, 256)
"""Registers that a thread of a GPU may have at most."""
