"""``results/decisions.md`` and ``results/kernels.md``: the speed of schedules chosen in four ways, on real inputs.

    python -m sparsetune.tuner.reports.decisions --minutes 60

Some items are tuned (``decision_cases.items`` gives their order). Then the default schedule, the static choice, what lookup finds without
this input, the tuned schedule and the installed libraries run in turn; then come the next items. Every measurement is saved at once, in
``decisions.csv`` and in a database of schedules. After an interruption the next run goes on: first with items that are missing, then with
those for which lookup knows more inputs by now, then with those raced by earlier versions, the oldest first (their rows stay, marked, until
then).
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import click

from ...compiler.errors import DataError, FormatError, ShapeError
from ...compiler.native.machine import this_machine
from ..database import Database, open_database, studies_folder
from ..database.interchange import read_json_lines
from ..environment import commit
from ..measure.worker_process import Worker
from ..peers import Peer, choose_peers
from ..peers.mkl_peer import MklPeer
from ..peers.pydata_peer import PydataPeer
from ..records import Decision
from ..session import tune_problem
from ..settings import Budget, Settings
from ..shipped import write_shipped
from .decision_cases import CASES, DTYPES, LAST_STAGE, THREADS, Item, items, problem_of, stages
from .decision_races import FAILED, LEFT_OUT, TUNED, Figure, decisions_of, known_beside, raced, without_figures
from .decisions_page import decisions_page
from .kernels_page import PLOT, kernels_page, profile_plot
from .partial import Partial
from .publishing import publish, results_option

COMMAND = "python -m sparsetune.tuner.reports.decisions"

MORE_EVIDENCE = 2
"""A race is repeated, once nothing else is left, if lookup knows at least so many times as many other inputs as then."""

_SLICE = 600.0
"""Seconds of a turn: items are tuned first and then raced."""

_MOST_POINTS = 1e6


@dataclass
class Run:
    """One run of the report: its items, and the rows and schedules that there are so far.

    Attributes:
        store: the database that tuning writes and lookup reads.
        kept: the rows of ``decisions.csv``.
        budget: that of one campaign.
        peers: the libraries.
        wanted: the items, in order.
        tuned: the decisions, by item.
        spent: trials and seconds of the campaigns of this run.
    """

    store: Database
    kept: Partial[Figure]
    budget: Budget
    peers: Sequence[Peer]
    wanted: Sequence[Item]
    workers: Mapping[int, Worker]
    tuned: dict[Item, Decision] = field(default_factory=dict)
    spent: dict[Item, tuple[int, float]] = field(default_factory=dict)
    _stages: dict[Item, int] = field(default_factory=stages)

    def __post_init__(self) -> None:
        self.tuned = decisions_of(self.store)
        self.kept.rows = [row for row in self.kept.rows if row.column != FAILED]  # failed items are tried once more in each run

    @property
    def without(self) -> set[Item]:
        """The items that have no figures."""
        return {row.item for row in self.kept.rows if row.column in (LEFT_OUT, FAILED)}

    def tune_and_race(self, until: float, share: float) -> None:
        """Tune and race by turns, so that tuned items have rows whenever a run ends.

        Args:
            until: when to end, by ``time.monotonic``; when all items are tuned, the rest of the time is for races.
            share: share of the time that is for tuning.
        """
        while share > 0 and self._untuned() and (begin := time.monotonic()) < until:
            slice_end = min(until, begin + _SLICE)
            self.tune(begin + share * (slice_end - begin))
            self.race(slice_end, self._with_new_evidence())
        self.race(until, self._to_race())

    def tune(self, until: float) -> None:
        """Tune items that are not tuned yet, as long as there is time."""
        for item in self._untuned():
            if time.monotonic() >= until:
                return
            self._attempt(item, self._tune)

    def race(self, until: float, wanted: Iterable[Item]) -> None:
        """Race some items, as long as there is time."""
        for item in wanted:
            if time.monotonic() >= until:
                return
            self._attempt(item, self._race)

    def _untuned(self) -> list[Item]:
        """Return the items that are not tuned yet, by stages; in each stage those without rows first, then those with the oldest rows (from
        runs with another database)."""
        without, dates = self.without, {row.item: row.date for row in self.kept.rows}
        left = [item for item in self.wanted if item not in self.tuned and item not in without]
        return sorted(left, key=lambda item: (self._stage(item), dates.get(item, "")))

    def _stage(self, item: Item) -> int:
        return self._stages.get(item, LAST_STAGE)

    def _raced(self) -> dict[Item, Figure]:
        """Return the rows of the tuned schedules that have raced on this machine, by item."""
        here = this_machine().model
        return {row.item: row for row in self.kept.rows if row.column == TUNED and row.machine == here}

    def _missing(self) -> list[Item]:
        """Return the items that are tuned and have not raced on this machine since."""
        raced, without = self._raced(), self.without
        ready = [item for item in self.wanted if item in self.tuned and item not in without]
        return [item for item in ready if item not in raced or raced[item].date < self.tuned[item].created[:10]]

    def _with_new_evidence(self) -> Iterator[Item]:
        """Yield the items that are missing, then those for which lookup knows more inputs by now."""
        missing = self._missing()
        yield from missing
        raced = self._raced()
        for item in (one for one in self.wanted if one in raced and one in self.tuned and one not in missing):
            if known_beside(item, self.tuned) >= MORE_EVIDENCE * max(1, raced[item].known):
                yield item

    def _to_race(self) -> Iterator[Item]:
        """Yield the items with new evidence, then those that earlier versions have raced, the oldest first."""
        done = set[Item]()
        for item in self._with_new_evidence():
            done.add(item)
            yield item
        older = {item: row for item, row in self._raced().items() if row.commit != commit() and item not in done}
        ready = [item for item in self.wanted if item in older and item in self.tuned]
        yield from sorted(ready, key=lambda item: (self._stage(item), older[item].date))

    def _tune(self, item: Item) -> None:
        problem = problem_of(item)
        found = tune_problem(problem, self.store, self.workers[item.threads], self.budget, Settings())
        self.tuned[item] = decisions_of_one(self.store, problem.workload.key, problem.input.key)
        self.spent[item] = len(found.trials), found.seconds
        left = len(self._untuned())
        told = f"{found.shown_speedup} of {len(found.trials)} trials; {left} of {len(self.wanted)} to tune"
        click.echo(f"tuned {item.text}: {told}", err=True)

    def _race(self, item: Item) -> None:
        known = known_beside(item, self.tuned)
        trials, seconds = self.spent.get(item, (0, 0.0))
        rows = [
            replace(row, trials=trials, tuning=float(f"{seconds:.3g}")) if row.column == TUNED else row
            for row in raced(item, problem_of(item), self.tuned[item], self.store, known, self.peers)
        ]
        self.kept.rows = [row for row in self.kept.rows if row.item != item]
        self.kept.add(rows)
        speeds = ", ".join(f"{row.column} {row.speed:.2f}" for row in rows)
        click.echo(f"raced {item.text}: {speeds}; {len(self._missing())} tuned ones have not raced", err=True)

    def _attempt(self, item: Item, step: Callable[[Item], None]) -> None:
        try:
            step(item)
        except (DataError, FormatError, ShapeError) as error:
            self._note(item, LEFT_OUT, error)
        except Exception as error:  # the page shows the error, and the other items are measured
            self._note(item, FAILED, error)

    def _note(self, item: Item, column: str, error: Exception) -> None:
        row = without_figures(item, column, error)
        self.kept.add([row])
        click.echo(f"{item.text}: {column}: {row.note}", err=True)


def decisions_of_one(store: Database, workload: str, entry: str) -> Decision:
    """Return the latest decision for one input of a workload."""
    return list(store.decisions(workload=workload, input=entry))[-1]


def chosen(kernels: Sequence[str], inputs: Sequence[str], dtypes: Sequence[str], threads: Sequence[int]) -> list[Item]:
    """Return the items of these kernels, inputs, types and threads; of all where none are named."""

    def asked(item: Item) -> bool:
        pairs: Iterable[tuple[object, Sequence[object]]] = (
            (item.kernel, kernels), (item.input, inputs), (item.dtype, dtypes), (item.threads, threads),
        )  # fmt: skip
        return all(not names or value in names for value, names in pairs)

    return [item for item in items() if asked(item)]


@click.command()
@results_option
@click.option("--db", "database", default=None, help="where schedules are kept (default: decisions.sqlite among the user's data)")
@click.option("--minutes", type=click.FloatRange(min=0.0), default=None, help="end after about so long (default: when all is measured)")
@click.option("--share", type=click.FloatRange(0.0, 1.0), default=0.75, show_default=True, help="of the minutes, for tuning")
@click.option("--trials", default=16, show_default=True, help="of a tuning")
@click.option("--budget", default=3.0, show_default=True, help="seconds of a tuning")
@click.option("--kernel", "kernels", multiple=True, type=click.Choice(list(CASES)), help="only these")
@click.option("--input", "inputs", multiple=True, help="only these")
@click.option("--dtype", "dtypes", multiple=True, type=click.Choice(DTYPES), help="only these")
@click.option("--threads", multiple=True, type=click.IntRange(min=1), help=f"only these of {', '.join(map(str, THREADS))}")
@click.option("--ship", is_flag=True, help="also write results/schedules.jsonl, which ships with the package, from what was tuned")
@click.option("--page", "only_page", is_flag=True, help="measure nothing: pages of the rows that there are")
def main(
    results: Path, database: str | None, minutes: float | None, share: float, trials: int, budget: float, kernels: tuple[str, ...],
    inputs: tuple[str, ...], dtypes: tuple[str, ...], threads: tuple[int, ...], ship: bool, only_page: bool,
) -> None:  # fmt: skip
    """Tune and race kernels on real inputs, and write results/decisions.md and results/kernels.md; goes on where it was stopped.

    The real inputs are those of the folder that SPARSETUNE_DATA names.
    """
    kept, begin = Partial(results / "decisions.csv", Figure), time.monotonic()
    seconds = float("inf") if minutes is None else 60 * minutes
    try:
        with ExitStack() as stack:
            store = stack.enter_context(open_database(database or usual_database()))
            if not only_page:
                workers = {count: stack.enter_context(Worker(count)) for count in THREADS}
                wanted = chosen(kernels, inputs, dtypes, threads)
                run = Run(store, kept, Budget(trials=trials, seconds=budget), _libraries(), wanted, workers)
                run.tune_and_race(begin + seconds, share)
            if ship:
                _ship(store, results / "schedules.jsonl")
    finally:
        write_pages(kept.rows, results)


def _ship(store: Database, file: Path) -> None:
    """Write the schedules that ship: those of this machine, and those that the file has of others."""
    here = this_machine().fingerprint
    others = [one for one in read_json_lines(file) if isinstance(one, Decision) and one.workload.machine != here] if file.exists() else []
    lines = io.StringIO()
    click.echo(f"{file}: {write_shipped([*others, *store.decisions()], lines)} schedules", err=True)
    publish(file, lines.getvalue())


def write_pages(rows: Sequence[Figure], results: Path) -> None:
    """Write both pages."""
    total = items()
    publish(results / "decisions.md", decisions_page(rows, total, COMMAND))
    publish(results / "kernels.md", kernels_page(rows, total, COMMAND))
    publish(results / PLOT, profile_plot(rows))
    click.echo(f"wrote {results / 'decisions.md'} and {results / 'kernels.md'}", err=True)


def _libraries() -> list[Peer]:
    """Return the installed libraries: PyData's for small items only, since it is slow; MKL also without sorting its results."""
    found: list[Peer] = [PydataPeer(_MOST_POINTS) if peer.name == PydataPeer.name else peer for peer in choose_peers(())]
    unsorted = MklPeer(unsorted=True)
    return [*found, unsorted] if unsorted.version() is not None else found


def usual_database() -> str:
    """Return where this report keeps schedules."""
    folder = studies_folder()
    return str((folder.parent if folder else Path()) / "decisions.sqlite")


if __name__ == "__main__":
    main()
