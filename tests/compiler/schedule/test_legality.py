"""Every precondition, from both sides: a schedule that keeps it and one that breaks it, with the reason that the user reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from legality import order, parallel, positions, statements
from legality.case import Case, Expression
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.concrete.concretize import concretize
from sparsetune.compiler.concrete.nodes import Program
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.schedule import schedule as schedule_module
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.compiler.schedule.rules import Rule

CASES = [*order.CASES, *positions.CASES, *statements.CASES, *parallel.CASES]


def applied(expression: Expression, schedule: str) -> Program:
    assignment = parse(expression[0])
    found = concretize(assignment, formats_of(assignment, expression[1]))
    return apply_schedule(found.program, schedule, found.formats, {"k": 32})


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule.value} {case.rule.name}: {case.illegal}")
def test_kept_and_broken(case: Case) -> None:
    applied(case.expression, case.legal)
    with pytest.raises(ScheduleError) as caught:
        applied(case.expression, case.illegal)
    text = str(caught.value)
    directive = schedule_module.Schedule(case.illegal).directives[case.number - 1]
    assert text.startswith(f"directive {case.number}, {schedule_module.Schedule([directive])}: ")
    assert case.reason in text
    assert text.endswith(f"(rule {case.rule.value})")
    assert "\n" not in text


def test_every_rule_has_both_sides() -> None:
    assert {case.rule for case in CASES} == set(Rule)


@pytest.mark.tree
def test_the_documented_list_is_the_list() -> None:
    readme = Path(schedule_module.__file__).with_name("README.md").read_text()
    listed = re.findall(r"^(\d+)\. \*\*(\w+)\*\*", readme, re.MULTILINE)
    assert [(int(number), name.upper()) for number, name in listed] == [(rule.value, rule.name) for rule in Rule]
