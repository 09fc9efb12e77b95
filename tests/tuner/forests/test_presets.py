"""The presets "spttn" and "sparseauto": counts of the papers, stages, what is left, and that narrower ranges leave no more."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from click.testing import CliRunner
from forest_samples import LEFT, SPARSEAUTO, SPTTN, operands, sparse_formats, wrong
from sparsetune.compiler.errors import ExpressionError, TuningError
from sparsetune.compiler.format import Format
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.space.forests.priced import PricedForests
from sparsetune.compiler.space.forests.separable import Peel
from sparsetune.compiler.space.forests.space import Forests
from sparsetune.tuner.commands.explain import command
from sparsetune.tuner.explore import explore
from sparsetune.tuner.forests.exploration import ForestExploration
from sparsetune.tuner.forests.pipelines import SPARSEAUTO as RULES


def explored(text: str, preset: str, **options: object) -> ForestExploration:
    found = explore(text, sparse_formats(parse(text)), preset=preset, **options)  # type: ignore[arg-type]
    assert isinstance(found, ForestExploration)
    return found


@pytest.mark.parametrize(
    ("name", "count", "shallow"),
    [
        ("MTTKRP3", 48, 48),
        ("MTTKRP4", 3_510, 3_510),
        ("TTMc3", 576, 96),
        ("TTMc4", 11_138_400, 36_000),
        ("TTTP3", 1_680, 1_680),
        ("SDDMM-SpMM", 9_792, 288),
        ("SpTTM-TTM-TTM", 6_296_832, 6_912),
    ],
)
def test_spttn(name: str, count: int, shallow: int) -> None:
    found = explored(SPTTN[name], "spttn")
    assert found.space.count() == count
    assert [(stage["stage"], stage["kept"]) for stage in found.stages[:2]] == [("generated", count), ("min_depth", shallow)]
    assert found.stages[2]["stage"] == "dense_loops"
    assert found.stages[2]["kept"] == len(found.frontier) == len(list(found.frontier)) > 0
    for one in found.frontier:
        assert one.schedule in found.space
        assert one.memory_depth <= 2
        assert one.task_set is None


def test_the_formats_of_spttn_without_any() -> None:
    assert explore(SPTTN["TTMc3"].replace("T(", "B("), preset="spttn").stages[0]["kept"] == 576


def test_costs_of_users() -> None:
    def phi(peel: Peel, inner: float) -> float:
        return inner + 10.0 * sum(map(len, peel.buffers)) + (peel.name == "r")

    found = explored(SPTTN["TTMc3"], "spttn", cost=(phi, lambda one, other: one + other))
    assert found.stages[-1]["stage"] == "phi"
    assert {one.memory_depth for one in found.frontier} == {0}
    smallest = explored(SPTTN["TTMc4"], "spttn", cost="buffer_dimension")
    assert {one.memory_depth for one in smallest.frontier} == {1}


@pytest.mark.parametrize("name", LEFT)
def test_sparseauto(name: str, tmp_path: Path) -> None:
    found = explored(SPARSEAUTO[name], "sparseauto")
    assert [stage["stage"] for stage in found.stages] == ["generated", "memory_depth", "depth_poset", "smt"]
    assert tuple((stage["kept"], stage["buckets"]) for stage in found.stages[2:]) == LEFT[name]
    assert len(found.frontier) == LEFT[name][1][0] == len({str(one.schedule) for one in found.frontier})
    chosen = [one.schedule for one in found.frontier][:12]
    assert all(schedule in found.space for schedule in chosen)
    assert not wrong(SPARSEAUTO[name], chosen, tmp_path, "frontier")


def test_all_stages_are_quick() -> None:
    """Generation included, 1 to 2 s together when idle; the paper's own took up to hours."""
    start = process_time()
    for text in SPARSEAUTO.values():
        explored(text, "sparseauto")
    assert process_time() - start < 10


RANGES = {
    "wide": {"i": (10.0, 1e6), "j": (10.0, 1e6), "k": (4.0, 256.0), "l": (4.0, 256.0), "m": (4.0, 256.0), "T": (1e-6, 0.1)},
    "narrow": {"i": (1e3, 1e4), "j": (1e3, 1e4), "k": (16.0, 64.0), "l": (16.0, 64.0), "m": (16.0, 64.0), "T": (1e-4, 1e-3)},
    "point": dict(zip("ijklmT", ((5000.0,) * 2, (4000.0,) * 2, (32.0,) * 2, (64.0,) * 2, (16.0,) * 2, (1e-3,) * 2), strict=True)),
}


@pytest.mark.parametrize("name", ["SDDMM-SpMM-GEMM", "MTTKRP-GEMM"])
def test_narrower_ranges_leave_no_more(name: str) -> None:
    left = [
        {(one.costs.time, one.costs.memory) for one in explored(SPARSEAUTO[name], "sparseauto", ranges=ranges).classes}
        for ranges in RANGES.values()
    ]
    assert left[0] >= left[1] >= left[2]
    assert left[2]


def test_a_point_leaves_the_pareto_set() -> None:
    """Of the costs of everything within the memory-depth threshold, T stored by rows or converted to columns."""
    text = SPARSEAUTO["SDDMM-SpMM-GEMM"]
    found = explored(text, "sparseauto", ranges=RANGES["point"])
    sizes = {name: low for name, (low, _) in RANGES["point"].items() if name != "T"}
    entries = 1e-3 * sizes["i"] * sizes["j"]
    sizes |= {"nnz_T_1": sizes["i"] * (1 - (1 - 1e-3) ** sizes["j"]), "nnz_T_2": entries}
    columns = {"nnz_T_1": sizes["j"] * (1 - (1 - 1e-3) ** sizes["i"])}
    rules = type(RULES)(RULES.paths, RULES.fused, RULES.derived, 2)
    every = set()
    for order, own, copied in (((0, 1), sizes, 0), ((1, 0), sizes | columns, entries)):
        formats = {**found.space.default.formats, "T": Format("compressed, compressed", order)}
        costs = PricedForests(Forests(found.space.assignment, formats, rules).peeling, formats).costs()
        every |= {(one.time.at(own) + 30 * copied, one.memory.at(own) + copied) for one in costs}
    pareto = {one for one in every if not any(other != one and other[0] <= one[0] and other[1] <= one[1] for other in every)}
    left = {(one.costs.time.at(sizes | {"nnz_T_j": columns["nnz_T_1"]}), one.costs.memory.at(sizes)) for one in found.classes}
    assert {(round(time), round(memory)) for time, memory in left} == {(round(time), round(memory)) for time, memory in pareto}


def test_transposition_is_a_choice_with_its_cost(tmp_path: Path) -> None:
    """Sections 6.3 and 6.5. A copy of a matrix has two modes, no more than buffers may have; that of a larger tensor has more."""
    text = SPARSEAUTO["SDDMM-SpMM"]
    found = explored(text, "sparseauto")
    turned = {**found.space.default.formats, "T": Format("compressed, compressed", (1, 0))}
    both = [Forests(found.space.assignment, formats, RULES).count() for formats in (found.space.default.formats, turned)]
    assert found.space.count() == sum(both) == found.stages[0]["kept"]
    listed = list(found.space)
    assert len({str(one) for one in listed}) == sum(both)
    assert sum("convert(T" in str(one) for one in listed) == both[1]
    drawn = [one for one in found.space.sample(16, seed=3) if "convert(T" in str(one)]
    assert drawn
    assert all(one in found.space for one in drawn)
    assert not wrong(text, drawn, tmp_path, "turned")
    assert not any("convert(T" in str(one.schedule) for one in found.frontier)
    sized = explored(SPARSEAUTO["SDDMM-SpMM-GEMM"], "sparseauto", ranges=RANGES["point"])
    left = [one for one in sized.frontier if "convert(T" in str(one.schedule)]
    assert left
    assert all("30 * nnz_T_2" in one.time and "nnz_T_2" in one.memory and one.memory_depth == 2 for one in left)
    cubes = SPTTN["MTTKRP3"]
    deeper = explored(cubes, "sparseauto", memory_depth=3).space
    stored = [Format("compressed, compressed, compressed", order) for order in permutations(range(3))]
    counts = [Forests(deeper.assignment, {**deeper.default.formats, "T": form}, RULES).count() for form in stored]
    assert (deeper.count(), explored(cubes, "sparseauto").space.count()) == (sum(counts), counts[0])


def test_costs_of_converted_operands() -> None:
    found = explored(SPARSEAUTO["SDDMM-SpMM"], "sparseauto", memory_depth=1)
    by_columns = 'convert(T, "csf; 1,0"); reorder(j, i, k, l)'
    assert "time 4 * k * l * nnz_T_2 + 30 * nnz_T_2; memory nnz_T_2" in found.annotated(by_columns)
    assert "these never take more:" in found.why(by_columns)


def test_memory_bounds() -> None:
    text = SPARSEAUTO["SpTTM-TTM-TTM"]
    found = explored(text, "sparseauto", memory_bound=1, ranges={"j": (10, 100), "k": (10, 100)})
    assert "memory_bound" in [stage["stage"] for stage in found.stages]
    assert {one.memory_depth for one in found.frontier} == {0}
    assert explored(text, "sparseauto", memory_depth=0).stages[1]["kept"] < explored(text, "sparseauto").stages[1]["kept"]


def test_verdicts() -> None:
    found = explored(SPARSEAUTO["SDDMM-SpMM"], "sparseauto")
    assert "time 4 * k * l * nnz_T_2; memory 0" in found.annotated("")
    assert found.why(str(found.frontier[0].schedule)) == "no schedule of the frontier is cheaper for all admitted sizes"
    unfused = explored(SPTTN["MTTKRP3"], "spttn", cost="buffer_size")
    apart = "precompute(T(i,j,k) * C(k,r), [i, j, r], [i, j, r], w); workspace(w, dense)"
    assert "these never take more:" in unfused.why(apart)
    with pytest.raises(ExpressionError, match="no loop nest forest"):
        found.costs("split(i, i0, i1, 32)")


@pytest.mark.parametrize(
    ("expression", "options", "error"),
    [
        ("a(i) = B(i,j) + c(i)", {}, ExpressionError),
        (SPTTN["TTMc3"], {"cost": "speed"}, TuningError),
        (SPTTN["TTMc3"], {"memory_depth": -1}, TuningError),
        (SPTTN["TTMc3"], {"memory_bound": "much"}, TuningError),
        (SPTTN["TTMc3"], {"ranges": {"z": (1, 2)}}, ExpressionError),
        (SPTTN["TTMc3"], {"ranges": {"T": (0.5, 2)}}, ExpressionError),
        (SPTTN["TTMc3"], {"ranges": {"i": (5, 2)}}, ExpressionError),
        (f"a = {' * '.join(f'T{number}(i)' for number in range(9))}", {}, TuningError),
    ],
)
def test_what_is_refused(expression: str, options: dict[str, object], error: type[Exception]) -> None:
    for preset in ("spttn", "sparseauto"):
        if not (preset == "sparseauto" and "cost" in options) and not (preset == "spttn" and "memory_bound" in options):
            with pytest.raises(error):
                explore(expression, preset=preset, **options)  # type: ignore[arg-type]


def test_explain_has_no_tasks_of_forests() -> None:
    shown = CliRunner().invoke(command, [SPTTN["MTTKRP3"], "--format", "T=csf", "--preset", "spttn", "--schedule", ""]).stdout
    assert "time    " in shown
    assert "nnz_T_3 * r" in shown
    assert "None" not in shown


def test_explain_shows_forests() -> None:
    arguments = [SPTTN["MTTKRP3"], "--format", "T=csf", "--preset", "sparseauto", "--range", "T=1e-6:1e-2", "--json"]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert {"schedule", "loop_nest", "time", "memory", "task_set", "loop_depth", "memory_depth"} == set(answer["frontier"][0])
    text = answer["frontier"][0]["schedule"]
    assignment = parse(SPTTN["MTTKRP3"])
    given = operands(assignment, 1)
    result = compile_kernel(SPTTN["MTTKRP3"], {"T": "csf"}, schedule=text)(**given)
    assert np.array_equal(result, np.einsum("ijk,jr,kr->ir", given["T"].to_numpy(), given["B"], given["C"]))
