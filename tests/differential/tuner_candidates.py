"""The candidates of the tuner for kernels of the papers, and the library: run on many shapes, interpreted, and under many threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from random import Random

from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.concrete.concretize import Concretized
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.kernel import Kernel
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.compiler.space.candidates import Candidate, candidates
from sparsetune.compiler.space.library import LIBRARY

from .runner import Failure
from .scheduled import Scheduled, default_program, fault, interpreted_fault, kinds_of, run

KNOWN: tuple[tuple[str, str, tuple[tuple[str, int], ...]], ...] = (
    ("y(i) = A(i,j) * x(j)", "A=csr", ()), ("y(i) = A(i,j) * x(j)", "A=csc", ()),
    ("y(i) = A(i,j) * x(j)", "A=csc x=compressed", ()),
    ("Y(i,k) = A(i,j) * X(j,k)", "A=csr", (("k", 32),)), ("Y(i,k) = A(i,j) * X(j,k)", "A=csr", ()),
    ("Z(i,j) = B(i,j) * C(i,k) * D(j,k)", "B=csr Z=csr", (("k", 16),)),
    ("T(i,j) = B(i,j,k) * c(k)", "B=csf T=dcsr", ()), ("T(i,j,l) = B(i,j,k) * C(k,l)", "B=csf", (("l", 8),)),
    ("M(i,r) = B(i,j,k) * C(j,r) * D(k,r)", "B=csf", (("r", 8),)), ("M(j,r) = B(i,j,k) * C(i,r) * D(k,r)", "B=csf", (("r", 8),)),
    ("R(i,l,m) = B(i,j,k) * C(j,l) * D(k,m)", "B=csf", (("l", 4), ("m", 4))),
    ("C(i,j) = A(i,k) * B(k,j)", "A=csr B=csr C=csr", ()), ("C(i,j) = A(i,k) * B(k,j)", "", ()),
    ("Z(i,j) = B(i,j) + C(i,j)", "B=csr C=csr Z=csr", ()),
)  # fmt: skip


@cache
def _templates(kernel: int) -> tuple[Candidate, ...]:
    expression, text, extents = KNOWN[kernel]
    assignment = parse(expression)
    return candidates(assignment, formats_of(assignment, dict(kinds_of(text))), dict(extents), threads=2)


def candidate_schedules(drawn: int = 1, parallel: bool = False) -> Iterator[Scheduled]:
    """Yield every candidate of the known kernels with its usual parameters and with drawn ones, then the library.

    Args:
        drawn: how many draws of parameters for a candidate, beside the usual ones.
        parallel: only schedules that run threads.
    """
    seed = 0
    for kernel, (expression, text, extents) in enumerate(KNOWN):
        found = default_program(expression, kinds_of(text))
        for item in _templates(kernel):
            rng = Random(seed)
            picks = [{}, *({hole.name: rng.choice(hole.choices) for hole in item.template.holes} for _ in range(drawn))]
            for pick in picks:
                schedule = str(item.template.fill(pick))
                if (not parallel or "cpu_thread" in schedule) and _applies(found, schedule, extents):
                    yield Scheduled(seed, expression, kinds_of(text), schedule, extents)
                    seed += 1
    for named in LIBRARY:
        if named.target == "cpu" and (not parallel or "cpu_thread" in named.text):
            yield Scheduled(seed, named.expression, named.formats, named.text, named.extents)
            seed += 1


def _applies(found: Concretized, schedule: str, extents: tuple[tuple[str, int], ...]) -> bool:
    try:
        apply_schedule(found.program, schedule, found.formats, dict(extents))
    except ScheduleError:
        return False
    return True


@cache
def chosen_candidates(drawn: int, parallel: bool) -> tuple[Scheduled, ...]:
    return tuple(candidate_schedules(drawn, parallel))


def some_candidate(seed: int) -> Scheduled:
    return chosen_candidates(1, False)[seed]


def parallel_candidate(seed: int) -> Scheduled:
    return chosen_candidates(0, True)[seed]


def run_meeting(seeds: Sequence[int], flags: Sequence[str]) -> list[Failure]:
    """Run parallel candidates in the interpreter, which sees every pair of iterations that meet, whatever the threads do."""
    return run([parallel_candidate(seed) for seed in seeds], flags, interpreted_fault)


def run_candidates(seeds: Sequence[int], flags: Sequence[str]) -> list[Failure]:
    return run([some_candidate(seed) for seed in seeds], flags)


def run_stress(seeds: Sequence[int], flags: Sequence[str]) -> list[Failure]:
    """Run parallel candidates many times with more threads than cores; whole numbers show a single lost update."""
    return run([parallel_candidate(seed) for seed in seeds], flags, stress_fault, 25)


def stress_fault(case: Scheduled, made: Kernel) -> str | None:
    return fault(case, made, (8,), 25)
