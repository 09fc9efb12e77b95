"""Expressions over several ranks, started by mpiexec: results, and bytes counted at the calls of MPI."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from mpi_runs import mpiexec
from sparsetune.compiler.native.toolchain import available_compilers

pytestmark = [pytest.mark.cc, pytest.mark.skipif(not available_compilers(), reason="needs a C compiler")]
CASES = Path(__file__).parents[2] / "mpi_cases.py"
DATA = Path(__file__).resolve().parents[4] / "shared" / "data"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files of every kind that can be read in parts, and some that cannot."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    lines = [f"{i} {j} {k} {value}" for i, j, k, value in rng.integers(1, (30, 9, 4, 100), (500, 4))]
    few, many = "".join(f"{line}\n" for line in lines[:3]), "# a comment\n" + "\n".join(lines)
    square = [f"{max(i, j)} {min(i, j)} {value}" for i, j, value in rng.integers(1, (20, 20, 100), (60, 3))]
    matrix = "%%MatrixMarket matrix coordinate {} {}\n20 20 60\n"
    texts = {
        "few.tns": few,
        "many.tns": many,
        "head.tns": "3\n40 9 4\n" + few,
        "symmetric.mtx": matrix.format("real", "symmetric") + "\n".join(square) + "\n",
        "integer.mtx": matrix.format("integer", "general") + "% a comment\n" + "\n".join(square[:59]) + "\n20 20 9223372036854775807\n",
        "pattern.mtx": matrix.format("pattern", "general") + "".join(f"{line.rpartition(' ')[0]}\n" for line in square),
        "broken.tns": many + "\n1 2 x 4\n" + few,
        "short.mtx": matrix.format("real", "general") + "\n".join(square[:50]),
        "beyond.mtx": matrix.format("real", "general") + "\n".join(square[:59]) + "\n21 1 1\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "packed.tns.gz").write_bytes(gzip.compress(many.encode()))
    sp.save_npz(folder / "stored.npz", sp.random_array((9, 8), density=0.3, format="csr", rng=rng))
    return folder


def run(ranks: int, files: Path, *real: Path) -> None:
    done = mpiexec(ranks, CASES, files, *real)
    assert (done.returncode, done.stdout.strip()) == (0, f"{ranks} ranks agree"), done.stderr


@pytest.mark.parametrize("ranks", [1, 2, 4, 7])
def test_ranks_agree_with_one(ranks: int, files: Path) -> None:
    run(ranks, files)


@pytest.mark.nightly
@pytest.mark.parametrize("ranks", [5, 6])
def test_more_ranks_agree_with_one(ranks: int, files: Path) -> None:
    run(ranks, files)


@pytest.mark.data
@pytest.mark.nightly
@pytest.mark.parametrize("ranks", [5, 7])
def test_ranks_agree_with_one_on_real_tensors(ranks: int, files: Path) -> None:
    found = sorted((DATA / "tensors").rglob("*.tns*"), key=os.path.getsize)
    if not found:
        pytest.skip("the real tensors are not here")
    run(ranks, files, *found[:2])
