"""``1 * e``, ``e + 0`` and ``-(-e)`` are ``e`` to every directive, and give what it gives."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, permutations

import numpy as np
import pytest
from differential.interpreted import interpreted
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.concrete.concretize import concretize
from sparsetune.compiler.concrete.nodes import loops
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.notation.nodes import accesses
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.schedule.apply import apply_schedule

EXPRESSIONS: tuple[tuple[str, str], ...] = (
    ("y(i) = s(i)", "s=s"), ("y(i) = s(i)", "s=s y=s"), ("y(i) = s(i) + t(i)", "s=s t=s"), ("y(i) = s(i) + t(i)", "s=s t=s y=s"),
    ("y(i) = s(i) * t(i)", "s=s t=s"), ("y(i) = s(i) * b(i)", "s=s y=s"), ("y(i) = s(i) / b(i)", "s=s"), ("y = s(i) / b(i)", "s=s"),
    ("y(i) = s(i) / t(i)", "s=s t=s y=s"), ("y(i) = b(i)", ""), ("y(i) = b(i) + s(i)", "s=s"), ("y(i) = s(i) - t(i) * b(i)", "s=s t=s y=s"),
    ("y(i) = A(i,j) * x(j)", "A=ds"), ("y(i) = A(i,j) * x(j)", "A=ss x=s"), ("y(i) = A(i,j) * x(j) + s(i)", "A=ds s=s"),
    ("y(i) = A(i,j) * x(j) / b(i)", "A=ds"), ("Y(i,j) = A(i,j)", "A=ds Y=ds"), ("Y(i,j) = A(i,j) + B(i,j)", "A=ds B=ds Y=ds"),
    ("Y(i,j) = A(i,j) * B(i,j)", "A=ds B=ss"), ("Y(i,k) = A(i,j) * B(j,k)", "A=ds B=ds Y=ds"), ("Y(i,k) = A(i,j) * B(j,k)", "A=ds"),
    ("Y(i,j) = A(i,j) * C(i,k) * D(k,j)", "A=ds Y=ds"), ("a = A(i,j)", "A=ss"), ("a = A(i,j) * B(i,j)", "A=ds B=ds"),
    ("Y(i,j) = A(i,j) * (B(i,j) + C(i,j))", "A=ds B=ds"),
)  # fmt: skip
VARIANTS = ("1 * ({})", "({}) + 0", "-(-({}))", "0.0 + ({}) * 1", "-(0 - ({}))")


def variant(expression: str, form: str) -> str:
    target, value = expression.split(" = ")
    return f"{target} = {form.format(value)}"


def directives(expression: str, formats: dict[str, str]) -> Iterator[str]:
    """Yield directives of all groups for the default program of an expression."""
    assignment = parse(expression)
    program = concretize(assignment, formats_of(assignment, formats)).program
    names, value = loops(program.statement), expression.split(" = ")[1]
    for order in permutations(names):
        yield f"reorder({', '.join(order)})"
    for outer, inner in pairwise(names):
        yield f"collapse({outer}, {inner}, f)"
        for access in dict.fromkeys(accesses(assignment.value)):
            yield f"collapse({outer}, {inner}, f); pos(f, p, {access.tensor})"
    for name in names:
        yield f"split({name}, o, n, 2)"
        yield f"unroll({name}, 2)"
        yield f"precompute({value}, {name}, {name}, w)"
        for race in ("no_races", "atomics", "temporary"):
            yield f"parallelize({name}, cpu_thread, {race})"
        yield f"parallelize({name}, cpu_vector, no_races)"
        for way in ("two_finger", "gallop", "locate"):
            yield f"merge({name}, {way})"
        for access in dict.fromkeys(accesses(assignment.value)):
            yield f"pos({name}, p, {access.tensor})"
            yield f"pos({name}, p, {access.tensor}); split(p, o, n, 2); parallelize(o, cpu_thread, atomics)"
    for access in dict.fromkeys(accesses(assignment.value)):
        yield f"protocol({access.tensor}, {', '.join(['locate'] * len(access.subscripts))})"
    factors = [str(part) for part in value.split(" * ")]
    yield f"factors({', '.join(reversed(factors))})"
    yield "loopfuse(1, true, [])"
    for strategy in ("append", "insert", "workspace"):
        yield f"assemble({assignment.target.tensor}, {strategy})"


def accepted(expression: str, formats: dict[str, str]) -> list[str]:
    """Return the directives that an expression accepts, of those above for it."""
    kinds, found = formats_of(parse(expression), formats), []
    program = concretize(parse(expression), kinds).program
    for schedule in directives(expression, formats):
        try:
            apply_schedule(program, schedule, kinds, {})
        except ScheduleError:
            continue
        found.append(schedule)
    return found


@pytest.mark.parametrize(("expression", "kinds"), EXPRESSIONS)
def test_they_are_one_program_and_give_the_same_under_any_directive(expression: str, kinds: str) -> None:
    formats = dict(item.split("=") for item in kinds.split())
    program = concretize(parse(expression), formats_of(parse(expression), formats)).program
    schedules = ["", *accepted(expression, formats)]
    assert len(schedules) > 2
    rng = np.random.default_rng(0)
    given = {}
    for access in accesses(parse(expression).value):
        extents = tuple(4 + "ijk".index(name) for name in access.indices)
        given[access.tensor] = rng.integers(1, 5, extents) * (rng.random(extents) < 0.5).astype(float)
    wanted, _ = interpreted(compile_kernel(expression, formats).bind(**given))
    for place, form in enumerate(VARIANTS):
        text = variant(expression, form)
        assert concretize(parse(text), formats_of(parse(text), formats)).program == program, text
        schedule = schedules[place * len(schedules) // len(VARIANTS)]
        found, _ = interpreted(compile_kernel(text, formats, schedule=schedule).bind(**given))
        assert _plain(found).shape == _plain(wanted).shape
        np.testing.assert_allclose(_plain(found), _plain(wanted), rtol=1e-12, err_msg=f"{text}: {schedule}")
        assert getattr(found, "nnz", None) == getattr(wanted, "nnz", None)


@pytest.mark.parametrize(("written", "schedule"), [
    ("1 * B(i,j) * C(i,k) * D(k,j)", "factors(1, D, C, B)"), ("B(i,j) * C(i,k) * D(k,j) + 0", "factors(D, C, B)"),
    ("-(-(B(i,j) * C(i,k))) * D(k,j)", "precompute(1 * B(i,j) * C(i,k), [], [], w)"),
])  # fmt: skip
def test_directives_may_name_them_too(written: str, schedule: str) -> None:
    assert compile_kernel(f"Z(i,j) = {written}", {"B": "csr"}, schedule=schedule).loop_nest


def test_a_zero_below_the_line_keeps_its_sign() -> None:
    found, _ = interpreted(compile_kernel("y(i) = 1 / (b(i) + 0)").bind(b=np.array([-0.0, 2.0])))
    assert found.tolist() == [np.inf, 0.5]


def _plain(found: object) -> np.ndarray:
    return np.asarray(found.to_numpy() if hasattr(found, "to_numpy") else found)  # type: ignore[attr-defined]
