"""Tuning real kernels in real workers: right results, and compilers and kernels that misbehave."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.tuner.database import open_database
from sparsetune.tuner.kernels import Task, compile_task
from sparsetune.tuner.measure.policy import Policy
from sparsetune.tuner.settings import Settings

pytestmark = [pytest.mark.cc, pytest.mark.skipif(not available_compilers(), reason="needs a C compiler")]

RNG = np.random.default_rng(0)
MATRIX = scipy.sparse.random_array((2000, 1500), density=0.01, rng=RNG, format="csr")
SPMV = ("y(i) = A(i,j) * x(j)", {"A": MATRIX, "x": RNG.standard_normal(1500)})
QUICK = Settings(policy=Policy(max_seconds=0.02, max_repeats=5, final_rounds=6, burst_seconds=0.001))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    from sparsetune.tuner import session

    monkeypatch.setattr(session, "Settings", lambda **changes: replace(QUICK, **changes))


def wrapped_compiler(folder: Path, body: str) -> str:
    """Return a compiler that runs a piece of shell before gcc; ``$source`` is the C file."""
    program = folder / "mycc"
    program.write_text(
        '#!/bin/sh\nfor word in "$@"; do case "$word" in *.c) source="$word";; esac; done\n'
        f'extra=""\n{body}\nexec {available_compilers()[0].command[0]} "$@" $extra\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


@pytest.mark.parametrize(
    ("expression", "operands", "output_format", "threads"),
    [
        ("y(i) = A(i,j) * x(j)", {"A": MATRIX, "x": np.ones(1500)}, None, 1),
        ("y(j) = A(i,j) * x(i)", {"A": MATRIX, "x": np.ones(2000)}, None, 2),
        ("S(i,j) = A(i,j) * U(i,k) * V(j,k)", {"A": MATRIX, "U": np.ones((2000, 8)), "V": np.ones((1500, 8))}, "csr", 2),
        ("C(i,j) = A(i,k) * B(k,j)", {"A": MATRIX, "B": MATRIX.T.tocsr()}, "csr", 2),
        ("C(i,j) = A(i,j) + B(i,j)", {"A": MATRIX, "B": MATRIX * 2}, "csr", 1),
        ("s = A(i,j) * A(i,j)", {"A": MATRIX}, None, 2),
        ("y(i) += A(i,j) * x(j)", {"A": MATRIX, "x": np.ones(1500), "y": np.ones(2000)}, None, 1),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_kernels_are_tuned_and_right(database: Path, expression: str, operands, output_format: str | None, threads: int) -> None:
    result = st.tune(expression, operands, output_format=output_format, trials=4, threads=threads, database=str(database))
    assert result.measured[0].schedule == ""
    assert {str(trial.status) for trial in result.measured} <= {"ok", "illegal"}
    tuned, plain = (
        st.evaluate(expression, operands, output_format=output_format, schedule=schedule, threads=threads)
        for schedule in (result.best, "default")
    )
    left, right = (found.to_numpy() if isinstance(found, st.Tensor) else found for found in (tuned, plain))
    np.testing.assert_allclose(left, right, rtol=1e-10)


def test_what_was_tuned_is_served_by_a_new_process_without_compiling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("SPARSETUNE_CC", wrapped_compiler(tmp_path, f'echo "$source" >> {log}'))
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SPARSETUNE_DATABASE", str(tmp_path / "s.sqlite"))
    scipy.sparse.save_npz(tmp_path / "A.npz", MATRIX.tocsr())
    tuning = (
        "import sparsetune as st, numpy as np\n"
        f"A = {str(tmp_path / 'A.npz')!r}\n"
        "if {tune}: st.tune('y(i) = A(i,j) * x(j)', {{'A': A, 'x': np.ones(1500)}}, trials=3, threads=1)\n"
        "print(st.lookup('y(i) = A(i,j) * x(j)', {{'A': A, 'x': np.ones(1500)}}, threads=1).origin)\n"
        "y = st.evaluate('y(i) = A(i,j) * x(j)', {{'A': A, 'x': np.ones(1500)}}, threads=1)\n"
        "print(repr(float(y.sum())))"
    )
    first = subprocess.run([sys.executable, "-c", tuning.format(tune=True)], capture_output=True, text=True, check=True)
    compiled = log.read_text()
    second = subprocess.run([sys.executable, "-c", tuning.format(tune=False)], capture_output=True, text=True, check=True)
    assert log.read_text() == compiled
    assert first.stdout == second.stdout
    assert second.stdout.splitlines()[0] == "exact"
    assert float(second.stdout.splitlines()[1]) == pytest.approx(MATRIX.sum())


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ('grep -q st_parallel "$source" && exit 1', "compile"),
        ('grep -q st_parallel "$source" && extra="-include {folder}/abort.h"', "compile"),
        ('grep -q st_parallel "$source" && sed -i "s/^int32_t st_kernel(.*{{/& __builtin_abort();/" "$source"', "crash"),
    ],
)
def test_parallel_candidates_that_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, status: str) -> None:
    (tmp_path / "abort.h").write_text("#include <stdlib.h>\n__attribute__((constructor)) static void st_die(void) { abort(); }\n")
    monkeypatch.setenv("SPARSETUNE_CC", wrapped_compiler(tmp_path, body.format(folder=tmp_path)))
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "cache"))
    result = st.tune(*SPMV, trials=5, threads=2, database=str(tmp_path / "s.sqlite"))
    statuses = [str(trial.status) for trial in result.measured]
    assert statuses[0] == "ok"
    assert status in statuses
    assert result.failed_trials == statuses.count(status)
    with open_database(tmp_path / "s.sqlite") as store:
        assert store.stats()["failed"] == result.failed_trials


def test_compiler_that_always_fails_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSETUNE_CC", wrapped_compiler(tmp_path, "echo no licence >&2; exit 1"))
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(st.TuningError, match="the default schedule cannot be compiled") as caught:
        st.tune(*SPMV, trials=2, threads=1, database=str(tmp_path / "s.sqlite"))
    assert "\n" not in str(caught.value)


def test_unwritable_cache_folder_is_survived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "file" / "cache"))
    assert st.tune(*SPMV, trials=2, threads=1, database=str(tmp_path / "s.sqlite")).measured[0].seconds


def test_wrong_kernels_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler whose parallel kernels add one to the first element of the result, whatever else they do."""
    end = r"s/^  return 0;/  ((double *)st_arrays[$place])[0] += 1.0;\n  return 0;/"
    place = r"""sed -n 's/.* y_vals = st_arrays\[\([0-9]*\)\];/\1/p' "$source" | head -n 1"""
    body = f'if grep -q st_parallel "$source"; then place=$({place}); [ -z "$place" ] || sed -i "{end}" "$source"; fi'
    monkeypatch.setenv("SPARSETUNE_CC", wrapped_compiler(tmp_path, body))
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "cache"))
    result = st.tune(*SPMV, trials=5, threads=2, database=str(tmp_path / "s.sqlite"))
    wrong = [trial for trial in result.measured if str(trial.status) == "wrong"]
    assert wrong
    assert all("cpu_thread" in trial.schedule for trial in wrong)
    assert "cpu_thread" not in str(result.best)


def test_worker_leaves_nothing_in_shared_memory(database: Path) -> None:
    st.tune(*SPMV, trials=2, threads=1, database=str(database))
    assert not list(Path("/dev/shm").glob(f"sparsetune-operands-{os.getpid()}-*"))


def test_a_run_that_ended_before_its_finals_is_decided_by_the_next(monkeypatch: pytest.MonkeyPatch, database: Path) -> None:
    from sparsetune.tuner import session

    def interrupt(*_arguments: object) -> None:
        raise KeyboardInterrupt

    expression, operands = SPMV
    st.tune(expression, operands, trials=1, threads=2, database=database)
    with monkeypatch.context() as patch:
        patch.setattr(session, "played", interrupt)
        with pytest.raises(KeyboardInterrupt):
            st.tune(expression, operands, trials=4, threads=2, database=database)
    st.tune(expression, operands, trials=4, threads=2, database=database)
    with open_database(database) as store:
        decisions = list(store.decisions())
        finals = [record for record in store.measurements() if record.role == "final"]
    assert len(decisions) == 2
    assert len(finals) > 1


def test_schedules_that_come_to_the_same_code_have_one_digest() -> None:
    task = Task(SPMV[0], {"A": "csr", "x": "dense", "y": "dense"}, {"i": 2000, "j": 1500}, "cpu", 1)
    operands = {name: st.tensor(value) for name, value in SPMV[1].items()}
    texts = ("", "reorder(i, j)", "factors(A(i,j), x(j))", "pos(j, p, A)", "unroll(j, 4)")
    digests = [compile_task(task, text, operands).source for text in texts]
    assert len(set(digests[:4])) == 1
    assert digests[4] != digests[0]
