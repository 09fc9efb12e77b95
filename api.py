"""The public calls that join compiler, data files and tuner: what each needs is imported when it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import DTypeLike, NDArray

    from .compiler.format import Format
    from .compiler.pipeline import Kernel
    from .compiler.schedule.schedule import Schedule
    from .compiler.storage.tensor import Tensor
    from .tuner.automatic import AutoTuned
    from .tuner.lookup import Match
    from .tuner.progress import Progress
    from .tuner.tune_result import TuneResult

__all__ = ["autotune", "compile", "einsum", "evaluate", "evaluate_all", "lookup", "tensor", "tune"]

DenseFormat: TypeAlias = Literal["dense"]
Boundary: TypeAlias = Literal["fill", "wrap"] | Mapping[str, Literal["fill", "wrap"]] | None
Shape: TypeAlias = Mapping[str, int | Sequence[int]]
SparseFormat: TypeAlias = Literal["csr", "csc", "dcsr", "dcsc", "coo", "csf", "compressed"]


def tensor(
    data: Any, format: Format | str | None = None, shape: Any = None, dtype: DTypeLike | None = None, fill_value: Any = None
) -> Tensor:
    """Store data as a tensor.

    Args:
        data: ndarray, scipy.sparse array or matrix (n-D ``coo_array`` too), PyData sparse, torch or CuPy sparse array,
            ``Tensor``, (coordinates, values) with coordinates of shape (order, nnz), or the path of a .mtx, .tns (.gz) or
            .npz file.
        format: how to store it; None: dense for ndarrays, CSR or CSC for matrices, CSF for the rest.
        shape: extents, where data do not say them.
        dtype: of the values; None: as they are.
        fill_value: what is not stored stands for, as the identity of a semiring's sum; None: the data's own, or 0.

    Raises:
        DataError: data hold no tensor. FormatError: the format does not fit it.
    """
    from .compiler.storage.construct import tensor as construct
    from .compiler.storage.foreign import path_of

    if (path := path_of(data)) is not None:
        from .datasets import load

        data = load(path)
    return construct(data, format, shape, dtype, fill_value)


def _from_paths(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(operands, Mapping):
        return operands
    from .compiler.storage.foreign import path_of

    return {name: tensor(data) if path_of(data) is not None else data for name, data in operands.items()}


def _on_pattern(
    expression: str, operands: Mapping[str, Any], pattern: str | None, output_format: Format | str | None,
    semiring: tuple[str, str] | None, dtype: DTypeLike | None,
) -> tuple[str, Any, Format | str | None]:  # fmt: skip
    """Return expression, operands and format of the result, on the pattern of an operand where one is asked for."""
    if pattern is None:
        return expression, operands, output_format
    from .compiler.output_pattern import restriction

    found = restriction(expression, pattern, semiring, dtype)
    return found.expression, found.operands(_from_paths(operands)), found.usual_format if output_format is None else output_format


@cache
def _compute() -> ModuleType:
    """Import what computes expressions; found at once from the second call on."""
    from .compiler.uncollected import uncollected

    with uncollected():
        from .compiler import evaluate as module

    return module


@cache
def _lookups() -> ModuleType:
    """Import what looks schedules up."""
    from .compiler.uncollected import uncollected

    with uncollected():
        from .tuner import lookup as module

    return module


@overload
def evaluate(
    expression: str, operands: Mapping[str, Any], output_format: DenseFormat | None = None, schedule: str | Schedule = "auto",
    shape: Shape | None = None, dtype: DTypeLike | None = None, target: str = "cpu", threads: int | None = None,
    convert: str = "auto", semiring: tuple[str, str] | None = None, database: str | PathLike[str] | None = None,
    memory_bound: float | None = None, cache_share: float | None = None, boundary: Boundary = None,
) -> NDArray[Any]: ...
@overload
def evaluate(
    expression: str, operands: Mapping[str, Any], output_format: SparseFormat, schedule: str | Schedule = "auto",
    shape: Shape | None = None, dtype: DTypeLike | None = None, target: str = "cpu", threads: int | None = None,
    convert: str = "auto", semiring: tuple[str, str] | None = None, database: str | PathLike[str] | None = None,
    memory_bound: float | None = None, cache_share: float | None = None, boundary: Boundary = None,
) -> Tensor: ...
@overload
def evaluate(
    expression: str, operands: Mapping[str, Any], output_format: Format | str, schedule: str | Schedule = "auto",
    shape: Shape | None = None, dtype: DTypeLike | None = None, target: str = "cpu", threads: int | None = None,
    convert: str = "auto", semiring: tuple[str, str] | None = None, database: str | PathLike[str] | None = None,
    memory_bound: float | None = None, cache_share: float | None = None, boundary: Boundary = None,
) -> Any: ...
@overload
def evaluate(
    expression: str, operands: Mapping[str, Any], output_format: Format | str | None = None, schedule: str | Schedule = "auto",
    shape: Shape | None = None, dtype: DTypeLike | None = None, target: str = "cpu", threads: int | None = None,
    convert: str = "auto", semiring: tuple[str, str] | None = None, database: str | PathLike[str] | None = None,
    memory_bound: float | None = None, cache_share: float | None = None, boundary: Boundary = None, *, output_pattern: str,
) -> Any: ...
def evaluate(
    expression: str,
    operands: Mapping[str, Any],
    output_format: Format | str | None = None,
    schedule: str | Schedule = "auto",
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    target: str = "cpu",
    threads: int | None = None,
    convert: str = "auto",
    semiring: tuple[str, str] | None = None,
    database: str | PathLike[str] | None = None,
    memory_bound: float | None = None,
    cache_share: float | None = None,
    boundary: Boundary = None,
    output_pattern: str | None = None,
) -> Any:
    """Compute an expression on operands.

    Args:
        expression: index notation, ``"y(i) = A(i,j) * x(j)"``.
        operands: by name: ndarrays, sparse arrays of SciPy, PyData or torch, ``Tensor``s, paths, and numbers for order 0.
        output_format: of the result; None: dense. "auto": for one product, or an elementwise expression, all of whose operands
            are sparse, compressed (vectors), csr (matrices) or csf (beyond); else dense.
        schedule: "auto" (database, then static model), "default", a text, or a ``Schedule``.
        shape: extents of indices that no operand determines, by index; the whole shape of the result under its name.
        dtype: of the values; None: ``numpy.result_type`` of the operands.
        target: "cpu".
        threads: how many run at most, and into how many shares work is cut; None: $SPARSETUNE_THREADS, or the cores at hand.
        convert: "never" refuses schedules that convert operands.
        semiring: (add, multiply), such as ("min", "+"); None: ("+", "*").
        database: path or URL; None: $SPARSETUNE_DATABASE or the default file.
        memory_bound: elements that the workspaces of a schedule have at most all together, where schedule is "auto"; None: no bound.
        cache_share: of the last-level cache, that the workspaces of all threads may take; None: half of it, and no less than operands do.
        boundary: what compound subscripts such as ``B(i + j)`` read outside of their operand, where ``shape`` or another operand lets
            indices go that far: "fill" (None) for the fill value, "wrap" for the other end; or one of these by index.
        output_pattern: the access of an operand whose pattern the result has, and nothing else is computed: ``"I(x,y,:)"``, ":" for
            modes that are projected out; indices of the result that are not named are dense. ``"I"`` alone where it has the indices of
            the left side in order. Where ``output_format`` is None the result is sparse then.

    Returns:
        An ndarray (a numpy scalar for order 0) where the result is dense, else a ``Tensor``.

    Raises:
        SparsetuneError: a subclass that says what does not fit.
    """
    compute, repeats = _compute(), None
    if output_pattern is not None:
        expression, operands, output_format = _on_pattern(expression, operands, output_pattern, output_format, semiring, dtype)
    elif shape is None and boundary is None and type(operands) is dict:
        known = _lookups().evidence(database) if schedule == "auto" else None
        given = memory_bound, cache_share
        repeats = compute.repeats_of(expression, output_format, schedule, dtype, target, convert, semiring, given, known)
        if repeats is not None and (result := repeats(operands, threads)) is not compute.MISS:
            return result
    ready = _from_paths(operands)
    limits = {"memory_bound": memory_bound, "cache_share": cache_share}
    if limits != {"memory_bound": None, "cache_share": None}:
        from .tuner.limits import make_limits

        make_limits(memory_bound, cache_share)  # says what limits are

    def choose(*request: Any) -> Schedule:
        given = compute.checked_extents(request[0], shape) if shape else None
        return _lookups().choose(
            expression, ready, output_format, target, threads, database, semiring=semiring, dtype=dtype, shape=given, boundary=boundary,
            **limits,
        )

    return compute.evaluate(
        expression, ready, output_format, schedule, shape, dtype, target, threads, convert, semiring, choose,
        repeats=repeats, boundary=boundary,
    )  # fmt: skip


def evaluate_all(
    expressions: Sequence[str],
    operands: Mapping[str, Any],
    output_format: Format | str | Mapping[str, Format | str] | None = None,
    schedule: str | Schedule | Mapping[str, str | Schedule] = "auto",
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    target: str = "cpu",
    threads: int | None = None,
    convert: str = "auto",
    semiring: tuple[str, str] | None = None,
    database: str | PathLike[str] | None = None,
    memory_bound: float | None = None,
    cache_share: float | None = None,
    boundary: Boundary = None,
    output_pattern: str | Mapping[str, str] | None = None,
) -> list[Any]:
    """Compute expressions in order; a result is an operand of those that follow, in the format in which it was made.

    ``+=`` starts from the operand given. Products of one sparse tensor of three modes or more with ndarrays, such as MTTKRP in all modes,
    are computed in one pass over it, which shares partial products between them, where the cost model says that it pays and no schedule,
    format, dtype or limit is given for them.

    Args:
        expressions: index notation, a result each, of different names.
        operands: by name; each is used by some expression.
        output_format, output_pattern, schedule: as for ``evaluate``, for all results or by the name of the result.
        shape, dtype, target, threads, convert, semiring, database, memory_bound, cache_share, boundary: as for ``evaluate``.

    Returns:
        The results, in order.

    Raises:
        ExpressionError: two results have one name; an operand is missing or not used; an option names what there is not.
        SparsetuneError: as ``evaluate``.
    """
    from .compiler.evaluate_all import evaluate_all as compute

    options = {
        "output_format": output_format, "schedule": schedule, "shape": shape, "dtype": dtype, "target": target, "threads": threads,
        "convert": convert, "semiring": semiring, "database": database, "memory_bound": memory_bound, "cache_share": cache_share,
        "boundary": boundary, "output_pattern": output_pattern,
    }  # fmt: skip
    return compute(expressions, _from_paths(operands), evaluate, options, lambda: _lookups().evidence(database))


@overload
def einsum(
    subscripts: Any, *operands: Any, optimize: Any = None, output_format: DenseFormat | None = None, schedule: str | Schedule = "auto",
    shape: Mapping[str, int] | None = None, dtype: DTypeLike | None = None, target: str = "cpu", threads: int | None = None,
    convert: str = "auto", semiring: tuple[str, str] | None = None, database: str | PathLike[str] | None = None,
    memory_bound: float | None = None, cache_share: float | None = None,
) -> NDArray[Any]: ...
@overload
def einsum(
    subscripts: Any, *operands: Any, output_format: SparseFormat, optimize: Any = None, schedule: str | Schedule = "auto",
    shape: Mapping[str, int] | None = None, dtype: DTypeLike | None = None, target: str = "cpu", threads: int | None = None,
    convert: str = "auto", semiring: tuple[str, str] | None = None, database: str | PathLike[str] | None = None,
    memory_bound: float | None = None, cache_share: float | None = None,
) -> Tensor: ...
@overload
def einsum(
    subscripts: Any, *operands: Any, output_format: Format | str, optimize: Any = None, schedule: str | Schedule = "auto",
    shape: Mapping[str, int] | None = None, dtype: DTypeLike | None = None, target: str = "cpu", threads: int | None = None,
    convert: str = "auto", semiring: tuple[str, str] | None = None, database: str | PathLike[str] | None = None,
    memory_bound: float | None = None, cache_share: float | None = None,
) -> Any: ...
def einsum(
    subscripts: Any,
    *operands: Any,
    optimize: Any = None,
    output_format: Format | str | None = None,
    schedule: str | Schedule = "auto",
    shape: Mapping[str, int] | None = None,
    dtype: DTypeLike | None = None,
    target: str = "cpu",
    threads: int | None = None,
    convert: str = "auto",
    semiring: tuple[str, str] | None = None,
    database: str | PathLike[str] | None = None,
    memory_bound: float | None = None,
    cache_share: float | None = None,
) -> Any:
    """Compute an expression in NumPy's notation, ``einsum("ik,kj->ij", A, B)``.

    Ellipses, indices that stand twice in one operand, and lists of numbers (``einsum(A, [0, 1], x, [1], [0])``) mean what they do
    there, and extents of 1 are stretched. Operands are called A, B, C ... in a schedule, and the result ``out``.

    Args:
        subscripts: NumPy's text; or the first operand, where lists of numbers follow.
        operands: in the order of the text.
        optimize: taken as NumPy's is, without effect: the schedule decides in which order operands are contracted.
        output_format, schedule, shape, dtype, target, threads, convert, semiring, database, memory_bound, cache_share: as for
            ``evaluate``; the result is dense unless ``output_format`` says otherwise.
    """
    from .compiler.einsum import einsum_expression, einsum_operands, from_lists
    from .compiler.storage.arithmetic import narrowed

    if not isinstance(subscripts, str) and operands:
        subscripts, operands = from_lists((subscripts, *operands))
    ready = [data if isinstance(getattr(data, "ndim", None), int) else tensor(data) for data in operands]
    expression, kept = einsum_expression(subscripts, [tuple(data.shape) for data in ready])
    named = einsum_operands([narrowed(*operand) for operand in zip(ready, kept, strict=True)])
    return evaluate(
        expression, named, output_format, schedule, shape, dtype, target, threads, convert, semiring, database, memory_bound, cache_share
    )


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
    expression, operands, output_format = _on_pattern(expression, operands, output_pattern, output_format, semiring, dtype)
    return _lookups().lookup(
        expression, _from_paths(operands), output_format, target, threads, database, arch=arch,
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
            "blocks", "products", "conversion", "forest", "undominated", "drawn" (loop nests drawn from the whole space), "tiles"
            (drawn transformations of loops).
        memory_bound: elements that the workspaces of a schedule have at most all together, whatever chooses it; None: no bound.
        cache_share: of the last-level cache, that the workspaces of all threads may take; None: half of it, and no less than operands do.
        semiring, dtype, shape, boundary, output_pattern: as for ``evaluate``; records are kept by them.
        verbose: whether progress is shown on standard error; None: on terminals, in notebooks, and where SPARSETUNE_VERBOSE=1.
        callback: called after each trial with a ``Progress``: phase, trials done and planned, the best time and the default's so far.
        also: stages of the space that are searched too, though the compiler mostly chooses well by itself: "merges" (how stored
            operands meet), "protocols" (how their levels are traversed), "formats" (how they are stored), "threads" (fewer of them),
            "compilers".
        sampler: what proposes the next schedule where there are more of them than trials: "two-level" (structures by expected
            improvement, what is in their holes by Optuna's TPE), "tpe", "grouped-tpe", "local", "random", "exhaustive".

    Raises:
        ScheduleError: a given schedule is no schedule of this expression; the message names it.
        SparsetuneError: the expression, an operand, the database or an option is not meaningful; no valid schedule was found, or
            none within the memory bound; the default schedule does not run within the time budget.
    """
    from .tuner.session import tune as search

    expression, operands, output_format = _on_pattern(expression, operands, output_pattern, output_format, semiring, dtype)
    return search(
        expression, _from_paths(operands), output_format, trials, time_budget, target, threads, database, seed, skip, schedules,
        memory_bound=memory_bound, cache_share=cache_share,
        semiring=semiring, dtype=dtype, shape=shape, also=also, sampler=sampler, verbose=verbose, callback=callback,
        boundary=boundary,
    )  # fmt: skip


def compile(  # noqa: A001  # the contract's name
    expression: str,
    formats: Mapping[str, Format | str | None] | None = None,
    extents: Mapping[str, int] | None = None,
    schedule: Schedule | str | None = None,
    dtype: DTypeLike | None = None,
    target: str = "cpu",
    *,
    semiring: tuple[str, str] | None = None,
    convert: str = "auto",
    arch: str | None = None,
    threads: int | None = None,
    database: str | PathLike[str] | None = None,
    shape: Shape | None = None,
    boundary: Boundary = None,
    output_pattern: str | None = None,
) -> Kernel:
    """Compile an expression for formats, a schedule and a target.

    Args:
        expression: index notation, ``"y(i) = A(i,j) * x(j)"``.
        formats: format of every tensor that is not dense, the result included.
        extents: extents that become compile-time constants, by index.
        schedule: None or "" for the default one, a text (DESIGN 4.3), a ``Schedule``, or "auto": what ``evaluate`` would use, decided
            at the first call or binding, and kept; small dense extents are compiled in then.
        dtype: of the values; None: ``numpy.result_type`` of the operands at the first call.
        target: "cpu"; "cuda": an NVIDIA GPU; "interpreter": Python, which checks every access and counts operations; "cuda-executor":
            what runs on a GPU, thread by thread on the processor, checked.
        semiring: (add, multiply), such as ("min", "+"); None: ("+", "*").
        convert: "auto", or "never" to refuse schedules that convert operands.
        arch: architecture of the GPU that is meant, such as "sm_90", which need not be here; None: this machine's.
        threads: how many run at most where a call does not say; None: $SPARSETUNE_THREADS, or the cores at hand.
        database: where "auto" looks: path or URL; None: $SPARSETUNE_DATABASE or the default file.
        shape: as extents; the whole shape of the result may stand under its name.
        boundary: what compound subscripts read outside of their operand, as for ``evaluate``.
        output_pattern: the access of an operand whose pattern the result has, as for ``evaluate``; the operand is given at each call, and
            its format need not be told.

    Raises:
        ExpressionError, FormatError, ScheduleError: what is asked for has no meaning; the first line says where.
        BuildError: it needs a GPU, this machine has none, and arch names none.
    """
    from .compiler.uncollected import uncollected

    with uncollected():
        from .compiler.pipeline import compile_kernel

    found = None
    if output_pattern is not None:
        from .compiler.output_pattern import restriction

        found = restriction(expression, output_pattern, semiring, dtype)
        expression, formats = found.expression, found.formats(formats or {})
    wish = None if schedule == "auto" else schedule
    made = compile_kernel(
        expression, formats, extents, wish, dtype, target, semiring=semiring, convert=convert, arch=arch, threads=threads,
        shape=shape, boundary=boundary,
    )  # fmt: skip
    if found is not None:
        made.derived = found.operands
    if schedule != "auto":
        return made
    from .tuner.automatic import AutomaticKernel

    return AutomaticKernel(made, convert, database, boundary)


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
    from .tuner.automatic import AutoTuned, documented

    options = {
        "output_format": output_format, "shape": shape, "dtype": dtype, "target": target, "semiring": semiring, "database": database,
        "boundary": boundary, "output_pattern": output_pattern,
    }  # fmt: skip
    if isinstance(expression, str):
        return AutoTuned(expression, trials, tune, options)

    def decorate(function: Callable[..., Any]) -> AutoTuned:
        return AutoTuned(documented(function), trials, tune, options).of(function)

    return decorate if expression is None else decorate(expression)
