"""Quotients where not everything is stored (DESIGN 4.5: IEEE meaning over the full index space).

What is not stored is zero. 0 / x is skipped, so a quotient has the pattern of its numerator; but 0 / 0 is NaN, so it is also an
entry wherever the denominator is not stored. That a stored denominator may itself be zero below a numerator that is not stored
is looked at only where this costs nothing: in dense results whose every component is one quotient.
"""

from __future__ import annotations

from ..concrete.nodes import Assign
from ..notation.constants import constant_value, makes_nan
from ..notation.nodes import Access, Add, Div, Expr, Mul, Neg, indices
from .context import Context
from .scope import Scope


def skips(context: Context, scope: Scope, statement: Assign, denominator: Expr) -> bool:
    """Return whether a quotient in an assignment may be skipped wherever its numerator is not stored, from here on inwards."""
    if constant_value(denominator) is not None:
        return not makes_nan(denominator)
    return not _is_complete(context, scope, statement) and _stored(context, scope, denominator)


def _is_complete(context: Context, scope: Scope, statement: Assign) -> bool:
    """Whether an assignment visits each component of a dense result once, so that visiting all of them costs nothing more."""
    dense = context.assembly is None and context.shares is None and statement.target.tensor == context.result.tensor
    around = {original for index in scope.loops for original in context.graph.originals(index)}  # of what is gone from the value, too
    return dense and around | set(indices(statement.value)) <= set(statement.target.indices)


def _stored(context: Context, scope: Scope, value: Expr) -> bool:
    """Whether a value is stored at all coordinates that are not known yet."""
    match value:
        case Access(tensor, subscripts) if tensor in context.workspaces and (not subscripts or tensor not in context.stored):
            # a scalar, or filled further inside: as stored as what fills it
            return any(_stored(context, scope, write.value) for write in context.writes(tensor))
        case Access():
            known = value not in scope.absent and value not in scope.doubtful
            return known and _is_resolved(context, scope, value)
        case Add(operands):
            return any(_stored(context, scope, operand) for operand in operands)
        case Mul(operands):
            return all(_stored(context, scope, operand) for operand in operands)
        case Neg(operand) | Div(operand, _):
            return _stored(context, scope, operand)
        case _:
            return True


def _is_resolved(context: Context, scope: Scope, access: Access) -> bool:
    levels = context.storage(access).levels[scope.place(access).depth :]
    return not any(level.steps for level in levels)
