"""Integer expressions of a loop's body as linear forms of the loop variable, which say at which places the lanes of a vector are."""

from __future__ import annotations

from ..ir.nodes import I64, Binary, Cast, Const, Value, Var
from ..ir.rewrite import mentions, substitute
from .folding import simplify_expression
from .plan import Plan

ZERO = Const(0, I64)


class LinearForms:
    """What the expressions of one chunk are in its lanes.

    Attributes:
        inlined: integers that are linear in the loop variable, of which no variable is made, by the names of their locals.
        renamed: what stands for a local in this chunk, by the local's name.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.inlined: dict[str, Value] = {}
        self.renamed: dict[str, Value] = {}

    def uniform(self, expr: Value) -> bool:
        """Return whether an expression has the same value in all lanes."""
        return not mentions(expr, self.plan.varying)

    def same(self, expr: Value) -> Value:
        """Return an expression that all lanes share, by the names that the chunk has for its locals."""
        return substitute(expr, self.renamed)

    def inline(self, variable: Var, form: tuple[Value, int]) -> None:
        """Let a local be u + c * loop variable from here on, for a form (u, c)."""
        uniform, scale = form
        self.inlined[variable.name] = plus(uniform, Binary("*", self.plan.variable, Const(scale, I64), I64))

    def linear(self, expr: Value) -> tuple[Value, int] | None:
        """Return (u, c) such that an integer expression is u + c * loop variable, u the same in all lanes; None: there is no such form."""
        if isinstance(expr, Var) and expr.name in self.inlined:
            expr = self.inlined[expr.name]
        if self.uniform(expr):
            return self.same(expr), 0
        match expr:
            case Var(name) if name == self.plan.variable.name:
                return ZERO, 1
            case Binary("+" | "-" as op, left, right, _):
                return self._sum(op, left, right)
            case Binary("*", left, Const(factor), _) | Binary("*", Const(factor), left, _):
                return self._multiple(left, int(factor))
            case Cast(operand, kind) if not kind.is_float and not operand.type.is_float:
                return self.linear(operand)
        return None

    def _sum(self, op: str, left: Value, right: Value) -> tuple[Value, int] | None:
        first, second = self.linear(left), self.linear(right)
        if first is None or second is None:
            return None
        scale = first[1] + second[1] if op == "+" else first[1] - second[1]
        return simplify_expression(Binary(op, first[0], second[0], I64)), scale

    def _multiple(self, expr: Value, factor: int) -> tuple[Value, int] | None:
        form = self.linear(expr)
        return form and (simplify_expression(Binary("*", form[0], Const(factor, I64), I64)), form[1] * factor)


def plus(left: Value, right: Value) -> Value:
    """Return the sum of two places."""
    return simplify_expression(Binary("+", left, right, I64))
