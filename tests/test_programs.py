"""The programs of examples/, run as a reader would: each beside another way to write it, whose result must be the same."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PROGRAMS = [
    ("pagerank.py", "random:rmat:scale=10:nnz=2e4"),
    ("conjugate_gradients.py", "30"),
    ("tensor_decomposition.py", "random:uniform:30x25x20:nnz=2e3"),
    ("tensor_decomposition.py", "random:uniform:15x12x10x8:nnz=2e3"),
    ("graph_attention.py", "random:rmat:scale=7:nnz=1e3"),
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
    if name == "graph_attention.py" and not find_spec("torch"):
        assert "pip install torch" in shown.pop()
    assert [line.split()[0] for line in shown] == ways(name)
    for line in shown:
        _, count, unit, seconds, _ = line.split()
        assert unit == "lines"
        assert int(count) > 0
        assert float(seconds) > 0


def ways(name: str) -> list[str]:
    """Return the ways that a program prints."""
    if name == "graph_attention.py":
        return ["sparsetune", "SciPy", *(["st.torch", "torch"] if find_spec("torch") else [])]
    return ["sparsetune", "NumPy" if name == "tensor_decomposition.py" else "SciPy"]


def test_lines_of_code_are_those_without_documentation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from beside import lines

    def short(number: int) -> int:
        """Say it in one line."""
        return number

    def long(number: int) -> int:
        """Say it in one line.

        Say it in two more,
        after which code begins.
        """
        number += 1

        return number

    assert (lines(short), lines(long)) == (2, 3)


def test_every_program_is_run_here_and_stands_in_the_table_of_docs() -> None:
    table = the_table()
    programs = {path.name for path in table.programs()}
    assert programs == {name for name, _ in PROGRAMS}
    written = table.PAGE.read_text().partition(table.BEGIN)[2].partition(table.END)[0]
    assert programs == {line.split("`")[1].removeprefix("examples/") for line in written.splitlines() if line.startswith("| `")}


def test_a_line_of_the_table_has_lines_and_seconds_of_every_way(tmp_path: Path) -> None:
    program = tmp_path / "sums.py"
    shown = ["ours  3 lines  0.5000 s", "a long name  12 lines  0.2500 s", "NumPy  1 lines  10.5 s", "no torch here"]
    program.write_text(f'"""Sums: of numbers."""\nprint(*{shown}, sep="\\n")\n')
    assert the_table().row(program) == (
        "| `examples/sums.py` | Sums: of numbers | 3 lines, 0.5 s | a long name: 12 lines, 0.25 s; NumPy: 1 lines, 10.5 s |"
    )


def the_table() -> ModuleType:
    """Return examples/table.py, which is no part of a package."""
    spec = spec_from_file_location("table_of_examples", EXAMPLES / "table.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
