"""Recorded numbers compute as plain ones do, write down every step, and own up to what they cannot write down."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sparsetune as st
from differential.cases import random_case
from hypothesis import given, settings
from hypothesis import strategies as st_draw
from sparsetune.tuner import recording
from sparsetune.tuner.facts import positions, shape, size
from sparsetune.tuner.model import static_choice
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.recorded_problem import recorded
from sparsetune.tuner.recording import Recorded, RecordedOperand, Recording, fixed, plain
from sparsetune.tuner.replay import Operands, _question, followed
from sparsetune.tuner.resolve import make_problem
from sparsetune.tuner.steps import hypotenuse, log2, root

NUMBERS = st_draw.integers(1, 10**9) | st_draw.floats(1e-9, 1e9)
ARITHMETIC: list[Callable[[Any, Any], Any]] = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, hypotenuse, max, min,
]  # fmt: skip
UNARY: list[Callable[[Any], Any]] = [
    operator.neg, abs, round, math.ceil, log2, root, lambda one: round(one, 3), lambda one: sum([one, one]),
]  # fmt: skip


@given(one=NUMBERS, other=NUMBERS, compute=st_draw.sampled_from(ARITHMETIC), further=st_draw.sampled_from(UNARY))
def test_recorded_numbers_are_the_plain_ones(one: float, other: float, compute: Callable[..., Any], further: Callable[..., Any]) -> None:
    made = Recording()
    left, right = made.asked("a.question", "A", [], one), made.asked("a.question", "B", [], other)
    for pair in ((left, right), (left, other), (one, right)):
        result = compute(*pair)
        assert plain(result) == compute(one, other)
        assert type(plain(result)) is type(compute(one, other))
        if plain(result) > 0:
            assert plain(further(result)) == further(compute(one, other))
    assert made.is_whole


def test_numpy_leaves_arithmetic_to_recorded_numbers() -> None:
    made = Recording()
    number = made.asked("a.question", "A", [], 3)
    assert isinstance(np.float64(2.0) * number, Recorded)
    assert plain(np.float64(2.0) * number) == 6.0
    assert ["=", 2.0] in made.steps


def test_equal_steps_are_written_once_and_constants_keep_their_types() -> None:
    made = Recording()
    number = made.asked("a.question", "A", [], 3)
    assert [plain(number * 1), plain(number * 1.0), plain(number * 1)] == [3, 3.0, 3]
    assert [number < 4 for _ in range(2)] == [True, True]
    ask, *others = made.steps
    assert ask == ["ask", "a.question", "A"]
    assert others == [["=", 1], ["*", 0, 1], ["=", 1.0], ["*", 0, 3], ["=", 4], ["?", "<", 0, 5, True, 0]]
    assert [type(step[1]) for step in made.steps if step[0] == "="] == [int, float, int]


@pytest.mark.parametrize("take", [float, int, operator.index, hash, str, repr, "{:g}".format, math.log, range, np.zeros])
def test_whoever_takes_the_plain_number_spoils_the_recording(take: Callable[[Any], object]) -> None:
    made = Recording()
    number = made.asked("a.question", "A", [], 3)
    take(number)
    assert not made.is_whole


def test_whoever_looks_at_the_stored_arrays_spoils_the_recording() -> None:
    tensor, made = st.tensor(np.eye(3), "csr"), Recording()
    operand = RecordedOperand(made, "A", tensor)
    assert ([plain(one) for one in shape(operand)], [plain(one) for one in positions(operand)]) == ([3, 3], [3.0, 3.0])
    assert (plain(size(operand)), operand.format, operand.dtype) == (tensor.nbytes, tensor.format, tensor.dtype)
    assert made.is_whole
    assert len(operand.levels[1].crd) == 3
    assert not made.is_whole


def test_a_number_that_is_fixed_is_compared() -> None:
    made = Recording()
    assert fixed(made.asked("a.question", "A", [], 32)) == 32
    assert made.steps[-1][:2] == ["?", "=="]
    assert fixed(5) == 5


def random_problem(seed: int) -> tuple[Problem, dict[str, Any]] | None:
    """A problem whose choice is recorded, with its operands; None where it is of another kind."""
    case = random_case(seed)
    operands = {name: operand.given for name, operand in case.operands.items()}
    found = make_problem(case.text, operands, case.result_format, threads=1 + seed % 2, semiring=case.semiring, shape=case.given or None)
    return None if found.is_compound or case.given else (found, operands)


@settings(max_examples=60)
@given(seed=st_draw.integers(0, 10**6))
def test_choices_for_random_expressions_are_recorded_whole_and_followed_again(seed: int) -> None:
    found = random_problem(seed)
    if found is None:
        return
    problem, operands = found
    wanted, made = static_choice(problem), Recording()
    choice = static_choice(recorded(problem, made))
    assert (choice is None) == (wanted is None)
    assert choice is None or wanted is None or (choice.schedule, plain(choice.gain)) == (wanted.schedule, wanted.gain)
    assert made.is_whole
    end = ["end", "", "", ""]
    assert followed([[*made.steps, end]], Operands(operands).answer) is end


def test_questions_are_functions_of_modules_that_import_little() -> None:
    operand = RecordedOperand(Recording(), "A", st.tensor(np.eye(3), "csr"))
    size(operand)
    assert operand._recording.steps == [["ask", "facts.size", "A"]]
    assert _question("facts.size") is size
    assert recording.plain(size(operand)) == operand._tensor.nbytes
