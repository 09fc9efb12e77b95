"""Choices of the static model found again for operands that it has not seen: the same as it would choose, or none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from sparsetune.compiler.errors import DataError, ShapeError
from sparsetune.tuner import answers, asking, replay, sources
from sparsetune.tuner import lookup as finding
from sparsetune.tuner.match import Match
from sparsetune.tuner.model import expected_cost, static_choice
from sparsetune.tuner.recorded_problem import recorded
from sparsetune.tuner.recording import Recording, plain
from sparsetune.tuner.replay import Operands, followed, merged
from sparsetune.tuner.resolve import make_problem

KERNELS = {
    "SpMV": ("y(i) = A(i,j) * x(j)", lambda a: {"A": a, "x": np.ones(a.shape[1])}, None),
    "SpMM": ("Y(i,k) = A(i,j) * X(j,k)", lambda a: {"A": a, "X": np.ones((a.shape[1], 8))}, None),
    "SDDMM": ("S(i,j) = A(i,j) * U(i,k) * V(j,k)", lambda a: {"A": a, "U": np.ones((a.shape[0], 4)), "V": np.ones((a.shape[1], 4))}, "csr"),
    "SpGEMM": ("C(i,k) = A(i,j) * B(j,k)", lambda a: {"A": a, "B": a.T.tocsr()}, "csr"),
    "axpby": ("y(i) = a * x(i) + b * z(i)", lambda a: {"a": 2.0, "x": np.ones(a.shape[0]), "b": 1.0, "z": np.ones(a.shape[0])}, None),
}


SEEDS = 40
FOUND = {"SpMV": 12, "SpMM": 20, "SDDMM": 4, "SpGEMM": 15, "axpby": 2}
"""How many of so many random inputs of a kernel are found at least; all extents of axpby are compiled in."""


def matrix(seed: int, form: str = "csr") -> Any:
    """A matrix of random sizes, with even rows, skewed ones or a band."""
    source = np.random.default_rng(seed)
    rows, columns = (int(2 ** source.uniform(4, 12)) for _ in range(2))
    count = int(min(rows * 2 ** source.uniform(-1, 5), rows * columns / 4)) + 1
    row = source.integers(0, rows, count) if seed % 2 else (rows * source.random(count) ** 3).astype(int)
    near = np.clip(row * columns // rows + source.integers(-9, 9, count), 0, columns - 1)
    column = source.integers(0, columns, count) if seed % 3 else near
    return scipy.sparse.coo_array((np.ones(count), (row, column)), shape=(rows, columns)).tocsr().asformat(form)


@pytest.fixture
def looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The expressions that were looked up in full. Each lookup is that of a process of its own."""
    asked: list[str] = []
    look_up = finding.look_up

    def counted(url: str, expression: str, *rest: Any) -> tuple[Match, bool]:
        asked.append(expression)
        finding._modelled.clear()
        return look_up(url, expression, *rest)

    monkeypatch.setenv(answers.ANSWERS, str(tmp_path / "answers"))
    monkeypatch.setenv("SPARSETUNE_DATABASE", str(tmp_path / "s.sqlite"))
    monkeypatch.setenv("SPARSETUNE_SHIPPED", "")
    monkeypatch.setattr(finding, "look_up", counted)
    monkeypatch.setattr(asking, "_remembered", lambda key: None)
    return asked


def look(data: Any, kernel: str = "SpMV", **options: Any) -> Match:
    expression, operands, form = KERNELS[kernel]
    return st.lookup(expression, operands(data), form, **{"threads": 2, **options})


@pytest.mark.parametrize("kernel", KERNELS)
def test_recordings_give_what_the_model_chooses(kernel: str) -> None:
    """The same schedule and bit-equal costs, for many of the random inputs that come after others."""
    expression, operands, form = KERNELS[kernel]
    runs: replay.Runs = []
    told = 0
    for seed in range(SEEDS):
        given = operands(matrix(seed))
        problem, made = make_problem(expression, given, form, threads=2), Recording()
        values: list[Any] = []
        end = followed(runs, Operands(given).answer, values) if runs else None
        with_numbers, wanted = recorded(problem, made), static_choice(problem)
        found = static_choice(with_numbers)
        cost: Any = expected_cost(with_numbers, st.Schedule())
        assert plain(cost) == expected_cost(problem, st.Schedule())
        schedule = "" if wanted is None else str(wanted.schedule)
        assert schedule == ("" if found is None else str(found.schedule))
        if end is not None:
            told += 1
            _, known_schedule, gain, place = end
            assert known_schedule == schedule
            assert values[place] == plain(cost)
            assert gain is None or values[gain] == (None if wanted is None else wanted.gain)
        gained = None if found is None else made.place(found.gain)
        runs = merged(runs, [*made.steps, ["end", schedule, gained, made.place(cost)]])
    assert told >= FOUND[kernel]


@pytest.mark.parametrize("kernel", KERNELS)
def test_lookups_of_other_inputs_are_those_of_the_model(looked: list[str], kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [look(matrix(seed), kernel) for seed in range(SEEDS)]
    assert 0 < len(looked) < SEEDS
    monkeypatch.setenv(answers.ANSWERS, "")
    assert found == [look(matrix(seed), kernel) for seed in range(SEEDS)]


def test_tensors_are_looked_up_as_the_matrices_that_they_are_made_of(looked: list[str]) -> None:
    for form in ("csr", "csc", "coo"):
        made = [look(st.tensor(matrix(seed, form))) for seed in (1, 1, 5)]
        assert made == [look(matrix(seed, form)) for seed in (1, 1, 5)]


def test_extents_that_are_compiled_in_have_recordings_of_their_own(looked: list[str]) -> None:
    expression = KERNELS["SpMM"][0]
    for seed in (1, 1, 3):
        for width in (8, 9):
            data = matrix(1)
            data.data[:] = seed
            st.lookup(expression, {"A": data[: 16 + seed], "X": np.ones((data.shape[1], width))}, threads=2)
    assert len(looked) >= 2


def test_what_is_refused_is_refused_again(looked: list[str]) -> None:
    good = matrix(1)
    look(good)
    with pytest.raises(ShapeError):
        st.lookup(KERNELS["SpMV"][0], {"A": good, "x": np.ones(good.shape[1] + 1)}, threads=2)
    broken = good.copy()
    broken.indices[0] = good.shape[1]
    with pytest.raises(DataError):
        look(broken)
    turned = good.copy()
    turned.indices = turned.indices[::-1].copy()
    turned.has_sorted_indices = False
    full = look(turned)
    os.environ[answers.ANSWERS] = ""
    assert full == look(turned)


DAMAGES = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "another number": lambda content: content[:-40] + bytes([content[-40] ^ 1]) + content[-39:],
    "another end": lambda content: content.replace(b"end", b"ask"),
    "no recording": lambda content: b"0123\n[[]]",
    "of an earlier version": lambda content: b"0123\n[[],[]]" + content,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_made_anew(looked: list[str], tmp_path: Path, damage: str) -> None:
    first = look(matrix(1))
    (file,) = (tmp_path / "answers").glob(f"*{answers.RECORDINGS}")
    good = file.read_bytes()
    for other in (tmp_path / "answers").glob("*.json"):
        other.unlink()
    file.write_bytes(DAMAGES[damage](good))
    assert look(matrix(1)) == first
    assert len(looked) == 2
    assert file.read_bytes() == good


def test_a_folder_that_nobody_may_write_keeps_nothing(looked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(answers.ANSWERS, str(tmp_path / "file" / "answers"))  # root may write into folders without permission
    assert look(matrix(1)) == look(matrix(1))
    assert len(looked) == 2


def like(data: Any) -> Any:
    """Return a matrix that is another question, for which the recording of a matrix holds."""
    changed = data.copy()
    changed.indices[0] ^= 1
    changed.sort_indices()
    return changed


def test_recordings_hold_until_what_they_rest_on_changes(looked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kinds() -> int:
        look(like(matrix(1)))
        return len(list((tmp_path / "answers").glob(f"*{answers.RECORDINGS}")))

    assert kinds() == 1
    monkeypatch.setattr(answers, "constants_file", lambda: tmp_path / "constants.json")
    (tmp_path / "constants.json").write_text("{}")
    assert kinds() == 2
    answers._surroundings.cache_clear()
    monkeypatch.setattr(answers, "available_compilers", list)
    assert kinds() == 3
    answers._surroundings.cache_clear()
    assert len(looked) == 3


def test_recordings_hold_until_a_source_changes(looked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    look(matrix(1))
    look(like(matrix(1)))
    assert len(looked) == 1
    sources._state.cache_clear()
    monkeypatch.setattr(sources, "_now", lambda path, _: (0, 0) if path.endswith("sketches.py") else sources.first_states()[path])
    look(like(matrix(1)))
    sources._state.cache_clear()
    assert len(looked) == 2


def test_choices_beside_records_of_the_kernel_are_not_recorded(looked: list[str], tmp_path: Path) -> None:
    st.tune(KERNELS["SpMV"][0], KERNELS["SpMV"][1](matrix(1)), threads=2, trials=2)
    look(matrix(2))
    assert not list((tmp_path / "answers").glob(f"*{answers.RECORDINGS}"))


def test_runs_are_a_tree() -> None:
    def steps(first: bool, second: bool, end: str) -> list[Any]:
        ask = [["ask", "a.first", "A"], ["?", "<", 0, 0, first, 0], ["ask", "a.second", "A"], ["?", ">", 0, 1, second, 0]]
        return [*ask, ["end", end, "", ""]]

    runs: replay.Runs = []
    for first, second in ((True, True), (False, True), (True, False), (False, False)):
        runs = merged(runs, steps(first, second, f"{first} {second}"))
        assert merged(runs, steps(first, second, f"{first} {second}")) == runs
    assert [len(run) for run in runs] == [5, 3, 1, 1]
    asked = {"a.first": float("nan"), "a.second": 0.0}  # NaN is not below itself
    assert followed(runs, lambda question, _name: asked[question]) == ["end", "False False", "", ""]
    assert merged(runs, [["ask", "b.other", "A"], ["end", "", "", ""]]) == [[["ask", "b.other", "A"], ["end", "", "", ""]]]


def test_too_many_runs_are_collected_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "MOST", 2)
    runs: replay.Runs = []
    for number in range(4):
        outcomes = [["?", "<", 0, place, place != number, 0] for place in range(number + 1)]
        runs = merged(runs, [["ask", "a.question", "A"], *outcomes, ["end", str(number), "", ""]])
        assert len(runs) <= 2


PROGRAM = """
import sys
import numpy as np, scipy.sparse
import sparsetune as st
source = np.random.default_rng(int(sys.argv[1]))
A = scipy.sparse.random_array((300, 200), density=0.05, rng=source, format="csr")
print(st.lookup("y(i) = A(i,j) * x(j)", dict(A=A, x=np.ones(200)), threads=2, database="/nowhere/s.sqlite"))
print("sparsetune.tuner.model" in sys.modules)
"""


def in_a_process(folder: Path, seed: int, hashes: int) -> subprocess.Popen[str]:
    environment = os.environ | {answers.ANSWERS: str(folder), "PYTHONHASHSEED": str(hashes)}
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(seed)], env=environment, stdout=subprocess.PIPE, text=True)


def test_processes_write_at_once_and_find_what_the_others_left(tmp_path: Path) -> None:
    first = [run.communicate()[0].split("\n")[0] for run in [in_a_process(tmp_path, seed, seed) for seed in range(4)]]
    again = [in_a_process(tmp_path, seed, seed + 10).communicate()[0].split("\n") for seed in range(4, 7)]
    assert [shown for _, shown, _ in again] == ["False"] * 3
    assert {shown for shown, *_ in again} == set(first)
    assert not [name for name in os.listdir(tmp_path) if not name.endswith((".json", answers.RECORDINGS, sources.LISTS))]


def test_recordings_do_not_depend_on_the_order_of_sets(looked: list[str], tmp_path: Path) -> None:
    for hashes in range(3):
        in_a_process(tmp_path / str(hashes), 0, hashes).communicate()
    contents = {file.read_bytes() for file in tmp_path.glob(f"*/*{answers.RECORDINGS}")}
    assert len(contents) == 1


def test_the_last_inputs_in_a_process_do_not_matter(looked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "_modelled", OrderedDict())
    assert [look(matrix(seed)) for seed in (3, 4, 3, 4)] == [look(matrix(seed)) for seed in (3, 4)] * 2
