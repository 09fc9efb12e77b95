"""Further parts of the report on forests: stages left out one by one, threads, buffers of fewer modes, loops that are shared or not.

After Dias et al., "SparseAuto", Figures 10 and 13 and their ablation; Kanakagiri and Solomonik, "Minimum Cost Loop Nests", Figure 5 (c)
and section 8. Each contest takes some seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ...compiler.frozen import frozen
from ...compiler.schedule.directives import WorkspaceDirective
from ...compiler.schedule.schedule import Schedule
from ...compiler.space.forests.choice import promising, sizes_of
from ...compiler.space.forests.forest import Forest, Loop, Tree
from ...compiler.space.forests.space import Forests
from ...compiler.storage.positions import stored_prefixes
from ..explore import explore
from ..forests.domain import usual_ranges
from ..forests.exploration import ANY_FOREST
from ..kernels import compile_problem
from ..model import model_choice
from ..problem import Problem
from .forest_cases import FOUR, THREE, TWO, Case
from .race import Pace, race

THREADED = (f"MTTKRP3 mode 1, {THREE[1]}", f"TTMc3 mode 1, {THREE[1]}", f"SDDMM-SpMM-GEMM, {TWO[1]}", f"SpMMH-GEMM, {TWO[1]}")
"""Cases that run on one thread and on two, with the choice by asymptotic costs as a further contestant."""

SHARED = (f"MTTKRP3 mode 1, {THREE[0]}", f"MTTKRP4, {FOUR[0]}", f"TTMc3 mode 1, {THREE[0]}")
"""Cases that run with as many shared loops as possible, and with only the outermost loop shared."""

BUFFERED = Case(
    "TTMc3",
    "A(i,r,s) = T(i,j,k) * U(j,r) * V(k,s)",
    "random:uniform:500x400x300:nnz=2e5",
    {"r": 32, "s": 32},
    ("reorder(i, j, s, k, r); precompute(T(i,j,k) * V(k,s), [], [], w)", "precompute(T(i,j,k) * V(k,s), s, s, w)"),
)
"""Loop orders (i,j,s,k) with (i,j,s,r), whose buffer is a scalar, and (i,j,k,s) with (i,j,r,s), whose buffer is a row."""


@frozen
class Left:
    """The schedules that pruning leaves without one of its stages.

    Attributes:
        who: which stage was left out.
        seconds: time of all stages.
        kept, buckets: how many schedules and costs are left.
    """

    who: str
    seconds: float
    kept: int
    buckets: int


def ablation(text: str, formats: Mapping[str, str]) -> Iterator[Left]:
    """Yield the schedules that preset "sparseauto" leaves of a kernel, with all stages and without each of them."""
    indices = {name for name in text if name.isalpha() and name.islower()}
    usual = dict.fromkeys(sorted(indices), usual_ranges()["extent"])  # with ranges, depths drop only what costs drop too
    for who, depth, ranges in (("all stages", 2, None), ("no memory depth", len(indices), None), ("no depth poset", 2, usual)):
        begin = time.perf_counter()
        found = explore(text, formats, preset="sparseauto", memory_depth=depth, ranges=ranges, time_limit=None)
        last, before = found.stages[-1], found.stages[-2]
        yield Left(who, time.perf_counter() - begin, last["kept"], last["buckets"])
        if who == "all stages":
            yield Left("no costs over all sizes", sum(stage["seconds"] for stage in found.stages[:-1]), before["kept"], before["buckets"])


def threads(case: Case, pace: Pace) -> dict[str, float]:
    """Return the seconds of the default, the choice by asymptotic costs and that of the static model, on one thread and on two."""
    alone = case.problem()
    formats = {name: str(form) for name, form in alone.formats.items() if not form.is_dense}
    asymptotic = explore(case.expression, formats, time_limit=20.0).frontier[0].schedule
    both = {count: replace(alone, threads=count) for count in (1, 2)}
    chosen = {count: model_choice(problem) or Schedule() for count, problem in both.items()}
    return raced(both, {"default": dict.fromkeys(both, Schedule()), "asymptotic": {1: asymptotic}, "chosen": chosen}, pace)


def raced(problems: Mapping[int, Problem], schedules: Mapping[str, Mapping[int, Schedule]], pace: Pace) -> dict[str, float]:
    """Return the seconds of schedules that run in turn, each on its number of threads."""
    runs = {
        f"{who}, {count} thread{'s' * (count > 1)}": compile_problem(problems[count], schedule).bind(problems[count].operands, count)
        for who, own in schedules.items()
        for count, schedule in own.items()
    }
    return {who: series.median for who, series in race(runs, pace).items()}


def buffers(pace: Pace) -> dict[str, float]:
    """Return the seconds of TTMc with a scalar between its two products, and with a row."""
    scalar, row = map(Schedule, BUFFERED.hand)
    return raced({1: BUFFERED.problem()}, {"a scalar": {1: scalar}, "a row": {1: row}}, pace)


def shared(case: Case, pace: Pace) -> dict[str, float]:
    """Return the seconds of the fully fused forest of least work, and of the same forest with only the outermost loop shared."""
    problem = case.problem()
    space = Forests(problem.assignment, problem.formats, ANY_FOREST)
    guessed = sizes_of(space.contraction, problem.extents, {"T": stored_prefixes(problem.operands["T"])})
    fused = next(one for one in promising(space.contraction, guessed, 4, lambda: None) if len(one.path) > 1 and apart(one) != one)
    both = {"all loops shared": fused, "the outermost shared": apart(fused)}
    return raced({1: problem}, {who: {1: _plain(space.spelled(forest))} for who, forest in both.items()}, pace)


def apart(forest: Forest) -> Forest:
    """Return a forest changed so that its terms share no loop but the outermost."""

    def inside(tree: Tree) -> Tree:
        return Loop(tree.index, tuple(inner for part in tree.parts for inner in _split(part))) if isinstance(tree, Loop) else tree

    return Forest(forest.contraction, tuple(map(inside, forest.trees)))


def _split(tree: Tree) -> tuple[Tree, ...]:
    """Return a loop for each term below a loop."""
    if not isinstance(tree, Loop):
        return (tree,)
    return tuple(Loop(tree.index, (inner,)) for part in tree.parts for inner in _split(part))


def _plain(schedule: Schedule) -> Schedule:
    """Return a schedule that leaves the kinds of workspaces to the compiler."""
    return Schedule([one for one in schedule if not isinstance(one, WorkspaceDirective)])

