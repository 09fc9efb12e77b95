"""The programs of examples/distributed: the same factors on several ranks as on one, and the bytes that volumes say."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import sparsetune as st
from mpi_runs import mpiexec
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.datasets import load
from sparsetune.tuner.distributed.volume import spread_grid

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "distributed"
PROGRAMS = ("cp_als", "tucker_hooi", "completion")
TENSOR, ITERATIONS, RANK = "random:uniform:23x17x11:nnz=900", 3, 3
_LINE = re.compile(r"iteration +(\d+)  (?:fit|error) (\S+)  (\d+) bytes sent")

pytestmark = [
    pytest.mark.cc,
    pytest.mark.skipif(not EXAMPLES.is_dir(), reason="examples/ is not part of what is installed"),
    pytest.mark.skipif(not available_compilers(), reason="needs a C compiler"),
]


def run(name: str, ranks: int, output: Path) -> list[tuple[str, float, int]]:
    """Return the lines that a program shows: iteration, fit or error, bytes."""
    done = mpiexec(ranks, EXAMPLES / f"{name}.py", TENSOR, "--rank", RANK, "--iterations", ITERATIONS, "-o", output)
    assert done.returncode == 0, done.stderr
    found = [_LINE.fullmatch(line) for line in done.stdout.splitlines()]
    return [(match[1], float(match[2]), int(match[3])) for match in found if match is not None]


@pytest.mark.parametrize("name", PROGRAMS)
def test_several_ranks_find_the_factors_of_one(name: str, tmp_path: Path) -> None:
    shown = {ranks: run(name, ranks, tmp_path / f"{ranks}.npz") for ranks in (1, 4)}
    assert [line[0] for line in shown[4]] == [str(number) for number in range(1, ITERATIONS + 1)]
    assert [line[1] for line in shown[4]] == pytest.approx([line[1] for line in shown[1]], abs=2e-6)
    assert {line[2] for line in shown[1]} == {0}
    assert len({line[2] for line in shown[4]}) == 1
    assert shown[4][0][2] > 0
    one, four = np.load(tmp_path / "1.npz"), np.load(tmp_path / "4.npz")
    assert set(one) == set(four)
    for factor in one:
        assert np.allclose(four[factor], one[factor], rtol=1e-8, atol=1e-8 * np.abs(one[factor]).max())


def test_an_iteration_of_cp_als_sends_what_its_volumes_say(tmp_path: Path) -> None:
    tensor, sent = load(TENSOR), 0
    grid = spread_grid(tensor.shape, 4)
    factors = {f"F{mode}": np.ones((extent, RANK)) for mode, extent in enumerate(tensor.shape)}
    for mode, rest in (("i", "F1(j,r) * F2(k,r)"), ("j", "F0(i,r) * F2(k,r)"), ("k", "F0(i,r) * F1(j,r)")):
        product = f"A({mode},r) = T(i,j,k) * {rest}"
        given = {name: factor for name, factor in factors.items() if name in product}
        sent += st.distributed.volume(product, {"T": tensor, **given}, grid=grid)["bytes"]
    assert {line[2] for line in run("cp_als", 4, tmp_path / "factors.npz")} == {sent}


def test_every_program_is_run_here() -> None:
    programs = {path.stem for path in EXAMPLES.glob("*.py") if '__name__ == "__main__"' in path.read_text()}
    assert programs == set(PROGRAMS)
