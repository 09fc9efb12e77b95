"""Runs every program of this folder as it stands, and writes lines of code and seconds of both ways into docs/examples.md.

    python examples/table.py

Programs run one after another, each in a process of its own; the two ways of one program run in turn.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from sparsetune.compiler.native.machine import available_cores, this_machine
from sparsetune.tuner.environment import commit

FOLDER = Path(__file__).resolve().parent
PAGE = FOLDER.parent / "docs" / "examples.md"
BEGIN, END = "<!-- python examples/table.py -->\n", "<!-- end -->"


def programs() -> list[Path]:
    """Return the programs that compare two ways, sorted by name."""
    return [path for path in sorted(FOLDER.glob("*.py")) if "\nfrom beside import beside\n" in path.read_text(encoding="utf-8")]


def row(program: Path) -> str:
    """Run a program and return its line of the table.

    Raises:
        CalledProcessError: it fails, or its two ways disagree.
    """
    shown = subprocess.run([sys.executable, str(program)], check=True, stdout=subprocess.PIPE, text=True).stdout
    ways = re.findall(r"^(.+?) +(\d+) lines +([\d.]+) s$", shown, re.MULTILINE)
    about = (ast.get_docstring(ast.parse(program.read_text(encoding="utf-8"))) or "").splitlines()[0].rstrip(".")
    ours, *others = (f"{name}: {lines} lines, {float(seconds):.3g} s" for name, lines, seconds in ways)
    return f"| `examples/{program.name}` | {about} | {ours.partition(': ')[2]} | {'; '.join(others)} |"


def table(rows: list[str]) -> str:
    """Return the table, with the machine and commit that it was measured on."""
    load = f"load average {os.getloadavg()[0]:.1f} at the end"
    state = f"{this_machine().model}, {available_cores()} threads, {time.strftime('%Y-%m-%d')}, commit {commit()}, {load}"
    return "\n".join([f"{state}:", "", "| program | what it computes | sparsetune | beside |", "| --- | --- | ---: | --- |", *rows, ""])


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    rows = []
    for program in programs():
        print(f"{program.name} ...", file=sys.stderr)
        rows.append(row(program))
    PAGE.write_text(f"{before}{BEGIN}{table(rows)}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
