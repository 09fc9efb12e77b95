"""Schedules chosen for operands: ``lookup`` finds them, ``tune`` searches them, ``autotune`` does both."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

from . import lookups
from .operands import from_paths, on_pattern

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ...compiler.format import Format
    from ...compiler.schedule.schedule import Schedule
    from ..automatic import AutoTuned
    from ..match import Match
    from ..progress import Progress
    from ..tune_result import TuneResult
    from .operands import Boundary, Shape


def lookup(
    expression: str,
    operands: Mapping[str, Any],
    output_format: Format | str | None = None,
    target: str = "cpu",
    threads: int | None = None,
    database: str | PathLike[str] | None = None,
    *,
    arch: str | None = None,
    memory_bound: float | None = None,
    cache_share: float | None = None,
    semiring: tuple[str, str] | None = None,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    boundary: Boundary = None,
    output_pattern: str | None = None,
) -> Match:
    """Return the schedule that ``evaluate`` would use, and where it comes from.

    Args:
        expression: index notation.
        operands: by name, as ``evaluate`` takes them.
        output_format: of the result; None: dense.
        target: "cpu" or "cuda".
        threads: None: $SPARSETUNE_THREADS, or the cores that this process may use.
        database: path or URL; None: the default one. A missing file is no error: nothing is known then.
        arch: architecture of the GPU whose records are looked through, such as "sm_90", which need not be here; None: this machine's.
        memory_bound: elements that the workspaces of a schedule have at most all together, whatever chooses it; None: no bound.
        cache_share: of the last-level cache, that the workspaces of all threads may take; None: half of it, and no less than operands do.
        semiring, dtype, shape, boundary, output_pattern: as for ``evaluate``.

    Raises:
        TuningError: nothing found keeps the memory bound.
        SparsetuneError: the expression, an operand or the database is not meaningful.
        BuildError: the target is cuda, this machine has no GPU, and arch names none.
    """
    expression, operands, output_format = on_pattern(expression, operands, output_pattern, output_format, semiring, dtype)
    return lookups().lookup(
        expression, from_paths(operands), output_format, target, threads, database, arch=arch,
        memory_bound=memory_bound, cache_share=cache_share, semiring=semiring, dtype=dtype, shape=shape, boundary=boundary,
    )  # fmt: skip


def tune(
    expression: str,
    operands: Mapping[str, Any],
    output_format: Format | str | None = None,
    trials: int = 100,
    time_budget: float | None = None,
    target: str = "cpu",
    threads: int | None = None,
    database: str | PathLike[str] | None = None,
    seed: int = 0,
    schedules: Iterable[Schedule | str] = (),
    *,
    skip: Sequence[str] = (),
    memory_bound: float | None = None,
    cache_share: float | None = None,
    semiring: tuple[str, str] | None = None,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    verbose: bool | None = None,
    callback: Callable[[Progress], object] | None = None,
    also: Sequence[str] = (),
    sampler: str = "two-level",
    boundary: Boundary = None,
    output_pattern: str | None = None,
) -> TuneResult:
    """Search the fastest schedule of an expression for these operands on this machine, and remember it.

    Args:
        expression: index notation.
        operands: by name, as ``evaluate`` takes them.
        output_format: of the result; None: dense.
        trials: how many schedules to measure at most, in all runs of the same campaign together.
        time_budget: seconds after which the search ends, preparation included, though not before the default and three others
            were tried if the time, or five seconds if that is more, suffices for them; None: no limit.
        target: "cpu" or "cuda".
        threads: exact number of threads; None: $SPARSETUNE_THREADS, or the cores that this process may use.
        database: path or URL; None: the default one.
        seed: of the search; from 0 to 2**32 - 1.
        schedules: what to try first, after the default: schedules or their texts, such as those of ``explore``'s frontier.
        skip: stages of static pruning to leave out ("memory", "asymptotic", "loop depth"), and rules of the space: "order", "chain",
            "blocks", "products", "conversion", "forest", "gather" (places of a filter one after the other), "marked" (a row that many
            others meet is marked, and their entries are looked up), "undominated", "drawn" (loop nests drawn from the whole space),
            "tiles" (drawn transformations of loops), "encodings" (operands stored in fewer bytes).
        memory_bound: elements that the workspaces of a schedule have at most all together, whatever chooses it; None: no bound.
        cache_share: of the last-level cache, that the workspaces of all threads may take; None: half of it, and no less than operands do.
        semiring, dtype, shape, boundary, output_pattern: as for ``evaluate``; records are kept by them.
        verbose: whether progress is shown on standard error; None: on terminals, in notebooks, and where SPARSETUNE_VERBOSE=1.
        callback: called after each trial with a ``Progress``: phase, trials done and planned, the best time and the default's so far.
        also: stages of the space that are searched too, though the compiler mostly chooses well by itself: "merges" (how stored
            operands meet), "protocols" (how their levels are traversed), "formats" (how they are stored), "results" (how sparse
            results are assembled), "threads" (fewer of them), "compilers".
        sampler: what proposes the next schedule where there are more of them than trials: "two-level" (structures by expected
            improvement, what is in their holes by Optuna's TPE), "tpe", "grouped-tpe", "local", "random", "exhaustive".

    Raises:
        ScheduleError: a given schedule is no schedule of this expression; the message names it.
        SparsetuneError: the expression, an operand, the database or an option is not meaningful; no valid schedule was found, or
            none within the memory bound; nothing ran within the time budget.
    """
    start = time.monotonic()  # importing what searches takes of the time budget too
    from ..session import tune as search

    expression, operands, output_format = on_pattern(expression, operands, output_pattern, output_format, semiring, dtype)
    return search(
        expression, from_paths(operands), output_format, trials, time_budget, target, threads, database, seed, skip, schedules,
        memory_bound=memory_bound, cache_share=cache_share,
        semiring=semiring, dtype=dtype, shape=shape, also=also, sampler=sampler, verbose=verbose, callback=callback,
        boundary=boundary, start=start,
    )  # fmt: skip


@overload
def autotune(
    expression: str, trials: int = 100, tune: bool = False, output_format: Format | str | None = None,
    shape: Shape | None = None, dtype: DTypeLike | None = None, target: str = "cpu",
    semiring: tuple[str, str] | None = None, database: str | PathLike[str] | None = None, boundary: Boundary = None,
    output_pattern: str | None = None,
) -> AutoTuned: ...
@overload
def autotune(expression: Callable[..., Any]) -> AutoTuned: ...
@overload
def autotune(
    expression: None = None, trials: int = 100, tune: bool = False, output_format: Format | str | None = None,
    shape: Shape | None = None, dtype: DTypeLike | None = None, target: str = "cpu",
    semiring: tuple[str, str] | None = None, database: str | PathLike[str] | None = None, boundary: Boundary = None,
    output_pattern: str | None = None,
) -> Callable[[Callable[..., Any]], AutoTuned]: ...
def autotune(
    expression: str | Callable[..., Any] | None = None,
    trials: int = 100,
    tune: bool = False,
    output_format: Format | str | None = None,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    target: str = "cpu",
    semiring: tuple[str, str] | None = None,
    database: str | PathLike[str] | None = None,
    boundary: Boundary = None,
    output_pattern: str | None = None,
) -> Any:
    """Return a function that computes an expression on operands given by name, ``f(A=A, x=x, threads=None, out=None)``.

    As a decorator, with or without arguments, it takes the expression from the first line of the docstring.

    Args:
        expression: index notation, or the function that is decorated.
        trials: how many schedules a campaign measures at most.
        tune: tune for operands that no campaign of this machine has decided for, as SPARSETUNE_TUNE=1 does. Else the function does
            what ``lookup`` says.
        output_format, shape, dtype, target, semiring, database, boundary, output_pattern: as for ``evaluate``.

    Raises:
        ExpressionError: the text, or the first line of the docstring, is no index notation.
    """
    from ..automatic import AutoTuned, documented

    options = {
        "output_format": output_format, "shape": shape, "dtype": dtype, "target": target, "semiring": semiring, "database": database,
        "boundary": boundary, "output_pattern": output_pattern,
    }  # fmt: skip
    if isinstance(expression, str):
        return AutoTuned(expression, trials, tune, options)

    def decorate(function: Callable[..., Any]) -> AutoTuned:
        return AutoTuned(documented(function), trials, tune, options).of(function)

    return decorate if expression is None else decorate(expression)
