"""The space of schedule templates: partitions of the iteration space, orders of its loops, loops on parallel units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import comb, perm

from ..concrete.apart import apart
from ..concrete.nodes import Program
from ..concrete.provenance import Provenance
from ..errors import ScheduleError
from ..format import LevelKind
from ..notation.nodes import Access
from ..schedule.addresses import chain
from ..schedule.apply import apply_schedule
from ..schedule.context import Context
from ..schedule.dependence import graph_of
from ..schedule.schedule import Schedule
from .situation import Situation, result_leaf

UNITS = {"cpu": ("cpu_thread", "cpu_vector"), "cuda": ("gpu_block", "gpu_warp", "gpu_thread")}
USUAL_SIZE = 4


@dataclass(frozen=True)
class Partition:
    """Stage one: directives that make the loops, and the loops in the order in which they come out.

    ``program`` is None where a directive is refused.
    """

    steps: tuple[str, ...]
    loops: tuple[str, ...]
    program: Program | None
    situation: Situation

    @property
    def graph(self) -> Provenance:
        return graph_of(self.program.relations) if self.program is not None else Provenance()

    @cached_property
    def context(self) -> Context:
        return Context(self.situation.formats, self.situation.extents)

    @cached_property
    def compressed(self) -> frozenset[str]:
        """The indices whose coordinates an operand stores."""
        return frozenset(
            name
            for access in self.situation.stored(self.situation.program)
            for kind, names in self.levels(access)
            for name in names
            if kind is not LevelKind.DENSE
        )

    def levels(self, access: Access) -> tuple[tuple[LevelKind, tuple[str, ...]], ...]:
        """Return kind and indices of the levels of an access, outermost first."""
        return self.context.levels(access)

    def is_constant(self, loop: str) -> bool:
        """Return whether a loop has a constant number of iterations, whatever the input."""
        return self.graph.constant_extent(loop) is not None

    def is_stored(self, loop: str) -> bool:
        """Return whether the length of a loop depends on what is stored: not for pieces of constant length, nor dense loops."""
        return not self.is_constant(loop) and bool(self.compressed.intersection(self.graph.originals(loop)))


@dataclass(frozen=True)
class Template:
    """A partition, the order of its loops, outermost first, and the loops that parallel units run."""

    partition: Partition
    order: tuple[str, ...]
    units: tuple[tuple[str, str], ...] = ()

    @property
    def schedule(self) -> Schedule:
        """The schedule with every split size at 4."""
        return Schedule(self.filled({}))

    @property
    def text(self) -> str:
        """The directives, with ``{loop}`` for the size of the tiles of a loop."""
        steps = list(self.partition.steps)
        if self.order != self.partition.loops:
            steps.append(f"reorder({', '.join(self.order)})")
        steps += [f"parallelize({loop}, {unit}, {self._race(loop, unit)})" for loop, unit in self.units]
        return "; ".join(steps)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the open split sizes."""
        return tuple(step.split("{")[1].split("}")[0] for step in self.partition.steps if "{" in step)

    def filled(self, sizes: Mapping[str, int]) -> str:
        """Return the text with split sizes; 4 where none is given."""
        text = self.text
        for name in self.parameters:
            text = text.replace(f"{{{name}}}", str(sizes.get(name, USUAL_SIZE)))
        return text

    def _race(self, loop: str, unit: str) -> str:
        assert self.partition.program is not None
        indices, around = result_leaf(self.partition.program)[1].target.indices, self.order[: self.order.index(loop)]
        if apart(indices, loop, around, self.partition.graph, self.partition.context.format_of):
            return "no_races"
        return "parallel_reduction" if unit == "cpu_vector" else "atomics"


# Stage one


def partitions(situation: Situation, levels: int = 1) -> Iterator[Partition]:
    """Yield every partition, those that the language refuses included."""
    loops = chain(situation.program.statement, ())
    for groups in _compositions(loops):
        collapsing, heads = _collapsed(groups)
        options = [tuple(_treatments(head, situation, levels)) for head in heads]
        for choice in product(*options):
            steps = (*collapsing, *(step for treatment in choice for step in treatment[0]))
            made = tuple(loop for treatment in choice for loop in treatment[1])
            yield Partition(steps, made, _applied(steps, situation), situation)


def _compositions(loops: Sequence[str]) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Yield every way to cut loops into runs."""
    if not loops:
        yield ()
    for length in range(1, len(loops) + 1):
        for rest in _compositions(loops[length:]):
            yield (tuple(loops[:length]), *rest)


def _collapsed(groups: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    steps, heads = [], []
    for group in groups:
        head = group[0]
        for loop in group[1:]:
            fused = f"{head}{loop}_"
            steps.append(f"collapse({head}, {loop}, {fused})")
            head = fused
        heads.append(head)
    return tuple(steps), tuple(heads)


def _treatments(loop: str, situation: Situation, levels: int) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield (directives, resulting loops) for one loop: as it is, split, by positions, split by positions, and back."""
    yield from _splits((), loop, levels)
    for access in situation.stored(situation.program):
        position = f"{loop}p"
        steps = (f"pos({loop}, {position}, {access.tensor})",)
        for made in _splits(steps, position, levels):
            yield made
            if len(made[1]) == 2:
                yield (*made[0], f"coord({made[1][1]}, {loop}c)"), (made[1][0], f"{loop}c")


def _splits(steps: tuple[str, ...], loop: str, levels: int) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    yield steps, (loop,)
    made: tuple[str, ...] = ()
    for _ in range(levels):
        outer, inner = f"{loop}0", f"{loop}1"
        steps = (*steps, f"split({loop}, {outer}, {inner}, {{{loop}}})")
        made = (*made, outer)
        yield steps, (*made, inner)
        loop = inner


def _applied(steps: Sequence[str], situation: Situation) -> Program | None:
    text = "; ".join(steps)
    for step in steps:
        if "{" in step:
            name = step.split("{")[1].split("}")[0]
            text = text.replace(f"{{{name}}}", str(USUAL_SIZE))
    try:
        return apply_schedule(situation.program, text, situation.formats, situation.extents)
    except ScheduleError:
        return None


# Stage two

Allowed = Callable[[frozenset[str], str], bool]
"""Whether a loop may come next, given the loops that stand outside it."""


def count_orders(loops: Sequence[str], rules: Sequence[Allowed]) -> int:
    """Return the number of orders that the rules allow, by dynamic programming over sets of placed loops."""
    ways: dict[frozenset[str], int] = {frozenset(): 1}
    for _ in loops:
        further: dict[frozenset[str], int] = {}
        for placed, count in ways.items():
            for loop in loops:
                if loop not in placed and all(rule(placed, loop) for rule in rules):
                    further[placed | {loop}] = further.get(placed | {loop}, 0) + count
        ways = further
    return sum(ways.values())


def orders(loops: Sequence[str], rules: Sequence[Allowed], placed: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the orders that the rules allow, in the order of ``loops``."""
    if len(placed) == len(loops):
        yield placed
        return
    here = frozenset(placed)
    for loop in loops:
        if loop not in here and all(rule(here, loop) for rule in rules):
            yield from orders(loops, rules, (*placed, loop))


def assignments_of_units(order: Sequence[str], target: str) -> Iterator[tuple[tuple[str, str], ...]]:
    """Yield loops for some of the units, each unit on one loop, outer units outside inner ones."""
    for used in range(len(UNITS[target]) + 1):
        for units in combinations(UNITS[target], used):
            for places in combinations(range(len(order)), used):
                yield tuple((order[place], unit) for place, unit in zip(places, units, strict=True))


def count_units(loops: int, target: str, *, nested: bool) -> int:
    """Return how many ways there are to give units to loops, in any nesting, or outer units outside inner ones."""
    count = len(UNITS[target])
    return sum(comb(count, used) * (comb(loops, used) if nested else perm(loops, used)) for used in range(count + 1))
