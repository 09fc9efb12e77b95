"""The whole space of a problem as searches draw from it: with numbers and conversions that suit its operands, without what never pays."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ..compiler.deadline import Deadline
from ..compiler.format import Format
from ..compiler.levels import COMPRESSED
from ..compiler.levels.affine import POINT
from ..compiler.native.machine import this_machine
from ..compiler.native.toolchain import available_compilers
from ..compiler.notation.nodes import accesses
from ..compiler.schedule import directives as d
from ..compiler.schedule.build_options import compiler_fault
from ..compiler.space.conversions import reordered
from ..compiler.space.decorations import build_choices
from ..compiler.space.full import Filter, FullSpace
from ..compiler.space.options import RUNS, Options, everything
from ..compiler.space.whole import WholeSpace
from ..compiler.units import UNITS
from .encodings import encoded_formats
from .problem import Problem

_LEAST = 1024
"""Least upper end of a range of numbers, so that small operands too have the choices that rules take."""

_MOST_COPIES = 32
"""Most copies of a loop's body in a kernel for GPUs."""

_PER_THREAD = 16
"""Most shares of work for each thread."""


def _numbers(problem: Problem, options: Options) -> Options:
    """Narrow the numbers that schedules may hold.

    Tiles are at most as large as the operands and the second level of cache, chunks at most a thread's share, copies of a loop at most
    twice the vector registers, prefetches at most the lines of that cache, and compilers those of this machine. On a GPU tiles have at
    most as many iterations as a block may have threads, nothing is prefetched, and there is one compiler.
    """
    if problem.is_on_gpu:
        return replace(options, sizes=range(1, _LEAST + 1), unrolls=range(1, _MOST_COPIES + 1), distances=(), builds=())
    machine = this_machine()
    cache = next((level for level in machine.caches if level.level == 2), None)
    size, line = (cache.bytes, cache.line_bytes) if cache else (2**20, 64)
    longest = max(problem.extents.values(), default=1)
    tiles = max(_LEAST, _PER_THREAD * problem.threads, min(longest, size // problem.dtype.itemsize))
    registers = 2 * (32 if machine.vector_bytes == 64 else 16)
    builds = tuple((one.compiler, one.flags) for one in build_choices(other_compilers()).choices if isinstance(one, d.Build))
    return replace(
        options,
        sizes=range(1, min(tiles, _most(options.sizes)) + 1),
        chunks=range(1, max(_LEAST, longest // problem.threads) + 1),
        unrolls=range(1, registers + 1),
        distances=range(1, max(_LEAST, size // line) + 1),
        builds=builds,
        units=options.units if problem.threads > 1 else tuple(unit for unit in options.units if not UNITS[unit].is_thread),
    )


def other_compilers() -> tuple[str, ...]:
    """Return the compilers of this machine, other than the default one, that schedules may ask for."""
    return tuple(compiler.name for compiler in available_compilers()[1:] if compiler_fault(compiler.name) is None)


def _most(numbers: Sequence[int]) -> int:
    return numbers[-1]


def filters(problem: Problem, also: Collection[str] = ()) -> tuple[Filter, ...]:
    """Return the named filters between the whole space and the one that is searched.

    Args:
        problem: what is tuned.
        also: stages that are open though they seldom pay: "protocols", "formats".
    """
    return (
        Filter("machine", lambda options: _numbers(problem, options)),
        Filter("races kept apart", lambda options: replace(options, races=tuple(one for one in options.races if one != "ignore_races"))),
        Filter("calls that rules list", lambda options: replace(options, calls=())),
        Filter("conversions", lambda options: options if "formats" in also else _conversions(problem, options)),
        Filter("usual protocols", lambda options: replace(options, protocols=options.protocols and "protocols" in also)),
        Filter("one division", lambda options: replace(options, divided=1)),
        Filter("loops that differ", lambda options: replace(options, runs=tuple(RUNS))),
        Filter("outermost threads", lambda options: replace(options, outermost=True)),
        Filter("fitting", lambda options: replace(options, fitting=True)),
        Filter("storage order", lambda options: replace(options, in_order=True)),
    )


def _conversions(problem: Problem, options: Options) -> Options:
    """Allow four kinds of conversions of every stored operand: indices of the result outermost, the outermost mode innermost, all levels
    compressed, and encodings of fewer bytes."""
    target = problem.assignment.target
    found: dict[str, tuple[Format, ...]] = {}
    encoded = list(encoded_formats(problem))
    for access in dict.fromkeys(accesses(problem.assignment.value)):
        held = problem.formats[access.tensor]
        form, modes = held.in_memory, held.modes_in_memory
        if held.is_dense or not access.is_plain or len(set(access.indices)) < len(access.subscripts) or POINT in form.levels:
            continue
        first = [mode for mode in form.order if any(access.subscripts[own].index in target.indices for own in modes[mode])]
        turned = reordered(form, first), reordered(form, form.order[1:])
        packed = (Format((COMPRESSED,) * len(form), order) for order in (form.order, *(one.order for one in turned)))
        offered = (*turned, *packed, *(one for operand, one in encoded if operand.tensor == access.tensor))
        found[access.tensor] = tuple(one for one in dict.fromkeys(offered) if one != form)
    return replace(options, formats=False, conversions=tuple(found.items()))


def whole_space(problem: Problem, watch: Deadline | None = None, also: Collection[str] = ()) -> FullSpace:
    """Return the whole space of a problem, with the filters of a search.

    Raises:
        TimeOver: at the deadline.
    """
    options, levels, watched = everything(problem.target), problem.hardware.divisions, (watch or Deadline()).watch
    whole = WholeSpace(problem.assignment, problem.formats, problem.semiring, options, levels, watched, problem.constants)
    return FullSpace(whole, problem.constants, filters(problem, also))
