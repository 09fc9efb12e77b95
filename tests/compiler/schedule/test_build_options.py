"""What ``build`` may ask for, and that nothing else gets as far as a process or a file."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import NoReturn

import build_requests
import numpy as np
import pytest
import sparsetune
from hypothesis import given
from hypothesis import strategies as st
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.schedule import directives as d
from sparsetune.compiler.schedule.build_options import FLAGS, VALUES
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.space.decorations import build_choices

SPMV = "y(i) = A(i,j) * x(j)"


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of compiled code that is empty, in a process that starts no other."""

    def started(*_given: object, **_more: object) -> NoReturn:
        pytest.fail("a process was started")

    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path))
    monkeypatch.setattr(subprocess, "Popen", started)
    return tmp_path


def refused(text: str) -> str:
    with pytest.raises(ScheduleError) as caught:
        Schedule(text)
    first = str(caught.value).split("\n")[0]
    assert first.startswith("directive 1, build: ")
    assert first.isprintable()
    assert len(first) < 600
    return first


@pytest.mark.parametrize("name", build_requests.COMPILERS, ids=lambda name: ascii(name[:30]))
def test_other_programs_are_refused(name: str, idle: Path) -> None:
    message = refused(f'build("{name}", "-O2")')
    assert repr(name)[1:30].rstrip("'") in message
    assert "SPARSETUNE_CC" in message
    for schedule in (f'build("{name}")', [d.Build(name)], [d.Build(name, "-O2")]):
        with pytest.raises(ScheduleError):
            sparsetune.compile(SPMV, {"A": "csr"}, schedule=Schedule(schedule))
    assert not list(idle.iterdir())


@pytest.mark.parametrize("flags", build_requests.FLAGS, ids=lambda flags: ascii(flags[:30]))
def test_other_flags_are_refused_by_name(flags: str, idle: Path) -> None:
    message = refused(f'build(gcc, "{flags}")')
    wrong = [flag for flag in flags.split(" ") if repr(flag)[1:30].rstrip("'") in message]
    assert wrong, message
    with pytest.raises(ScheduleError):
        Schedule([d.Build("gcc", flags)])
    with pytest.raises(ScheduleError):
        sparsetune.compile(SPMV, {"A": "csr"}, schedule=f'parallelize(i, cpu_thread, no_races); build(auto, "{flags}")')
    with pytest.raises(ScheduleError):
        sparsetune.evaluate(SPMV, {"A": np.eye(3), "x": np.ones(3)}, schedule=f'build(auto, "-O2 {flags}")')
    assert not list(idle.iterdir())


TRICKS = ('-O2', '"-O2', '"-O2", "-B/tmp"', "'-O2'", '"-O2" "-B/tmp"', "O2", '"-O2""', "", "[-O2]", '("-O2")')


@pytest.mark.parametrize("text", [*(f"build(gcc, {flags})" for flags in TRICKS), 'build(gcc "-B/tmp")', 'build("gcc" -B/tmp)', "build()"])
def test_no_quotation_gets_around_the_list(text: str) -> None:
    with pytest.raises(ScheduleError):
        Schedule(text)


ALLOWED = [*FLAGS, *(f"{name}={value}" for name, values in VALUES.items() for value in values)]


@given(st.lists(st.sampled_from(ALLOWED), max_size=8), st.sampled_from(["auto", "gcc", "clang", "gcc-12", '"clang-19"']))
def test_what_is_listed_is_taken(flags: list[str], compiler: str) -> None:
    schedule = Schedule(f'build({compiler}, " {"  ".join(flags)}  ")')
    assert schedule == Schedule([d.Build(None if compiler == "auto" else compiler.strip('"'), " ".join(flags))])
    assert str(schedule) == f'build({compiler.strip(chr(34))}, "{" ".join(flags)}")'
    assert Schedule(str(schedule)) == schedule


LETTERS = "-=OBmarchfntivelsp123 /@,'\"\\\t\n"


@given(st.text(alphabet=LETTERS, max_size=30) | st.lists(st.sampled_from([*ALLOWED, "-B/x", ""])).map(" ".join))
def test_whatever_is_taken_is_listed(flags: str) -> None:
    try:
        schedule = Schedule(f'build(gcc, "{flags}")')
    except ScheduleError:
        return
    (directive,) = schedule
    assert isinstance(directive, d.Build)
    assert set((directive.flags or "").split(" ")) <= {*ALLOWED, ""}


def test_what_the_project_writes_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    for machine in ("x86_64", "aarch64"):
        monkeypatch.setattr(platform, "machine", lambda machine=machine: machine)
        texts = [text for text in build_choices().labels if text]
        assert len(texts) > 1
        for text in texts:
            assert str(Schedule(str(text))) == text
