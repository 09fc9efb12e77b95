"""A kernel, its operands, and records of it, for tests of lookup."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse
from sparsetune.compiler.storage.construct import tensor
from sparsetune.tuner.asking import lookup
from sparsetune.tuner.database import open_database
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.records import Decision, Measurement, Status
from sparsetune.tuner.resolve import make_problem
from tuner_samples import of_this_version

EXPRESSION = "y(i) = A(i,j) * x(j)"
PARALLEL = "parallelize(i0, cpu_thread, no_races)"
UNROLLED = "unroll(i1, 4)"


def operands(rows: int = 100, seed: int = 0):
    matrix = scipy.sparse.random_array((rows, 80), density=0.1, rng=np.random.default_rng(seed), format="csr")
    return {"A": tensor(matrix), "x": np.ones(80)}


def problem(rows: int = 100, seed: int = 0, threads: int = 2) -> Problem:
    return make_problem(EXPRESSION, operands(rows, seed), threads=threads)


def decided(of: Problem, schedule: str, speedup: float = 2.0, **changes) -> Decision:
    usual = Decision(
        workload=of.workload,
        input=of.input,
        campaign="c",
        schedule=schedule,
        seconds=1e-3,
        default_seconds=speedup * 1e-3,
        speedup_low=speedup,
        speedup_high=speedup,
        **of_this_version(of, schedule),
    )
    return replace(usual, **changes)


def measured(of: Problem, schedule: str, seconds: float) -> Measurement:
    return Measurement(
        workload=of.workload, input=of.input, campaign="c", role="trial", schedule=schedule, status=Status.OK, seconds=seconds
    )


def add(database: Path, *records) -> None:
    with open_database(database) as store:
        store.add(*records)


def look(database: Path, rows: int = 100, seed: int = 0, threads: int = 2, expression: str = EXPRESSION):
    return lookup(expression, operands(rows, seed), threads=threads, database=database)
