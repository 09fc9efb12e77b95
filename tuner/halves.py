"""Operands of a problem that are symmetric matrices, of which half may be stored: whether they are is known of the data alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..compiler.concrete.mirrored import is_mirrored
from ..compiler.concrete.nodes import Program, saying
from ..compiler.format import Format
from ..compiler.levels import COMPRESSED, DENSE, SYMMETRIC
from ..compiler.notation.nodes import Access, accesses
from ..compiler.schedule import directives as d
from ..compiler.schedule.schedule import Schedule
from .problem import Problem


def half_formats(problem: Problem) -> Iterator[tuple[Access, Format]]:
    """Yield the operands that are symmetric matrices stored whole, which a product reads that can add every entry of a half twice."""
    default = problem.concretized()
    for access in dict.fromkeys(accesses(problem.assignment.value)) if problem.target == "cpu" else ():
        form = problem.formats[access.tensor]
        if form.levels != (DENSE, COMPRESSED) or form.in_memory is not form:
            continue
        half, operand = Format((DENSE, SYMMETRIC), form.order), Access(access.tensor)
        converted = replace(default.program, conversions=saying(operand, half, default.program.conversions))
        if is_mirrored(converted, default.formats) and operand.tensor in problem.symmetric:
            yield operand, half


def half_schedules(problem: Problem) -> list[Schedule]:
    """Return schedules that do nothing but to store half of an operand."""
    return [Schedule([d.Convert(operand, str(half))]) for operand, half in half_formats(problem)]


def halves_hold(problem: Problem, program: Program) -> bool:
    """Whether the operands of which a program wants a half are symmetric."""
    copies = ((read.tensor, read.stored) for read in program.statement.reads if read.stored is not None)
    wanted = (*((read.tensor, form) for read, form in program.conversions), *copies)
    return all(name in problem.symmetric for name, form in wanted if form.mirrors and not problem.formats[name].mirrors)
