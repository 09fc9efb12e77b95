"""A suite's tuned kernels beside other libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from ..compiler.errors import SparsetuneError
from ..compiler.frozen import frozen
from ..compiler.units import PROCESSOR
from .comparison import compare_with_peers
from .config import Suite
from .database import Database
from .peers import Peer
from .progress import Report
from .settings import Budget
from .suite import Item, Outcome, first_line, tune_suite


@frozen
class BenchItem:
    """Times of one kernel on one input by library, as ``LibraryTimes`` has them.

    Attributes:
        expression: the kernel's.
        failure: why there are no times; empty where there are.
    """

    kernel: str
    input: str
    threads: int
    times: Mapping[str, float]
    best_peer: str | None
    ratio: float | None
    wrong: tuple[str, ...] = ()
    expression: str = ""
    ratios: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    failure: str = ""
    target: str = PROCESSOR.target


def bench_suite(
    suite: Suite, store: Database, budget: Budget, seed: int, peers: Sequence[Peer], report: Callable[[Item, int, int], Report]
) -> Iterator[BenchItem]:
    """Tune each item of a suite, unless it was finished before, and measure it beside the peers; one that fails stops no other."""
    return map(partial(_beside_peers, peers, suite), tune_suite(suite, store, budget, seed, report))


def _beside_peers(peers: Sequence[Peer], suite: Suite, outcome: Outcome) -> BenchItem:
    item, result = outcome.item, outcome.result
    failed = BenchItem(item.label, item.input.name, item.threads, {}, None, None, expression=item.kernel.expression, target=item.target)
    if result is None:
        return replace(failed, failure=outcome.message)
    try:
        found = compare_with_peers(result.problem, result.best, peers, suite.settings)
    except SparsetuneError as error:
        return replace(failed, failure=first_line(error))
    return replace(failed, times=found.times, best_peer=found.best_peer, ratio=found.ratio, wrong=found.wrong, ratios=found.ratios)
