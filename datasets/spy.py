"""Descriptions of a sparse pattern: numbers, and a picture of where the entries are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compiler.errors import DataError
from ..compiler.native.whole import whole_file
from ..compiler.storage.tensor import Tensor

_SHADES = " .:-=+*#%@"
_COLUMNS, _LINES = 72, 24


def pattern_facts(tensor: Tensor) -> dict[str, Any]:
    """Return numbers that describe a pattern, by name.

    Every order has its density and, per mode, how many slices hold anything; matrices have entries per row (least, most, mean), empty
    rows, the share of entries on the diagonal, the bandwidth, and the share of entries whose mirror image is stored too; tensors of a
    higher order have entries per fibre, of the first modes in order.
    """
    coordinates, _ = tensor.to_coordinates()
    cells = float(np.prod([float(extent) for extent in tensor.shape])) if tensor.order else 1.0
    count = coordinates.shape[1]
    found: dict[str, Any] = {"density": count / cells if cells else 0.0}
    used = [int(np.count_nonzero(np.bincount(coordinates[mode], minlength=1))) for mode in range(tensor.order)]
    found["used slices"] = " x ".join(map(str, used))
    if tensor.order == 2 and count:
        found |= _matrix_facts(coordinates, tensor.shape)
    elif tensor.order > 2 and count:
        levels = tensor.convert("csf").levels
        for modes in range(1, tensor.order):
            crd = levels[modes - 1].crd
            assert crd is not None
            found[f"entries a fibre of {modes} mode{'s' * (modes > 1)}"] = count / len(crd)
    return found


def _matrix_facts(coordinates: NDArray[Any], shape: tuple[int, ...]) -> dict[str, Any]:
    rows, columns = coordinates
    lengths = np.bincount(rows, minlength=shape[0])
    found = {
        "entries a row": f"{lengths.min()} to {lengths.max()}, mean {lengths.mean():.3g}",
        "empty rows": int((lengths == 0).sum()),
        "bandwidth": int(np.abs(rows.astype(np.int64) - columns).max()),
    }
    if shape[0] == shape[1]:
        here = rows.astype(np.int64) * shape[1] + columns
        mirrored = columns.astype(np.int64) * shape[1] + rows
        found["on the diagonal"] = float((rows == columns).mean())
        found["symmetric"] = float(np.isin(here, mirrored).mean())
    return found


def spy_counts(tensor: Tensor, lines: int, columns: int) -> NDArray[np.int64]:
    """Return how many entries lie in each cell of a grid over the first two modes (of a vector: one line)."""
    coordinates, _ = tensor.to_coordinates()
    extents = (*tensor.shape, 1)[:2] if tensor.order > 1 else (1, *tensor.shape, 1)[:2]
    places = coordinates[:2] if tensor.order > 1 else np.vstack([np.zeros((1, coordinates.shape[1]), int), coordinates])[:2]
    sizes = tuple(max(1, min(limit, extent)) for limit, extent in zip((lines, columns), extents, strict=True))
    cells = [place.astype(np.int64) * size // max(1, extent) for place, size, extent in zip(places, sizes, extents, strict=True)]
    return np.bincount(cells[0] * sizes[1] + cells[1], minlength=sizes[0] * sizes[1]).reshape(sizes)


def spy_text(tensor: Tensor, lines: int = _LINES, columns: int = _COLUMNS) -> str:
    """Return a picture made of characters in a frame: the darker, the more entries."""
    counts = spy_counts(tensor, lines, columns)
    shades = _shades(counts)
    rows = ("|" + "".join(_SHADES[shade] for shade in row) + "|" for row in shades)
    edge = "+" + "-" * counts.shape[1] + "+"
    return "\n".join([edge, *rows, edge])


def _shades(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a shade for each cell, by the logarithm of its entries: 0 where there are none, else 1 to 9."""
    most = max(1, int(counts.max(initial=0)))
    scaled = np.log1p(counts) / np.log1p(most)
    return np.where(counts == 0, 0, 1 + np.minimum(8, np.floor(scaled * 8.999))).astype(np.int64)


def write_spy(tensor: Tensor, path: str | os.PathLike[str], title: str) -> Path:
    """Write the picture as PNG.

    Raises:
        DataError: matplotlib is not installed, or the file cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise DataError("a picture needs matplotlib: pip install 'sparsetune[plot]'") from None
    figure = Figure(figsize=(6, 6), dpi=120, layout="constrained")
    axes = figure.subplots()
    counts = spy_counts(tensor, 500, 500)
    across, down = (tensor.shape[1], tensor.shape[0]) if tensor.order > 1 else ((*tensor.shape, 1)[0], 1)
    axes.imshow(np.log1p(counts), cmap="Greys", extent=(0, across, down, 0), aspect="equal" if across == down else "auto")
    axes.set_title(title, fontsize="medium")
    target = Path(path)
    try:
        with whole_file(target) as out:
            figure.savefig(out, format="png")
    except OSError as error:
        raise DataError(f"cannot write {target}: {error.strerror or error}") from None
    return target
