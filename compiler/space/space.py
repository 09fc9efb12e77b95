"""The schedule space of an expression: an object that counts, lists, samples and recognizes schedules (section 6).

A schedule here is structure and protocols: an algebraic form, a where grouping, a forall nesting, and step or locate for
every mode of every sparse read. Nothing is stored but counts; the canonical order is that of ``Grammar``.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ..concrete.nodes import Program
from ..format import Format
from ..notation.nodes import Assignment, accesses
from .forms import rewritings
from .grammar import Alternative, Derivation, Grammar
from .groupings import Grouping, groupings
from .layout import Layout, layout_of
from .naming import build_program
from .nestings import Loop, Nestings, Scope
from .recognise import program_key, recognised


@dataclass(frozen=True)
class Rules:
    """What belongs to the space.

    Attributes:
        depth: "minimum" keeps the schedules of the least maximum nesting depth (section 6.4), a number those of at most
            that depth, None all. Deeper nests can win by smaller workspaces, so the default keeps them.
        workspace_modes: workspaces have at most this many modes; None: any number.
        protocols: whether protocols are part of a schedule.
        paper_operators: count ``w = e`` and ``w += e`` as two schedules where they are one program, as the paper does.
    """

    depth: int | str | None = None
    workspace_modes: int | None = None
    protocols: bool = True
    paper_operators: bool = False


PIGEON = Rules(depth="minimum", paper_operators=True)
"""The space of Ahrens et al., Figure 6."""


@dataclass(frozen=True)
class _Whole:
    """The symbol of the whole space."""


@dataclass(frozen=True)
class _Nested:
    """A scope in the nests of one grouping."""

    grouping: int
    scope: Scope


@dataclass(frozen=True, eq=False)
class Schedule:
    """A schedule of a space; ``number`` is that of its grouping among the space's ``nestings``."""

    number: int
    nestings: Nestings
    derivation: Derivation
    top: Scope
    paper_operators: bool = False

    @cached_property
    def layout(self) -> Layout:
        return layout_of(self.nestings, self.top, self.derivation.parts[0])

    @cached_property
    def program(self) -> Program:
        """The schedule in concrete index notation with protocols."""
        return build_program(self.nestings, self.layout, self.paper_operators)


class ScheduleSpace:
    """All schedules of an assignment.

    Args:
        assignment: the checked expression.
        formats: a format for every tensor; those that are all dense have no protocols to choose.
        rules: what belongs to the space.
    """

    def __init__(self, assignment: Assignment, formats: Mapping[str, Format], rules: Rules | None = None) -> None:
        self.assignment = assignment
        self.rules = rules or Rules()
        self.formats = dict(formats)
        self.sparse = frozenset(name for name, form in formats.items() if not form.is_dense and name != assignment.target.tensor)
        appearing = (assignment.target, *accesses(assignment.value))
        self.loops = tuple(dict.fromkeys(name for access in appearing for name in access.indices))
        self.grammar: Grammar[_Whole | _Nested] = Grammar(self._alternatives)

    @cached_property
    def nestings(self) -> tuple[Nestings, ...]:
        """The loop nests of every form and grouping."""
        paper = self.rules.paper_operators
        found = [
            grouping for form in rewritings(self.assignment) for grouping in groupings(self.assignment, form, self.loops, paper)
        ]
        return tuple(
            Nestings(grouping, self.sparse, paper, self.rules.workspace_modes, self.rules.protocols) for grouping in found
        )

    @cached_property
    def depth(self) -> int | None:
        """The bound on the nesting depth; None: none."""
        if self.rules.depth == "minimum":
            shallowest = _Shallowest()
            return min(shallowest.depth(nestings, nestings.top()) for nestings in self.nestings)
        return self.rules.depth if isinstance(self.rules.depth, int) else None

    def top(self, grouping: int) -> Scope:
        return self.nestings[grouping].top(self.depth)

    def _alternatives(self, symbol: _Whole | _Nested) -> list[Alternative[_Whole | _Nested]]:
        if isinstance(symbol, _Nested):
            options = self.nestings[symbol.grouping].alternatives(symbol.scope)
            return [
                Alternative(option.label, tuple(_Nested(symbol.grouping, part) for part in option.parts), option.bits)
                for option in options
            ]
        return [Alternative(number, (_Nested(number, self.top(number)),)) for number in range(len(self.nestings))]

    def __len__(self) -> int:
        return self.count

    @property
    def count(self) -> int:
        """How many schedules there are; nothing is listed."""
        return self.grammar.count(_Whole())

    def schedule(self, rank: int) -> Schedule:
        """Return the schedule at a place of the canonical order; raises IndexError outside ``0 <= rank < count``."""
        return self._schedule(self.grammar.derivation(_Whole(), rank))

    def __iter__(self) -> Iterator[Schedule]:
        """Yield every schedule once, in canonical order, as they are asked for."""
        return map(self._schedule, self.grammar.derivations(_Whole()))

    def sample(self, count: int, seed: int = 0) -> list[Schedule]:
        """Return schedules drawn uniformly, with replacement."""
        source = random.Random(seed)
        return [self.schedule(source.randrange(self.count)) for _ in range(count)] if self.count else []

    def rank(self, schedule: Schedule | Program) -> int | None:
        """Return the place of a schedule or program in the canonical order, or None if it is not in this space."""
        program = schedule if isinstance(schedule, Program) else schedule.program
        found = self.find(program)
        return None if found is None else self.grammar.rank(_Whole(), found.derivation)

    def __contains__(self, schedule: object) -> bool:
        return isinstance(schedule, Schedule | Program) and self.rank(schedule) is not None

    def find(self, program: Program) -> Schedule | None:
        """Return the schedule of this space that is a program, whatever its workspaces are called; None if there is none."""
        key = program_key(program, self.assignment.target)
        if key is None:
            return None
        for number, nestings in enumerate(self.nestings):
            if nestings.grouping.key() != key:
                continue
            inner = recognised(nestings, self.top(number), program, lambda tree, number=number: self.wrapped(number, tree).program)
            if inner is not None and self.grammar.rank(_Nested(number, self.top(number)), inner) is not None:
                return self.wrapped(number, inner)
        return None

    def wrapped(self, number: int, derivation: Derivation) -> Schedule:
        """Return the schedule that a derivation of the loop nests of one grouping stands for."""
        return self._schedule(Derivation(number, 0, (derivation,)))

    def _schedule(self, derivation: Derivation) -> Schedule:
        assert isinstance(derivation.label, int)
        number = derivation.label
        return Schedule(number, self.nestings[number], derivation, self.top(number), self.rules.paper_operators)


class _Shallowest:
    """The least maximum nesting depth of the nests of a scope."""

    def __init__(self) -> None:
        self._known: dict[tuple[Grouping, Scope], int] = {}

    def depth(self, nestings: Nestings, scope: Scope) -> int:
        key = (nestings.grouping, scope)
        if key not in self._known:
            self._known[key] = min(
                (self._of(nestings, option) for option in nestings.alternatives(scope)), default=len(nestings.grouping.loops) + 1
            )
        return self._known[key]

    def _of(self, nestings: Nestings, option: Alternative[Scope]) -> int:
        parts = [self.depth(nestings, part) for part in option.parts]
        return max(parts, default=0) + isinstance(option.label, Loop)
