"""Lookup: records of other versions, compilers, flags and machines are evidence, and none of this very input."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from lookup_records import EXPRESSION, PARALLEL, UNROLLED, add, decided, look, operands, problem
from sparsetune.tuner import environment, kernels, legality
from sparsetune.tuner.asking import lookup
from sparsetune.tuner.resolve import make_problem

pytestmark = pytest.mark.usefixtures("no_model")


@pytest.mark.parametrize(
    ("altered", "said"),
    [
        ({"code": "0.0.9+12345678"}, "is of version 0.0.9+12345678, not of"),
        ({"code": ""}, "of version unknown"),
        ({"compiler": "gcc: 4.8"}, "was compiled by gcc: 4.8 -O3"),
        ({"flags": "-O0"}, "-O0, not by"),
        ({"compiler": "", "flags": ""}, "was compiled by an unknown compiler, not by"),
    ],
    ids=["generator", "no generator", "compiler", "flags", "neither"],
)
def test_a_record_of_before_is_evidence_and_not_exact(database: Path, altered: dict[str, str], said: str) -> None:
    add(database, decided(problem(), PARALLEL, **altered))
    match = look(database)
    assert (match.origin, str(match.schedule), match.distance) == ("similar", "parallelize(i, cpu_thread, no_races)", 0.0)
    assert said in match.note
    assert match.note.endswith("tune again")


def test_an_unaltered_record_is_exact_without_generating_code(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def generates(*_given: object) -> None:
        raise AssertionError("code is generated")

    here = environment.describe_environment({})
    add(database, decided(problem(), PARALLEL, environment=here))
    monkeypatch.setattr(kernels, "compile_problem", generates)
    monkeypatch.setattr(legality, "is_legal", generates)
    assert look(database).origin == "exact"
    add(database, decided(problem(), UNROLLED, flags="-O0", environment=here))
    with pytest.raises(AssertionError, match="code is generated"):
        look(database)


def test_a_record_with_the_flags_of_long_code_is_not_exact(database: Path) -> None:
    """They are flags that some code is compiled with, but not that of this schedule."""
    here = environment.describe_environment({})
    short = decided(problem(), PARALLEL, environment=here)
    assert "-O3" in short.flags
    add(database, replace(short, flags=short.flags.replace("-O3", "-O2")))
    match = look(database)
    assert match.origin == "similar"
    assert "-O2" in match.note


def test_the_digest_of_the_sources_is_remembered_until_one_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "package"
    for name in ("compiler/deep/one.py", "csrc/two.c"):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text("1")
    monkeypatch.setattr(environment, "_ROOT", root)
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "cache" / "kernels"))
    version, digest = environment.code_version.__wrapped__, environment.version_of
    first = version()
    monkeypatch.setattr(environment, "version_of", None)  # which is not asked again
    assert version() == first
    monkeypatch.setattr(environment, "version_of", digest)
    (root / "compiler/deep/one.py").write_text("12")
    second = version()
    assert second == digest(root) != first
    (tmp_path / "cache" / "versions.json").write_text("[]")
    assert version() == second


def test_what_this_version_has_decided_holds_whatever_others_decided_later(database: Path) -> None:
    add(database, decided(problem(), UNROLLED, created="2020-01-01T00:00:00.000+00:00"), decided(problem(), PARALLEL, code="0.0.9"))
    match = look(database)
    assert (match.origin, str(match.schedule), match.note) == ("exact", "unroll(j, 4)", "")


def test_a_record_of_another_machine_is_none_of_this_one(database: Path) -> None:
    own = problem()
    add(database, decided(own, PARALLEL, workload=replace(own.workload, machine="another")))
    assert look(database).origin == "default"


def test_a_record_whose_machine_was_altered_in_place_is_none_of_this_one(database: Path) -> None:
    """It is found under the key of this machine still, which the table keeps beside the name."""
    add(database, decided(problem(), PARALLEL))
    assert look(database).origin != "default"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE st_workload SET machine = 'another'")
    assert look(database).origin == "default"


ON_GPU = "parallelize(i0, gpu_block, no_races); parallelize(i1, gpu_thread, atomics)"


def test_records_of_a_device_that_is_not_here(database: Path) -> None:
    made = make_problem(EXPRESSION, operands(), target="cuda", threads=7, arch="sm_90")
    assert (made.workload.machine, made.workload.target) == ("sm_90", "cuda")
    add(database, decided(made, ON_GPU), decided(problem(), PARALLEL))

    def found(**wish):
        return lookup(EXPRESSION, operands(), database=database, **wish)

    match = found(target="cuda", arch="sm_90")
    assert (match.origin, str(match.schedule)) == ("exact", ON_GPU.replace("i0", "i").replace("i1", "j"))
    other = found(target="cuda", arch="sm_80")
    assert (other.origin, str(other.schedule)) == ("default", "")  # the model is asked, which chooses nothing here
    assert "cpu_thread" in str(found(threads=2).schedule)
