"""Facts and pictures of patterns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sparsetune.compiler.errors import DataError
from sparsetune.compiler.storage.construct import tensor
from sparsetune.datasets import load, pattern_facts, spy_text, write_spy
from sparsetune.datasets.spy import spy_counts
from sparsetune.tuner.cli import run

ARROW = np.diag([1.0] * 6) + np.eye(6, k=0)
ARROW[0, :] = 1


def test_facts_of_a_matrix() -> None:
    found = pattern_facts(tensor(ARROW, "csr"))
    assert found["density"] == 11 / 36
    assert found["entries a row"] == "1 to 6, mean 1.83"
    assert (found["empty rows"], found["bandwidth"], found["used slices"]) == (0, 5, "6 x 6")
    assert found["on the diagonal"] == 6 / 11
    assert found["symmetric"] == 6 / 11


def test_facts_of_other_orders() -> None:
    cube = np.zeros((3, 4, 5))
    cube[0, 1, :] = 1
    cube[2, 1, 3] = 1
    found = pattern_facts(tensor(cube, "csf"))
    assert found["entries a fibre of 1 mode"] == 3
    assert found["entries a fibre of 2 modes"] == 3
    assert found["used slices"] == "2 x 1 x 5"
    assert pattern_facts(tensor(np.zeros((3, 4)), "csr"))["density"] == 0
    assert pattern_facts(tensor(np.array([0.0, 1.0]), "compressed"))["density"] == 0.5


@pytest.mark.parametrize("shape", [(6, 6), (40, 3), (1, 100), (3, 4, 5), (7,)])
def test_every_entry_is_in_the_picture(shape: tuple[int, ...]) -> None:
    data = np.random.default_rng(3).random(shape) < 0.4
    assert spy_counts(tensor(data.astype(float), "coo"), 4, 9).sum() == data.sum()


def test_the_picture_shows_where_entries_are() -> None:
    lines = spy_text(tensor(ARROW, "csr")).splitlines()
    assert lines[0] == lines[-1] == "+------+"
    assert [[letter != " " for letter in line[1:-1]] for line in lines[1:-1]] == (ARROW != 0).tolist()
    assert spy_text(tensor(np.zeros((2, 2)), "csr")).splitlines()[1] == "|  |"
    large = spy_text(load("random:stencil5:100")).splitlines()
    assert (len(large), len(large[0])) == (26, 74)


def test_a_picture_as_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARSETUNE_DATA", raising=False)
    path = write_spy(tensor(ARROW, "csr"), tmp_path / "spy.png", "arrow")
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    with pytest.raises(DataError, match=r"cannot write .*none/spy.png: No such file"):
        write_spy(tensor(ARROW, "csr"), tmp_path / "none" / "spy.png", "arrow")
    assert run(["data", "info", "random:stencil5:4", "--png", str(tmp_path / "more.png")]) == 0
    assert "bandwidth" in capsys.readouterr().out
    assert (tmp_path / "more.png").exists()
    assert run(["data", "info", "HB/1138_bus", "--png", "x.png"]) == 2
    assert "is not here yet: 'tune-kernel data get HB/1138_bus' fetches it" in capsys.readouterr().err
