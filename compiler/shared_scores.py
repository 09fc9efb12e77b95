"""Computes a product that occurs several times in expressions once, if it has a value for each entry of a sparse operand and that pays.

Scores of a graph attention layer are such products: ``A(i,j) * exp(u(i) + v(j))`` occurs in the sum by which scores are divided, and in
the sum over neighbours. A new expression computes the product, and is put before the first one that reads it; its result is not returned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .format import Format, parse_format
from .fresh import numbered
from .frozen import frozen
from .notation.common_products import Common, Use, common_products, replaced
from .notation.nodes import Access, Apply, Assignment, Div, Expr, Mul, accesses, indices, walk_expression
from .notation.printer import show_assignment
from .shown import is_word
from .storage.tensor import Tensor

PRICES = {"exp": 8, "log": 8, "tanh": 12, "sigmoid": 12, "pow": 16, "sqrt": 4, "/": 4}
"""Cost of functions and of division, in products; other operations cost one product."""

KEEPING = 4
"""Cost of storing a value for an entry and reading it again, in products."""

LEAST_SAVED = 20_000
"""Least products that must be saved: calling one more kernel takes as long."""


class Known(NamedTuple):
    """What the choice depends on in an operand. The format of an ndarray is None, and its ``entries`` are 0."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    format: Format | None = None
    entries: int = 0


@frozen
class Shared:
    """Expressions in which each shared product has a name, and the formats of the new results."""

    texts: tuple[str, ...]
    formats: tuple[tuple[str, Format], ...]


def may_have_scores(assignments: Sequence[Assignment], untold: frozenset[str]) -> bool:
    """Return whether something might be shared; the operands are not known yet.

    Args:
        untold: the results whose expressions may be rewritten, because no option says how they are to be computed.
    """
    names = dict.fromkeys(access.tensor for one in assignments for access in accesses(one.value) if len(access.subscripts) > 1)
    found = (common for name in names for common in common_products(assignments, frozenset((name,))))
    return any(len(_uses(common, assignments, untold)) > 1 for common in found)


def known_operands(operands: Mapping[str, Any]) -> tuple[Known, ...] | None:
    """Return what the choice depends on in operands; None if one is neither an ndarray nor a ``Tensor`` with fill value 0."""
    found = list[Known]()
    for name, data in operands.items():
        if type(data) is Tensor and data.fill_value == 0:
            found.append(Known(name, data.dtype, data.shape, data.format, data.values.size))
        elif isinstance(data, (np.ndarray, np.generic)):
            found.append(Known(name, data.dtype, data.shape))
        elif type(data) is not float:
            return None
    return tuple(found)


def with_scores(
    assignments: tuple[Assignment, ...], untold: frozenset[str], formats: Mapping[str, Any], operands: Sequence[Known]
) -> Shared | None:
    """Return the expressions rewritten so that shared products are computed once; None if that does not pay.

    Args:
        untold: as for ``may_have_scores``.
        formats: the requested formats, by result.
        operands: the given operands.
    """
    if len({known.dtype for known in operands}) > 1 or any(known.dtype.kind != "f" for known in operands):
        return None  # a shared product could have another type than in one of the expressions
    given = {known.name: known for known in operands}
    told = {name: form for name, form in formats.items() if form is not None and not is_word(form, "dense")}
    new, taken = dict[str, Format](), {*given, *(one.target.tensor for one in assignments)}
    written = assignments
    while True:
        stored = frozenset({*told, *(known.name for known in operands if known.format is not None and not known.format.is_dense)})
        judged = list[tuple[float, Common]]()
        for common in common_products(assignments, stored):
            if uses := _uses(common, assignments, untold):
                judged.append((_saved(common, uses, _maker(common, uses, assignments, told, given), given), common))
        saved, best = max(judged, key=lambda pair: pair[0], default=(0.0, None))
        if best is None or saved < LEAST_SAVED:
            break
        uses = _uses(best, assignments, untold)
        maker = _maker(best, uses, assignments, told, given)
        name = assignments[maker].target.tensor if maker is not None else numbered("shared", taken)
        assignments = _with_one(assignments, best, uses, maker, name)
        if maker is None:
            form = given[best.base.tensor].format
            assert form is not None
            told[name] = new[name] = form
            taken.add(name)
    return Shared(tuple(map(show_assignment, assignments)), tuple(new.items())) if assignments is not written else None


def _uses(common: Common, assignments: Sequence[Assignment], untold: frozenset[str]) -> list[Use]:
    return [use for use in common.uses if assignments[use.number].target.tensor in untold]


def _maker(
    common: Common, uses: Sequence[Use], assignments: Sequence[Assignment], told: Mapping[str, Any], given: Mapping[str, Known]
) -> int | None:
    """Return the first expression that reads a product if it computes nothing else, and its result has the right format; else None."""
    use, operand = uses[0], given.get(common.base.tensor)
    target = assignments[use.number].target
    if operand is None or not use.is_all or target.subscripts != use.base.subscripts or assignments[use.number].operator != "=":
        return None
    form = told.get(target.tensor)
    return use.number if form is not None and parse_format(form, len(target.subscripts)) == operand.format else None


def _saved(common: Common, uses: Sequence[Use], maker: int | None, given: Mapping[str, Known]) -> float:
    """Return how many products are saved by computing a shared product once."""
    operand = given.get(common.base.tensor)
    if operand is None or common.is_made or operand.format is None or not _holds_patterns(operand.format):
        return 0
    own, whole = common.base.indices, Mul((common.base, *common.factors))
    extents = _extents(accesses(whole), given)
    if extents is None:
        return 0

    def price(node: Expr) -> float:
        each = PRICES.get(node.function if isinstance(node, Apply) else "/" if isinstance(node, Div) else "", 1)
        return each * max(1, len(node.children) - 1) * math.prod(extents.get(name, 1) for name in indices(node) if name not in own)

    work = sum(price(node) for node in walk_expression(whole) if node.children)
    again = len(uses) - 1
    return operand.entries * (again * work - (KEEPING if maker is None else 0))


def _holds_patterns(form: Format) -> bool:
    """Whether a result can share the pattern of an operand in this format."""
    kinds = [str(kind) for kind in form.levels]
    return form.plain is form and {*kinds} <= {"dense", "compressed"} and kinds[-1] == "compressed"


def _extents(read: Sequence[Access], given: Mapping[str, Known]) -> dict[str, int] | None:
    """Return the extents of indices that the given operands determine; None if operands disagree."""
    found = dict[str, int]()
    for access in read:
        if (operand := given.get(access.tensor)) is None:
            continue
        if len(operand.shape) != len(access.subscripts):
            return None
        for subscript, extent in zip(access.subscripts, operand.shape, strict=True):
            if subscript.is_index and found.setdefault(subscript.index, extent) != extent:
                return None
    return found


def _with_one(
    assignments: Sequence[Assignment], common: Common, uses: Sequence[Use], maker: int | None, name: str
) -> tuple[Assignment, ...]:
    """Return the expressions with a product replaced by a name, and with a new expression that computes it unless one does already."""
    changed = list(assignments)
    for use in uses:
        if use.number != maker:
            one = changed[use.number]
            value = replaced(one.value, use.path, use.places, replace(use.base, tensor=name))
            changed[use.number] = Assignment(one.target, one.operator, value)
    if maker is None:
        changed.insert(uses[0].number, Assignment(replace(common.base, tensor=name), "=", Mul((common.base, *common.factors))))
    return tuple(changed)
