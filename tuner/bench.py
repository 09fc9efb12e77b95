"""A suite's tuned kernels beside other libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ..compiler.errors import SparsetuneError
from .comparison import compare_with_peers
from .config import Suite
from .database import Database
from .peers import Peer
from .session import Report
from .settings import Budget
from .suite import Item, Outcome, tune_suite


@dataclass(frozen=True)
class BenchItem:
    """Times of one kernel on one input by library; ``ratio`` is the fastest peer's over ours, None without a peer."""

    kernel: str
    input: str
    threads: int
    times: Mapping[str, float]
    best_peer: str | None
    ratio: float | None
    wrong: tuple[str, ...] = ()


def bench_suite(
    suite: Suite, store: Database, budget: Budget, seed: int, peers: Sequence[Peer], report: Callable[[Item, int, int], Report]
) -> Iterator[BenchItem]:
    """Tune each item of a suite, unless it was finished before, and measure it beside the peers.

    Raises:
        SparsetuneError: an item cannot be tuned.
    """
    return map(partial(_beside_peers, peers, suite), tune_suite(suite, store, budget, seed, report))


def _beside_peers(peers: Sequence[Peer], suite: Suite, outcome: Outcome) -> BenchItem:
    item, result = outcome.item, outcome.result
    if result is None:
        raise SparsetuneError(f"{item.label} on {item.input.name}: {outcome.message}")
    found = compare_with_peers(result.problem, result.best, peers, suite.settings)
    return BenchItem(item.label, item.input.name, item.threads, found.times, found.best_peer, found.ratio, found.wrong)
