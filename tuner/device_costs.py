"""What a schedule costs on a GPU by the static model: how long its threads wait, not how much they compute.

Sparse kernels wait for memory, and a GPU hides the waits behind the many warps that it holds at once. The units of a kernel are the
threads, warps or blocks that get the iterations of a loop. They run in turns, as many at once as the GPU holds. Each finds its share of the
work, waits for its first loads, and then takes the loops inside in steps, one iteration a lane. A kernel takes no less than its longest
unit, and no less than moving its bytes. ``Iterations`` counts loops; the constants were fitted to races on an H200.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..compiler.concrete.nodes import Assign, Forall, LoopTag, Program
from ..compiler.errors import ScheduleError
from ..compiler.frozen import frozen
from ..compiler.notation.nodes import accesses
from ..compiler.schedule.addresses import Address, frames
from ..compiler.schedule.apply import apply_schedule
from ..compiler.space.candidates import Candidate
from .features import operand_features
from .iterations import Iterations
from .parameters import Settled
from .problem import Problem

_WIDE = 16
"""Iterations of an innermost loop of known length up to which it is unrolled."""
WARP = 32


@frozen
class Device:
    """A GPU as the model knows it: times in nanoseconds.

    Attributes:
        processors: multiprocessors.
        threads: that each of them holds at once.
        blocks: that each of them holds at once.
        launch: time of a kernel that does nothing.
        begin: time until a thread or a warp has its first operands.
        block: the same for a block, whose warps begin together.
        step: time of one iteration that waits for its operands while other loads are in flight.
        together: n iterations whose loads are in flight together are faster by n to this power.
        search: time of one step of the binary search for the begin of a share of positions.
        atomic: time of an atomic update of a result.
        carried: time of the kernels that add up the rows which several units share.
        byte: bytes that memory moves in a nanosecond.
        near: bytes that the second-level cache moves in a nanosecond.
        sector: bytes that are loaded where one is asked for.
    """

    processors: int = 132
    threads: int = 2048
    blocks: int = 32
    launch: float = 7000.0
    begin: float = 1100.0
    block: float = 4000.0
    step: float = 90.0
    together: float = 0.3
    search: float = 300.0
    atomic: float = 100.0
    carried: float = 60_000.0
    byte: float = 3500.0
    near: float = 3900.0
    sector: int = 32


USUAL = Device()


def device_cost(problem: Problem, program: Program, sources: Mapping[str, str], device: Device = USUAL) -> float:
    """Return about how many nanoseconds a program takes on a GPU.

    Args:
        problem: gives the operands.
        program: a scheduled program of its expression.
        sources: the user's name of every operand in the program.
    """
    return _OnDevice(problem, program, sources, device).total()


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


@frozen
class _Loop:
    """A loop around an assignment.

    Attributes:
        tag: what takes its iterations.
        length: iterations on average.
        longest: iterations at most.
        after: how often its body runs.
        is_share: whether iterations are shares of stored positions.
        together: iterations whose loads are in flight at a time.
    """

    tag: LoopTag
    length: float
    longest: float
    after: float
    is_share: bool
    together: int


class _OnDevice(Iterations):
    """Times of one program on the operands of a problem."""

    def __init__(self, problem: Problem, program: Program, sources: Mapping[str, str], device: Device) -> None:
        super().__init__(problem, program, sources)
        self._device = device

    def total(self) -> float:
        return self._device.launch + math.hypot(sum(self._leaf(*leaf) for leaf in self._leaves), self._moved() / self._device.byte)

    def _moved(self) -> float:
        """Return the bytes of the operands and a dense result."""
        result = self._problem.assignment.target
        written = math.prod(float(self._problem.extents[index]) for index in result.indices)
        return self._problem.nbytes + self._problem.dtype.itemsize * (written if self._formats[result.tensor].is_dense else 0.0)

    def _leaf(self, address: Address, leaf: Assign) -> float:
        """Return the time of an assignment: that of its units, run in turns, but at least that of the longest."""
        loops = self._loops(address, leaf)
        place = next((place for place in reversed(range(len(loops))) if loops[place].tag.unit in ("gpu_block", "gpu_warp")), None)
        if place is None:  # no loop is parallel; by default threads take rows
            place = next((place for place, loop in enumerate(loops) if loop.tag.unit == "gpu_thread"), 0)
        if not loops:
            return self._device.step
        unit, inside, count = loops[place].tag.unit or "gpu_thread", loops[place + 1 :], loops[place].after
        lanes = 1 if unit == "gpu_thread" else loops[place].tag.lanes if unit == "gpu_warp" else self._block(inside)
        begin = (self._device.block if unit == "gpu_block" else self._device.begin) + self._found(loops[: place + 1])
        mean, longest = (self._steps(inside, lanes, most) * self._device.step for most in (False, True))
        extra = self._device.carried if any(loop.tag.race == "temporary" for loop in loops) else 0.0
        turns = max(1.0, count / self._resident(unit, lanes))
        moved = max(self._scattered(loops, unit) / self._device.byte, self._gathered(leaf, loops) / self._device.near)
        return extra + math.hypot(max(turns * (begin + mean), begin + longest), moved)

    def _resident(self, unit: str, lanes: int) -> float:
        """Return how many units of a kind the device holds at once."""
        each = self._device.threads // lanes if unit != "gpu_block" else min(self._device.blocks, self._device.threads // lanes)
        return float(self._device.processors * max(1, each))

    def _block(self, inside: Sequence[_Loop]) -> int:
        """Return the threads of a block that find iterations, in whole warps."""
        length = next((loop.length for loop in inside if loop.tag.unit == "gpu_thread"), 1.0)
        return WARP * max(1, min(8, math.ceil(length / WARP)))

    def _steps(self, inside: Sequence[_Loop], lanes: int, most: bool) -> float:
        """Return in how many steps a unit goes through the loops inside, on average or at most."""
        steps = 1.0
        for loop in inside:
            length = loop.longest if most else loop.length
            own = max(1.0, length / lanes if loop.tag.unit == "gpu_thread" else length)
            steps *= own / min(own, loop.together) ** self._device.together
        return steps

    def _found(self, loops: Sequence[_Loop]) -> float:
        """Return the time in which units search where their shares of positions begin, and write the rows that they share with others."""
        shares = any(loop.is_share for loop in loops)
        parents = max((prefixes[0] for prefixes in self._prefixes.values() if prefixes), default=1.0)
        return (self._device.search * math.log2(max(2.0, parents)) if shares else 0.0) + self._device.atomic * any(
            loop.tag.race == "atomics" for loop in loops
        )

    def _scattered(self, loops: Sequence[_Loop], unit: str) -> float:
        """Return the bytes that are loaded where each thread goes through entries of its own: sectors for a value and its coordinate."""
        alone = unit == "gpu_thread" and len(loops) > 1 and not any(loop.is_share for loop in loops)
        return 2.0 * self._device.sector * loops[-1].after if alone else 0.0

    def _gathered(self, leaf: Assign, loops: Sequence[_Loop]) -> float:
        """Return the bytes that stored coordinates gather from dense operands, mostly out of the second-level cache."""
        stored = {index for access in accesses(leaf.value) if access.tensor in self._prefixes for index in access.indices}
        dense = [access for access in accesses(leaf.value) if access.tensor not in self._prefixes and stored.intersection(access.indices)]
        return loops[-1].after * self._problem.dtype.itemsize * len(dense)

    def _loops(self, address: Address, leaf: Assign) -> list[_Loop]:
        """Return the loops around an assignment, outermost first."""
        around = [frame for frame in frames(self._program.statement, address) if isinstance(frame, Forall)]
        made: list[_Loop] = []
        for place, frame in enumerate(around):
            before, known = made[-1].after if made else 1.0, self._known(frame.index)
            covered = self._originals([each.index for each in around[: place + 1]])
            after = before * known if known is not None else self._points(covered, address, leaf) / self._cut(around[place + 1 :], covered)
            is_share = len(self._graph.originals(frame.index)) > 1
            length = after / before if before else 0.0
            taken = math.prod(loop.length for each, loop in zip(around, made, strict=False) if self._comes_from(frame.index, each.index))
            longest = length if known is not None or is_share else max(length, self._longest(leaf, frame.index) / taken)
            together = frame.tag.unroll or (known if known is not None and known <= _WIDE and place == len(around) - 1 else 1)
            made.append(_Loop(frame.tag, length, longest, after, is_share, together))
        return made

    def _comes_from(self, loop: str, other: str) -> bool:
        """Whether a loop and another, of known length, are parts of one."""
        return self._known(other) is not None and self._graph.originals(loop) == self._graph.originals(other)

    def _known(self, loop: str) -> int | None:
        """Return the iterations of a loop over a part of a variable, where they are known."""
        return None if self._graph.originals(loop) == (loop,) else self._graph.constant_extent(loop, self._problem.extents)

    def _cut(self, inside: Sequence[Forall], covered: set[str]) -> float:
        """Return into how many iterations loops inside cut one iteration of a loop over the same indices."""
        parts = (self._known(each.index) for each in inside if covered.issuperset(self._graph.originals(each.index)))
        return math.prod(float(part) for part in parts if part is not None)

    def _longest(self, leaf: Assign, loop: str) -> float:
        """Return the most entries that an operand stores below one parent in the level that a loop goes through."""
        found = 0.0
        for name in self._prefixes:
            operand, form = self._problem.operand(name), self._formats[name]
            reads = [access for access in accesses(leaf.value) if access.tensor == name]
            if operand is None or not reads:
                continue
            features = dict(operand_features(operand).values)
            for level, mode in enumerate(form.order):
                if reads[0].subscripts[mode].index in self._graph.originals(loop) and f"skew{level}" in features:
                    found = max(found, 2.0 ** (features[f"fibre{level}"] + features[f"skew{level}"]))
        return found
