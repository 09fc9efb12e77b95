"""Journals of searches: taken up after a kill, shared by processes, and cut where a line is half written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from time import monotonic

import pytest
from search_runs import KEPT, LARGE, cost, run, study


@pytest.mark.parametrize("name", KEPT)
def test_largest_seed_is_taken_up(tmp_path: Path, name: str) -> None:
    for _ in range(2):
        run(study(LARGE, tmp_path / "study.journal", seed=2**32 - 1, name=name), 2)


@pytest.mark.parametrize("name", KEPT)
def test_half_a_line_of_a_killed_process_is_cut_off(tmp_path: Path, name: str) -> None:
    journal = tmp_path / "study.journal"
    found = run(study(LARGE, journal, name=name), 4)
    with journal.open("ab") as file:
        file.write(b'{"op_code": 5, "worker' + b"x" * 5000)
    found += run(study(LARGE, journal, name=name), 4)
    assert all(json.loads(line) for line in journal.read_text().splitlines())
    found += run(study(LARGE, journal, name=name), 4)
    assert len(found) == 12
    assert [path.name for path in tmp_path.iterdir()] == ["study.journal"]


def test_journal_of_a_process_that_was_killed_while_it_wrote(tmp_path: Path) -> None:
    """The next one does not wait for it."""
    place = tmp_path / "study.journal"
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from sparsetune.tuner.search import journal\n"
        "lock = journal._JournalLock(Path(sys.argv[1]))\n"
        "lock.acquire()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run(study(LARGE, place), 1)
    subprocess.run([sys.executable, "-c", program, str(place)], check=False)
    begun = monotonic()
    run(study(LARGE, place), 1)
    assert monotonic() - begun < 20


@pytest.mark.parametrize("name", KEPT)
def test_study_is_taken_up(tmp_path: Path, name: str) -> None:
    journal = tmp_path / "studies" / "s.journal"
    before = run(study(LARGE, journal, name=name), 20)
    again = study(LARGE, journal, name=name)
    for schedule in before:
        again.know(schedule, cost(schedule))
    after = run(again, 20)
    assert not set(before) & set(after)


def test_structures_are_taken_up_without_being_told(tmp_path: Path) -> None:
    before = run(study(LARGE, tmp_path / "s.journal", name="two-level"), 20)
    assert not set(before) & set(run(study(LARGE, tmp_path / "s.journal", name="two-level"), 20))


@pytest.mark.parametrize("name", KEPT)
def test_trials_of_a_dead_process_are_failed(tmp_path: Path, name: str) -> None:
    import optuna
    from sparsetune.tuner.search.journal import open_storage

    journal = tmp_path / "s.journal"
    program = (
        "import os, sys; sys.path[:0] = sys.argv[3:]\n"
        "from pathlib import Path\n"
        "from search_runs import LARGE, study\n"
        "strategy = study(LARGE, Path(sys.argv[1]), name=sys.argv[2]); strategy.ask(); strategy.ask(); os._exit(9)"
    )
    command = [sys.executable, "-c", program, str(journal), name, str(Path(__file__).parents[1])]
    assert subprocess.run(command, check=False).returncode == 9
    strategy = study(LARGE, journal, name=name)
    storage = open_storage(journal)
    states = [trial.state for one in storage.get_all_studies() for trial in storage.get_all_trials(one._study_id)]
    assert states.count(optuna.trial.TrialState.FAIL) == 2
    assert optuna.trial.TrialState.RUNNING not in states
    assert len(run(strategy, 10)) == 10


@pytest.mark.parametrize("name", KEPT)
def test_unwritable_journal(tmp_path: Path, name: str) -> None:
    from sparsetune.compiler.errors import DatabaseError

    (tmp_path / "file").write_text("")
    with pytest.raises(DatabaseError, match="cannot keep the study"):
        study(LARGE, tmp_path / "file" / "s.journal", name=name)


def test_two_processes_do_not_measure_the_same(tmp_path: Path) -> None:
    journal = tmp_path / "s.journal"
    program = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from pathlib import Path\n"
        "from search_runs import LARGE, study\n"
        "strategy = study(LARGE, Path(sys.argv[1]), name='two-level')\n"
        "print(*(strategy.ask().schedule for _ in range(5)), sep='|', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(journal), str(Path(__file__).parents[1])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        theirs = other.stdout.readline().strip().split("|")
        strategy = study(LARGE, journal, name="two-level")
        ours = [proposal.schedule for _ in range(5) if (proposal := strategy.ask()) is not None]
        other.communicate()
    assert len({*theirs, *ours}) == 10


def test_what_a_killed_process_left_waiting_is_not_measured_again(tmp_path: Path) -> None:
    from sparsetune.tuner.search.journal import open_storage
    from sparsetune.tuner.search.structure_study import StructureStudy

    template = LARGE.templates[0]
    study = StructureStudy(template, open_storage(tmp_path / "s.journal"), "s", 0)
    usual, other = tuple(template.usual.values()), (256, "static", 4)
    study._study.enqueue_trial(study._encoded(usual))
    asked = study.ask(other, lambda values: values != usual)
    assert asked is not None
    assert asked[0] == other
