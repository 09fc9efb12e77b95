"""The stored tensor: a tree of level arrays over one flat array of values (Chou et al., "Format abstraction", section 3)."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..errors import DataError, NotImplied, ShapeError
from ..format import Format, parse_format
from ..frozen import frozen
from ..native.memory import readable_bytes
from ..numpy_later import np
from ..shown import shown
from .array_operators import ArrayOperators
from .level_arrays import LevelArrays
from .sealed import pin
from .shape import checked_shape

if TYPE_CHECKING:
    import scipy.sparse
    from numpy.typing import DTypeLike, NDArray


@frozen(eq=False, repr=False)
class Tensor(ArrayOperators):
    """A tensor in some format. This library never changes one in place.

    Args:
        shape: extents by mode.
        format: level kinds and the mode that each level stores.
        levels: the arrays of each level, outermost first.
        values: one value for every position of the last level (one for order 0), in the tensor's dtype.
        fill_value: the value at coordinates that are not stored: 0, or the identity of a semiring's addition.

    Raises:
        DataError, ShapeError: the parts do not fit together. Every position and coordinate is checked.

    Invariant: a compressed level holds no position whose subtree stores nothing, unless a dense level lies between;
    coordinates of one fibre are sorted and unique (not those of a compressed level above a singleton, which repeat).
    The values may belong to the caller: what the caller writes into them later is seen here. Index arrays are the tensor's own.

    Tensors are equal only if they are the same object; ``compiler.operators`` defines ``+ - * /``.
    """

    shape: tuple[int, ...]
    format: Format
    levels: tuple[LevelArrays, ...]
    values: NDArray[Any]
    fill_value: Any = 0

    def __post_init__(self) -> None:
        from .check import check

        check(self.shape, self.format, self.levels, self.values, self.fill_value)
        self.__dict__.update(_pin=pin(self.values), _positions=self.values.size)

    @classmethod
    def made(
        cls, shape: tuple[int, ...], format: Format, levels: tuple[LevelArrays, ...], values: NDArray[Any], fill_value: Any = 0
    ) -> Tensor:
        """Return a tensor of parts that are known to fit together; nothing is checked."""
        tensor = object.__new__(cls)
        tensor.__dict__.update(shape=shape, format=format, levels=levels, values=values, fill_value=fill_value, _pin=pin(values))
        tensor.__dict__["_positions"] = values.size
        return tensor

    @property
    def intact(self) -> Tensor:
        """The tensor itself, after checking that there is still one value for every position: the shape or dtype of an ndarray can be set.

        Raises:
            DataError: there is not.
        """
        if self.values.shape != (self.__dict__["_positions"],):
            raise DataError("the values of a Tensor were given another shape or dtype, and no longer fit its positions; make it anew")
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Tensor, (self.shape, self.format, self.levels, self.values, self.fill_value)

    @property
    def order(self) -> int:
        """Number of modes."""
        return len(self.shape)

    ndim = order

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return self.values.dtype

    @cached_property
    def nnz(self) -> int:
        """Number of stored entries, including explicit zeros and the padding of dense levels, but not positions that hold nothing."""
        from .unpack import count_entries

        return count_entries(self)

    @property
    def nbytes(self) -> int:
        """Bytes of all the arrays."""
        return self.values.nbytes + sum(level.nbytes for level in self.levels)

    def __repr__(self) -> str:
        fill = "" if self.fill_value == 0 else f", fill_value={self.fill_value}"
        size = readable_bytes(self.nbytes)
        return f"Tensor(shape={self.shape}, format='{self.format}', dtype={self.dtype}, nnz={self.nnz}, memory={size}{fill})"

    def _repr_html_(self) -> str:
        whole = {"shape": " x ".join(map(str, self.shape)) or "scalar", "format": self.format, "dtype": self.dtype, "nnz": self.nnz}
        whole |= {"memory": readable_bytes(self.nbytes)} | ({} if self.fill_value == 0 else {"fill value": self.fill_value})
        rows = []
        for level, (kind, mode, arrays) in enumerate(zip(self.format.levels, self.format.order, self.levels, strict=True)):
            rows.append((level, mode, kind, self.shape[mode], "" if arrays.crd is None else len(arrays.crd), readable_bytes(arrays.nbytes)))
        from .. import html  # which notebooks alone need

        return html.facts("Tensor", whole) + html.table(("level", "mode", "kind", "extent", "coordinates", "memory"), rows)

    def to_numpy(self) -> NDArray[Any]:
        """Return the whole tensor as an ndarray of its shape; coordinates that are not stored hold the fill value."""
        from .unpack import to_dense

        return to_dense(self)

    todense = to_numpy

    def to_coordinates(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return (coordinates of shape (order, nnz), values) of the stored entries, lexicographic in mode order."""
        from .unpack import to_coordinates

        return to_coordinates(self)

    def to_scipy(self) -> scipy.sparse.sparray:
        """Return a SciPy sparse array: csr and csc for those formats (sharing the values), else an n-D coo_array.

        Raises:
            DataError: the fill value is not 0, or the tensor is a scalar: SciPy has neither.
        """
        from .interchange import to_scipy

        return to_scipy(self)

    def to_torch(self) -> Any:
        """Return a torch tensor: strided, sparse_csr, sparse_csc or sparse_coo, depending on the format. Values are shared if possible.

        Raises:
            DataError: torch cannot be imported, or cannot hold values of this type or this fill value.
        """
        from .interchange import to_torch

        return to_torch(self)

    toarray = to_numpy

    def tocsr(self) -> scipy.sparse.sparray:
        """Return a matrix as a SciPy CSR array; the values are shared if the tensor is in csr.

        Raises:
            ShapeError: it is no matrix. DataError: the fill value is not 0.
        """
        if self.order != 2:
            raise ShapeError(f"tocsr takes matrices, not a tensor of order {self.order}; use to_scipy")
        return self.convert("csr").to_scipy()

    def with_values(self, values: Any) -> Tensor:
        """Return a tensor that stores other values at the same places; the level arrays are shared, the values are copied.

        Args:
            values: one for every position of ``T.values``, in the same order.

        Raises:
            DataError: there are more or fewer, or they are not of a supported type.
        """
        from .dtypes import cast_values, checked_dtype, checked_fill
        from .foreign import dense_array

        given = dense_array(values)
        if given.shape != self.values.shape:
            raise DataError(f"values of shape {given.shape} do not fit the {self.values.size} positions of this tensor")
        kept = cast_values(np.array(given), checked_dtype(given.dtype))
        return Tensor.made(self.shape, self.format, self.levels, kept, checked_fill(self.fill_value, kept.dtype))

    def convert(self, format: Format | str) -> Tensor:
        """Return the same entries in another format; the tensor itself if it is in that format.

        Fill values that only pad dense levels are left out if the new format allows that; explicit zeros of
        the other levels stay.

        Raises:
            FormatError: the format is unknown, has another order, or cannot hold these entries.
        """
        wanted = parse_format(format, self.order)
        if wanted == self.format:
            return self
        from .convert import convert

        return convert(self, wanted)

    def astype(self, dtype: DTypeLike) -> Tensor:
        """Return the tensor with its values cast; the level arrays are shared.

        Raises:
            DataError: the dtype is not supported, or cannot hold the fill value or imaginary parts.
        """
        from .dtypes import cast_values, checked_dtype, checked_fill

        kind = checked_dtype(dtype)
        if kind == self.dtype:
            return self
        return Tensor.made(self.shape, self.format, self.levels, cast_values(self.values, kind), checked_fill(self.fill_value, kind))

    def transpose(self, modes: Iterable[int] | None = None) -> Tensor:
        """Return the tensor whose mode m is mode ``modes[m]`` of this one (reversed by default); all arrays are shared."""
        try:
            chosen = tuple(reversed(range(self.order))) if modes is None else checked_shape(modes)
        except ShapeError:
            chosen = ()
        if sorted(chosen) != list(range(self.order)):
            raise ShapeError(f"transpose takes each of the modes 0 to {self.order - 1} once, not {shown(modes)}")
        relabelled = tuple(chosen.index(mode) for mode in self.format.order)
        shape = tuple(self.shape[mode] for mode in chosen)
        return Tensor.made(shape, Format(self.format.levels, relabelled), self.levels, self.values, self.fill_value)

    @property
    def T(self) -> Tensor:  # noqa: N802 the name that every array library gives it
        """The tensor with its modes reversed, as ``transpose`` returns it."""
        return self.transpose()

    def block(self, block_shape: tuple[int, ...], format: Format | str | None = None) -> Tensor:
        """Return the tensor of order 2n whose last n modes lie inside a block: BCSR for matrices; see ``storage.block.block``."""
        from .block import block

        return block(self, block_shape, format)

    def unblock(self, shape: tuple[int, ...] | None = None, format: Format | str | None = None) -> Tensor:
        """Return the plain tensor of a blocked one; ``shape`` is needed if blocks were padded. See ``storage.block.unblock``."""
        from .block import unblock

        return unblock(self, shape, format)

    def matvec(self, vector: Any) -> NDArray[Any]:
        """Return ``T @ vector``, for SciPy's solvers (``scipy.sparse.linalg.aslinearoperator``)."""
        return self @ np.asarray(vector)

    def rmatvec(self, vector: Any) -> NDArray[Any]:
        """Return ``T.T @ vector``, for SciPy's solvers."""
        return self.T @ np.asarray(vector)

    def __array__(self, *_args: object, **_keywords: object) -> NDArray[Any]:
        if sys._getframe(1).f_globals.get("__name__", "").startswith("scipy.sparse"):
            return _opaque(self)
        raise NotImplied("a sparse Tensor does not become an ndarray on its own; call .to_numpy() if it fits into memory")

    def __len__(self) -> int:
        if not self.shape:
            raise NotImplied("a Tensor of order 0 has no length; use .values[0]")
        return self.shape[0]

    def __iter__(self) -> Any:
        raise NotImplied("a Tensor is not iterated; use .to_coordinates(), or slice it: T[3]")

    def __bool__(self) -> bool:
        raise NotImplied("the truth of a Tensor is not defined; look at .nnz, or at .values for a scalar")


def _opaque(tensor: Tensor) -> NDArray[Any]:
    """Return an array of one object, for which SciPy's arrays leave an operation to the other operand."""
    array = np.empty((), object)
    array[()] = tensor
    return array
