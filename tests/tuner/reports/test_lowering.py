"""The page of the speed of lowering: both versions are asked the same, and what one of them refuses is left out."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.tuner.reports.lowering import KERNELS, Speed, main, page
from sparsetune.tuner.reports.lowering_probe import measure


def test_refused_schedules_are_left_out() -> None:
    expression, formats = KERNELS["SpMV"]
    found = measure(expression, formats, ["unroll(j, 2)", "reorder(j, i)", "nonsense"], ["numpy"])
    assert found["first"] > 0
    assert list(found["each"]) == ["unroll(j, 2)"]
    seconds, lines = found["each"]["unroll(j, 2)"]
    assert seconds > 0
    assert lines == compile_kernel(expression, formats, schedule="unroll(j, 2)").source.count("\n")


def test_page_has_gains() -> None:
    slower, same = (3e-4, 2e-4), (1e-4, 4e-4)
    speeds = [
        Speed("SpMV", slower, (0.2, 0.1), (0.15, 0.1), (50.0, 200.0), 7, (90, 180), (3.0,)),
        Speed("SpMM", same, (0.1, 0.1), (0.15, 0.1), (100.0, 100.0), 9, (60, 60), (3.0, 3.0)),
    ]
    shown = page(speeds, "abc", 3)
    assert "| SpMV | 7 | 200.0 | 100.0 | 2.00 | 1.50 | 50 | 200 | 4.00 | 90 | 180 |" in shown
    assert "Geometric means: 1.41 for the first kernel, 1.50 beside NumPy,\n2.00 for further schedules;\n3.00 for the 3 of 16" in shown
    assert "takes\n0.20 ms (before: 0.10)." in shown


def test_a_folder_without_a_checkout_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["--base", str(tmp_path)])
    assert done.exit_code == 2
    assert "holds no checkout named 'sparsetune'" in " ".join(done.output.split())
