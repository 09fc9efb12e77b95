"""The command that measures a GPU, where the executor takes its place: it runs, it is right, and it goes on where it stopped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from sparsetune.compiler.errors import BuildError
from sparsetune.compiler.native.devices import find_nvcc
from sparsetune.compiler.native.library import CSRC
from sparsetune.datasets import load
from sparsetune.tuner.reports import gpu, gpu_bundle
from sparsetune.tuner.reports.gpu_bundle import chosen
from sparsetune.tuner.reports.gpu_cases import KERNELS, kernels_for, skewed
from sparsetune.tuner.reports.gpu_rows import read_rows

pytestmark = [pytest.mark.cc, pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")]


def run(folder: Path, *words: str) -> Result:
    arguments = [*words, "--target", "cuda-executor", "--folder", str(folder), "--size", "1e-6", "--runs", "2"]
    return CliRunner().invoke(gpu.main, arguments, catch_exceptions=False)


def test_kernels_and_rivals_are_right_and_go_on_where_they_stopped(tmp_path: Path) -> None:
    inputs = ["random:uniform:12x12:nnz=30", "random:uniform:5x7x4:nnz=20"]
    run(tmp_path, "kernels", inputs[1])
    before = read_rows(tmp_path / "gpu_kernels.csv")
    stopped = run(tmp_path, "kernels", *inputs, "--minutes", "0")
    assert stopped.exit_code == 0
    assert "run the same command again to go on" in stopped.output
    assert read_rows(tmp_path / "gpu_kernels.csv") == before
    assert run(tmp_path, "kernels", *inputs).exit_code == 0
    rows = read_rows(tmp_path / "gpu_kernels.csv")
    assert rows[: len(before)] == before
    assert {row.right for row in rows} == {"yes"}
    assert {row.kernel for row in rows} == {kernel.name for kernel in KERNELS}
    assert {row.what for row in rows if row.who == "by hand"} == {"row to a warp", "merge path", "wide loads"}
    assert all(row.low <= row.seconds <= row.high and row.bytes > 0 for row in rows)
    run(tmp_path, "kernels", *inputs)
    assert read_rows(tmp_path / "gpu_kernels.csv") == rows


def test_mappings_survive_odd_matrices_and_the_page_shows_them(tmp_path: Path) -> None:
    for part in ("machine", "edges"):
        assert run(tmp_path, part).exit_code == 0
    rows = read_rows(tmp_path / "gpu_edges.csv")
    assert len({row.input for row in rows}) == 3
    assert {row.right for row in rows} == {"yes"}
    page = tmp_path / "page.md"
    assert run(tmp_path, "page", "-o", str(page)).exit_code == 0
    assert "## the executor, on a processor" in page.read_text()
    assert "| one row has all | SpMV | 100 |" in page.read_text()
    assert run(tmp_path / "empty", "page", "-o", str(page)).exit_code == 0
    assert "No device has been measured yet" in page.read_text()


def test_what_is_wrong_is_said() -> None:
    assert gpu.same(np.ones(3), np.ones(3)) == "yes"
    assert gpu.same(np.array([1.0, 2.0]), np.array([1.0, 2.1])).startswith("wrong by 0.04")
    assert gpu.same(np.ones(3), np.ones(4)) == "its shape is (3,), not (4,)"


def test_rows_get_longer_with_the_skew() -> None:
    for skew, longest in ((0.0, 10), (1.0, 150)):
        lengths = np.diff(skewed(200, 300, 2000, skew).indptr)
        assert abs(lengths.sum() - 2000) < 200
        assert lengths.max() >= longest
        found = skewed(200, 300, 2000, skew)
        found.sum_duplicates()
        assert found.nnz == lengths.sum()


def test_a_machine_without_a_gpu_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(gpu.main, ["machine", "--folder", str(tmp_path)])
    assert done.exit_code == 1
    assert done.output.startswith("Error: target cuda needs an NVIDIA GPU")


def test_square_inputs_are_multiplied_by_themselves() -> None:
    assert "SpGEMM" in {kernel.name for kernel in kernels_for(load("random:uniform:6x6:nnz=9"))}
    assert "SpGEMM" not in {kernel.name for kernel in kernels_for(load("random:uniform:6x7:nnz=9"))}


def test_kernels_by_hand_compile_for_two_architectures(tmp_path: Path) -> None:
    try:
        nvcc = find_nvcc()
    except BuildError as error:
        pytest.skip(str(error))
    code = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in (80, 90)]
    strict, source = ["-O1", "-std=c++17", "-Werror", "all-warnings"], str(CSRC / "st_gpu_rivals.cu")
    command = [nvcc, *strict, *code, "-c", "-o", str(tmp_path / "rivals.o"), source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]


def test_everything_is_compiled_for_a_device_that_is_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.core")
    product = next(kernel for kernel in KERNELS if kernel.name == "SpGEMM")
    monkeypatch.setattr(gpu, "KERNELS", (product,))
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path))
    done = CliRunner().invoke(gpu.main, ["prepare", "--arch", "sm_80"])
    count = 1 + len(list(product.schedules()))
    assert done.output.startswith(f"{count} kernels are compiled for sm_80 in {tmp_path}")
    assert {path.suffix: len(list(tmp_path.glob(f"*{path.suffix}"))) for path in tmp_path.iterdir()} == {".cubin": count, ".so": count}
    refused = CliRunner().invoke(gpu.main, ["prepare", "--arch", "sm_11"])
    assert refused.exit_code == 1
    assert refused.output.startswith("Error: NVRTC does not know the architecture sm_11")


def _inputs(folder: Path, sizes: dict[str, int]) -> Path:
    folder.mkdir()
    for name, size in sizes.items():
        (folder / name).write_bytes(bytes(size))
    return folder


def test_ten_inputs_of_twenty_megabytes_are_chosen(tmp_path: Path) -> None:
    sizes = {f"{size:02d}.mtx.gz": size << 18 for size in range(1, 25)} | {"huge.mtx": 30 << 20, "notes.txt": 5}
    found = chosen(_inputs(tmp_path / "data", sizes).iterdir())
    assert len(found) == 10
    assert 15 << 20 < sum(file.stat().st_size for file in found) <= 20 << 20
    assert {file.suffix for file in found} == {".gz"}
    assert not chosen(())


@pytest.mark.parametrize("data", [True, False])
def test_all_that_a_device_needs_is_put_into_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bool) -> None:
    pytest.importorskip("cuda.core")
    monkeypatch.setattr(gpu, "KERNELS", (next(kernel for kernel in KERNELS if kernel.name == "SpGEMM"),))
    monkeypatch.setattr(gpu_bundle, "_fetch_wheels", Path.mkdir)
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "other"))
    inputs, target = tmp_path / "data", tmp_path / "taken"
    if data:
        _inputs(inputs, {"a.mtx": 10, "b.tns": 20})
    words = ["prepare", "--bundle", str(target), "--data", str(inputs)]
    done = CliRunner().invoke(gpu.main, words)
    assert done.exit_code == 0, done.output
    assert f"with {2 if data else 0} inputs" in done.output
    assert {path.name for path in target.iterdir()} == {"cache", "inputs", "run", "sparsetune", "wheels"}
    assert {path.suffix for path in (target / "cache").iterdir()} == {".cubin", ".so"}
    assert (target / "sparsetune" / "csrc" / "st_cuda.h").is_file()
    assert not (target / "sparsetune" / "tests").exists()
    shown = subprocess.run(
        [sys.executable, "-P", "-m", "sparsetune.tuner.reports.gpu", "--help"], cwd=target, env={**os.environ, "PYTHONPATH": str(target)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "prepare" in shown.stdout, shown.stderr
    again = CliRunner().invoke(gpu.main, words)
    assert again.output.startswith(f"Error: {target} is there already")


def test_wheels_that_are_not_to_be_had_are_told(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"^the wheels of cuda-core, .* could not be fetched: "):
        gpu_bundle._fetch_wheels(tmp_path, (("false",), ("/nowhere/pip",)))


@pytest.mark.nightly
def test_a_folder_with_wheels_and_all_kernels_is_small_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.core")
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "other"))
    done = CliRunner().invoke(gpu.main, ["prepare", "--bundle", str(tmp_path / "taken")])
    assert done.exit_code == 0, done.output
    assert len(list((tmp_path / "taken" / "wheels").glob("*.whl"))) == len(gpu_bundle.WHEELS)
