"""Random schedules of random expressions: a case of ``random_case`` that is computed as directives say, drawn one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from random import Random

from sparsetune.compiler.pipeline import compile_kernel

from .cases import Case, random_case
from .drawer import Drawer, Drawn, drawn
from .runner import Failure, run_given

THREADS = (1, 3)


@lru_cache(1000)
def _drawn(seed: int) -> tuple[Case, Drawn]:
    case = random_case(seed)
    rng = Random(seed)
    semiring = None if case.semiring == ("+", "*") else case.semiring
    found = compile_kernel(case.text, case.formats, case.constants, semiring=semiring).concretized
    drawer = Drawer(rng, case.target.tensor, case.constants, found.formats)
    return case, drawn(drawer, found.program, lambda text: keeps_pattern(case, text))


def keeps_pattern(case: Case, directive: str) -> bool:
    """Whether a directive leaves the stored entries of the result as they are: a dense operand stores everything."""
    return case.result_format.is_dense or not directive.startswith("convert")


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
