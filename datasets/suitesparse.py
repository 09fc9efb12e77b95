"""The SuiteSparse Matrix Collection: archives by name, and search in its index."""

from __future__ import annotations

from pathlib import Path

from ..compiler.errors import DataError, NetworkError
from .catalogue import Item, data_folder, nearest, unknown
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
    return target


def search(text: str, limit: int = 20) -> list[Item]:
    """Return matrices of the whole collection whose name holds a text, through ssgetpy, which fetches the index when it is old.

    Raises:
        DataError: ssgetpy is missing, or the index cannot be fetched.
    """
    try:
        import ssgetpy  # fetches the index on import
    except ImportError:
        raise DataError("searching the whole collection needs ssgetpy; install it with: pip install ssgetpy==1.0rc2") from None
    except Exception as error:
        raise NetworkError(f"the index of the collection cannot be fetched: {type(error).__name__}; give the name as Group/Name") from None
    # ssgetpy puts its arguments into SQL as they are: ask for everything, and choose here
    found = [entry for entry in ssgetpy.search(limit=10**6) if text.lower() in f"{entry.group}/{entry.name}".lower()]
    return [
        Item(
            f"{entry.group}/{entry.name}",
            "suitesparse",
            entry.url("MM"),
            (int(entry.rows), int(entry.cols)),
            int(entry.nnz),
            str(entry.kind),
        )
        for entry in found[:limit]
    ]
