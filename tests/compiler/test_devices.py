"""What needs a GPU is refused at once where there is none: by compile, evaluate and lookup alike, as by tune."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from sparsetune.compiler.errors import BuildError, ScheduleError
from sparsetune.compiler.native import devices
from sparsetune.compiler.targets import registry
from sparsetune.compiler.targets.cuda import CudaTarget
from sparsetune.compiler.targets.interpreter import INTERPRETER

SPMV = "y(i) = A(i,j) * x(j)"
ON_GPU = "split(i, b, t, 32); parallelize(b, gpu_block, no_races); parallelize(t, gpu_thread, no_races)"
OPERANDS = {"A": scipy.sparse.eye_array(4, format="csr"), "x": np.ones(4)}


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A machine that has no GPU until ``found`` is set."""
    machine = SimpleNamespace(found=None)
    monkeypatch.setattr(devices, "find_program", lambda name: machine.found)
    return machine


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize(
    "call",
    [
        lambda: st.compile(SPMV, {"A": "csr"}, target="cuda"),
        lambda: st.evaluate(SPMV, OPERANDS, target="cuda"),
        lambda: st.evaluate(SPMV, OPERANDS, target="cuda", schedule="default"),
        lambda: st.lookup(SPMV, OPERANDS, target="cuda"),
        lambda: st.tune(SPMV, OPERANDS, target="cuda"),
    ],
)
def test_target_that_is_missing_is_one_error(call) -> None:
    advice = r"use target cpu, or to see code and choices for another GPU name its arch, such as 'sm_90'$"
    with pytest.raises(BuildError, match=rf"^target cuda needs an NVIDIA GPU with its driver, and none was found \(.*\); {advice}"):
        call()


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize("call", [lambda **wish: st.compile(SPMV, {"A": "csr"}, **wish), lambda **wish: st.lookup(SPMV, OPERANDS, **wish)])
@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"target": "cuda", "arch": "hopper"}, r"^arch 'hopper' is no architecture of an NVIDIA GPU; give its compute capability"),
        ({"target": "cuda", "arch": 90}, r"^arch 90 is no architecture"),
        ({"target": "cuda", "arch": "sm_९०"}, r"^arch 'sm_९०' is no architecture"),
        ({"target": "cuda", "arch": ["sm_90"]}, r"^arch \['sm_90'\] is no architecture"),
        ({"arch": "sm_90"}, r"^arch 'sm_90': target cpu has no architectures; leave arch out, or ask for target cuda$"),
    ],
)
def test_devices_that_have_no_meaning_are_refused(call, wish, message) -> None:
    with pytest.raises(ScheduleError, match=message):
        call(**wish)


@pytest.mark.parametrize("target", ["cpu", "interpreter", "plain"])
@pytest.mark.parametrize("schedule", [None, "auto"])
def test_an_architecture_is_refused_where_there_are_none(monkeypatch: pytest.MonkeyPatch, target: str, schedule: str | None) -> None:
    """Whatever the target is called: what counts is what it says of itself."""
    monkeypatch.setitem(registry._TARGETS, "plain", replace(INTERPRETER, name="plain"))
    with pytest.raises(ScheduleError, match=rf"^arch 'sm_90': target {target} has no architectures"):
        st.compile(SPMV, {"A": "csr"}, schedule=schedule, target=target, arch="sm_90")


@pytest.mark.usefixtures("gpus")
def test_the_executor_needs_no_gpu_and_takes_an_architecture() -> None:
    target = st.compile(SPMV, {"A": "csr"}, target="cuda-executor", arch="sm_75").default_kernel.target
    assert isinstance(target, CudaTarget)
    assert target.arch == "sm_75"


@pytest.mark.usefixtures("gpus")
def test_a_device_that_is_named_need_not_be_here() -> None:
    kernel = st.compile(SPMV, {"A": "csr"}, target="cuda", arch="sm_90")
    assert "st_thread_of_grid()" in kernel.source
    with pytest.raises(BuildError, match=r"^target cuda needs an NVIDIA GPU"):
        kernel(**OPERANDS)


@pytest.mark.parametrize(("answer", "arch"), [("9.0\n8.0\n", "sm_90"), ("12.1\n", "sm_121"), ("", None), ("[N/A]\n", None)])
def test_the_gpu_of_this_machine(gpus: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, answer: str, arch: str | None) -> None:
    gpus.found = "/usr/bin/nvidia-smi"
    monkeypatch.setattr(devices, "ask_driver", lambda *fields: answer)
    if arch is not None:
        assert devices.architecture_here() == arch
    else:
        with pytest.raises(BuildError, match="the driver does not say what GPU this is"):
            devices.architecture_here()


@pytest.mark.usefixtures("gpus")
def test_units_of_the_gpu_are_refused_before_the_first_use() -> None:
    with pytest.raises(BuildError, match=r"^parallelize\(b, gpu_block\) needs an NVIDIA GPU .*; target cpu has cpu_thread, cpu_vector$"):
        st.compile(SPMV, {"A": "csr"}, schedule=ON_GPU)


def test_units_of_the_gpu_do_not_run_on_the_cpu(gpus: SimpleNamespace) -> None:
    gpus.found = "/usr/bin/nvidia-smi"
    with pytest.raises(ScheduleError, match=r"^parallelize\(b, gpu_block\): target cpu has no such unit; it has cpu_thread, cpu_vector"):
        st.compile(SPMV, {"A": "csr"}, schedule=ON_GPU)
