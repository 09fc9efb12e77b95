"""The space that ``tune`` searches: the whole space of an expression, narrowed to what is meaningful on this machine and for these
operands. The search begins with the templates that rules list (``prune``); beyond these it draws from here.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from ..compiler.concrete.nodes import Program
from ..compiler.deadline import Deadline, TimeOver
from ..compiler.format import Format
from ..compiler.levels import COMPRESSED
from ..compiler.levels.affine import POINT
from ..compiler.native.machine import this_machine
from ..compiler.native.toolchain import available_compilers
from ..compiler.notation.nodes import accesses
from ..compiler.schedule import directives as d
from ..compiler.schedule.build_options import compiler_fault
from ..compiler.schedule.schedule import Schedule
from ..compiler.space.conversions import reordered
from ..compiler.space.decorations import build_choices
from ..compiler.space.full import Filter, FullSpace
from ..compiler.space.moves import Moves
from ..compiler.space.options import RUNS, Options, everything
from ..compiler.space.whole import WholeSpace
from .costs import operations
from .encodings import encoded_formats
from .kernels import legal_candidate
from .limits import workspace_elements
from .problem import Problem

WATCHED_SECONDS = 20.0
"""Seconds of processor time for one question to a space; large products have too many groupings to count."""

DRAW_SECONDS = 1.0
"""Seconds of processor time for one draw."""

_TRIES = 24  # draws for each schedule that is wanted: of these some are refused, known, or hopeless
_NEAR = 0.8  # how often a neighbour is drawn
_COMPARED = 8  # of the best, whose code what is drawn must not be
_UNLIKELY = 2.0  # times what the model expects of the best so far: the rest is not tried

_LEAST = 1024
"""Least upper end of ranges of numbers, so that small operands have no fewer choices than rules take."""

_MOST_COPIES = 32
"""Most copies of a loop's body in a kernel for GPUs."""

LEVELS = {"cpu": 1, "cuda": 3}
"""Most divisions of one loop, as in the papers' schedules: on GPUs into blocks, warps, threads and the work of one thread."""

_PER_THREAD = 16
"""Most shares of work for each thread."""


def _numbers(problem: Problem, options: Options) -> Options:
    """Narrow numbers: tiles to what the second level of cache holds and operands have, chunks to a thread's share, copies of a loop to two
    of each vector register, prefetches to lines that are still in that cache when they are read, builds to compilers that are here.
    On a GPU tiles have as many iterations as a block may have threads; nothing is prefetched, and there is one compiler."""
    if problem.target != "cpu":
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
        units=options.units if problem.threads > 1 else tuple(unit for unit in options.units if unit != "cpu_thread"),
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
    """Let every stored operand be converted so that the indices of the result are outermost, so that its outermost mode is innermost,
    to compressed levels alone, and to encodings of fewer bytes."""
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
    options, levels, watched = everything(problem.target), LEVELS[problem.target], (watch or Deadline()).watch
    whole = WholeSpace(problem.assignment, problem.formats, problem.semiring, options, levels, watched, problem.constants)
    return FullSpace(whole, problem.constants, filters(problem, also))


class Renewed(Deadline):
    """A deadline that starts again with every question."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self._seconds = seconds

    def begin(self) -> None:
        """Start the time of the next question."""
        self._end, self._found_over = time.thread_time() + self._seconds, False

    def forever(self) -> None:
        """Remove the time limit of the next question."""
        self._end, self._found_over = math.inf, False


class Beyond:
    """Draws schedules that no rule lists: neighbours of those that were fast, and some from anywhere.

    Args:
        problem: what is tuned.
        seed: of the draws.
        also: as of ``filters``.
        seconds: processor time that a draw may take; once one takes longer nothing is drawn any more.
    """

    def __init__(self, problem: Problem, seed: int, also: Collection[str] = (), seconds: float = DRAW_SECONDS) -> None:
        self._problem, self._seed, self._also = problem, seed, also
        self._watch = Renewed(seconds)
        self._random = random.Random(seed)
        self._made: tuple[FullSpace, Moves] | None = None
        self._ended = False
        self._sources: dict[str, str | None] = {}

    def draw(self, best: Sequence[tuple[float, str]], known: Collection[str]) -> str | None:
        """Return a schedule in canonical names that is not known; None where none was found, or finding one takes too long.

        Args:
            best: (seconds, schedule in canonical names), the fastest first.
            known: schedules in canonical names that are not wanted.
        """
        if self._ended:
            return None
        self._watch.begin()
        try:
            space, moves = self._made or self._begun()
            return self._found(space, moves, best, known)
        except TimeOver:
            self._ended = True
            return None

    def _begun(self) -> tuple[FullSpace, Moves]:
        narrowed = whole_space(self._problem, self._watch, self._also).filtered()
        self._made = narrowed, Moves(narrowed.whole, self._seed)
        return self._made

    def _found(self, space: FullSpace, moves: Moves, best: Sequence[tuple[float, str]], known: Collection[str]) -> str | None:
        problem = self._problem
        most = _UNLIKELY * self._expected(best[0][1]) if best else math.inf
        sources = {self._source(text) for _, text in best[:_COMPARED]} | set(self._sources.values())
        for _ in range(_TRIES):
            self._watch.watch()
            near = best and self._random.random() < _NEAR
            place = min(int(self._random.expovariate(1.0)), len(best) - 1)
            schedule = space.near(problem.from_canonical(best[place][1]), moves) if near else space.anywhere(moves)
            if schedule is None or (text := problem.to_canonical(schedule)) in known:
                continue
            candidate = legal_candidate(problem, schedule)
            if candidate is None or candidate.source in sources:
                continue
            self._sources[text] = candidate.source
            if self._cost(candidate.compiled.concretized.program) <= most:
                return text
        return None

    def _source(self, text: str) -> str | None:
        """Return the digest of the code of a schedule in canonical names."""
        if text not in self._sources:
            candidate = legal_candidate(self._problem, self._problem.from_canonical(text))
            self._sources[text] = None if candidate is None else candidate.source
        return self._sources[text]

    def _cost(self, program: Program) -> float:
        """Return the cost that the model expects of a program; infinity if there is no room for its workspaces."""
        problem = self._problem
        held = workspace_elements(program, problem) * problem.dtype.itemsize * problem.threads
        if held > problem.limits.room(problem.nbytes):
            return math.inf
        return operations(problem, program, problem.concretized().sources)

    def _expected(self, text: str) -> float:
        candidate = legal_candidate(self._problem, self._problem.from_canonical(text))
        return math.inf if candidate is None else self._cost(candidate.compiled.concretized.program)


class Searched:
    """The space that a campaign searched: the whole space under the filters, and the schedules tried outside of it.

    Args:
        problem: what was tuned.
        also: as of ``filters``.
        tried: schedules that ran.
        stages: how many each stage has.
        seconds: processor time that counting may take; a space that is not counted by then is drawn from stage by stage.
    """

    def __init__(
        self,
        problem: Problem,
        also: Collection[str],
        tried: Sequence[Schedule],
        stages: list[dict[str, Any]],
        seconds: float = WATCHED_SECONDS,
    ) -> None:
        self._stages = stages
        self._watch = Renewed(seconds)
        self._watch.forever()
        self._space = whole_space(problem, self._watch, also).filtered()
        self._tried = tuple(dict.fromkeys(tried))
        self._expression = problem.expression

    def __repr__(self) -> str:
        stages = ", ".join(f"{each['stage']} {each['kept']}" for each in self._stages)
        return f"Searched({self._expression!r}{': ' if stages else ''}{stages})"

    @cached_property
    def _besides(self) -> tuple[Schedule, ...]:
        """Schedules that were tried and are not in the space: those that the user gave, and those of rules that the filters drop."""
        self._watch.forever()
        return tuple(one for one in self._tried if one not in self._space)

    @cached_property
    def _counted(self) -> tuple[int, bool]:
        self._watch.begin()
        return self._space.whole.counted()

    @property
    def is_counted(self) -> bool:
        """Whether ``count`` is how many there are; else there are more."""
        return self._counted[1]

    @cached_property
    def stages(self) -> list[dict[str, Any]]:
        """How many schedules are left after each stage; those tried outside of the space are added last."""
        start = time.perf_counter()
        return [*self._stages, {"stage": "parameters", "kept": self.count(), "seconds": time.perf_counter() - start}]

    def count(self) -> int:
        """Return how many schedules there are, those included that the language refuses; none is listed.

        Of a space that takes longer to count, how many are counted in that time.
        """
        return len(self._besides) + self._counted[0]

    def __iter__(self) -> Iterator[Schedule]:
        """Yield the schedules tried outside of the space, then every schedule of the space that the language accepts."""
        yield from self._besides
        self._watch.forever()
        yield from self._space

    def sample(self, count: int, seed: int = 0) -> list[Schedule]:
        """Return schedules that the language takes, with replacement; fewer where nearly all are refused.

        They are drawn uniformly, or stage by stage where the space takes too long to count (``moves``).
        """
        draw = self._space.sample if self.is_counted else self._space.drawn
        self._watch.forever()
        return draw(count, seed)

    def __contains__(self, schedule: object) -> bool:
        self._watch.forever()
        return schedule in self._space or schedule in self._besides
