"""Results in every kind of level that appends, inserts or places: the kernel writes them as they are asked for, and they are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sparsetune as st
from sparsetune.compiler.format import Format, parse_format
from sparsetune.compiler.pipeline import compile_kernel

USUAL = ("b", "h", "coo", "db", "bs", "bd", "dp", "dh", "pd", "sqd", "bsq", "sqh", "db; 1, 0")
OTHERS = (
    "s", "csr", "dcsr", "csf", "dsq", "dss", "ssd", "dsd", "sqs", "bb", "bdb", "bds", "bsd", "p", "sp", "bp", "sh", "bh", "hd",
    "dsp", "ddh", "ssh",
)  # fmt: skip
THREADED = "parallelize(i, cpu_thread, no_races, dynamic, 1)"
SCHEDULES = ("", THREADED, "assemble(C, insert)", f"{THREADED}; assemble(C, insert)")


def problem(order: int, rows: int = 12, seed: int = 0) -> tuple[str, dict[str, str], dict[str, Any], Any]:
    """Return an expression that sums and leaves some fibres empty, formats and operands, and what it gives."""
    rng = np.random.default_rng(seed)
    shapes = {1: ((rows, 9), (9,)), 2: ((rows, 9), (9, 11)), 3: ((rows, 9), (9, 5, 6))}[order]
    left, right = (np.where(rng.random(shape) < 0.15, rng.integers(1, 9, shape), 0).astype(float) for shape in shapes)
    left[::3] = 0
    indices = ("i", "i,j", "i,j,l")[order - 1]
    formats = {"A": "csr", "B": ("s", "csr", "csf")[order - 1]}
    given = {"A": st.tensor(left, formats["A"]), "B": st.tensor(right, formats["B"])}
    return f"C({indices}) = A(i,k) * B({','.join(['k', *indices.split(',')[1:]])})", formats, given, np.tensordot(left, right, 1)


def of_matrices(texts: tuple[str, ...]) -> list[str]:
    return [text for text in texts if len(parse_format_of(text)) == 2]


def parse_format_of(text: str) -> Format:
    orders = {"coo": 2, "csf": 3, "csr": 2, "dcsr": 2}
    return parse_format(text, orders.get(text, len(text.partition(";")[0])))


def check(made: Any, expected: Any, form: Format) -> None:
    st.Tensor(made.shape, made.format, made.levels, made.values, made.fill_value)  # whose arrays are all looked at
    assert made.format == form
    assert np.array_equal(made.to_numpy(), expected)
    if not form.levels[-1].full:
        assert made.nnz == np.count_nonzero(expected != made.fill_value)


def schedules_of(form: Format) -> tuple[str, ...]:
    """Return the schedules for loops in mode order: threads go through the outermost level."""
    return SCHEDULES if form.order[0] == 0 else SCHEDULES[::2]


def check_written(text: str, schedules: tuple[str, ...]) -> None:
    form = parse_format_of(text)
    expression, formats, given, expected = problem(len(form))
    for schedule in schedules:
        bound = compile_kernel(expression, {**formats, "C": form}, schedule=schedule).bind(**given, threads=3)
        assert bound.kernel.spec.result.format == form
        check(bound(), expected, form)
        check(bound(), expected, form)


@pytest.mark.cc
@pytest.mark.parametrize("text", USUAL)
def test_kernels_write_what_is_asked_for(text: str) -> None:
    check_written(text, schedules_of(parse_format_of(text))[:2])


@pytest.mark.cc
@pytest.mark.nightly
@pytest.mark.parametrize("text", [*USUAL, *OTHERS])
def test_kernels_write_all_kinds_however_they_are_scheduled(text: str) -> None:
    check_written(text, schedules_of(parse_format_of(text)))


@pytest.mark.parametrize("text", of_matrices((*USUAL, *OTHERS)))
def test_loop_ir_means_the_same(text: str) -> None:
    form = parse_format_of(text)
    expression, formats, given, expected = problem(2)
    for schedule in schedules_of(form):
        check(st.compile(expression, {**formats, "C": form}, schedule=schedule, target="interpreter")(**given), expected, form)


@pytest.mark.cc
@pytest.mark.parametrize("text", of_matrices(USUAL))
def test_results_that_store_nothing(text: str) -> None:
    form = parse_format_of(text)
    expression, formats, given, expected = problem(2)
    kernel = st.compile(expression, {**formats, "C": form}, schedule=THREADED if form.order[0] == 0 else "")
    check(kernel(**{**given, "A": st.tensor(np.zeros((12, 9)), "csr")}), 0 * expected, form)
    none = {"A": st.tensor(np.zeros((0, 9)), "csr"), "B": st.tensor(np.zeros((9, 0)), "csr")}
    check(kernel(**none), np.zeros((0, 0)), form)


@pytest.mark.cc
@pytest.mark.parametrize(("text", "add"), [("coo", "min"), ("bd", "max"), ("db", "min"), ("dp", "max"), ("hd", "min")])
def test_results_of_other_semirings_and_dtypes(text: str, add: str) -> None:
    form = parse_format_of(text)
    fill = np.float32(np.inf if add == "min" else -np.inf)
    expression, formats, given, _ = problem(2)
    operands = {
        name: st.Tensor(whole.shape, whole.format, whole.levels, whole.values.astype(np.float32), fill) for name, whole in given.items()
    }
    reduce = np.min if add == "min" else np.max
    left, right = (operand.to_numpy() for operand in operands.values())
    expected = reduce(left[:, :, None] + right[None], axis=1)
    made = st.compile(expression, {**formats, "C": form}, schedule=THREADED, semiring=(add, "+"), dtype="float32")(**operands, threads=2)
    check(made, expected, form)
    assert made.dtype == np.float32


@pytest.mark.cc
def test_results_that_are_inserted_into_take_components_in_any_order() -> None:
    """Outer products into a bitmap: no workspace collects what comes out of order."""
    expression, formats, given, expected = problem(2)
    for text in ("bb", "db; 1, 0"):
        kernel = st.compile(expression, {"A": "csc", "B": formats["B"], "C": text}, schedule="reorder(k, i, j)")
        assert "where" not in kernel.loop_nest
        check(kernel(A=given["A"].convert("csc"), B=given["B"]), expected, parse_format_of(text))


def test_kinds_above_which_order_is_lost_are_converted() -> None:
    expression, formats, given, expected = problem(2)
    for text in ("hs", "pp", "sb", "dh; 1, 0", "dn"):
        form = parse_format_of(text)
        check(st.compile(expression, {**formats, "C": form}, target="interpreter")(**given), expected, form)


@pytest.mark.parametrize(
    ("expression", "schedule"),
    [
        ("y(k) = B(k) * C(k)", "pos(k, p, B)"),
        ("y(k) = B(k) * C(k)", "pos(k, p, B); split(p, a, b, 4)"),
        ("y(k) = B(k) * C(k)", "pos(k, p, C)"),
    ],
)
def test_positions_of_hashed_levels_come_in_no_order(expression: str, schedule: str) -> None:
    left, right = np.zeros(64), np.arange(64.0) * (np.arange(64) % 3 == 0)
    left[[3, 17, 40, 50, 9, 33]] = [1, 2, 3, 4, 5, 6]
    kernel = st.compile(expression, {"B": "hashed", "C": "compressed", "y": "compressed"}, schedule=schedule)
    result = kernel(B=st.tensor(left, "hashed"), C=st.tensor(right, "compressed"))
    assert result.levels[0].parts["crd"].tolist() == [3, 9, 33]
    np.testing.assert_array_equal(result.to_numpy(), left * right)
