"""Candidates for GPUs: timed by the device's clock, with operands there, their caches as asked, and how fast its clocks are recorded."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from sparsetune.compiler.native import devices
from sparsetune.compiler.targets.executor import FLAGS
from sparsetune.tuner.kernels import Task, compile_task
from sparsetune.tuner.measure import handover
from sparsetune.tuner.measure.company import Alone
from sparsetune.tuner.measure.eviction import FLUSHED
from sparsetune.tuner.measure.policy import Policy
from sparsetune.tuner.measure.sampling import Contestant, run_once, take_sample
from sparsetune.tuner.measure.service import Service

pytestmark = [pytest.mark.cc, pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")]

TASK = Task("y(i) = A(i,j) * x(j)", {"A": "csr", "x": "dense"}, {"i": 6, "j": 6}, "cuda", 1)


def service(folder: Path) -> Service:
    operands = {"A": st.tensor(scipy.sparse.eye_array(6, format="csr") * 2), "x": st.tensor(np.arange(6.0))}
    (folder / "operands").mkdir()
    handover.save(folder / "operands", operands)
    made = Service(compile_task, Alone())
    made.load(str(folder), asdict(TASK))
    return made


@pytest.mark.parametrize(("cache", "flushed"), [("warm", 0), ("cold", FLUSHED)])
def test_the_clock_of_the_device_counts(device: list[tuple[int, int]], tmp_path: Path, cache: Any, flushed: int) -> None:
    made = service(tmp_path)
    (built,) = made.build(["parallelize(i, gpu_warp, no_races)"], [])["built"]
    assert (built["compiler"], built["flags"]) == ("g++", " ".join(FLAGS))
    assert made.make_reference("")["seconds"] == 0.25
    device.clear()
    policy = Policy(cache=cache, max_repeats=4, max_seconds=1.0)
    found = made.measure("parallelize(i, gpu_warp, no_races)", policy.as_dict(), None, None)
    assert (found["status"], found["seconds"]) == ("ok", 0.25)
    assert device[-1] == (1, flushed)
    assert made.burst("parallelize(i, gpu_warp, no_races)", 2, 1, False)["sample"][0] == pytest.approx(0.125 * 2)


def test_a_wrong_kernel_is_found_and_one_that_faults_costs_a_trial(device: list[tuple[int, int]], tmp_path: Path) -> None:
    made = service(tmp_path)
    made.make_reference("")
    faulty = made._kernel("parallelize(i, gpu_thread, no_races)")  # type: ignore[attr-defined]  # its source is broken here
    faulty.kernel.__dict__["source"] = faulty.kernel.source.replace("y_vals[i] = ", "y_vals[i + 7] = ")
    with pytest.raises(st.BuildError, match=r"the device reports: .* out of bounds"):
        made.measure("parallelize(i, gpu_thread, no_races)", Policy().as_dict(), None, None)


def test_samples_without_a_device_are_the_processors() -> None:
    times = iter((1.0, 3.0, 10.0, 14.0))
    assert take_sample(Contestant(lambda: None), 1, Alone(), lambda: next(times)).seconds == 2.0
    assert run_once(Contestant(lambda: 5), Alone(), lambda: next(times))[1].seconds == 4.0
    assert take_sample(Contestant(lambda: None, device=lambda runs: 3.0 * runs), 4, Alone()).seconds == 3.0


def test_the_state_of_the_device_is_what_its_driver_says(device: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    found = devices.gpu_state()
    assert found["name"] == "NVIDIA H200"
    assert found["clocks.sm"] == "1980 MHz"
    assert found["clocks_throttle_reasons.active"] == "0x0000000000000004"
    monkeypatch.setenv("PATH", "/nowhere")
    assert devices.gpu_state() == {}
