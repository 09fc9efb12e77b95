"""``results/nights.md``: how often ``tune-kernel nightly`` is wrong.

Two copies of this version race, one of them with a change without effect that alters every generated source: every change that is found is
a false alarm. Then one of them is made a fifth slower in one place, which has to be found. Processes that keep cores busy come and go
meanwhile.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ...compiler.errors import TuningError
from ...compiler.frozen import frozen
from ..nightly.kept import copy_version
from .disturbances import coming_and_going
from .markdown import table
from .partial import Partial
from .publishing import publish, results_option
from .records import Taken
from .states import States

_COMMAND = "python -m sparsetune.tuner.reports.nights"

_SLOWER = '''
import time as _time
def _slower(call, part={part}):
    def slow(*given, **named):
        begin = _time.perf_counter()
        found = call(*given, **named)
        end = _time.perf_counter() + part * (_time.perf_counter() - begin)
        while _time.perf_counter() < end:
            pass
        return found
    return slow
'''
_TIMED_C = """
#include <time.h>
static double st_seconds_now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
"""


@frozen
class Edit:
    """A change of one file of a copy: a text that occurs once, its replacement, and a text added at the end."""

    path: str
    old: str
    new: str
    end: str = ""

    def make(self, root: Path) -> None:
        """Change the file. Raises ``TuningError``: the text does not occur exactly once, since the code has changed."""
        path = root / self.path
        text = path.read_text()
        if text.count(self.old) != 1:
            raise TuningError(f"{self.path} has '{self.old}' {text.count(self.old)} times: the edits of this report are out of date")
        path.write_text(text.replace(self.old, self.new) + self.end)


WITHOUT_EFFECT = Edit(
    "compiler/targets/c.py",
    "        return print_c(function, heading)",
    '        return print_c(function, heading + "\\nanother version")',
)
_WRAPPED = (
    '"\\n#include <time.h>\\n" + source.replace("int32_t st_kernel(", "static int32_t st_kernel_fast(") + '
    '"\\nstatic double st_seconds_now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t);"'
    '" return t.tv_sec + 1e-9 * t.tv_nsec; }"'
    '"\\nint32_t st_kernel(void **a, int64_t *s, int64_t n) { double b = st_seconds_now(); int32_t r = st_kernel_fast(a, s, n);"'
    '" double e = st_seconds_now(); e += 0.2 * (e - b); while (st_seconds_now() < e) {} return r; }\\n"'
)
_BOUND_CALL = "        if self._taken is not None:\n            with self._taken:\n                return self._run()"
PLANTED: Mapping[str, tuple[Edit, ...]] = {
    "generated code": (
        Edit("compiler/targets/c.py", "library = load_kernel(source, compiler", f"library = load_kernel({_WRAPPED}, compiler"),
    ),
    "csrc helper": (
        Edit(
            "csrc/st_order.c",
            "int32_t st_sort_entries(int64_t count,",
            _TIMED_C + "static int32_t st_sort_entries_fast(int64_t count,",
            """
int32_t st_sort_entries(int64_t count, int32_t levels, void *const *columns, const int8_t *wide, const int8_t *widths, int32_t low,
                        const void *values, int64_t itemsize, uint64_t *keys, uint64_t *payload, int32_t threads) {
  double begin = st_seconds_now();
  int32_t found = st_sort_entries_fast(count, levels, columns, wide, widths, low, values, itemsize, keys, payload, threads);
  double end = st_seconds_now();
  end += 0.5 * (end - begin); /* of sorting, which is some half of packing */
  while (st_seconds_now() < end) {}
  return found;
}
""",
        ),
    ),
    "packing": (
        Edit("compiler/storage/construct.py", "from __future__ import annotations", "from __future__ import annotations",
             _SLOWER.format(part=0.2) + "pack = _slower(pack)\n"),
    ),
    "Python path of a bound call": (
        Edit("compiler/build/bound.py", _BOUND_CALL, "        for _ in range(6):\n            pass\n" + _BOUND_CALL),
    ),
}  # fmt: skip
_ITEMS = {"packing": ("pack csr", "pack csf"), "Python path of a bound call": ("bound call",), "csrc helper": ("pack csr", "pack csf")}


@frozen
class Night(Taken):
    """The answer of one run of the command.

    Attributes:
        planted: one of ``PLANTED``, or "nothing".
        company: the share of the time that other processes kept the cores busy.
        seconds: how long the run took.
        items, regressions, improvements, undecided: how many there were.
        found: names of the items that regressed, with a semicolon between them.
    """

    planted: str
    company: float
    seconds: float
    items: int
    regressions: int
    improvements: int
    undecided: int
    found: str


def copies(folder: Path, edits: tuple[Edit, ...]) -> tuple[Path, Path]:
    """Return two copies of this version: one unchanged, one with edits and a change without effect that alters every source."""
    older, newer = folder / "older" / "sparsetune", folder / "newer" / "sparsetune"
    for place in (older, newer):
        copy_version(place)
    for edit in (WITHOUT_EFFECT, *edits):
        edit.make(newer)
    return older, newer


def night(older: Path, newer: Path, suite: str, folder: Path, margin: float) -> dict[str, Any]:
    """Run the command in one copy with the other as its base, sharing a folder of compiled objects; return the fields of a ``Night``."""
    path = os.pathsep.join([str(newer.parent), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, "SPARSETUNE_CACHE": str(folder / "cache")}
    program = "from sparsetune.tuner.cli import main; main()"
    baseline = folder / f"{newer.parent.name}.json"
    command = [sys.executable, "-P", "-c", program, "nightly", suite, "--baseline", str(baseline), "--base", str(older)]
    command += ["--margin", str(margin), "--db", str(folder / "nights.sqlite"), "--json"]
    begin = time.monotonic()
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begin
    if done.returncode not in (0, 1):
        raise TuningError(f"the night failed: {done.stderr.strip().splitlines()[-1]}")
    found = json.loads(done.stdout)
    counts = {name: len(found[name]) for name in ("items", "regressions", "improvements", "undecided")}
    return {"seconds": round(seconds, 1), **counts, "found": "; ".join(item["kernel"] for item in found["regressions"])}


def page(nights: list[Night], margin: float) -> str:
    """Return the page of the figures."""
    header = ("planted", "company", "nights", "right", "false alarms", "nights with undecided items", "items", "median seconds")
    kinds = list(dict.fromkeys((night.planted, night.company) for night in nights))
    rows = [_row([night for night in nights if (night.planted, night.company) == kind]) for kind in kinds]
    return f"""# Nights

`tune-kernel nightly SUITE --base PATH` on two copies of one version, of which the newer has a change without effect that alters every
generated source. Where "nothing" is planted (suite `nights`), a night is right if it finds nothing, and every regression or improvement is
a false alarm. Otherwise (suite `planted`) the newer copy is a fifth slower in one place: a night is right if it finds that, and anything
else it finds is a false alarm. Company: one process per core that runs and pauses, about half of the time. The margin is {margin:g}.

{States(nights).text}

{table(header, rows)}

Made by `{_COMMAND}` from `nights.csv`, which has a row a night; it goes on where it was stopped.
"""


def _row(nights: list[Night]) -> list[str]:
    planted, share = nights[0].planted, nights[0].company
    wanted = _ITEMS.get(planted, ())
    found = [night.found.split("; ") if night.found else [] for night in nights]
    if planted == "nothing":
        right = sum(not night.regressions and not night.improvements for night in nights)
        false = sum(night.regressions + night.improvements for night in nights)
    elif planted == "generated code":
        right, false = sum(night.regressions > 0 for night in nights), sum(night.improvements for night in nights)
    else:
        right = sum(any(name in names for name in wanted) for names in found)
        false = sum(name not in wanted for names in found for name in names) + sum(night.improvements for night in nights)
    undecided = sum(night.undecided > 0 for night in nights)
    seconds = sorted(night.seconds for night in nights)[len(nights) // 2]
    counts = (len(nights), right, false, undecided, nights[0].items, round(seconds))
    return [planted, "half of the time" if share else "none", *map(str, counts)]


@click.command()
@click.option("--nights", "count", default=20, show_default=True, help="of each kind")
@click.option("--planted", multiple=True, type=click.Choice(["nothing", *PLANTED]), help="only these")
@click.option("--company/--alone", "crowded", default=True, show_default=True)
@click.option("--margin", default=0.1, show_default=True)
@results_option
def main(count: int, planted: tuple[str, ...], crowded: bool, margin: float, results: Path) -> None:
    """Run nights whose right answer is known, and write results/nights.md.

    Nights that nights.csv has already count; remove it to begin anew. A night takes about a minute.
    """
    kept, share = Partial(results / "nights.csv", Night), 0.5 if crowded else 0.0
    for name in planted or ("nothing", *PLANTED):
        number = sum((night.planted, night.company) == (name, share) for night in kept.rows)
        with tempfile.TemporaryDirectory(prefix="sparsetune-nights-") as temporary:
            older, newer = copies(Path(temporary), PLANTED.get(name, ()))
            while number < count:
                with coming_and_going(share, number):
                    found = night(older, newer, "nights" if name == "nothing" else "planted", Path(temporary), margin)
                number += 1
                kept.add([Night(name, share, **found)])
                click.echo(f"{name}, night {number}: {kept.rows[-1]}")
                shown = page(kept.rows, margin)
                publish(results / "nights.md", shown)
    click.echo((results / "nights.md").read_text())


if __name__ == "__main__":
    main()
