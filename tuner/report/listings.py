"""Loop nest and C of a decision's winner and of the default schedule, compiled anew from the record; nothing is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ...compiler.concrete.check import formats_of
from ...compiler.errors import SparsetuneError
from ...compiler.notation.canonical import canonical_form
from ...compiler.notation.parser import parse
from ...compiler.pipeline import compile_kernel, constant_extents
from ..account import Account
from ..records import Decision


@dataclass(frozen=True)
class Listing:
    """A schedule as text, its loop nest and its C; of one that this version cannot compile, the reason stands in both."""

    schedule: str
    loop_nest: str
    code: str


def listings(decision: Decision, account: Account) -> tuple[Listing, Listing]:
    """Return the listings of the winner and of the default schedule, in the user's names."""
    names = {index: account.names.get(index, index) for index, _ in decision.input.extents}
    extents = tuple((names[index], extent) for index, extent in decision.input.extents)
    formats = tuple(decision.workload.formats.split(" | "))
    winner, default = account.schedule(decision.schedule), ""
    target = decision.workload.target
    return _listing(account.expression, formats, extents, winner, target), _listing(account.expression, formats, extents, default, target)


@cache
def _listing(expression: str, formats: tuple[str, ...], extents: tuple[tuple[str, int], ...], schedule: str, target: str) -> Listing:
    try:
        assignment = parse(expression)
        given: Mapping[str, str] = dict(zip((name for name, _ in canonical_form(assignment).tensors), formats, strict=True))
        constants = constant_extents(assignment, formats_of(assignment, given), dict(extents))
        kernel = compile_kernel(expression, given, constants, schedule, target=target)
        return Listing(schedule, kernel.loop_nest, kernel.source)
    except (SparsetuneError, ValueError) as error:
        reason = f"cannot be compiled by this version: {str(error).splitlines()[0]}"
        return Listing(schedule, reason, reason)
