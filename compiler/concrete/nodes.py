"""Concrete index notation: statements that say in which loops, through which workspaces, a tensor is computed.

``Forall`` repeats a statement for every value of an index, ``Where`` fills workspaces in a producer before a consumer reads
them, ``Block`` runs statements one after another, ``Assign`` stores or accumulates one component (Kjolstad et al., "Tensor
algebra compilation with workspaces"; Ahrens et al., section 3, for protocols and blocks). Expressions are those of index
notation. Nothing here is mutated; passes build new statements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field

from ..format import Format
from ..frozen import frozen
from ..kept import Kept
from ..notation.nodes import Access, Expr, accesses
from .loop_tag import PLAIN, LoopTag


@frozen
class Stmt:
    """A statement; passes walk over its children, and rebuild it over others."""

    @Kept
    def children(self) -> tuple[Stmt, ...]:
        """The statements directly in this one, in order."""
        return ()

    @Kept
    def inside(self) -> tuple[tuple[tuple[int, ...], Stmt], ...]:
        """The statements in this one, parents first, each with the numbers of the children that lead to it."""
        found, waiting = list[tuple[tuple[int, ...], Stmt]](), list[tuple[tuple[int, ...], Stmt]]([((), self)])
        while waiting:  # not recursive: a deep statement would keep one list for each level
            address, one = waiting.pop()
            found.append((address, one))
            waiting += [((*address, number), child) for number, child in enumerate(one.children)][::-1]
        return tuple(found[1:])

    @Kept
    def assignments(self) -> tuple[Assign, ...]:
        """The assignments in the statement, in order."""
        return tuple(assign for child in self.children for assign in child.assignments)

    @Kept
    def reads(self) -> tuple[Access, ...]:
        """The accesses that the statement reads, repeats included."""
        return tuple(access for assign in self.assignments for access in accesses(assign.value))

    @Kept
    def operands(self) -> tuple[Access, ...]:
        """The accesses that the statement reads, each once."""
        return tuple(dict.fromkeys(self.reads))

    def __getstate__(self) -> dict[str, object]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    def rebuild(self, children: tuple[Stmt, ...]) -> Stmt:
        """Return the statement with other children, given in the order of ``children``."""
        assert not children
        return self


@frozen
class Assign(Stmt):
    """``target = value`` (operator "=") or ``target += value`` (operator "+=": the add of the semiring)."""

    target: Access
    operator: str
    value: Expr

    @Kept
    def assignments(self) -> tuple[Assign, ...]:
        return (self,)


@frozen
class Forall(Stmt):
    """``body`` for every value of an index, in order unless the tag says otherwise."""

    index: str
    body: Stmt
    tag: LoopTag = PLAIN

    @Kept
    def children(self) -> tuple[Stmt, ...]:
        return (self.body,)

    @Kept
    def assignments(self) -> tuple[Assign, ...]:
        return self.body.assignments

    @Kept
    def reads(self) -> tuple[Access, ...]:
        return self.body.reads

    @Kept
    def operands(self) -> tuple[Access, ...]:
        return self.body.operands

    def rebuild(self, children: tuple[Stmt, ...]) -> Stmt:
        return Forall(self.index, children[0], self.tag)


@frozen
class Where(Stmt):
    """``consumer where producer``: the workspaces that the producer writes live for this statement and start at zero.

    ``local``: the workspace of a sum that the compiler keeps in registers; schedules do not name it, and ``Program`` does not list it.
    """

    consumer: Stmt
    producer: Stmt
    local: Workspace | None = None

    @Kept
    def children(self) -> tuple[Stmt, ...]:
        return (self.consumer, self.producer)

    def rebuild(self, children: tuple[Stmt, ...]) -> Stmt:
        return Where(*children, local=self.local)


@frozen
class Block(Stmt):
    """Statements in order. As the producer of a ``Where`` they may fill several workspaces, or one after another."""

    statements: tuple[Stmt, ...]

    @Kept
    def children(self) -> tuple[Stmt, ...]:
        return self.statements

    def rebuild(self, children: tuple[Stmt, ...]) -> Stmt:
        return Block(children)


@frozen
class Unless(Stmt):
    """``body``, except where two indices are equal."""

    first: str
    second: str
    body: Stmt

    @Kept
    def children(self) -> tuple[Stmt, ...]:
        return (self.body,)

    def rebuild(self, children: tuple[Stmt, ...]) -> Stmt:
        return Unless(self.first, self.second, *children)


@frozen
class Workspace:
    """A scoped tensor. ``indices`` name the loops (original or derived) that its modes range over.

    ``kind``: scalar, registers, dense, list (dense with a coordinate list), bitmap, hashed, positions; None: chosen by
    the compiler from sizes and use.
    """

    name: str
    indices: tuple[str, ...]
    kind: str | None = None


@frozen
class Program:
    """A scheduled program: the statement and everything decided beside it.

    Attributes:
        statement: the loop nest.
        workspaces: every workspace that the statement writes.
        relations: provenance of derived indices, in the order in which they were made (``concrete.provenance``).
        conversions: (operand, format) to convert before the kernel runs; see ``said_of`` for what names an operand.
        assembly: (result, "append" | "insert" | "workspace").
        build: (compiler or None, flags or None).
        add, multiply: the operators of the semiring ("+", "*").
        on_gpu: whether it is for a GPU, where one thread runs what no loop distributes.
    """

    statement: Stmt
    workspaces: tuple[Workspace, ...] = ()
    relations: tuple[object, ...] = ()
    conversions: tuple[tuple[Access, Format], ...] = ()
    assembly: tuple[tuple[str, str], ...] = ()
    build: tuple[str | None, str | None] = (None, None)
    add: str = "+"
    multiply: str = "*"
    on_gpu: bool = False
    text: str = field(default="", compare=False)


def walk(statement: Stmt) -> Iterator[Stmt]:
    """Yield a statement and everything below it, parents first."""
    waiting = [statement]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(found.children))


def assignments(statement: Stmt) -> tuple[Assign, ...]:
    """Return the assignments below a statement, in order."""
    return statement.assignments


def assignments_in_loops(statement: Stmt) -> Iterator[tuple[tuple[str, ...], Assign]]:
    """Yield the assignments below a statement, in order, each with the loops around it, outermost first."""
    waiting = list[tuple[tuple[str, ...], Stmt]]([((), statement)])
    while waiting:
        around, found = waiting.pop()
        if isinstance(found, Assign):
            yield around, found
        inside = (*around, found.index) if isinstance(found, Forall) else around
        waiting += [(inside, child) for child in reversed(found.children)]


def in_sequence(statement: Stmt) -> Iterator[Stmt]:
    """Yield the parts of where statements and blocks in the order in which they run, producers first: loops and assignments."""
    match statement:
        case Where(consumer, producer):
            yield from in_sequence(producer)
            yield from in_sequence(consumer)
        case Block(statements):
            for inner in statements:
                yield from in_sequence(inner)
        case _:
            yield statement


def targets(statement: Stmt) -> tuple[str, ...]:
    """Return the names of the tensors that a statement writes, each once."""
    return tuple(dict.fromkeys(assign.target.tensor for assign in assignments(statement)))


def reads(statement: Stmt) -> tuple[Access, ...]:
    """Return the accesses that a statement reads, repeats included."""
    return statement.reads


def is_looked_up(workspace: Workspace, statement: Stmt) -> bool:
    """Whether a workspace has modes and every read locates all of them, so that none needs its entries in order."""
    found = [access.protocols for access in reads(statement) if access.tensor == workspace.name]
    return bool(workspace.indices) and all(protocols == ("locate",) * len(workspace.indices) for protocols in found)


def loops(statement: Stmt) -> tuple[str, ...]:
    """Return the indices of the foralls below a statement, in order of first appearance."""
    return tuple(dict.fromkeys(node.index for node in walk(statement) if isinstance(node, Forall)))


def statements_around(statement: Stmt, tensor: str) -> tuple[Stmt, ...] | None:
    """Return the statements around the first assignment to a tensor, outermost first; None where there is none."""
    if isinstance(statement, Assign):
        return () if statement.target.tensor == tensor else None
    below = (statements_around(child, tensor) for child in statement.children)
    return next(((statement, *path) for path in below if path is not None), None)


def filled_by_threads(statement: Stmt, tensor: str) -> bool:
    """Whether a distributed loop stands around an assignment to a tensor, in a statement."""
    return any(isinstance(node, Forall) and node.tag.is_dealt and tensor in targets(node) for node in walk(statement))


def runs_on_gpu(program: Program) -> bool:
    """Whether a GPU runs a program: its target is one, or it distributes a loop to blocks, warps or threads of one."""
    return program.on_gpu or any(isinstance(node, Forall) and node.tag.is_on_gpu for node in walk(program.statement))


def used_indices(statement: Stmt) -> frozenset[str]:
    """Return the indices that the accesses below a statement use."""
    found = {name for assign in assignments(statement) for name in assign.target.indices}
    return frozenset(found.union(*(access.indices for access in reads(statement)), ()))


def transform(statement: Stmt, rule: Callable[[Stmt], Stmt | None]) -> Stmt:
    """Rebuild a statement bottom-up; ``rule`` gives a replacement for a node, or None to keep it."""
    children = tuple(transform(child, rule) for child in statement.children)
    rebuilt = statement if all(a is b for a, b in zip(children, statement.children, strict=True)) else statement.rebuild(children)
    replacement = rule(rebuilt)
    return rebuilt if replacement is None else replacement


def nest(indices: tuple[str, ...], body: Stmt) -> Stmt:
    """Return ``body`` inside foralls over ``indices``, the first outermost."""
    for index in reversed(indices):
        body = Forall(index, body)
    return body
