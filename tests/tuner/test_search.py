"""Strategies: nothing twice, everything when it fits, the same with the same seed, and taken up after a crash."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest
from sparsetune.compiler.schedule import directives as d
from sparsetune.compiler.space.template import Hole, Template, opened
from sparsetune.tuner.search.space import Space
from sparsetune.tuner.search.strategy import Exhaustive, Strategy, choose_strategy

CHUNK = Hole("chunk", (64, 1, 4, 16, 256))
KIND = Hole("kind", ("static", "dynamic"))
UNROLL = Hole("u", tuple(range(1, 9)))


def threads(loop: str, **holes: Hole) -> Template:
    return Template((opened(d.Parallelize(loop, "cpu_thread", "no_races", "static"), **holes),))


SMALL = Space((threads("a", chunking=KIND), threads("b", chunk=CHUNK, chunking=KIND), threads("c")))
LARGE = Space(
    tuple(threads(f"t{number}", chunk=CHUNK, chunking=KIND).then(opened(d.Unroll("x", 1), factor=UNROLL)) for number in range(6))
)


def text(template: int, chunk: int, kind: str, unroll: int) -> str:
    """Return a schedule of the large space."""
    return f"parallelize(t{template}, cpu_thread, no_races, {kind}, {chunk}); unroll(x, {unroll})"


def study(space: Space, journal: Path | None = None, seed: int = 0, usual: int = 3) -> Strategy:
    from sparsetune.tuner.search.optuna_study import OptunaStudy

    return OptunaStudy(space, seed, journal, "test", usual)


def cost(schedule: str) -> float | None:
    """Return a made-up time: template 3 with a large chunk and small u is best; template 1 always fails."""
    found = re.fullmatch(r"parallelize\(t(\d), cpu_thread, no_races, (\w+), (\d+)\); unroll\(x, (\d)\)", schedule)
    assert found is not None
    template, kind, chunk, unroll = found.groups()
    if template == "1":
        return None
    return 1 + abs(int(template) - 3) + 100 / int(chunk) + (kind == "static") + 0.1 * int(unroll)


def run(strategy: Strategy, count: int, time: Callable[[str], float | None] = cost) -> list[str]:
    found = []
    while len(found) < count and (proposal := strategy.ask()) is not None:
        found.append(proposal.schedule)
        strategy.tell(proposal, time(proposal.schedule))
    return found


def test_space() -> None:
    assert SMALL.size == 2 + 10 + 1
    schedules = [SMALL.schedule(point) for point in SMALL.points()]
    a, b, c = ("parallelize(a, cpu_thread, no_races, static)", "parallelize(b, cpu_thread, no_races, static, 64)",
               "parallelize(c, cpu_thread, no_races, static)")  # fmt: skip
    assert schedules[:3] == [a, b, c]
    assert len(set(schedules)) == len(schedules) == SMALL.size
    assert SMALL.digest != LARGE.digest
    assert SMALL.digest == Space(SMALL.templates).digest


def test_exhaustive_lists_everything_once() -> None:
    strategy = Exhaustive(SMALL)
    known = "parallelize(b, cpu_thread, no_races, dynamic, 1)"
    strategy.know(known, 1.0)
    found = run(strategy, 100, lambda _: 1.0)
    assert len(found) == SMALL.size - 1
    assert known not in found


def test_choice_of_strategy() -> None:
    assert isinstance(choose_strategy(SMALL, 13, 0, None, "s"), Exhaustive)
    assert not isinstance(choose_strategy(SMALL, 12, 0, None, "s"), Exhaustive)


def test_tpe_proposes_nothing_twice_and_ends() -> None:
    found = run(study(SMALL), 100, lambda schedule: float(len(schedule)))
    assert len(found) == len(set(found)) == SMALL.size


def test_tpe_tries_usual_values_first() -> None:
    assert run(study(LARGE), 3) == [text(number, 64, "static", 1) for number in range(3)]


def test_tpe_finds_what_is_good() -> None:
    found = run(study(LARGE), 60)
    best = min((value, schedule) for schedule in found if (value := cost(schedule)) is not None)
    exhaustive = min(value for point in LARGE.points() if (value := cost(LARGE.schedule(point))) is not None)
    assert best[0] <= 1.15 * exhaustive


def test_tpe_avoids_what_fails() -> None:
    found = run(study(LARGE), 80)
    assert sum("(t1," in schedule for schedule in found) == 3


def test_largest_seed_is_taken_up(tmp_path: Path) -> None:
    for _ in range(2):
        run(study(LARGE, tmp_path / "study.journal", seed=2**32 - 1), 2)


def test_half_a_line_of_a_killed_process_is_cut_off(tmp_path: Path) -> None:
    journal = tmp_path / "study.journal"
    found = run(study(LARGE, journal), 4)
    with journal.open("ab") as file:
        file.write(b'{"op_code": 5, "worker' + b"x" * 5000)
    found += run(study(LARGE, journal), 4)
    assert all(json.loads(line) for line in journal.read_text().splitlines())
    found += run(study(LARGE, journal), 4)
    assert len(found) == 12
    assert [path.name for path in tmp_path.iterdir()] == ["study.journal"]


def test_journal_of_a_process_that_was_killed_while_it_wrote(tmp_path: Path) -> None:
    """The next one does not wait for it."""
    journal = tmp_path / "study.journal"
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from sparsetune.tuner.search import optuna_study\n"
        "lock = optuna_study._JournalLock(Path(sys.argv[1]))\n"
        "lock.acquire()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run(study(LARGE, journal), 1)
    subprocess.run([sys.executable, "-c", program, str(journal)], check=False)
    begun = monotonic()
    run(study(LARGE, journal), 1)
    assert monotonic() - begun < 20


def test_same_seed_same_search() -> None:
    assert run(study(LARGE, seed=7), 30) == run(study(LARGE, seed=7), 30)
    assert run(study(LARGE, seed=7), 30) != run(study(LARGE, seed=8), 30)


def test_known_schedules_are_not_proposed() -> None:
    strategy = study(LARGE)
    strategy.know(text(1, 64, "static", 1), 1.0)
    assert text(1, 64, "static", 1) not in run(strategy, 10)


def test_study_is_taken_up(tmp_path: Path) -> None:
    journal = tmp_path / "studies" / "s.journal"
    before = run(study(LARGE, journal), 20)
    again = study(LARGE, journal)
    for schedule in before:
        again.know(schedule, cost(schedule))
    after = run(again, 20)
    assert not set(before) & set(after)


def test_trials_of_a_dead_process_are_failed(tmp_path: Path) -> None:
    import optuna

    journal = tmp_path / "s.journal"
    program = (
        "import os, sys; sys.path[:0] = sys.argv[2:]\n"
        "from pathlib import Path\n"
        "from test_search import LARGE, study\n"
        "strategy = study(LARGE, Path(sys.argv[1])); strategy.ask(); strategy.ask(); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(journal), str(Path(__file__).parent)], check=False).returncode == 9
    strategy = study(LARGE, journal)
    states = [trial.state for trial in strategy._study.get_trials()]  # type: ignore[attr-defined]
    assert states.count(optuna.trial.TrialState.FAIL) == 2
    assert optuna.trial.TrialState.RUNNING not in states
    assert len(run(strategy, 10)) == 10


def test_unwritable_journal(tmp_path: Path) -> None:
    from sparsetune.compiler.errors import DatabaseError

    (tmp_path / "file").write_text("")
    with pytest.raises(DatabaseError, match="cannot keep the study"):
        study(LARGE, tmp_path / "file" / "s.journal")
