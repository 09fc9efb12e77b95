"""Loop transformations: partitions of the iteration space, orders of its loops, loops on parallel units."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import combinations, product
from math import comb, perm, prod

from ..concrete.apart import apart
from ..concrete.lattice import stored_operands
from ..concrete.nodes import Program
from ..concrete.provenance import Provenance
from ..frozen import frozen
from ..levels import LevelKind
from ..notation.nodes import Access
from ..schedule import directives as d
from ..schedule.addresses import chain
from ..schedule.context import Context
from ..schedule.dependence import graph_of
from ..schedule.iteration import Iteration
from ..units import HARDWARE, UNITS
from .situation import Situation, further, result_leaf
from .template import Hole, Part, Template, opened

SIZES = (4, *(2**power for power in range(1, 15) if power != 2))
"""Sizes of tiles, the usual one first."""


@frozen
class Partition:
    """Stage one: directives that make the loops, and these loops in order.

    ``program`` is None where a directive is refused.
    """

    steps: tuple[Part, ...]
    loops: tuple[str, ...]
    program: Program | None
    situation: Situation

    @cached_property
    def graph(self) -> Provenance:
        """How the loops follow from the indices; without relations where a directive is refused."""
        return graph_of(self.program.relations) if self.program is not None else Provenance()

    @cached_property
    def context(self) -> Context:
        """The formats and extents for which the directives are applied."""
        return Context(self.situation.formats, self.situation.extents)

    @cached_property
    def compressed(self) -> frozenset[str]:
        """The indices whose coordinates an operand stores."""
        return frozenset(
            name
            for access in self.situation.stored(self.situation.program)
            for kind, names in self.levels(access)
            for name in names
            if not kind.full
        )

    def levels(self, access: Access) -> tuple[tuple[LevelKind, tuple[str, ...]], ...]:
        """Return kind and indices of the levels of an access, outermost first."""
        return self.context.levels(access)

    def is_constant(self, loop: str) -> bool:
        """Return whether a loop has a constant number of iterations, whatever the input."""
        return self.graph.constant_extent(loop) is not None

    def is_stored(self, loop: str) -> bool:
        """Return whether the length of a loop depends on what is stored; it does not for pieces of constant length and dense loops."""
        return not self.is_constant(loop) and bool(self.compressed.intersection(self.graph.originals(loop)))


    def coiterates(self, around: tuple[str, ...]) -> bool:
        """Return whether several operands meet in the last of some loops, outermost first: it steps through stored coordinates of more
        than one. All ways to give the loops of an order to units ask the same, and so do orders that begin alike."""
        known = self._coiterating.get(around)
        if known is None:
            known = self._coiterating[around] = len(self._visited(around)) > 1
        return known

    @cached_property
    def _coiterating(self) -> dict[tuple[str, ...], bool]:
        return {}

    def _visited(self, around: tuple[str, ...]) -> set[Access | None]:
        """Return the operands through whose stored coordinates or positions the last loop steps; none if it completes no index."""
        assert self.program is not None
        loop, known = around[-1], self.graph.known_after(around)
        completed = tuple(index for index in self.graph.originals(loop) if known.get(index) == len(around) - 1)
        if not completed:
            return set()
        domain = Iteration(self.program, self.context).stepped(self.program.statement, around, completed)
        positions = {self.graph.position_access(loop)} if self.graph.space(loop) == "position" else set[Access | None]()
        return {*stored_operands(domain), *positions}


@frozen
class Transformation:
    """A partition, the order of its loops, outermost first, and the loops that parallel units run."""

    partition: Partition
    order: tuple[str, ...]
    units: tuple[tuple[str, str], ...] = ()

    @cached_property
    def template(self) -> Template:
        """The directives; the sizes of tiles are holes named after the loops."""
        ordered = (d.Reorder(self.order),) if self.order != self.partition.loops else ()
        shared = (d.Parallelize(loop, unit, self._race(loop, unit)) for loop, unit in self.units)
        return Template((*self.partition.steps, *ordered, *shared))

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names of the open sizes of tiles."""
        return tuple(hole.name for hole in self.template.holes)

    @property
    def text(self) -> str:
        """The template for people to read."""
        return self.template.text

    def _race(self, loop: str, unit: str) -> str:
        assert self.partition.program is not None
        leaf, around = result_leaf(self.partition.program)[1], self.order[: self.order.index(loop)]
        if apart(leaf, loop, around, self.partition.graph, self.partition.context.format_of):
            return "no_races"
        return "parallel_reduction" if UNITS[unit].is_vector else "atomics"


# Stage one


def partitions(situation: Situation, levels: int = 1) -> Iterator[Partition]:
    """Yield every partition, those that the language refuses included."""
    for collapsing, options in _grouped(situation, levels):
        for choice in product(*options):
            yield _partition(collapsing, choice, situation)


def drawn_partition(situation: Situation, source: random.Random) -> Partition:
    """Return a partition drawn uniformly, which the language may refuse."""
    groups = list(_grouped(situation, 1))
    ((collapsing, options),) = source.choices(groups, [prod(map(len, options)) for _, options in groups])
    return _partition(collapsing, [source.choice(treatments) for treatments in options], situation)


_Treatment = tuple[tuple[Part, ...], tuple[str, ...]]
"""The directives on one loop, and the loops that it becomes."""


def _grouped(situation: Situation, levels: int) -> Iterator[tuple[tuple[Part, ...], list[tuple[_Treatment, ...]]]]:
    """Yield every way to collapse loops, with the treatments of each resulting loop."""
    for groups in _compositions(chain(situation.program.statement, ())):
        collapsing, heads = _collapsed(groups)
        yield collapsing, [tuple(_treatments(head, situation, levels)) for head in heads]


def _partition(collapsing: tuple[Part, ...], choice: Sequence[_Treatment], situation: Situation) -> Partition:
    steps = (*collapsing, *(step for treatment in choice for step in treatment[0]))
    made = tuple(loop for treatment in choice for loop in treatment[1])
    return Partition(steps, made, further(situation.program, steps, situation), situation)


def _compositions(loops: Sequence[str]) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Yield every way to cut loops into runs."""
    if not loops:
        yield ()
    for length in range(1, len(loops) + 1):
        for rest in _compositions(loops[length:]):
            yield (tuple(loops[:length]), *rest)


def _collapsed(groups: tuple[tuple[str, ...], ...]) -> tuple[tuple[Part, ...], tuple[str, ...]]:
    steps: list[Part] = []
    heads: list[str] = []
    for group in groups:
        head = group[0]
        for loop in group[1:]:
            fused = f"{head}{loop}_"
            steps.append(d.Collapse(head, loop, fused))
            head = fused
        heads.append(head)
    return tuple(steps), tuple(heads)


def _treatments(loop: str, situation: Situation, levels: int) -> Iterator[_Treatment]:
    """Yield (directives, resulting loops) for one loop: as it is, split, by positions, split by positions, and back."""
    yield from _splits((), loop, levels)
    for access in situation.stored(situation.program):
        position = f"{loop}p"
        steps = (d.Pos(loop, position, Access(access.tensor)),)
        for made in _splits(steps, position, levels):
            yield made
            if len(made[1]) == 2:
                yield (*made[0], d.Coord(made[1][1], f"{loop}c")), (made[1][0], f"{loop}c")


def _splits(steps: tuple[Part, ...], loop: str, levels: int) -> Iterator[_Treatment]:
    yield steps, (loop,)
    made: tuple[str, ...] = ()
    for _ in range(levels):
        outer, inner = f"{loop}0", f"{loop}1"
        steps = (*steps, opened(d.Split(loop, outer, inner, SIZES[0]), factor=Hole(loop, SIZES)))
        made = (*made, outer)
        yield steps, (*made, inner)
        loop = inner


# Stage two

def assignments_of_units(
    order: Sequence[str], target: str, allowed: Callable[[str, str], bool] = lambda loop, unit: True
) -> Iterator[tuple[tuple[str, str], ...]]:
    """Yield loops for some of the units, each unit on one loop that it is allowed on, outer units outside inner ones."""
    possible = {unit: [place for place, loop in enumerate(order) if allowed(loop, unit)] for unit in HARDWARE[target].units}
    for used in range(len(possible) + 1):
        for units in combinations(possible, used):
            for places in _ascending([possible[unit] for unit in units], 0):
                yield tuple((order[place], unit) for place, unit in zip(places, units, strict=True))


def _ascending(choices: Sequence[Sequence[int]], least: int) -> Iterator[tuple[int, ...]]:
    """Yield one number of each choice, every one larger than those before it."""
    if not choices:
        yield ()
        return
    for place in choices[0]:
        if place >= least:
            for further in _ascending(choices[1:], place + 1):
                yield place, *further


def count_units(loops: int, target: str, *, nested: bool) -> int:
    """Return how many ways there are to give units to loops, in any nesting, or outer units outside inner ones."""
    count = len(HARDWARE[target].units)
    return sum(comb(count, used) * (comb(loops, used) if nested else perm(loops, used)) for used in range(count + 1))
