"""Who is chosen on a machine where other programs come and go, simulated: their share of the time, and what they do to times, are known."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from sparsetune.compiler.storage.construct import tensor
from sparsetune.tuner.kernels import Task
from sparsetune.tuner.measure import handover
from sparsetune.tuner.measure import service as measuring
from sparsetune.tuner.measure.candidate import Compiled
from sparsetune.tuner.measure.company import Company, Look
from sparsetune.tuner.measure.finals import Burst, play
from sparsetune.tuner.measure.policy import Policy
from sparsetune.tuner.measure.sampling import Sample, burst, run_once
from sparsetune.tuner.trials import Trial, leading
from tuner_campaigns import spmv

SECONDS = {"": 3.6e-3, "static": 1.7e-3, "dynamic, by sixteens": 2.1e-3}
"""Of kernels that run alone."""

CONVERSION = 0.005
"""Of an operand, alone."""

BESIDE = {"": 1.2, "static": 3.0, "dynamic, by sixteens": 1.5}
"""How many times as long they take in company: finer shares adapt to it."""


@dataclass
class Machine:
    """A clock, and others that work for five of every six seconds. Then threads wait for cores but in one of ten samples, by luck, which
    still shares memory and caches. Has the counters of a machine (``Counters``), and compiles.

    Attributes:
        converting: processor time of the next conversions of an operand, as the system counts it, the last of which goes on for ever; in
            company each takes 1.4 times as long.
    """

    now: float = 0.0
    ran: float = 0.0
    taken: int = 0
    converting: tuple[float, ...] = ()
    draw: random.Random = field(default_factory=lambda: random.Random(0))

    @property
    def in_company(self) -> bool:
        return self.now % 6 < 5

    def compiled(self, task: Task, schedule: str, operands: Mapping[str, Any]) -> Compiled:
        def load(seconds: float) -> None:
            """Nothing is to be loaded."""

        converts, bind = bool(self.converting), partial(self.bound, schedule)
        return cast(Compiled, SimpleNamespace(converts=converts, shares_work=True, load=load, bind=bind))

    def bound(self, schedule: str, *_operands: Any) -> Callable[[], None]:
        if self.converting:
            self.now += CONVERSION * (1.4 if self.in_company else 1)
            self.ran += self.converting[0]
            self.converting = self.converting[1:] or self.converting

        def run() -> None:
            self.now += SECONDS[schedule] * (BESIDE[schedule] if self.in_company else 1.0) * self.draw.uniform(1, 1.02)

        return run

    def clock(self) -> float:
        return self.now

    def begin(self) -> Look:
        return Look(self.now)

    def worked(self) -> float:
        return self.ran

    def since(self, before: Look) -> Company:
        self.taken += 1
        length = self.now - before.clock
        return Company(length, waited=0.5 * length if self.in_company and self.taken % 10 else 0.0)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(measuring, "burst", partial(burst, clock=made.clock))
    monkeypatch.setattr(measuring, "run_once", partial(run_once, clock=made.clock))
    return made


@pytest.fixture
def service(machine: Machine, tmp_path: Path) -> measuring.Service:
    made = measuring.Service(machine.compiled, machine)
    (tmp_path / "operands").mkdir()
    handover.save(tmp_path / "operands", {"x": tensor(np.ones(1))})
    made.load(str(tmp_path), asdict(Task.of(spmv())))
    return made


@pytest.mark.parametrize("counted", [(CONVERSION,), (CONVERSION, CONVERSION / 8, CONVERSION), (CONVERSION / 8, CONVERSION)])
def test_a_conversion_counts_by_what_it_takes_alone(machine: Machine, service: measuring.Service, counted: tuple[float, ...]) -> None:
    """It is part of every time of the schedule, and was timed once. The system counts the processor time of other threads in steps, so that
    it may say an eighth, by which a schedule that converts would be the fastest."""
    machine.converting = counted
    converting, plain = (service.burst("static", 1, 8, False, converted)["sample"][0] for converted in (False, True))
    assert 0.95 * CONVERSION < converting - plain < 1.5 * CONVERSION


def test_finals_count_what_ran_without_company(machine: Machine, service: measuring.Service) -> None:
    """By single samples that looked undisturbed, the schedule that adapts to company won most rounds, and then ran a fifth longer alone."""

    def run(schedule: str) -> Burst:
        reply = service.burst(schedule, 1, 8, False)
        sample = Sample.from_row(reply["sample"])
        return Burst(sample.alone, sample.company.disturbed, reply["crowded"])

    verdict = play(list(SECONDS), run, "", Policy().final_rounds, seconds=Policy().final_seconds, clock=machine.clock)
    assert verdict is not None
    assert (verdict.winner, verdict.disturbed) == ("static", False)
    assert verdict.against_default.ratio == pytest.approx(3.6 / 1.7, rel=0.02)
    assert machine.now < Policy().final_seconds + 1


RECORDED = {
    "": (3.0, 1.0, 3.1, 3.5, 3.5),
    "temporary": (1.6, 0.4, 3.5, 3.3, 3.4),
    "temporary, sorted": (1.5, 0.15, 2.1, 3.1, 3.2),
    "convert": (2.4, 1.0, 2.7, 3.5, 4.4),
}
"""Milliseconds of schedules of SpMM by columns: alone; share of bursts in heavy company with a sample that had all cores by luck, what that
says, what others say, and processor time over the speed-up of threads."""


def kept_by_finals(seed: int) -> float:
    """Return the share of speed that the winner of simulated finals in heavy company keeps; it scatters by round and by burst."""
    draw = random.Random(seed)
    crowd: dict[int, float] = {}
    calls = dict.fromkeys(RECORDED, 0)

    def run(name: str) -> Burst:
        _, share, lucky, other, work = RECORDED[name]
        calls[name] += 1
        factor = crowd.setdefault(calls[name], math.exp(draw.gauss(0, 0.15))) * math.exp(draw.gauss(0, 0.1))
        by_luck = draw.random() < share
        return Burst(factor * (lucky if by_luck else other), not by_luck, True, factor * work)

    verdict = play(list(RECORDED), run, "", Policy().final_rounds)
    assert verdict is not None
    return min(alone for alone, *_ in RECORDED.values()) / RECORDED[verdict.winner][0]


def test_luck_in_company_decides_no_finals() -> None:
    """Of short runs and of one thread a sample in each burst was lucky, of two threads seldom: what converts won, at 0.64 of the speed."""
    found = [kept_by_finals(seed) for seed in range(50)]
    assert min(found) >= 0.5
    assert math.exp(math.fsum(map(math.log, found)) / len(found)) > 0.9


def trial(seconds: float, disturbed: bool, alone: float) -> Trial:
    """Return a trial that took so many seconds, and takes so many alone."""
    return cast(Trial, SimpleNamespace(seconds=seconds, disturbed=disturbed, alone=alone))


def kept(seed: int) -> float:
    """Return the share of speed that the fastest finalist of a simulated campaign keeps: half of its trials are timed in company, and
    known but for a sixth by their ratio to the best so far, which itself may have been lucky."""
    draw = random.Random(seed)
    trials = [trial(3.6, False, 3.6)]
    for _ in range(40):
        alone = draw.choice((1.7, 1.75, 1.8, 1.9, 2.0, 2.1, 2.2, 2.4, 2.8, 3.5))
        best: Any = min(trials, key=lambda one: one.seconds or math.inf)
        disturbed = draw.random() < 0.5
        trials.append(trial(alone / best.alone * best.seconds * math.exp(draw.gauss(0, 0.16)) if disturbed else alone, disturbed, alone))
    finalists: Any = leading(trials, Policy().finalists, Policy().final_margin)
    assert len(finalists) <= Policy().finalists
    return min(cast(Any, one).alone for one in trials) / min(one.alone for one in finalists)


def test_what_was_lucky_in_company_keeps_nobody_out_of_the_finals() -> None:
    """With the six fastest of all as finalists, one of six campaigns ended with less than 0.95, and the worst with 0.71."""
    assert min(map(kept, range(200))) > 0.94


def test_without_company_the_fastest_within_the_margin_play() -> None:
    found = leading([trial(seconds, False, seconds) for seconds in (2.0, 1.0, 1.1, 1.21, 1.05, 1.15)], 3, 1.2)
    assert [one.seconds for one in found] == [1.0, 1.05, 1.1]
    assert len(leading([trial(seconds, True, seconds) for seconds in (1.0, 1.1, 1.3)], 6, 1.2)) == 2
    one = [trial(1.0, False, 1.0), trial(0.5, True, 1.0), trial(0.55, True, 1.0)]
    assert [found.seconds for found in leading(one, 2, 1.2)] == [0.5, 1.0]
