"""What is taken along to a device: inputs in order, wheels and kernels that are compiled beforehand."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sparsetune as st
from click.testing import CliRunner
from sparsetune.compiler.errors import BuildError
from sparsetune.datasets import load
from sparsetune.tuner.reports import gpu, gpu_bundle
from sparsetune.tuner.reports.gpu_bundle import INPUTS, chosen
from sparsetune.tuner.reports.gpu_cases import KERNELS

pytestmark = [pytest.mark.cc, pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")]


def _inputs(folder: Path, sizes: dict[str, int]) -> Path:
    folder.mkdir()
    for name, size in sizes.items():
        (folder / name).write_bytes(bytes(size))
    return folder


def test_inputs_that_are_there_are_taken_along_in_order(tmp_path: Path) -> None:
    there = dict.fromkeys(reversed(INPUTS[2:]), 10) | {"huge.mtx": 30 << 20, "notes.txt": 5}
    assert [file.name for file in chosen(_inputs(tmp_path / "data", there))] == list(INPUTS[2:])
    assert not chosen(tmp_path / "nowhere")
    with pytest.raises(st.ResourceError, match="have 21 MiB, more than the 20 that are taken along"):
        chosen(_inputs(tmp_path / "large", dict.fromkeys(INPUTS[:3], 7 << 20)))


@pytest.mark.parametrize("data", [True, False])
def test_all_that_a_device_needs_is_put_into_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bool) -> None:
    pytest.importorskip("cuda.core")
    monkeypatch.setattr(gpu, "KERNELS", (next(kernel for kernel in KERNELS if kernel.name == "TTM 16"),))
    monkeypatch.setattr(gpu, "LISTED", 1)
    monkeypatch.setattr(gpu, "kernels_for", lambda _: gpu.KERNELS)
    loads: list[str] = []
    monkeypatch.setattr(gpu, "loaded", lambda source: loads.append(Path(source).name) or load("random:uniform:5x7x4:nnz=20", "csf"))
    monkeypatch.setattr(gpu_bundle, "_fetch_wheels", lambda folder, version: folder.mkdir())
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "other"))
    inputs, target = tmp_path / "data", tmp_path / "taken"
    if data:
        _inputs(inputs, {INPUTS[0]: 10, INPUTS[8]: 20, "other.mtx": 5})
    words = ["prepare", "--bundle", str(target), "--data", str(inputs)]
    done = CliRunner().invoke(gpu.main, words)
    assert done.exit_code == 0, done.output
    assert f"with {2 if data else 0} inputs" in done.output
    assert {path.name for path in target.iterdir()} == {"cache", "inputs", "run", "sparsetune", "wheels"}
    assert loads == [*([INPUTS[0], INPUTS[8]] if data else []), *gpu.SYNTHETIC]
    assert {path.suffix for path in (target / "cache").iterdir()} - {""} == {".cubin", ".so"}  # and what this process needs itself
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
    with pytest.raises(BuildError, match=r"^the wheels of cffi, .* could not be fetched: "):
        gpu_bundle._fetch_wheels(tmp_path, "3.12", (("false",), ("/nowhere/pip",)))


@pytest.mark.nightly
def test_a_folder_with_wheels_and_all_kernels_is_small_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.core")
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "other"))
    done = CliRunner().invoke(gpu.main, ["prepare", "--bundle", str(tmp_path / "taken")])
    assert done.exit_code == 0, done.output
    assert len(list((tmp_path / "taken" / "wheels").glob("*.whl"))) == len(gpu_bundle.WHEELS)
