"""``results/samplers.md``: how fast samplers find good schedules in truth tables, which give all of them the same points and times.

After Willemsen et al., "A methodology for comparing optimization algorithms for auto-tuning" (2024): searches with many seeds are replayed
in tables that were measured once, and compared by the best time so far, trial by trial. Where Kernel Tuner is installed, ``--kernel-tuner``
replays its strategies in the same tables, for a page of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import accumulate
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from ...compiler.frozen import frozen
from ...compiler.native.machine import available_cores
from ..search.samplers import SAMPLERS
from ..truth.foreign import PREFIX, STRATEGIES, foreign_search, version
from ..truth.replay import replay
from ..truth.table import TruthTable, read_table
from .markdown import table
from .publishing import publish, results_option

TRIALS = 60
CLOSE = {10: 1.20, TRIALS: 1.05}
"""The aim: after so many trials (key) a search has found a schedule within this factor (value) of the best of the table."""

WANTED = 0.9
"""The aim: the median search does that in this share of the tables."""

_COMMAND = "python -m sparsetune.tuner.reports.samplers"

_FOREIGN = """Kernel Tuner {} (van Werkhoven, Future Generation Computer Systems 90, 2019), which knows nothing of structures
but their numbers in the order of the static ranking,"""


@frozen
class Curves:
    """The searches of one sampler in one table: the best time so far over the best of the table, by seed and trial."""

    sampler: str
    table: str
    ratios: NDArray[np.float64]

    def median(self, trial: int) -> float:
        """Return the ratio after so many trials, the median over seeds."""
        return float(np.median(self.ratios[:, trial - 1]))

    @property
    def area(self) -> float:
        """The mean over trials and seeds of the logarithm of the ratio: 0 where every trial is the best."""
        return float(np.log(self.ratios).mean())


def curves(path: Path, sampler: str, seeds: int) -> Curves:
    """Replay a sampler in the table of a file, with so many seeds."""
    found = read_table(path)
    best = found.best.seconds
    assert best is not None
    rows = []
    for seed in range(seeds):
        ratios = [seconds / best for seconds in _bests(found, sampler, seed)]
        rows.append(ratios + ratios[-1:] * (TRIALS - len(ratios)))  # a table may have fewer points
    return Curves(sampler, path.stem, np.array(rows))


def _bests(table: TruthTable, sampler: str, seed: int) -> list[float]:
    """Return the best time so far after each trial."""
    if not sampler.startswith(PREFIX):
        return [step.best for step in replay(table, TRIALS, seed, sampler).steps]
    tried = foreign_search(table, sampler.removeprefix(PREFIX), TRIALS, seed)
    return list(accumulate((point.seconds or math.inf for point in tried), min))


def page(found: Sequence[Curves], tables: Mapping[str, TruthTable], seeds: int, command: str = _COMMAND, who: str = "`tune`") -> str:
    """Return the page of the figures of some searches, which a command makes."""
    names = list(dict.fromkeys(one.sampler for one in found))
    header = ("sampler", *(f"within {ratio:.2f} after {trials}" for trials, ratio in CLOSE.items()), "of tables",
              *(f"after {trials}" for trials in CLOSE), "area")  # fmt: skip
    return f"""# Samplers

{who} searches in {len(tables)} truth tables ({seeds} seeds, {TRIALS} trials). Ratios are the best time so far over the
best of the table. A sampler is close enough in a table if its median search is; wanted: in {WANTED:.0%} of the tables. "After" is
the geometric mean of the ratio over tables and seeds; the area is the mean of its logarithm over trials: less is better.

{table(header, [_summary([one for one in found if one.sampler == name]) for name in names])}

## By table

{table(("table", "points", "within 1.05 of the best", *names), [_by_table(name, tables[name], found) for name in tables])}

The area of each sampler. Tables are measured by `tune-kernel tune EXPR -i ... --table FILE --points N` ([truth](truth/README.md)); made by
`{command}`.
"""


def _summary(mine: Sequence[Curves]) -> list[str]:
    close = [str(sum(one.median(trials) <= ratio for one in mine)) for trials, ratio in CLOSE.items()]
    after = [f"{math.exp(np.mean([np.log(one.ratios[:, trials - 1]).mean() for one in mine])):.3f}" for trials in CLOSE]
    return [mine[0].sampler, *close, str(len(mine)), *after, f"{np.mean([one.area for one in mine]):.3f}"]


def _by_table(name: str, measured: TruthTable, found: Sequence[Curves]) -> list[str]:
    areas = [f"{one.area:.3f}" for one in found if one.table == name]
    return [name, str(len(measured.points)), f"{measured.share_within(1.05):.2%}", *areas]


@click.command()
@click.option("--tables", type=click.Path(path_type=Path, file_okay=False, exists=True), default=Path("results/truth"), show_default=True)
@click.option("--seeds", default=20, show_default=True)
@click.option("--sampler", "samplers", multiple=True, type=click.Choice(list(SAMPLERS)), help="only these")
@click.option("--kernel-tuner", "foreign", is_flag=True, help="Kernel Tuner's strategies instead, for results/samplers-kernel-tuner.md")
@results_option
def main(tables: Path, seeds: int, samplers: tuple[str, ...], foreign: bool, results: Path) -> None:
    """Replay searches in all truth tables of a folder, and write results/samplers.md. A minute a table and sampler."""
    paths, names, place, told = sorted(tables.glob("*.json")), samplers or tuple(SAMPLERS), "samplers.md", ()
    if foreign:
        if (found_version := version()) is None:
            raise click.ClickException("Kernel Tuner is not installed: pip install kernel_tuner")
        names, place = tuple(PREFIX + name for name in STRATEGIES), "samplers-kernel-tuner.md"
        told = f"{_COMMAND} --kernel-tuner --seeds {seeds}", _FOREIGN.format(found_version)
    if not paths:
        raise click.ClickException(f"{tables} has no truth tables; 'tune-kernel tune EXPR -i ... --table {tables}/NAME.json' measures one")
    with ProcessPoolExecutor(available_cores()) as pool:
        asked = [pool.submit(curves, path, name, seeds) for path in paths for name in names]
        found = [one.result() for one in asked]
    shown = page(found, {path.stem: read_table(path) for path in paths}, seeds, *told)
    publish(results / place, shown)
    click.echo(shown)


if __name__ == "__main__":
    main()
