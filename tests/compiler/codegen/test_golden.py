"""Generated C as it was when somebody last looked at it; ``pytest --update-golden`` writes what it is now."""

from __future__ import annotations

from pathlib import Path

import loop_kernels
import pytest
from loop_runs import source_of
from sparsetune.compiler.ir.nodes import Function
from sparsetune.compiler.ir.printer import show_function

GOLDEN = Path(__file__).parent / "golden"
KERNELS = {
    "spmv": loop_kernels.spmv(),
    "spmm": loop_kernels.spmm(20),
    "sddmm": loop_kernels.sddmm(40),
    "mttkrp": loop_kernels.mttkrp(),
    "squares": loop_kernels.squares(),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("kind", ["c", "loops"])
def test_golden(name: str, kind: str, update_golden: bool) -> None:
    kernel: Function = KERNELS[name]
    text = source_of(kernel, 32, f"{name}, 32-byte vectors") if kind == "c" else show_function(kernel) + "\n"
    path = GOLDEN / f"{name}.{kind}"
    if update_golden:
        path.write_text(text)
    assert text == path.read_text()
