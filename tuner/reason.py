"""Why a schedule is faster than the default: one sentence from the terms of the cost models."""

from __future__ import annotations

from collections.abc import Iterator

from ..compiler.concrete.concretize import concretize
from ..compiler.schedule.schedule import Schedule
from .account import run_operations, scheduled
from .costs import operations as model_cost
from .problem import Problem

_WORTH_SAYING = 1.05  # a ratio of costs


def reason(problem: Problem, winner: Schedule, speedup: float | None) -> str:
    """Return one sentence: how many operations a schedule does beside the default, what the model expected, and how it gets there."""
    if not winner.directives:
        return "nothing that was tried is surely faster than the default schedule"
    parts = [*_costs(problem, winner), *_means(problem, winner)]
    expected = _expected(problem, winner)
    if expected is not None:
        measured = "which was not measured" if speedup is None else f"{speedup:.2f} times was measured"
        shown = f"{expected:.2f}" if expected >= 0.1 else f"{expected:.1g}"
        parts.append(f"the static model expected {shown} times the default's speed, {measured}")
    return "; ".join(parts) or "it differs from the default in what the cost models do not see, such as the compiler's flags"


def _costs(problem: Problem, winner: Schedule) -> Iterator[str]:
    ours, theirs = run_operations(problem, winner), run_operations(problem, Schedule())
    if ours and theirs and not 1 / _WORTH_SAYING < ours / theirs < _WORTH_SAYING:
        yield f"it does {ours / theirs:.2g} times the operations of the default ({ours:.3g} instead of {theirs:.3g})"


def _means(problem: Problem, winner: Schedule) -> Iterator[str]:
    """Yield the purposes of the directives, each once."""
    text = str(winner)
    said = {
        "runs on " + (f"{problem.threads} threads" if problem.threads > 1 else "one thread"): ("cpu_thread",),
        "computes in vectors": ("cpu_vector",),
        "keeps a part of the product in a workspace": ("precompute(", "loopfuse("),
        "splits the stored entries into equal shares": ("pos(",),
        "works tile by tile": ("split(", "split_up("),
        "prefetches what it will need": ("prefetch(",),
        "reorders the loops": ("reorder(",),
        "converts an operand first": ("convert(",),
        "merges operands in another way": ("merge(", "protocol("),
        "unrolls": ("unroll(",),
        "calls a library for the dense part": ("call(",),
    }
    found = [phrase for phrase, words in said.items() if any(word in text for word in words)]
    if found:
        yield "it " + (", ".join(found[:-1]) + " and " + found[-1] if len(found) > 1 else found[0])


def _expected(problem: Problem, winner: Schedule) -> float | None:
    """Return the static model's cost of the default over the winner's; None where it cannot say."""
    sources = concretize(problem.assignment, problem.formats).sources
    ours, theirs = (model_cost(problem, scheduled(problem, one), sources) for one in (winner, Schedule()))
    return theirs / ours if ours > 0 else None
