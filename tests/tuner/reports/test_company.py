"""Kernels with two threads in company, and the disturbances that are made for it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from sparsetune.tuner.reports.company import DISTURBANCES, KERNELS, SIZES, Times, _percentiles, measure, page
from sparsetune.tuner.reports.disturbances import busy, quota, quota_works, stopped

WAITING = "import sys; sys.stdin.read(); from sparsetune.compiler.native.machine import available_cores; print(available_cores())"


def waiting() -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", WAITING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.skipif(not quota_works(), reason="needs root and control groups of processor time")
def test_a_process_sees_its_quota() -> None:
    with waiting() as process:
        with quota(1.0)(process.pid):
            shown, _ = process.communicate()
        assert shown == "1\n"


def test_other_processes_end_with_the_disturbance() -> None:
    with waiting() as process:
        with busy(1)(process.pid):
            children = subprocess.run(["ps", "--ppid", str(process.pid)], capture_output=True, check=False)
        assert children.returncode == 1  # they are nobody's but ours
        process.communicate()


def test_what_disturbs_ends_with_who_disturbs() -> None:
    """A report that is killed leaves no process behind that keeps a core busy."""
    program = "import time; from sparsetune.tuner.reports.disturbances import busy\nwith busy(1)(0): print(flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = subprocess.run(["ps", "--ppid", str(process.pid), "-o", "pid="], capture_output=True, text=True, check=True).stdout.split()
        process.kill()
    deadline = time.monotonic() + 60
    while any(_runs(number) for number in found) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert found
    assert not any(_runs(number) for number in found)


def _runs(number: str) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_stopped_process_goes_on() -> None:
    with waiting() as process:
        with stopped(5, 10)(process.pid):
            time.sleep(0.1)
        shown, _ = process.communicate(timeout=600)
        assert int(shown) >= 1


def test_what_is_too_slow_for_certain() -> None:
    calm, late = [1.0] * 400, [1.0] * 200 + [30.0] * 200
    assert not Times(*(tuple(found) for found in _percentiles(calm, calm).values()), 400).suffers
    assert Times(*(tuple(found) for found in _percentiles(calm, late).values()), 400).suffers
    nearly = [1.0] * 210 + [30.0] * 190
    assert not Times(*(tuple(found) for found in _percentiles(nearly, late).values()), 400).suffers


def test_the_page_has_a_line_for_each_measurement() -> None:
    rows = [("SpMM, 1 ms", "nothing", "1", "0.5", "0.50", "0.60", "100")]
    text = page(rows, {"processor": "a processor", "available_cores": 2}, "abc")
    assert "| SpMM, 1 ms | nothing | 1 | 0.5 | 0.50 | 0.60 | 100 |" in text


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.cc
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("disturbance", [name for name in DISTURBANCES if name != "nothing"])
def test_two_threads_do_not_suffer_from_company(kernel: str, size: str, disturbance: str) -> None:
    if "quota" in disturbance and not quota_works():
        pytest.skip("needs root and control groups of processor time")
    found = [measure(kernel, size, DISTURBANCES[disturbance], 6.0)]
    while found[-1].suffers and len(found) < 3:  # other company comes and goes
        found.append(measure(kernel, size, DISTURBANCES[disturbance], 6.0))
    assert not found[-1].suffers, found
