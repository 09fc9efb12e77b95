"""Convolutions place by place of the filter: the entries that each place reads are multiplied directly, or gathered first.

``O(h,w,f) = I(h+p,w+q,c) * F(p,q,c,f)``: for each (p, q) what is stored of I is multiplied with the matrix F(p,q,:,:) and added to O.
With loops over the filter inside those over outputs, each output goes through the whole filter instead, which caches cannot hold where
there are many channels. What is stored may go into a workspace first, over the outputs (h, w) that it belongs to and the channels c
(gather, matrix product, scatter): either a list of the entries (a rulebook with values), or a dense array, whose rows of channels BLAS
multiplies.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..notation.nodes import Access
from ..schedule import directives as d
from ..schedule.factors import flatten, product_factors
from ..views import View
from .conversions import root_loops
from .situation import Situation, Structure, precompute_over, result_leaf

GATHER = "gather"


def gathers(start: Structure, situation: Situation) -> Iterator[Structure]:
    """Yield a product's nests with places of the filter outermost: reading in place, gathered in a list, gathered in rows for BLAS.
    There are none unless a filter of several channels meets a stored operand."""
    _, leaf = result_leaf(start.program)
    factors, loops, left = product_factors(flatten(leaf.value)), root_loops(start.program), leaf.target.indices
    for access in (factor for factor in factors if isinstance(factor, Access)):
        form = situation.formats.get(access.tensor)
        if not isinstance(form, View) or form.stored.is_dense:
            continue
        names = [part.index for part in access.subscripts]
        summed = [[names[mode] for mode, _ in part.terms] for part in form.subscripts if not part.is_plain]
        places = {index for terms in summed for index in terms if index not in left}
        outputs = {index for terms in summed for index in terms if index in left}
        channels = {index for index in names if index not in {*places, *left}}
        rest = [loop for loop in loops if loop not in names]
        if not (places and outputs and channels and set(rest) & set(left)):
            continue
        inner = [*(loop for loop in loops if loop in outputs), *(loop for loop in loops if loop in channels)]
        outer = [loop for loop in loops if loop not in {*places, *inner, *rest}]
        order = d.Reorder((*outer, *(loop for loop in loops if loop in places), *inner, *rest))
        together = precompute_over([access], inner, start.program, situation, 1)
        listed = d.WorkspaceDirective(together.workspace, "list")
        ways = ((order,), (order, together, listed), *(((order, together),) if situation.blas else ()))
        found = (start.then(situation, *way, origin=GATHER) for way in ways)
        yield from (structure for structure in found if structure is not None)
