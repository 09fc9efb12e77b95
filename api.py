"""The public calls that join compiler, data files and tuner: what each needs is imported when it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from .compiler.format import Format
    from .compiler.schedule.schedule import Schedule
    from .compiler.storage.tensor import Tensor
    from .tuner.lookup import Match
    from .tuner.session import TuningResult

__all__ = ["einsum", "evaluate", "lookup", "tensor", "tune"]


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

    if isinstance(data, (str, PathLike)):
        from .datasets import load

        data = load(data)
    return construct(data, format, shape, dtype, fill_value)


def _from_paths(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(operands, Mapping):
        return operands
    return {name: tensor(data) if isinstance(data, (str, PathLike)) else data for name, data in operands.items()}


@cache
def _evaluator() -> Callable[..., Any]:
    """Import what computes expressions; found at once from the second call on."""
    from .compiler.evaluate import evaluate as compute

    return compute


def evaluate(
    expression: str,
    operands: Mapping[str, Any],
    output_format: Format | str | None = None,
    schedule: str | Schedule = "auto",
    shape: Mapping[str, int] | None = None,
    dtype: DTypeLike | None = None,
    target: str = "cpu",
    threads: int | None = None,
    convert: str = "auto",
    semiring: tuple[str, str] | None = None,
    database: str | None = None,
) -> Any:
    """Compute an expression; see ``compiler.evaluate.evaluate``. Operands may be paths.

    Args:
        schedule: "auto" (database, then static model), "default", a text, or a ``Schedule``.
        database: path or URL; None: $SPARSETUNE_DATABASE or the default file.
    """
    ready = _from_paths(operands)

    def choose(*request: Any) -> Schedule:
        from .tuner.lookup import choose as chosen

        return chosen(expression, ready, output_format=output_format, target=target, threads=threads, database=database)

    return _evaluator()(expression, ready, output_format, schedule, shape, dtype, target, threads, convert, semiring, choose)


def einsum(subscripts: Any, *operands: Any, optimize: Any = None, **keywords: Any) -> Any:
    """Compute an expression in NumPy's notation; keywords are those of ``evaluate``.

    ``optimize`` is taken as NumPy's is and has no effect: the schedule decides in which order operands are contracted.

    Ellipses, indices that stand twice in one operand, and lists of numbers (``einsum(A, [0, 1], x, [1], [0])``) mean what they do
    there, and extents of 1 are stretched. The result is dense unless ``output_format`` says otherwise.
    """
    from .compiler.einsum import einsum_expression, einsum_operands, from_lists
    from .compiler.storage.arithmetic import narrowed

    if not isinstance(subscripts, str) and operands:
        subscripts, operands = from_lists((subscripts, *operands))
    ready = [data if isinstance(getattr(data, "ndim", None), int) else tensor(data) for data in operands]
    expression, kept = einsum_expression(subscripts, [tuple(data.shape) for data in ready])
    return evaluate(expression, einsum_operands([narrowed(*operand) for operand in zip(ready, kept, strict=True)]), **keywords)


def lookup(expression: str, operands: Mapping[str, Any], **keywords: Any) -> Match:
    """Return the schedule that ``evaluate`` would use; see ``tuner.lookup.lookup``."""
    from .tuner.lookup import lookup as find

    return find(expression, _from_paths(operands), **keywords)


def tune(expression: str, operands: Mapping[str, Any], **keywords: Any) -> TuningResult:
    """Search the fastest schedule on this machine; see ``tuner.session.tune``."""
    from .tuner.session import tune as search

    return search(expression, _from_paths(operands), **keywords)
