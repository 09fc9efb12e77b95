"""A tuned kernel beside other libraries: same operands, one process, measured in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler.frozen import frozen
from ..compiler.schedule.schedule import Schedule
from ..compiler.storage.tensor import Tensor
from .kernels import compile_problem, device_clock
from .measure.finals import compare
from .measure.order_statistics import median
from .measure.rotation import rest, turns
from .measure.sampling import Contestant, burst, burst_size, least
from .model import model_choice
from .peers import Peer
from .problem import Problem
from .settings import Settings

OURS = "sparsetune"
OURS_BY_DEFAULT = "sparsetune default"
OURS_UNTUNED = "sparsetune static"
"""Name of our kernel with the schedule that the static model chooses: the default one if it expects no other to be faster."""


@frozen
class LibraryTimes:
    """Times of one kernel on one input.

    Attributes:
        times: seconds by library; ours under ``sparsetune``, with the default schedule under ``sparsetune default``, with the static
            model's choice under ``sparsetune static``.
        ratios: time over ours, the median of paired rounds with its 95% interval, by everything else in ``times``.
        ratio: time of the fastest peer over ours, the median of paired rounds; None without a peer.
        wrong: peers whose result differs from ours, which are not timed.
    """

    times: Mapping[str, float]
    ratios: Mapping[str, tuple[float, float, float]]
    best_peer: str | None
    ratio: float | None
    wrong: tuple[str, ...]


def compare_with_peers(problem: Problem, schedule: Schedule, peers: Sequence[Peer], settings: Settings) -> LibraryTimes:
    """Measure a schedule, the default schedule and every peer that has the kernel, in turn; schedules that are equal run as one."""
    calls: dict[str, Callable[[], Any]] = {}
    ours = {OURS: schedule, OURS_BY_DEFAULT: Schedule(), OURS_UNTUNED: model_choice(problem) or Schedule()}
    firsts = {chosen: name for name, chosen in reversed(ours.items())}
    for chosen, name in firsts.items():
        calls[name] = compile_problem(problem, chosen).bind(problem.operands, problem.threads)
    expected, wrong = comparable(calls[OURS]()), []
    for peer in peers:
        call = peer.prepare(problem)
        if call is not None and agree(comparable(call()), expected):
            calls[peer.name] = call
        elif call is not None:
            wrong.append(peer.name)
    rounds = _play(calls, settings)
    rounds = {name: rounds[firsts[chosen]] for name, chosen in ours.items()} | rounds
    others = {name: times for name, times in rounds.items() if name not in ours}
    best = min(others, key=lambda name: median(others[name]), default=None)
    beside = {name: compare(times, rounds[OURS]) for name, times in rounds.items() if name != OURS}
    ratios = {name: (found.ratio, found.low, found.high) for name, found in beside.items()}
    ratio = None if best is None else beside[best].ratio
    return LibraryTimes({name: median(times) for name, times in rounds.items()}, ratios, best, ratio, tuple(wrong))


def _play(calls: Mapping[str, Callable[[], Any]], settings: Settings) -> dict[str, list[float]]:
    """Return one time a round for every call."""
    expected = {name: max(_least(call, 1, 2), 1e-9) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _, order in zip(range(settings.policy.final_rounds), turns(calls), strict=False):
        for name in order:
            rest()
            batch, samples = burst_size(settings.policy.burst_seconds, expected[name])
            times[name].append(_least(calls[name], batch, samples))
    return times


def _least(call: Callable[[], Any], batch: int, samples: int) -> float:
    """Return the seconds of a run in the fastest sample; by the clock of a device where a kernel runs there, on operands in its memory."""
    return least(burst(Contestant(call, device=device_clock(call)), batch, samples))


def comparable(result: Any) -> Any:
    """Return a result as values that can be compared: a SciPy sparse array of a matrix, else an ndarray."""
    if isinstance(result, Tensor):
        return result.to_scipy() if result.order == 2 else result.to_numpy()
    if type(result).__module__.startswith("scipy.sparse"):
        return result
    if hasattr(result, "to_scipy_sparse") and len(result.shape) == 2:
        return result.to_scipy_sparse()
    return np.array(result.todense() if hasattr(result, "todense") else result)


def agree(found: Any, expected: Any) -> bool:
    """Return whether two results are equal but for rounding (a sanity check: peers have their own tests)."""
    if found.shape != expected.shape:
        return False
    difference = found - expected
    scale = float(abs(expected).max()) if np.prod(expected.shape) else 0.0
    return not np.prod(found.shape) or float(abs(difference).max()) <= 1e-4 * max(scale, 1e-30)
