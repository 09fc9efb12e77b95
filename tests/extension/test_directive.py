"""Two directives that no file of the compiler knows: one that tiles two loops by steps that there are, one that rewrites expressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from differential import scheduled
from differential.scheduled import Scheduled, kinds_of
from sparsetune.compiler.concrete.nodes import Assign, Program, Stmt, transform
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.notation.nodes import Mul
from sparsetune.compiler.schedule import directives as d
from sparsetune.compiler.schedule import loop_directives
from sparsetune.compiler.schedule.apply import register, unregister
from sparsetune.compiler.schedule.context import Context
from sparsetune.compiler.schedule.rules import Rule, refuse
from sparsetune.compiler.schedule.schedule import Schedule


@dataclass(frozen=True)
class Tile(d.Directive):
    """Go through two directly nested loops in squares."""

    keyword = "tile"
    parameters = (d.Parameter("row", "index"), d.Parameter("column", "index"), d.Parameter("size", "integer"))
    row: str
    column: str
    size: int


@dataclass(frozen=True)
class Mirror(d.Directive):
    """Write the factors of all products the other way round."""

    keyword = "mirror"
    parameters = ()


def tile(program: Program, directive: Tile, context: Context) -> Program:
    row, column, path = directive.row, directive.column, directive.path
    for name in (row, column):
        program = loop_directives.split(program, d.Split(name, f"{name}_tile", f"{name}_in", directive.size, path=path), context)
    order = (f"{row}_tile", f"{column}_tile", f"{row}_in", f"{column}_in")
    return loop_directives.reorder(program, d.Reorder(order, path=path), context)


def mirror(program: Program, directive: Mirror, context: Context) -> Program:
    def written(node: Stmt) -> Stmt | None:
        if isinstance(node, Assign) and isinstance(node.value, Mul):
            return replace(node, value=node.value.rebuild(node.value.children[::-1]))
        return None

    statement = transform(program.statement, written)
    if statement == program.statement:
        refuse(Rule.FACTORS_COMPLETE, "there is no product")
    return replace(program, statement=statement)


@pytest.fixture(autouse=True)
def _directives() -> Iterator[None]:
    register(Tile, tile)
    register(Mirror, mirror)
    yield
    unregister(Tile)
    unregister(Mirror)


CASES = (
    ("y(i) = A(i,j) * x(j)", "", "tile(i, j, 4)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "tile(i, j, 4)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "tile(i, j, 4); mirror(); parallelize(i_tile, cpu_thread, no_races)"),
    ("Y(i,k) = A(i,j) * X(j,k)", "A=csr", "reorder(i, k, j); tile(i, k, 3)"),
    ("Y(i,k) = A(i,j) * X(j,k)", "A=csr", "mirror(); parallelize(k, cpu_vector, no_races)"),
    ("Z(i,j) = B(i,j) + C(i,j)", "B=csr C=csr", "tile(i, j, 2)"),
    ("Z(i,j) = B(i,j) + C(i,j)", "B=csr C=csr Z=csr", "tile(i, j, 2)"),
    ("Z(i,j) = B(i,j) * C(i,k) * D(j,k)", "B=csr Z=csr", "mirror(); split(i, a, b, 2)"),
    ("C(i,j) = A(i,k) * B(k,j)", "A=csr B=csr C=csr", "mirror()"),
    ("T(i,j) = B(i,j,k) * c(k)", "B=csf", "tile(i, j, 3); mirror()"),
)


@pytest.mark.parametrize(("expression", "kinds", "schedule"), CASES)
def test_directives_of_ones_own_are_lowered_and_right(expression: str, kinds: str, schedule: str) -> None:
    case = Scheduled(0, expression, kinds_of(kinds), schedule)
    assert scheduled.interpreted_fault(case, case.compiled()) is None


@pytest.mark.cc
def test_they_are_compiled_too() -> None:
    case = Scheduled(0, "y(i) = A(i,j) * x(j)", kinds_of("A=csr"), "tile(i, j, 4); mirror(); parallelize(i_tile, cpu_thread, no_races)")
    assert scheduled.fault(case, case.compiled()) is None


def test_they_have_texts_and_reasons() -> None:
    assert str(Schedule("tile( i,j , 4 );mirror()")) == "tile(i, j, 4); mirror()"
    with pytest.raises(ScheduleError, match=r"directive 1, mirror\(\): there is no product"):
        Scheduled(0, "y(i) = A(i,j)", kinds_of("A=csr"), "mirror()").compiled()
    with pytest.raises(ScheduleError, match=r"directive 1, tile\(i, j, 0\)"):
        Scheduled(0, "y(i) = A(i,j) * x(j)", kinds_of("A=csr"), "tile(i, j, 0)").compiled()
    with pytest.raises(ScheduleError, match=r"tile\(j, i, 4\)"):
        Scheduled(0, "Z(i,j) = B(i,j) + C(i,j)", kinds_of("B=csr"), "precompute(B(i,j), j, j, w); tile(j, i, 4)").compiled()
