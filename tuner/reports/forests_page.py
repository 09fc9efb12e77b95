"""The page of the report on forests, ``results/forests.md``, and its rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ...compiler.frozen import frozen
from .markdown import geometric_mean, table
from .records import Taken
from .states import States
from .table_3 import COPIES, PAPER, STEPS

COMMAND = "python -m sparsetune.tuner.reports.forests"


@frozen
class Point(Taken):
    """One contestant of a contest, or one stage of a preset.

    Attributes:
        part: "stages", "family", "cases", "all", "ablation", "further" or "extents".
        case: kernel and input.
        who: name of the contestant, or of the stage.
        seconds: median of runs in turn; the time of a stage.
        kept, buckets: how many schedules and costs a stage left.
        schedule: that of our contestants.
    """

    part: str
    case: str
    who: str
    seconds: float
    kept: int
    buckets: int
    schedule: str


def page(points: Sequence[Point]) -> str:
    """Return the page."""
    states = States(points)
    parts = [
        "# Loop nest forests",
        f"`{COMMAND}` wrote this page. {states.text}",
        "## What the stages leave\n\nSchedules (buckets of equal cost) after each stage of preset \"sparseauto\", and all its milliseconds,"
        " after Tables 3 and 4 of SparseAuto.",
        _stages(points),
        *_beside_table_3(points),
        "## The family\n\nMilliseconds of what is chosen without measuring, on one thread, and how many times as long others take:"
        " the default, the choices of the two presets, the best of the cheapest forests of least depth and of all paths, nests by hand,"
        f" NumPy with SciPy. {_summary(points)}",
        _family(points),
        "## Four cases\n\nSparseAuto, section 3.1: milliseconds of the nests of its Figure 2, which of them the static model chooses,"
        " and milliseconds of what is chosen from the whole space.",
        _each(points, "cases"),
        "## Chosen against all\n\nHow many schedules the stages leave, milliseconds of the best and the worst of them, of the one that"
        " sizes choose among them, and of the one that is chosen from the whole space; the last two columns are these two over the best.",
        _every(points),
        "## Without a stage\n\nSchedules (costs) that are left, and milliseconds, where one stage of \"sparseauto\" is left out.",
        _ablation(points),
        "## Buffers, shared loops, threads\n\nMilliseconds. A buffer of one element and one of a row, after Figure 5 (c) of Kanakagiri and"
        " Solomonik; forests of least work with all loops shared, and with the outermost only; one thread and two, beside what asymptotic"
        " costs alone choose, after Figures 10 and 13 of SparseAuto.",
        _further(points),
        "## Growing modes\n\nMilliseconds of the schedule that preset \"spttn\" chooses and of ours, where the dense modes grow, after the"
        " comparison of SparseAuto with SpTTN-Cyclops.",
        _each(points, "extents"),
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


_RULES = """\
- **a. Time is the iterations around terms.** Ours is operations, as `count()` finds them: a term of three factors takes more than one of
  two, so `i[j[k[C*D] l[T*CD*E]]]` and `i[j[k[T*C*D] l[TCD*E]]]` are two buckets, neither of which is better for all sizes. In MTTKRP-GEMM,
  summing `T*C` over l first takes `2 nnz_3 + 2 nnz_2` operations for each j instead of `3 nnz_3`, and more iterations.
- **b. A term has a loop of its own.** In ours siblings may share all their loops, as in `i[j[k[l[T*C] TC*D] m[TCD*E]]]`; these are the two
  further schedules of MTTKRP-GEMM.
- **c. Producers without the sparse operand share no loops with others.** In ours they run inside loops over stored entries: the `k[C*D]`
  above, an SDDMM that visits only stored entries.
- **d. The values of a sparse result are summed inside the loops over its stored levels.** Ours may also have `l` around
  `j`, or around both, in `i[j[l[k[T*C] m[TC*D]]]]`: the entries of the result are known from T, and sums are added to them.
- **e. Ranges.** The paper does not print its ranges. Ours admit all extents of 2 to 1e6 where none are given (`configs/ranges.toml`). The
  ranges of this rule were chosen so that the counts agree, so they say nothing about the paper's: factors add modes of 32, modes of
  the sparse operand are 1e3 and more, and k is at least as long as j. Then a buffer of j or k elements is never better than one of l or m:
  two schedules less of SDDMM-SpMM-GEMM, four of SpTTM-TTM-TTM.
- **Copies.** Under these rules the counts after the last stage are the paper's for all kernels, those after the poset for six. For the
  other two its poset leaves more than ours, all of which its last stage drops. Its splits may leave one factor alone (`loc` = 1 of its
  Algorithm 1), whose producer is a copy: `i[l[C] m[j[k[T*D]] k[n[TD*E]] l[n[TDE*C]]]]` is as shallow as without. Where one loop
  less costs one mode more, as for these two kernels only, such forests pass the poset, and costs drop all of them: the copy
  takes time and memory. The last column has one copy at most, under rules a and b. How many more the paper had is not
  known: the counts of its first stage that can be read (128 of SpMM-GEMM, 352 of SpTTM-TTM, 692 of SpMMH-GEMM) are far above those of all
  forests whose producers sum (58, 275 and 58, whatever their buffers), so its space has producers that do not sum.

Forests of transposed matrices are generated too, but none is left: their copy is a buffer of two modes."""


def _beside_table_3(points: Sequence[Point]) -> list[str]:
    rows = []
    for case, own in _of(points, "rules").items():
        found = {one.who: f"{one.kept} ({one.buckets})" for one in own}
        both = {letters: ", ".join(found.get(f"{stage} {letters}", "") for stage in ("poset", "all")) for letters in STEPS}
        pairs = pairwise(STEPS)
        changes = "; ".join(f"{after[-1]}: {both[after]}" for before, after in pairs if both[before] != both[after])
        paper = ", ".join(f"{kept} ({buckets})" for kept, buckets in PAPER[case])
        rows.append([case, paper, both[STEPS[0]], changes, both[STEPS[-1]], found.get(COPIES, "")])
    if not rows:
        return []
    heads = ("kernel", "paper", "ours", "rules that make the difference", "with all rules", "poset with copies")
    title = (
        "## Beside Table 3 of SparseAuto\n\nSchedules (buckets of equal cost) after the depth poset and after costs over all sizes, and"
        " what becomes of ours under the rules of the paper, one more at a time, as far as its counts tell them."
    )
    return [title, table(heads, rows), _RULES]


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
    """Return a table of milliseconds; of a contestant that is another one, named in brackets, the name of the other."""
    found = _of(points, part)
    who = list(dict.fromkeys(one.who.partition(" (")[0] for own in found.values() for one in own))
    rows = []
    for case, own in found.items():
        both = ((one.who.partition(" ("), f"{1e3 * one.seconds:.3g}") for one in own)
        cells = {name: other.rstrip(")") or shown for (name, _, other), shown in both}
        rows.append([case, *(cells.get(name, "") for name in who)])
    return table(("case", *who), rows)


def _every(points: Sequence[Point]) -> str:
    rows = []
    for case, own in _of(points, "all").items():
        left = [one.seconds for one in own if one.who.startswith("left")]
        if not left:
            continue
        chosen = [next((one.seconds for one in own if one.who == who), float("nan")) for who in ("by sizes", "chosen")]
        shown = (f"{1e3 * value:.3g}" for value in (min(left), max(left), *chosen))
        rows.append([case, str(len(left)), *shown, *(f"{value / min(left):.2f}" for value in chosen)])
    heads = ("kernel and input", "left", "best, ms", "worst, ms", "by sizes, ms", "chosen, ms", "by sizes over best", "chosen over best")
    return table(heads, rows)


def _ablation(points: Sequence[Point]) -> str:
    found = _of(points, "ablation")
    who = list(dict.fromkeys(one.who for own in found.values() for one in own))
    shown = {case: {one.who: f"{one.kept} ({one.buckets}), {1e3 * one.seconds:.0f} ms" for one in own} for case, own in found.items()}
    return table(("kernel", *who), [[case, *(own.get(name, "") for name in who)] for case, own in shown.items()])


def _further(points: Sequence[Point]) -> str:
    lines = [[case, one.who, f"{1e3 * one.seconds:.3g}"] for case, own in _of(points, "further").items() for one in own]
    return table(("contest", "who", "ms"), lines)
