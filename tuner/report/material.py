"""The contents of a report: one result for every kernel, input, machine and number of threads, from the last decision about it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from ...compiler.errors import DataError, SparsetuneError
from ...compiler.frozen import frozen
from ...compiler.notation.canonical import canonical_form
from ...compiler.notation.parser import parse
from ...compiler.schedule.schedule import Schedule
from ...compiler.units import HARDWARE, PROCESSOR, is_processor
from ..account import Account
from ..comparison import OURS, OURS_BY_DEFAULT, OURS_UNTUNED
from ..converted import Converted
from ..database import Database
from ..measure.limits import MachineLimits, known_limits
from ..records import Decision, Input, Measurement


@frozen
class Ratio:
    """How many times as fast, with its 95% interval."""

    value: float
    low: float
    high: float


@frozen
class Run:
    """One trial: milliseconds (None: it failed), what the search chose for it, and who proposed it."""

    milliseconds: float | None
    parameters: Mapping[str, Any]
    status: str


@frozen
class Result:
    """A kernel on an input.

    Attributes:
        number: from 1, in the order of the page.
        decision: as recorded.
        account: the same in the user's words.
        speedup: default over winner.
        runs: all trials of the campaign in order, without the finals.
        others: times in seconds of other variants (the static choice and libraries), with how many times as fast the winner is.
        limits: of the machine with so many threads, where they are known.
    """

    number: int
    decision: Decision
    account: Account
    speedup: Ratio
    runs: Sequence[Run]
    others: Mapping[str, tuple[float, Ratio | None]]
    limits: MachineLimits | None

    @property
    def kernel(self) -> str:
        return self.account.expression

    @property
    def input(self) -> str:
        return input_name(self.decision.input)

    @property
    def threads(self) -> int:
        return self.decision.workload.threads

    @property
    def is_on_device(self) -> bool:
        """Whether the kernel runs on a device with memory of its own."""
        return HARDWARE[self.decision.workload.target].on_device

    @property
    def processor(self) -> str:
        """The name of what runs the kernel: the processor's, or that of a device with its architecture; the machine's fingerprint where it
        was not recorded."""
        machine, environment = self.decision.workload.machine, self.decision.environment
        if not self.is_on_device:
            return str(environment.get("processor", machine))
        device = environment.get("gpu")
        return f"{device['name']} ({machine})" if isinstance(device, Mapping) and "name" in device else machine

    @property
    def units(self) -> str:
        """What runs the kernel, in short: how many threads of the processor, or the architecture of a device."""
        return self.decision.workload.machine if self.is_on_device else f"{self.threads} thread{'s' * (self.threads != 1)}"

    @property
    def label(self) -> str:
        """Input and units, which tell results of a kernel apart."""
        return f"{self.input}, {self.units}"

    @property
    def schedule(self) -> str:
        """The winner, with the user's names."""
        return self.account.schedule(self.decision.schedule)

    @property
    def converted(self) -> Converted | None:
        """The schedule that is faster in a bound kernel, which converts once; None where there is none."""
        found = Converted.of(self.decision.environment)
        return found and replace(found, schedule=Schedule(self.account.schedule(str(found.schedule))))

    @property
    def rate(self) -> float | None:
        """Operations a second of the winner; None where its operations are not known."""
        return None if self.account.operations is None else self.account.operations / self.decision.seconds

    @property
    def traffic(self) -> float | None:
        """Bytes a second of the winner; operands and a dense result count once. None where the bytes are not known."""
        return None if self.account.bytes is None else self.account.bytes / self.decision.seconds

    @property
    def share(self) -> float | None:
        """The least time by the machine's limits over the winner's time; above 1 where the data lie in caches."""
        if self.limits is None or self.account.bytes is None:
            return None
        return self.limits.least_seconds(self.account.operations or 0.0, self.account.bytes) / self.decision.seconds

    @property
    def best_so_far(self) -> list[float]:
        """Milliseconds of the best trial so far, for each trial."""
        times = [math.inf if run.milliseconds is None else run.milliseconds for run in self.runs]
        return [time for time in accumulate(times, min) if math.isfinite(time)]

    @property
    def failed(self) -> int:
        """How many trials have no time."""
        return sum(run.milliseconds is None for run in self.runs)

    @property
    def times(self) -> dict[str, float]:
        """Seconds by variant: tuned, default, and the others."""
        ours = {"tuned": self.decision.seconds, "default": self.decision.default_seconds}
        return ours | {name: seconds for name, (seconds, _) in self.others.items()}


@frozen
class Material:
    """All results, kernel by kernel, and a sentence for each thing that could not be shown."""

    url: str
    counts: Mapping[str, int]
    results: Sequence[Result]
    missing: Sequence[str]

    @property
    def kernels(self) -> dict[str, list[Result]]:
        """Results by the kernel's expression."""
        found: dict[str, list[Result]] = {}
        for result in self.results:
            found.setdefault(result.kernel, []).append(result)
        return found

    @property
    def mean(self) -> float | None:
        """Geometric mean of the speedups."""
        logs = [math.log(result.speedup.value) for result in self.results]
        return math.exp(sum(logs) / len(logs)) if logs else None


def read_material(database: Database, bench: Path | None = None, target: str | None = None) -> Material:
    """Return the results in a database, with the times of other libraries from a file of ``tune-kernel bench --json``.

    Args:
        database: its last decision about each kernel and input counts.
        bench: that file; None: there is none.
        target: only what was tuned for this one; None: everything.

    Raises:
        DataError: the file is not what bench writes.
    """
    decided = (found for found in database.decisions() if target in (None, found.workload.target))
    decisions = list({(found.workload.key, found.input.key): found for found in decided}.values())
    decisions.sort(key=lambda found: (found.workload.kernel, found.workload.formats, input_name(found.input), found.workload.threads))
    beside = {} if bench is None else read_bench(bench)
    results = [_result(number, found, database, beside) for number, found in enumerate(decisions, 1)]
    return Material(database.url, database.stats(), results, list(_missing(results, bench, target)))


def input_name(entry: Input) -> str:
    """Return the name of an input, or its extents."""
    return entry.name or " x ".join(str(extent) for _, extent in entry.extents)


SHOWN: Mapping[str, str] = {OURS_UNTUNED: "the static choice"}
"""The page's names for variants to which ``bench`` gives other names."""

Beside = Mapping[tuple[str, str, str, int], Mapping[str, tuple[float, Ratio | None]]]


def read_bench(path: Path) -> Beside:
    """Return times and ratios by canonical kernel, input, target and threads, and then by variant.

    Raises:
        DataError: the file cannot be read or is not what ``tune-kernel bench --json`` prints.
    """
    try:
        items = json.loads(path.read_text(encoding="utf-8"))["items"]
        return {
            (_canonical(item["expression"]), item["input"], item.get("target", PROCESSOR.target), int(item["threads"])): {
                str(SHOWN.get(name, name)): (float(seconds), Ratio(*map(float, item["ratios"][name])) if name in item["ratios"] else None)
                for name, seconds in item["times"].items()
                if name not in (OURS, OURS_BY_DEFAULT)
            }
            for item in items
        }
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, SparsetuneError):
        message = f"{path} is not what 'tune-kernel bench --json' prints; write it anew with: tune-kernel bench SUITE --json > {path}"
        raise DataError(message) from None


def _canonical(expression: str) -> str:
    return canonical_form(parse(expression)).text


def _result(number: int, decision: Decision, database: Database, beside: Beside) -> Result:
    workload = decision.workload
    trials = (found for found in database.measurements(campaign=decision.campaign) if found.role in ("default", "trial"))
    return Result(
        number=number,
        decision=decision,
        account=Account.of(decision),
        speedup=Ratio(decision.speedup, decision.speedup_low, decision.speedup_high),
        runs=[_run(found) for found in trials],
        others=beside.get((workload.kernel, input_name(decision.input), workload.target, workload.threads), {}),
        limits=known_limits(workload.machine, workload.threads) if is_processor(workload.target) else None,
    )


def _run(found: Measurement) -> Run:
    return Run(None if found.seconds is None else 1000 * found.seconds, dict(found.parameters), str(found.status))


def _missing(results: Sequence[Result], bench: Path | None, target: str | None) -> Iterable[str]:
    """Yield a sentence for each thing that a reader might miss on the page, and how to get it."""
    if not results:
        where, named = (f" for target {target}", f" --target {target}") if target else ("", "")
        yield f"No campaign{where} has been finished yet: 'tune-kernel tune{named}' or 'tune-kernel suite quick{named}' runs one."
        return
    old = sum(not result.account.names for result in results)
    if old:
        yield f"{old} of {len(results)} results are of a version that kept neither names nor stages: they have canonical names."
    unlimited = sum(result.limits is None and not result.is_on_device for result in results)
    if unlimited:
        yield f"The limits of the machine of {unlimited} results are not known here: 'tune-kernel doctor --calibrate' there measures them."
    if not any(result.others for result in results):
        told = "has none of these kernels" if bench is not None else "is missing: 'tune-kernel bench SUITE --json > bench.json' and --bench"
        yield f"The static choice and other libraries: their times are not in the database, and a comparison {told}."
