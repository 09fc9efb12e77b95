"""Random schedules of random expressions: a case of ``random_case`` that is computed as directives say, drawn one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from random import Random

import numpy as np
from sparsetune.compiler.pipeline import compile_kernel

from .cases import Case, random_case
from .drawer import Drawer, Drawn, drawn
from .expressions import denominators
from .runner import Failure, run_given

THREADS = (1, 3)


@lru_cache(1000)
def _drawn(seed: int) -> tuple[Case, Drawn]:
    case = random_case(seed)
    rng = Random(seed)
    semiring = None if case.semiring == ("+", "*") else case.semiring
    found = compile_kernel(case.text, case.formats, case.constants, semiring=semiring).concretized
    drawer = Drawer(rng, case.target.tensor, case.constants, found.formats)
    plain = is_plain(case)
    case = replace(case, manner=replace(case.manner, special=case.manner.special and not plain))  # other data is as plain
    return case, drawn(drawer, found.program, lambda text: keeps_pattern(case, plain, text))


def is_plain(case: Case) -> bool:
    """Whether zeros that are stored where nothing was give no NaN."""
    return all(np.isfinite(operand.values).all() for operand in case.operands.values()) and not any(denominators(case.tree))


def keeps_pattern(case: Case, plain: bool, directive: str) -> bool:
    """Whether a directive leaves the pattern of the result as it is, and what is NaN of 0 times infinity and 0 / 0.

    Dense operands and workspaces hold zeros where nothing is stored; ``plain``: whether these are as good as nothing.
    """
    kind = directive.partition("(")[0]
    if kind == "convert":
        return plain and case.result_format.is_dense
    return plain or kind not in ("precompute", "loopfuse")


def scheduled_case(seed: int) -> Case:
    """Return the case of a seed with a schedule of its own. Where races may be ignored, there is one thread."""
    case, found = _drawn(seed)
    threads = THREADS if "cpu_thread" in found.schedule and "ignore_races" not in found.schedule else (1,)
    return replace(case, schedule=found.schedule, threads=threads)


def drawn_schedule(seed: int) -> Drawn:
    """Return what was drawn for a seed."""
    return _drawn(seed)[1]


def run_scheduled(seeds: Sequence[int], flags: Sequence[str]) -> list[Failure]:
    return run_given([scheduled_case(seed) for seed in seeds], flags)
