"""Expressions computed on operands: ``evaluate``, and ``evaluate_all`` for several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

from . import lookups
from .operands import from_paths, on_pattern

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import DTypeLike, NDArray

    from ...compiler.format import Format
    from ...compiler.schedule.schedule import Schedule
    from ...compiler.storage.tensor import Tensor
    from .operands import Boundary, DenseFormat, Shape, SparseFormat


@cache
def _compute() -> ModuleType:
    """Import what computes expressions; found at once from the second call on."""
    from ...compiler.uncollected import uncollected

    with uncollected():
        from ...compiler import evaluate as module

    return module


@cache
def _compute_all() -> ModuleType:
    """Import what computes several expressions."""
    _compute()
    from ...compiler import evaluate_all as module

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
    memory_bound: float | None = None, cache_share: float | None = None, boundary: Boundary = None, *,
    output_pattern: str | None,
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
        target: as for ``compile``; for other targets than "cpu" and "cuda", "auto" is the default schedule.
        threads: how many run at most, and into how many shares work is cut; None: $SPARSETUNE_THREADS, or the cores at hand.
        convert: "never" refuses schedules that convert operands.
        semiring: (add, multiply), such as ("min", "+"); None: ("+", "*").
        database: path or URL; None: $SPARSETUNE_DATABASE or the default file.
        memory_bound: elements that the workspaces of a schedule have at most all together, where schedule is "auto"; None: no bound.
        cache_share: of the last-level cache, that the workspaces of all threads may take; None: half of it, and no less than operands do.
        boundary: what compound subscripts such as ``B(i + j)`` read outside of their operand, where ``shape`` or another operand lets
            indices go that far: "fill" (None) for the fill value, "wrap" for the other end; or one of these by index.
        output_pattern: the access of an operand whose pattern the result has, ``"I(x,y,:)"`` with ":" for modes that are projected out;
            nothing is computed elsewhere. Indices of the result that the access lacks are dense. ``"I"`` alone means the indices of the
            left side in their order. The result is then sparse even where ``output_format`` is None.

    Returns:
        An ndarray (a numpy scalar for order 0) where the result is dense, else a ``Tensor``.

    Raises:
        SparsetuneError: a subclass that says what does not fit.
    """
    compute, repeats = _compute(), None
    if output_pattern is not None:
        expression, operands, output_format = on_pattern(expression, operands, output_pattern, output_format, semiring, dtype)
    elif shape is None and boundary is None and type(operands) is dict:
        known = lookups().evidence(database) if isinstance(schedule, str) and schedule == "auto" else None
        given = memory_bound, cache_share
        repeats = compute.repeats_of(expression, output_format, schedule, dtype, target, convert, semiring, given, known)
        if repeats is not None and (result := repeats(operands, threads)) is not compute.MISS:
            return result
    ready = from_paths(operands)
    limits = {"memory_bound": memory_bound, "cache_share": cache_share}
    if any(limit is not None for limit in limits.values()):
        from ..limits import make_limits

        make_limits(memory_bound, cache_share)  # raises an error if a limit is not valid

    def choose(*request: Any) -> Schedule:
        given = compute.checked_extents(request[0], shape) or None
        return lookups().choose(
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

    ``+=`` starts from the given operand. Two savings are made where the cost model says that they pay and no schedule, dtype or limit is
    given for the expressions:

    - products of one sparse tensor of three modes or more with ndarrays, such as MTTKRP in all modes, are computed in one pass over the
      tensor and share partial products (if no format is given either);
    - a product of a sparse operand with dense ones that occurs several times up to the names of its indices, such as the scores of a
      graph attention layer, is computed once.

    Args:
        expressions: index notation, a result each, of different names.
        operands: by name; each is used by some expression.
        output_format, output_pattern, schedule: as for ``evaluate``, for all results or by the name of the result.
        shape, dtype, target, threads, convert, semiring, database, memory_bound, cache_share, boundary: as for ``evaluate``.

    Returns:
        The results, in order.

    Raises:
        ExpressionError: two results have one name; an operand is missing or not used; an option names an unknown result.
        SparsetuneError: as ``evaluate``.
    """
    options = {
        "output_format": output_format, "schedule": schedule, "shape": shape, "dtype": dtype, "target": target, "threads": threads,
        "convert": convert, "semiring": semiring, "database": database, "memory_bound": memory_bound, "cache_share": cache_share,
        "boundary": boundary, "output_pattern": output_pattern,
    }  # fmt: skip
    return _compute_all().evaluate_all(expressions, from_paths(operands), evaluate, options, lambda: lookups().evidence(database))
