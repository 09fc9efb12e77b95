"""How fast C is generated for schedules, compared with another version: ``python -m sparsetune.tuner.reports.lowering --base PATH``.

Writes ``lowering.md``. PATH is a folder that holds a checkout named ``sparsetune``. Both versions run in processes of their own, in turn.
The least processor time of all rounds counts, since other work can only add to it. Schedules are the candidates of the expression with
usual parameters that both versions accept. The C compiler is not run. A first run of each version, which does not count, writes Python's
byte code, as importing or installing a package does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from ...compiler.concrete.check import formats_of
from ...compiler.deadline import Deadline
from ...compiler.frozen import frozen
from ...compiler.notation.parser import parse
from ...compiler.space.candidates import candidates
from .markdown import geometric_mean, table
from .publishing import publish, results_option

KERNELS: dict[str, tuple[str, dict[str, str]]] = {
    "SpMV": ("y(i) = A(i,j) * x(j)", {"A": "csr"}),
    "SpMM": ("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}),
    "SpGEMM": ("A(i,j) = B(i,k) * C(k,j)", {"A": "csr", "B": "csr", "C": "csr"}),
    "SDDMM": ("Z(i,j) = A(i,j) * C(i,k) * D(j,k)", {"A": "csr", "Z": "csr"}),
    "MTTKRP, order 5": ("A(i,r) = B(i,j,k,l,m) * C(j,r) * D(k,r) * E(l,r) * F(m,r)", {"B": "csf"}),
}
MOST_SCHEDULES = 40
_PROBE = Path(__file__).with_name("lowering_probe.py")
_HERE = Path(__file__).resolve().parents[3]


@frozen
class Speed:
    """How fast both versions are.

    Attributes:
        imported, first: seconds of the import and until the first C; of the older version and of this one, as the others.
        beside_numpy: seconds until the first C where NumPy is imported before.
        rate: schedules a second.
        schedules: how many both accept.
        lines: lines of C of all schedules.
        alike: the gain of each schedule whose C has as many lines in both versions, within a tenth.
    """

    kernel: str
    imported: tuple[float, float]
    first: tuple[float, float]
    beside_numpy: tuple[float, float]
    rate: tuple[float, float]
    schedules: int
    lines: tuple[int, int]
    alike: tuple[float, ...]


def measured(kernel: str, base: Path, rounds: int) -> Speed:
    """Measure one kernel in both versions."""
    expression, formats = KERNELS[kernel]
    assignment = parse(expression)
    found = candidates(assignment, formats_of(assignment, dict(formats)), {}, 2, Deadline(10.0))
    schedules = list(dict.fromkeys(str(one.template.fill()) for one in found))[:MOST_SCHEDULES]
    request = {"expression": expression, "formats": formats, "schedules": schedules, "before": []}
    beside = request | {"schedules": [], "before": ["numpy"]}
    replies: tuple[list[dict[str, Any]], ...] = ([], [])
    besides: tuple[list[dict[str, Any]], ...] = ([], [])
    with TemporaryDirectory() as byte_code:
        for counts in (False, *(True for _ in range(rounds))):
            for version, folder in enumerate((base, _HERE)):
                made, found = _asked(request, folder, byte_code), _asked(beside, folder, byte_code)
                replies[version].extend([made] if counts else [])
                besides[version].extend([found] if counts else [])
    both = set.intersection(*(set(reply["each"]) for version in replies for reply in version))
    imports, firsts = _least(replies, "import"), _least(replies, "first")
    before, now = ({one: min(reply["each"][one] for reply in version) for one in both} for version in replies)
    rates = tuple(len(both) / sum(seconds for seconds, _ in version.values()) for version in (before, now))
    lines = tuple(sum(count for _, count in version.values()) for version in (before, now))
    alike = tuple(before[one][0] / now[one][0] for one in both if abs(now[one][1] - before[one][1]) <= before[one][1] / 10)
    least = imports, firsts, _least(besides, "first")
    return Speed(kernel, *least, (rates[0], rates[1]), len(both), (lines[0], lines[1]), alike)


def _least(replies: tuple[list[dict[str, Any]], ...], what: str) -> tuple[float, float]:
    """Return the least time of both versions."""
    older, newer = (min(reply[what] for reply in version) for version in replies)
    return older, newer


def _asked(request: Mapping[str, Any], folder: Path, byte_code: str) -> dict[str, Any]:
    """Return the reply of the version in a folder; the folder of this file is not on its path."""
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONPYCACHEPREFIX": byte_code, "PYTHONDONTWRITEBYTECODE": ""}
    run = subprocess.run(
        [sys.executable, "-P", str(_PROBE)], input=json.dumps(request), env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout)


def page(speeds: list[Speed], base: str, rounds: int) -> str:
    """Return the page."""
    rows = [
        [one.kernel, str(one.schedules), *(f"{1e3 * seconds:.1f}" for seconds in one.first), f"{one.first[0] / one.first[1]:.2f}",
         f"{one.beside_numpy[0] / one.beside_numpy[1]:.2f}", *(f"{rate:.0f}" for rate in one.rate), f"{one.rate[1] / one.rate[0]:.2f}",
         *map(str, one.lines)]
        for one in speeds
    ]  # fmt: skip
    timed = ("first, before (ms)", "now (ms)", "gain", "gain beside NumPy", "a second, before", "now", "gain")
    header = ("kernel", "schedules", *timed, "lines of C, before", "now")
    imports = [min(one.imported[version] for one in speeds) for version in (1, 0)]
    alike = [gain for one in speeds for gain in one.alike]
    firsts, rates = [one.first[0] / one.first[1] for one in speeds], [one.rate[1] / one.rate[0] for one in speeds]
    besides = [one.beside_numpy[0] / one.beside_numpy[1] for one in speeds]
    return f"""# From text to C

`python -m sparsetune.tuner.reports.lowering --base PATH` wrote this page; before is {base}. *First*: processor time from text to the C of
the default schedule, in a fresh process that has imported the package; it includes the imports of the compiler's modules, and of NumPy
where lowering needs it. *Beside NumPy*: the same in a process that has imported NumPy before. *A second*: schedules that are read, applied,
checked for legality and lowered to C after that. Least of {rounds} rounds, both versions in turn; no C compiler runs.

{table(header, rows)}

Geometric means: {geometric_mean(firsts):.2f} for the first kernel, {geometric_mean(besides):.2f} beside NumPy,
{geometric_mean(rates):.2f} for further schedules;
{geometric_mean(alike):.2f} for the {len(alike)} of {sum(one.schedules for one in speeds)} schedules whose C is as long as before, within a
tenth. The others have more code now, such as forms for rows that are short or empty. `import sparsetune` takes
{1e3 * imports[0]:.2f} ms (before: {1e3 * imports[1]:.2f}).
"""


@click.command()
@click.option("--base", type=click.Path(path_type=Path, exists=True, file_okay=False), required=True, help="holds a checkout 'sparsetune'")
@results_option
@click.option("--rounds", default=5, show_default=True)
@click.option("--kernel", "kernels", multiple=True, type=click.Choice(list(KERNELS)), help="only these, and no page is written")
def main(base: Path, results: Path, rounds: int, kernels: tuple[str, ...]) -> None:
    """Measure how fast schedules become C, beside the version in a folder."""
    if not (base / "sparsetune" / "__init__.py").is_file():  # without it this version would be compared with itself
        raise click.UsageError(f"{base} holds no checkout named 'sparsetune'")
    speeds = [measured(kernel, base.resolve(), rounds) for kernel in kernels or KERNELS]
    asked = ["git", "-C", str(base / "sparsetune"), "rev-parse", "--short", "HEAD"]
    run = subprocess.run(asked, capture_output=True, text=True, check=False)
    written = page(speeds, run.stdout.strip() or "another version", rounds)
    click.echo(written)
    if not kernels:
        publish(results / "lowering.md", written)


if __name__ == "__main__":
    main()
