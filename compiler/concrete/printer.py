"""Concrete index notation as text, on one line or as an indented loop nest."""

from __future__ import annotations

from collections.abc import Callable

from ..notation.nodes import Access, Expr, transform_expression
from ..notation.printer import show
from ..units import LANES, REGISTERS
from .loop_tag import LoopTag
from .nodes import Assign, Block, Forall, Stmt, Unless, Where, transform


def show_statement(statement: Stmt) -> str:
    """Return one line, such as ``forall(i) ((forall(k) A(i,k) = w(k)) where (forall(j) forall(k) w(k) += B(i,j) * C(j,k)))``."""
    match statement:
        case Assign(target, operator, value):
            return f"{show(target)} {operator} {show(value)}"
        case Forall(index, body, _):
            return f"forall({index}) {show_statement(body)}"
        case Where(consumer, producer):
            return f"({show_statement(consumer)} where {show_statement(producer)})"
        case Unless(first, second, body):
            return f"unless {first} = {second}: {show_statement(body)}"
        case Block(statements):
            return "{" + "; ".join(show_statement(part) for part in statements) + "}"
        case _:
            raise TypeError(f"no printer for {type(statement).__name__}")


def loop_nest(statement: Stmt, written: Callable[[Access], Access] | None = None) -> str:
    """Return an indented listing, one line a loop or assignment; ``where`` lists the producer first, as it runs.

    ``written`` gives accesses as the user wrote them.
    """
    return _listing(statement if written is None else _rewritten(statement, written), 0)


def _rewritten(statement: Stmt, written: Callable[[Access], Access]) -> Stmt:
    def rule(node: Expr) -> Expr | None:
        return written(node) if isinstance(node, Access) else None

    def assign(node: Stmt) -> Stmt | None:
        return Assign(node.target, node.operator, transform_expression(node.value, rule)) if isinstance(node, Assign) else None

    return transform(statement, assign)


def _listing(statement: Stmt, depth: int) -> str:
    pad = "  " * depth
    match statement:
        case Assign():
            return f"{pad}{show_statement(statement)}"
        case Forall(index, body, tag):
            return f"{pad}for {index}{_tag(tag)}:\n{_listing(body, depth + 1)}"
        case Where(consumer, producer):
            return f"{pad}produce:\n{_listing(producer, depth + 1)}\n{pad}consume:\n{_listing(consumer, depth + 1)}"
        case Unless(first, second, body):
            return f"{pad}unless {first} = {second}:\n{_listing(body, depth + 1)}"
        case Block(statements):
            return "\n".join(_listing(part, depth) for part in statements)
        case _:
            raise TypeError(f"no printer for {type(statement).__name__}")


def _tag(tag: LoopTag) -> str:
    words = [word for word in (tag.unit, tag.race, tag.merge, tag.routine) if word]
    if tag.chunking in (LANES, REGISTERS):
        words.append(f"{tag.chunk} {tag.chunking}")
    else:
        words += [tag.chunking] if tag.chunking else []
        words += [f"chunk {tag.chunk}"] if tag.chunk else []
    words += [f"unroll {tag.unroll}"] if tag.unroll else []
    words += [f"prefetch {show(operand)} {distance} ahead" for operand, distance in tag.prefetch]
    return f"  [{', '.join(words)}]" if words else ""
