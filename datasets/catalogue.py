"""Names of matrices and tensors: the bundled tables, and the files of the data folder."""

from __future__ import annotations

import csv
import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..compiler.errors import DataError
from ..compiler.native.folders import user_folder
from .files import has_known_ending, stem

_TABLES = Path(__file__).resolve().parent / "tables"
_SUITESPARSE = "https://sparse.tamu.edu/MM/"
FROSTT_PREFIX = "frostt:"


@dataclass(frozen=True)
class Item:
    """A matrix or tensor that can be fetched.

    Args:
        name: ``Group/Name`` for SuiteSparse, ``frostt:name`` for FROSTT.
        source: "suitesparse" or "frostt".
        url: where its archive lies.
        shape: extents; None where the tables do not know.
        nnz: entries that its file stores, explicit zeros included; None where the tables do not know.
        kind: what it comes from.
        field: "real", "complex" or "binary" (a pattern); empty where not known.
        symmetry: share of the off-diagonal entries whose mirror image is stored too; None where not known.
        is_definite: whether a matrix is known to be symmetric and positive definite.
    """

    name: str
    source: str
    url: str
    shape: tuple[int, ...] | None = None
    nnz: int | None = None
    kind: str = ""
    field: str = ""
    symmetry: float | None = None
    is_definite: bool = False

    @property
    def group(self) -> str:
        """The group of a matrix; empty for tensors."""
        return self.name.rpartition("/")[0]

    @property
    def stem(self) -> str:
        """The name that its file has, without group and endings."""
        return self.name.removeprefix(FROSTT_PREFIX).rpartition("/")[2]

    @property
    def relative_path(self) -> Path:
        """Where its file is kept below the data folder."""
        if self.source == "frostt":
            return Path("frostt") / f"{self.stem}.tns.gz"
        return Path("suitesparse") / self.name.partition("/")[0] / f"{self.stem}.mtx"


@cache
def bundled() -> dict[str, Item]:
    """Return the items of the bundled tables by name: the index of SuiteSparse, and all of FROSTT."""
    with (_TABLES / "suitesparse.csv").open(encoding="utf-8", newline="") as file:
        items = [_matrix(row) for row in csv.DictReader(line for line in file if not line.startswith("#"))]
    tensors = tomllib.loads((_TABLES / "frostt.toml").read_text(encoding="utf-8"))["tensors"]
    items += [_tensor(name, row) for name, row in tensors.items()]
    return {item.name: item for item in items}


@cache
def well_known() -> tuple[str, ...]:
    """Return the names that a list begins with: matrices that many papers use, and the tensors."""
    matrices = tomllib.loads((_TABLES / "well_known.toml").read_text(encoding="utf-8"))["well_known"]
    return (*matrices, *(name for name in bundled() if name.startswith(FROSTT_PREFIX)))


def _matrix(row: Mapping[str, str]) -> Item:
    name = f"{row['group']}/{row['name']}"
    return Item(
        name, "suitesparse", matrix_url(name), (int(row["rows"]), int(row["columns"])), int(row["entries"]), row["kind"],
        "binary" if row["binary"] == "1" else "real" if row["real"] == "1" else "complex",
        float(row["pattern_symmetry"]), row["definite"] == "1",
    )  # fmt: skip


def _tensor(name: str, row: dict[str, Any]) -> Item:
    shape = tuple(row["shape"]) if "shape" in row else None
    return Item(FROSTT_PREFIX + name, "frostt", row["url"], shape, row.get("nnz"), row["kind"])


def matrix_url(name: str) -> str:
    """Return the address of the archive of a matrix, by ``Group/Name``."""
    return f"{_SUITESPARSE}{name}.tar.gz"


def data_folder() -> Path:
    """Return where inputs are kept: SPARSETUNE_DATA, or the platform's folder for a user's data."""
    asked = os.environ.get("SPARSETUNE_DATA")
    if asked:
        return Path(asked).expanduser()
    return user_folder("data")


def local_files() -> dict[str, Path]:
    """Return the files of tensors in the data folder, up to three folders deep, by the stem of their name.

    Files whose stem occurs twice are also listed with their folder before it.
    """
    found: dict[str, Path] = {}
    folder = data_folder()
    pattern = ("*", "*/*", "*/*/*")
    for path in sorted((path for depth in pattern for path in _glob(folder, depth)), key=lambda path: (len(path.parts), path)):
        name = stem(path)
        found.setdefault(name, path)
        found.setdefault(f"{path.parent.name}/{name}", path)
    return found


def _glob(folder: Path, pattern: str) -> list[Path]:
    try:
        return [path for path in folder.glob(pattern) if has_known_ending(path.name) and path.is_file()]
    except OSError:
        return []


def find_item(name: str) -> Item:
    """Return the item of a name; any unknown ``Group/Name`` counts as a matrix of SuiteSparse.

    A bare name is enough where only one bundled item has it.

    Raises:
        DataError: there is nothing of that name; the message lists the nearest ones.
    """
    items = bundled()
    if name in items:
        return items[name]
    matching = [item for item in items.values() if name in (item.stem, item.name.lower(), item.stem.lower())]
    if len(matching) == 1:
        return matching[0]
    group, _, matrix = name.partition("/")
    if (
        group
        and matrix
        and "/" not in matrix
        and all(part.replace("-", "_").replace(".", "_").isidentifier() for part in ("_" + group, "_" + matrix))
    ):
        return Item(name, "suitesparse", matrix_url(name))
    raise unknown(name)


def nearest(name: str) -> list[str]:
    """Return the names of the catalogue and of the data folder's files that are most like a name."""
    names = [*bundled(), *(file for file in sorted(local_files()) if "/" not in file)]
    by_lower = {item.stem.lower(): item.name for item in bundled().values()} | {key.lower(): key for key in names}
    return list(dict.fromkeys(by_lower[match] for match in difflib.get_close_matches(name.lower(), by_lower, n=4, cutoff=0.6)))


def unknown(name: str) -> DataError:
    """Return the error for an unknown name."""
    near = nearest(name)
    hint = f"; near: {', '.join(near)}" if near else ""
    return DataError(f"'{name}' is no file and no name of the catalogue{hint} (tune-kernel data list shows all)")
