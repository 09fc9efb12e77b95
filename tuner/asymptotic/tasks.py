"""Task sets as bit sets of interned tasks: one task is a conjunctive query, named by the open loops and a conjunction.

A set is kept without tasks that others contain or that are sunk costs, so equal costs are equal numbers, and sets are
compared by looking up pairs of tasks (sections 5.1, 5.4). Containment of a pair is decided once, when it is first asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .homomorphism import find_homomorphism
from .predicates import Predicates
from .premises import Premises
from .query import Query, TaskSet, Variable
from .vocabulary import Vocabulary


class TaskTable:
    """Tasks of the schedules of one expression, and sets of them as integers with one bit a task.

    Args:
        predicates: the guards.
        premises: sunk costs and assumptions.
        vocabulary: indices, in the order in which heads are printed, and their dimensions.
    """

    def __init__(self, predicates: Predicates, premises: Premises, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._predicates = predicates
        self._premises = premises
        self._queries: list[Query] = []
        self._saturated: list[Query] = []
        self._shapes: list[tuple[frozenset[str], dict[str, int]]] = []
        self._bits: dict[Query, int] = {}
        self._unions: dict[tuple[frozenset[str], int, str], int] = {}
        self._decided: list[int] = []  # for every task the tasks that it was compared with,
        self._within: list[int] = []  # and those among them that contain it
        self._reduced: dict[int, int] = {0: 0}
        # With one index a dimension, equivalent tasks have equal heads and equal cores, and need no search.
        self._ambiguous = len(vocabulary.dimensions) < len(vocabulary.indices) or bool(premises.rules)

    def tasks(self, bound: frozenset[str], guard: int, resource: str = "time") -> int:
        """Return the set of tasks that a statement costs, run with these indices bound wherever a guard holds."""
        key = (bound, guard, resource)
        known = self._unions.get(key)
        if known is None:
            union = 0
            for query in self.charged(bound, guard, resource):
                union |= self._task(query)
            known = self._unions[key] = self.reduced(union)
        return known

    def charged(self, bound: Iterable[str], guard: int, resource: str = "time") -> TaskSet:
        """Return the queries of a guard with these indices bound; heads keep their order if they are a sequence."""
        names = [name for name in self.vocabulary.indices if name in bound] if isinstance(bound, frozenset) else bound
        head = tuple(Variable(name, self.vocabulary.index_dimension(name)) for name in names)
        return tuple(Query(head, self._predicates.clauses(one), resource) for one in self._predicates.conjunctions(guard))

    def _task(self, query: Query) -> int:
        known = self._bits.get(query)
        if known is None:
            known = self._bits[query] = 0 if self._premises.is_sunk(query) else self.add(query)
        return known

    def add(self, query: Query) -> int:
        """Return the set of one task, even if it is sunk; a known equivalent task stands for it."""
        self._queries.append(query)
        self._saturated.append(self._premises.assuming(query))
        counts: dict[str, int] = {}
        for variable in query.head:
            counts[variable.dimension] = counts.get(variable.dimension, 0) + 1
        self._shapes.append((frozenset(one.predicate for one in query.clauses), counts))
        number = len(self._queries) - 1
        self._decided.append(0)
        self._within.append(0)
        if self._ambiguous:
            for other in range(number):
                if self.contains(other, number) and self.contains(number, other):
                    return 1 << other
        return 1 << number

    def queries(self, tasks: int) -> TaskSet:
        """Return the tasks of a set, those with the most indices last."""
        return tuple(sorted((self._queries[number] for number in members(tasks)), key=_printing_order))

    def contains(self, container: int, contained: int) -> bool:
        """Whether one task contains another, both given by number."""
        return self._contained_in_any(contained, 1 << container)

    def _contained_in_any(self, number: int, containers: int) -> bool:
        """Whether one of a set of tasks contains a task; what was decided before is looked up."""
        if self._within[number] & containers:
            return True
        for other in members(containers & ~self._decided[number]):
            self._decided[number] |= 1 << other
            if self._decide(other, number):
                self._within[number] |= 1 << other
                return True
        return False

    def _decide(self, container: int, contained: int) -> bool:
        predicates, counts = self._shapes[container]
        inner_counts = self._shapes[contained][1]
        if any(count > counts.get(dimension, 0) for dimension, count in inner_counts.items()):
            return False
        saturated = self._saturated[contained]
        if not predicates <= {one.predicate for one in saturated.clauses}:
            return False
        return find_homomorphism(self._queries[container], saturated) is not None

    def reduced(self, tasks: int) -> int:
        """Return a set without the tasks that others in it contain."""
        known = self._reduced.get(tasks)
        if known is None:
            known = tasks
            for one in members(tasks):
                if self._contained_in_any(one, tasks & ~(1 << one)):
                    known ^= 1 << one
            self._reduced[tasks] = known
        return known

    def within(self, smaller: int, larger: int) -> bool:
        """Whether the first set costs at most as much as the second, on every input."""
        return all(self._contained_in_any(one, larger) for one in members(smaller & ~larger))


def _printing_order(query: Query) -> tuple[str, int, tuple[str, ...], str]:
    return query.resource, len(query.head), query.names, repr(sorted(query.clauses, key=repr))


def members(tasks: int) -> Iterator[int]:
    """Yield the numbers of the bits of a set."""
    while tasks:
        lowest = tasks & -tasks
        yield lowest.bit_length() - 1
        tasks ^= lowest

