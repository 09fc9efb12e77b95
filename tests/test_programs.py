"""The programs of examples/, run as a reader would: each beside another way to write it, whose result must be the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PROGRAMS = [
    ("pagerank.py", "random:rmat:scale=10:nnz=2e4"),
    ("conjugate_gradients.py", "30"),
    ("tensor_decomposition.py", "random:uniform:30x25x20:nnz=2e3"),
    ("tensor_decomposition.py", "random:uniform:15x12x10x8:nnz=2e3"),
]
"""Programs with arguments that make them short."""

pytestmark = [
    pytest.mark.cc,
    pytest.mark.skipif(not EXAMPLES.is_dir(), reason="examples/ is not part of what is installed"),
]


@pytest.mark.parametrize(("name", "argument"), PROGRAMS)
def test_a_program_agrees_with_the_other_way_to_write_it(name: str, argument: str, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / name), argument]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.splitlines()
    assert [line.split()[0] for line in shown] in (["sparsetune", "SciPy"], ["sparsetune", "NumPy"])
    assert all(float(line.split()[3]) > 0 for line in shown)


def test_every_program_is_run_here() -> None:
    programs = {path.name for path in EXAMPLES.glob("*.py") if '__name__ == "__main__"' in path.read_text()}
    assert programs == {name for name, _ in PROGRAMS}
