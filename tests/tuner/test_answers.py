"""What a lookup found serves other processes, as long as nothing that it depends on has changed."""

from __future__ import annotations

import json
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st_draw
from sparsetune.compiler.native import folders
from sparsetune.tuner import answers, asking, constants, sources
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
    monkeypatch.setattr(asking, "_alike", lambda *_: None)
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
    monkeypatch.setattr(answers, "available_compilers", list)
    look()
    look()
    answers._surroundings.cache_clear()
    assert len(found) == 4
    assert constants.constants_file().suffix == ".json"


@pytest.mark.parametrize(("file", "times"), [("tuner/model.py", 2), ("compiler/space/candidates.py", 2), ("tuner/cli.py", 1)])
def test_an_answer_holds_until_a_source_that_it_came_from_changes(
    found: list[str], monkeypatch: pytest.MonkeyPatch, file: str, times: int
) -> None:
    monkeypatch.delitem(sys.modules, "sparsetune.tuner.cli", raising=False)
    look()
    sources._state.cache_clear()
    monkeypatch.setattr(sources, "_now", lambda path, _: (0, 0) if path.endswith(file) else sources.first_states()[path])
    look()
    sources._state.cache_clear()
    assert len(found) == times


def test_what_makes_code_has_no_part_in_answers_without_records(found: list[str], folder: Path) -> None:
    import sparsetune.compiler.lowering.lower  # noqa: F401

    look()
    (names,) = folder.glob(f"*{sources.LISTS}")
    parts = {Path(path).parts[1] for path in names.read_text().splitlines()}
    assert {"model.py", "concrete", "space"} <= parts
    assert "lowering" not in parts


@pytest.mark.parametrize("text", [None, "", "a.py"])
def test_an_answer_whose_list_of_sources_is_damaged_is_found_again(found: list[str], folder: Path, text: str | None) -> None:
    first = look()
    (names,) = folder.glob(f"*{sources.LISTS}")
    names.unlink() if text is None else names.write_text(text)
    sources._state.cache_clear()
    assert look() == first == look()
    assert len(found) == 2


def test_a_half_of_a_symmetric_matrix_is_no_answer_for_other_values(found: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    half = st.Schedule('convert(A, "dense, symmetric")')
    monkeypatch.setattr(finding, "lookup_in", lambda _url, _problem, _recording: Match(half, "model"))
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
    diagonals = matrix().todia()  # of which values that are 0 are not stored in rows
    for _ in range(2):
        look(diagonals)
    assert len(found) == 2
    assert not folder.exists()


@st_draw.composite
def questions(draw: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A lookup of a kernel on a matrix of some pattern, format and type."""
    expression, form = draw(st_draw.sampled_from([
        (EXPRESSION, None), ("Y(i,k) = A(i,j) * X(j,k)", None), ("C(i,k) = A(i,j) * A(k,j)", "csr"), ("S(i,j) = A(i,j) * x(j)", "csr"),
    ]))  # fmt: skip
    rng, width = np.random.default_rng(draw(st_draw.integers(0, 3))), draw(st_draw.sampled_from([3, 40]))
    stored = draw(st_draw.sampled_from(["csr", "csc", "coo"]))
    density, dtype = draw(st_draw.sampled_from([0.01, 0.2])), draw(st_draw.sampled_from([np.float32, np.float64]))
    operands = {"A": scipy.sparse.random_array((60, 40), density=density, rng=rng, format=stored, dtype=dtype)}
    if "X" in expression:
        operands["X"] = np.ones((40, width), dtype)
    if "x" in expression:
        operands["x"] = np.ones(40, dtype)
    return expression, operands, {"output_format": form, "threads": draw(st_draw.sampled_from([1, 2]))}


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=st_draw.lists(questions(), min_size=1, max_size=8))
def test_answers_are_what_would_be_found(found: list[str], folder: Path, asked: list[Any]) -> None:
    def answered(kept: str) -> list[Match]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(answers.ANSWERS, kept)
            patch.setattr(finding, "_modelled", OrderedDict())
            return [st.lookup(expression, operands, **options) for expression, operands, options in asked]

    first, again, without = answered(str(folder)), answered(str(folder)), answered("")
    assert first == again == without


def by_coordinates(**replaced: Any) -> Any:
    stored = matrix().tocoo()
    parts = {"row": stored.row, "col": stored.col, "data": stored.data} | replaced
    return scipy.sparse.coo_array((parts["data"], (parts["row"], parts["col"])), shape=stored.shape)


@pytest.mark.parametrize("made", ["coordinates", "a matrix of coordinates", "PyData sparse"])
def test_arrays_of_coordinates_have_answers(found: list[str], made: str) -> None:
    stored = matrix().tocoo()
    if made == "PyData sparse":
        operand = pytest.importorskip("sparse").COO.from_scipy_sparse(stored)
    else:
        operand = scipy.sparse.coo_matrix(stored) if made == "a matrix of coordinates" else stored
    assert look(operand) == look(operand)
    assert len(found) == 1


def test_other_coordinates_are_another_question(found: list[str]) -> None:
    stored = by_coordinates()
    look(stored)
    look(by_coordinates(data=2 * stored.data))
    assert len(found) == 1
    look(by_coordinates(col=stored.col[::-1].copy()))
    look(by_coordinates(row=stored.row[::-1].copy()))
    look(by_coordinates(data=stored.data.astype(np.float32)))
    look(scipy.sparse.coo_array((stored.data[1:], (stored.row[1:], stored.col[1:])), shape=stored.shape))
    assert len(found) == 5


def test_tensors_of_coordinates_have_answers(found: list[str]) -> None:
    tensor = scipy.sparse.coo_array((np.ones(3), (np.array([0, 1, 3]), np.array([2, 0, 1]), np.array([1, 1, 0]))), shape=(4, 3, 2))
    operands = {"B": tensor, "c": np.ones(2)}
    first, second = (st.lookup("A(i,j) = B(i,j,k) * c(k)", operands) for _ in range(2))
    assert first == second
    assert len(found) == 1


def test_folders_are_where_the_platform_has_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    platformdirs = pytest.importorskip("platformdirs")
    for value in (str(tmp_path), "", None):
        for variable in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
            monkeypatch.delenv(variable, raising=False)
            if value is not None:
                monkeypatch.setenv(variable, value)
        assert folders.user_folder("cache") == platformdirs.user_cache_path("sparsetune")
        assert folders.user_folder("data") == platformdirs.user_data_path("sparsetune")
