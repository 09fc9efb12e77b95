"""What a lookup found serves other processes, as long as nothing that it depends on has changed."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from sparsetune.compiler.native import folders
from sparsetune.tuner import answers, asking, constants
from sparsetune.tuner import lookup as finding
from sparsetune.tuner.match import Match

EXPRESSION = "y(i) = A(i,j) * x(j)"


def matrix(**options: Any) -> Any:
    return scipy.sparse.random_array((60, 40), density=0.2, rng=np.random.default_rng(1), format="csr", **options)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for answers, of which no process knows any; no record anywhere."""
    monkeypatch.setenv(answers.ANSWERS, str(tmp_path / "answers"))
    monkeypatch.setenv("SPARSETUNE_DATABASE", str(tmp_path / "s.sqlite"))
    return tmp_path / "answers"


@pytest.fixture
def found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The expressions that were looked for in full; each call is that of a process of its own."""
    asked: list[str] = []
    look_up = finding.look_up
    monkeypatch.setattr(finding, "look_up", lambda url, expression, *rest: asked.append(expression) or look_up(url, expression, *rest))
    monkeypatch.setattr(asking, "_remembered", lambda key: None)
    return asked


def look(operand: Any = None, **options: Any) -> Match:
    data = matrix() if operand is None else operand
    return st.lookup(EXPRESSION, {"A": data, "x": np.ones(40, options.pop("kind", np.float64))}, **options)


def test_an_answer_serves_other_processes(found: list[str]) -> None:
    first, second = look(threads=2), look(threads=2)
    assert found == [EXPRESSION]
    assert first == second
    assert first.schedule.directives == second.schedule.directives


def test_other_values_on_a_pattern_have_the_same_answer(found: list[str]) -> None:
    other = matrix()
    other.data[:] = 7.0
    assert look() == look(other)
    assert len(found) == 1


CHANGES: dict[str, Callable[[], dict[str, Any]]] = {
    "another pattern": lambda: {"operand": scipy.sparse.csr_array(matrix()[::-1])},
    "other columns of as many entries": lambda: {"operand": scipy.sparse.csr_array(matrix()[:, ::-1])},
    "another format": lambda: {"operand": matrix().tocsc()},
    "another type": lambda: {"operand": matrix(dtype=np.float32)},
    "another type of a dense operand": lambda: {"kind": np.float32},
    "a tensor": lambda: {"operand": st.tensor(matrix())},
    "threads": lambda: {"threads": 3},
    "a result": lambda: {"output_format": "compressed"},
    "a semiring": lambda: {"semiring": ("min", "+")},
    "a bound": lambda: {"memory_bound": 10},
}


@pytest.mark.parametrize("change", CHANGES)
def test_other_questions_are_asked(found: list[str], change: str) -> None:
    look(threads=2)
    look(**{"threads": 2, **CHANGES[change]()})
    assert len(found) == 2


def test_an_answer_holds_until_the_database_changes(found: list[str], tmp_path: Path) -> None:
    look()
    st.tune(EXPRESSION, {"A": matrix(), "x": np.ones(40)}, trials=2)
    assert look().origin == "exact"
    assert look().origin == "exact"
    assert len(found) == 2


def test_an_answer_holds_until_what_it_rests_on_changes(found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look()
    monkeypatch.setenv("SPARSETUNE_SHIPPED", str(tmp_path / "shipped.jsonl"))
    (tmp_path / "shipped.jsonl").write_text("")
    look()
    monkeypatch.setattr(answers, "constants_file", lambda: tmp_path / "constants.json")
    (tmp_path / "constants.json").write_text(json.dumps({}))
    look()
    answers._surroundings.cache_clear()
    monkeypatch.setattr(answers, "stamp", lambda *_given, **_named: "other sources")
    look()
    look()
    answers._surroundings.cache_clear()
    assert len(found) == 4
    assert constants.constants_file().suffix == ".json"


def test_a_half_of_a_symmetric_matrix_is_no_answer_for_other_values(found: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    half = st.Schedule('convert(A, "dense, symmetric")')
    monkeypatch.setattr(finding, "lookup_in", lambda _url, _problem: Match(half, "model"))
    symmetric = scipy.sparse.csr_array(scipy.sparse.eye_array(40))
    assert [look(symmetric).schedule for _ in range(2)] == [half, half]
    assert len(found) == 2


def test_what_was_cut_short_is_no_answer(found: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "CHOICE_SECONDS", -1.0)
    monkeypatch.setattr(finding, "_modelled", OrderedDict())
    assert "before it had seen all candidates" in look().note
    look()
    assert len(found) == 2


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"schedule": 1, "origin": "exact", "time": null, "distance": null, "note": ""}'])
def test_a_damaged_answer_is_found_again(found: list[str], folder: Path, text: str) -> None:
    first = look()
    (file,) = folder.glob("*.json")
    file.write_text(text)
    assert look() == first == look()
    assert len(found) == 2


def test_a_folder_that_others_can_write_is_not_believed(found: list[str], folder: Path) -> None:
    look()
    folder.chmod(0o777)
    look()
    assert len(found) == 2


def test_the_oldest_answers_make_room(found: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST", 4)
    for threads in range(1, 7):
        look(threads=threads)
    assert len(list(folder.glob("*.json"))) <= 4
    look(threads=6)
    assert len(found) == 6


def test_what_cannot_be_told_from_others_has_no_answer(found: list[str], folder: Path) -> None:
    coordinates = matrix().tocoo()
    for _ in range(2):
        look(coordinates)
    assert len(found) == 2
    assert not folder.exists()


def test_folders_are_where_the_platform_has_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    platformdirs = pytest.importorskip("platformdirs")
    for value in (str(tmp_path), "", None):
        for variable in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
            monkeypatch.delenv(variable, raising=False)
            if value is not None:
                monkeypatch.setenv(variable, value)
        assert folders.user_folder("cache") == platformdirs.user_cache_path("sparsetune")
        assert folders.user_folder("data") == platformdirs.user_data_path("sparsetune")
