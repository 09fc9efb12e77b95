"""Loading inputs by path, by name of the catalogue, or by ``random:...``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..compiler.errors import DataError
from ..compiler.format import Format
from ..compiler.storage.tensor import Tensor
from . import generate as synthetic
from .catalogue import FROSTT_PREFIX, Item, bundled, data_folder, find_item, local_files, well_known
from .download import Progress
from .files import announced_shape as shape_in_head
from .files import has_known_ending, read_file


def load(spec: str | os.PathLike[str], format: Format | str | None = None, index_base: int = 1) -> Tensor:
    """Return the tensor of a path, of a name such as ``HB/494_bus`` or ``frostt:nell-2``, or a synthetic one.

    Names are looked up in the data folder first, and fetched into it if they are not there.

    Args:
        spec: path, name, or ``random:...`` (see ``generate``).
        format: None: csr for matrices, csf for other orders, dense for dense files.
        index_base: the first coordinate in text files: 1, or 0 for files that count from 0.

    Raises:
        DataError: the file is missing or broken, the name unknown, or there is no network to fetch it.
        FormatError: the format does not fit.
    """
    name = os.fspath(spec)
    if name.startswith(synthetic.PREFIX):
        return synthetic.generate(name, format)
    return read_file(fetch(name), format, index_base)


def announced_shape(spec: str | os.PathLike[str]) -> tuple[int, ...] | None:
    """Return the shape that the name of a synthetic input or the head of a text file gives; None where neither does.

    Nothing else is read. Errors in a name or a file are left for ``load`` to raise.
    """
    name = os.fspath(spec)
    try:
        return synthetic.announced_shape(name) if name.startswith(synthetic.PREFIX) else shape_in_head(name)
    except DataError:
        return None


def fetch(spec: str | os.PathLike[str], progress: Progress | None = None) -> Path:
    """Return the path of an input's file, fetched into the data folder if it is not there.

    Args:
        spec: path or name of the catalogue.
        progress: called with the bytes so far and the bytes in all.

    Raises:
        DataError: as ``load``; synthetic inputs have no file.
    """
    name = os.fspath(spec)
    if name.startswith(synthetic.PREFIX):
        raise DataError(f"'{name}' is generated and has no file; write it with sparsetune.datasets.write(load(name), path)")
    if not name.strip():
        raise DataError("the name of an input is empty; give a path or a name (tune-kernel data list shows all)")
    path = Path(name).expanduser()
    if _is_path(name, path):
        return path
    found = _local(name)
    if found is not None:
        return found
    item = find_item(name)
    found = _local(item.name) or _local(item.stem, item)
    if found is not None:
        return found
    if item.source == "frostt":
        from .frostt import fetch_tensor

        return fetch_tensor(item, progress)
    from .suitesparse import fetch_matrix

    return fetch_matrix(item, progress)


def describe(spec: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what is known of an input without fetching it; a file on this machine is read.

    Returns:
        ``name``, ``source`` ("file", "random", "suitesparse", "frostt"), ``shape`` and ``nnz`` (None where not known), ``kind``, ``path``
        (None where there is no file yet), ``url``.

    Raises:
        DataError: the file is broken, or the name unknown.
    """
    name = os.fspath(spec)
    if name.startswith(synthetic.PREFIX):
        kind, _ = synthetic.parse(name)
        made = synthetic.generate(name)
        return _row(name, "random", made.shape, made.nnz, kind.about)
    path = Path(name).expanduser()
    found = path if _is_path(name, path) else _local(name)
    item = None if found is not None else find_item(name)
    if item is not None:
        found = _local(item.name) or _local(item.stem, item)
    if item is not None and (item.nnz is not None or found is None):
        return _row(item.name, item.source, item.shape, item.nnz, item.kind, found, item.url)
    assert found is not None
    read = read_file(found)
    return _row(name, "file", read.shape, read.nnz, f"{read.dtype}, {read.format}", found)


def list_catalogue() -> list[dict[str, Any]]:
    """Return a row, as ``describe`` returns it, for every well-known name, every file of the data folder and every synthetic kind.

    ``search`` has the other names. Files are not read: shape and nnz of those that are in no table are None.
    """
    files = local_files()
    items = bundled()
    shown = [items[name] for name in well_known() if name in items]
    rows = [_row(item.name, item.source, item.shape, item.nnz, item.kind, _matching(files, item), item.url) for item in shown]
    taken = {row["path"] for row in rows}
    rows += [_row(name, "file", None, None, "", path) for name, path in files.items() if "/" not in name and str(path) not in taken]
    return rows + [_row(kind.example, "random", None, None, kind.about) for kind in synthetic.KINDS.values()]


def _row(
    name: str, source: str, shape: tuple[int, ...] | None, nnz: int | None, kind: str, path: Path | None = None, url: str | None = None
) -> dict[str, Any]:
    return {
        "name": name,
        "source": source,
        "shape": None if shape is None else list(shape),
        "nnz": nnz,
        "kind": kind,
        "path": None if path is None else str(path),
        "url": url,
    }


def _is_path(name: str, path: Path) -> bool:
    """Return whether a spec means a file: the file exists, or only a path could begin or end like this."""
    if name.startswith(FROSTT_PREFIX):
        return False
    return os.path.isfile(path) or has_known_ending(name) or name.startswith((".", "/", "~")) or (os.sep != "/" and os.sep in name)


def _local(name: str, item: Item | None = None) -> Path | None:
    """Return the file of a name in the data folder, None if there is none; the file of an item has its ending (.mtx or .tns)."""
    if item is not None:
        return _matching(local_files(), item)
    if name.startswith(FROSTT_PREFIX):
        return None
    return local_files().get(name)


def _matching(files: dict[str, Path], item: Item) -> Path | None:
    kept = data_folder() / item.relative_path
    if kept.is_file():
        return kept
    found = files.get(item.name) or files.get(item.stem)
    family = ".tns" if item.source == "frostt" else ".mtx"
    return found if found is not None and family in found.name else None
