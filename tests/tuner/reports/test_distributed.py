"""The page of distributions: its kernels are those of the paper, its rows are volumes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sparsetune as st
from click.testing import CliRunner
from mpi_runs import launcher
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.datasets import load, write
from sparsetune.tuner.reports import distributed
from sparsetune.tuner.reports.distributed_cases import KERNELS

SMALL = "random:uniform:9x7x5:nnz=60"


@pytest.mark.cc
@pytest.mark.skipif(not available_compilers(), reason="needs a C compiler")
@pytest.mark.parametrize(
    ("kernel", "einsum"),
    [
        ("MTTKRP", "ijk,ja,ka->ia"),
        ("TTMc", "ijk,jb,kc->ibc"),
        ("TTTP", "ijk,ia,ja,ka->ijk"),
        ("TTTc", "ijk,ia,ajb->bk"),
    ],
)
def test_kernels_are_those_of_the_paper(kernel: str, einsum: str) -> None:
    case = KERNELS[kernel](load(SMALL), 3)
    tensor, *factors = case.operands.values()
    expected = np.einsum(einsum, tensor.to_numpy(), *factors)
    np.testing.assert_allclose(st.evaluate(case.expression, case.operands), expected, rtol=1e-12)


def test_the_page_shows_volumes(tmp_path: Path) -> None:
    output = tmp_path / "page.md"
    arguments = [SMALL, "--no-paper", "--ranks", "4", "--ranks", "30", "-o", str(output)]
    done = CliRunner().invoke(distributed.main, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    rows = [line.split(" | ") for line in output.read_text().splitlines() if line.startswith("| random")]
    assert [row[3] for row in rows] == ["4", "30"] * len(KERNELS)
    case = KERNELS["MTTKRP"](load(SMALL), distributed.REAL["MTTKRP"])
    found = st.distributed.volume(case.expression, case.operands, 4, gather=False, factors="distributed")
    assert rows[0][4] == " x ".join(map(str, found["grid"]))
    assert rows[0][8].rstrip(" |") == f"{found['imbalance']:.3f}"


@pytest.mark.nightly
@pytest.mark.cc
def test_runs_agree_with_what_was_computed(tmp_path: Path) -> None:
    launcher()
    write(load(SMALL), tmp_path / "small.tns")
    rows = list(distributed.run_rows(str(tmp_path / "small.tns"), (1, 3)))
    assert [row[9] for row in rows] == ["yes"] * 2 * len(KERNELS)


def test_the_sizes_of_the_paper(tmp_path: Path) -> None:
    output = tmp_path / "page.md"
    done = CliRunner().invoke(distributed.main, ["--ranks", "64", "-o", str(output)], catch_exceptions=False)
    assert done.exit_code == 0
    rows = [line.split(" | ") for line in output.read_text().splitlines() if "%" in line and line.startswith("| ")]
    assert [(row[0].lstrip("| "), row[1]) for row in rows] == [
        *(("8192 x 8192 x 8192, 0.1%", kernel) for kernel in ("MTTKRP", "TTMc", "TTTP")),
        *(("1024 x 1024 x 1024 x 1024, 0.1%", kernel) for kernel in ("MTTKRP", "TTMc")),
        ("80 x 80 x 80 x 80 x 80 x 80, 0.1%", "TTTc"),
        ("80 x 80 x 80 x 80 x 80 x 80, 1%", "TTTc"),
    ]
