"""Static pruning: a pipeline of named stages, each of which takes candidates and gives those worth keeping.

Nothing is run. Every stage reports how many it kept and how long it took. A candidate is dropped only if it does not fit, or if
another one is no worse in every cost known at that point and better in one (Dias et al.: what is deeper but needs less memory stays
until sizes decide). The default schedule and the library of known good ones always stay.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..compiler.native.machine import this_machine
from ..compiler.schedule.candidates import Candidate
from ..compiler.schedule.schedule import Schedule
from .config import load_machine
from .kernels import is_legal
from .model import problem_candidates, rank
from .problem import Problem
from .search.space import Parameter, Space, Template

Item = TypeVar("Item")


@dataclass(frozen=True)
class Stage(Generic[Item]):
    """A named step of pruning, list to list."""

    name: str
    keep: Callable[[list[Item]], list[Item]]


def run_stages(items: list[Item], stages: Sequence[Stage[Item]]) -> tuple[list[Item], list[dict[str, Any]]]:
    """Return what all stages keep, and {"stage", "kept", "seconds"} for each."""
    report = []
    for stage in stages:
        start = time.perf_counter()
        items = stage.keep(items)
        report.append({"stage": stage.name, "kept": len(items), "seconds": time.perf_counter() - start})
    return items, report


def surviving_space(problem: Problem) -> tuple[Space, list[dict[str, Any]]]:
    """Return the space that is left to search, best first by the static model, and what each stage of pruning kept."""
    room = _room(problem)
    stages: list[Stage[Candidate]] = [
        Stage("generated", lambda _: list(problem_candidates(problem))),
        Stage("memory", lambda items: [item for item in items if _is_given(item) or _workspace_bytes(item, problem) <= room]),
        Stage("loop depth", lambda items: _undominated(items, problem)),
        Stage("legal", lambda items: [item for item in items if is_legal(problem, item.schedule())]),
        Stage("ranked", lambda items: [ranked.candidate for ranked in rank(problem, items)]),
    ]
    kept, report = run_stages([], stages)
    return Space(tuple(_template(item) for item in kept), lambda text: problem.to_canonical(Schedule(text))), report


def undominated(items: Sequence[Item], costs: Callable[[Item], Sequence[float]]) -> list[Item]:
    """Return the items that no other one beats: no worse in every cost and better in one. Equal ones all stay."""
    vectors = [tuple(costs(item)) for item in items]
    distinct = set(vectors)
    frontier = {vector for vector in distinct if not any(_beats(other, vector) for other in distinct)}
    return [item for item, vector in zip(items, vectors, strict=True) if vector in frontier]


def _undominated(items: list[Candidate], problem: Problem) -> list[Candidate]:
    frontier = undominated(items, lambda item: (item.depth, item.elements(problem.extents)))
    return [item for item in items if item in frontier or _is_given(item)]


def _is_given(item: Candidate) -> bool:
    """Return whether a candidate is the default schedule or one of the library, which are never dropped."""
    return not item.template or item.origin.startswith("library")


def _workspace_bytes(item: Candidate, problem: Problem) -> int:
    return item.elements(problem.extents) * problem.dtype.itemsize * problem.threads


def _room(problem: Problem) -> float:
    """Return the bytes that workspaces may take; for a problem that is small itself, no less than its own size."""
    size = sum(operand.nbytes for operand in problem.operands.values())
    machine = this_machine()
    return max(load_machine(machine.model).workspace_share * machine.last_level_cache, float(size))


def _beats(left: Sequence[float], right: Sequence[float]) -> bool:
    return left != right and all(a <= b for a, b in zip(left, right, strict=True))


def _template(item: Candidate) -> Template:
    return Template(item.template, tuple(Parameter(name, choices) for name, choices in item.parameters.items()))
