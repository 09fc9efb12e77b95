"""The loop nest forests of an expression as schedules: counted, listed, sampled, recognised."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property

from ...concrete.concretize import Concretized, concretize
from ...concrete.nodes import Program
from ...errors import ScheduleError
from ...format import Format
from ...notation.nodes import Assignment
from ...schedule.apply import apply_schedule
from ...schedule.schedule import Schedule
from ..forms import unwatched
from ..grammar import Grammar
from .contraction import Contraction, contraction_of
from .fibres import by_fibres
from .forest import Forest
from .peeling import ForestRules, Peeling, Symbol, Whole, derivation_of
from .reading import forest_of
from .spelling import spelled

WHOLE = Whole()


class Forests:
    """The forests of one product of tensors, each a schedule that ``compile`` takes.

    Args:
        assignment: checked; a product of two tensors or more.
        formats: a format for every tensor, the result included.
        rules: which forests there are.
        add, multiply: the semiring.
        watch: called again and again while forests are counted and sought; it may raise to end that.

    Attributes:
        over_fibres: the pairwise nests over the stored fibres of every stretch of outermost levels (``fibres``), each a space like this.

    Raises:
        ExpressionError: the expression is no product of tensors with a different plain index in every mode.
    """

    def __init__(
        self,
        assignment: Assignment,
        formats: Mapping[str, Format],
        rules: ForestRules | None = None,
        add: str = "+",
        multiply: str = "*",
        watch: Callable[[], None] = unwatched,
    ) -> None:
        self.assignment = assignment
        self.contraction = contraction_of(assignment, formats)
        self.default: Concretized = concretize(replace(assignment, operator="="), formats, add, multiply)
        self.peeling = Peeling(self.contraction, rules or ForestRules(), watch)

    @property
    def _grammar(self) -> Grammar[Symbol]:
        return self.peeling.grammar

    @cached_property
    def over_fibres(self) -> tuple[Forests, ...]:
        return tuple(self._through(merged) for merged in by_fibres(self.contraction, self.default.formats))

    def _through(self, contraction: Contraction) -> Forests:
        other = copy(self)
        other.contraction, other.peeling = contraction, Peeling(contraction, self.peeling.rules, self.peeling.watch)
        return other

    def count(self) -> int:
        """Return how many forests there are; none is listed."""
        return self.peeling.count()

    @cached_property
    def stages(self) -> list[dict[str, str | int]]:
        """How many schedules differ in what the stages up to each decide: {"stage", "kept"}, the last of them all."""
        return [{"stage": "paths", "kept": sum(1 for _ in self.peeling.paths())}, {"stage": "forests", "kept": self.count()}]

    def forests(self) -> Iterator[Forest]:
        """Yield every forest once, in canonical order, as they are asked for."""
        return map(self.peeling.forest, self._grammar.derivations(WHOLE))

    def forest(self, rank: int) -> Forest:
        """Return the forest at a place of the canonical order. Raises IndexError: there is none."""
        return self.peeling.forest(self._grammar.derivation(WHOLE, rank))

    def rank(self, forest: Forest) -> int | None:
        """Return the place of a forest in the canonical order; None where it is not in the space."""
        return self._grammar.rank(WHOLE, derivation_of(forest))

    def __iter__(self) -> Iterator[Schedule]:
        """Yield the schedule of every forest, in canonical order."""
        return map(self.spelled, self.forests())

    def sample(self, count: int, seed: int = 0) -> list[Schedule]:
        """Return schedules drawn uniformly, with replacement."""
        return [self.spelled(forest) for forest in self.sample_forests(count, seed)]

    def sample_forests(self, count: int, seed: int = 0) -> list[Forest]:
        """Return forests drawn uniformly, with replacement."""
        return list(self.peeling.sample(count, seed))

    def __contains__(self, schedule: object) -> bool:
        return isinstance(schedule, Schedule | str) and self.find(schedule) is not None

    def find(self, schedule: Schedule | str) -> Forest | None:
        """Return the forest that a schedule makes; None where it makes none of the space."""
        try:
            program = self.program(schedule)
        except ScheduleError:
            return None
        forest = forest_of(program, self.contraction)
        return forest if forest is not None and self.peeling.admits(forest) else None

    def spelled(self, forest: Forest) -> Schedule:
        """Return the directives that make a forest from the default program."""
        return spelled(forest, self.default)

    def program(self, schedule: Schedule | str) -> Program:
        """Return what a schedule makes of the default program. Raises ScheduleError: it cannot be carried out."""
        return apply_schedule(self.default.program, schedule, self.default.formats)
