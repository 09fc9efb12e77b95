"""A pass that no file of the compiler knows: written here, registered among those for processors, and run between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from differential import scheduled
from differential.scheduled import Scheduled, kinds_of
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.ir.nodes import I64, Binary, Const, Declare, Function, Node, Steps, Var
from sparsetune.compiler.ir.rewrite import transform, walk
from sparsetune.compiler.ir.verify import IllFormed
from sparsetune.compiler.passes.manager import Pass, Property, Setting
from sparsetune.compiler.targets import registry
from sparsetune.compiler.targets.registry import register_pass, unregister_pass


def constants_first(function: Function, _: Setting) -> Function:
    """Write constants on the left of sums and products."""

    def change(node: Node) -> Node:
        return replace(node, left=node.right, right=node.left) if isinstance(node, Binary) and _late(node) else node

    return replace(function, body=transform(function.body, change))


def _late(node: Binary) -> bool:
    return node.op in ("+", "*") and isinstance(node.right, Const) and not isinstance(node.left, Const)


def _constants_late(function: Function) -> str | None:
    found = next((node for node in walk(function.body) if isinstance(node, Binary) and _late(node)), None)
    return None if found is None else f"{found.right} stands on the right"


FIRST = Property("constants stand on the left", _constants_late)
CONSTANTS = Pass("constants", constants_first, gives=frozenset((FIRST,)))


@pytest.fixture
def constants() -> Iterator[None]:
    register_pass(CONSTANTS)
    yield
    unregister_pass("constants")


CASES = (
    ("y(i) = A(i,j) * x(j)", "A=csr", ""),
    ("y(i) = A(i,j) * x(j)", "A=csr", "split(i, a, b, 4); parallelize(a, cpu_thread, no_races)"),
    ("Y(i,k) = A(i,j) * X(j,k)", "A=csr", "split(k, a, b, 8); parallelize(b, cpu_vector, no_races)"),
    ("Z(i,j) = B(i,j) + C(i,j)", "B=csr C=csr Z=csr", ""),
    ("C(i,j) = A(i,k) * B(k,j)", "A=csr B=csr C=csr", "assemble(C, insert)"),
    ("M(i,l) = B(i,j,k) * C(j,l) * D(k,l)", "B=csf", ""),
)


@pytest.mark.cc
@pytest.mark.parametrize(("expression", "kinds", "schedule"), CASES)
def test_kernels_go_through_it_and_are_right(constants: None, expression: str, kinds: str, schedule: str) -> None:
    case = Scheduled(0, expression, kinds_of(kinds), schedule)
    made = case.compiled()
    assert [*made.stages][-2:] == ["constants", "c"]
    assert scheduled.fault(case, made) is None


def test_it_stands_where_it_is_put_and_is_gone_afterwards() -> None:
    register_pass(CONSTANTS, before="vectorize")
    names = [each.name for each in registry.find_target("cpu").passes.passes]
    assert names[names.index("constants") + 1] == "vectorize"
    unregister_pass("constants")
    assert "constants" not in [each.name for each in registry.find_target("cpu").passes.passes]


def test_what_cannot_stand_there_is_refused(constants: None) -> None:
    with pytest.raises(ValueError, match="two passes have one name"):
        register_pass(CONSTANTS)
    with pytest.raises(ValueError, match=r"there is no pass 'nowhere' before which 'late' could stand; there are place, .*, constants"):
        register_pass(Pass("late", constants_first), before="nowhere")
    with pytest.raises(ValueError, match="pass 'late' stands where it cannot: it requires that constants stand on the left"):
        register_pass(Pass("late", constants_first, requires=frozenset((FIRST,))), before="constants")
    register_pass(Pass("late", constants_first, requires=frozenset((FIRST,))))
    with pytest.raises(ValueError, match="pass 'late' stands where it cannot"):
        unregister_pass("constants")
    unregister_pass("late")
    with pytest.raises(ScheduleError, match="target 'abacus' is not supported"):
        register_pass(CONSTANTS, "abacus")


@pytest.mark.parametrize("breaks", ["program", "property"])
def test_a_pass_that_breaks_something_is_named(breaks: str) -> None:
    def undeclared(function: Function, _: Setting) -> Function:
        return replace(function, body=Steps((Declare(Var("here", I64), Var("nowhere", I64)), function.body)))

    broken = Pass("broken", undeclared) if breaks == "program" else Pass("broken", lambda function, _: function, gives=frozenset((FIRST,)))
    register_pass(broken, before="vectorize")
    try:
        with pytest.raises(IllFormed, match="pass 'broken'"):
            _ = Scheduled(0, "y(i) = A(i,j) * x(j)", kinds_of("A=csr"), "split(j, a, b, 4)").compiled().source
    finally:
        unregister_pass("broken")
