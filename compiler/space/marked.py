"""Fibres that meet many others are marked once: ``C(i,j) = M(i,j) * A(i,k) * B(k,j)`` merges row i of M with row k of B for every k.

Row i may go into a workspace first, once for all k: values over the whole range with marks, and a list of the entries, by which the marks
are cleared. Each entry of row k is then looked up there: row i is not gone through again for every k, and no coordinates are compared,
whose order no processor foresees.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..notation.nodes import Access, index_subscript
from ..schedule import directives as d
from ..schedule.addresses import enclosing_loops, leaves
from ..schedule.factors import flatten, product_factors
from .situation import Situation, Structure, precompute_over

MARKED = "marked"


def marked(start: Structure, situation: Situation) -> Iterator[Structure]:
    """Yield nests with one stored factor marked, which another meets in an innermost loop inside loops that do not move the first."""
    statement, stored = start.program.statement, situation.stored(start.program)
    for address, leaf in leaves(statement):
        loops = enclosing_loops(statement, address)
        factors = [factor for factor in product_factors(flatten(leaf.value)) if isinstance(factor, Access) and factor in stored]
        met = [access for access in factors if loops[-1] in access.indices]
        for access in met if len(met) > 1 else ():
            if access.is_plain and not set(loops[-2:-1]) <= set(access.indices):
                moved = precompute_over([access], loops[-1:], start.program, situation, 1)
                row = Access(moved.workspace, (index_subscript(loops[-1]),))
                steps = (moved, d.WorkspaceDirective(moved.workspace, "list"), d.ProtocolDirective(row, ("locate",)))
                found = start.then(situation, *steps, origin=MARKED)
                if found is not None:
                    yield found
