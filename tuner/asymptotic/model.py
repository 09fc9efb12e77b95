"""The asymptotic cost model of one expression: what programs cost, how costs compare, which schedules of a space are undominated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property

from ...compiler.concrete.nodes import Stmt
from ...compiler.format import Format
from ...compiler.frozen import frozen
from ...compiler.notation.nodes import Assignment
from ...compiler.space.forms import unwatched
from ...compiler.space.space import Member, ScheduleSpace
from .algebra import Algebra
from .census import Census
from .cheapest import CheapestSearch
from .compare import CostComparison, compare
from .gathering import gathering_of
from .interpret import Interpreter, Path
from .predicates import Predicates
from .premises import Premises, standard_premises
from .query import TaskSet, show_task_set
from .reading import Reading
from .steps import Outcome, Steps
from .tasks import TaskTable
from .vocabulary import Vocabulary


class CostModel:
    """Costs of the programs of one expression, in one table, so that equal costs are equal.

    Args:
        assignment: the expression.
        formats: a format for every tensor; operands that are not all dense are sparse.
        workspace_state: "exact" or "paper"; see ``Reading``.
        sunk_costs, assumptions: see ``standard_premises``.
        algebra: operators and fill values.
        as_stored: True: costs are those in the given formats, and every iteration counts. False, as in the paper: costs are those in
            formats that suit the program, and only entries count. See ``Reading``.
        memory: whether the memory of workspaces counts besides time; a cost is then worse only if it is better in neither.
        watch: called often while a cost is computed; it may raise to end that.

    Raises:
        TuningError: the workspace state model is unknown.
        ExpressionError: a sunk cost or assumption cannot be read.
    """

    def __init__(
        self,
        assignment: Assignment,
        formats: Mapping[str, Format],
        workspace_state: str = "exact",
        sunk_costs: bool | Sequence[str] = True,
        assumptions: bool | Sequence[str] = True,
        algebra: Algebra | None = None,
        memory: bool = False,
        as_stored: bool = False,
        watch: Callable[[], None] = unwatched,
    ) -> None:
        dense_modes = _outermost_dense(formats) if as_stored else frozenset()
        self.reading = Reading(algebra or Algebra(), workspace_state, as_stored, dense_modes)
        self.memory = memory
        self.vocabulary = Vocabulary(assignment, formats)
        self.premises = standard_premises(self.vocabulary, sunk_costs, assumptions)
        self.predicates = Predicates(self.premises)
        self.tasks = TaskTable(self.predicates, self.premises, self.vocabulary)
        sparse = frozenset(self.vocabulary.sparse)
        self.gathering = gathering_of(assignment.target, formats[assignment.target.tensor])
        self.interpreter = Interpreter(self.predicates, sparse, self.reading, self.gathering, watch)

    @cached_property
    def _unsunk(self) -> TaskTable:
        """Tasks with nothing sunk, to show what a single program does."""
        assumed = Premises((), self.premises.facts, self.premises.rules)
        return TaskTable(self.predicates, assumed, self.vocabulary)

    def cost(self, statement: Stmt, arrays: frozenset[str] = frozenset()) -> int:
        """Return the cost of a protocolized program, without what is sunk, as a set of ``tasks``; ``arrays`` as ``Interpreter``'s."""
        return self._summed(statement, self.tasks, ("time", "memory") if self.memory else ("time",), arrays)

    def task_set(self, statement: Stmt, resource: str = "time") -> TaskSet:
        """Return all tasks of a program that no others contain, with the sunk ones."""
        return self._unsunk.queries(self._summed(statement, self._unsunk, (resource,)))

    def _summed(self, statement: Stmt, table: TaskTable, resources: tuple[str, ...], arrays: frozenset[str] = frozenset()) -> int:
        total = 0
        for charge in self.interpreter.charges(statement, arrays):
            if charge.resource in resources and (charge.bound or charge.resource == "time"):
                total |= table.tasks(frozenset(charge.bound), charge.guard, charge.resource)
        return table.reduced(total)

    def node_costs(self, statement: Stmt) -> dict[Path, TaskSet]:
        """Return the tasks of every loop and assignment, heads in the order in which the loops are open."""
        found: dict[Path, dict] = {}
        for charge in self.interpreter.charges(statement):
            if charge.resource == "time":
                node = found.setdefault(charge.path, {})
                node.update(dict.fromkeys(self._unsunk.charged(charge.bound, charge.guard)))
        return {path: tuple(queries) for path, queries in found.items()}

    def compare(self, first: Stmt, second: Stmt) -> CostComparison:
        """Compare two programs."""
        return compare(self.tasks.queries(self.cost(first)), self.tasks.queries(self.cost(second)), self.premises)

    def show(self, tasks: TaskSet) -> str:
        """Return a set of tasks as text, with the names of the expression."""
        return show_task_set(tasks, self.vocabulary.display_names())

    def frontier(
        self,
        space: ScheduleSpace,
        report: Callable[[str], None] = lambda _: None,
        known: Sequence[Member] = (),
        part: Callable[[float], AbstractContextManager[object]] = lambda _: nullcontext(),
    ) -> Frontier:
        """Return the schedules of a whole space that no other schedule of it beats.

        Args:
            space: the schedules to choose from.
            report: called with a text on the progress.
            known: programs of the space whose costs bound the search, and which are the answer if its time runs out.
            part: a context that ends what runs inside it once this share of the time is over, counted from the beginning.
        """
        return Frontier(self, space, report, known, part)

    def listed_frontier(self, schedules: Iterable[Member]) -> tuple[CostClass, ...]:
        """Return the undominated ones of listed schedules, by cost; repeated ones count as often as they are given."""
        found: dict[int, list[Member]] = {}
        for schedule in schedules:
            found.setdefault(self.cost(schedule.program.statement), []).append(schedule)
        kept = [cost for cost in found if not any(other != cost and self.tasks.within(other, cost) for other in found)]
        return tuple(CostClass(self.tasks.queries(cost), len(found[cost]), tuple(found[cost])) for cost in kept)


def _outermost_dense(formats: Mapping[str, Format]) -> frozenset[tuple[str, int]]:
    """Return the modes that are stored dense above all others."""
    return frozenset((name, form.order[0]) for name, form in formats.items() if form.levels and form.levels[0].full)


@frozen
class CostClass:
    """Schedules of equal cost.

    Attributes:
        tasks: the cost beyond sunk costs.
        count: how many schedules there are.
        schedules: the schedules themselves, in canonical order; listed when they are asked for.
    """

    tasks: TaskSet
    count: int
    schedules: Iterable[Member]

    @cached_property
    def first(self) -> Member:
        """The first schedule, which represents the class: the others differ from it in sunk costs only."""
        return next(iter(self.schedules))


class _Listed:
    """The schedules of a space with one cost, as far as they were counted; each iteration finds them anew."""

    def __init__(self, frontier: Frontier, outcome: Outcome) -> None:
        self._frontier = frontier
        self._outcome = outcome

    def __iter__(self) -> Iterator[Member]:
        census = self._frontier.census
        for number, start in enumerate(self._frontier.starts[: self._frontier.counted]):
            if self._outcome in census.outcomes(start):
                for derivation in census.derivations(start, self._outcome):
                    yield self._frontier.space.wrapped(number, derivation)


SEARCHED, COUNTED = 0.75, 0.95
"""Shares of the time after which the search for costs, and the count of their schedules, end with what they have."""


class Frontier:
    """The undominated schedules of a space.

    Two passes over the space: the first finds the undominated costs and forgets the rest, the second counts the schedules
    that have them. Schedules are listed only when they are asked for. If the time runs out before the passes end, ``searched`` or
    ``counted`` is less than the number of ``starts``, and the schedules are those that no other found by then beats.

    Attributes:
        starts: ways to place workspaces, in which programs begin.
        searched, counted: how many of these the first and the second pass have been through.
        classes: the costs, with their schedules.
    """

    def __init__(
        self,
        model: CostModel,
        space: ScheduleSpace,
        report: Callable[[str], None],
        known: Sequence[Member],
        part: Callable[[float], AbstractContextManager[object]],
    ) -> None:
        self.space, self.counted = space, 0
        steps = Steps(space.nestings, model.tasks, model.predicates, model.reading, model.memory, model.gathering)
        self.starts = [steps.start(space.top(number)) for number in range(len(space.groupings))]
        familiar: dict[int, list[Member]] = {}
        for member in known:
            familiar.setdefault(model.cost(member.program.statement), []).append(member)
        search = CheapestSearch(steps, familiar)
        with part(SEARCHED):
            search.lowest(self.starts, report)
        self.searched, costs = search.searched, search.reached
        report(f"{len(costs)} lowest costs, whose schedules are not all counted")
        self.census = Census(steps, [outcome.tasks for outcome in costs])
        counts: dict[Outcome, int] = {}
        with part(COUNTED):
            for start in self.starts[: self.searched]:
                outcomes = self.census.outcomes(start)
                for outcome in filter(outcomes.__contains__, costs):
                    counts[outcome] = counts.get(outcome, 0) + outcomes[outcome]
                self.counted += 1
        found = tuple(counts)
        queries = model.tasks.queries
        self.classes = tuple(CostClass(queries(outcome.tasks), counts[outcome], _Listed(self, outcome)) for outcome in found)
        if not self.is_whole:
            rest = {outcome.tasks for outcome in search.undominated((*found, *(Outcome(tasks, ()) for tasks in familiar)))}
            left = [tasks for tasks in familiar if tasks in rest and Outcome(tasks, ()) not in found]
            self.classes += tuple(CostClass(queries(tasks), len(familiar[tasks]), tuple(familiar[tasks])) for tasks in left)

    @property
    def is_whole(self) -> bool:
        """Whether all of the space was looked at."""
        return self.counted == len(self.starts)

    @property
    def count(self) -> int:
        """How many schedules are undominated, counting all of equal cost."""
        return sum(one.count for one in self.classes)
