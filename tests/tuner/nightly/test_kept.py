"""Versions that baselines were measured with are kept, found again, and raced."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.tuner.environment import code_version, version_of
from sparsetune.tuner.nightly.baseline import load_baseline
from sparsetune.tuner.nightly.kept import MOST_KEPT, copy_version, keep, kept

SUITE = """
[suite]
threads = [1]

[[kernel]]
name = "spmv"
expression = "y(i) = A(i,j) * x(j)"
operand = "A"
order = 2

[[input]]
name = "small"
source = "random:uniform:200x100:nnz=800"
order = 2
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def another(place: Path, change: str = "# another version") -> str:
    """Keep another version, and return its code."""
    copy_version(place)
    with (place / "compiler" / "errors.py").open("a") as file:
        file.write(f"{change}\n")
    code = version_of(place)
    folder = keep().parent
    os.utime(place)
    place.rename(folder / code)
    return code


def test_this_version_is_kept_once_and_not_raced_against_itself() -> None:
    place = keep()
    assert keep() == place
    assert version_of(place) == code_version()
    assert kept(code_version()) is None  # the same code makes the same kernels
    assert not (place / "tests").exists()


def test_another_version_is_found_until_it_is_changed(tmp_path: Path) -> None:
    code = another(tmp_path / "other")
    place = kept(code)
    assert place is not None
    assert version_of(place) == code
    (place / "csrc" / "st_order.c").write_text("")
    assert kept(code) is None
    assert kept("0.1.0+00000000") is None
    assert kept("") is None
    assert kept("../versions/" + code) is None


def test_a_damaged_version_is_kept_anew() -> None:
    place = keep()
    (place / "compiler" / "errors.py").write_text("")
    assert version_of(keep()) == code_version()


def test_what_others_can_write_is_not_run(tmp_path: Path) -> None:
    code = another(tmp_path / "other")
    place = kept(code)
    assert place is not None
    place.parent.chmod(0o777)
    assert kept(code) is None
    with pytest.raises(PermissionError, match="others can write"):
        keep()


def test_few_versions_are_kept(tmp_path: Path) -> None:
    codes = [another(tmp_path / f"other{number}", f"# {number}") for number in range(MOST_KEPT + 1)]
    keep()
    assert [kept(code) is not None for code in codes] == [False, False, True, True, True]


@pytest.mark.skipif(not available_compilers(), reason="needs a C compiler")
def test_the_version_of_a_baseline_is_raced(tmp_path: Path, call: Callable[..., tuple[int, str, str]]) -> None:
    suite, baseline = tmp_path / "small.toml", tmp_path / "small.json"
    suite.write_text(SUITE)
    arguments = ("nightly", str(suite), "--baseline", str(baseline), "--db", str(tmp_path / "db.sqlite"), "--json")
    status, _, err = call(*arguments)
    assert status == 0, err
    assert load_baseline(baseline).code == code_version()
    code = another(tmp_path / "other")
    baseline.write_text(json.dumps(json.loads(baseline.read_text()) | {"code": code}))
    _, out, err = call(*arguments)
    assert f"kept in {keep().parent / code}" in err
    assert [item["against"] for item in json.loads(out)["items"]] == ["base"]


def test_code_of_a_copy_is_that_of_the_original(tmp_path: Path) -> None:
    copy_version(tmp_path / "copy")
    assert version_of(tmp_path / "copy") == code_version()
