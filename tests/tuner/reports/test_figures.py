"""The published figures: races, their files, operation counts, and the page that is made of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from sparsetune.compiler.native.machine import this_machine
from sparsetune.datasets.generate import generate
from sparsetune.tuner.reports import figures, race, scheduling
from sparsetune.tuner.reports.markdown import geometric_mean, milliseconds, table
from sparsetune.tuner.reports.material import Material
from sparsetune.tuner.reports.operations import counted, factorized, fibres, unfactorized
from sparsetune.tuner.reports.page import HAND, page
from sparsetune.tuner.reports.race import Pace, Series
from sparsetune.tuner.reports.records import (
    Chosen,
    Count,
    Races,
    Row,
    read_chosen,
    read_counts,
    times_faster,
    write_chosen,
    write_counts,
)
from sparsetune.tuner.reports.states import States
from sparsetune.tuner.reports.workloads import KERNELS, SYNTHETIC, load_input, operands_of

FUSED = figures.TTMC_NESTS["fused"]
QUICK = Pace(0.0, 2, 2)


def row(variant: str, threads: int, *times: float, figure: str = "kernels", kernel: str = "SpMM 32", name: str = "uni200k") -> Row:
    return Row(figure, kernel, name, variant, threads, 0.5, "reorder(i, j)" if variant == "tuned" else "", Series(times))


# Races


def test_a_race_runs_everything_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "SHORTEST", 0.0)
    monkeypatch.setattr(race, "rest", lambda: calls.append("-"))
    calls: list[str] = []

    def named(name: str) -> Callable[[], None]:
        return lambda: calls.append(name)

    runs = {"a": named("a"), "b": named("b")}
    found = race.race({**runs, "the same as a": runs["a"]}, Pace(0.0, 3, 3))
    assert calls[:6] == [*"aaabbb"]
    assert calls[6:] in ([*"-aa-bb-aa-bb-aa-bb"], [*"-bb-aa-bb-aa-bb-aa"]), "threads of each fall asleep before the next one runs"
    assert [len(series.times) for series in found.values()] == [3, 3, 3]
    assert found["a"] == found["the same as a"]


def test_a_race_times_calls_that_find_their_own_data_in_the_caches() -> None:
    last: list[str] = []

    def named(name: str, seconds: float) -> Callable[[], None]:
        def run() -> None:
            time.sleep(seconds if last[-1:] == [name] else 5 * seconds)
            last.append(name)

        return run

    found = race.race({"large": named("large", 0.004), "small": named("small", 0.008)}, Pace(0.0, 3, 3))
    assert found["large"].median < found["small"].median < 0.03


def test_a_race_lasts_as_long_as_it_is_told() -> None:
    assert len(race.race({"a": lambda: None}, Pace(0.0, 4, 9))["a"].times) == 4
    assert len(race.race({"a": lambda: None}, Pace(60.0, 4, 9))["a"].times) == 9


def test_series() -> None:
    series = Series((1.0, 4.0, 2.0, 3.0, 2.0))
    assert (series.median, series.least, series.spread) == (2.0, 1.0, 0.25)
    assert series.over(Series((0.5, 2.0, 1.0, 1.5, 1.0))).ratio == 2.0


# Files


def test_races_are_kept_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "races.csv"
    races = Races([row("default", 1, 0.25, 0.5), row("tuned", 1, 0.125, 0.25), row("tuned", 2, 0.1, 0.2, kernel="SpMV")])
    races.write(path)
    read = Races.read(path)
    assert read.rows == races.rows
    read.add([row("default", 1, 0.75, 0.75)])
    assert read.find("kernels", "SpMM 32", "uni200k", "tuned", 1) is None
    assert read.find("kernels", "SpMV", "uni200k", "tuned", 2) is not None
    assert Races.read(tmp_path / "missing.csv").rows == {}


def test_ratios_are_of_pairs() -> None:
    found = times_faster(row("default", 1, 2.0, 6.0, 4.0), row("tuned", 1, 1.0, 2.0, 1.0))
    assert found is not None
    assert found.ratio == 3.0
    assert times_faster(None, row("tuned", 1, 1.0)) is None


def test_schedules_and_counts_are_kept(tmp_path: Path) -> None:
    chosen = [Chosen("SpMV", "uni200k", 1, 'build(auto, "-O2 -march=native")'), Chosen("SpMM 32", "uni200k", 2, "")]
    write_chosen(tmp_path / "chosen.csv", chosen)
    assert set(read_chosen(tmp_path / "chosen.csv").values()) == set(chosen)
    counts = [Count("kinships", "fused", "16x16", 10, 11)]
    write_counts(tmp_path / "counts.csv", counts)
    assert read_counts(tmp_path / "counts.csv") == counts


# Workloads and operations


def test_workloads_are_known() -> None:
    for case in KERNELS.values():
        assert case.sparse in case.expression
    for name in ("sten40",):
        loaded = load_input(name)
        assert loaded is not None
        assert (str(loaded.dtype), str(loaded.format)) == ("float64", "dense, compressed")
    assert all(spec.startswith("random:") for spec in SYNTHETIC.values())


def test_dense_operands_are_aligned_and_always_the_same() -> None:
    case, source = KERNELS["MTTKRP 32"], generate("random:uniform:5x6x7:nnz=20", "csf")
    first, second = (operands_of(case, source) for _ in range(2))
    assert first["B"].shape == (6, 32)
    assert (first["B"].values == second["B"].values).all()
    assert not (first["B"].values == first["C"].values[: 6 * 32]).all()
    assert first["C"].values.ctypes.data % 64 == 0


def test_fused_ttmc_does_what_the_formula_says() -> None:
    case = replace(KERNELS["TTMc 16x16"], dims={"r": 3, "s": 5})
    source = generate("random:uniform:4x5x30:nnz=200", "dense, compressed, compressed")
    assert fibres(source) == len({(i, j) for i, j, _ in zip(*source.to_coordinates()[0], strict=True)})
    assert counted(case, source, FUSED) == factorized(source, case.dims) == 2 * 200 * 5 + 2 * fibres(source) * 15
    assert factorized(source, case.dims) < counted(case, source, "") <= unfactorized(source, case.dims)


# The page


def material() -> Material:
    pairs = {"kernels": ("default", "tuned", "scipy", "mkl"), "hand": (HAND, "tuned"), "bandwidth": ("triad", "tuned")}
    rows = [
        row(variant, threads, 0.4 / threads, 0.2 / threads, figure=figure, kernel="SpMV" if figure == "bandwidth" else "SpMM 32")
        for figure, variants in pairs.items()
        for variant in variants
        for threads in (1, 2)
    ]
    rows += [
        row(nest, 1, time, figure="ttmc", kernel="TTMc 16x16", name="t3long") for nest, time in (("unfactorized", 8.0), ("fused", 1.0))
    ]
    sizes = {"uni200k": {"shape": (10, 10), "nnz": 50, "fibres": 10}, "t3long": {"shape": (5, 5, 90), "nnz": 300, "fibres": 20}}
    chosen = {("SpMM 32", "uni200k", 1): Chosen("SpMM 32", "uni200k", 1, "reorder(i, j)")}
    return Material(Races(rows), chosen, [Count("kinships", "fused", "16x16", 10, 10)], sizes)


def test_the_page_shows_every_figure() -> None:
    text = page(material())
    for title in ("Tuned against default", "Two threads against one", "Other libraries", "Hand-written C", "TTMc", "Bandwidth", "Inputs"):
        assert f"## {title}" in text
    assert "Geometric mean over SpMM, SDDMM and MTTKRP: **2.00**" in text
    assert "| SpMM 32 | uni200k | 300 (200) | 300 (200) | 1.00 [1.00, 1.00] | 150 (100) | 2.00 [2.00, 2.00] |" in text
    share = 8.0 / (3 * 300 * 256 / (2 * 300 * 16 + 2 * 20 * 256))
    assert f"| {share:.2f} |" in text
    assert "| `t3long` | `random:uniform:300x200x20000:nnz=3e6` | 5 x 5 x 90 | 300 | 20 |" in text


def test_rows_say_where_and_when_they_were_taken(tmp_path: Path) -> None:
    here, there = row("default", 1, 0.5), replace(row("tuned", 1, 0.5, name="rmat18"), machine="abacus", date="2026-01-02", commit="abc")
    Races([here, there]).write(tmp_path / "races.csv")
    read = Races.read(tmp_path / "races.csv").rows
    assert (read[there.key].machine, read[there.key].date, read[there.key].commit) == ("abacus", "2026-01-02", "abc")
    assert read[here.key].machine == this_machine().model
    assert read[here.key].date >= "2026-11-23"


def test_rows_of_other_states_are_marked() -> None:
    rows = [replace(row(variant, 1, 0.5), commit="new", date=f"2026-11-2{day}") for day, variant in enumerate(("default", "tuned"))]
    rows += [replace(row("default", 1, 0.5, name="rmat18"), machine="abacus", commit="old", date="2026-01-02")]
    states = States(rows)
    assert (states.mark(rows[:2]), states.mark(rows[2:]), states.mark(rows)) == ("", " (b)", " (b)")
    assert "(b) abacus, 2026-01-02, commit old: 1 rows" in states.text
    assert "2026-11-20 to 2026-11-21, commit new: 2 rows" in states.text
    shown = page(Material(Races(rows), {}, []))
    assert "| SpMM 32 | rmat18 (b) |" in shown
    assert "| SpMM 32 | uni200k |" in shown


def test_means_are_given_with_and_without_ttmc() -> None:
    rows = [row("default", 1, 8.0), row("tuned", 1, 4.0), row("tuned", 2, 2.0)]
    ttmc = [row(variant, threads, time, kernel="TTMc 16x16", name="t3long") for variant, threads, time in
            (("default", 1, 8.0), ("tuned", 1, 1.0), ("tuned", 2, 0.5))]  # fmt: skip
    shown = page(Material(Races([*rows, *ttmc]), {}, []))
    assert "all kernels 4.00 with 1 thread and 8.00 with 2 threads; without TTMc 2.00 with 1 thread and 4.00 with 2 threads." in shown


def test_budgets_are_those_that_were_used() -> None:
    chosen = {number: Chosen("SpMV", "uni200k", number, "", trials, budget) for number, (trials, budget) in
              enumerate([(40, 12.0), (60, 14.0), (None, None)], 1)}  # fmt: skip
    shown = page(Material(Races(), {("SpMV", "uni200k", number): one for number, one in chosen.items()}, []))
    assert "Campaigns of 40 to 60 trials within 12 or 14 s chose 2 of the schedules; of 1 others that was not written down." in shown


def test_nothing_to_do_is_said(tmp_path: Path) -> None:
    arguments = ["--only", "kernels", "--kernel", "SpMV", "--input", "nowhere", "--results", str(tmp_path)]
    done = CliRunner().invoke(figures.main, arguments)
    assert done.exit_code == 0
    assert "nothing to do: no kernel has such an input" in done.output
    done = CliRunner().invoke(scheduling.main, ["--only", "spmspv", "--input", "copter2", "--results", str(tmp_path)])
    assert done.exit_code == 0
    assert "spmspv: nothing to do: it has no such kernel or input" in done.output


def test_a_page_of_nothing_has_no_tables() -> None:
    assert "|" not in page(Material(Races(), {}, []))


def test_tables() -> None:
    assert table(("a", "b", "c"), [("1", "2", "3")]) == "| a | b | c |\n| --- | --- | ---: |\n| 1 | 2 | 3 |"
    assert milliseconds(row("tuned", 1, 0.123456, 1.0)) == "562 (123)"
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)


@pytest.mark.cc
def test_figures_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "random:uniform:60x50:nnz=200"
    monkeypatch.setitem(figures.KERNELS, "SpMV", replace(KERNELS["SpMV"], inputs=(name,)))
    write_chosen(tmp_path / "performance_schedules.csv", [Chosen("SpMV", name, 2, "parallelize(i, cpu_thread, no_races)")])
    arguments = ["--only", "kernels", "--kernel", "SpMV", "--seconds", "0", "--results", str(tmp_path)]
    outcome = CliRunner().invoke(figures.main, arguments, catch_exceptions=False)
    assert outcome.exit_code == 0
    rows = Races.read(tmp_path / "performance.csv").rows.values()
    assert {(found.variant, found.threads) for found in rows} >= {("default", 1), ("tuned", 2), ("scipy", 1)}
    assert "## Tuned against default" in (tmp_path / "performance.md").read_text()
