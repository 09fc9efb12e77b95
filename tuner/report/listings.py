"""Loop nest and C of a decision's winner and of the default schedule, compiled anew from the record; nothing is run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ...compiler.concrete.check import formats_of
from ...compiler.concrete.given import constant_extents
from ...compiler.errors import SparsetuneError
from ...compiler.frozen import frozen
from ...compiler.notation.canonical import canonical_form
from ...compiler.notation.parser import parse
from ...compiler.pipeline import compile_kernel
from ...compiler.units import HARDWARE
from ..account import Account
from ..extents import reads
from ..records import SEPARATOR, Decision, formats_and_edges


@frozen
class Listing:
    """A schedule as text, its loop nest and its C; if this version cannot compile it, both hold the reason."""

    schedule: str
    loop_nest: str
    code: str


def listings(decision: Decision, account: Account) -> list[Listing]:
    """Return the listings of the winner and of the default schedule, in the user's names; one where they are the same."""
    names = {index: account.names.get(index, index) for index, _ in decision.input.extents}
    extents = tuple((names[index], extent) for index, extent in decision.input.extents)
    formats = tuple(decision.workload.formats.split(SEPARATOR))
    schedules = dict.fromkeys((account.schedule(decision.schedule), ""))
    target = decision.workload.target
    arch = decision.workload.machine if HARDWARE[target].has_architectures else None
    return [_listing(account.expression, formats, extents, schedule, target, arch) for schedule in schedules]


@cache
def _listing(
    expression: str, formats: tuple[str, ...], extents: tuple[tuple[str, int], ...], schedule: str, target: str, arch: str | None
) -> Listing:
    try:
        assignment = parse(expression)
        names = canonical_form(assignment)
        own, free, edges = formats_and_edges(SEPARATOR.join(formats), len(names.tensors))
        users = {canonical: name for name, canonical in names.indices}
        given: Mapping[str, str] = dict(zip((name for name, _ in names.tensors), own, strict=True))
        plain = {part.index for access in reads(assignment) for part in access.subscripts if part.is_index}
        constants = constant_extents(assignment, formats_of(assignment, given), {one: size for one, size in extents if one in plain})
        boundary = {users[index]: kind for index, kind in edges.items()} or None
        determined = [users.get(index, index) for index in free]
        kernel = compile_kernel(expression, given, constants, schedule, target=target, arch=arch, boundary=boundary, determined=determined)
        return Listing(schedule, kernel.loop_nest, kernel.source)
    except (SparsetuneError, ValueError) as error:
        reason = f"cannot be compiled by this version: {str(error).splitlines()[0]}"
        return Listing(schedule, reason, reason)
