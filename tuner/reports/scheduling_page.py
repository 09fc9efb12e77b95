"""``results/scheduling.md``: the gains of schedules, as tables, each with the command that makes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from ...compiler.frozen import frozen
from .markdown import geometric_mean, milliseconds, ratio, table
from .page import HAND
from .records import Races, read_records, times_faster
from .rule_loss import RuleLoss
from .schedule_races import SKEW_SCHEDULES, SPMSPV_DEFAULT, SPMSPV_SCHEDULES, VECTOR_DENSITY
from .skew_section import skew_section
from .states import States
from .template_draws import KINDS
from .workloads import KERNELS

COMMAND = "python -m sparsetune.tuner.reports.scheduling"
MOST_LOSS = 0.05
"""The aim: no default rule costs more than this share of the speed."""


@frozen
class Outside:
    """A time of another program that is not part of the project, and ours on the same input."""

    kernel: str
    input: str
    threads: int
    peer: str
    flags: str
    peer_ms: float
    ours_ms: float
    source: str


@frozen
class Figures:
    """The data of the page."""

    races: Races
    losses: Sequence[RuleLoss]
    outside: Sequence[Outside] = ()


def read_outside(path: Path) -> list[Outside]:
    """Return the times of others in a CSV file."""
    return [
        Outside(record["kernel"], record["input"], int(record["threads"]), record["peer"], record["flags"],
                float(record["peer_ms"]), float(record["ours_ms"]), record["source"])
        for record in read_records(path)
    ]  # fmt: skip


def page(figures: Figures) -> str:
    """Return the whole page."""
    sections: tuple[Callable[[Figures], str], ...] = (_introduction, _rules, _skewed, _strategies, _spmspv, _hand, _outside)
    return "\n\n".join(text for section in sections if (text := section(figures))) + "\n"


def _introduction(figures: Figures) -> str:
    loads = [row.load for row in figures.races.rows.values()] or [0.0]
    return f"""# What schedules are worth

{States(figures.races.rows.values()).text}

float64 values, int32 coordinates.
Times are in milliseconds, `median (least)`; what stands on one line, or under one input, ran in one process in turn, and ratios are
medians of paired ratios with a 95% interval. Load average when the races began: {min(loads):.1f} to {max(loads):.1f}.

`{COMMAND} --hand FOLDER` makes everything here, and without `--fresh` goes on where it was interrupted. Raw: `scheduling.csv`,
`scheduling_rules.csv`, `performance_hand.csv`, `scheduling_peers.csv`."""


def _rules(figures: Figures) -> str:
    if not figures.losses:
        return ""
    lines = []
    for switched in dict.fromkeys(loss.switched for loss in figures.losses):
        for name in dict.fromkeys(loss.rule for loss in figures.losses if loss.switched == switched):
            own = [loss for loss in figures.losses if loss.rule == name and loss.switched == switched]
            lines.append((f"`{name}`", f"{own[0].kind}, {switched}", *(_worst(own, kernel) for kernel in _kernels(figures))))
    ours = [loss for loss in figures.losses if loss.switched == "off"]
    over = sorted(
        {f"{loss.rule} ({loss.kernel}, {loss.input}: {loss.loss:.0%})" for loss in ours if min(loss.least, loss.gain.low) > 1 + MOST_LOSS}
    )
    verdict = f"Above {MOST_LOSS:.0%} beyond noise: {', '.join(over)}." if over else f"None loses more than {MOST_LOSS:.0%} beyond noise."
    return f"""## What each rule on templates costs

Two threads, small inputs of two kinds for each kernel. The loss of a rule is t / u - 1, by least times: t is the time of the fastest
template that the default rules of `compiler/space/template_filters.py` leave, u that of the fastest template when this rule
({" or ".join(KINDS)}) is switched off; the paper's own versions of rules are compared with ours. The larger loss of the two inputs is
shown, with the lower end of the interval of paired ratios in brackets; nothing if the rule drops no template. Below 0, the fastest
template that the rule drops is slower than ours. Not every template is measured: only the shortest that the default rules leave, a seeded
sample of every set with split sizes from a short list, more near the best, and, for the best template without a rule, the one among those
left that is most like it. {verdict}

    {COMMAND} --only rules

""" + table(("rule", "kind", *_kernels(figures)), lines) + _tried(figures)  # fmt: skip


def _kernels(figures: Figures) -> list[str]:
    return list(dict.fromkeys(loss.kernel for loss in figures.losses))


def _worst(losses: Sequence[RuleLoss], kernel: str) -> str:
    own = [loss for loss in losses if loss.kernel == kernel]
    if not own:
        return ""
    worst = max(own, key=lambda loss: loss.loss)
    return f"{worst.loss:.0%} [{worst.gain.low - 1:.0%}]"


def _tried(figures: Figures) -> str:
    over = [loss for loss in figures.losses if loss.switched == "off" and loss.loss > MOST_LOSS]
    lines = [
        (loss.kernel, loss.input, f"`{loss.rule}`", f"{loss.templates:,}", str(loss.tried), ratio(loss.gain), f"`{loss.other}`",
         f"`{loss.default}`")
        for loss in over
    ]  # fmt: skip
    if not lines:
        return ""
    header = ("kernel", "input", "rule", "templates it removes, about", "measured, with the default", "ratio", "fastest without it",
              "fastest of the default")  # fmt: skip
    return "\n\nWhere the median is above:\n\n" + table(header, lines)


def _skewed(figures: Figures) -> str:
    return skew_section(figures.races, COMMAND)


def _strategies(figures: Figures) -> str:
    lines = []
    for kernel, schedules in SKEW_SCHEDULES.items():
        for name, rows in figures.races.by_variant("skew", kernel):
            lines += [
                (kernel, name, variant, milliseconds(rows.get((variant, 2))), f"`{text}`") for variant, text in schedules.items()
                if (variant, 2) in rows and name == "skew 4"
            ]  # fmt: skip
    if not lines:
        return ""
    return """## Race strategies by parallel level

The same races at skew 4: threads keep their updates of a row apart by atomics or by results of their own, vectors by a reduction.

""" + table(("kernel", "rows", "strategies", "time", "schedule"), lines)


def _spmspv(figures: Figures) -> str:
    lines = []
    for kernel in ("SpMSpV", "SpMSpV, sparse result"):
        for name, rows in figures.races.by_variant("spmspv", kernel):
            default = rows.get((SPMSPV_DEFAULT, 1))
            for (variant, threads), row in rows.items():
                form, text = SPMSPV_SCHEDULES.get((variant, threads), ("", ""))
                shown = f"{form}: `{text}`" if text else form
                lines.append((kernel, name, variant, str(threads), milliseconds(row), ratio(times_faster(row, default)), shown))
    if not lines:
        return ""
    return f"""## A sparse matrix times a sparse vector

A in CSC, x with {VECTOR_DENSITY:.0%} of its elements stored, y dense or compressed. Our default runs through what x stores and adds
up the columns of A that it names: its work is that of the products alone, and the paper's schedule makes the same loops parallel.
Defaults that do more are spelled out: searching x in all columns, and merging every row of A with x (`csr`).

    {COMMAND} --only spmspv

""" + table(("kernel", "input", "variant", "threads", "time", "times the default's", "format of A, schedule"), lines)


def _hand(figures: Figures) -> str:
    lines, gains = [], []
    for kernel in KERNELS:
        for name, rows in figures.races.by_variant("hand", kernel):
            for threads in (1, 2):
                hand, ours = rows.get((HAND, threads)), rows.get(("tuned", threads))
                found = times_faster(hand, ours)
                if found is not None:
                    gains.append((kernel, found.ratio))
                    lines.append((kernel, name, str(threads), milliseconds(hand), milliseconds(ours), ratio(found)))
    if not lines:
        return ""
    by_kernel = {kernel: [gain for of, gain in gains if of == kernel] for kernel in dict.fromkeys(kernel for kernel, _ in gains)}
    means = ", ".join(f"{kernel} {geometric_mean(found):.2f} (least {min(found):.2f})" for kernel, found in by_kernel.items())
    return f"""## Hand-written kernels

Measured against C that is not part of the package: a folder with `kernels.c`, written with vector types, prefetches and constant
extents, compiled with gcc and the flags that its head names. Ours with the schedules of `performance_schedules.csv`. Geometric mean
{geometric_mean([gain for _, gain in gains]):.2f} (the aim is 0.95), least {min(gain for _, gain in gains):.2f} (0.85): {means}.

    {COMMAND} --only hand --hand FOLDER

""" + table(("kernel", "input", "threads", "hand-written", "generated", "hand-written over generated"), lines)


def _outside(figures: Figures) -> str:
    if not figures.outside:
        return ""
    lines = [
        (one.kernel, one.input, str(one.threads), one.peer, f"{one.peer_ms:.3g}", f"{one.ours_ms:.3g}", f"{one.peer_ms / one.ours_ms:.2f}")
        for one in figures.outside
    ]
    fastest: dict[tuple[str, str, int], float] = {}
    for one in figures.outside:
        key = (one.kernel, one.input, one.threads)
        fastest[key] = min(fastest.get(key, math.inf), one.peer_ms / one.ours_ms)
    gains = {kernel: [gain for key, gain in fastest.items() if key[0] == kernel] for kernel in dict.fromkeys(key[0] for key in fastest)}
    means = ", ".join(f"{kernel} {geometric_mean(found):.2f} (least {min(found):.2f})" for kernel, found in gains.items())
    notes = "\n".join(f"- {text}" for text in dict.fromkeys(f"{one.peer}: {one.flags}. {one.source}" for one in figures.outside))
    return f"""## Compilers and libraries that are not on PyPI

Measured with programs that are not part of the package, on the same inputs, in turn with ours; the rows are read from
`scheduling_peers.csv`. Ratio: their time over ours; geometric means against the faster of them: {means}.

{notes}

""" + table(("kernel", "input", "threads", "program", "its time", "ours", "ratio"), lines)
