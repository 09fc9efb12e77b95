"""Generated CUDA C++ is right where the executor, or a GPU, runs it: all mappings, odd operands, random cases, templates."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from differential import gpu, gpu_templates
from differential.gpu_mappings import EXTENTS, MAPPINGS, SPMV, dense, operands
from differential.runner import run_isolated
from differential.whole_numbers import reference
from sparsetune.compiler.notation.nodes import accesses
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.space.library import LIBRARY

pytestmark = [pytest.mark.cc, pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")]


def test_every_mapping_is_right(tmp_path: Path) -> None:
    made = {
        name: st.compile(expression, formats, schedule=schedule, target=gpu.TARGET)
        for name, (expression, formats, schedule) in MAPPINGS.items()
    }
    gpu.build([kernel.default_kernel for kernel in made.values()], tmp_path, "mappings")
    for name, kernel in made.items():
        expression, formats, _ = MAPPINGS[name]
        for seed, density in ((0, 0.3), (1, 0.02)):
            arrays = operands(expression, formats, seed, density)
            expected = reference(expression, arrays, EXTENTS)
            np.testing.assert_array_equal(dense(kernel(**arrays)), expected, err_msg=f"{name}, {density}")
ODD = ("one row", "empty rows", "nothing")


def odd_operands(expression: str, formats: dict[str, str], pattern: str, rows: int) -> tuple[dict[str, Any], dict[str, int]]:
    """Return operands whose first slices are next to all empty, but for one that has everything, or all of them; and the extents."""
    rng, found = np.random.default_rng(0), {}
    extents = dict.fromkeys("ijklmr", 5)
    extents |= {"one row": {"j": 300}, "empty rows": {"i": rows}, "nothing": {}}[pattern]
    for access in accesses(parse(expression).value):
        shape = tuple(extents[name] for name in access.indices)
        values = rng.integers(1, 5, shape).astype(float)
        if access.tensor in formats:
            kept = np.zeros(shape, bool)
            if pattern == "one row":
                kept[2] = True
            elif pattern == "empty rows":
                kept[[1, -2]] = rng.random((2, *shape[1:])) < 0.6
            values *= kept
        found[access.tensor] = scipy.sparse.csr_array(values) if access.tensor in formats and values.ndim == 2 else values
    return found, extents


@pytest.mark.parametrize("rows", [700, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_rows_of_any_length_in_all_mappings(rows: int, tmp_path: Path) -> None:
    """One row with all entries, so many rows next to none of which has entries, and no entries."""
    library = {f"library: {found.name}, {found.expression}": found for found in LIBRARY if found.target == "cuda"}
    every = MAPPINGS | {name: (found.expression, dict(found.formats), found.text) for name, found in library.items() if not found.extents}
    made = {name: st.compile(text, formats, schedule=schedule, target=gpu.TARGET) for name, (text, formats, schedule) in every.items()}
    gpu.build([kernel.default_kernel for kernel in made.values()], tmp_path, "mappings")
    for name, kernel in made.items():
        expression, formats, _ = every[name]
        for pattern in ODD:
            arrays, extents = odd_operands(expression, formats, pattern, rows if expression == SPMV and "A" in formats else 400)
            if expression == SPMV:
                x = arrays["x"]
                expected = arrays["A"] @ (x if isinstance(x, np.ndarray) else x.toarray().ravel())
            else:
                plain = {tensor: value if isinstance(value, np.ndarray) else value.toarray() for tensor, value in arrays.items()}
                expected = reference(expression, plain, extents)
            np.testing.assert_array_equal(dense(kernel(**arrays)), expected, err_msg=f"{name}, {pattern}")


@pytest.mark.slow
def test_random_schedules_are_right() -> None:
    found = run_isolated(gpu.draws(0, 30).seeds, chunk=15, work=gpu.run_gpu, describe=gpu.random_gpu)
    assert not found, "\n".join(map(str, found))


def test_few_legal_schedules_have_no_form_on_a_gpu() -> None:
    drawn = gpu.draws(0, 100)
    assert len(drawn.seeds) == 100
    assert sum(drawn.refused.values()) <= 10, drawn
    assert str(drawn).startswith(f"{100 + sum(drawn.refused.values())} drawn, 100 to run, ")
    assert sum("gpu_" in gpu.random_gpu(seed).schedule for seed in drawn.seeds) >= 50


@pytest.mark.slow
def test_random_expressions_are_right() -> None:
    found = run_isolated(range(60), chunk=30, work=gpu.run_mapped)
    assert not found, "\n".join(map(str, found))


@pytest.mark.slow
def test_random_sums_are_carried_rightly() -> None:
    found = run_isolated(range(10), chunk=10, work=gpu.run_carried, describe=gpu.carried_gpu)
    assert not found, "\n".join(map(str, found))


@pytest.mark.nightly
def test_a_campaign_of_random_sums_that_are_carried() -> None:
    found = run_isolated(range(1000, 1500), chunk=25, work=gpu.run_carried, describe=gpu.carried_gpu)
    assert not found, "\n".join(map(str, found))


@pytest.mark.nightly
def test_a_campaign_of_random_schedules() -> None:
    drawn = gpu.draws(1000, 2000)
    print(drawn)
    found = run_isolated(drawn.seeds, chunk=25, work=gpu.run_gpu, describe=gpu.random_gpu)
    assert not found, "\n".join(map(str, found))


@pytest.mark.nightly
def test_a_campaign_of_random_expressions() -> None:
    found = run_isolated(range(1000, 6000), chunk=50, work=gpu.run_mapped)
    assert not found, "\n".join(map(str, found))


def test_templates_of_every_kernel_are_right() -> None:
    """A few of those that have few."""
    first = [kernel * gpu_templates.EACH + number for kernel in (0, 1, 4, 5) for number in (0, 2)]
    assert not gpu.run_templates({number: gpu_templates.one_template(number) for number in first}, first)


@pytest.mark.nightly
@pytest.mark.parametrize(("kernel", "part", "parts"), gpu_templates.NIGHT)
def test_all_templates_are_right(kernel: int, part: int, parts: int) -> None:
    numbers = gpu_templates.numbers_of_templates(kernel)[part::parts]
    assert numbers
    work = partial(gpu.run_templates, {number: gpu_templates.one_template(number) for number in numbers})
    found = run_isolated(numbers, chunk=100, work=work, describe=gpu_templates.one_template)
    assert not found, "\n".join(map(str, found))


def test_what_the_tuner_lists_for_gpus_is_right() -> None:
    found = gpu_templates.searched_templates()
    assert not any("cpu_" in case.schedule for case in found)
    assert {unit for case in found for unit in gpu.UNITS if unit in case.schedule} == set(gpu.UNITS)
    assert not gpu.run_searched(range(0, len(found), 23))


@pytest.mark.nightly
def test_all_that_the_tuner_lists_for_gpus_is_right() -> None:
    found = run_isolated(range(len(gpu_templates.searched_templates())), chunk=20, work=gpu.run_searched)
    assert not found, "\n".join(map(str, found))
