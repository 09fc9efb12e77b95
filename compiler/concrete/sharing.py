"""Results that have exactly the pattern of an operand, and so can use its index arrays as their own.

SDDMM, TTV, TTM and scalings of a sparse tensor belong here (Senanayake et al., section 4, name them as the special case
in which a sparse result can be written in any order, also in parallel).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from ..format import Format
from ..notation.nodes import Access, Div, Expr, accesses, transform_expression, walk_expression
from .annihilation import Patterns
from .lattice import EVERYWHERE, Domain, Stored
from .nodes import Forall, Stmt, assignments, reads, statements_around
from .provenance import Provenance


def shared_operand(target: Access, result: Format, value: Expr, formats: Mapping[str, Format]) -> Access | None:
    """Return the operand whose leading levels are those of a sparse result, or None.

    The result's levels are the operand's first levels over the same indices, then dense levels over indices that the
    operand does not have. The value has an entry where the operand has one, so no coordinate is lost; what the operand stores
    below the shared levels is summed.
    """
    if result.is_dense:
        return None
    match entries(value, formats):
        case Stored(operand):
            pass
        case _:
            return None
    form = formats[operand.tensor]
    shared = shared_levels(target, result, operand, form) if form.in_memory is form else 0
    if shared == 0 or len(set(operand.indices)) != len(operand.subscripts):
        return None
    rest = result.levels[shared:]
    if any(not kind.full for kind in rest):
        return None
    if any(target.subscripts[mode].index in operand.indices for mode in result.order[shared:]):
        return None
    return operand if _complete_fibres(form, shared) else None


def shared_pattern(statement: Stmt, graph: Provenance, target: Access, form: Format, formats: Mapping[str, Format]) -> Access | None:
    """Return the operand whose pattern is that of a sparse result, if one assignment writes it where the operand's place is known.

    Args:
        statement: the program's; workspaces that one assignment fills are looked through.
        graph: its provenance.
        target: the left side.
        form: the format that is asked for.
        formats: of the operands, as they are read.
    """
    path = statements_around(statement, target.tensor)
    written: dict[str, Expr] = {}
    for assign in assignments(statement):
        if assign.target.tensor in written or assign.target.tensor in formats:
            return None
        written[assign.target.tensor] = assign.value
    if path is None or form.is_dense:
        return None
    value = written[target.tensor]
    for _ in range(len(written)):
        value = transform_expression(value, lambda node: written.get(node.tensor) if isinstance(node, Access) else None)
    operand = shared_operand(target, form, value, formats)
    if operand is None:
        return None
    loops = [node for node in path if isinstance(node, Forall)]
    known = graph.known_after([node.index for node in loops])
    last = loops[max(known[name] for name in operand.indices if name in target.indices)]
    shared = _last_stored(operand, formats[operand.tensor], target)
    placed = (*reads(last), *(_gone_through(last.index, graph) if shared in graph.originals(last.index) else ()))
    return operand if replace(operand, protocols=()) in (replace(read, protocols=()) for read in placed) else None


def _last_stored(operand: Access, form: Format, target: Access) -> str:
    """Return the index of the last level with coordinates that the result shares; its positions tell those of the levels above."""
    indices = ((operand.subscripts[mode].index, kind) for mode, kind in zip(form.order, form.levels, strict=True))
    *_, last = (index for index, kind in indices if not kind.full and index in target.indices)
    return last


def _gone_through(loop: str, graph: Provenance) -> Iterator[Access]:
    """Yield the operand all of whose positions a loop goes through, even if nothing in the loop reads it."""
    if graph.space(loop) == "position" and (whole := graph.position_relation(loop)).position == loop:
        yield whole.access


def shared_levels(target: Access, result: Format, operand: Access, form: Format) -> int:
    """Return how many leading levels of result and operand have the same kind and the same index."""
    count = 0
    for own, other in zip(range(len(result)), range(len(form)), strict=False):
        same_index = target.subscripts[result.order[own]] == operand.subscripts[form.order[other]]
        if not same_index or result.levels[own] is not form.levels[other]:
            break
        count += 1
    return count


def denominators(value: Expr) -> tuple[Access, ...]:
    """Return the accesses that an expression divides by."""
    return tuple(access for node in walk_expression(value) if isinstance(node, Div) for access in accesses(node.denominator))


def entries(value: Expr, formats: Mapping[str, Format]) -> Domain:
    """Return where an expression that is not complete has a value, from where its stored operands have an entry."""
    return _entries(value, frozenset(access.tensor for access in accesses(value) if formats[access.tensor].is_dense))


@lru_cache(256)
def _entries(value: Expr, dense: frozenset[str]) -> Domain:
    """Return where an expression has a value; asked of one expression for each of its schedules."""
    return Patterns(lambda access: EVERYWHERE if access.tensor in dense else Stored(access)).expression(value)


def _complete_fibres(form: Format, shared: int) -> bool:
    """Whether every position of the last shared level has something below it, and is a stored entry of the result."""
    last = form.levels[shared - 1]
    if not form.unique(shared - 1) or last.holes:
        return False
    if shared == len(form):
        return True
    below = form.levels[shared]
    return below.full or not last.full
