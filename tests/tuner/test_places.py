"""Finals in several places in memory: operands and results are moved between rounds, and what runs then reads and writes there."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import groupby, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from sparsetune.compiler.native.memory import Room
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.compiler.storage.construct import tensor
from sparsetune.tuner.kernels import Task, compile_task
from sparsetune.tuner.measure import handover
from sparsetune.tuner.measure import service as measuring
from sparsetune.tuner.measure.candidate import Compiled
from sparsetune.tuner.measure.company import Alone
from sparsetune.tuner.measure.runner import Runner
from tuner_campaigns import SETTINGS, campaign, spmv


@dataclass
class Doubling:
    """Compiles schedules to a kernel that doubles a vector into its result, and notes where both lie."""

    places: list[tuple[int, int]] = field(default_factory=list)

    def compiled(self, task: Task, schedule: str, operands: Mapping[str, Any]) -> Compiled:
        return cast(Compiled, SimpleNamespace(converts=False, shares_work=True, load=lambda seconds: None, bind=self.bound))

    def bound(self, operands: Mapping[str, Any], threads: int, out: Any = None) -> Callable[[], Any]:
        result = np.empty(operands["x"].shape) if out is None else out

        def run() -> Any:
            np.multiply(operands["x"].values, 2.0, out=result)
            self.places.append((operands["x"].values.ctypes.data, result.ctypes.data))
            return result

        return run


def service(compile_kernel: Any, folder: Path, operands: Mapping[str, Any], task: Task) -> measuring.Service:
    made = measuring.Service(compile_kernel, Alone())
    (folder / "operands").mkdir()
    handover.save(folder / "operands", operands)
    made.load(str(folder), asdict(task))
    return made


def doubling(folder: Path) -> tuple[measuring.Service, Doubling]:
    machine = Doubling()
    x = tensor(np.arange(1000.0))
    return service(machine.compiled, folder, {"x": x}, Task("y(i) = 2 * x(i)", {"x": "dense", "y": "dense"}, {}, "cpu", 1)), machine


def test_after_a_move_all_finalists_run_on_other_memory(tmp_path: Path) -> None:
    made, machine = doubling(tmp_path)
    for _ in range(3):
        for schedule in ("a", "b"):
            assert made.burst(schedule, 1, 3, False)["status"] == "ok"
        assert made.move() == {"status": "ok", "moved": True}
    made.burst("a", 1, 3, False)
    places = [place for place, _ in groupby(machine.places)]
    assert len(places) == 4, "both schedules run in the same place"  # where the last move but one had left may be taken again
    assert all(one[0] != other[0] and one[1] != other[1] for one, other in pairwise(places))


@pytest.mark.parametrize("limit", ["_MOST_MOVED", "available"])
def test_operands_stay_where_moving_would_take_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    made, machine = doubling(tmp_path)
    monkeypatch.setattr(measuring, limit, 7999 if limit == "_MOST_MOVED" else lambda: Room(31999, "a test"))
    made.burst("a", 1, 3, False)
    before = machine.places[-1]
    assert made.move() == {"status": "ok", "moved": False}
    made.burst("a", 1, 3, False)
    assert machine.places[-1] == before


@pytest.mark.skipif(not available_compilers(), reason="needs a C compiler")
def test_what_was_moved_gives_the_same_result_and_leaves_nothing_behind(tmp_path: Path) -> None:
    problem = spmv(threads=1)
    made = service(compile_task, tmp_path, problem.operands, Task.of(problem))
    expected = made._bind("").once.run().copy()
    old = [weakref.ref(operand.values) for operand in made._operands.values()]
    made.move()
    assert not any(array() is not None for array in old), "their memory is free"
    np.testing.assert_array_equal(made._bind("").once.run(), expected)


def test_a_campaign_moves_its_operands_between_rounds_of_the_finals(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    move, burst = Runner.move, Runner.burst
    monkeypatch.setattr(Runner, "move", lambda self: [steps.append("move"), move(self)])
    monkeypatch.setattr(Runner, "burst", lambda self, *given, **named: [steps.append("burst"), burst(self, *given, **named)][1])
    campaign(database)
    bursts = "".join("|" if step == "move" else "." for step in steps).split("|")
    assert SETTINGS.policy.final_rounds == 6
    assert len(bursts) >= 3, "six rounds in four places: two in each"
    assert len({len(part) for part in bursts[:-1]}) == 1
