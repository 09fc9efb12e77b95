"""Reading files of tensors: the ending of the name decides the format."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ..compiler.errors import DataError, ResourceError
from ..compiler.format import Format
from ..compiler.storage.tensor import Tensor
from . import mtx, tns
from .mtx import read_mtx
from .npz import read_npy, read_npz
from .tns import read_tns

_TEXT: dict[str, Callable[..., Tensor]] = {".mtx": read_mtx, ".mm": read_mtx, ".ttx": read_mtx, ".tns": read_tns}
_HEADS: dict[str, Callable[[str], tuple[int, ...] | None]] = {
    ".mtx": mtx.announced_shape, ".mm": mtx.announced_shape, ".ttx": mtx.announced_shape, ".tns": tns.announced_shape,
}  # fmt: skip
_BINARY: dict[str, Callable[..., Tensor]] = {".npz": read_npz, ".npy": read_npy}
ENDINGS = (*_TEXT, *(f"{ending}.gz" for ending in _TEXT), *_BINARY)


def has_known_ending(name: str) -> bool:
    """Return whether a name has the ending of a format that can be read."""
    return name.lower().endswith(ENDINGS)


def stem(path: Path) -> str:
    """Return a file's name without the endings: ``nell-2`` for ``nell-2.tns.gz``."""
    name = path.name
    for ending in (".gz", *_TEXT, *_BINARY):
        if name.lower().endswith(ending):
            name = name[: -len(ending)]
    return name


def read_file(path: str | os.PathLike[str], format: Format | str | None = None, index_base: int = 1) -> Tensor:
    """Return the tensor of a .mtx (.mm, .ttx), .tns (all also .gz), .npz or .npy file.

    Args:
        path: the file.
        format: None: csr or csf for sparse files, dense for arrays.
        index_base: the first coordinate in text files: 1, or 0 for files that count from 0.

    Raises:
        DataError: the ending is unknown, or the file is broken.
        ResourceError: there is no memory for the tensor; the message names the file.
    """
    try:
        return _read(path, format, index_base)
    except ResourceError as error:
        named = str(error).startswith(os.fspath(path))
        raise error if named else ResourceError(f"{os.fspath(path)}: {error}") from None
    except MemoryError:
        raise ResourceError(f"{os.fspath(path)}: there is not enough memory to read it") from None


def announced_shape(path: str) -> tuple[int, ...] | None:
    """Return the shape that the head of a text file, plain or gzip, gives; None for other files, and where the head does not give it.

    Raises:
        DataError: the file or its head is broken.
    """
    name = path.lower()
    return next((find(path) for ending, find in _HEADS.items() if name.endswith((ending, f"{ending}.gz"))), None)


def _read(path: str | os.PathLike[str], format: Format | str | None, index_base: int) -> Tensor:
    name = os.fspath(path).lower()
    for ending, reader in _TEXT.items():
        if name.endswith((ending, f"{ending}.gz")):
            return reader(path, format, index_base)
    for ending, reader in _BINARY.items():
        if name.endswith(ending):
            return reader(path, format)
    raise DataError(f"{os.fspath(path)}: files of tensors end in {', '.join((*_TEXT, *_BINARY))} (the text ones also in .gz)")
