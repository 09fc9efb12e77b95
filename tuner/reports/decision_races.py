"""Races of four schedules for a kernel on an input, with the libraries that have the kernel.

*default* is the schedule of the empty text, *static* the model's choice without any measurement, *looked up* what lookup finds without the
measurements on this input, *tuned* the decision of a campaign on this input. A schedule that converts operands does so in every call.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...compiler.errors import SparsetuneError, TuningError
from ...compiler.frozen import frozen
from ...compiler.notation.canonical import canonical_form
from ...compiler.notation.parser import parse
from ...compiler.schedule.schedule import Schedule
from ...compiler.storage.tensor import Tensor
from ..comparison import agree, comparable
from ..database import Database
from ..lookup import lookup_problem
from ..measure.finals import Comparison
from ..measure.sampling import least_of
from ..model import model_choice
from ..parameters import largest_share
from ..peers import Peer
from ..problem import Problem
from ..records import Decision, Measurement
from ..shipped import shipped_decisions
from .decision_cases import CASES, Item
from .one_memory import OneMemory
from .race import Pace, race
from .records import Taken

DEFAULT, STATIC, LOOKED_UP, TUNED = "default", "static", "looked up", "tuned"
OURS = (DEFAULT, STATIC, LOOKED_UP, TUNED)
LEFT_OUT, FAILED = "left out", "failed"
"""Columns of items without figures: the input does not fit the kernel; an error occurred."""

SLOW = 10.0
"""A library that takes more than so many times as long as the default is timed once, and does not take part in the race."""

_PACE = Pace(seconds=0.6, fewest=7, most=41)
_MOST_COMPARED = 5e7  # most elements of a result that is compared as a dense array


@frozen
class Figure(Taken):
    """One way of running one item.

    Attributes:
        kernel, input, dtype, threads: the item.
        column: one of ``OURS``, the name of a library, ``LEFT_OUT`` or ``FAILED``.
        seconds: median of a run.
        speed, low, high: time of the default over that of this one, the median of paired rounds with its 95% interval.
        kept, kept_low, kept_high: the same for the tuned schedule's time over that of this one.
        schedule: that of our columns; empty: the default.
        origin: the origin of a looked-up schedule.
        known: how many other inputs were tuned when it was looked up.
        load: load average when the race began.
        note: why there are no figures.
        bytes: of the operands and the result, each once; 0 where it was not counted. Only rows slower than a library have counts.
        flops, loads, iterations: counts of ``BoundKernel.count``; 0 as for ``bytes``.
        largest_share: work of the busiest thread over the mean (``parameters.largest_share``); 0 if not known, and as for ``bytes``.
        trials, tuning: trials and seconds of the campaign of the tuned schedule; 0 where that was not recorded.
    """

    kernel: str
    input: str
    dtype: str
    threads: int
    column: str
    seconds: float
    speed: float
    low: float
    high: float
    kept: float
    kept_low: float
    kept_high: float
    schedule: str
    origin: str
    known: int
    load: float
    note: str
    bytes: int = 0
    flops: int = 0
    loads: int = 0
    iterations: int = 0
    largest_share: float = 0.0
    trials: int = 0
    tuning: float = 0.0

    @property
    def item(self) -> Item:
        return Item(self.kernel, self.input, self.dtype, self.threads)


def without_figures(item: Item, column: str, error: Exception) -> Figure:
    """Return the row of an item that was not measured, with the reason."""
    nothing, lines = Comparison(math.nan, math.nan, math.nan), str(error).splitlines()
    known = isinstance(error, SparsetuneError) and bool(lines)
    note = lines[0] if known else f"{type(error).__name__}: {' '.join(lines)}"
    return _row(item, column, math.nan, (nothing, nothing), note=note)


def _row(
    item: Item, column: str, seconds: float, over: tuple[Comparison, Comparison], schedule: str = "", origin: str = "", known: int = 0,
    load: float | None = None, note: str = "", counts: Mapping[str, int] | None = None, largest: float | None = None,
) -> Figure:  # fmt: skip
    done = counts or {}
    shown = [float(f"{value:.4g}") for one in over for value in (one.ratio, one.low, one.high)]
    return Figure(
        kernel=item.kernel, input=item.input, dtype=item.dtype, threads=item.threads, column=column, seconds=float(f"{seconds:.4g}"),
        speed=shown[0], low=shown[1], high=shown[2], kept=shown[3], kept_low=shown[4], kept_high=shown[5], schedule=schedule, origin=origin,
        known=known, load=round(os.getloadavg()[0] if load is None else load, 2), note=note,
        bytes=done.get("bytes", 0), flops=done.get("flops", 0), loads=done.get("loads", 0), iterations=done.get("iterations", 0),
        largest_share=float(f"{largest or 0:.4g}"),
    )  # fmt: skip


@frozen
class Without:
    """A database without all records of one input."""

    store: Database
    input: str

    def decisions(self, **filters: Any) -> Iterator[Decision]:
        return (one for one in self.store.decisions(**filters) if one.input.name != self.input)

    def measurements(self, **filters: Any) -> Iterator[Measurement]:
        return (one for one in self.store.measurements(**filters) if one.input.name != self.input)


def decisions_of(store: Database) -> dict[Item, Decision]:
    """Return the latest decision for every item that was tuned."""
    kernels: dict[str, list[tuple[str, dict[str, int]]]] = {}
    for case in CASES.values():
        form = canonical_form(parse(case.expression))
        indices = dict(form.indices)
        kernels.setdefault(form.text, []).append((case.name, {indices[name]: extent for name, extent in case.dims.items()}))
    found = {}
    for decision in store.decisions():
        extents, workload = dict(decision.input.extents), decision.workload
        for name, dims in kernels.get(workload.kernel, ()):
            if dims.items() <= extents.items():
                found[Item(name, decision.input.name, workload.dtype, workload.threads)] = decision
    return found


def known_beside(item: Item, tuned: Mapping[Item, Decision]) -> int:
    """Return how many other inputs an item's kernel was tuned on, with the same types and threads."""
    key = (CASES[item.kernel].expression, item.dtype, item.threads)
    return len({one.input for one in tuned if (CASES[one.kernel].expression, one.dtype, one.threads) == key} - {item.input})


def raced(item: Item, problem: Problem, decision: Decision, store: Database, known: int, peers: Sequence[Peer]) -> list[Figure]:
    """Race the four schedules of an item and the libraries that have its kernel.

    Raises:
        TuningError: two of the schedules disagree about the result, or the default takes too long to be compared with.
        SparsetuneError: one of them cannot be built.
    """
    if decision.default_stopped:
        raise TuningError(f"the default schedule did not end within {decision.default_seconds:.1f} s")
    workload = problem.workload
    shipped = [one for one in shipped_decisions(workload) if one.input.name != item.input]
    found = lookup_problem(problem, Without(store, item.input), shipped)
    chosen = {
        DEFAULT: Schedule(), STATIC: model_choice(problem) or Schedule(), LOOKED_UP: found.schedule,
        TUNED: problem.from_canonical(decision.schedule),
    }  # fmt: skip
    memory = OneMemory(problem)
    calls = {schedule: memory.call(schedule) for schedule in dict.fromkeys(chosen.values())}
    runs: dict[str, Callable[[], Any]] = {column: calls[schedule] for column, schedule in chosen.items()}
    first = runs[DEFAULT]()
    expected = first.copy() if isinstance(first, np.ndarray) else first  # the others overwrite its memory
    for column in OURS[1:]:
        if not _equal(runs[column](), expected):
            raise TuningError(f"the {column} schedule '{chosen[column]}' gives another result than the default")
    beside = _libraries(problem, peers, expected)
    longest = SLOW * least_of(runs[DEFAULT], 1, 2)
    slow = {name: took for name, run in beside.items() if (took := least_of(run, 1, 1)) > longest}
    load = os.getloadavg()[0]
    times = race(runs | {name: run for name, run in beside.items() if name not in slow}, _PACE)
    compared = {column: (series.median, (times[DEFAULT].over(series), times[TUNED].over(series))) for column, series in times.items()}
    for name, took in slow.items():
        ratios = [times[column].median / took for column in (DEFAULT, TUNED)]
        compared[name] = took, (Comparison(*ratios[:1] * 3), Comparison(*ratios[1:] * 3))

    least = min((compared[name][0] for name in beside), default=math.inf)
    behind = {column: memory.bind(chosen[column]).count() for column in (STATIC, TUNED) if compared[column][0] > least}
    once = sum(_bytes_of(one) for one in (*problem.operands.values(), expected))

    def row(column: str, seconds: float, over: tuple[Comparison, Comparison]) -> Figure:
        origin = found.origin if column == LOOKED_UP else ""
        counts = {**behind[column], "bytes": once} if column in behind else None
        largest = largest_share(problem, chosen[column]) if column in behind else None
        return _row(item, column, seconds, over, str(chosen.get(column, "")), origin, known, load, counts=counts, largest=largest)

    return [row(column, *both) for column, both in compared.items()]


def _bytes_of(held: Any) -> int:
    """Return the bytes of an operand or a result."""
    return int(held.nbytes) if hasattr(held, "nbytes") else np.asarray(held).nbytes


def _libraries(problem: Problem, peers: Sequence[Peer], expected: Any) -> dict[str, Callable[[], Any]]:
    """Return the libraries that have a kernel and give our result."""
    if math.prod(getattr(expected, "shape", ())) > _MOST_COMPARED and not (isinstance(expected, Tensor) and expected.order == 2):
        return {}
    found, dense = {}, comparable(expected)
    for peer in peers:
        run = peer.prepare(problem)
        if run is not None and agree(comparable(run()), dense):
            found[peer.name] = run
    return found


def _equal(found: Any, expected: Any) -> bool:
    """Return whether two results of our kernels are equal up to rounding."""
    if isinstance(found, Tensor) and isinstance(expected, Tensor) and found.format == expected.format:
        return found.shape == expected.shape and agree(found.values, expected.values)
    return agree(comparable(found), comparable(expected))
