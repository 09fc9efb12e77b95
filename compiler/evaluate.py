"""One call from an expression and its operands to the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import field
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from .build.repeat import MISS, Repeat, Repeats
from .concrete.affine import Boundary, wrapped
from .concrete.check import formats_of, meet_again, parsed, tensor_names
from .concrete.given import check_convert, checked_dtype, checked_extents, checked_operands, checked_semiring, constant_extents
from .concrete.result_format import AUTO, auto_format
from .errors import BuildError, DataError, FormatError, ScheduleError, ShapeError
from .format import Format, dense_format, parse_format
from .frozen import frozen
from .kernel import Kernel
from .native.memory import FLOOR, claim
from .notation.nodes import Assignment, accesses
from .notation.value_types import number_dtype
from .pipeline import compile_kernel
from .schedule.schedule import Schedule
from .shown import attribute, is_word
from .storage.aligned import FEWER_LEVELS
from .storage.construct import borrowed
from .storage.foreign import bytes_to_pack
from .storage.on_device import DeviceTensor, on_device
from .storage.tensor import Tensor
from .targets.registry import find_target
from .warn import warn

__all__ = ["MISS", "evaluate", "or_default", "repeats_of"]

T = TypeVar("T")
Chooser: TypeAlias = Callable[..., Schedule]
KEPT = 256  # requests that a process keeps at hand, with the kernels compiled for them


@frozen
class _Operand:
    """What a request depends on in an operand: its name, its format (None: a plain ndarray), its shape."""

    name: str
    format: Format | None
    shape: tuple[int, ...]


@frozen(eq=False)
class _Request:
    """An expression on operands of certain formats and shapes, checked, and the kernels compiled for it so far.

    Attributes:
        formats: the format of every tensor, including the result.
        extents: the extent of every index that an operand or the caller determines.
        constants: the extents that are compiled in.
    """

    assignment: Assignment
    formats: Mapping[str, Format]
    extents: Mapping[str, int]
    constants: Mapping[str, int]
    kernels: dict[tuple[Any, ...], Kernel] = field(default_factory=dict)


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
    out: Any = None,
    repeats: Repeats[Repeat] | None = None,
    boundary: Boundary = None,
) -> Any:
    """Compute an expression on operands. The arguments are those of ``sparsetune.evaluate``, except for three.

    Args:
        choose: called for the schedule "auto" as ``choose(assignment, operands, formats, extents, target, threads)``; returns a schedule.
        out: takes a dense result, and is returned.
        repeats: keeps the call, if it can be made again, for later calls with the same arguments; see ``repeats_of``.

    Raises:
        SparsetuneError: one of its subclasses; the message says what does not fit.
    """
    if not isinstance(expression, str):
        parsed(expression)  # raises an error that says what an expression is
    if not isinstance(operands, Mapping):
        checked_operands(expression, (), operands)  # raises an error that says how operands are given
    if not isinstance(output_format, (str, Format, type(None))):
        parse_format(output_format, 0)  # raises an error that says what a format is
    wish = _wish(schedule)
    check_convert(convert)
    find_target(target)  # raises an error if there is no such target
    given = checked_extents(parsed(expression), shape)
    names = _operand_names(expression)
    checked = checked_operands(expression, names, operands)
    kinds = [attribute(data, "dtype") for data in checked.values()]
    _claim(expression, checked, output_format, given)
    short = meet_again(parsed(expression), [name for name, data in checked.items() if type(data) is not np.ndarray])
    ready = {name: _ready(name, data, kinds, target, short) for name, data in checked.items()}
    described = tuple(_Operand(name, getattr(data, "format", None), data.shape) for name, data in ready.items())
    kind, pair = checked_dtype(dtype), checked_semiring(semiring)
    request = _request(expression, described, output_format, tuple(given.items()))
    there = any(isinstance(data, DeviceTensor) for data in ready.values())  # on a GPU, where patterns are not examined
    chooses = wish is None and choose is not None and not there
    edges = wrapped(request.assignment, boundary)

    def run(decided: Schedule) -> Any:
        kept = decided, kind, target, convert, pair, edges
        compiled = request.kernels.get(kept)
        if compiled is None:
            compiled = compile_kernel(
                expression, request.formats, request.constants, decided, kind, target,
                semiring=pair, convert=convert, boundary=boundary, determined=given,
            )  # fmt: skip
            request.kernels[kept] = compiled
        bound = compiled.bind_operands(ready, threads, out, given, once=True)
        result = bound.once()
        if repeats is not None:
            repeats.learn(bound, operands, chooses)
        return result

    decided = _schedule(wish, choose if chooses else None, request, ready, target, threads)
    return or_default(expression, decided, run) if chooses else run(decided)


def repeats_of(
    expression: Hashable, output_format: Hashable, schedule: Hashable, dtype: Hashable, target: Hashable, convert: Hashable,
    semiring: Hashable, limits: Hashable, evidence: Hashable,
) -> Repeats[Repeat] | None:  # fmt: skip
    """Return the kept calls of a request, which is everything but operands and threads; None if it cannot be hashed.

    Args:
        limits: limits on the schedules that are looked up.
        evidence: a value that changes when a lookup may find another schedule; None if the schedule is given.
    """
    try:
        return _repeats_of(expression, output_format, schedule, dtype, target, convert, semiring, limits, evidence)
    except Exception:  # it cannot be hashed or compared; the full preparation of the call accepts or refuses it
        return None


@lru_cache(KEPT)
def _repeats_of(*_request: Hashable) -> Repeats[Repeat]:
    return Repeats()


def or_default(expression: str, chosen: Schedule, run: Callable[[Schedule], T]) -> T:
    """Run a schedule that was chosen automatically and return what it gives. If it cannot be used, warn and run the default one."""
    if not chosen.directives:
        return run(chosen)
    try:
        return run(chosen)
    except (ScheduleError, BuildError, FormatError) as error:
        reason = str(error).splitlines()[0]
        warn(f"the schedule '{chosen}' chosen for '{expression}' cannot be used ({reason}); using the default one")
        return run(Schedule())


@lru_cache(KEPT)
def _operand_names(expression: str) -> tuple[str, ...]:
    return tensor_names(parsed(expression))


@lru_cache(KEPT)
def _request(
    expression: str, operands: tuple[_Operand, ...], output_format: Format | str | None, shape: tuple[tuple[str, int], ...]
) -> _Request:
    assignment = parsed(expression)
    formats: dict[str, Any] = {operand.name: operand.format or dense_format(len(operand.shape)) for operand in operands}
    if output_format == AUTO:
        output_format = auto_format(assignment, formats)
    formats[assignment.target.tensor] = output_format if output_format is not None else dense_format(len(assignment.target.subscripts))
    extents = {**_extents(assignment, {operand.name: operand.shape for operand in operands}), **dict(shape)}
    known = formats_of(assignment, formats)
    return _Request(assignment, known, extents, constant_extents(assignment, known, extents))


def _claim(expression: str, operands: Mapping[str, Any], output_format: Format | str | None, given: Mapping[str, int]) -> None:
    """Check, before anything is packed, that there is memory for a dense result beside what packing the operands makes."""
    packed = sum(bytes_to_pack(data) for data in operands.values() if type(data) is not np.ndarray and not isinstance(data, Tensor))
    if packed <= FLOOR:
        return
    assignment, result = parsed(expression), 0
    if output_format in (None, "dense"):
        extents = {**_extents(assignment, {name: attribute(data, "shape") or () for name, data in operands.items()}), **given}
        result = math.prod(extents.get(index, 1) for index in assignment.target.indices) * 4
    claim(packed + result, f"what '{expression}' needs of positions and of its result", FEWER_LEVELS)


def _ready(name: str, data: Any, others: list[Any], target: str, short: bool) -> Any:
    """Return an operand as an ndarray if it is plain and dense, else as a Tensor, with short indices where that is wanted."""
    if isinstance(data, (int, float, bool)):
        try:
            return np.asarray(data, number_dtype(data, others))
        except Exception:  # too large, or of a foreign class that may raise anything
            raise DataError(f"operand '{name}' is a number that no dtype holds") from None
    if isinstance(data, np.generic):
        return np.asarray(data)
    if type(data) is np.ndarray:
        return data
    if find_target(target).on_device and (there := on_device(name, data)) is not None:
        return there
    try:
        return borrowed(data, short)
    except DataError as error:
        raise DataError(f"operand '{name}': {error}") from None


def _extents(assignment: Assignment, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for access in accesses(assignment.value):
        shape = shapes[access.tensor]
        if len(shape) != len(access.subscripts):
            raise ShapeError(
                f"operand '{access.tensor}' has {len(shape)} modes, but the expression indexes {len(access.subscripts)} of them"
            )
        for subscript, extent in zip(access.subscripts, shape, strict=True):
            if subscript.is_index:
                found.setdefault(subscript.index, int(extent))
    return found


def _wish(schedule: str | Schedule) -> Schedule | None:
    """Return the given schedule, parsed before any operand is prepared; None for "auto"."""
    if isinstance(schedule, Schedule):
        return schedule
    return None if is_word(schedule, "auto") else Schedule(schedule)


def _schedule(
    wish: Schedule | None, choose: Chooser | None, request: _Request, operands: Mapping[str, Any], target: str, threads: int | None
) -> Schedule:
    if wish is not None:
        return wish
    found = choose(request.assignment, operands, request.formats, request.extents, target, threads) if choose is not None else None
    return Schedule() if found is None else found
