"""One call from an expression and its operands to the result."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from .concrete.check import check_assignment, formats_of, tensor_names
from .errors import DataError, ExpressionError, ShapeError
from .format import Format, dense_format
from .notation.nodes import Assignment, accesses
from .notation.parser import parse
from .pipeline import CompiledExpression, checked_extents, compile_kernel, constant_extents
from .schedule.schedule import Schedule
from .storage.construct import tensor
from .storage.tensor import Tensor

Chooser: TypeAlias = Callable[..., Schedule]
KEPT = 256  # compiled expressions that a process keeps at hand

_compiled: OrderedDict[tuple[Any, ...], CompiledExpression] = OrderedDict()


def evaluate(
    expression: str,
    operands: Mapping[str, Any],
    output_format: Format | str | None = None,
    schedule: str | Schedule = "default",
    shape: Mapping[str, int] | None = None,
    dtype: DTypeLike | None = None,
    target: str = "cpu",
    threads: int | None = None,
    convert: str = "auto",
    semiring: tuple[str, str] | None = None,
    choose: Chooser | None = None,
) -> Any:
    """Compute an expression on operands.

    Args:
        expression: index notation.
        operands: by name; see ``sparsetune.tensor`` for what can be handed over, and numbers for order 0.
        output_format: of the result; None: dense.
        schedule: "auto" (what ``choose`` says), "default", a text, or a ``Schedule``.
        shape: extents of indices that no operand determines, by index.
        dtype: of the values; None: ``numpy.result_type`` of the operands.
        target: "cpu".
        threads: exact number of threads; None: $SPARSETUNE_THREADS, or the cores at hand.
        convert: "never" refuses schedules that convert operands.
        semiring: (add, multiply); None: ("+", "*").
        choose: called for "auto" as ``choose(assignment, operands, formats, extents, target, threads)``; returns a schedule.

    Returns:
        An ndarray (a numpy scalar for order 0) where the result is dense, else a ``Tensor``.

    Raises:
        SparsetuneError: a subclass that says what does not fit.
    """
    assignment = parse(expression)
    check_assignment(assignment)
    ready = {name: _ready(name, data) for name, data in _checked(assignment, operands).items()}
    given = checked_extents(assignment, shape or {})
    formats = {name: data.format if isinstance(data, Tensor) else dense_format(data.ndim) for name, data in ready.items()}
    known = {**_extents(assignment, ready), **given}
    form = output_format if output_format is not None else dense_format(len(assignment.target.subscripts))
    whole: dict[str, Any] = {**formats, assignment.target.tensor: form}
    decided = _schedule(schedule, choose, assignment, ready, whole, known, target, threads)
    constants = constant_extents(assignment, formats_of(assignment, whole), known)
    compiled = _kernel(expression, whole, constants, decided, dtype, target, semiring, convert)
    return compiled.bind_operands(ready, threads, None, given).once()


def _checked(assignment: Assignment, operands: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(operands, Mapping):
        raise ExpressionError(f"operands are given by name, {{'A': A, ...}}, not as {type(operands).__name__}")
    names = tensor_names(assignment)
    for name in names:
        if name not in operands:
            raise ExpressionError(f"operand '{name}' of '{assignment.text}' is missing; give it by its name")
    for name in operands:
        if name not in names:
            raise ExpressionError(f"operand '{name}' is not used in '{assignment.text}'; its operands are {', '.join(names) or 'none'}")
    return {name: operands[name] for name in names}


def _ready(name: str, data: Any) -> Any:
    """Return an ndarray for plain dense operands, else a Tensor."""
    if isinstance(data, (int, float, bool, np.generic)):
        return np.asarray(data)
    if type(data) is np.ndarray:
        return data
    try:
        return tensor(data)
    except DataError as error:
        raise DataError(f"operand '{name}': {error}") from None


def _extents(assignment: Assignment, operands: Mapping[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for access in accesses(assignment.value):
        data = operands.get(access.tensor)
        if data is None:
            continue
        if len(data.shape) != len(access.subscripts):
            raise ShapeError(
                f"operand '{access.tensor}' has {len(data.shape)} modes, but the expression indexes {len(access.subscripts)} of them"
            )
        for subscript, extent in zip(access.subscripts, data.shape, strict=True):
            if subscript.is_index:
                found.setdefault(subscript.index, int(extent))
    return found


def _schedule(
    wish: str | Schedule, choose: Chooser | None, assignment: Assignment, operands: Mapping[str, Any], formats: Mapping[str, Any],
    extents: Mapping[str, int], target: str, threads: int | None,
) -> Schedule:  # fmt: skip
    if isinstance(wish, Schedule):
        return wish
    if wish == "auto":
        return choose(assignment, operands, formats, extents, target, threads) if choose is not None else Schedule()
    return Schedule() if wish == "default" else Schedule(wish)


def _kernel(
    expression: str, formats: Mapping[str, Any], extents: Mapping[str, int], schedule: Schedule, dtype: DTypeLike | None, target: str,
    semiring: tuple[str, str] | None, convert: str,
) -> CompiledExpression:  # fmt: skip
    """Return a compiled expression, from those at hand where the same was asked for before."""
    key = (
        expression, tuple(sorted((name, str(form)) for name, form in formats.items())), tuple(sorted(extents.items())), str(schedule),
        None if dtype is None else np.dtype(dtype).str, target, semiring, convert,
    )  # fmt: skip
    if key in _compiled:
        _compiled.move_to_end(key)
        return _compiled[key]
    made = compile_kernel(expression, formats, extents, schedule, dtype, target, semiring=semiring, convert=convert)
    _compiled[key] = made
    if len(_compiled) > KEPT:
        _compiled.popitem(last=False)
    return made
