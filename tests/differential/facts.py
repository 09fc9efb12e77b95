"""What a range of cases covers, told without running any of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from .blocks import FEWEST
from .cases import Case, random_case
from .compare import unstorable
from .drawer import Drawn
from .expressions import ROW
from .formats import one_coordinate_levels
from .oracle import expected


def facts(seeds: Iterable[int]) -> list[str]:
    """Return lines on expressions, formats, results, semirings, dtypes, and on what formats of results cannot hold."""
    expressions: set[str] = set()
    operands: Counter[str] = Counter()
    results: Counter[str] = Counter()
    manners: Counter[str] = Counter()
    semirings: Counter[str] = Counter()
    dtypes: Counter[str] = Counter()
    refused = 0
    for case in map(random_case, seeds):
        expressions.add(case.text)
        operands.update(str(operand.form) for operand in case.operands.values())
        results[str(case.result_format)] += 1
        manners.update(_manners(case))
        semirings[" ".join(case.semiring)] += 1
        dtypes[case.dtype.name] += 1
        refused += bool(one_coordinate_levels(case.result_format)) and unstorable(case, expected(case))
    return [
        f"{sum(results.values())} cases of {len(expressions)} distinct expressions",
        f"{len(operands)} formats of operands with their mode orders, {len(results)} of results",
        f"results: {_listed(manners)}",
        f"semirings (add, multiply): {_listed(semirings)}",
        f"dtypes of results: {_listed(dtypes)}",
        f"{refused} results that their format cannot hold (a singleton level with several coordinates below one parent): "
        "refused with a FormatError, as they must be",
    ]


def schedule_facts(draw: Callable[[int], Drawn], seeds: Iterable[int]) -> list[str]:
    """Return lines on the directives of random schedules, and on how many of those proposed were refused and dropped."""
    kept: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    lengths: Counter[int] = Counter()
    parallel = 0
    for found in map(draw, seeds):
        kept.update(directive.partition("(")[0] for directive in found.kept)
        refused.update(directive.partition("(")[0] for directive in found.refused)
        lengths[len(found.kept)] += 1
        parallel += "cpu_thread" in found.schedule or "gpu_" in found.schedule
    proposed, dropped = kept.total() + refused.total(), 100 * refused.total() / (kept.total() + refused.total())
    return [
        f"{lengths.total()} schedules of 0 to {max(lengths)} directives, {kept.total() / lengths.total():.1f} on average;"
        f" {parallel} run threads, {lengths[0]} are empty",
        f"directives: {_listed(kept)}",
        f"{dropped:.0f}% of {proposed} proposed directives were refused, and dropped: {_listed(refused)}",
        "every accepted schedule compiled, ran and gave the oracle's result, except for the failures listed here; none was refused later",
    ]


def _manners(case: Case) -> list[str]:
    kind = "scalar" if not case.shape else "dense" if case.result_format.is_dense else "sparse"
    odd = {
        "accumulated into": case.accumulates,
        "with an empty extent": 0 in case.shape,
        f"with {FEWEST} and more rows": case.extents.get(ROW, 0) >= FEWEST,
        "with 64-bit indices from a lowered limit": case.index_limit < 2**31 - 1,
        "with an index on the left only": bool(case.given),
        "of operands of several dtypes": len({operand.values.dtype for operand in case.operands.values()}) > 1,
    }
    return [kind, *(name for name, holds in odd.items() if holds)]


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())
