"""Arguments of the public calls: ``tensor``, operands by name, results on the pattern of an operand; and the types of arguments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal, TypeAlias

    from numpy.typing import DTypeLike

    from ...compiler.format import Format
    from ...compiler.storage.tensor import Tensor

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
        shape: the extents, where the data do not say them.
        dtype: of the values; None: as they are.
        fill_value: the value of entries that are not stored, such as the identity of a semiring's sum; None: the data's own, or 0.

    Raises:
        DataError: the data are no tensor.
        FormatError: the format does not fit the tensor.
    """
    from ...compiler.storage.construct import tensor as construct
    from ...compiler.storage.foreign import path_of

    if (path := path_of(data)) is not None:
        from ...datasets import load

        data = load(path)
    return construct(data, format, shape, dtype, fill_value)


def from_paths(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return operands with the tensors of files in place of their paths. If they are no mapping they are returned as they are, and whoever
    uses them raises the error."""
    if type(operands) is not dict and not isinstance(operands, Mapping):
        return operands
    if all(map(_is_no_path, operands.values())):
        return operands
    path_of = _path_of()
    return {name: tensor(data) if path_of(data) is not None else data for name, data in operands.items()}


def _is_no_path(data: Any) -> bool:
    """Return whether data are surely no path, told by their type alone, so that nothing has to be imported."""
    kind = type(data)
    return kind is float or kind is int or (kind.__module__.startswith(("numpy", "scipy.sparse")) and not issubclass(kind, str))


@cache
def _path_of() -> Callable[[Any], str | None]:
    """Import the function that recognises paths; the second call finds it at once."""
    from ...compiler.storage.foreign import path_of

    return path_of


def on_pattern(
    expression: str, operands: Mapping[str, Any], pattern: str | None, output_format: Format | str | None,
    semiring: tuple[str, str] | None, dtype: DTypeLike | None,
) -> tuple[str, Any, Format | str | None]:  # fmt: skip
    """Return expression, operands and format of the result, changed to compute on the pattern of an operand where ``pattern`` names one."""
    if pattern is None:
        return expression, operands, output_format
    from ...compiler.output_pattern import restriction

    found = restriction(expression, pattern, semiring, dtype)
    return found.expression, found.operands(from_paths(operands)), found.usual_format if output_format is None else output_format
