"""Simplification of expressions whose operands have their fill value: annihilation and identities of the operators.

The abstract interpretation asks which statements remain when a stepped operand has no entry. The answer comes from the
operators and fill values, not from the letters + and * (Ahrens et al., section 5.5; DESIGN 4.5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from math import inf

from ...compiler.concrete.nodes import Assign, Block, Forall, Stmt, Where, reads, targets, transform, walk
from ...compiler.errors import ExpressionError
from ...compiler.format import Format
from ...compiler.frozen import frozen
from ...compiler.notation.nodes import (
    Access,
    Add,
    Assignment,
    Div,
    Expr,
    Literal,
    Mul,
    Neg,
    accesses,
    transform_expression,
    walk_expression,
)
from ...compiler.notation.terms import terms

Number = int | float

_IDENTITY: dict[str, Number] = {"+": 0, "*": 1, "min": inf, "max": -inf, "or": False, "and": True}
_ABSORBING: dict[str, Number] = {"*": 0, "min": -inf, "max": inf, "or": True, "and": False}


@frozen
class Untouched(Stmt):
    """Stands in the place of writes to workspaces that do not happen: the workspaces exist and hold fill values."""

    tensors: tuple[str, ...]


def written(statement: Stmt) -> tuple[str, ...]:
    """Return the tensors that a statement writes, and those that it leaves at their fill values."""
    untouched = (name for node in walk(statement) if isinstance(node, Untouched) for name in node.tensors)
    return tuple(dict.fromkeys((*targets(statement), *untouched)))


def _never(denominator: Expr) -> bool:
    return False


def quotients_everywhere(assignment: Assignment, formats: Mapping[str, Format]) -> Callable[[Expr], bool]:
    """Return a test of denominators: whether the compiler computes a quotient by one at every coordinate.

    It does where the denominator may not be stored, and for every quotient if a dense result has one in a term that is not summed
    (``compiler.concrete.annihilation``).
    """
    free = frozenset(assignment.target.indices)
    whole = (term.value for term in terms(assignment.value, free) if not term.reduced)
    divides = any(isinstance(node, Div) for value in whole for node in walk_expression(value))
    complete = formats[assignment.target.tensor].is_dense and divides
    dense = frozenset(name for name, form in formats.items() if form.is_dense)
    return lambda denominator: complete or not dense.issuperset(access.tensor for access in accesses(denominator))


@frozen
class Algebra:
    """The semiring, and the fill values of tensors where they differ from the identity of its add.

    Attributes:
        add, multiply: "+", "*", "min", "max", "and" or "or".
        fills: tensor name to fill value.
        looks_ahead: True: a statement that reads a workspace which is not filled is simplified at once, as in the compiler. False: it
            is executed and finds nothing, as in the paper.
        everywhere: tells of a denominator whether its quotient is computed even where the numerator is zero, as in the compiler
            (``quotients_everywhere``); in the paper a zero numerator always annihilates.
    """

    add: str = "+"
    multiply: str = "*"
    fills: Mapping[str, Number] = field(default_factory=dict)
    looks_ahead: bool = False
    everywhere: Callable[[Expr], bool] = _never

    def __post_init__(self) -> None:
        for operator in (self.add, self.multiply):
            if operator not in _IDENTITY:
                raise ExpressionError(f"unknown operator {operator!r}; operators are {', '.join(_IDENTITY)}")

    @property
    def zero(self) -> Number:
        """The fill value of every tensor without another one: it is skipped in sums and annihilates products."""
        return _IDENTITY[self.add]

    def fill(self, tensor: str) -> Literal:
        """Return the fill value of a tensor, as a constant of expressions."""
        return Literal(self.fills.get(tensor, self.zero))

    def simplified(self, value: Expr) -> Expr:
        """Return an expression with constants folded; it is a Literal if no operand is left."""
        if not value.children:
            return value
        value = value.rebuild(tuple(map(self.simplified, value.children)))
        match value:
            case Add(operands):
                return self._folded(Add, operands, self.zero, _ABSORBING.get(self.add))
            case Mul(operands):
                absorbing = {self.zero, _ABSORBING.get(self.multiply, self.zero)}
                found = next((operand for operand in operands if isinstance(operand, Literal) and operand.value in absorbing), None)
                return found or self._folded(Mul, operands, _IDENTITY[self.multiply], None)
            case Neg(Literal(number)):
                return Literal(-number)
            case Div(Literal(number), denominator) if number == self.zero and not isinstance(denominator, Literal):
                return value if self.everywhere(denominator) else Literal(number)
            case _:
                return value

    def _folded(self, kind: type[Add] | type[Mul], operands: tuple[Expr, ...], identity: Number, absorbing: Number | None) -> Expr:
        kept = tuple(operand for operand in operands if not (isinstance(operand, Literal) and operand.value == identity))
        if absorbing is not None and any(isinstance(operand, Literal) and operand.value == absorbing for operand in kept):
            return Literal(absorbing)
        if not kept:
            return Literal(identity)
        return kept[0] if len(kept) == 1 else kind(kept)

    def without(self, statement: Stmt, absent: Callable[[Access], bool]) -> Stmt:
        """Return a statement in which some reads have their fill values."""

        def filled(value: Expr) -> Expr | None:
            return self.fill(value.tensor) if isinstance(value, Access) and absent(value) else None

        def rule(node: Stmt) -> Stmt | None:
            return Assign(node.target, node.operator, transform_expression(node.value, filled)) if isinstance(node, Assign) else None

        return transform(statement, rule)

    def live(self, statement: Stmt) -> Stmt | None:
        """Return what remains to be executed of a statement; None if nothing does.

        Where statements and blocks keep their number of parts: a part that does nothing becomes ``Untouched``, with the workspaces that
        keep their fill values. A workspace that nothing reads is not computed.
        """
        match statement:
            case Assign(target, operator, value):
                simple = self.simplified(value)
                unchanged = self.zero if operator == "+=" else self.fill(target.tensor).value
                return None if isinstance(simple, Literal) and simple.value == unchanged else Assign(target, operator, simple)
            case Forall(_, body):
                inner = self.live(body)
                return None if inner is None else statement.rebuild((inner,))
            case Where(consumer, producer):
                reader = self.live(consumer)
                if reader is None:
                    return None
                names = written(producer)
                read = {access.tensor for access in reads(reader)}.intersection(names)
                made = self.live(producer) if read else None
                if self.looks_ahead and (unfilled := read.difference(() if made is None else targets(made))):
                    reader = self.live(self.without(reader, lambda access: access.tensor in unfilled))
                    if reader is None:
                        return None
                return Where(reader, _mentioning(names, made))
            case Block(statements):
                left = tuple(self.live(inner) or Untouched(()) for inner in statements)
                return None if all(isinstance(inner, Untouched) for inner in left) else Block(left)
            case Untouched():
                return statement
            case _:
                raise TypeError(f"cannot simplify {type(statement).__name__}")


def _mentioning(names: tuple[str, ...], producer: Stmt | None) -> Stmt:
    """Return a simplified producer, with an ``Untouched`` behind it for the workspaces that it does not write any more."""
    if producer is None:
        return Untouched(names)
    missing = tuple(name for name in names if name not in written(producer))
    if not missing:
        return producer
    statements = producer.statements if isinstance(producer, Block) else (producer,)
    return Block((*statements, Untouched(missing)))
