"""Writers of .mtx, .tns, .npy and .npz: the file appears whole or not at all."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..compiler.errors import DataError
from ..compiler.native.whole import whole_file
from ..compiler.storage.construct import tensor
from ..compiler.storage.tensor import Tensor
from .npz import FORMAT_KEY

_BLOCK = 1 << 16


def write(data: Any, path: str | os.PathLike[str]) -> Path:
    """Write a tensor, or anything that ``tensor`` takes, in the format that the ending of the file's name says.

    - .mtx, .mtx.gz: matrices; coordinates, or an array for dense ones; real, integer or complex, in the shortest decimals
      that read back as the same numbers. Booleans become integers.
    - .tns, .tns.gz: any order from 1 on, real; with a header (order, extents) only where the largest coordinates do not
      tell the extents.
    - .npy: dense, by ``to_numpy``. .npz: any tensor, with its format and fill value.

    Raises:
        DataError: the ending is unknown, the format cannot hold the tensor, or the file cannot be written.
    """
    target = Path(path)
    stored = data if isinstance(data, Tensor) else tensor(data)
    name = target.name.lower()
    for ending, writer in _WRITERS.items():
        if name.endswith((ending, f"{ending}.gz")) and not (name.endswith(".gz") and ending in (".npy", ".npz")):
            _write_whole(target, partial(writer, stored), name.endswith(".gz"))
            return target
    raise DataError(f"{target}: files end in .mtx, .tns (also .gz), .npy or .npz")


def _write_whole(target: Path, writer: Callable[[IO[bytes]], None], compress: bool) -> None:
    try:
        with whole_file(target) as out:
            if compress:
                with gzip.GzipFile(filename="", mode="wb", fileobj=out, compresslevel=6, mtime=0) as packed:
                    writer(packed)  # pyright: ignore[reportArgumentType] GzipFile writes bytes
            else:
                writer(out)
    except OSError as error:
        raise DataError(f"{target}: cannot be written: {error.strerror or error}") from None


def _check_fill(stored: Tensor, ending: str) -> None:
    if stored.fill_value != 0:
        raise DataError(f"a {ending} file knows no fill value, and this tensor's is {stored.fill_value}; write .npz")


def _write_mtx(stored: Tensor, out: IO[bytes]) -> None:
    _check_fill(stored, ".mtx")
    if stored.order != 2:
        raise DataError(f"a .mtx file holds a matrix, not a tensor of order {stored.order}; write .tns or .npz")
    field = {"b": "integer", "i": "integer", "u": "integer", "c": "complex"}.get(stored.dtype.kind, "real")
    if stored.format.is_dense:
        out.write(f"%%MatrixMarket matrix array {field} general\n{stored.shape[0]} {stored.shape[1]}\n".encode())
        _write_lines(out, np.empty((0, len(stored.values)), np.int64), stored.to_numpy().T.reshape(-1))
        return
    coordinates, values = stored.to_coordinates()
    out.write(f"%%MatrixMarket matrix coordinate {field} general\n{stored.shape[0]} {stored.shape[1]} {len(values)}\n".encode())
    _write_lines(out, coordinates, values)


def _write_tns(stored: Tensor, out: IO[bytes]) -> None:
    _check_fill(stored, ".tns")
    if stored.order == 0 or stored.dtype.kind == "c":
        what = "a scalar" if stored.order == 0 else "complex values"
        raise DataError(f"a .tns file cannot hold {what}; write .npy or .npz")
    coordinates, values = stored.to_coordinates()
    if tuple((coordinates.max(axis=1, initial=-1) + 1).tolist()) != stored.shape:
        out.write(f"{stored.order}\n{' '.join(map(str, stored.shape))}\n".encode())
    _write_lines(out, coordinates, values)


def _write_lines(out: IO[bytes], coordinates: NDArray[np.int64], values: NDArray[Any]) -> None:
    for begin in range(0, len(values), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        columns = [(row[block] + 1).astype(np.str_).tolist() for row in coordinates]
        lines = map(" ".join, zip(*columns, *_shortest(values[block]), strict=True))
        out.write(("\n".join(lines) + "\n").encode())


def _shortest(values: NDArray[Any]) -> Iterator[list[str]]:
    """Yield columns of the shortest texts that read back as the same numbers."""
    if values.dtype.kind == "c":
        yield from (*_shortest(np.real(values)), *_shortest(np.imag(values)))
    elif values.dtype == np.float32:
        yield values.astype(np.str_).tolist()
    else:
        yield list(map(repr, (values.astype(np.int8) if values.dtype == np.bool_ else values).tolist()))


def _write_npy(stored: Tensor, out: IO[bytes]) -> None:
    np.save(out, stored.to_numpy(), allow_pickle=False)


def _write_npz(stored: Tensor, out: IO[bytes]) -> None:
    if stored.format.is_dense:
        parts: dict[str, Any] = {"values": stored.to_numpy()}
    else:
        coordinates, values = stored.to_coordinates()
        parts = {"coordinates": coordinates, "values": values}
    fill = np.array(stored.fill_value, stored.dtype)
    np.savez_compressed(out, **{FORMAT_KEY: np.array(str(stored.format))}, shape=np.array(stored.shape, np.int64), fill_value=fill, **parts)


_WRITERS: dict[str, Callable[[Tensor, IO[bytes]], None]] = {".mtx": _write_mtx, ".tns": _write_tns, ".npy": _write_npy, ".npz": _write_npz}
