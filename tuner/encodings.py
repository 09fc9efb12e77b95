"""Other encodings of a problem's operands, and which operands a program converts.

Some take fewer bytes: half of a symmetric matrix (``symmetric``), coordinates of two bytes (``narrow``), coordinates stored once for rows
that look alike (``patterned``). One lays short rows side by side, so that vectors compute several at once (``sliced``). Whether an operand
can be encoded depends on its values and coordinates, not on its format.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..compiler.concrete.mirrored import is_mirrored
from ..compiler.concrete.nodes import Program
from ..compiler.concrete.said import saying
from ..compiler.errors import FormatError
from ..compiler.format import Format
from ..compiler.levels import COMPRESSED, DENSE, SYMMETRIC, level_kinds
from ..compiler.notation.nodes import Access, accesses
from ..compiler.schedule import directives as d
from ..compiler.schedule.schedule import Schedule
from ..compiler.space.template import Template
from ..compiler.storage.tensor import Tensor
from .facts import entries, extent, size
from .problem import Problem
from .remembered import remembered

SHORT = 24
"""Entries of a row, on average, up to which rows are tried side by side: longer ones are vectors by themselves."""

MOST_PADDED = 1.5
"""Most bytes of a tensor whose rows lie side by side, over the bytes that it has: with more padding no time was gained."""


def encoded_formats(problem: Problem) -> Iterator[tuple[Access, Format]]:
    """Yield the operands that can be stored in fewer bytes than they are, or with short rows side by side, each with such formats."""
    for access in dict.fromkeys(accesses(problem.assignment.value)) if not problem.is_on_gpu else ():
        form, operand, tensor = problem.formats[access.tensor], Access(access.tensor), problem.operand(access.tensor)
        if tensor is None or form.in_memory is not form or form.is_dense:
            continue
        if form.levels == (DENSE, COMPRESSED) and _takes_half(problem, operand, half := Format((DENSE, SYMMETRIC), form.order)):
            yield operand, half
        *above, last = form.levels
        kinds = (kind for kind in level_kinds() if kind.plain is last and kind is not last and not kind.mirrors)
        encoded = (Format((*above, kind), form.order) for kind in kinds)
        yield from ((operand, one) for one in encoded if _bytes_in(tensor, one) < _bytes_in(tensor, form))
        if form.levels == (DENSE, COMPRESSED) and _has_short_sums(problem, access, form, tensor):
            beside = (Format((*above, kind), form.order) for kind in level_kinds() if kind.stride != 1)
            yield from ((operand, one) for one in beside if _bytes_in(tensor, one) <= MOST_PADDED * _bytes_in(tensor, form))


def encoded_schedules(problem: Problem) -> list[Schedule]:
    """Return schedules that only store an operand in another encoding."""
    return [Schedule([d.Convert(operand, str(form))]) for operand, form in encoded_formats(problem)]


def foremost_encoded(problem: Problem, templates: Sequence[Template], most: int) -> list[Schedule]:
    """Return the first schedule for each other encoding among templates, the most promising of which come first; so many at most.

    Conversion counts in every call, which puts them behind; but kernels that are bound convert once (``converted``).
    """
    encodings = {directive for schedule in encoded_schedules(problem) for directive in schedule.directives}
    found: dict[Hashable, Schedule] = {}
    for template in templates:
        wanted = tuple(part for part in template.parts if part in encodings)
        if wanted and wanted not in found and len(found) < most:
            found[wanted] = template.fill()
    return list(found.values())


def encodings_hold(problem: Problem, program: Program) -> bool:
    """Whether the operands that a program wants in another encoding can be stored so."""
    copies = ((read.tensor, read.stored) for read in program.statement.reads if read.stored is not None)
    wanted = (*((read.tensor, form) for read, form in program.conversions), *copies)
    sources = problem.concretized().sources  # a sum that goes on from its result reads that under another name
    return all(_holds(problem, sources.get(name, name), form) for name, form in wanted)


def converted_entries(problem: Problem, program: Program, sources: Mapping[str, str]) -> int:
    """Return how many entries of operands a program converts; other views of the same memory convert nothing."""
    return sum(entries for entries, _, _ in converted_operands(problem, program, sources))


def converted_operands(problem: Problem, program: Program, sources: Mapping[str, str]) -> Iterator[tuple[int, Format, Format]]:
    """Yield the operands that a program converts: their entries, their format and the one that they get."""
    for read, form in program.conversions:
        name = sources.get(read.tensor, read.tensor)
        if name in problem.formats and form.in_memory != problem.formats[name].in_memory:
            operand = problem.operand(name)
            if operand is not None:
                yield entries(operand), problem.formats[name], form


def _holds(problem: Problem, name: str, form: Format) -> bool:
    held = problem.formats[name]
    if form.plain is form or held.levels == form.levels:
        return True
    if form.mirrors:
        return name in problem.symmetric or held.mirrors
    tensor = problem.operand(name)
    return tensor is not None and _bytes_in(tensor, form) < float("inf")


def _has_short_sums(problem: Problem, access: Access, form: Format, tensor: Tensor) -> bool:
    """Whether components of a result are sums over the rows of a matrix, which are short."""
    row, column = (access.subscripts[mode].index for mode in form.order)
    target = {index for index in problem.assignment.target.indices if problem.extents[index] != 1 or index in (row, column)}
    return target == {row} != {column} and entries(tensor) <= SHORT * extent(tensor, form.order[0])


def _takes_half(problem: Problem, operand: Access, half: Format) -> bool:
    """Whether an operand is a symmetric matrix, read by a product that can use every entry of its half twice."""
    default = problem.concretized()
    converted = replace(default.program, conversions=saying(operand, half, default.program.conversions))
    return is_mirrored(converted, default.formats) and operand.tensor in problem.symmetric


def _bytes_in(tensor: Tensor, form: Format) -> float:
    """Return the bytes of a tensor in a format; infinitely many where that cannot hold it."""

    def found() -> float:
        try:
            return float(tensor.convert(form).nbytes)
        except FormatError:
            return float("inf")

    return 1.0 * size(tensor) if form == tensor.format else remembered(tensor, ("bytes", str(form)), found)
