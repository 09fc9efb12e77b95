"""Pairwise nests over stored fibres: terms go through outermost levels of a sparse operand by positions, each in a loop of its own.

What one such term passes to another has a slot for every stored fibre instead of one for all coordinates: the buffer shares the index
arrays of the operand (``workspace(w, positions)``). Loops of other terms run over coordinates as usual. Terms that would share a loop over
fibres need no such buffer; they are forests by coordinates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ...concrete.sharing import shared_levels, shared_operand
from ...format import Format
from ...fresh import fresh
from ...notation.nodes import Mul
from ...views import View
from .contraction import Contraction, Fibres
from .costs import positions
from .posynomial import Posynomial


def by_fibres(contraction: Contraction, formats: Mapping[str, Format]) -> Iterator[Contraction]:
    """Yield a contraction for every stretch of outermost levels that terms may go through by positions.

    The last of these levels has no equal coordinates below one parent, and no other sparse operand has one of the indices: operands
    that meet are gone through by coordinates. A sparse result has the pattern of these levels.

    Args:
        contraction: of coordinates.
        formats: of all tensors.
    """
    result = formats[contraction.target.tensor]
    patterned = shared_operand(contraction.target, result, Mul(contraction.operands), formats)
    for operand, chain in contraction.chains:
        access = contraction.operands[operand]
        tensor = access.tensor
        form, names = formats[tensor], tuple(contraction.indices[index] for index in chain)
        if isinstance(form, View):
            continue
        others = {index for number, own in contraction.chains if number != operand for index in own}
        for count in range(1, len(chain) + 1):
            if others.intersection(chain[:count]):
                break
            counted = Posynomial.of([((f"nnz_{tensor}_{count}",), 1)])
            fits = patterned == access and shared_levels(contraction.target, result, access, form) == count
            if (fits or result.is_dense) and form.unique(count - 1) and positions(tensor, form, names, count - 1) == counted:
                yield _merged(contraction, operand, count)


def _merged(contraction: Contraction, operand: int, count: int) -> Contraction:
    """Return a contraction where one index counts the positions of outermost levels."""
    chains, index = dict(contraction.chains), len(contraction.indices)
    fibres = Fibres(operand, chains[operand][:count], index)
    chains[operand] = (index, *chains[operand][count:])
    indices = (*contraction.indices, fresh("p", contraction.indices))
    return replace(contraction, indices=indices, chains=tuple(chains.items()), fibres=fibres)
