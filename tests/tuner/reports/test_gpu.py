"""The command that measures a GPU, where the executor takes its place: it runs, it is right, and it goes on where it stopped."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from click.testing import CliRunner, Result
from sparsetune.compiler.errors import BuildError
from sparsetune.compiler.native.devices import find_nvcc
from sparsetune.compiler.native.library import CSRC
from sparsetune.compiler.storage.construct import borrowed
from sparsetune.datasets import load
from sparsetune.tuner.reports import gpu, gpu_oracle
from sparsetune.tuner.reports.gpu_cases import CHOSEN, FAR, KERNELS, GpuCase, kernels_for
from sparsetune.tuner.reports.gpu_matrices import skewed
from sparsetune.tuner.reports.gpu_oracle import same
from sparsetune.tuner.reports.gpu_page import page, picture
from sparsetune.tuner.reports.gpu_parts import PARTS, SKEWED, STREAMED, loaded
from sparsetune.tuner.reports.gpu_rows import BEGUN, FILE, DeviceLostError, Row, Rows, read_rows

pytestmark = [pytest.mark.cc, pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")]


def run(folder: Path, *words: str) -> Result:
    arguments = [*words, "--target", "cuda-executor", "--folder", str(folder), "--size", "1e-6", "--runs", "2"]
    return CliRunner().invoke(gpu.main, arguments, catch_exceptions=False)


def rows_of(folder: Path, part: str) -> list[Row]:
    return [row for row in read_rows(folder / FILE) if row.part == part]


def test_kernels_and_rivals_are_right_and_go_on_where_they_stopped(tmp_path: Path) -> None:
    inputs = ["random:uniform:12x12:nnz=30", "random:uniform:5x7x4:nnz=20"]
    run(tmp_path, "kernels", inputs[1])
    before = rows_of(tmp_path, "kernels")
    stopped = run(tmp_path, "kernels", *inputs, "--minutes", "0")
    assert stopped.exit_code == gpu.STOPPED
    assert "run the same command again to go on" in stopped.output
    assert rows_of(tmp_path, "kernels") == before
    assert run(tmp_path, "kernels", *inputs).exit_code == 0
    rows = rows_of(tmp_path, "kernels")
    assert rows[: len(before)] == before
    assert {row.right for row in rows} == {"yes"}
    assert {row.kernel for row in rows} == {kernel.name for kernel in KERNELS}
    by_hand = {(row.kernel, row.what) for row in rows if row.who == "by hand"}
    assert by_hand == {
        ("SpMV", "row to a warp"), ("SpMV", "merge path"), ("SpMM 32", "wide loads"), ("SpMM 128", "wide loads"),
        ("SDDMM 32", "row to a warp"), ("SpMSpV", "entry of the vector to a warp"),
    }  # fmt: skip
    assert all(row.low <= row.seconds <= row.high and row.bytes > 0 for row in rows)
    run(tmp_path, "kernels", *inputs)
    assert rows_of(tmp_path, "kernels") == rows


def test_odd_matrices_listed_schedules_and_far_positions_are_right_and_the_page_shows_them(tmp_path: Path) -> None:
    for part in ("machine", "streams", "edges", "right", "far", "skew", "tensors", "sanitizer"):
        assert run(tmp_path, part).exit_code == 0
    assert len({row.input for row in rows_of(tmp_path, "edges")}) == 3
    assert len(rows_of(tmp_path, "right")) == 8
    assert {row.what for row in rows_of(tmp_path, "far")} == set(FAR)
    assert {row.what for row in rows_of(tmp_path, "streams") if row.who == "generated"} == set(STREAMED)
    assert {row.what for row in rows_of(tmp_path, "skew") if "skew 0.5" in row.input and row.who == "generated"} == set(SKEWED)
    assert {row.kernel for row in rows_of(tmp_path, "tensors")} == {kernel.name for kernel in KERNELS if kernel.order == 3}
    apart = ("machine", "sanitizer")
    assert {row.right for part in PARTS if part not in apart for row in rows_of(tmp_path, part)} == {"yes"}
    written = tmp_path / "page.md"
    assert run(tmp_path, "page", "-o", str(written)).exit_code == 0
    text = written.read_text()
    assert "## the executor, on a processor" in text
    assert "Of 8 schedules that the tuner lists, 8 have results" in text
    assert "| mapping | 4e+02 entries at random | 100 long rows |" in text
    assert "compute-sanitizer over a sample of these: memcheck: is not here" in text
    assert "Not right" not in text
    assert len([*tmp_path.iterdir()]) == 2
    assert run(tmp_path / "empty", "page", "-o", str(written)).exit_code == 0
    assert "No device has been measured yet" in written.read_text()


def test_what_the_model_chooses_is_timed_and_compared(tmp_path: Path) -> None:
    inputs = ["random:uniform:12x12:nnz=30", "random:uniform:5x7x4:nnz=20"]
    assert run(tmp_path, "choices", *inputs).exit_code == 0
    chosen = rows_of(tmp_path, "choices")
    assert [(row.input, row.kernel) for row in chosen] == [(name, kernel.name) for name in inputs for kernel in kernels_for(loaded(name))]
    assert all(row.what.startswith(CHOSEN) and row.right == "yes" for row in chosen)
    assert run(tmp_path, "choices", *inputs).exit_code == 0
    assert rows_of(tmp_path, "choices") == chosen
    beside = [row(what="default", seconds=6.0), row(what="fast", seconds=2.0), row(who="by hand", what="b", seconds=5.0)]
    chosen_row = row(part="choices", what=CHOSEN + "parallelize(i, gpu_thread, no_races)", seconds=4.0)
    assert "| SpMV | 1 | 1.50 | 1.50 | 0.50 | 0.50 | 1.25 | 1.25 |" in page([*beside, chosen_row])


def row(**given: Any) -> Row:
    usual = {"part": "kernels", "input": "a", "entries": 9, "kernel": "SpMV", "who": "generated", "what": "", "seconds": 1.0, "low": 1.0}
    return Row(**{**usual, "high": 1.0, "bytes": 8, "right": "yes", "device": "one", "version": "0", "commit": "", "date": "", **given})


def test_the_page_compares_with_the_best_rival_whose_preparation_stands_beside(tmp_path: Path) -> None:
    beside = [row(who="cuSPARSE", what="ALG1", seconds=4.0), row(who="cuSPARSE", what="ALG1: preprocessing alone", seconds=0.5)]
    rows = [row(what="default", seconds=6.0), row(what="fast", seconds=2.0), row(who="by hand", what="b", seconds=5.0), *beside]
    rows += [row(part="skew", what="slow", input="rows"), row(part="machine", kernel="copy", who="device", bytes=32)]
    text = page(rows)
    assert "| SpMV | 1 | 2.00 | 2.00 | 3.00 | 0.12 |" in text
    assert "| a | SpMV | 9 | fast | 2000 | 0.12 | cuSPARSE, ALG1 | 4000 | 500 | 2.00 |" in text
    assert "| mapping | rows |" in text
    assert "kernels by hand on this device" not in text
    assert "Not yet raced against the kernels by hand on this device: SpMSpV.\n" in page([*rows, row(kernel="SpMSpV"), row(kernel="TTV")])
    pytest.importorskip("matplotlib")
    drawn = picture(rows)
    assert drawn is not None
    assert "the fastest mapping" in drawn
    assert picture([row(who="by hand")]) is picture([]) is None


def test_all_parts_run_and_what_is_cut_is_gone_on_with(tmp_path: Path) -> None:
    words = ["random:uniform:6x6:nnz=9", "-o", str(tmp_path / "gpu.md")]
    first = run(tmp_path, "all", *words, "--minutes", "0.01")
    assert first.exit_code == 0
    assert first.output.endswith("left for another time: machine, streams, skew, far, tensors, kernels, choices, edges, right, sanitizer\n")
    assert "No device has been measured yet" in (tmp_path / "gpu.md").read_text()


def test_parts_are_processes_that_are_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = iter([gpu.LOST, -11, gpu.STOPPED, gpu.LOST, 0, *[1] * 100])
    started: list[list[str]] = []

    def part(command: list[str], **_: Any) -> SimpleNamespace:
        started.append(command)
        return SimpleNamespace(returncode=next(ended))

    monkeypatch.setattr(gpu.subprocess, "run", part)
    assert not gpu._is_through(["far"], 60, tmp_path)
    assert len(started) == 3
    assert gpu._is_through(["far"], 60, tmp_path)
    assert len(started) == 5
    assert not gpu._is_through(["far"], 60, tmp_path)
    assert len(started) == 5 + gpu.MOST_FAILURES
    assert not gpu._is_through(["far"], gpu.GRACE, tmp_path)
    assert len(started) == 5 + gpu.MOST_FAILURES


def test_an_error_of_the_device_is_a_row_behind_which_a_new_process_goes_on(tmp_path: Path) -> None:
    def faults() -> Any:
        raise BuildError("the device reports: an illegal address (error 700); the kernel's result is lost")

    rows = Rows(tmp_path, "far", "a device", 1.0)
    with pytest.raises(DeviceLostError):
        rows.add("a", 1, "b", "c", "d", faults)
    assert [row.right[:18] for row in read_rows(tmp_path / FILE)] == ["the device reports"]
    Rows(tmp_path, "far", "a device", 1.0).add("a", 1, "b", "c", "d", faults)
    assert len(read_rows(tmp_path / FILE)) == 1


def test_what_never_ends_is_tried_twice(tmp_path: Path) -> None:
    def killed() -> Any:
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            Rows(tmp_path, "far", "a device", 1.0).add("a", 1, "b", "c", "d", killed)
    assert read_rows(tmp_path / FILE) == []
    Rows(tmp_path, "far", "a device", 1.0).add("a", 1, "b", "c", "d", killed)
    assert [row.right for row in read_rows(tmp_path / FILE)] == ["did not end, 2 times"]
    Rows(tmp_path, "far", "a device", 1.0).add("a", 1, "b", "c", "other", lambda: ([1.0], 8, "yes"))
    assert len(read_rows(tmp_path / FILE)) == 2


def test_what_the_end_of_its_part_cuts_is_no_try_unless_it_ran_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [0]

    def cut(command: list[str], timeout: float, **_: Any) -> Any:
        (tmp_path / BEGUN).write_text("the row\nthe row")
        os.utime(tmp_path / BEGUN, (time.time() - seconds[0],) * 2)
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(gpu.subprocess, "run", cut)
    for ran, left in ((5, "the row"), (100, "the row\nthe row")):
        seconds[0] = ran
        assert not gpu._is_through(["far"], 60, tmp_path)
        assert (tmp_path / BEGUN).read_text() == left


@pytest.mark.parametrize("seconds", [[1.5324e-06, 1.5324e-06], [2e-6, 1e-6], [3e-6]])
def test_quartiles_are_in_order_and_among_the_times(tmp_path: Path, seconds: list[float]) -> None:
    rows = Rows(tmp_path, "kernels", "a device", math.inf)
    rows.add("an input", 1, "SpMV", "generated", "rows", lambda: (seconds, 1, "yes"))
    (row,) = rows_of(tmp_path, "kernels")
    assert min(seconds) <= row.low <= row.seconds <= row.high <= max(seconds)


def test_what_is_wrong_is_said() -> None:
    assert same(np.ones(3), np.ones(3)) == "yes"
    assert same(np.array([1.0, 2.0]), np.array([1.0, 2.1])).startswith("wrong by 0.04")
    assert same(np.ones(3), np.ones(4)) == "its shape is (3,), not (4,)"
    assert same(np.array([np.nan]), np.ones(1)) == "wrong by nan"
    large = scipy.sparse.csr_array(np.array([[1e18, 0.0], [3.0, 4.0]]))
    assert same(large * (1 + 1e-15), large) == "yes"
    assert same(scipy.sparse.csr_array(large + np.array([[0.0, 0.0], [0.0, 1.0]])), large) == "wrong by 0.25"
    assert same(scipy.sparse.csr_array(np.diag([1e18, 4.0])), large) == "wrong by 1"
    assert same(scipy.sparse.csr_array(np.diag([1e18, np.nan])), large) == "wrong by nan"


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_the_oracle_says_what_kernels_compute(kernel: GpuCase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_oracle, "_ENTRIES", 7)
    operands = kernel.operands(load("random:uniform:12x12:nnz=30" if kernel.order == 2 else "random:uniform:5x7x4:nnz=40"))
    form = next((form for tensor, form in kernel.formats if tensor not in operands), None)
    found = st.evaluate(kernel.expression, operands, output_format=form)
    assert gpu_oracle.same(found, gpu_oracle.expected(kernel.expression, operands)) == "yes"


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
    assert done.output.endswith("; --target cuda-executor runs the kernels on the processor\n")


def test_square_inputs_are_multiplied_by_themselves() -> None:
    assert "SpGEMM" in {kernel.name for kernel in kernels_for(load("random:uniform:6x6:nnz=9"))}
    assert "SpGEMM" not in {kernel.name for kernel in kernels_for(load("random:uniform:6x7:nnz=9"))}


@pytest.mark.parametrize(("name", "what", "most"), [(case.name, *each) for case in KERNELS for each in case.serial])
def test_no_thread_alone_gets_what_takes_seconds(name: str, what: str, most: int) -> None:
    kernel = next(kernel for kernel in KERNELS if kernel.name == name)
    assert what in dict(kernel.schedules())
    side = int(most**0.5) + 1 if kernel.square else most + 1
    few, many = np.arange(9), np.arange(side)
    for filled, taken in ((few, True), (many, False)):
        if kernel.square:  # a full square, every row of which adds up all products
            rows, columns = (part.ravel() for part in np.meshgrid(filled, filled))
        else:
            rows, columns = np.zeros_like(filled), filled
        entries = (rows, columns) if name != "SpMSpV" else (columns, rows)
        matrix = scipy.sparse.csr_array((np.ones(len(rows)), entries), shape=(side, side))
        assert kernel.takes(what, borrowed(matrix)) == taken
        assert kernel.takes("another mapping", borrowed(matrix))


def test_kernels_by_hand_compile_for_two_architectures(tmp_path: Path) -> None:
    try:
        nvcc = find_nvcc()
    except BuildError as error:
        pytest.skip(str(error))
    code = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in (80, 90)]
    strict, source = ["-O0", "-Xcicc", "-O0", "-Xptxas", "-O0", "-std=c++17", "-Werror", "all-warnings"], str(CSRC / "st_gpu_rivals.cu")
    command = [nvcc, *strict, *code, "-c", "-o", str(tmp_path / "rivals.o"), source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]


def test_everything_is_compiled_for_a_device_that_is_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.core")
    monkeypatch.setattr(gpu, "KERNELS", (next(kernel for kernel in KERNELS if kernel.name == "TTM 16"),))
    monkeypatch.setattr(gpu, "LISTED", 2)
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path))
    done = CliRunner().invoke(gpu.main, ["prepare", "--arch", "sm_80"])
    count = len(set(gpu.sources(2)))
    assert count > 3
    assert done.output.startswith(f"{count} kernels are compiled for sm_80 in {tmp_path}")
    made = Counter(path.suffix for path in tmp_path.iterdir() if path.is_file())
    assert made == {".cubin": count, ".so": count}
    refused = CliRunner().invoke(gpu.main, ["prepare", "--arch", "sm_11"])
    assert refused.exit_code == 1
    assert refused.output.startswith("Error: NVRTC does not know the architecture sm_11")
