"""Arrays of other libraries in the memory of a GPU: CuPy's, torch's, and all with ``__cuda_array_interface__`` or DLPack.

They are used without a copy; they must be contiguous, with a dtype with which kernels compute. Matrices of CuPy and torch in compressed
rows become tensors whose arrays are on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from math import prod
from operator import is_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import DataError
from ..format import Format, dense_format, parse_format
from ..frozen import frozen
from ..numpy_later import np
from ..shown import attribute
from .aligned import INDEX_LIMIT
from .level_arrays import LevelArrays
from .tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CUDA, _MANAGED = 2, 13
"""The devices of DLPack whose memory kernels can access."""
_MEANINGLESS = "what it says of its memory on a GPU (__cuda_array_interface__) means nothing"


@frozen(eq=False)
class DeviceArray:
    """A contiguous array in the memory of a GPU, in row-major order.

    Attributes:
        pointer: the address of the first element.
        owner: an object that keeps the memory alive.
        read: fills an array of the host from an address of the device; None if another library owns the memory.
        writable: whether its owner lets others write.
    """

    pointer: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    owner: Any
    read: Callable[[NDArray[Any], int], None] | None = None
    writable: bool = True

    base: ClassVar[None] = None

    @property
    def size(self) -> int:
        """How many elements it has."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        raise DataError("an array in memory of a GPU is copied to the host by its to_numpy()")  # NumPy would make an array of objects

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        data = self.pointer if self.size else 0, not self.writable
        return {"shape": self.shape, "typestr": self.dtype.str, "data": data, "strides": None, "version": 3, "stream": None}

    def flat(self) -> DeviceArray:
        """Return a view of the array with one mode."""
        return self.reshaped((self.size,))

    def reshaped(self, shape: tuple[int, ...]) -> DeviceArray:
        """Return a view of the same memory with another shape, of as many elements; the caller makes sure of that."""
        return replace(self, shape=shape)

    def overlaps(self, other: DeviceArray) -> bool:
        """Whether an element of another array lies in the same memory."""
        return self.pointer < other.pointer + other.nbytes and other.pointer < self.pointer + self.nbytes

    def to_numpy(self) -> NDArray[Any]:
        """Return a copy on the host.

        Raises:
            DataError: another library owns the array, and must copy it.
        """
        if self.read is None:
            raise DataError("this array belongs to another library, which copies it to the host")
        made = np.empty(self.shape, self.dtype)
        if made.size:
            self.read(made, self.pointer)
        return made


class DeviceLevel(LevelArrays):
    """The arrays of one level in the memory of a GPU, where their content is not checked; positions may be on the host."""

    __slots__ = ()

    def __init__(self, parts: Mapping[str, Any]) -> None:
        object.__setattr__(self, "parts", MappingProxyType(dict(parts)))

    def owned(self) -> LevelArrays:
        return self


@frozen(eq=False)
class DeviceTensor:
    """A tensor whose arrays are in the memory of a GPU: an operand of another library, or a sparse result.

    Attributes:
        levels: as in ``Tensor``, with arrays on the device.
    """

    shape: tuple[int, ...]
    format: Format
    levels: tuple[LevelArrays, ...]
    values: DeviceArray

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def order(self) -> int:
        return len(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        raise DataError("a tensor in memory of a GPU is copied to the host by its to_tensor(), or densely by to_numpy()")

    def as_operand(self) -> DeviceTensor:
        """Return the tensor as kernels read it: positions of a sparse result have 64 bits and are copied to the host in 32 if they fit
        and its coordinates have 32. Arrays of other libraries stay as they are."""
        levels = self.levels if self.values.size > INDEX_LIMIT else tuple(map(_narrowed, self.levels))
        return self if all(map(is_, levels, self.levels)) else replace(self, levels=levels)

    def to_tensor(self) -> Tensor:
        """Return a copy on the host.

        Raises:
            DataError: another library owns the values, and must copy them.
        """
        read = self.values.read

        def copied(part: DeviceArray | NDArray[Any]) -> NDArray[Any]:
            return replace(part, read=part.read or read).to_numpy() if isinstance(part, DeviceArray) else part

        levels = tuple(LevelArrays(**{name: copied(part) for name, part in level.parts.items()}) for level in self.levels)  # type: ignore[arg-type]
        return Tensor(self.shape, self.format, levels, self.values.to_numpy())

    def to_numpy(self) -> NDArray[Any]:
        """Return a dense copy on the host. Raises as ``to_tensor``."""
        return self.to_tensor().to_numpy()

    def to_scipy(self) -> Any:
        """Return a copy on the host for SciPy. Raises as ``to_tensor``, and as ``Tensor.to_scipy``."""
        return self.to_tensor().to_scipy()

    def __repr__(self) -> str:
        return f"DeviceTensor({self.shape}, {str(self.format)!r}, {self.dtype}, {self.values.size} values)"


def _narrowed(level: LevelArrays) -> LevelArrays:
    pos, crd = level.parts.get("pos"), level.parts.get("crd")
    if not isinstance(pos, DeviceArray) or pos.read is None or crd is None or (pos.itemsize, crd.itemsize) != (8, 4):
        return level
    return DeviceLevel({**level.parts, "pos": pos.to_numpy().astype(np.int32)})


def device_array(data: Any) -> DeviceArray | None:
    """Return an array on a GPU without copying it; None for all other data.

    Raises:
        DataError: it is not contiguous, its type is no dtype, or it has a mask.
    """
    kind = type(data)
    if issubclass(kind, DeviceArray):
        return data
    if issubclass(kind, np.ndarray | int | float):
        return None
    found = attribute(data, "__cuda_array_interface__") if hasattr(kind, "__cuda_array_interface__") else None
    if type(found) is dict:
        try:
            pointer, sealed = int(found["data"][0]), bool(found["data"][1])
            shape, named = tuple(map(int, found["shape"])), np.dtype(found["typestr"])
            strides = None if found.get("strides") is None else tuple(map(int, found["strides"]))
        except (LookupError, TypeError, ValueError):
            raise DataError(_MEANINGLESS) from None
        if found.get("mask") is not None:
            raise DataError("it has a mask (__cuda_array_interface__), of which kernels know nothing; fill what is masked first")
        return _checked(pointer, shape, strides, named, data, not sealed)
    return _through_dlpack(data) if hasattr(kind, "__dlpack_device__") and hasattr(kind, "__dlpack__") else None


def _through_dlpack(data: Any) -> DeviceArray | None:
    try:
        device = int(data.__dlpack_device__()[0])
    except Exception:  # a foreign object may raise anything; reading it on the host later raises the error
        return None
    if device not in (_CUDA, _MANAGED):
        return None
    try:
        viewed = import_module("cuda.core.utils").StridedMemoryView.from_dlpack(data, stream_ptr=-1)
    except ImportError:
        raise DataError("arrays of a GPU are taken through DLPack by cuda-core, which is missing: pip install 'sparsetune[cuda]'") from None
    except Exception as error:  # a foreign object may raise anything
        raise DataError(f"its library does not hand it over through DLPack: {type(error).__name__}: {error}") from None
    kind = np.dtype(viewed.dtype)
    strides = None if viewed.strides is None else tuple(step * kind.itemsize for step in viewed.strides)
    return _checked(int(viewed.ptr), tuple(viewed.shape), strides, kind, (data, viewed), not viewed.readonly)


def _checked(
    pointer: int, shape: tuple[int, ...], strides: tuple[int, ...] | None, kind: np.dtype[Any], owner: Any, writable: bool
) -> DeviceArray:
    if min(shape, default=0) < 0 or (pointer == 0 and prod(shape)) or (strides is not None and len(strides) != len(shape)):
        raise DataError(_MEANINGLESS)
    packed = [prod(shape[mode + 1 :]) * kind.itemsize for mode in range(len(shape))]
    steps = packed if strides is None or 0 in shape else strides
    if any(extent > 1 and step != wanted for extent, step, wanted in zip(shape, steps, packed, strict=True)):
        raise DataError("its elements are on a GPU and do not lie one after another in row-major order; make it contiguous first")
    return DeviceArray(pointer, shape, kind, owner, writable=writable)


def device_tensor(data: Any) -> DeviceTensor | None:
    """Return an operand that is in the memory of a GPU; None for all other data.

    Raises:
        DataError: as ``device_array``.
    """
    if issubclass(type(data), DeviceTensor):  # isinstance may fail for foreign objects, which can define __class__
        return data
    parts = _rows_of_cupy(data) or _rows_of_torch(data)
    if parts is not None:
        pos, crd, values = (device_array(part) for part in parts)
        if pos is None or crd is None or values is None:
            return None
        return _rows(data.shape, pos, crd, values)
    found = device_array(data)
    return None if found is None else DeviceTensor(found.shape, dense_format(found.ndim), (DeviceLevel({}),) * found.ndim, found.flat())


def _rows(shape: Any, pos: DeviceArray, crd: DeviceArray, values: DeviceArray) -> DeviceTensor:
    """Return a matrix in compressed rows. Raises ``DataError`` if its arrays cannot be those of one; their elements are not looked at."""
    if pos.dtype != crd.dtype or pos.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
        raise DataError(f"its indices are of {pos.dtype} and {crd.dtype}; kernels take int32, or int64 for both")
    if len(shape) != 2 or pos.shape != (shape[0] + 1,) or crd.shape != values.shape or values.ndim != 1:
        raise DataError(
            f"its arrays have shapes {pos.shape}, {crd.shape}, {values.shape}, which are not those of a matrix {tuple(shape)} in"
            " compressed rows"
        )
    return DeviceTensor(tuple(shape), parse_format("csr", 2), (LevelArrays(), DeviceLevel({"pos": pos, "crd": crd})), values)


def on_device(name: str, data: Any) -> DeviceTensor | None:
    """Return ``device_tensor`` of an operand, with the operand's name in errors."""
    try:
        return device_tensor(data)
    except DataError as error:
        raise DataError(f"operand '{name}': {error}") from None


def _rows_of_cupy(data: Any) -> tuple[Any, Any, Any] | None:
    """Return positions, coordinates and values of a CuPy matrix in compressed rows; None for other data."""
    form = getattr(type(data), "format", None)
    values = attribute(data, "data") if type(form) is str and form == "csr" else None
    return (data.indptr, data.indices, values) if hasattr(type(values), "__cuda_array_interface__") else None


def _rows_of_torch(data: Any) -> tuple[Any, Any, Any] | None:
    if not hasattr(type(data), "crow_indices") or attribute(data, "is_cuda") is not True:
        return None
    if not str(data.layout).endswith("sparse_csr"):
        return None
    return data.crow_indices(), data.col_indices(), data.values()
