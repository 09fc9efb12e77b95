"""People who wait are told what for: campaigns show where they are, first calls that compile for long say so."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sparsetune as st
from sparsetune.compiler import attention
from sparsetune.compiler.errors import TuningError
from sparsetune.tuner.progress import Progress

EXPRESSION, OPERANDS = "y(i) = A(i,j) * x(j)", {"A": np.eye(4), "x": np.ones(4)}


@pytest.mark.cc
def test_a_callback_sees_every_trial_and_verbose_writes_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Progress] = []
    result = st.tune(EXPRESSION, OPERANDS, trials=3, database=str(tmp_path / "s.sqlite"), callback=seen.append, verbose=True)
    assert seen[0].phase == "preparing"
    assert seen[-1].phase == "finals"
    assert seen[-1].done == len(result.trials)
    assert seen[-1].best is not None
    assert "sparsetune: tune: " in capsys.readouterr().err
    st.tune(EXPRESSION, OPERANDS, trials=3, database=str(tmp_path / "other.sqlite"), verbose=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("option", "message"), [({"callback": 3}, "takes a Progress"), ({"verbose": "yes"}, "True, False or None")])
def test_what_cannot_be_called_is_refused_before_anything_is_measured(option: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(TuningError, match=message):
        st.tune(EXPRESSION, OPERANDS, database=str(tmp_path / "s.sqlite"), **option)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("asked", "is_terminal", "expected"), [("", False, False), ("", True, True), ("0", True, False), ("1", False, True)]
)
def test_what_takes_long_says_so_where_somebody_watches(
    asked: str, is_terminal: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Terminal() if is_terminal else io.StringIO()
    monkeypatch.setenv(attention.VERBOSE, asked)
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr(attention, "PATIENCE", 0.0)
    with attention.noted_if_long("compiling"):
        end = time.monotonic() + 10
        while expected and not written.getvalue() and time.monotonic() < end:
            time.sleep(0.001)
    assert written.getvalue() == ("sparsetune: compiling\n" if expected else "")


def test_what_is_quick_says_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(attention.VERBOSE, "1")
    with attention.noted_if_long("compiling"):
        pass
    assert capsys.readouterr().err == ""


@pytest.mark.cc
def test_notebooks_show_progress_without_widgets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[dict[str, str]] = []

    def display(made: dict[str, str], raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        shown.append(made)
        return SimpleNamespace(update=lambda changed, raw: shown.append(changed))

    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    result = st.tune(EXPRESSION, OPERANDS, trials=3, database=str(tmp_path / "s.sqlite"))
    assert "preparing" in shown[0]["text/plain"]
    assert f"{len(result.trials)} of" in shown[-1]["text/plain"]
    assert "best" in shown[-1]["text/html"]
    assert "<progress value='" in shown[-1]["text/html"]
    assert "A(i,j)" in repr(result.space)
    assert capsys.readouterr().err == ""
