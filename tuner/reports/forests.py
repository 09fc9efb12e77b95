"""``results/forests.md``: how many loop nest forests the stages leave, and how fast the chosen ones are beside others.

    python -m sparsetune.tuner.reports.forests --minutes 60

After Dias et al., "SparseAuto", Tables 3 and 4 and Figures 9 and 12, and Kanakagiri and Solomonik, "Minimum Cost Loop Nests". Every
contest runs in turn on one thread. Rows are kept in ``forests.csv``, and the next run goes on with what is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from ...compiler.errors import SparsetuneError
from ...compiler.schedule.directives import WorkspaceDirective
from ...compiler.schedule.schedule import Schedule
from ...compiler.space.forests.choice import promising, sizes_of
from ...compiler.space.forests.costs import costs_of
from ...compiler.space.forests.forest import Forest
from ...compiler.space.forests.paths import PathRules
from ...compiler.space.forests.peeling import ForestRules, path_depth
from ...compiler.space.forests.space import Forests
from ...compiler.storage.positions import stored_prefixes
from ..explore import explore
from ..forests.exploration import ForestExploration
from ..model import model_choice
from ..problem import Problem
from . import forest_parts
from .forest_cases import CASES, THREE, Case, composed, four_cases
from .forest_contest import contest, expected
from .forests_page import Point, page
from .partial import Partial
from .publishing import publish, results_option
from .race import Pace
from .records import Taken
from .table_3 import COPIES, STEPS, TABLE_2, counts, with_copies

SAMPLE, SHALLOW, LISTED = 300, 6, 4
"""How many forests of least depth are drawn, how many of the cheapest of these run, and how many of the cheapest of all forests run."""

GROWING, LENGTHS = CASES[f"SpTTM-TTM-TTM, {THREE[1]}"], (16, 32, 64, 128)
"""The case that runs with several extents of its dense modes, and these extents."""


def stages() -> Iterator[tuple[str, Callable[[], list[Point]]]]:
    """Yield Tables 3 and 4: the schedules that each stage leaves, and its seconds; then the time of generating C for a schedule."""

    def measured(name: str, text: str) -> list[Point]:
        found = explore(text, {name: "csf" for name in "ST" if f"{name}(" in text}, preset="sparseauto")
        rows = [Point("stages", name, one["stage"], one["seconds"], one["kept"], one.get("buckets", 0), "") for one in found.stages]
        begin = time.perf_counter()
        _ = str(found.frontier[0].schedule)
        return [*rows, Point("stages", name, "schedule as text", time.perf_counter() - begin, 1, 1, "")]

    for name, text in TABLE_2.items():
        yield name, lambda name=name, text=text: measured(name, text)


def rules() -> Iterator[tuple[str, Callable[[], list[Point]]]]:
    """Yield Table 3 beside ours: the schedules that the last two stages leave with the rules of the paper added one by one, and with
    copies."""

    def measured(name: str) -> list[Point]:
        found = list[Point]()
        for letters in STEPS:
            begin = time.perf_counter()
            both = counts(name, letters)
            seconds = time.perf_counter() - begin
            stages = zip(("poset", "all"), both, strict=True)
            found += [Point("rules", name, f"{stage} {letters}", seconds, *left, "") for stage, left in stages]
        begin = time.perf_counter()
        left = with_copies(name)
        return [*found, Point("rules", name, COPIES, time.perf_counter() - begin, *left, "")]

    for name in TABLE_2:
        yield name, lambda name=name: measured(name)


def known_sizes(problem: Problem) -> dict[str, float]:
    """Return extents and positions of levels, by the symbols of costs."""
    levels = enumerate(stored_prefixes(problem.operands["T"]), 1)
    return {**problem.extents, **{f"nnz_T_{level}": count for level, count in levels}}


def contestants(case: Case, problem: Problem) -> dict[str, Schedule]:
    """Return the schedules that run: the default, the choice without measuring, the choices of the presets, forests, nests by hand."""
    found = {"default": Schedule(), "chosen": model_choice(problem) or Schedule()}
    try:
        space = Forests(problem.assignment, problem.formats)
    except SparsetuneError:  # the expression is no product
        return found
    sizes = known_sizes(problem)
    formats = {"T": problem.formats["T"], problem.assignment.target.tensor: problem.formats[problem.assignment.target.tensor]}
    for preset in ("spttn", "sparseauto"):
        try:
            explored = explore(problem.expression, formats, preset=preset, time_limit=20.0)
            assert isinstance(explored, ForestExploration)
            found[preset] = explored.chosen(sizes).schedule
        except SparsetuneError as error:
            click.echo(f"{case.name}: {preset}: {error}", err=True)
    least = min(path_depth(space.contraction, path) for path in space.peeling.paths())
    shallow = Forests(problem.assignment, problem.formats, ForestRules(loop_depth=least))
    for number, forest in enumerate(_cheapest(shallow.sample_forests(SAMPLE, 1), problem, sizes), 1):
        found[f"forest {number} of least depth"] = _plain(space.spelled(forest))
    wide = Forests(problem.assignment, problem.formats, ForestRules(PathRules(pairwise=False), fused=False))
    guessed = sizes_of(space.contraction, problem.extents, {"T": stored_prefixes(problem.operands["T"])})
    for number, forest in enumerate(promising(space.contraction, guessed, LISTED, lambda: None), 1):
        found[f"forest {number} of all"] = _plain(wide.spelled(forest))
    return found | {f"by hand {number}": Schedule(text) for number, text in enumerate(case.hand, 1)}


def _cheapest(forests: Sequence[Forest], problem: Problem, sizes: Mapping[str, float]) -> list[Forest]:
    """Return the distinct forests of least time."""
    times = {forest: costs_of(forest, problem.formats).time.at(sizes) for forest in dict.fromkeys(forests)}
    return sorted(times, key=times.__getitem__)[:SHALLOW]


def _plain(schedule: Schedule) -> Schedule:
    """Return a schedule that leaves the kinds of workspaces to the compiler."""
    return Schedule([one for one in schedule if not isinstance(one, WorkspaceDirective)])


def family(pace: Pace) -> Iterator[tuple[str, Callable[[], list[Point]]]]:
    """Yield Figure 9: for the kernels of the papers, the chosen schedule and all other contestants."""

    def measured(case: Case) -> list[Point]:
        problem = case.problem()
        return contest("family", case, contestants(case, problem), problem, {"NumPy and SciPy": composed(problem)}, pace)

    for name, case in CASES.items():
        yield name, lambda case=case: measured(case)


def cases(pace: Pace) -> Iterator[tuple[str, Callable[[], list[Point]]]]:
    """Yield the four cases of section 3.1: the nests of Figure 2, the static model's choice among them, and its choice from all."""

    def measured(case: Case) -> list[Point]:
        problem = case.problem()
        schedules = {f"nest {letter}": Schedule(text) for letter, text in zip("abcde", case.hand, strict=True)}
        costs = expected(problem, schedules)
        which = min(costs, key=costs.__getitem__)
        schedules |= {f"of these ({which})": schedules[which], "chosen": model_choice(problem) or Schedule()}
        return contest("cases", case, schedules, problem, {}, pace)

    for case in four_cases():
        yield case.name, lambda case=case: measured(case)


def every(pace: Pace) -> Iterator[tuple[str, Callable[[], list[Point]]]]:
    """Yield Figure 12: the chosen schedule and all schedules that the compile-time stages leave."""

    def measured(case: Case) -> list[Point]:
        problem = case.problem()
        explored = explore(problem.expression, {"T": problem.formats["T"]}, preset="sparseauto")
        assert isinstance(explored, ForestExploration)
        schedules = {f"left {number}": one.schedule for number, one in enumerate(explored.frontier, 1)}
        schedules["by sizes"] = explored.chosen(known_sizes(problem)).schedule
        schedules["chosen"] = model_choice(problem) or Schedule()
        return contest("all", case, schedules, problem, {}, pace)

    for name, case in CASES.items():
        if name.partition(",")[0] in ("SpMMH-GEMM", "SDDMM-SpMM", "MTTKRP-GEMM", "SDDMM-SpMM-GEMM"):
            yield name, lambda case=case: measured(case)


def extents(pace: Pace) -> Iterator[tuple[str, Callable[[], list[Point]]]]:
    """Yield our choice and the schedule of SpTTN-Cyclops as dense modes grow, as SparseAuto compares them."""

    def measured(length: int) -> list[Point]:
        case = replace(GROWING, name=growing(length), dims=dict.fromkeys(GROWING.dims, length))
        problem = case.problem()
        explored = explore(problem.expression, {"T": problem.formats["T"]}, preset="spttn", time_limit=20.0)
        assert isinstance(explored, ForestExploration)
        schedules = {"spttn": explored.chosen(known_sizes(problem)).schedule, "chosen": model_choice(problem) or Schedule()}
        return contest("extents", case, schedules, problem, {}, pace)

    def growing(length: int) -> str:
        return f"{GROWING.name}, modes of {length}"

    for length in LENGTHS:
        yield growing(length), lambda length=length: measured(length)


def without_stages() -> Iterator[tuple[str, Callable[[], list[Point]]]]:
    """Yield the schedules that the stages leave if one of them is left out."""

    def measured(name: str, text: str) -> list[Point]:
        found = forest_parts.ablation(text, {tensor: "csf" for tensor in "ST" if f"{tensor}(" in text})
        return [Point("ablation", name, one.who, one.seconds, one.kept, one.buckets, "") for one in found]

    for name, text in TABLE_2.items():
        yield name, lambda name=name, text=text: measured(name, text)


def further(pace: Pace) -> Iterator[tuple[str, Callable[[], list[Point]]]]:
    """Yield Figures 10 and 13 of SparseAuto, Figure 5 (c) of SpTTN-Cyclops, and fully against partially fused forests."""

    def points(name: str, found: Mapping[str, float]) -> list[Point]:
        return [Point("further", name, who, seconds, 0, 0, "") for who, seconds in found.items()]

    name = f"buffers: {forest_parts.BUFFERED.name}"
    yield name, lambda: points(name, forest_parts.buffers(pace))
    kinds = ("shared", forest_parts.SHARED, forest_parts.shared), ("threads", forest_parts.THREADED, forest_parts.threads)
    for kind, names, measure in kinds:
        for case in (CASES[name] for name in names if name in CASES):
            label = f"{kind}: {case.name}"
            yield label, lambda label=label, case=case, measure=measure: points(label, measure(case, pace))


@click.command()
@results_option
@click.option("--minutes", default=60.0, show_default=True, help="Begin nothing new after so many.")
@click.option("--seconds", default=5.0, show_default=True, help="Time of one contest.")
@click.option("--only", default="", help="Only cases whose names begin so.")
@click.option("--again", multiple=True, help="Measure cases whose names begin so, or parts of this name, again, and first, in this order;"
              " not what was measured in this very state of code and machine. Cases that such a part no longer has are dropped."
              " May be repeated.")
def main(results: Path, minutes: float, seconds: float, only: str, again: tuple[str, ...]) -> None:
    """Measure loop nest forests; what is there already is not measured again. The page is written after every case."""
    begin, kept = time.monotonic(), Partial(results / "forests.csv", Point)
    pace, now = Pace(seconds, 5, 51), Taken()
    known = {(one.part, one.case) for one in kept.rows if (one.machine, one.commit) == (now.machine, now.commit) or not _named(one, again)}
    measured = {"stages": stages(), "rules": rules(), "ablation": without_stages(), "cases": cases(pace), "all": every(pace),
                "further": further(pace), "extents": extents(pace), "family": family(pace)}  # fmt: skip
    parts = {part: dict(own) for part, own in measured.items()}
    kept.rows = [one for one in kept.rows if one.part not in again or one.case in parts[one.part]]
    kept.add(())
    ordered = sorted(parts, key=lambda part: again.index(part) if part in again else len(again))
    items = ((part, case, measure) for part in ordered for case, measure in parts[part].items())
    left = [item for item in items if item[:2] not in known and item[1].startswith(only)]
    for number, (part, case, measure) in enumerate(left, 1):
        if time.monotonic() >= begin + 60 * minutes:
            break
        found = measure()
        kept.rows = [one for one in kept.rows if (one.part, one.case) != (part, case)]
        kept.add(found)
        _write(results, kept.rows)
        click.echo(f"{part}: {case} ({number} of {len(left)}, {(time.monotonic() - begin) / 60:.0f} of {minutes:g} minutes)", err=True)
    if kept.rows:
        _write(results, kept.rows)


def _named(row: Point, names: Sequence[str]) -> bool:
    return row.part in names or any(map(row.case.startswith, names))


def _write(results: Path, rows: Sequence[Point]) -> None:
    publish(results / "forests.md", page(rows))


if __name__ == "__main__":
    main()
