"""Statements that run one after another: splits where statements and blocks into the order of execution, and builds them again.

Nested where statements and blocks without loops in between are one sequence, producers before consumers. The nesting
only says how long each workspace lives.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..concrete.nodes import Assign, Block, Forall, Stmt, Where, reads


def sequence(statement: Stmt) -> tuple[Stmt, ...]:
    """Return the loops and assignments that a statement runs one after another."""
    match statement:
        case Where(consumer, producer):
            return (*sequence(producer), *sequence(consumer))
        case Block(statements):
            return tuple(part for inner in statements for part in sequence(inner))
        case _:
            return (statement,)


def written(statement: Stmt) -> frozenset[str]:
    """Return the tensors that a statement writes, without its own workspaces."""
    match statement:
        case Assign(target, _, _):
            return frozenset({target.tensor})
        case Where(consumer, producer):
            return written(consumer) - written(producer)
        case _:
            return frozenset().union(*map(written, statement.children))


def read(statement: Stmt) -> frozenset[str]:
    """Return the tensors that a statement reads, including its own workspaces."""
    return frozenset(access.tensor for access in reads(statement))


def arranged(statements: Sequence[Stmt], kept: Collection[str]) -> Stmt:
    """Return one statement that runs others in order; each workspace lives as short as possible.

    Args:
        statements: in order of execution, each a loop or an assignment.
        kept: tensors that are read after all of them, or also written elsewhere.
    """
    first = statements[0]
    if len(statements) == 1:
        return first
    made = written(first)
    if made & frozenset(kept):
        rest = arranged(statements[1:], kept)
        return Block((first, *(rest.statements if isinstance(rest, Block) else (rest,))))
    end = 1 + max(place for place, other in enumerate(statements) if made & written(other))
    producer = first if end == 1 else Block(tuple(statements[:end]))
    return Where(arranged(statements[end:], kept), producer)


def depends(statement: Stmt, earlier: Stmt) -> bool:
    """Return whether a statement reads what an earlier one writes."""
    return not read(statement).isdisjoint(written(earlier))


def is_loop(statement: Stmt, index: str) -> bool:
    """Return whether a statement is the loop over an index."""
    return isinstance(statement, Forall) and statement.index == index
