"""What runs the iterations of a loop side by side, and which of it targets have.

This is the part of a target (``targets.target``) that schedules, the space and the tuner ask. It is a module of its own, because loading
what compiles for a target takes longer than a lookup.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from .frozen import frozen

Member: TypeAlias = Literal["block", "warp", "thread"]
"""The group inside which a GPU distributes iterations: to its blocks, to the warps of a block, to the threads of a block or warp."""

CHUNKINGS: Final = ("static", "dynamic", "guided")
LANES: Final = "lanes"
"""The word before the number of lanes of a GPU's warp: 32, or fewer, so that several warps share one of the hardware."""
REGISTERS: Final = "registers"
"""The word before the most registers of a GPU's thread: with fewer, more threads run at once."""


@frozen
class Unit:
    """Something that runs iterations of a loop side by side with others of its kind.

    Attributes:
        name: in schedules.
        rank: units stand inside those of smaller ranks only.
        member: the group inside which a GPU distributes iterations; None for units of a processor.
        is_vector: whether iterations become lanes of vectors, so that none are distributed.
        chunkings: the words that may say how iterations are distributed.
    """

    name: str
    rank: int
    member: Member | None = None
    is_vector: bool = False
    chunkings: tuple[str, ...] = ()

    @property
    def is_thread(self) -> bool:
        """Whether threads of a processor run the iterations."""
        return self.member is None and not self.is_vector


UNITS: Final = {
    unit.name: unit
    for unit in (
        Unit("cpu_thread", 0, chunkings=CHUNKINGS),
        Unit("cpu_vector", 1, is_vector=True),
        Unit("gpu_block", 0, "block"),
        Unit("gpu_warp", 1, "warp", chunkings=(LANES,)),
        Unit("gpu_thread", 2, "thread", chunkings=(REGISTERS,)),
    )
}
"""All units, by their names in schedules."""


@frozen
class Hardware:
    """What a target generates code for.

    Attributes:
        target: the name of the target.
        units: the names of its units, outermost first.
        on_device: whether it has memory of its own.
        has_architectures: whether code is generated for one of several architectures, which is named or that of this machine.
    """

    target: str
    units: tuple[str, ...]
    on_device: bool = False
    has_architectures: bool = False

    @property
    def divisions(self) -> int:
        """Most divisions of one loop, as in the papers' schedules: one for each unit to which iterations are distributed; on GPUs into
        blocks, warps, threads and the work of one thread."""
        return sum(not UNITS[unit].is_vector for unit in self.units)


PROCESSOR: Final = Hardware("cpu", ("cpu_thread", "cpu_vector"))
NVIDIA: Final = Hardware("cuda", ("gpu_block", "gpu_warp", "gpu_thread"), on_device=True, has_architectures=True)
HARDWARE: Final = {found.target: found for found in (PROCESSOR, NVIDIA)}
"""What schedules are tuned for, by target."""


def is_processor(target: object) -> bool:
    """Return whether an argument names the target that runs on the processor, for which schedules are tuned."""
    return isinstance(target, str) and target == PROCESSOR.target
