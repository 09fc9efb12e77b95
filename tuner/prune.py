"""Static pruning: a pipeline of named stages, each of which takes candidates and gives those worth keeping.

Nothing is run. Every stage reports how many it kept and how long it took. A candidate is dropped only if it cannot be applied, does
not fit, or another one is no worse in every cost known at that point and better in one; the default schedule is always kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..compiler.schedule.schedule import Schedule
from .kernels import is_legal
from .problem import Problem
from .search.space import Choice, Parameter, Space, Template

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


def undominated(items: Sequence[Item], costs: Callable[[Item], Sequence[float]]) -> list[Item]:
    """Return the items that no other one beats: no worse in every cost and better in one. Equal ones all stay."""
    vectors = [tuple(costs(item)) for item in items]
    frontier = [vector for vector in set(vectors) if not any(_beats(other, vector) for other in set(vectors))]
    return [item for item, vector in zip(items, vectors, strict=True) if vector in frontier]


def _beats(left: Sequence[float], right: Sequence[float]) -> bool:
    return left != right and all(a <= b for a, b in zip(left, right, strict=True))


@dataclass(frozen=True)
class Candidate:
    template: str
    parameters: dict[str, tuple[Choice, ...]]
    depth: int
    memory: int
    origin: str


def candidates(problem: Problem) -> list[Candidate]:
    from ..compiler.concrete.concretize import concretize
    from ..compiler.concrete.nodes import loops

    names = loops(concretize(problem.assignment, problem.formats).program.statement)
    outer, inner = names[0], names[-1]
    chunk = {"chunk": (16, 1, 64, 256)}
    found = [
        Candidate("", {}, len(names), 0, "default"),
        Candidate(f"parallelize({outer}, cpu_thread, no_races)", {}, len(names), 0, "interim"),
        Candidate(f"parallelize({outer}, cpu_thread, no_races, dynamic, {{chunk}})", chunk, len(names), 0, "interim"),
        Candidate(f"parallelize({outer}, cpu_thread, no_races, guided, {{chunk}})", chunk, len(names), 0, "interim"),
        Candidate(f"unroll({inner}, {{u}})", {"u": (2, 4, 8)}, len(names), 0, "interim"),
    ]
    return found


def surviving_space(problem: Problem) -> tuple[Space, list[dict[str, Any]]]:
    """Return the space that is left to search, and what each stage of pruning kept."""
    stages: list[Stage[Candidate]] = [
        Stage("generated", lambda items: candidates(problem)),
        Stage("legal", lambda items: [item for item in items if _is_legal(problem, item)]),
        Stage("undominated", lambda items: _with_default(items, undominated(items, lambda item: (item.depth, item.memory)))),
    ]
    kept, report = run_stages([], stages)
    templates = tuple(Template(item.template, tuple(Parameter(name, choices) for name, choices in item.parameters.items())) for item in kept)
    return Space(templates), report


def _is_legal(problem: Problem, item: Candidate) -> bool:
    template = Template(item.template, tuple(Parameter(name, choices) for name, choices in item.parameters.items()))
    return is_legal(problem, Schedule(template.fill(template.usual)))


def _with_default(items: Iterable[Candidate], kept: list[Candidate]) -> list[Candidate]:
    default = [item for item in items if not item.template and item not in kept]
    return default + kept
