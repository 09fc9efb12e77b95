"""What ``tune-kernel explain --ranks`` shows: the volumes of an expression on inputs from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..operands import load_operands
from .plan import as_dict, request_of


def volumes(
    expression: str, inputs: Mapping[str, str], dims: Mapping[str, int], formats: Mapping[str, str], ranks: int
) -> dict[str, Any]:
    """Return ``ranks``, and what ``volume`` returns in both of its cases, with the ``best_bytes`` of all grids.

    ``volume`` is for dense operands and a result that every rank has whole, as ``evaluate`` takes and gives them; ``volume_distributed``
    is for dense operands and a result of which each element is on one rank.

    Raises:
        SparsetuneError: an operand, a format or an extent does not fit; the expression has no, or several, sparse operands.
    """
    operands: dict[str, Any] = dict(load_operands(expression, inputs, dims, formats))
    found: dict[str, Any] = {"ranks": ranks}
    for key, whole in (("volume", True), ("volume_distributed", False)):
        request = request_of(expression, operands, whole, None, dims, original=not whole)
        best = min(request.moved_by_blocks(grid) for grid in request.contraction.grids(ranks))
        found[key] = {**as_dict(request.costs(request.choose(ranks))), "best_bytes": best}
    return found
