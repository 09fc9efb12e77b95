"""What calls take that convert an operand each: what was converted a moment ago lies in other caches than what is there since long."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
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
from sparsetune.tuner.measure.policy import Policy
from sparsetune.tuner.measure.sampling import burst, run_once
from sparsetune.tuner.measure.timing import measure

CONVERSION, FIRST, LATER = 0.005, 0.003, 0.001
"""Seconds of a conversion, and of a run right after it and of later ones."""


@dataclass
class Machine:
    """A clock that conversions of so many seconds and runs move on, and kernels that convert."""

    conversion: float
    now: float = 0.0

    def compiled(self, task: Task, schedule: str, operands: Mapping[str, Any]) -> Compiled:
        return cast(Compiled, SimpleNamespace(converts=True, shares_work=False, load=lambda seconds: None, bind=self.bound))

    def bound(self, *_operands: Any) -> Callable[[], None]:
        self.now += self.conversion
        taken = iter([FIRST])

        def run() -> None:
            self.now += next(taken, LATER)

        return run

    def worked(self) -> float:
        return self.now

    def begin(self) -> Look:
        return Look(self.now)

    def since(self, before: Look) -> Company:
        return Company(self.now - before.clock)


def service(machine: Machine, folder: Path, monkeypatch: pytest.MonkeyPatch) -> measuring.Service:
    for name, function in (("burst", burst), ("run_once", run_once), ("measure", measure)):
        monkeypatch.setattr(measuring, name, partial(function, clock=lambda: machine.now))
    monkeypatch.setattr(measuring, "difference", lambda result, expected: None)
    monkeypatch.setattr(measuring.Referee, "reference", lambda self: "any")
    made = measuring.Service(machine.compiled, cast(Any, machine))
    (folder / "operands").mkdir()
    handover.save(folder / "operands", {"x": tensor(np.ones(1))})
    made.load(str(folder), asdict(Task("y(i) = x(i)", {"x": "dense", "y": "dense"}, {}, "cpu", 1)))
    return made


def test_every_call_converts_and_runs_on_what_it_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = service(Machine(CONVERSION), tmp_path, monkeypatch)
    trial = made.measure("s", Policy().as_dict(), None, None)
    alone, once = (made.burst("s", 1, 8, False, converted)["sample"][0] for converted in (False, True))
    assert trial["seconds"] == pytest.approx(CONVERSION + FIRST)
    assert trial["conversion"] == pytest.approx(CONVERSION)
    assert (alone, once) == (pytest.approx(CONVERSION + FIRST), pytest.approx(LATER))


def test_a_long_conversion_is_done_once_and_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(2.0)
    made = service(machine, tmp_path, monkeypatch)
    assert made.burst("s", 1, 8, False)["sample"][0] == pytest.approx(2.0 + LATER)
    assert machine.now < 2 * 2.0
