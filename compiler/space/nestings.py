"""Forall nestings: in which loops the statements of a grouping stand, and which loops they share (section 6.3).

A scope holds statements and the loops that they still need. Either one loop goes around all of them, or the scope is cut:
statements part from those that consume them, and each side keeps the loops that it needs. Cuts at one place give nested where statements
whose order does not matter, so cuts of several workspaces with no loop in between are one choice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import field

from ..frozen import frozen
from ..notation.nodes import Access
from .forms import unwatched
from .grammar import Alternative, subsets
from .statements import Grouping, Statements


@frozen
class Loop:
    """A loop over ``index`` is opened around everything in the scope. The binary choices are protocols (``protocol_modes``)."""

    index: str


@frozen
class Cut:
    """The scope is split into these sets of statements, producers before consumers."""

    parts: tuple[tuple[int, ...], ...]


@frozen
class Executed:
    """No loop is left: the statement is executed."""

    statement: int


@frozen
class Scope:
    """Statements that share all loops opened so far.

    Attributes:
        statements: their numbers, ascending; what they compute together is what the last one assigns.
        loops: the loops that they still need, in canonical order.
        fresh: they were cut off from others, and no loop was opened since: cutting on would give the same program twice.
        depth: how many loops may still be nested here; None: any number.
        given: (workspace, its indices) for the workspaces that these statements read and others fill.
    """

    statements: tuple[int, ...]
    loops: tuple[str, ...]
    fresh: bool = False
    depth: int | None = None
    given: tuple[tuple[int, tuple[str, ...]], ...] = ()
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Scopes are the keys of every table of the space: their hash is computed once.
        object.__setattr__(self, "_hash", hash((self.statements, self.loops, self.fresh, self.depth, self.given)))

    def __hash__(self) -> int:
        return self._hash


class Nestings:
    """The loop nests of the groupings of an assignment.

    Args:
        table: the statements.
        sparse: tensors whose reads have a protocol to choose.
        both_operators: as in ``groupings``: a producer with "+=" need not sum anything inside its where.
        workspace_modes: workspaces may not have more modes than this; None: any number.
        protocols: whether protocols are chosen too.
        watch: called again and again while the nests are enumerated; it may raise to end that.
    """

    def __init__(
        self,
        table: Statements,
        sparse: frozenset[str],
        both_operators: bool = False,
        workspace_modes: int | None = None,
        protocols: bool = True,
        watch: Callable[[], None] = unwatched,
    ) -> None:
        self.table = table
        self.watch = watch
        self.sparse = sparse
        self.both_operators = both_operators
        self.workspace_modes = workspace_modes
        self.protocols = protocols
        self._needs: dict[tuple[int, ...], frozenset[str]] = {}
        self._alternatives: dict[Scope, tuple[Alternative[Scope], ...]] = {}
        self._stored: dict[int, tuple[Access, ...]] = {}
        self._places: dict[tuple[int, str], list[tuple[int, int, tuple[str, ...]]]] = {}
        self._modes: dict[tuple[Scope, str], tuple[tuple[int, int, int], ...]] = {}

    def top(self, grouping: Grouping, depth: int | None = None) -> Scope:
        """Return the scope of a whole program."""
        return Scope(grouping.statements, self.ordered(self.needs(grouping.statements)), depth=depth)

    def needs(self, statements: tuple[int, ...]) -> frozenset[str]:
        """Return the indices over which some statements need loops: those that any of them needs."""
        known = self._needs.get(statements)
        if known is None:
            known = self._needs[statements] = frozenset().union(*(self.table[number].needs for number in statements))
        return known

    def ordered(self, names: frozenset[str]) -> tuple[str, ...]:
        """Return indices in canonical order, that of the table of statements."""
        return tuple(name for name in self.table.loops if name in names)

    def alternatives(self, scope: Scope) -> tuple[Alternative[Scope], ...]:
        """Return the ways to continue, loops first; some may lead nowhere."""
        known = self._alternatives.get(scope)
        if known is None:
            self.watch()
            known = self._alternatives[scope] = tuple(self._continuations(scope))
        return known

    def continued(self, scope: Scope, label: Hashable) -> tuple[Scope, ...] | None:
        """Return the scopes that one way to continue leads to, or None if there is no such way."""
        return next((option.parts for option in self.alternatives(scope) if option.label == label), None)

    def _continuations(self, scope: Scope) -> list[Alternative[Scope]]:
        if len(scope.statements) == 1 and not scope.loops:
            return [Alternative(Executed(scope.statements[0]))]
        found = [self._opened(scope, name) for name in scope.loops if self._may_open(scope, name)]
        if len(scope.statements) > 1 and not scope.fresh:
            found += [self._cut(scope, tops) for tops in self._cuts(scope)]
        return found

    def _opened(self, scope: Scope, name: str) -> Alternative[Scope]:
        rest = tuple(other for other in scope.loops if other != name)
        depth = None if scope.depth is None else scope.depth - 1
        inner = Scope(scope.statements, rest, False, depth, scope.given)
        return Alternative(Loop(name), (inner,), 1 << len(self.protocol_modes(scope, name)) if self.protocols else 1)

    def _may_open(self, scope: Scope, name: str) -> bool:
        if scope.depth is not None and scope.depth < 1:
            return False
        if len(scope.statements) == 1:
            return True
        several = sum(self.table[number].root for number in scope.statements) > 1
        if several and name not in self.table.target.indices:
            return False
        binders = (number for number in scope.statements if name in self.table[number].summed)
        return all(self.table.subtree(number).issuperset(scope.statements) for number in binders)

    def protocol_modes(self, scope: Scope, name: str) -> tuple[tuple[int, int, int], ...]:
        """Return (statement, read, mode) of the sparse modes whose coordinate is known once a loop over ``name`` is open."""
        known = self._modes.get((scope, name))
        if known is None:
            known = self._modes[scope, name] = tuple(self._chosen_modes(scope, name))
        return known

    def _chosen_modes(self, scope: Scope, name: str) -> Iterator[tuple[int, int, int]]:
        for number in scope.statements:
            for place, mode, names in self._stored_modes(number, name):
                if len(names) == 1 or not any(other in scope.loops for other in names if other != name):
                    yield number, place, mode
            for workspace, indices in scope.given:
                if name in indices and workspace in self.table[number].workspaces:
                    place = len(self.stored(number)) + self.table[number].workspaces.index(workspace)
                    yield number, place, indices.index(name)

    def stored(self, number: int) -> tuple[Access, ...]:
        """Return the sparse operands that a statement reads, in written order."""
        known = self._stored.get(number)
        if known is None:
            known = self._stored[number] = tuple(access for access in self.table[number].operands if access.tensor in self.sparse)
        return known

    def _stored_modes(self, number: int, name: str) -> list[tuple[int, int, tuple[str, ...]]]:
        """Return (read, mode, indices of the mode) of the sparse operands' modes in which an index occurs."""
        known = self._places.get((number, name))
        if known is None:
            modes = (
                (place, mode, subscript.indices)
                for place, access in enumerate(self.stored(number))
                for mode, subscript in enumerate(access.subscripts)
            )
            known = self._places[number, name] = [entry for entry in modes if name in entry[2]]
        return known

    def read_indices(self, number: int, given: Mapping[int, tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], ...]]:
        """Yield, for each sparse operand of a statement and then each workspace, the indices of each of its modes."""
        yield from (tuple(subscript.indices for subscript in access.subscripts) for access in self.stored(number))
        yield from (tuple((name,) for name in given.get(other, ())) for other in self.table[number].workspaces)

    def _consumers(self, statements: tuple[int, ...]) -> dict[int, int]:
        """Return which of some statements reads the workspace of which other."""
        inside = set(statements)
        return {other: number for number in statements for other in self.table[number].workspaces if other in inside}

    def _cuts(self, scope: Scope) -> Iterator[frozenset[int]]:
        """Yield the sets of statements that part from what consumes them; several roots part all at once."""
        inner = sorted(self._consumers(scope.statements))
        ends = [number for number in scope.statements if number not in inner]
        for chosen in subsets(inner):
            if (chosen or len(ends) > 1) and all(self._may_cut(scope, number) for number in chosen):
                yield frozenset((*chosen, *ends))

    def _may_cut(self, scope: Scope, number: int) -> bool:
        statement = self.table[number]
        if self.workspace_modes is not None and len(statement.carries.intersection(scope.loops)) > self.workspace_modes:
            return False
        if statement.operator == "=" or self.both_operators:
            return True
        return not (statement.needs - statement.carries).isdisjoint(scope.loops)

    def _cut(self, scope: Scope, tops: frozenset[int]) -> Alternative[Scope]:
        consumers = self._consumers(scope.statements)
        parts: dict[int, list[int]] = {number: [] for number in sorted(tops)}
        for number in scope.statements:
            top = number
            while top not in tops:
                top = consumers[top]
            parts[top].append(number)
        carried = {number: self.ordered(self.table[number].carries.intersection(scope.loops)) for number in tops}
        given = dict(scope.given) | carried
        scopes = tuple(self._part(scope, tuple(statements), given) for statements in parts.values())
        return Alternative(Cut(tuple(part.statements for part in scopes)), scopes)

    def _part(self, scope: Scope, statements: tuple[int, ...], given: Mapping[int, tuple[str, ...]]) -> Scope:
        needed = self.needs(statements)
        read = sorted({other for number in statements for other in self.table[number].workspaces}.difference(statements))
        loops = tuple(name for name in scope.loops if name in needed)
        return Scope(statements, loops, True, scope.depth, tuple((other, given[other]) for other in read if other in given))
