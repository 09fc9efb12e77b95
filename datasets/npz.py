"""NumPy's files: .npz as SciPy, PyData sparse and this package write them, .npy of dense arrays."""

from __future__ import annotations

import os
import zipfile
from typing import Any, BinaryIO

import numpy as np

from ..compiler.errors import DataError, SparsetuneError
from ..compiler.format import Format, parse_format
from ..compiler.native.memory import claim
from ..compiler.storage.construct import tensor
from ..compiler.storage.tensor import Tensor
from .openfile import open_file

FORMAT_KEY = "sparsetune_format"
"""The array that holds the format as text. The others are shape, coordinates, values and fill_value; only values for dense formats."""


def read_npz(path: str | os.PathLike[str], format: Format | str | None = None) -> Tensor:
    """Return the tensor of a .npz file written by ``scipy.sparse.save_npz``, PyData's ``sparse.save_npz`` or ``write``.

    Raises:
        DataError: the file is missing or none of these.
    """
    shown = os.fspath(path)
    opened = _opened(path)
    with opened as parts:
        if not isinstance(parts, np.lib.npyio.NpzFile):
            raise DataError(f"{shown}: is an array in NumPy's .npy format; name it .npy")
        names = set(parts.files)
        try:
            if FORMAT_KEY in names:
                return _read_ours(parts, format)
            if {"format", "shape"} <= names:
                return _read_scipy(opened.file, format)
            if {"coords", "data", "shape"} <= names:
                fill = parts["fill_value"][()] if "fill_value" in names else None
                return tensor((parts["coords"], parts["data"]), format, tuple(parts["shape"].tolist()), fill_value=fill)
        except SparsetuneError as error:
            raise type(error)(f"{shown}: {error}") from None
        except (ValueError, KeyError, OSError, TypeError, zipfile.BadZipFile) as error:
            raise DataError(f"{shown}: the arrays in it make no tensor: {str(error).splitlines()[0]}") from None
    raise DataError(
        f"{shown}: holds {', '.join(sorted(names)) or 'nothing'}; a tensor is what scipy.sparse.save_npz or sparsetune has written"
    )


def read_npy(path: str | os.PathLike[str], format: Format | str | None = None) -> Tensor:
    """Return the dense array of a .npy file.

    Raises:
        DataError: the file is missing, broken, or holds objects.
    """
    with _opened(path) as array:
        if not isinstance(array, np.ndarray):
            raise DataError(f"{os.fspath(path)}: is a .npz archive; name it .npz")
        return tensor(array, format)


class _opened:  # noqa: N801 used like a function
    """A NumPy file that is closed at the end of the block; any error in it becomes a ``DataError``."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        shown = os.fspath(path)
        self.file = open_file(path)
        try:
            self.content: Any = np.load(self.file, allow_pickle=False)
            if isinstance(self.content, np.lib.npyio.NpzFile):
                claim(sum(member.file_size for member in zipfile.ZipFile(self.file).infolist()), f"{shown}: the unpacked content")
        except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
            self.file.close()
            reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
            raise DataError(f"{shown}: cannot be read as NumPy's format: {reason}") from None
        except BaseException:
            self.file.close()
            raise

    def __enter__(self) -> Any:
        return self.content

    def __exit__(self, *_details: object) -> None:
        if not isinstance(self.content, np.ndarray):
            self.content.close()
        self.file.close()


def _read_ours(parts: Any, format: Format | str | None) -> Tensor:
    shape = tuple(parts["shape"].tolist())
    stored = parse_format(str(parts[FORMAT_KEY]), len(shape))
    fill = parts["fill_value"][()]
    data = parts["values"] if stored.is_dense else (parts["coordinates"], parts["values"])
    read = tensor(data, stored, shape, fill_value=fill)
    return read if format is None else read.convert(format)


def _read_scipy(file: BinaryIO, format: Format | str | None) -> Tensor:
    """Return the array of a file that SciPy has written; SciPy reads it from the open file."""
    import scipy.sparse

    file.seek(0)
    return tensor(scipy.sparse.load_npz(file), format)
