"""What ``tune`` searches, as a space: counted, listed, sampled, recognised; every schedule drawn from it makes a kernel that is right."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from differential.batch import build_together
from space_samples import random_operands, reference
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.concrete.concretize import concretize, started
from sparsetune.compiler.deadline import Deadline
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.format import Format
from sparsetune.compiler.kernel import Kernel
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.space.draws import drawn_nests, drawn_transformations
from sparsetune.compiler.space.full import FullSpace
from sparsetune.compiler.space.instances import Instances
from sparsetune.compiler.space.schedules import Schedules
from sparsetune.compiler.space.selection import CLOSED, RULES
from sparsetune.compiler.space.situation import Situation, Structure, further
from sparsetune.compiler.space.space import ScheduleSpace
from sparsetune.compiler.space.template import Template
from sparsetune.compiler.storage.construct import tensor
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.prune import other_compilers, surviving_space
from sparsetune.tuner.resolve import make_problem
from sparsetune.tuner.searched import Searched
from sparsetune.tuner.whole_space import whole_space

EXPRESSIONS = {
    "SpMV": "y(i) = A(i,j) * x(j)",
    "SpMM": "Y(i,k) = A(i,j) * X(j,k)",
    "SpGEMM": "C(i,k) = A(i,j) * B(j,k)",
    "SDDMM": "Z(i,j) = A(i,j) * C(i,k) * D(j,k)",
    "sum": "C(i,j) = A(i,j) + B(i,j)",
    "residual": "y(i) = b(i) - A(i,j) * x(j)",
    "sum of products": "C(i,j) = A(i,j) + D(i,k) * E(k,j)",
    "accumulation": "y(i) += A(i,j) * x(j)",
}
STORED = {"SpGEMM": "AB", "sum": "AB"}
RESULTS = {"SpGEMM": "csr", "sum": "csr"}
FORMATS = ("csr", "csc", "dcsr", "coo")
EXTENT = 24
"""Enough that the static model does not find threads hopeless."""


@cache
def problem_of(name: str, form: str) -> Problem:
    expression = EXPRESSIONS[name]
    assignment = parse(expression)
    source = np.random.default_rng(3)
    operands = {}
    for operand, array in random_operands(assignment, EXTENT, 1).items():
        stored = operand in STORED.get(name, "A")
        operands[operand] = tensor(array * (source.random(array.shape) < 0.5), form) if stored else array
    if assignment.operator == "+=":
        operands[assignment.target.tensor] = source.random(EXTENT)
    return make_problem(expression, operands, RESULTS.get(name), threads=2)


@cache
def space_of(name: str, form: str, also: tuple[str, ...]) -> Instances:
    space, stages = surviving_space(problem_of(name, form), also=also, seed=1)
    return Instances(space.templates, stages)


SDDMM = parse(EXPRESSIONS["SDDMM"]), formats_of(parse(EXPRESSIONS["SDDMM"]), {"A": "csr"})


def wrong(name: str, form: str, found: list[Schedule], folder: Path) -> list[str]:
    """Return the schedules whose kernels give other values than plain loops."""
    problem = problem_of(name, form)
    formats = {operand: given.format for operand, given in problem.operands.items() if not given.format.is_dense}
    if name in RESULTS:
        formats[parse(problem.expression).target.tensor] = Format(RESULTS[name])
    kernels = [compile_kernel(problem.expression, formats, schedule=schedule) for schedule in found]
    build_together([one.default_kernel for one in kernels], folder, form)
    assignment = parse(problem.expression)
    operands = {operand: given.to_numpy() for operand, given in problem.operands.items()}
    expected = reference(parse(problem.expression.replace("+=", "=")), operands, EXTENT)
    if assignment.operator == "+=":
        expected = expected + operands[assignment.target.tensor]
    given = {operand: stored if operand in formats else stored.to_numpy() for operand, stored in problem.operands.items()}
    results = (kernel(**given, threads=2) for kernel in kernels)
    values = (result if isinstance(result, np.ndarray) else result.to_numpy() for result in results)
    return [str(one) for one, value in zip(found, values, strict=True) if not np.allclose(value, expected)]


@cache
def searched(name: str, form: str, also: tuple[str, ...]) -> Searched:
    return Searched(problem_of(name, form), also, (), surviving_space(problem_of(name, form), also=also, seed=1)[1])


def check(name: str, form: str, also: tuple[str, ...], samples: int, folder: Path) -> None:
    listed = space_of(name, form, also)
    texts = list(map(str, islice(listed, 3000)))
    assert len(set(texts)) == len(texts) == min(listed.count(), 3000)
    check_space(listed, name, form, samples, folder)


def check_space(space: Instances | Searched, name: str, form: str, samples: int, folder: Path) -> None:
    stages = {stage["stage"]: stage["kept"] for stage in space.stages}
    assert stages["parameters"] == space.count()
    listed = list(map(str, islice(space, 30)))
    assert len(set(listed)) == len(listed) == 30
    assert all(one in space for one in listed)
    drawn = space.sample(samples, seed=2)
    assert len(drawn) == samples
    assert drawn == space.sample(samples, seed=2)
    assert all(Schedule(str(one)) == one and one in space and str(one) in space for one in drawn)
    assert "unroll(nothing, 3)" not in space
    assert not wrong(name, form, list(dict.fromkeys(drawn)), folder)


CASES = [(name, FORMATS[place % 4], CLOSED[place % 4 : place % 4 + 1] if place % 2 else ()) for place, name in enumerate(EXPRESSIONS)]


@pytest.mark.parametrize(("name", "form", "also"), CASES)
def test_what_is_searched_is_a_space(name: str, form: str, also: tuple[str, ...], tmp_path: Path) -> None:
    check(name, form, also, 4, tmp_path)


@pytest.mark.parametrize(("name", "form"), [("SpMM", "csr"), ("SpGEMM", "csr")])
def test_what_is_drawn_beyond_is_a_space(name: str, form: str, tmp_path: Path) -> None:
    check_space(searched(name, form, ()), name, form, 2, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_forty_schedules_of_what_is_drawn_beyond_are_right(name: str, form: str, tmp_path: Path) -> None:
    check_space(searched(name, form, ()), name, form, 40, tmp_path)


def listed_by_rules(name: str, form: str) -> list[Schedule]:
    return [template.fill() for template in surviving_space(problem_of(name, form), seed=1)[0].templates]


@pytest.mark.parametrize("name", ["SpMV", "SpMM", "SpGEMM", "sum"])
def test_what_rules_list_is_in_the_whole_space(name: str) -> None:
    """All of it: rules rank. What the filters of a search leave out of it they name."""
    space, narrowed = whole_space(problem_of(name, "csr")), searched(name, "csr", ())
    usual = listed_by_rules(name, "csr")
    assert len(usual) > 4
    assert [str(one) for one in usual if one not in space] == []
    assert all((one in narrowed) != bool(space.dropped_by(one)) for one in usual)


@pytest.mark.nightly
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_all_that_rules_list_is_in_the_whole_space(name: str, form: str) -> None:
    space = whole_space(problem_of(name, form))
    assert [str(one) for one in listed_by_rules(name, form) if one not in space] == []


@pytest.mark.cc
def test_a_space_that_takes_too_long_to_count_is_drawn_from_stage_by_stage(tmp_path: Path) -> None:
    """Draws, members and a number that is too small are there at once."""
    problem = problem_of("SDDMM", "csr")
    tried = Schedule("parallelize(i, cpu_vector, no_races)"), Schedule("")
    space, every = Searched(problem, (), tried, [], seconds=0.0), searched("SDDMM", "csr", ())
    assert not space.is_counted
    assert 0 < space.count() < every.count()
    assert every.is_counted
    drawn = space.sample(6, seed=1)
    assert drawn == space.sample(6, seed=1) != space.sample(6, seed=2)
    assert len(drawn) == 6
    assert all(one in space and one in every for one in drawn)
    assert not wrong("SDDMM", "csr", list(dict.fromkeys(drawn)), tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("also", [(), CLOSED], ids=["usual", "all"])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_forty_schedules_of_what_is_searched_are_right(name: str, form: str, also: tuple[str, ...], tmp_path: Path) -> None:
    check(name, form, also, 40, tmp_path)


@pytest.mark.parametrize("stage", CLOSED)
def test_closed_stages_are_opened_one_by_one(stage: str) -> None:
    """The first choice of each is the compiler's own, so that the usual schedules stay."""
    usual, opened = (space_of("sum", "csr", also) for also in ((), (stage,)))
    written, before = ({str(label) for one in space.templates for hole in one.holes for label in hole.labels} for space in (opened, usual))
    keywords = {"merges": {"merge"}, "protocols": {"protocol"}, "formats": {"convert"}, "results": {"assemble"}}
    keywords |= {"threads": {"2", "1"}, "compilers": {"build"}}
    expected = keywords[stage] if stage != "compilers" or other_compilers() else set[str]()
    assert {label.partition("(")[0] for label in written - before} == expected
    assert all(schedule in opened for schedule in usual.sample(20, seed=1))


def test_rules_are_filters_that_can_be_left_out() -> None:
    """Without any the default nest is left, in its parallel styles, and the library."""
    problem = problem_of("SDDMM", "csr")
    every, none = (surviving_space(problem, skip)[0].templates for skip in ((), RULES))
    assert any(template.text.startswith("precompute") and "{" in template.text for template in every)
    assert not any("precompute" in template.text and "{" in template.text for template in none)
    assert "" in [template.text for template in none]


def test_draws_hang_on_the_seed() -> None:
    first, again, other = (list(drawn_nests(*SDDMM, 8, seed, Deadline())) for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_drawn_nests_are_of_the_structural_space(name: str) -> None:
    problem = problem_of(name, "csr")
    schedules = Schedules(ScheduleSpace(*started(problem.assignment, problem.formats)))
    drawn = list(drawn_nests(problem.assignment, problem.formats, 12, 0, Deadline()))
    assert drawn
    assert all(schedule in schedules for schedule in drawn)


def test_transformations_that_are_drawn_are_legal_and_change_loops() -> None:
    found = concretize(*SDDMM)
    situation = Situation(found.program, found.formats, {})
    nest = Structure(Template(), found.program, "default")
    drawn = [made.template for _, made in drawn_transformations([nest], situation, 1, 6, 0)]
    assert drawn
    assert all(further(found.program, template.parts, situation) is not None for template in drawn)
    assert all("split(" in template.text and "cpu_thread" not in template.text for template in drawn)


@pytest.mark.cc
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_what_is_searched_for_a_gpu_is_a_space() -> None:
    """Blocks, warps and threads take the outermost loops; what is drawn is right where the executor runs it thread by thread."""
    expression, operands = EXPRESSIONS["SpMV"], problem_of("SpMV", "csr").operands
    problem = make_problem(expression, operands, target="cuda", arch="sm_90")
    narrowed = whole_space(problem).filtered().whole
    space = FullSpace(narrowed.with_options(replace(narrowed.options, sizes=(2,))), problem.constants)
    drawn = space.sample(12, seed=1)
    assert len(drawn) == 12
    assert all(schedule in space for schedule in drawn)
    assert any("gpu_" in str(schedule) for schedule in drawn)
    assert not any("cpu_" in str(schedule) for schedule in drawn)
    expected = reference(parse(expression), {operand: given.to_numpy() for operand, given in operands.items()}, EXTENT)
    kernels = [compiled for schedule in drawn if (compiled := for_executor(expression, schedule)) is not None]
    assert kernels
    np.testing.assert_allclose(kernels[0].bind_operands(operands)(), expected, err_msg=str(kernels[0].schedule))


def for_executor(expression: str, schedule: Schedule) -> Kernel | None:
    """Return a kernel of a schedule; None where GPUs cannot do what it says, which the language leaves to the target."""
    try:
        kernel = compile_kernel(expression, {"A": Format("csr")}, schedule=schedule, target="cuda-executor")
        assert kernel.source
    except ScheduleError as error:
        if "GPU" not in str(error):
            raise
        return None
    return kernel
