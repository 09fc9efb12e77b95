"""``results/forests.md``: loop nest forests, how many the stages leave, and what is chosen beside all that could be.

    python -m sparsetune.tuner.reports.forests --minutes 60

After Dias et al., "SparseAuto", Tables 3 and 4 and Figures 9 and 12, and Kanakagiri and Solomonik, "Minimum Cost Loop Nests". Every
contest runs in turn on one thread; what was measured is kept in ``forests.csv``, and the next run goes on with what is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ...compiler.errors import SparsetuneError
from ...compiler.frozen import frozen
from ...compiler.schedule.apply import apply_schedule
from ...compiler.schedule.directives import WorkspaceDirective
from ...compiler.schedule.schedule import Schedule
from ...compiler.space.forests.choice import MOST_ELEMENTS, promising, sizes_of
from ...compiler.space.forests.costs import costs_of
from ...compiler.space.forests.forest import Forest
from ...compiler.space.forests.paths import PathRules
from ...compiler.space.forests.peeling import ForestRules, path_depth
from ...compiler.space.forests.space import Forests
from ..explore import explore
from ..forests.exploration import ANY_FOREST, ForestClass, ForestExploration
from ..kernels import compile_problem
from ..limits import workspace_elements
from ..measure.timing import least_of
from ..model import model_choice, operations, stored_prefixes
from ..problem import Problem
from .forest_cases import CASES, Case, composed, four_cases
from .markdown import geometric_mean, table
from .partial import Partial, write_rows
from .race import Pace, race
from .records import Taken
from .states import States

COMMAND = "python -m sparsetune.tuner.reports.forests"

TABLE_2 = {
    "SpMMH-GEMM": "A(i,l) = T(i,k) * C(k,j) * D(k,j) * E(j,l)",
    "SpMM-GEMM": "A(i,l) = T(i,j) * C(j,k) * D(k,l)",
    "SpTTM-TTM": "A(i,l,m) = T(i,j,k) * C(j,l) * D(k,m)",
    "SpTTM-SpTTM": "S(i,j,m) = T(i,j,k) * C(k,l) * D(l,m)",
    "SDDMM-SpMM": "A(i,l) = T(i,j) * C(i,k) * D(j,k) * E(j,l)",
    "MTTKRP-GEMM": "A(i,m) = T(i,k,l) * C(l,j) * D(k,j) * E(j,m)",
    "SDDMM-SpMM-GEMM": "A(i,m) = T(i,j) * C(i,k) * D(j,k) * E(j,l) * F(l,m)",
    "SpTTM-TTM-TTM": "A(l,m,n) = T(i,j,k) * C(i,l) * D(j,m) * E(k,n)",
}
"""The kernels of SparseAuto."""

SAMPLE, SHALLOW, LISTED = 300, 6, 4
"""Forests that are drawn and priced, those of least depth among the cheapest of these that run, and cheapest ones of all paths that run."""

HOPELESS, QUICK = 4.0, 0.5
"""What takes so many times as long as the fastest runs once; so many seconds, and it is asked again first."""


ENDLESS = 60.0
"""What is expected to take so many times as long as the cheapest does not run at all."""


@frozen
class Point(Taken):
    """One contestant of a contest, or one stage of a preset.

    Attributes:
        part: "stages", "family", "cases" or "all".
        case: kernel and input.
        who: whoever ran, or the stage.
        seconds: median of runs in turn; of a stage, what it took.
        kept, buckets: schedules and costs that a stage left.
        schedule: of our contestants.
    """

    part: str
    case: str
    who: str
    seconds: float
    kept: int
    buckets: int
    schedule: str


def stages() -> Iterator[tuple[str, Callable[[], list[Point]]]]:
    """Yield Tables 3 and 4: what each stage leaves of the space, and its seconds; last how long a schedule takes to become C."""

    def measured(name: str, text: str) -> list[Point]:
        found = explore(text, {name: "csf" for name in "ST" if f"{name}(" in text}, preset="sparseauto")
        rows = [Point("stages", name, one["stage"], one["seconds"], one["kept"], one.get("buckets", 0), "") for one in found.stages]
        begin = time.perf_counter()
        _ = str(found.frontier[0].schedule)
        return [*rows, Point("stages", name, "schedule as text", time.perf_counter() - begin, 1, 1, "")]

    for name, text in TABLE_2.items():
        yield name, lambda name=name, text=text: measured(name, text)


def known_sizes(problem: Problem) -> dict[str, float]:
    """Return extents and positions of levels, by the names that costs have for them."""
    levels = enumerate(stored_prefixes(problem.operands["T"]), 1)
    return {**problem.extents, **{f"nnz_T_{level}": count for level, count in levels}}


def contestants(case: Case, problem: Problem) -> dict[str, Schedule]:
    """Return the schedules that run: the default, what is chosen without measuring, what the presets choose, forests, nests by hand."""
    found = {"default": Schedule(), "chosen": model_choice(problem) or Schedule()}
    try:
        space = Forests(problem.assignment, problem.formats)
    except SparsetuneError:  # no product
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
    """Return the forests of least time, each once."""
    times = {forest: costs_of(forest, problem.formats).time.at(sizes) for forest in dict.fromkeys(forests)}
    return sorted(times, key=times.__getitem__)[:SHALLOW]


def _plain(schedule: Schedule) -> Schedule:
    """Return a schedule that leaves the kinds of workspaces to the compiler."""
    return Schedule([one for one in schedule if not isinstance(one, WorkspaceDirective)])


def hopeful(case: Case, problem: Problem, schedules: Mapping[str, Schedule]) -> dict[str, Schedule]:
    """Return the schedules without those that would take far too long, or far too much memory, to run even once."""
    default = problem.concretized()
    programs = {who: apply_schedule(default.program, schedule, default.formats, problem.constants) for who, schedule in schedules.items()}
    costs = {who: operations(problem, program, default.sources) for who, program in programs.items()}
    most, kept = ENDLESS * min(costs.values()), dict[str, Schedule]()
    for who, program in programs.items():
        if who == "chosen" or (costs[who] <= most and workspace_elements(program, problem.extents) <= MOST_ELEMENTS):
            kept[who] = schedules[who]
        else:
            click.echo(f"{case.name}: {who} is left out, at {costs[who] / min(costs.values()):.0f} times the least operations", err=True)
    return kept


def contest(part: str, case: Case, schedules: Mapping[str, Schedule], problem: Problem, others: Mapping[str, Callable[[], Any]],
            pace: Pace) -> list[Point]:  # fmt: skip
    """Run schedules and others in turn; those that are hopeless run once."""
    runs: dict[str, Callable[[], Any]] = {}
    points, seconds, alike = [], dict[str, float](), dict[str, Callable[[], Any]]()
    for who, schedule in hopeful(case, problem, schedules).items():
        try:
            text = str(schedule)
            if text not in alike:
                alike[text] = compile_problem(problem, schedule).bind(problem.operands, 1)
            runs[who] = alike[text]
        except SparsetuneError as error:
            click.echo(f"{case.name}: {who} is left out: {error}", err=True)
    for who, run in {**runs, **others}.items():
        seconds[who] = least_of(run, 1, 1)
        if seconds[who] < QUICK:
            seconds[who] = least_of(run, 1, 2)  # with everything at hand
    near = HOPELESS * min(seconds.values())
    kept = {who: run for who, run in {**runs, **others}.items() if seconds[who] <= near or who in ("chosen", "default")}
    measured = {**seconds, **{who: series.median for who, series in race(kept, pace).items()}}
    for who, found in measured.items():
        points.append(Point(part, case.name, who, found, 0, 0, str(schedules.get(who, ""))))
    return points


def family(pace: Pace) -> Iterator[tuple[str, Callable[[], list[Point]]]]:
    """Yield Figure 9: the kernels of the papers, chosen against everything else."""

    def measured(case: Case) -> list[Point]:
        problem = case.problem()
        return contest("family", case, contestants(case, problem), problem, {"NumPy and SciPy": composed(problem)}, pace)

    for name, case in CASES.items():
        yield name, lambda case=case: measured(case)


def cases(pace: Pace) -> Iterator[tuple[str, Callable[[], list[Point]]]]:
    """Yield the four cases of section 3.1: the nests of Figure 2, which of them the sizes choose, and what the whole space has."""

    def measured(case: Case) -> list[Point]:
        problem = case.problem()
        schedules = {f"nest {letter}": Schedule(text) for letter, text in zip("abcde", case.hand, strict=True)}
        explored = explore(problem.expression, {"T": problem.formats["T"]}, preset="sparseauto")
        assert isinstance(explored, ForestExploration)
        sizes = known_sizes(problem)
        space = Forests(problem.assignment, problem.formats, ANY_FOREST)
        nests = {name: space.find(schedule) for name, schedule in schedules.items()}
        own = [_alone(forest, problem) for forest in nests.values() if forest is not None]
        chosen = replace(explored, classes=tuple(own)).chosen(sizes)
        which = next(name for name, forest in nests.items() if forest == chosen.forest)
        schedules |= {f"of these ({which})": schedules[which], "chosen": model_choice(problem) or Schedule()}
        return contest("cases", case, schedules, problem, {}, pace)

    for case in four_cases():
        yield case.name, lambda case=case: measured(case)


def _alone(forest: Forest, problem: Problem) -> ForestClass:
    return ForestClass(costs_of(forest, problem.formats), 1, lambda: iter((forest,)))


def every(pace: Pace) -> Iterator[tuple[str, Callable[[], list[Point]]]]:
    """Yield Figure 12: what is chosen against all that the compile-time stages leave."""

    def measured(case: Case) -> list[Point]:
        problem = case.problem()
        explored = explore(problem.expression, {"T": problem.formats["T"]}, preset="sparseauto")
        assert isinstance(explored, ForestExploration)
        schedules = {f"left {number}": one.schedule for number, one in enumerate(explored.frontier, 1)}
        schedules["by sizes"] = explored.chosen(known_sizes(problem)).schedule
        return contest("all", case, schedules, problem, {}, pace)

    for name, case in CASES.items():
        if name.partition(",")[0] in ("SpMMH-GEMM", "SDDMM-SpMM", "MTTKRP-GEMM", "SDDMM-SpMM-GEMM"):
            yield name, lambda case=case: measured(case)


def page(points: Sequence[Point]) -> str:
    """Return the page."""
    states = States(points)
    parts = [
        "# Loop nest forests",
        f"`{COMMAND}` wrote this page. {states.text}",
        "## What the stages leave\n\nSchedules (buckets of equal cost) after each stage of preset \"sparseauto\", and all its milliseconds,"
        " after Tables 3 and 4 of SparseAuto.",
        _stages(points),
        "## The family\n\nMilliseconds of what is chosen without measuring, on one thread, and how many times as long others take:"
        " the default, the choices of the two presets, the best of the cheapest forests of least depth and of all paths, nests by hand,"
        f" NumPy with SciPy. {_summary(points)}",
        _family(points),
        "## Four cases\n\nSparseAuto, section 3.1: milliseconds of the nests of its Figure 2, of the one that sizes choose among them,"
        " and of what is chosen from the whole space.",
        _each(points, "cases"),
        "## Chosen against all\n\nHow many schedules the stages leave, milliseconds of the best and the worst of them, and of the one that"
        " sizes choose.",
        _every(points),
    ]
    return "\n\n".join(parts) + "\n"


def _of(points: Sequence[Point], part: str) -> dict[str, list[Point]]:
    found: dict[str, list[Point]] = {}
    for one in points:
        if one.part == part:
            found.setdefault(one.case, []).append(one)
    return found


def _stages(points: Sequence[Point]) -> str:
    rows = []
    for case, own in _of(points, "stages").items():
        left = {one.who: f"{one.kept} ({one.buckets})" if one.buckets else str(one.kept) for one in own}
        spent = f"{1e3 * sum(one.seconds for one in own):.0f}"
        rows.append([case, *(left.get(stage, "") for stage in ("generated", "memory_depth", "depth_poset", "smt")), spent])
    return table(("kernel", "generated", "memory depth", "depth poset", "all sizes", "ms"), rows)


_GROUPS = ("default", "spttn", "sparseauto", "forest of least depth", "forest of all", "by hand", "NumPy and SciPy")


def _groups(own: Sequence[Point]) -> dict[str, float]:
    """Return the least seconds of each group of contestants."""
    found: dict[str, float] = {}
    for one in own:
        words = [word for word in one.who.split() if not word.isdigit()]
        name = " ".join(words)
        found[name] = min(found.get(name, one.seconds), one.seconds)
    return found


def _family(points: Sequence[Point]) -> str:
    rows = []
    for case, own in _of(points, "family").items():
        least = _groups(own)
        ratios = (f"{least[name] / least['chosen']:.2f}" if name in least else "" for name in _GROUPS)
        rows.append([case, f"{1e3 * least['chosen']:.3g}", *ratios])
    return table(("kernel and input", "chosen, ms", *_GROUPS), rows)


def _summary(points: Sequence[Point]) -> str:
    ratios = [min(value for name, value in least.items() if name != "chosen") / least["chosen"]
              for least in map(_groups, _of(points, "family").values())]  # fmt: skip
    if not ratios:
        return ""
    won = sum(ratio >= 1 / 1.05 for ratio in ratios)
    return (
        f"The best of the others takes {geometric_mean(ratios):.2f} times as long by geometric mean, {min(ratios):.2f} at least; on {won}"
        f" of {len(ratios)} inputs nothing is faster by more than 5%."
    )


def _each(points: Sequence[Point], part: str) -> str:
    found = _of(points, part)
    who = list(dict.fromkeys(one.who.partition(" (")[0] for own in found.values() for one in own))
    rows = []
    for case, own in found.items():
        seconds = {one.who.partition(" (")[0]: (one.seconds, one.who.partition(" (")[2].rstrip(")")) for one in own}
        cells = (seconds.get(name) for name in who)
        rows.append([case, *("" if cell is None else f"{1e3 * cell[0]:.3g} {cell[1]}".strip() for cell in cells)])
    return table(("case", *who), rows)


def _every(points: Sequence[Point]) -> str:
    rows = []
    for case, own in _of(points, "all").items():
        left = [one.seconds for one in own if one.who.startswith("left")]
        chosen = next(one.seconds for one in own if one.who == "by sizes")
        shown = (f"{1e3 * value:.3g}" for value in (min(left), max(left), chosen))
        rows.append([case, str(len(left)), *shown, f"{chosen / min(left):.2f}"])
    return table(("kernel and input", "left", "best, ms", "worst, ms", "by sizes, ms", "over the best"), rows)


@click.command()
@click.option("--results", type=click.Path(path_type=Path, file_okay=False), default=Path("results"), help="Folder of the page.")
@click.option("--minutes", default=60.0, show_default=True, help="Begin nothing new after so many.")
@click.option("--seconds", default=5.0, show_default=True, help="Time of one contest.")
@click.option("--only", default="", help="Only cases whose names begin so.")
def main(results: Path, minutes: float, seconds: float, only: str) -> None:
    """Measure loop nest forests; what is there already is not measured again."""
    until, kept = time.monotonic() + 60 * minutes, Partial(results / "forests.csv", Point)
    pace = Pace(seconds, 5, 51)
    known = {(one.part, one.case) for one in kept.rows}
    for part, items in {"stages": stages(), "cases": cases(pace), "family": family(pace), "all": every(pace)}.items():
        for case, measure in items:
            if (part, case) in known or not case.startswith(only) or time.monotonic() >= until:
                continue
            kept.add(measure())
            click.echo(f"{part}: {case}", err=True)
    if kept.rows:
        write_rows(results / "forests.csv", kept.rows)
        written = results / "forests.md.part"
        written.write_text(page(kept.rows), encoding="utf-8")
        written.replace(results / "forests.md")


if __name__ == "__main__":
    main()
