"""The schedule space of an expression: an object that counts, lists, samples and recognizes schedules (section 6).

A schedule here is structure and protocols: an algebraic form, a where grouping, a forall nesting, and step or locate for
every mode of every sparse read. Only counts are stored; the canonical order is that of ``Grammar``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain

from ..concrete.nodes import Program
from ..format import Format
from ..frozen import frozen
from ..levels.affine import POINT
from ..notation.nodes import Assignment, accesses
from ..views import View
from .forms import Form, rewritings, unwatched
from .grammar import Alternative, Derivation, Grammar
from .groupings import groupings
from .layout import Layout, layout_of
from .naming import build_program
from .nestings import Loop, Nestings, Scope
from .recognise import program_key, recognised
from .statements import Grouping, Statements


@frozen
class Rules:
    """Rules that say which schedules belong to the space.

    Attributes:
        depth: "minimum" keeps the schedules of the least maximum nesting depth (section 6.4), a number keeps those of at most
        that depth, None all. Deeper nests can be faster since their workspaces are smaller, so the default keeps them.
        workspace_modes: workspaces have at most this many modes; None: any number.
        protocols: whether protocols are part of a schedule.
        paper_operators: count ``w = e`` and ``w += e`` as two schedules where they are one program, as the paper does.
        accumulators: workspaces may also hold all that is assigned to the result.
    """

    depth: int | str | None = None
    workspace_modes: int | None = None
    protocols: bool = True
    paper_operators: bool = False
    accumulators: bool = False


PIGEON = Rules(depth="minimum", paper_operators=True)
"""The space of Ahrens et al., Figure 6."""


@frozen
class _Whole:
    """The symbol of the whole space."""


@frozen(eq=False)
class Member:
    """A program of a space, given by a derivation; ``number`` is that of its grouping in the space."""

    number: int
    nestings: Nestings
    derivation: Derivation
    top: Scope
    paper_operators: bool = False

    @cached_property
    def layout(self) -> Layout:
        """The program without names."""
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
        watch: called again and again while the space is worked on; it may raise to end that.
    """

    def __init__(
        self,
        assignment: Assignment,
        formats: Mapping[str, Format],
        rules: Rules | None = None,
        watch: Callable[[], None] = unwatched,
    ) -> None:
        self.assignment = assignment
        self._watch = watch
        self.rules = rules or Rules()
        self.formats = dict(formats)
        self.sparse = frozenset(name for name, form in formats.items() if not form.is_dense and name != assignment.target.tensor)
        appearing = (assignment.target, *accesses(assignment.value))
        self.loops = tuple(dict.fromkeys(name for access in appearing for name in access.indices))
        self.grammar: Grammar[_Whole | Scope] = Grammar(self._alternatives)

    @cached_property
    def nestings(self) -> Nestings:
        """The loop nests of all groupings."""
        table = Statements(self.assignment.target, self.loops)
        rules = self.rules
        return Nestings(table, self.sparse, rules.paper_operators, rules.workspace_modes, rules.protocols, self._watch)

    @property
    def _gathered(self) -> tuple[str, ...]:
        """The operands that may be put together before they are multiplied: stored ones with compound subscripts, in which loops
        would search for the entries of a window repeatedly."""
        views = {name: form for name, form in self.formats.items() if name in self.sparse and isinstance(form, View)}
        return tuple(name for name, form in views.items() if not form.stored.is_dense and POINT not in form.stored.levels)

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """The ways to write the right-hand side."""
        return rewritings(self.assignment, self._watch)

    @cached_property
    def groupings(self) -> tuple[Grouping, ...]:
        """The groupings of every form."""
        table, rules, gathered = self.nestings.table, self.rules, self._gathered
        found = (groupings(table, form, rules.paper_operators, self._watch, rules.accumulators, gathered) for form in self.forms)
        return tuple(chain.from_iterable(found))

    @cached_property
    def depth(self) -> int | None:
        """The bound on the nesting depth; None: none."""
        if self.rules.depth == "minimum":
            shallowest = _Shallowest(self.nestings)
            return min(shallowest.depth(self.nestings.top(grouping)) for grouping in self.groupings)
        return self.rules.depth if isinstance(self.rules.depth, int) else None

    def top(self, grouping: int) -> Scope:
        """Return the scope of the programs of a grouping, given by number."""
        return self.nestings.top(self.groupings[grouping], self.depth)

    def _alternatives(self, symbol: _Whole | Scope) -> Sequence[Alternative[_Whole | Scope]]:
        if isinstance(symbol, Scope):
            return self.nestings.alternatives(symbol)
        return [Alternative(number, (self.top(number),)) for number in range(len(self.groupings))]

    def __len__(self) -> int:
        return self.count

    @property
    def count(self) -> int:
        """How many schedules there are; nothing is listed."""
        return self.grammar.count(_Whole())

    @property
    def stages(self) -> tuple[tuple[str, Callable[[], int]], ...]:
        """The stages, in order, each with the number of ways to decide it and those before it; nothing is listed."""
        found = (
            ("rewrites", lambda: len(self.forms)),
            ("groupings", lambda: len(self.groupings)),
            ("nestings", lambda: self.grammar.shapes(_Whole())),
        )
        return (*found, ("protocols", lambda: self.count)) if self.rules.protocols else found

    def member(self, rank: int) -> Member:
        """Return the schedule at a place of the canonical order; raises IndexError outside ``0 <= rank < count``."""
        return self._member(self.grammar.derivation(_Whole(), rank))

    def __iter__(self) -> Iterator[Member]:
        """Yield every schedule once, in canonical order."""
        return map(self._member, self.grammar.derivations(_Whole()))

    def sample(self, count: int, seed: int = 0) -> list[Member]:
        """Return schedules drawn uniformly, with replacement."""
        source = random.Random(seed)
        return [self.member(source.randrange(self.count)) for _ in range(count)] if self.count else []

    def rank(self, member: Member | Program) -> int | None:
        """Return the place of a member or program in the canonical order, or None if it is not in this space."""
        program = member if isinstance(member, Program) else member.program
        found = self.find(program)
        return None if found is None else self.grammar.rank(_Whole(), found.derivation)

    def __contains__(self, member: object) -> bool:
        return isinstance(member, Member | Program) and self.rank(member) is not None

    def find(self, program: Program) -> Member | None:
        """Return the member of this space that a program is, apart from the names of workspaces; None if there is none."""
        key = program_key(program, self.assignment.target)
        if key is None:
            return None
        for number, grouping in enumerate(self.groupings):
            if self.nestings.table.key(grouping) != key:
                continue
            top = self.top(number)
            inner = recognised(self.nestings, top, program, lambda tree, number=number: self.wrapped(number, tree).program)
            if inner is not None and self.grammar.rank(top, inner) is not None:
                return self.wrapped(number, inner)
        return None

    def wrapped(self, number: int, derivation: Derivation) -> Member:
        """Return the member that a derivation of the loop nests of one grouping stands for."""
        return self._member(Derivation(number, 0, (derivation,)))

    def _member(self, derivation: Derivation) -> Member:
        assert isinstance(derivation.label, int)
        number = derivation.label
        return Member(number, self.nestings, derivation, self.top(number), self.rules.paper_operators)


class _Shallowest:
    """The least maximum nesting depth of the nests of a scope."""

    def __init__(self, nestings: Nestings) -> None:
        self._nestings = nestings
        self._known: dict[Scope, int] = {}

    def depth(self, scope: Scope) -> int:
        known = self._known.get(scope)
        if known is None:
            nowhere = len(self._nestings.table.loops) + 1
            known = self._known[scope] = min(map(self._of, self._nestings.alternatives(scope)), default=nowhere)
        return known

    def _of(self, option: Alternative[Scope]) -> int:
        return max(map(self.depth, option.parts), default=0) + isinstance(option.label, Loop)
