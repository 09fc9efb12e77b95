"""The SuiteSparse Matrix Collection: archives by name."""

from __future__ import annotations

from pathlib import Path

from ..compiler.errors import DataError
from .catalogue import Item, data_folder, nearest, unknown
from .checksums import remember_file
from .download import Progress, download, extract_member


def fetch_matrix(item: Item, progress: Progress | None = None) -> Path:
    """Return the .mtx file of a matrix, fetched and unpacked into the data folder if it is not there.

    Raises:
        DataError: there is no such matrix, no network, or no room.
    """
    target = data_folder() / item.relative_path
    if target.exists():
        return target
    archive = target.with_name(f"{item.stem}.tar.gz")
    try:
        download(item.url, archive, progress=progress)
    except DataError as error:
        if item.shape is not None:
            raise
        if " answered 404 " in str(error):
            raise unknown(item.name) from None
        near = nearest(item.name)
        raise type(error)(f"{error}; names near '{item.name}': {', '.join(near)}" if near else str(error)) from None
    extract_member(archive, f"{item.stem}.mtx", target)
    archive.unlink(missing_ok=True)
    remember_file(target)
    return target
