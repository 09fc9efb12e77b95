"""The files that ship in configs/ are read whole, and say what the program does."""

from __future__ import annotations

import pytest
from sparsetune.compiler.concrete.check import check_assignment
from sparsetune.compiler.errors import DataError
from sparsetune.compiler.notation.parser import parse
from sparsetune.datasets import describe
from sparsetune.tuner import config
from sparsetune.tuner.config import load_machine, load_settings, load_suite, suite_names
from sparsetune.tuner.extents import reads
from sparsetune.tuner.settings import Settings
from sparsetune.tuner.suite import suite_items


def test_suites_that_ship() -> None:
    assert {"quick", "matrices", "tensors"} <= set(suite_names())


@pytest.mark.parametrize("name", suite_names())
def test_suite_is_well_formed(name: str) -> None:
    suite = load_suite(name)
    for kernel in suite.kernels:
        assignment = parse(kernel.expression)
        check_assignment(assignment)
        (access,) = (access for access in reads(assignment) if access.tensor == kernel.operand)
        assert len(access.subscripts) == kernel.order
        given = set(access.indices) | set(kernel.dims)
        assert {index for access in reads(assignment) for index in access.indices} == given
    assert suite_items(suite)


def test_inputs_of_the_quick_suite_are_generated() -> None:
    for entry in load_suite("quick").inputs:
        assert entry.source.startswith("random:")
        assert len(describe(entry.source)["shape"]) == entry.order


def test_settings() -> None:
    assert load_settings("default") == Settings()
    assert load_settings("quick").policy.final_seconds < Settings().policy.final_seconds
    assert load_settings("thorough").policy.max_seconds > Settings().policy.max_seconds
    with pytest.raises(DataError, match="unknown search settings 'slow'"):
        load_settings("slow")


def test_machines(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_machine("whatever").workspace_share == 0.5
    (tmp_path / "machines.toml").write_text('[default]\nworkspace_share = 0.5\n["Big One"]\nworkspace_share = 0.25\n')
    monkeypatch.setattr(config, "FOLDER", tmp_path)
    assert load_machine("Big One").workspace_share == 0.25
    (tmp_path / "machines.toml").write_text("[default]\nworkspace_shar = 0.5\n")
    with pytest.raises(DataError, match=r"workspace_share' is missing \(is it 'workspace_shar'\?\)"):
        load_machine("Big One")
