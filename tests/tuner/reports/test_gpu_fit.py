"""The constants of the static model of GPUs are fitted to races, here on a device that takes what the model says of other constants."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import sparsetune as st
from click.testing import CliRunner
from sparsetune.tuner.device_costs import USUAL, nanoseconds
from sparsetune.tuner.reports import gpu
from sparsetune.tuner.reports.gpu_cases import KERNELS
from sparsetune.tuner.reports.gpu_fit import FITTED, GIVEN, Race, fitted, loss, moved, races, raised, report
from sparsetune.tuner.reports.gpu_rows import FILE, OURS, Row, Rows

SOURCES = ("random:uniform:3000x3000:nnz=60000", "random:uniform:400x90000:nnz=9000")
OTHER = replace(USUAL, warp=4 * USUAL.warp, wait=0.4 * USUAL.wait, row=5 * USUAL.row, sector=3 * USUAL.sector)
"""A device of which the usual constants are wrong."""


def rows_of(sources: tuple[str, ...]) -> list[Row]:
    """Return rows as a device would leave them, each of one second."""
    kernels = [kernel for kernel in KERNELS if kernel.name in ("SpMV", "SDDMM 32")]
    row = Row("kernels", "", 0, "", OURS, "", 1.0, 1.0, 1.0, 8, "yes", "one", "0", "", "")
    return [
        replace(row, input=Path(source).name, kernel=kernel.name, what=what)
        for source in sources for kernel in kernels for what, _ in kernel.schedules()
    ]  # fmt: skip


@pytest.fixture(scope="module")
def measured() -> list[Race]:
    """Races on a device that takes exactly what the model says of it."""
    found = races(rows_of(SOURCES), SOURCES)
    return [replace(race, mappings=tuple((asked, nanoseconds(asked, OTHER)) for asked, _ in race.mappings)) for race in found]


def test_rows_become_races_of_all_mappings_that_were_timed(measured: list[Race]) -> None:
    assert [(race.input, race.kernel) for race in measured] == [(name, kernel) for name in SOURCES for kernel in ("SpMV", "SDDMM 32")]
    mappings = {kernel.name: len(list(kernel.schedules())) for kernel in KERNELS}
    assert all(len(race.mappings) == mappings[race.kernel] for race in measured)
    others = [replace(row, device="two") for row in rows_of(SOURCES[:1])[:3]]
    (last,) = races([*rows_of(SOURCES[:1]), *others], SOURCES[:1])
    assert len(last.mappings) == 3  # the device that was measured last
    assert not list(races(rows_of(SOURCES), ["random:uniform:5x5:nnz=3"]))


def test_constants_are_moved_to_what_explains_the_times(measured: list[Race]) -> None:
    assert all(race.share(OTHER) == 1.0 for race in measured)
    found, least, before = fitted(measured), loss(measured, OTHER), loss(measured, USUAL)
    assert loss(measured, found) - least < 0.2 * (before - least)
    assert all(getattr(found, name) == getattr(USUAL, name) for name in GIVEN)
    assert raised(measured, OTHER)["conversion"] == (0.0, 0.0)
    assert max(raised(measured, OTHER)["wait"]) > 0.01


def test_powers_stay_below_one() -> None:
    assert moved(USUAL, "together", 100.0).together == 0.9
    assert moved(USUAL, "wait", 2.0).wait == 2 * USUAL.wait


def test_what_races_do_not_determine_is_said(measured: list[Race]) -> None:
    constants, shares = report(measured)
    lines = {line.split(" | ")[0].strip("| "): line for line in constants.splitlines()[2:]}
    assert set(lines) == set(FITTED)
    assert "not determined" in lines["conversion"]
    assert "not determined" not in lines["warp"]
    assert shares.startswith("4 races on 2 inputs.")
    assert "fitted without the input of each race" in shares
    with pytest.raises(st.DataError, match=r"gpu\.csv has no rows"):
        list(report([]))


def test_the_command_prints_constants(tmp_path: Path, measured: list[Race]) -> None:
    kept = Rows(tmp_path, "kernels", "one", 9.0)
    spmv = next(kernel for kernel in KERNELS if kernel.name == "SpMV")
    (race,) = (race for race in measured if (race.input, race.kernel) == (SOURCES[0], "SpMV"))
    for (what, _), (_, taken) in zip(spmv.schedules(), race.mappings, strict=True):
        kept.add(SOURCES[0], 1, "SpMV", OURS, what, lambda taken=taken: ([taken / 1e9], 8, "yes"))
    assert (tmp_path / FILE).is_file()
    done = CliRunner().invoke(gpu.main, ["fit", SOURCES[0], "--folder", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "| launch |" in done.output
    assert "1 races on 1 inputs" in done.output
    refused = CliRunner().invoke(gpu.main, ["fit", "--folder", str(tmp_path)])
    assert refused.output.startswith("Error: gpu.csv has no rows of part kernels")
