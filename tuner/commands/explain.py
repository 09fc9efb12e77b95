"""``tune-kernel explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...compiler.native.memory import readable_bytes
from ...compiler.units import PROCESSOR, is_processor
from ..progress import show_seconds
from ..resolve import require_target
from ..settings import EXPLORE_SECONDS
from . import options
from .help import ExampleCommand
from .output import note, print_json, print_table
from .tree import drawn


class Range(options.Pair):
    """``INDEX=LOW:HIGH``; gives (index, (low, high))."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the index and its range as two floats; a single number is both bounds.

        Raises:
            click.BadParameter: it is no range, or not in increasing order from 0 on.
        """
        index, text = super().convert(value, param, ctx)
        low, separator, high = str(text).partition(":")
        try:
            bounds = float(low), float(high if separator else low)
        except ValueError:
            self.fail(f"{value!r}: a range is LOW:HIGH, such as 1:1e6", param, ctx)
        if not 0 <= bounds[0] <= bounds[1]:
            self.fail(f"{value!r}: a range goes from its lower to its higher number, both from 0 on", param, ctx)
        return index, bounds


LISTED, LISTED_AS_JSON = 20, 1000
"""Schedules of a frontier that are listed unless ``--limit`` says otherwise."""


@click.command(
    "explain",
    cls=ExampleCommand,
    examples=(
        ('tune-kernel explain "A(i,j) = B(i,k) * C(k,j)" --format B=csr --format C=csr', "the space of a sparse product"),
        ('tune-kernel explain "A(i,j) = B(i,k) * C(k,l) * D(l,j)" --format B=csr --format C=csr --format D=csr --json', "as JSON"),
        ('tune-kernel explain "a(i) = B(i,j) * C(j,k) * d(k)" --preset pigeon --schedule ""', "who beats the default schedule, and why"),
        ('tune-kernel explain "a(i) = B(i,j) * c(j)" --format B=csr --schedule "forall(j,i) a(i) += B(i,j) * c(j)"', "a loop nest"),
        ('tune-kernel explain "y(i) = A(i,j) * x(j)" --format A=csr --target cuda --arch sm_90', "its kernels on a GPU"),
        ('tune-kernel explain "A(i,r) = B(i,j,k) * C(j,r) * D(k,r)" -i B=tensor.tns --dim r=16 --ranks 64', "what 64 ranks would send"),
    ),
)
@options.together(
    options.expression, options.formats,
    click.option("--range", "ranges", type=Range("index", "low:high", "i=1:1e6"), multiple=True, callback=options.unique,
                 help="Lowest and highest extent of an index, share of entries an operand stores (B=1e-4:1e-2) or quotient of extents "
                      "(i/l=1:10); symbolic costs are compared under these."),
    click.option("--preset", type=click.Choice(["pigeon", "pigeon-taco", "sparseauto", "spttn"]),
                 help="Use the space and the pruning stages of a paper.  [default: our own]"),
    click.option("--schedule", metavar="TEXT",
                 help="Compare this schedule (directives or a loop nest) with the frontier: which are cheaper, and why."),
    click.option("--workspace-state", type=click.Choice(["exact", "paper"]), default="exact", show_default=True,
                 help="The cost model's view of a workspace: its pattern in every iteration of the loops around it (exact), or over "
                      "all of them (paper)."),
    click.option("--sunk-cost", "sunk_costs", multiple=True, metavar="TEXT",
                 help="Work that every schedule does and that is not compared: inputs, dimensions, none, or a set such as "
                      "'{(i,k) | B(i,k) and C(k,j)}'. May be repeated.  [default: inputs, dimensions]"),
    click.option("--assume", "assumptions", multiple=True, metavar="TEXT",
                 help="A fact about the inputs: nonempty, none, or one such as 'B(i,k) implies C(i,k)'. May be repeated.  "
                      "[default: nonempty]"),
    click.option("--limit", type=click.IntRange(min=1), help=f"Most schedules to list.  [default: {LISTED}, {LISTED_AS_JSON} as JSON]"),
    click.option("--time-limit", type=options.Seconds(), default=EXPLORE_SECONDS, show_default=True,
                 help="Seconds after which to give up."),
    options.semiring, options.output_pattern, options.inputs, options.dims,
    options.target_option("Also show what the schedule, or the default mapping, becomes on a device.", PROCESSOR.target), options.arch,
    click.option("--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                 help="Also write a page with the frontier, its loop nests, and how their indices derive from those of EXPR."),
    click.option("--ranks", type=click.IntRange(1, 1 << 20),
                 help="Instead of the space, show what this many MPI ranks would send and hold, on the inputs of -i."),
    options.as_json,
)  # fmt: skip
def command(**given: Any) -> None:
    """Show how many schedules EXPR has after each stage of pruning, and the frontier: those to which no other is asymptotically better."""
    device = not is_processor(given["target"])
    if device and (given["ranks"] is not None or given["html"] is not None):
        raise click.UsageError(f"--{'html' if given['ranks'] is None else 'ranks'} shows no device; leave it or --target out")
    require_target(given["target"], given["arch"])
    if given["ranks"] is not None:
        _explain_ranks(given)
        return
    if given["inputs"] or given["dims"]:
        raise click.UsageError("-i and --dim are for --ranks; the space needs formats alone")
    from ..explanation import described
    from ..explore import explore

    if given["html"] is not None and given["as_json"]:
        raise click.UsageError("--html and --json are two forms of one answer; give one of them")
    found = explore(
        given["expression"], given["formats"], given["ranges"] or None, given["preset"], given["workspace_state"],
        _named(given["sunk_costs"]), _named(given["assumptions"]), given["semiring"], given["time_limit"],
        output_pattern=given["output_pattern"],
    )  # fmt: skip
    limit = given["limit"] or (LISTED_AS_JSON if given["as_json"] else LISTED)
    answer = described(found, given["schedule"], limit)
    if device:
        from ..device_explanation import on_device

        asked = (given[name] for name in ("target", "arch", "semiring", "output_pattern"))
        answer["device"] = on_device(given["expression"], given["formats"], given["schedule"] or "", *asked)
    if given["as_json"]:
        print_json(answer)
        return
    trees = [drawn(found.annotated(one["schedule"])) for one in answer["frontier"]]
    _show(answer, trees)
    if given["html"] is not None:
        from ..report.explanation import write_explanation

        judged = answer.get("schedule", {})
        given_tree = drawn(judged["loop_nest"]) if judged else ""
        told = {**answer, "schedule": {**judged, "text": given["schedule"]}} if judged else answer
        write_explanation(given["html"], told, trees, given["formats"], given_tree)
        note(f"wrote {given['html']}")


def _explain_ranks(given: dict[str, Any]) -> None:
    from ..distributed.explanation import volumes

    found = volumes(given["expression"], given["inputs"], given["dims"], given["formats"], given["ranks"])
    if given["as_json"]:
        print_json({"expression": given["expression"], "stages": [], "frontier": [], **found})
        return
    rows = []
    for name, shown in (("whole on every rank", found["volume"]), ("distributed", found["volume_distributed"])):
        grid = " x ".join(map(str, shown["grid"]))
        sizes = [readable_bytes(shown[key]) for key in ("bytes", "best_bytes", "memory")]
        rows.append([name, grid, *sizes, f"{shown['imbalance']:.3f}"])
    print_table(rows, ("dense operands and result", "grid", "sent", "sent on the best grid", "most memory", "imbalance"))


def _named(texts: tuple[str, ...]) -> bool | tuple[str, ...]:
    """Return what ``explore`` takes: nothing given is its default, "none" alone is nothing."""
    return tuple(text for text in texts if text != "none") if texts else True


def _show(answer: dict[str, Any], trees: list[str]) -> None:
    rows = [[str(stage["stage"]), str(stage["kept"]), show_seconds(float(stage["seconds"]))] for stage in answer["stages"]]
    print_table(rows, ("stage", "kept", "time"))
    for stage in answer["stages"]:
        if "stopped" in stage:
            print(f"{stage['stage']} is not complete, {stage['stopped']}: what follows is the best found so far")
    total = answer["stages"][-1]["kept"]
    print(f"\nfrontier: {total} schedules")
    numbered = list(enumerate(answer["frontier"], 1))
    print_table(
        [[str(number), str(found["time"]), str(found["memory"]), str(found["loop_depth"])] for number, found in numbered],
        ("number", "time", "memory", "loops"),
    )
    for (number, found), tree in zip(numbered, trees, strict=True):
        print(f"\nschedule {number}: {found['schedule'] or 'the default one'}\n{tree}")
    if len(answer["frontier"]) < total:
        print(f"\n{total - len(answer['frontier'])} more; --limit {total} lists all")
    if "schedule" in answer:
        judged = answer["schedule"]
        print(f"\nthe given schedule\n{drawn(judged['loop_nest'])}\n\nverdict\n{judged['verdict']}")
    if "device" in answer:
        _show_device(answer["device"])


def _show_device(device: dict[str, Any]) -> None:
    """Print the schedule as it is on a device, and its kernels."""
    print(f"\non {device['target']} {device['arch'] or '(the device of this machine)'}: {device['schedule'] or 'the default one'}")
    print(f"{drawn(device['loop_nest'])}\n")
    rows = [
        [
            str(number), kernel["blocks"], str(kernel["threads"]), str(kernel["lanes"]), str(kernel["registers"] or "-"),
            str(kernel["shared_bytes"]), "; ".join(kernel["loops"]) or "one thread",
        ]
        for number, kernel in enumerate(device["kernels"], 1)
    ]  # fmt: skip
    print_table(rows, ("kernel", "blocks", "threads", "lanes", "registers", "shared bytes", "what units take"))
