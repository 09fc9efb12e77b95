"""The FROSTT tensors (Smith et al., "FROSTT: The Formidable Repository of Open Sparse Tensors and Tools", 2017)."""

from __future__ import annotations

from pathlib import Path

from .catalogue import Item, data_folder
from .checksums import remember_file
from .download import Progress, download


def fetch_tensor(item: Item, progress: Progress | None = None) -> Path:
    """Return the .tns.gz file of a tensor, fetched into the data folder if it is not there.

    Raises:
        DataError: there is no network, no room, or the server refuses.
    """
    target = data_folder() / item.relative_path
    if not target.exists():
        download(item.url, target, progress=progress)
        remember_file(target)
    return target
