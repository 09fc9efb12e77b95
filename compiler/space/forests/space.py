"""The loop nest forests of an expression as schedules: counted, listed, sampled, recognised."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property

from ...concrete.concretize import Concretized, concretize
from ...concrete.nodes import Program
from ...errors import ScheduleError
from ...format import Format, parse_format
from ...notation.nodes import Access, Assignment
from ...schedule.apply import apply_schedule
from ...schedule.directives import Convert
from ...schedule.schedule import Schedule
from ..conversions import reordered
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
        conversions: of sparse operands to the orders in which the forests read them.
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
        self.conversions: tuple[Convert, ...] = ()

    @property
    def _grammar(self) -> Grammar[Symbol]:
        return self.peeling.grammar

    @cached_property
    def over_fibres(self) -> tuple[Forests, ...]:
        """The spaces in which terms go through outermost levels of an operand by positions, one for each stretch of such levels."""
        return tuple(self._through(merged) for merged in by_fibres(self.contraction, self.default.formats))

    def _through(self, contraction: Contraction) -> Forests:
        other = self.under(self.peeling.rules)
        other.contraction, other.peeling = contraction, Peeling(contraction, self.peeling.rules, self.peeling.watch)
        return other

    def under(self, rules: ForestRules) -> Forests:
        """Return the space under other rules."""
        other = copy(self)
        for name in ("over_fibres", "formats", "stages", "_read"):
            other.__dict__.pop(name, None)
        other.peeling = Peeling(self.contraction, rules, self.peeling.watch)
        return other

    def turned(self, chains: tuple[tuple[int, tuple[int, ...]], ...]) -> Forests:
        """Return the forests of sparse operands that are converted to other orders of their levels first.

        Args:
            chains: as ``Contraction.chains``, with indices in these orders.
        """
        other = self._through(replace(self.contraction, chains=chains))
        changed = (pair for pair, given in zip(chains, self.contraction.chains, strict=True) if pair != given)
        other.conversions = tuple(self._conversion(operand, order) for operand, order in changed)
        return other

    def _conversion(self, operand: int, order: tuple[int, ...]) -> Convert:
        access = self.contraction.operands[operand]
        modes = [access.indices.index(name) for name in self.contraction.names_in_order(order)]
        return Convert(Access(access.tensor), str(reordered(self.default.formats[access.tensor], modes)))

    @cached_property
    def _read(self) -> Mapping[str, Format]:
        orders = {one.access.tensor: len(self.default.formats[one.access.tensor]) for one in self.conversions}
        return {one.access.tensor: parse_format(one.format, orders[one.access.tensor]) for one in self.conversions}

    @cached_property
    def formats(self) -> Mapping[str, Format]:
        """How tensors are stored where forests read them."""
        return {**self.default.formats, **self._read}

    def count(self) -> int:
        """Return how many forests there are; none is listed."""
        return self.peeling.count()

    @cached_property
    def stages(self) -> list[dict[str, str | int]]:
        """How many different schedules the stages up to each leave: {"stage", "kept"}; the last counts all."""
        return [{"stage": "paths", "kept": sum(1 for _ in self.peeling.paths())}, {"stage": "forests", "kept": self.count()}]

    def forests(self) -> Iterator[Forest]:
        """Yield every forest once, in canonical order."""
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
        said = {operand.tensor: form.order for operand, form in program.conversions}
        if any(said.get(tensor) != form.order for tensor, form in self._read.items()):
            return None
        forest = forest_of(program, self.contraction)
        return forest if forest is not None and self.peeling.admits(forest) else None

    def spelled(self, forest: Forest) -> Schedule:
        """Return the directives that make a forest from the default program."""
        return spelled(forest, self.default, self.conversions)

    def program(self, schedule: Schedule | str) -> Program:
        """Return what a schedule makes of the default program. Raises ScheduleError: it cannot be carried out."""
        return apply_schedule(self.default.program, schedule, self.default.formats)
