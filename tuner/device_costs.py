"""What a schedule costs on a GPU by the static model: how long its threads wait, not how much they compute.

Sparse kernels wait for memory, and a GPU hides the waits behind the many warps that it holds at once. The units of a kernel are the
threads, warps or blocks that get the iterations of a loop. They run in turns, as many at once as the GPU holds. Each finds its share of the
work, waits for its first loads, and then takes the loops inside in steps, one iteration a lane. A kernel takes no less than its longest
unit, and no less than moving its bytes. ``Iterations`` counts loops. The constants were fitted to races on an H200; ``python -m
sparsetune.tuner.reports.gpu fit INPUT ...`` fits them again, and says what that changes and which of them the races determine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import mul

from ..compiler.concrete.nodes import Program
from ..compiler.errors import ScheduleError
from ..compiler.frozen import frozen
from ..compiler.schedule.apply import apply_schedule
from ..compiler.space.candidates import Candidate
from .device_work import DeviceWork, Work
from .encodings import converted_entries
from .parameters import Settled
from .problem import Problem


@frozen
class Device:
    """A GPU as the model knows it: times in nanoseconds.

    Attributes:
        processors: multiprocessors.
        threads: that each of them holds at once; ``registers`` that these share; ``blocks`` that it holds at once.
        near: bytes of a first-level cache, above which what lanes go through alone is lost from it.
        launch: time of a kernel that does nothing.
        thread, warp, block: time until one has its first operands.
        search: time of a step of the search for the first row of a share.
        wait: time of one stored entry of a lane that waits for its operands.
        together: entries whose loads are under way n at a time wait 1 / n**together as long.
        iteration: time of an iteration of a lane, or of a tile of elements in registers.
        tail: further turns at the end of a kernel, since units do not all end together.
        row: time of looking whether a row ends.
        keep: time in which a lane adds an element to what its unit keeps of rows that several units share.
        reduction: time of a step in which lanes combine sums.
        insertion: time in which a lane adds an entry to a table.
        sector, instruction, shuffle: time of one of these, the device being busy with as many as it can.
        atomic, key: the same of an update of a result, and of a table.
        near_byte, byte: the same of a byte from the second-level cache, and from memory.
        carried: time of the kernels that add up the rows which several units share.
        conversion: time in which the processor converts a stored entry, and a copy brings it to the device.
    """

    processors: int = 132
    threads: int = 2048
    registers: int = 65536
    blocks: int = 32
    near: float = 150_000.0
    launch: float = 6921.0
    thread: float = 921.0
    warp: float = 768.9
    block: float = 666.1
    search: float = 136.8
    wait: float = 141.2
    together: float = 0.85
    iteration: float = 56.37
    tail: float = 0.04578
    row: float = 37.06
    keep: float = 1702.0
    reduction: float = 14.67
    insertion: float = 7140.0
    sector: float = 0.0009956
    instruction: float = 0.002707
    shuffle: float = 0.004318
    atomic: float = 0.009727
    key: float = 0.01877
    near_byte: float = 4.864e-05
    byte: float = 6.057e-05
    carried: float = 12950.0
    conversion: float = 15.0


USUAL = Device()
_FEWEST = 32
"""Registers of a thread up to which a multiprocessor holds as many threads as it can."""


@frozen
class Counted:
    """What a program asks of a GPU, whatever that GPU takes for it.

    Attributes:
        works: of its assignments in loops.
        moved: bytes of the operands and a dense result.
        converted: stored entries that the processor converts.
    """

    works: tuple[Work, ...]
    moved: float
    converted: float


def device_cost(problem: Problem, program: Program, sources: Mapping[str, str], device: Device = USUAL) -> float:
    """Return about how many nanoseconds a program takes on a GPU; see ``counted`` for the arguments."""
    return nanoseconds(counted(problem, program, sources), device)


def counted(problem: Problem, program: Program, sources: Mapping[str, str]) -> Counted:
    """Return what a program asks of a GPU.

    Args:
        problem: gives the operands.
        program: a scheduled program of its expression.
        sources: the user's name of every operand in the program.
    """
    works = tuple(DeviceWork(problem, program, sources).works())
    return Counted(works, _moved(problem), converted_entries(problem, program, sources))


def nanoseconds(counted: Counted, device: Device = USUAL) -> float:
    """Return about how long a GPU takes for what a program asks of it."""
    works = counted.works
    again = [_lost(work, device) for work in works]
    issued = sum(device.sector * work.sectors + device.instruction * work.instructions + device.shuffle * work.shuffles for work in works)
    near = sum(work.near + work.own_near * lost for work, lost in zip(works, again, strict=True))
    updates = sum(device.atomic * work.atomics + device.key * work.keys for work in works)
    far = counted.moved + sum(work.far + work.own * lost for work, lost in zip(works, again, strict=True))
    carried = device.carried if any(work.is_carried for work in works) else 0.0
    waiting = _waiting(works, device) if works else device.wait
    converted = device.conversion * counted.converted
    return device.launch + converted + carried + waiting + issued + updates + device.near_byte * near + device.byte * far


def _moved(problem: Problem) -> float:
    """Return the bytes of the operands and a dense result."""
    result = problem.assignment.target
    written = math.prod(float(problem.extents[index]) for index in result.indices)
    return problem.nbytes + problem.dtype.itemsize * (written if problem.formats[result.tensor].is_dense else 0.0)


def _held(work: Work, device: Device) -> float:
    """Return how many lanes a multiprocessor holds at once."""
    return min(float(device.threads), device.registers / max(_FEWEST, work.registers or _FEWEST))


def _lost(work: Work, device: Device) -> float:
    """Return the share of what lanes go through alone that leaves the first-level cache before all of it was used."""
    filled = min(_held(work, device), work.units * work.lanes / device.processors) * work.streams / device.near
    return filled**3 / (1 + filled**3)


def _waiting(works: Sequence[Work], device: Device) -> float:
    """Return how long units wait, which run in turns, at least as long as the longest of them.

    What one assignment makes for another is computed by the same units, which begin once and do one after the other.
    """
    turns, begins, each = ([*numbers] for numbers in zip(*(_turns(work, device) for work in works), strict=True))
    usual = max(map(mul, turns, begins)) + sum(map(mul, turns, each))
    longest = max(begins) + sum(work.longest * own for work, own in zip(works, each, strict=True))
    return max(usual, longest)


def _turns(work: Work, device: Device) -> tuple[float, float, float]:
    """Return how many turns units take, and how long each of them begins and works."""
    units = _held(work, device) / work.lanes
    at_once = device.processors * (min(float(device.blocks), units) if work.unit == "block" else units)
    begin = {"thread": device.thread, "warp": device.warp, "block": device.block}[work.unit]
    begin += device.search * work.searches
    loads = work.entries ** (1 - device.together) * max(work.waits, 1e-9) ** device.together
    each = (
        device.wait * loads + device.iteration * work.iterations / work.tile + device.row * work.tracked + device.keep * work.kept
        + device.reduction * work.reductions + device.insertion * work.inserted
    )  # fmt: skip
    turns = work.units / at_once
    return turns + device.tail * (1 - 1 / turns) if turns > 1 else 1.0, begin, each


def settled_on_device(problem: Problem, candidate: Candidate, cost: float) -> Settled:
    """Return a candidate with the numbers filled in that are expected to be fastest, one after the other.

    Args:
        cost: with usual numbers.
    """
    found, values = problem.concretized(), dict(candidate.template.usual)
    least = cost
    for hole in candidate.template.holes:
        for choice in hole.choices:
            schedule = candidate.template.fill({**values, hole.name: choice})
            try:
                program = apply_schedule(found.program, schedule, found.formats, problem.constants)
            except ScheduleError:
                continue
            expected = device_cost(problem, program, found.sources)
            if expected < least:
                least, values[hole.name] = expected, choice
    return Settled(candidate.template.fill(values), least / cost)


