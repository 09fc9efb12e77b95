"""``results/performance.md``: the figures as tables, each with the command that makes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...compiler.concrete.given import CONSTANT_BOUND
from .markdown import geometric_mean, milliseconds, ratio, table
from .material import Material
from .records import Row, times_faster
from .speed import NARROW, product_bytes, triad_bytes
from .workloads import KERNELS, SYNTHETIC

COMMAND = "python -m sparsetune.tuner.reports.figures"
PEERS = ("scipy", "mkl", "sparse")
HAND = "hand-written C"


def page(material: Material) -> str:
    """Return the whole page."""
    sections: tuple[Callable[[Material], str], ...] = (
        _introduction, _speedups, _threads, _peers, _hand, _ttmc, _bandwidth, _inputs, _schedules,
    )  # fmt: skip
    return "\n\n".join(text for section in sections if (text := section(material))) + "\n"


def _introduction(material: Material) -> str:
    rows = list(material.races.rows.values())
    loads, spreads = [row.load for row in rows] or [0.0], sorted(row.times.spread for row in rows) or [0.0]
    return f"""# Performance

{material.states.text}

float64 values, int32 coordinates. Dense extents of at most {CONSTANT_BOUND} are constants in our code, as they are for users who call
`evaluate`; libraries are not told them. Operands are in the formats that kernels take, so that no conversion is timed.

Times are in milliseconds, `median (least)` of all rounds. All variants on one line ran in one process in turn, in another
order each round; speedups are medians of paired ratios with a 95% interval from order statistics. Other programs
ran on the machines: the load average when the races began was {min(loads):.1f} to {max(loads):.1f}. Half the interquartile range
of a row's times, over their median, is {spreads[len(spreads) // 2]:.1%} in the median row and
{spreads[len(spreads) * 9 // 10]:.1%} at the 90th percentile of rows.

`{COMMAND}` makes everything here: all races, then this page. Raw times, one a round: `performance.csv`. Real inputs are found in
the folder that `SPARSETUNE_DATA` names."""


def _speedups(material: Material) -> str:
    lines: list[list[str]] = []
    gains: dict[int, list[tuple[str, float]]] = {1: [], 2: []}
    for (kernel, name), _ in material.ordered("kernels"):
        default = material.races.find("kernels", kernel, name, "default", 1)
        cells = [kernel, material.named("kernels", kernel, name), milliseconds(default)]
        for threads in (1, 2):
            tuned = material.races.find("kernels", kernel, name, "tuned", threads)
            found = times_faster(default, tuned)
            if found is not None:
                gains[threads].append((kernel, found.ratio))
            cells += [milliseconds(tuned), ratio(found)]
        lines.append(cells)
    if not lines:
        return ""
    return f"""## Tuned against default

The default schedule is serial, so that what two threads gain is shown beside what schedules gain on one. {_means(gains)}
{_budgets(material)}
Schedules: last section.

    {COMMAND} --only kernels

""" + table(("kernel", "input", "default", "tuned, 1 thread", "speedup", "tuned, 2 threads", "speedup"), lines)


def _means(gains: Mapping[int, Sequence[tuple[str, float]]]) -> str:
    """Return the geometric means of the speedups by threads: of all kernels, and without TTMc, whose default nobody would choose."""
    parts = []
    for what, wanted in (("all kernels", lambda kernel: True), ("without TTMc", lambda kernel: not kernel.startswith("TTMc"))):
        found = {threads: [gain for kernel, gain in those if wanted(kernel)] for threads, those in gains.items()}
        means = (f"{geometric_mean(found[threads]):.2f} with {threads} thread{'s' * (threads > 1)}" for threads in (1, 2) if found[threads])
        parts.append(f"{what} {' and '.join(means)}")
    return f"Geometric means of the speedups over it: {'; '.join(parts)}."


def _budgets(material: Material) -> str:
    """Return trials and seconds of the campaigns that chose the schedules, as far as they were recorded."""
    known = [chosen for chosen in material.chosen.values() if chosen.trials is not None]
    if not known:
        return "Trials and seconds of the campaigns were not written down when these schedules were chosen."
    trials, seconds = [one.trials or 0 for one in known], sorted({one.budget or 0.0 for one in known})
    shown = " or ".join(f"{one:g}" for one in seconds)
    unknown = len(material.chosen) - len(known)
    rest = f"; of {unknown} others that was not written down" if unknown else ""
    return f"Campaigns of {min(trials)} to {max(trials)} trials within {shown} s chose {len(known)} of the schedules{rest}."


def _threads(material: Material) -> str:
    lines, all_gains = [], []
    for kernel in KERNELS:
        gains = [
            found.ratio
            for (of, name), _ in material.ordered("kernels")
            if of == kernel and (found := _two_threads(material, kernel, name)) is not None
        ]
        if gains:
            lines.append((kernel, str(len(gains)), f"{geometric_mean(gains):.2f}", f"{min(gains):.2f}", f"{max(gains):.2f}"))
            all_gains += gains if kernel.startswith(("SpMM", "SDDMM", "MTTKRP")) else []
    if not lines:
        return ""
    return f"""## Two threads against one

Each with its own tuned schedule. Geometric mean over SpMM, SDDMM and MTTKRP: **{geometric_mean(all_gains):.2f}** (the aim is 1.7).

    {COMMAND} --only kernels

""" + table(("kernel", "inputs", "geometric mean", "least", "most"), lines)


def _two_threads(material: Material, kernel: str, name: str) -> Any:
    return times_faster(*(material.races.find("kernels", kernel, name, "tuned", threads) for threads in (1, 2)))


def _peers(material: Material) -> str:
    lines, gains = [], []
    for (kernel, name), rows in material.ordered("kernels"):
        for threads in (1, 2):
            tuned = material.races.find("kernels", kernel, name, "tuned", threads)
            found = {row.variant: row for row in rows if row.variant in PEERS and row.threads == threads}
            if tuned is None or not found:
                continue
            narrow = material.races.find("kernels", kernel, name, NARROW, threads)
            ours = [tuned] if narrow is None else [tuned, narrow]
            cells = [kernel, material.named("kernels", kernel, name), str(threads), milliseconds(tuned), milliseconds(narrow)]
            cells += [milliseconds(found.get(peer)) for peer in PEERS[:2]]
            faster = times_faster(_fastest(found.values()), _fastest(ours))
            undisturbed = min(map(_least, found.values())) / min(map(_least, ours))
            lines.append([*cells, ratio(faster), f"{undisturbed:.2f}"])
            gains += [(kernel, faster.ratio, undisturbed)] if faster is not None else []
    if not lines:
        return ""
    means = [
        f"{kernel} {geometric_mean(found):.2f} (least {min(found):.2f}; by least times {min(undisturbed):.2f})"
        for kernel in KERNELS
        if (found := [gain for of, gain, _ in gains if of == kernel])
        and (undisturbed := [gain for of, _, gain in gains if of == kernel])
    ]
    return f"""## Other libraries

Speedup: time of the fastest library over ours; geometric means {", ".join(means)}. SciPy runs on one thread. PyData/sparse is left out
here, being many times slower; `defaults.md` has it. MKL runs with GNU's threading layer (`MKL_THREADING_LAYER=GNU`), with and without
`mkl_sparse_optimize`, which copies the matrix into a form of its own, whichever is faster, on 64-byte-aligned operands; ours as it is
and, where rows are short enough, with its coordinates `narrow` (2 bytes a nonzero instead of 4) and the same schedule, whichever is faster.
Neither copy is timed. By least times: ratios of the fastest rounds, which other programs disturbed least.

    {COMMAND} --only kernels

""" + table(("kernel", "input", "threads", "tuned", NARROW, "SciPy", "MKL", "speedup", "by least times"), lines)


def _fastest(rows: Iterable[Row]) -> Row:
    return min(rows, key=_median)


def _hand(material: Material) -> str:
    lines, gains = [], []
    for (kernel, name), _ in material.ordered("hand"):
        for threads in (1, 2):
            hand = material.races.find("hand", kernel, name, HAND, threads)
            ours = material.races.find("hand", kernel, name, "tuned", threads)
            found = times_faster(hand, ours)
            if found is not None:
                gains.append(found.ratio)
                shown = material.named("hand", kernel, name)
                lines.append((kernel, shown, str(threads), milliseconds(hand), milliseconds(ours), ratio(found)))
    if not lines:
        return ""
    return f"""## Hand-written C

The same loops written by hand in C with vector types, prefetches and constant extents (reference kernels that are
not part of the package, compiled by gcc -O3 -march=native; the same arrays, one race). Above 1 the generated code is
faster. Geometric mean {geometric_mean(gains):.2f}, least {min(gains):.2f}. FOLDER holds the hand-written `kernels.c`.

    python -m sparsetune.tuner.reports.scheduling --only hand --hand FOLDER

""" + table(("kernel", "input", "threads", "hand-written", "generated", "hand-written over generated"), lines)


def _ttmc(material: Material) -> str:
    counts = [
        (count.input, f"{count.nest}, {count.ranks}", f"{count.counted:,}", f"{count.expected:,}", f"{count.counted / count.expected:.3f}")
        for count in material.counts
    ]
    lines = [_ttmc_line(material, kernel, name) for (kernel, name), _ in material.ordered("ttmc")]
    lines = [line for line in lines if line]
    if not lines and not counts:
        return ""
    return f"""## TTMc: factorized and fused

Operations counted by running the loop IR in its interpreter, beside 2 nnz S + 2 nnz_IJ R S (fused: nnz entries, nnz_IJ fibres) and
3 nnz R S (unfactorized; the compiler itself takes T * B out of the innermost loop, so that it does less).

    {COMMAND} --only ttmc

""" + table(("input", "loop nest", "counted", "formula", "ratio"), counts) + """

Times of both nests, one thread, same compiler and flags. Share: speedup over the ratio of operations by the formulas (at least 0.25
is asked for where fibres hold 10 entries and more).

""" + table(("kernel", "input", "entries a fibre", "unfactorized", "fused", "speedup", "operations", "share"), lines)  # fmt: skip


def _ttmc_line(material: Material, kernel: str, name: str) -> tuple[str, ...]:
    unfactorized = material.races.find("ttmc", kernel, name, "unfactorized", 1)
    fused = material.races.find("ttmc", kernel, name, "fused", 1)
    found, size = times_faster(unfactorized, fused), material.sizes.get(name)
    if found is None or size is None:
        return ()
    ranks = KERNELS[kernel].dims
    nnz, fibres = size["nnz"], size["fibres"]
    less = 3 * nnz * ranks["r"] * ranks["s"] / (2 * nnz * ranks["s"] + 2 * fibres * ranks["r"] * ranks["s"])
    shown = material.named("ttmc", kernel, name), f"{nnz / fibres:.1f}", milliseconds(unfactorized), milliseconds(fused)
    return (kernel, *shown, ratio(found), f"{less:.2f}", f"{found.ratio / less:.2f}")


def _bandwidth(material: Material) -> str:
    lines = []
    for (kernel, name), _ in material.ordered("bandwidth"):
        size = material.sizes.get(name)
        for threads in (1, 2):
            triad = material.races.find("bandwidth", kernel, name, "triad", threads)
            tuned = material.races.find("bandwidth", kernel, name, "tuned", threads)
            if size is None or triad is None or tuned is None:
                continue
            rows, columns = size["shape"]
            rates = [
                (product_bytes(rows, columns, size["nnz"]) / seconds(tuned) / 1e9, triad_bytes() / seconds(triad) / 1e9)
                for seconds in (_median, _least)
            ]
            shares = [f"{ours / theirs:.0%}" for ours, theirs in rates]
            shown = [f"{ours:.1f} ({rates[1][place]:.1f})" for place, ours in enumerate(rates[0])]
            lines.append((kernel, material.named("bandwidth", kernel, name), str(threads), *shown, f"{shares[0]} ({shares[1]})"))
    if not lines:
        return ""
    return f"""## Bandwidth of a matrix-vector product

GB/s by the median time (by the least) of a stencil matrix larger than the last-level cache (values, coordinates, positions, x and
y once) and of a triad `a(i) = b(i) + 3.0 * c(i)` of three arrays of 80 MB, compiled by the same compiler, allocated in the same
way. 80% is asked for.

    {COMMAND} --only bandwidth

""" + table(("kernel", "input", "threads", "product", "triad", "share"), lines)


def _median(row: Row) -> float:
    return row.times.median


def _least(row: Row) -> float:
    return row.times.least


def _inputs(material: Material) -> str:
    lines = [
        (f"`{name}`", f"`{SYNTHETIC.get(name, name)}`", " x ".join(map(str, size["shape"])), f"{size['nnz']:,}", f"{size['fibres']:,}")
        for name, size in material.sizes.items()
    ]
    return "" if not lines else "## Inputs\n\n" + table(("name", "as `tune-kernel data` knows it", "size", "nonzeros", "fibres"), lines)


def _schedules(material: Material) -> str:
    lines = [(one.kernel, one.input, str(one.threads), f"`{one.schedule}`" if one.schedule else "default") for one in
             sorted(material.chosen.values(), key=lambda one: (list(KERNELS).index(one.kernel), one.input, one.threads))]  # fmt: skip
    if not lines:
        return ""
    return f"""## Tuned schedules

    {COMMAND} --only schedules --tune TRIALS --time-budget SECONDS

{_budgets(material)}

""" + table(("kernel", "input", "threads", "schedule"), lines)
