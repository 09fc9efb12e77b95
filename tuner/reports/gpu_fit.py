"""The constants of the static model of GPUs (``device_costs.Device``), fitted to the races of a device that gpu.csv has.

A race is a kernel on an input. The model is as good as what it makes the tuner choose: the time of the fastest mapping over that of the
cheapest by the model is the share that it reaches. Since that changes by leaps, constants are moved, one after the other, to where a soft
choice costs least: every mapping counts by how close its cost is to the least one, and costs should be near to what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path

from ...compiler.errors import DataError
from ...compiler.frozen import frozen
from ...compiler.schedule.apply import apply_schedule
from ...compiler.schedule.schedule import Schedule
from ..device_costs import USUAL, Counted, Device, counted, nanoseconds
from ..problem import Problem
from .gpu_cases import CHOSEN, DEFAULT, kernels_for
from .gpu_parts import loaded
from .gpu_rows import OURS, Row
from .markdown import geometric_mean, table

GIVEN = ("processors", "threads", "registers", "blocks")
"""What the maker says of a device; the rest is fitted."""
RACED = ("kernels", "choices")
"""The parts of the report whose rows are races."""
FITTED = tuple(each.name for each in fields(Device) if each.name not in GIVEN)
STEPS = (1.5, 1.2, 1.07)
"""By which constants are moved, first far and then near."""
SWEEPS = 4
"""Most times that all constants are tried with a step."""
SOFT, ERROR = 0.1, 1.0
"""By how much costs differ, in natural logarithms, so that a mapping counts by a factor of e less; how much errors of costs count."""
MOST_POWER = 0.9
"""The most that the power ``together`` may be."""
UNDETERMINED = 0.002
"""Where neither half of a constant nor twice of it raises the loss by this share, the races do not determine it."""


@frozen
class Race:
    """The mappings of a kernel on an input: what each asks of a device, and the nanoseconds that it took."""

    input: str
    kernel: str
    mappings: tuple[tuple[Counted, float], ...]

    def costs(self, device: Device) -> list[float]:
        """Return the nanoseconds that the model expects of each mapping on a device."""
        return [nanoseconds(asked, device) for asked, _ in self.mappings]

    def share(self, device: Device) -> float:
        """Return the time of the fastest mapping over that of the cheapest by the model."""
        costs = self.costs(device)
        return min(taken for _, taken in self.mappings) / self.mappings[costs.index(min(costs))][1]

    def loss(self, device: Device) -> float:
        """Return how much longer the softly chosen mapping takes than the fastest, plus the mean error of costs, both as logarithms."""
        costs, least = self.costs(device), min(taken for _, taken in self.mappings)
        lowest = min(costs)
        weights = [(lowest / cost) ** (1 / SOFT) for cost in costs]
        slower = sum(weight * math.log(taken / least) for weight, (_, taken) in zip(weights, self.mappings, strict=True)) / sum(weights)
        error = sum(abs(math.log(cost / taken)) for cost, (_, taken) in zip(costs, self.mappings, strict=True)) / len(costs)
        return slower + ERROR * error


def races(rows: Sequence[Row], sources: Sequence[str]) -> Iterator[Race]:
    """Yield the races on inputs, by files or names, that rows have: those of the device that was measured last.

    What the model chose once, and how long it took, is of the races: what a model wrongly thinks fast is among them.
    """
    for source in sources:
        name = Path(source).name
        mine = [row for row in rows if row.part in RACED and (row.input, row.who, row.right) == (name, OURS, "yes")]
        mine = [row for row in mine if row.device == mine[-1].device]
        if not mine:
            continue
        data = loaded(source)
        for kernel in kernels_for(data):
            times = {row.what: 1e9 * row.seconds for row in mine if row.kernel == kernel.name}
            mapped = [(schedule, times[what]) for what, schedule in kernel.schedules() if what in times]
            mapped += [(_said(what), taken) for what, taken in times.items() if what.startswith(CHOSEN)]
            if len(mapped) < 2:
                continue
            given = kernel.problem(kernel.operands(data))
            yield Race(name, kernel.name, tuple((_asked(given, Schedule(schedule or "")), taken) for schedule, taken in mapped))


def _said(what: str) -> str | None:
    schedule = what.removeprefix(CHOSEN)
    return None if schedule == DEFAULT else schedule


def _asked(given: Problem, schedule: Schedule) -> Counted:
    found = given.concretized()
    return counted(given, apply_schedule(found.program, schedule, found.formats, given.constants), found.sources)


def loss(measured: Sequence[Race], device: Device) -> float:
    """Return the mean of the losses of races, which the fitted constants make small."""
    return sum(race.loss(device) for race in measured) / len(measured)


def moved(device: Device, name: str, factor: float) -> Device:
    """Return a device with one constant that is so many times as large; powers stay below one."""
    value = getattr(device, name) * factor
    return replace(device, **{name: min(value, MOST_POWER) if name == "together" else value})


def fitted(measured: Sequence[Race], device: Device = USUAL) -> Device:
    """Return the constants that a descent from those of a device leads to."""
    least = loss(measured, device)
    for step in STEPS:
        for _ in range(SWEEPS):
            before = least
            for name in FITTED:
                for factor in (step, 1 / step):
                    trial = moved(device, name, factor)
                    found = loss(measured, trial)
                    if found < least:
                        device, least = trial, found
                        break
            if least > before * 0.999:
                break
    return device


def raised(measured: Sequence[Race], device: Device, factor: float = 2.0) -> Mapping[str, tuple[float, float]]:
    """Return by how much the loss is raised, as a share of it, if a constant is so many times as small, and as large."""
    usual = loss(measured, device)

    def rise(name: str, times: float) -> float:
        return loss(measured, moved(device, name, times)) / usual - 1

    return {name: (rise(name, 1 / factor), rise(name, factor)) for name in FITTED}


def report(measured: Sequence[Race]) -> Iterator[str]:
    """Yield paragraphs: the constants as they are and as fitted, and what the model reaches with both, and with constants that were fitted
    without the input of a race.

    Raises:
        DataError: there is no race.
    """
    if not measured:
        raise DataError("gpu.csv has no rows of part kernels on these inputs")
    found = fitted(measured)
    rises = raised(measured, found)
    lines = ([name, f"{getattr(USUAL, name):.4g}", f"{getattr(found, name):.4g}", *_change(*rises[name])] for name in FITTED)
    yield table(["constant", "as it is", "fitted", "loss with half of it", "with twice of it"], lines)
    inputs = list(dict.fromkeys(race.input for race in measured))
    apart = [share for name in inputs for share in _shares_without(measured, name)]
    yield (
        f"{len(measured)} races on {len(inputs)} inputs. The chosen mappings' share of the fastest ones' speed, geometric mean (least): "
        f"{_told([race.share(USUAL) for race in measured])} with the constants as they are, whose loss is {loss(measured, USUAL):.4f}; "
        f"{_told([race.share(found) for race in measured])} fitted, {loss(measured, found):.4f}; "
        f"{_told(apart)} fitted without the input of each race."
    )


def _change(less: float, more: float) -> tuple[str, str]:
    """Return by how much two changes of a constant raise the loss; whether the races determine it is said in words."""
    if max(less, more) < UNDETERMINED:
        return "not determined", "not determined"
    return f"{less:+.1%}", f"{more:+.1%}"


def _told(shares: Sequence[float]) -> str:
    return f"{geometric_mean(shares):.3f} ({min(shares):.2f})"


def _shares_without(measured: Sequence[Race], name: str) -> list[float]:
    others = [race for race in measured if race.input != name]
    device = fitted(others) if others else USUAL
    return [race.share(device) for race in measured if race.input == name]
