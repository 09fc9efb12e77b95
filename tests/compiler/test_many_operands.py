"""Products and sums of hundreds of operands: what grows with every operand is bounded, and says so where it stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from math import prod

import numpy as np
import pytest
import sparsetune as st
from effort import calls
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.concrete.concretize import concretize
from sparsetune.compiler.deadline import Deadline, TimeOver
from sparsetune.compiler.errors import ExpressionError, ScheduleError
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.passes.short_sums import MOST_SUMS
from sparsetune.compiler.space import products
from sparsetune.compiler.space.candidates import candidates
from sparsetune.compiler.space.situation import Situation, Structure
from sparsetune.compiler.space.structures import structures
from sparsetune.compiler.space.template import Template


def product_of(count: int) -> str:
    return "y(i) = " + " * ".join(f"a{number}(i)" for number in range(count))


def chain_of(count: int) -> str:
    return f"Y(i0,i{count}) = " + " * ".join(f"A{number}(i{number},i{number + 1})" for number in range(count))


def situation_of(text: str, formats: dict[str, str] | None = None, deadline: Deadline | None = None) -> Situation:
    assignment = parse(text)
    found = concretize(assignment, formats_of(assignment, formats or {}))
    return Situation(found.program, found.formats, {}, deadline or Deadline())


def test_a_deadline_ends_and_says_that_it_cut_something() -> None:
    now = [0.0]
    whole = Deadline(10, clock=lambda: now[0])
    part = whole.part(0.5)
    part.watch()
    assert not whole.cut
    now[0] = 6.0
    assert (whole.over, whole.cut) == (False, False), "nothing was cut as long as nothing found the time over"
    with pytest.raises(TimeOver):
        part.watch()
    assert (part.cut, whole.cut, whole.over) == (True, True, False)
    assert not Deadline().over
    assert not Deadline().part(0.5).over


def test_ways_to_take_a_product_apart_are_bounded() -> None:
    situation = situation_of(product_of(200))
    start = Structure(Template(), situation.program, "default")
    assert sum(1 for _ in products._splits(start, situation)) == products.MAX_SPLITS
    few = situation_of(product_of(9))
    assert sum(1 for _ in products._splits(Structure(Template(), few.program, "default"), few)) == 2**9 - 1 - 9 - 1


def test_legal_orders_are_found_among_the_factorial_of_all() -> None:
    text = chain_of(20)
    situation = situation_of(text, {f"A{number}": "dcsr" for number in range(20)})
    found = list(islice((structure.origin for structure in structures(situation)), 3))
    assert found[0] == "default", "every other order of the 21 loops breaks the order of storage; they are not tried one by one"


def test_candidates_end_in_time_with_the_default_and_a_forest_at_least() -> None:
    assignment = parse(chain_of(40))
    over = Deadline(0, clock=time.monotonic)
    default, forest = candidates(assignment, formats_of(assignment, {}), deadline=over)
    assert (default.template, forest.origin, over.cut) == (Template(), "forest", True)
    assert len(candidates(parse(product_of(256)), formats_of(parse(product_of(256)), {}), threads=2)) > 1


def test_every_matrix_of_a_long_chain_is_multiplied_once() -> None:
    chained = next(structure for structure in structures(situation_of(chain_of(24))) if structure.origin == "chain")
    assert len(chained.program.workspaces) == 22


def test_long_chains_take_as_long_to_compile_as_they_have_matrices() -> None:
    def effort(count: int) -> int:
        factors = [f"B{number}(i{number},i{number + 1})" for number in range(count)]
        formats = dict.fromkeys([f"B{number}" for number in range(count)] + ["A"], "csr")
        return calls(lambda: st.compile(f"A(i0,i{count}) = " + " * ".join(factors), formats).source)

    effort(4)  # what is known of classes is found once
    short, middle, long = effort(16), effort(32), effort(48)
    assert long - middle <= 1.2 * (middle - short)


@pytest.mark.parametrize(("count", "form"), [(250, None), (250, "csr")])
def test_loops_that_are_nested_too_deeply_are_refused_in_words(count: int, form: str | None) -> None:
    """Lowering goes down some functions for every loop, of which Python allows a thousand."""
    kernel = st.compile(chain_of(count), {f"A{number}": form for number in range(count)})
    for ask in ("source", "stages", "loop_nest"):
        with pytest.raises(ScheduleError, match=r"more loops stand inside one another than .* compute the expression in parts"):
            getattr(kernel, ask)


@pytest.mark.parametrize("ask", [st.evaluate, st.tune])
def test_no_schedule_is_sought_for_loops_that_are_nested_too_deeply(ask: Callable[..., object]) -> None:
    """What is refused in the end is refused at once, not after the static model has gone through candidates."""
    operands = {f"A{number}": st.tensor(np.eye(3), "csr") for number in range(100)}

    def refused() -> None:
        with pytest.raises(ScheduleError, match="more loops stand inside one another"):
            ask(chain_of(100), operands, output_format="csr")

    refused()  # imports
    assert calls(refused) < 400_000


def test_tiles_of_tiles_are_refused_in_words_too() -> None:
    tiles = "; ".join(f"split(i{number or ''}, o{number}, i{number + 1}, 2)" for number in range(250))
    with pytest.raises(ScheduleError, match="more loops stand inside one another"):
        _ = st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}, schedule=tiles).source


@pytest.mark.parametrize("form", [None, "s"])
@pytest.mark.parametrize(("operator", "count"), [("*", 250), ("+", 250), ("/", 120)])
def test_expressions_of_the_greatest_size_become_code(operator: str, count: int, form: str | None) -> None:
    text = "y(i) = " + f" {operator} ".join(f"a{number}(i)" for number in range(count))
    kernel = st.compile(text, {f"a{number}": form for number in range(count)}, dtype="float64")
    assert kernel.loop_nest
    assert kernel.source.count("a7_vals[") <= 4


@pytest.mark.parametrize(("operator", "form"), [("*", "s"), ("+", "s"), ("+", None)])
def test_many_sparse_operands_give_what_dense_ones_do(operator: str, form: str | None) -> None:
    rng, count = np.random.default_rng(3), 40
    dense = {f"a{number}": rng.random(60) * (rng.random(60) < 0.97) for number in range(count)}
    text = "y(i) = " + f" {operator} ".join(f"{name}(i)" for name in dense)
    result = st.evaluate(text, {name: st.tensor(values, "s") for name, values in dense.items()}, form, schedule="default")
    expected = prod(dense.values()) if operator == "*" else sum(dense.values())
    np.testing.assert_allclose(result.to_numpy() if form else result, expected, rtol=1e-12)


def test_products_of_stored_sums_are_refused_where_they_grow_without_bound() -> None:
    text = "y(i) = " + " * ".join(f"(a{number}(i) + b{number}(i))" for number in range(20))
    formats = {f"{name}{number}": "s" for name in "ab" for number in range(20)}
    with pytest.raises(ExpressionError, match="one by one: 1048576, more than 1024"):
        st.compile(text, formats)


@pytest.mark.parametrize("form", [None, "s"])
def test_many_stored_denominators_are_read_into_scalars(form: str | None) -> None:
    rng = np.random.default_rng(4)
    dense = {f"a{number}": (rng.integers(1, 5, 60) * (rng.random(60) < 0.9)).astype(float) for number in range(9)}
    text = "y(i) = " + " / ".join(f"{name}(i)" for name in dense)
    result = st.evaluate(text, {name: st.tensor(values, "s") for name, values in dense.items()}, form, schedule="default")
    expected, *below = dense.values()
    with np.errstate(all="ignore"):
        for values in below:
            expected = expected / values
    np.testing.assert_array_equal(result.to_numpy() if form else result, expected)


def test_scalar_that_is_divided_by_may_be_nothing() -> None:
    operands = {"a": st.tensor(np.array([1.0, 0, 0, 2]), "s"), "b": st.tensor(np.array([1.0, 0, 3, 0]), "s")}
    result = st.evaluate("y(i) = a(i) / b(i)", operands, "s", schedule="precompute(b(i), [], [], t)")
    np.testing.assert_array_equal(result.to_numpy(), [1, np.nan, 0, np.inf])
    assert result.to_coordinates()[0].tolist() == [[0, 1, 3]], "0 / 3 is no entry"


def test_many_sums_of_a_row_have_one_form() -> None:
    def rows(count: int) -> bool:
        text = "y(i) = " + " + ".join(f"A{number}(i,j) * x{number}(j)" for number in range(count))
        return "i_rows" in st.compile(text, {f"A{number}": "csr" for number in range(count)}, dtype="float64").source

    assert not rows(MOST_SUMS + 1)
    assert rows(5) == rows(MOST_SUMS), "two forms, if the machine gathers"
