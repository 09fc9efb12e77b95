"""Handing operands to another process once: a folder of memory-mapped arrays and what they mean.

The receiver copies them into its own memory, so that what is timed lies in memory as the caller's operands do, and not in the page cache
of a file. Each copy begins where the caller's array does, relative to a pair of cache lines: rows that begin inside of one take one more.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compiler.errors import TuningError
from ...compiler.format import parse_format
from ...compiler.native.scratch import Scratch, sweep
from ...compiler.storage.aligned import copy_at, offset_of
from ...compiler.storage.sealed import sealed
from ...compiler.storage.tensor import LevelArrays, Tensor

_PREFIX = "sparsetune-handover-"
_SHARED_MEMORY = Path("/dev/shm")


def make_folder(size: int) -> Scratch:
    """Return a new folder for ``size`` bytes, in memory where there is room for twice as much, else on disk.

    Raises:
        TuningError: no place has room.
    """
    sweep_folders()
    for place in _places():
        try:
            room = shutil.disk_usage(place).free
            if room > 2 * size + 2**20:
                return Scratch(place, _PREFIX)
        except OSError:
            continue
    places = " or ".join(map(str, _places()))
    raise TuningError(f"no room for {size / 2**20:.0f} MiB of operands in {places}; free some, or set TMPDIR")


def sweep_folders() -> None:
    """Remove what killed processes have left behind: it may lie in memory."""
    for place in _places():
        sweep(place, _PREFIX)


def _places() -> tuple[Path, ...]:
    try:
        return _SHARED_MEMORY, Path(tempfile.gettempdir())
    except OSError:  # no folder for temporary files can be written
        return (_SHARED_MEMORY,)


def save(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors into a folder, under their names' numbers (a name may be anything).

    Raises:
        TuningError: they cannot be written.
    """
    manifest: list[dict[str, Any]] = []
    try:
        for number, (name, tensor) in enumerate(tensors.items()):
            entry: dict[str, Any] = {"name": name, "shape": tensor.shape, "format": str(tensor.format), "fill": _plain(tensor.fill_value)}
            entry["values"] = _write(folder / f"{number}-values.npy", tensor.values)
            entry["levels"] = [
                {part: _write(folder / f"{number}-{level}-{part}.npy", array) for part, array in arrays.parts.items()}
                for level, arrays in enumerate(tensor.levels)
            ]
            manifest.append(entry)
        (folder / "manifest.json").write_text(json.dumps(manifest))
    except OSError as error:
        raise TuningError(f"cannot hand over the operands through {folder}: {error.strerror or error}") from None


def load(folder: Path) -> dict[str, Tensor]:
    """Read what ``save`` wrote, into memory of this process."""
    return {entry["name"]: _read(folder, entry) for entry in json.loads((folder / "manifest.json").read_text())}


def moved(tensor: Tensor) -> Tensor:
    """Return a copy of a tensor in other memory."""

    def copy(array: NDArray[Any]) -> NDArray[Any]:
        return copy_at(array, offset_of(array))

    levels = tuple(LevelArrays(**{part: sealed(copy(array)) for part, array in level.parts.items()}) for level in tensor.levels)
    return Tensor.made(tensor.shape, tensor.format, levels, copy(tensor.values), tensor.fill_value)


def total_bytes(tensors: Mapping[str, Tensor]) -> int:
    """Return the size of the arrays that ``save`` would write."""
    return sum(tensor.nbytes for tensor in tensors.values())


def _write(path: Path, array: NDArray[Any]) -> tuple[str, int]:
    """Write an array; return the name of the file, and where the array begins (``offset_of``)."""
    np.save(path, array)
    return path.name, offset_of(array) // array.itemsize * array.itemsize


def _read(folder: Path, entry: Mapping[str, Any]) -> Tensor:
    def array(stored: tuple[str, int]) -> NDArray[Any]:
        name, offset = stored
        return copy_at(np.load(folder / name, mmap_mode="r"), offset)

    shape = tuple(entry["shape"])
    levels = tuple(LevelArrays(**{part: sealed(array(stored)) for part, stored in parts.items()}) for parts in entry["levels"])
    return Tensor.made(shape, parse_format(entry["format"] or "dense", len(shape)), levels, array(entry["values"]), entry["fill"])


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
