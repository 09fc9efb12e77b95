"""A campaign over fake kernels whose times are known: ``python tuner_campaigns.py DATABASE TRIALS``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import numpy as np
import scipy.sparse
from sparsetune.compiler.schedule import directives as d
from sparsetune.compiler.space.template import Hole, Template, opened
from sparsetune.tuner import session
from sparsetune.tuner.database import open_database
from sparsetune.tuner.measure.policy import Policy
from sparsetune.tuner.measure.worker_process import Worker
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.resolve import make_problem
from sparsetune.tuner.search.space import Space
from sparsetune.tuner.session import tune_problem
from sparsetune.tuner.settings import Budget, Settings
from sparsetune.tuner.tune_result import TuneResult

FAKE = (sys.executable, str(Path(__file__).parent / "fake_worker.py"))
SETTINGS = Settings(policy=Policy(max_seconds=0.05, final_rounds=6, burst_seconds=0.004))
GOOD = (1, 2, 7, 8)
ALL = (1, 2, 3, 4, 5, 6, 7, 8)


def spmv(rows: int = 30, density: float = 0.2, names: str = "yAxij", threads: int = 1) -> Problem:
    y, a, x, i, j = names
    matrix = scipy.sparse.random_array((rows, 20), density=density, rng=np.random.default_rng(0), format="csr")
    return make_problem(f"{y}({i}) = {a}({i},{j}) * {x}({j})", {a: matrix, x: np.ones(20)}, threads=threads)


def noted(folder: Path) -> Problem:
    """Return a problem, and leave a file whose name is the number of this process."""
    (folder / str(os.getpid())).touch()
    return spmv()


def space_of(problem: Problem, codes: Sequence[int]) -> Space:
    index = problem.assignment.value.children[0].subscripts[1].index  # type: ignore[attr-defined]
    unrolled = opened(d.Unroll(index, codes[0]), factor=Hole("factor", tuple(codes)))
    return Space((Template(), Template((unrolled,))), problem.to_canonical)


def campaign(
    database: str | Path,
    problem: Problem | None = None,
    codes: Sequence[int] = GOOD,
    trials: int = 20,
    worker: Worker | None = None,
    seed: int = 0,
    seconds: float | None = None,
    given: Sequence[str] = (),
    policy: Policy | None = None,
) -> TuneResult:
    """Tune a fake kernel; the space is the default schedule and ``unroll`` by the given codes."""
    problem = problem or spmv()
    settings = SETTINGS if policy is None else Settings(policy=policy)
    space = space_of(problem, codes), [{"stage": "generated", "kept": 2, "seconds": 0.0}]
    patched = mock.patch.object(session, "surviving_space", return_value=space)
    with patched, open_database(database) as store, worker or Worker(problem.threads, FAKE) as used:
        return tune_problem(problem, store, used, Budget(trials=trials, seconds=seconds), settings, seed, given=given)


if __name__ == "__main__":
    print(campaign(sys.argv[1], codes=GOOD, trials=int(sys.argv[2])))
