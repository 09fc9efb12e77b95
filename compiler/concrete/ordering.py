"""Loop orders that suit the storage of the operands.

The default order is the stable topological order of the storage orders of the sparse operands, left to right, then the
indices of the left side, then the rest. An operand whose order contradicts those before it is converted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise

from ..format import Format
from ..frozen import frozen
from ..notation.nodes import Access


@frozen
class LoopOrder:
    """Loops, outermost first, and the accesses that cannot be read in that order: (access, suitable format)."""

    loops: tuple[str, ...]
    conversions: tuple[tuple[Access, Format], ...]


def storage_order(access: Access, form: Format) -> tuple[str, ...]:
    """Return the indices of an access in the order in which its levels store them, without repeats."""
    return tuple(dict.fromkeys(access.subscripts[mode].index for mode in form.order))


def is_sparse(form: Format) -> bool:
    """Return whether a format has a level that stores coordinates."""
    return not form.is_dense


def default_order(accesses: Sequence[Access], formats: Mapping[str, Format], left: Sequence[str], rest: Sequence[str]) -> LoopOrder:
    """Order the loops of one term.

    Args:
        accesses: the operands in written order.
        formats: the format of every tensor.
        left: the indices of the result, in the order in which they should come.
        rest: every index of the term.
    """
    after: dict[str, set[str]] = {}
    contradicting = []
    for access in dict.fromkeys(accesses):
        form = formats[access.tensor]
        if not is_sparse(form):
            continue
        order = storage_order(access, form)
        if any(_reaches(after, later, earlier) for earlier, later in combinations(order, 2)):
            contradicting.append(access)
            continue
        for earlier, later in pairwise(order):
            after.setdefault(earlier, set()).add(later)
    sparse = [(access, formats[access.tensor]) for access in accesses if is_sparse(formats[access.tensor])]
    sparse_first = [name for access, form in sparse for name in storage_order(access, form)]
    loops = _topological(after, tuple(dict.fromkeys([*sparse_first, *left, *rest])))
    conversions = tuple((access, suited(access, formats[access.tensor], loops)) for access in contradicting)
    return LoopOrder(loops, conversions)


def suited(access: Access, form: Format, loops: Sequence[str]) -> Format:
    """Return a format like the given one whose levels follow a loop order; hashed and singleton levels become compressed."""
    return form.following([loops.index(subscript.index) for subscript in access.subscripts])


def _reaches(after: Mapping[str, set[str]], start: str, goal: str) -> bool:
    pending, seen = [start], set()
    while pending:
        name = pending.pop()
        if name == goal:
            return True
        if name not in seen:
            seen.add(name)
            pending.extend(after.get(name, ()))
    return False


def _topological(after: Mapping[str, set[str]], preferred: tuple[str, ...]) -> tuple[str, ...]:
    """Return ``preferred`` reordered as little as possible so that every index comes before those ``after`` it."""
    order: list[str] = []
    pending = list(preferred)
    while pending:
        ready = next(name for name in pending if not any(name in after.get(other, ()) for other in pending if other != name))
        order.append(ready)
        pending.remove(ready)
    return tuple(order)
