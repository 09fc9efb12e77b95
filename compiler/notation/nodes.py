"""Index notation: the expressions that a user writes, as small frozen values.

Sums and products are n-ary and keep the written order. A difference is a sum with a negated operand. Spans are ignored by
comparisons, so that equal expressions at different places of a text are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field

from ..format import Format
from ..frozen import frozen
from ..kept import Kept
from ..source import Span


@frozen
class Affine:
    """A subscript ``constant + sum of coefficient * index``; ``terms`` keeps the written order, no index twice."""

    terms: tuple[tuple[str, int], ...]
    constant: int = 0

    @Kept
    def is_index(self) -> bool:
        """Whether the subscript is one plain index."""
        return self.constant == 0 and len(self.terms) == 1 and self.terms[0][1] == 1

    @Kept
    def index(self) -> str:
        """The plain index; only for subscripts where ``is_index`` holds."""
        assert self.is_index, f"{self} is not a plain index"
        return self.terms[0][0]

    @Kept
    def indices(self) -> tuple[str, ...]:
        """Return the indices of the subscript in written order."""
        return tuple(name for name, _ in self.terms)

    def __str__(self) -> str:
        text = ""
        for name, coefficient in self.terms:
            sign = "-" if coefficient < 0 else "+"
            size = abs(coefficient)
            body = name if size == 1 else f"{size}*{name}"
            text += (f" {sign} " if text else ("-" if sign == "-" else "")) + body
        if self.constant or not text:
            sign = "-" if self.constant < 0 else "+"
            text += f" {sign} {abs(self.constant)}" if text else str(self.constant)
        return text


def index_subscript(name: str) -> Affine:
    """Return the subscript that is the index ``name`` alone."""
    return Affine(((name, 1),))


@frozen
class Expr:
    """An expression; every node may keep its place in the source text."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)

    @Kept
    def children(self) -> tuple[Expr, ...]:
        """The expressions directly in this one, in written order."""
        return ()

    @Kept
    def accesses(self) -> tuple[Access, ...]:
        """The accesses in the expression in written order, repeats included."""
        return tuple(node for node in walk_expression(self) if isinstance(node, Access))

    def rebuild(self, children: tuple[Expr, ...]) -> Expr:
        """Return the same node with other children."""
        assert not children
        return self

    def __getstate__(self) -> dict[str, object]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}  # other processes have other hashes


@frozen
class Literal(Expr):
    """A numeric constant; int stays int (it does not widen the result's dtype)."""

    value: int | float


@frozen
class Access(Expr):
    """A tensor read or written at subscripts: ``B(i, 2*j + 1)``.

    ``protocols`` is empty in index notation; in scheduled concrete notation it may name one protocol per mode, in the order
    in which levels store them: "step" or "locate" for reads, "append" or "insert" for writes. ``stored`` is the format of a copy that
    is made for this read alone; None: it reads the same as all other reads of the tensor.
    """

    tensor: str
    subscripts: tuple[Affine, ...] = ()
    protocols: tuple[str, ...] = ()
    stored: Format | None = None

    def __hash__(self) -> int:
        return self._hash

    @Kept
    def _hash(self) -> int:
        """The hash, computed once, since lowering looks accesses up again and again."""
        return hash((self.tensor, self.subscripts, self.protocols, self.stored))

    def has_coordinates(self, index: str, form: Format) -> bool:
        """Return whether a tensor in a format stores coordinates of an index."""
        return any(not kind.full and self.subscripts[mode].index == index for mode, kind in zip(form.order, form.levels, strict=True))

    @Kept
    def indices(self) -> tuple[str, ...]:
        """Distinct indices in order of first appearance."""
        return tuple(dict.fromkeys(name for subscript in self.subscripts for name in subscript.indices))

    @Kept
    def is_plain(self) -> bool:
        """Whether every subscript is one plain index."""
        return all(subscript.is_index for subscript in self.subscripts)


@frozen
class Neg(Expr):
    """``-operand``; a difference is a sum with one of these."""

    operand: Expr

    @Kept
    def children(self) -> tuple[Expr, ...]:
        return (self.operand,)

    def rebuild(self, children: tuple[Expr, ...]) -> Expr:
        return Neg(*children, span=self.span)


@frozen
class Add(Expr):
    """A sum of two or more operands, with the addition of the semiring."""

    operands: tuple[Expr, ...]

    @Kept
    def children(self) -> tuple[Expr, ...]:
        return self.operands

    def rebuild(self, children: tuple[Expr, ...]) -> Expr:
        return Add(children, span=self.span)


@frozen
class Mul(Expr):
    """A product of two or more operands, with the multiplication of the semiring."""

    operands: tuple[Expr, ...]

    @Kept
    def children(self) -> tuple[Expr, ...]:
        return self.operands

    def rebuild(self, children: tuple[Expr, ...]) -> Expr:
        return Mul(children, span=self.span)


@frozen
class Div(Expr):
    """A quotient in IEEE arithmetic.

    ``everywhere`` is set if the quotient has a value at all coordinates though its denominator is a constant: what is left of one
    with operands, where none of these is stored (``concrete.annihilation``).
    """

    numerator: Expr
    denominator: Expr
    everywhere: bool = False

    @Kept
    def children(self) -> tuple[Expr, ...]:
        return (self.numerator, self.denominator)

    def rebuild(self, children: tuple[Expr, ...]) -> Expr:
        numerator, denominator = children
        return Div(numerator, denominator, self.everywhere, span=self.span)


@frozen
class Apply(Expr):
    """A function of values or a comparison: ``exp(A(i,j))``, ``max(a, b)``, ``a < b``; ``notation.functions`` defines them.

    ``everywhere`` is set if the function acts on all coordinates, stored or not, because the result is dense and f(0) is not 0, or because
    one of its arguments had a value everywhere, of which a constant is left (``concrete.annihilation``).
    """

    function: str
    arguments: tuple[Expr, ...]
    everywhere: bool = False

    @Kept
    def children(self) -> tuple[Expr, ...]:
        return self.arguments

    def rebuild(self, children: tuple[Expr, ...]) -> Expr:
        return Apply(self.function, children, self.everywhere, span=self.span)


@frozen
class Sum(Expr):
    """The sum of an expression over indices that it binds, inside a larger expression.

    Users write ``sum(j, e)``, which ``notation.inner_sums`` resolves before a program is made. ``space.forms`` makes others when it moves
    sums into products."""

    over: tuple[str, ...]
    operand: Expr

    @Kept
    def children(self) -> tuple[Expr, ...]:
        return (self.operand,)

    def rebuild(self, children: tuple[Expr, ...]) -> Expr:
        return Sum(self.over, *children, span=self.span)


@frozen
class Assignment:
    """A whole statement of index notation, ``target = value`` or ``target += value``, with its source text."""

    target: Access
    operator: str  # "=" or "+="
    value: Expr
    text: str = field(default="", compare=False, repr=False)


def walk_expression(expr: Expr) -> Iterator[Expr]:
    """Yield ``expr`` and everything below it, parents first, left to right."""
    waiting = [expr]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(found.children))


def accesses(expr: Expr) -> tuple[Access, ...]:
    """Return the accesses of an expression in written order, repeats included."""
    return expr.accesses


def operation_count(expr: Expr) -> int:
    """Return how many operations an expression takes for one entry."""
    return sum(max(len(node.children) - 1, 1) for node in walk_expression(expr) if node.children)


def indices(expr: Expr) -> tuple[str, ...]:
    """Return the distinct indices of an expression in order of first appearance."""
    return tuple(dict.fromkeys(name for access in accesses(expr) for name in access.indices))


def unbound(expr: Expr) -> tuple[str, ...]:
    """Return the distinct indices of an expression that no sum inside it binds, in order of first appearance."""
    match expr:
        case Access():
            return tuple(dict.fromkeys(expr.indices))
        case Sum(over, operand):
            return tuple(name for name in unbound(operand) if name not in over)
        case _:
            return tuple(dict.fromkeys(name for child in expr.children for name in unbound(child)))


def transform_expression(expr: Expr, rule: Callable[[Expr], Expr | None]) -> Expr:
    """Rebuild ``expr`` bottom-up; ``rule`` gives a replacement for a node, or None to keep it."""
    children = tuple(transform_expression(child, rule) for child in expr.children)
    rebuilt = expr if all(a is b for a, b in zip(children, expr.children, strict=True)) else expr.rebuild(children)
    replacement = rule(rebuilt)
    return rebuilt if replacement is None else replacement
