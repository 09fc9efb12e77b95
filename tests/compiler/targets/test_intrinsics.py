"""Functions of the loop IR on every target: each has a form there, or kernels that call it are refused."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest
from sparsetune.compiler.build.stages import kernel_source
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.ir.intrinsics import INTRINSICS, OF_LANES
from sparsetune.compiler.ir.nodes import SHARE_BEGIN, SHARE_NUMBER, Run, Steps
from sparsetune.compiler.lowering.kernel_spec import KernelSpec
from sparsetune.compiler.native.library import CSRC
from sparsetune.compiler.passes.manager import PassList
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.targets.c import C
from sparsetune.compiler.targets.cuda import CUDA
from sparsetune.compiler.targets.target import Target

TYPES = ("f32", "f64", "i32", "i64")


@cache
def forms(header: str) -> set[str]:
    """Return the names that a header defines, those that its macros make of a type included."""
    text = ""
    for name in (pending := [header]):
        text += (found := (CSRC / name).read_text())
        pending += [other for other in re.findall(r'#include "(st_\w+\.h)"', found) if other not in pending]
    text += "".join(re.sub(r"ST_NAME\((\w+)\)", rf"st_\1_{suffix}", text.replace("##S", suffix)) for suffix in TYPES)
    return set(re.findall(r"\b(st_\w+)\(", text))


@pytest.mark.parametrize("name", sorted(INTRINSICS.keys() - {SHARE_NUMBER, SHARE_BEGIN}))
def test_each_has_a_form_in_c(name: str) -> None:
    intrinsic = INTRINSICS[name]
    found = forms(intrinsic.header)
    assert intrinsic.c_name in found or any(f"{intrinsic.c_name}_{kind}" in found for kind in TYPES)


@pytest.mark.parametrize("name", sorted(INTRINSICS))
def test_each_has_a_form_in_cuda_or_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSETUNE_VERIFY", "0")  # the calls here have no arguments
    intrinsic, found = INTRINSICS[name], forms("st_cuda.h")
    named = {f"{intrinsic.c_name}_{kind}" for kind in TYPES} if intrinsic.typed else {intrinsic.c_name}
    assert bool(named & found) == (name in CUDA.intrinsics)
    if name not in CUDA.intrinsics:
        with pytest.raises(ScheduleError, match=f"^target cuda has no function {name}, which this schedule needs there"):
            kernel_source(_calling(name), replace(CUDA, passes=PassList([])))


def _calling(name: str) -> KernelSpec:
    spec = compile_kernel("y(i) = A(i,j) * x(j)", {"A": "csr"}).default_kernel.spec
    return replace(spec, function=replace(spec.function, body=Steps((Run(name, ()),))))


def test_those_of_lanes_are_the_printers_own() -> None:
    assert not OF_LANES & INTRINSICS.keys()


@pytest.mark.parametrize("target", [C, CUDA])
def test_targets_have_no_others(target: Target) -> None:
    assert target.intrinsics.keys() <= INTRINSICS.keys()
