"""The cost of one program: abstract interpretation of protocolized concrete index notation (Ahrens et al., Figure 4).

Every node is visited with a guard, a predicate over the open loops that says in which iterations it runs. A loop costs one
task for every entry of every operand that it steps through, and goes on once for every combination of operands that have
an entry or not; an assignment costs one task for every iteration. The states of workspaces are predicates too.

This is the algorithm as printed, with two repairs: loops whose body does something where no stepped operand has an entry
cost their dimension (Figure 2 has it so for loops without any), and indices of loops inside the where are quantified away
when a state is stored. Whether those outside are too is the workspace state model: "exact" keeps them, "paper" does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product

from ...compiler.concrete.nodes import Assign, Block, Forall, Stmt, Where, assignments, reads, transform
from ...compiler.frozen import frozen
from ...compiler.notation.nodes import Access, Affine, Expr, transform_expression
from ...compiler.space.forms import unwatched
from .algebra import Untouched, written
from .gathering import Gathering
from .predicates import Predicates
from .query import Clause, Term
from .reading import Reading

Path = tuple[int, ...]
"""A node of a statement: which child to take at each step from the root, as ``Stmt.children`` numbers them."""


@frozen
class Charge:
    """One node's cost: tasks with these indices bound, wherever the guard holds."""

    path: Path
    bound: tuple[str, ...]
    guard: int
    resource: str = "time"


@dataclass
class _States:
    """Predicates of workspaces over their modes, ``%0``, ``%1`` ..., and the loops around their where statements.

    ``gathered`` are the modes of the result that are written out of order, ``arrays`` the workspaces that do not know
    what was written to them.
    """

    gathered: frozenset[str] = frozenset()
    arrays: frozenset[str] = frozenset()
    predicate: dict[str, int] = field(default_factory=dict)
    outside: dict[str, frozenset[str]] = field(default_factory=dict)


class Interpreter:
    """Computes what programs cost.

    Args:
        predicates: the guards' algebra, shared by programs that are to be compared.
        sparse: the operands that have patterns; all others are dense.
        reading: how programs are read.
        gathering: how a sparse result is stored, for the memory of the workspace that it may need.
        watch: called often, since a loop has a case for every set of operands that it steps through; it may raise to end the work.
    """

    def __init__(
        self,
        predicates: Predicates,
        sparse: frozenset[str],
        reading: Reading | None = None,
        gathering: Gathering | None = None,
        watch: Callable[[], None] = unwatched,
    ) -> None:
        self.predicates = predicates
        self.sparse = sparse
        self.reading = reading or Reading()
        self.algebra = self.reading.algebra
        self.gathering = gathering
        self._watch = watch

    def charges(self, statement: Stmt, arrays: frozenset[str] = frozenset()) -> tuple[Charge, ...]:
        """Return the cost of every node in the order of execution, a node's charge for each guard under which it runs.

        Args:
            statement: a protocolized program.
            arrays: workspaces that are arrays of all their coordinates: cleared before their producer runs, and read whole.
        """
        live = self.algebra.live(_distinct_reads(statement))
        gathered = self.gathering.workspace(self.gathering.of_statement(statement)) if self.gathering else frozenset()
        found = () if live is None else self._visit(live, (), (), self.predicates.true, _States(gathered, arrays))
        return tuple(dict.fromkeys(found))

    def _visit(self, node: Stmt, path: Path, bound: tuple[str, ...], guard: int, states: _States) -> Iterator[Charge]:
        match node:
            case Forall():
                yield from self._loop(node, path, (*bound, node.index), guard, states)
            case Where(consumer, producer):
                for name in written(producer):
                    states.predicate[name] = self.predicates.false
                    states.outside[name] = frozenset(bound)
                yield from self._clear(producer, (*path, 1), bound, guard, states)
                yield from self._visit(producer, (*path, 1), bound, guard, states)
                yield from self._visit(consumer, (*path, 0), bound, guard, states)
            case Block(statements):
                for place, inner in enumerate(statements):
                    yield from self._visit(inner, (*path, place), bound, guard, states)
            case Assign(target):
                yield Charge(path, bound, guard)
                known = target.tensor in states.predicate
                held = tuple(name for name in target.indices if known or name in states.gathered)
                yield Charge(path, held, self.predicates.exists(guard, frozenset(bound) - frozenset(held)), "memory")
                if known:
                    self._write(target, bound, guard, states)
            case Untouched():
                pass
            case _:
                raise TypeError(f"no cost of {type(node).__name__}")

    def _clear(self, producer: Stmt, path: Path, bound: tuple[str, ...], guard: int, states: _States) -> Iterator[Charge]:
        """Charge for clearing the arrays that a producer fills; from then on they have every entry."""
        for target in (assign.target for assign in assignments(producer) if assign.target.tensor in states.arrays):
            if states.predicate.get(target.tensor) == self.predicates.false:
                states.predicate[target.tensor] = self.predicates.true
                yield Charge(path, (*bound, *(name for name in target.indices if name not in bound)), guard)

    def _loop(self, loop: Forall, path: Path, bound: tuple[str, ...], guard: int, states: _States) -> Iterator[Charge]:
        steppers = [access for access in reads(loop.body) if self._steps(access, loop.index, bound)]
        entries = {id(access): self._entry(access, loop.index, bound, states) for access in steppers}
        for access in steppers:
            yield Charge(path, bound, self.predicates.conjunction(guard, entries[id(access)]))
        for present in product((True, False), repeat=len(steppers)):
            self._watch()
            absent = {id(access) for access, there in zip(steppers, present, strict=True) if not there}
            inner = self.algebra.live(self.algebra.without(loop.body, lambda access, absent=absent: id(access) in absent))
            if inner is None:
                continue
            left = {id(access) for access in reads(inner)}.intersection(entries)
            if not left and (self.reading.idle or not steppers):
                yield Charge(path, bound, guard)
            narrowed = guard
            for access in steppers:
                if id(access) in left:
                    narrowed = self.predicates.conjunction(narrowed, entries[id(access)])
            yield from self._visit(inner, (*path, 0), bound, narrowed, states)

    def _steps(self, access: Access, index: str, bound: tuple[str, ...]) -> bool:
        """Whether the loop over an index, innermost in ``bound``, iterates over entries of an operand."""
        return any(
            protocol == "step" and index in subscript.indices and set(subscript.indices) <= set(bound)
            for subscript, protocol in zip(access.subscripts, access.protocols, strict=False)
        )

    def _entry(self, access: Access, index: str, bound: tuple[str, ...], states: _States) -> int:
        """Return the predicate that an operand has an entry at the open loops' coordinates."""
        state = states.predicate.get(access.tensor)
        if state is None:
            if access.tensor not in self.sparse:
                return self.predicates.true
            hidden = {index} if self.reading.is_dense_step(access, index, len(bound)) else set()
            return self.predicates.of_clauses(entry_clauses(access, frozenset(bound) - hidden))
        names = {f"%{mode}": subscript.index for mode, subscript in enumerate(access.subscripts)}
        entry = self.predicates.renamed(state, names)
        return self.predicates.exists(entry, frozenset(names.values()) - frozenset(bound))

    def _write(self, target: Access, bound: tuple[str, ...], guard: int, states: _States) -> None:
        kept = set(target.indices)
        if self.reading.exact:
            kept |= states.outside[target.tensor]
        pattern = self.predicates.exists(guard, frozenset(bound) - kept)
        pattern = self.predicates.renamed(pattern, {subscript.index: f"%{mode}" for mode, subscript in enumerate(target.subscripts)})
        states.predicate[target.tensor] = self.predicates.disjunction(states.predicate[target.tensor], pattern)


def entry_clauses(access: Access, bound: frozenset[str]) -> list[Clause]:
    """Return the conjunction that a tensor has an entry with the bound coordinates and some others.

    An affine subscript becomes a variable that a clause of its own ties to its indices.
    """
    hidden = [name for name in access.indices if name not in bound]
    terms: dict[str, Term] = {name: number for number, name in enumerate(hidden)}
    clauses: list[Clause] = []
    arguments: list[Term] = []
    for subscript in access.subscripts:
        if subscript.is_index:
            arguments.append(terms.get(subscript.index, subscript.index))
            continue
        arguments.append(len(hidden) + len(clauses))
        clauses.append(Clause(_affine_name(subscript), (arguments[-1], *(terms.get(name, name) for name in subscript.indices))))
    return [*clauses, Clause(access.tensor, tuple(arguments))]


def _affine_name(subscript: Affine) -> str:
    """Return a predicate name that tells affine forms apart by coefficients and constant, not by their indices."""
    parts = [f"{coefficient}*x{place}" for place, (_, coefficient) in enumerate(subscript.terms)]
    return "=" + "+".join([*parts, str(subscript.constant)])


def _distinct_reads(statement: Stmt) -> Stmt:
    """Copy every access, so that reads that are written alike can be told apart by identity."""
    return transform(
        statement,
        lambda node: Assign(node.target, node.operator, transform_expression(node.value, _copied)) if isinstance(node, Assign) else None,
    )


def _copied(value: Expr) -> Expr | None:
    return replace(value) if isinstance(value, Access) else None
