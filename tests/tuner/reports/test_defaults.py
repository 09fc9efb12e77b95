"""The report of default schedules: its cases compute one result whoever computes it, its page shows every race."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.storage.block import unblock
from sparsetune.compiler.storage.tensor import Tensor
from sparsetune.datasets.generate import generate
from sparsetune.tuner.reports import compile_times, default_cases, defaults
from sparsetune.tuner.reports.compile_times import CompileTime, Expression, compile_time, read_times, write_times
from sparsetune.tuner.reports.default_cases import OURS, SCIPY, SORTED
from sparsetune.tuner.reports.defaults_page import page
from sparsetune.tuner.reports.race import Series
from sparsetune.tuner.reports.records import Races, Row

SMALL = "random:uniform:24x24:nnz=90"


def dense(found: Any) -> Any:
    if isinstance(found, Tensor):
        return (unblock(found) if found.order == 4 else found).to_numpy()
    return np.asarray(found.todense() if hasattr(found, "todense") else found)


@pytest.mark.cc
@pytest.mark.parametrize("cases", [default_cases.kernels, default_cases.products, default_cases.conversions])
def test_all_variants_of_a_case_agree(cases: Any) -> None:
    found = list(cases(generate(SMALL, "csr")))
    assert len({case.operation for case in found}) == len(found)
    for case in found:
        expected = dense(case.runs[SCIPY, 1]())
        assert (OURS, 1) in case.runs
        for run in case.runs.values():
            np.testing.assert_allclose(dense(run()), expected, err_msg=case.operation)


def test_conversions_leave_the_number_of_threads_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSETUNE_THREADS", "3")
    for case in default_cases.conversions(generate(SMALL, "csr")):
        case.runs[OURS, 1]()
    assert default_cases.helper_threads() == 3


def row(figure: str, operation: str, variant: str, threads: int, *times: float) -> Row:
    return Row(figure, operation, "matrix", variant, threads, 0.5, "", Series(times))


def test_the_page_says_where_others_are_faster(tmp_path: Path) -> None:
    races = Races([
        row("products", "SpGEMM", OURS, 1, 0.2, 0.2), row("products", "SpGEMM", SCIPY, 1, 0.3, 0.3),
        row("products", "SpGEMM", SORTED, 1, 0.4, 0.4),
        row("conversions", "CSR to CSC", OURS, 1, 0.2, 0.2), row("conversions", "CSR to CSC", OURS, 2, 0.1, 0.1),
        row("conversions", "CSR to CSC", SCIPY, 1, 0.15, 0.15),
    ])  # fmt: skip
    write_times(tmp_path / "times.csv", [CompileTime("SpMV", "csr", True, 0.01, 0.2, 30), CompileTime("sum", "coo", False, 0.1, 1.2, 300)])
    text = page(races, read_times(tmp_path / "times.csv"))
    assert "SciPy / ours: geometric mean 1.50, least 1.50; nowhere behind." in text
    assert "sorted / ours: geometric mean 2.00" in text
    assert "SciPy / ours: geometric mean 0.75, least 0.75; behind somewhere: CSR to CSC 0.75." in text
    assert "SciPy / ours, 2 threads: geometric mean 1.50" in text
    assert "at most 1.30: sum,\ncoo" in text


def test_a_page_of_nothing_has_no_tables() -> None:
    assert "|" not in page(Races(), [])


@pytest.mark.cc
def test_compile_times_are_of_an_empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path))
    found = compile_time(Expression("scaling", "y(i) = 2 * x(i)", {"x": "dense"}, True), 1)
    assert found.lowering > 0
    assert found.compiling > 0.005
    assert found.lines > 5
    assert list(tmp_path.iterdir()) == []


def test_expressions_of_five_operands_are_of_five() -> None:
    for expression in compile_times.five_operands():
        assert all(f"{name}(" in expression.text for name in "BCDEF")


@pytest.mark.cc
def test_the_report_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default_cases, "_pydata", lambda matrix: None)  # its just-in-time compiler takes seconds
    arguments = ["--only", "products", "--input", SMALL, "--seconds", "0", "--results", str(tmp_path)]
    outcome = CliRunner().invoke(defaults.main, arguments, catch_exceptions=False)
    assert outcome.exit_code == 0
    variants = {found.variant for found in Races.read(tmp_path / "defaults.csv").rows.values()}
    assert variants >= {OURS, SCIPY, SORTED}
    assert "## Products of two sparse matrices" in (tmp_path / "defaults.md").read_text()


@pytest.mark.parametrize(
    ("expression", "lines"),
    [
        *((expression, 600) for expression in compile_times.five_operands()),
        *((expression, 1000) for expression in compile_times.sums_of_high_order()),
    ],
    ids=lambda one: f"{one.name}, {'-'.join(one.formats.values())}" if isinstance(one, Expression) else "",
)
def test_code_stays_short(expression: Expression, lines: int) -> None:
    """Code grows with operands and levels, not with the cases of their lattice; results/defaults.md has the times that it compiles in."""
    assert len(compile_kernel(expression.text, expression.formats).source.splitlines()) < lines
