"""Records to fill databases with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sparsetune.compiler.errors import SparsetuneError
from sparsetune.tuner.environment import code_version
from sparsetune.tuner.kernels import compile_problem
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.records import Decision, Input, Measurement, Status, Workload

WORKLOAD = Workload("abcd", "T0(i0) = T1(i0,i1) * T2(i1)", "dense | dense, compressed | dense", "float64", "cpu", 2)
INPUT = Input((("i0", 100), ("i1", 80)), (("nnz:T1", 10.5), ("extent:i0", 6.64)), "feed", "HB/494_bus")


def measurement(**changes: Any) -> Measurement:
    usual = Measurement(
        workload=WORKLOAD,
        input=INPUT,
        campaign="c1",
        role="trial",
        schedule="parallelize(i0, cpu_thread, no_races)",
        status=Status.OK,
        seconds=0.002,
        samples=((0.002, 0.002, 0.0, 0.0, 0.0, 0.0, 1.0), (0.0021, 0.0021, 0.0, 0.0, 0.0, 0.0, 1.0)),
        source="0123",
        build_seconds=0.2,
        policy={"warm_up": 1},
        environment={"processor": "test", "cores": 2},
        load=0.25,
        code="0.1.0",
        created="2026-11-21T06:00:00.000+00:00",
    )
    return replace(usual, **changes)


def decision(**changes: Any) -> Decision:
    usual = Decision(
        workload=WORKLOAD,
        input=INPUT,
        campaign="c1",
        schedule="parallelize(i0, cpu_thread, no_races)",
        seconds=0.002,
        default_seconds=0.004,
        speedup_low=1.9,
        speedup_high=2.1,
        environment={"processor": "test", "cores": 2},
        code="0.1.0",
        created="2026-11-21T06:00:01.000+00:00",
    )
    return replace(usual, **changes)


def of_this_version(problem: Problem, schedule: str) -> dict[str, str]:
    """Return the generator, compiler and flags of a decision that is made now, for a schedule in canonical names."""
    try:
        compiler, flags = compile_problem(problem, problem.from_canonical(schedule)).built_by
    except SparsetuneError:  # nothing is compiled for illegal schedules and for GPUs
        compiler, flags = "", ""
    return {"code": code_version(), "compiler": compiler, "flags": flags}
