"""``einsum``: NumPy's notation."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

from .evaluating import evaluate
from .operands import tensor

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from ...compiler.format import Format
    from ...compiler.schedule.schedule import Schedule
    from ...compiler.storage.tensor import Tensor
    from .operands import DenseFormat, SparseFormat


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
@overload
def einsum(
    subscripts: Any, *operands: Any, output_pattern: str, optimize: Any = None, output_format: Format | str | None = None,
    schedule: str | Schedule = "auto", shape: Mapping[str, int] | None = None, dtype: DTypeLike | None = None, target: str = "cpu",
    threads: int | None = None, convert: str = "auto", semiring: tuple[str, str] | None = None,
    database: str | PathLike[str] | None = None, memory_bound: float | None = None, cache_share: float | None = None,
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
    output_pattern: str | None = None,
) -> Any:
    """Compute an expression in NumPy's notation, ``einsum("ik,kj->ij", A, B)``.

    Ellipses, indices that stand twice in one operand, and lists of numbers (``einsum(A, [0, 1], x, [1], [0])``) mean what they do
    there, and extents of 1 are stretched. Operands are called A, B, C ... in a schedule and a pattern, and the result ``out``.

    Args:
        subscripts: NumPy's text; or the first operand, where lists of numbers follow.
        operands: in the order of the text.
        optimize: accepted for NumPy's sake and without effect, since the schedule decides in which order operands are contracted.
        output_format, schedule, shape, dtype, target, threads, convert, semiring, database, memory_bound, cache_share: as for
            ``evaluate``; the result is dense unless ``output_format`` or ``output_pattern`` says otherwise.
        output_pattern: the access of an operand whose pattern the result has, ``"A(i,:)"``, or ``"A"``: as for ``evaluate``.
    """
    from ...compiler.einsum import einsum_expression, einsum_operands, from_lists
    from ...compiler.storage.arithmetic import narrowed
    from ...compiler.storage.foreign import has_shape
    from ...compiler.storage.on_device import device_tensor
    from ...compiler.targets.registry import find_target

    if not isinstance(subscripts, str) and operands:
        subscripts, operands = from_lists((subscripts, *operands))
    there = [device_tensor(data) if find_target(target).on_device else None for data in operands]
    ready = [found or (data if has_shape(data) else tensor(data)) for data, found in zip(operands, there, strict=True)]
    expression, kept = einsum_expression(subscripts, [tuple(data.shape) for data in ready])
    named = einsum_operands([narrowed(*operand) for operand in zip(ready, kept, strict=True)])
    return evaluate(
        expression, named, output_format, schedule, shape, dtype, target, threads, convert, semiring, database, memory_bound, cache_share,
        output_pattern=output_pattern,
    )  # fmt: skip
