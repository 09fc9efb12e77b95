"""Search in the collections, by the bundled tables or the newest index of SuiteSparse."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..compiler.errors import DataError, NetworkError
from .catalogue import Item, bundled, matrix_url

SOURCES = ("suitesparse", "frostt")
FIELDS = ("real", "complex", "binary")
SHAPES = ("square", "rectangular")
_SECONDS = 30.0  # time limit for fetching the index
_ASK = "import json, ssgetpy; print(json.dumps([[m.group, m.name, m.rows, m.cols, m.nnz, m.kind] for m in ssgetpy.search(limit=10**6)]))"

Range = tuple[float, float]


@dataclass(frozen=True)
class Query:
    """The conditions of a search; a condition that is empty or None admits everything.

    Attributes:
        name: a part of the name, without regard to capitals.
        group: the group of a matrix, whole, without regard to capitals.
        kind: a part of what it comes from, such as "structural" or "graph".
        rows, columns: least and most extent of the first and second mode.
        nnz: least and most stored entries.
        source: one of ``SOURCES``.
        field: one of ``FIELDS``; known only for SuiteSparse.
        shape: one of ``SHAPES``; only matrices have one.
        symmetric: whether the pattern is symmetric.
        definite: whether it is known to be symmetric and positive definite.
        order: number of modes.
    """

    name: str = ""
    group: str = ""
    kind: str = ""
    rows: Range | None = None
    columns: Range | None = None
    nnz: Range | None = None
    source: str = ""
    field: str = ""
    shape: str = ""
    symmetric: bool | None = None
    definite: bool | None = None
    order: int | None = None

    def admits(self, item: Item) -> bool:
        """Return whether an item meets all conditions; a fact that the tables do not know meets no condition on it."""
        rows, columns, *_ = (*(item.shape or ()), None, None)
        is_square = rows is not None and rows == columns
        is_matrix = item.shape is not None and len(item.shape) == 2
        return (
            self.name.lower() in item.name.lower()
            and self.kind.lower() in item.kind.lower()
            and self.group.lower() in ("", item.group.lower())
            and self.source in ("", item.source)
            and self.field in ("", item.field)
            and _within(self.rows, rows)
            and _within(self.columns, columns)
            and _within(self.nnz, item.nnz)
            and (not self.shape or (is_matrix and (self.shape == "square") == is_square))
            and (self.symmetric is None or self.symmetric == (item.symmetry == 1.0 and is_square))
            and (self.definite is None or self.definite == item.is_definite)
            and (self.order is None or self.order == len(item.shape or ()))
        )


def search(query: Query, newest: bool = False) -> list[Item]:
    """Return the items that meet all conditions, the smallest first.

    Args:
        query: the conditions.
        newest: True: search the present index of SuiteSparse, from ssgetpy, which fetches it when its copy is old. False: the bundled
            tables.

    Raises:
        DataError: ssgetpy is not installed.
        NetworkError: the index cannot be fetched.
    """
    items: Iterable[Item] = newest_items() if newest else bundled().values()
    return sorted(filter(query.admits, items), key=lambda item: (item.nnz is None, item.nnz or 0, item.name))


def newest_items() -> list[Item]:
    """Return all items, with the matrices of ssgetpy's present index; those that are bundled too keep the bundled facts.

    Raises:
        DataError: ssgetpy is not installed.
        NetworkError: the index cannot be fetched.
    """
    known = bundled()
    rows = [(f"{group}/{name}", (int(rows), int(columns)), int(nnz), str(kind)) for group, name, rows, columns, nnz, kind in _index()]
    matrices = [known.get(name) or Item(name, "suitesparse", matrix_url(name), shape, nnz, kind) for name, shape, nnz, kind in rows]
    return [*matrices, *(item for item in known.values() if item.source == "frostt")]


def _index() -> list[list[Any]]:
    """Return group, name, rows, columns, nonzeros and kind of every matrix, from ssgetpy.

    ssgetpy uses the network when it is imported, without a time limit, and leaves an empty index if that fails. So it runs in a process of
    its own, and an empty index counts as a failure.
    """
    try:
        done = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise NetworkError(f"the index of SuiteSparse did not arrive within {_SECONDS:g} s; the bundled one needs no network") from None
    if "No module named 'ssgetpy'" in done.stderr:
        raise DataError("the newest index needs ssgetpy; install it with: pip install ssgetpy==1.0rc2")
    try:
        found = json.loads(done.stdout)
    except ValueError:
        found = []
    if not found:
        reason = (done.stderr.strip().splitlines() or ["it is empty"])[-1]
        raise NetworkError(f"the index of SuiteSparse cannot be fetched: {reason[:160]}; the bundled one needs no network")
    return found


def _within(bound: Range | None, value: float | None) -> bool:
    return bound is None or (value is not None and bound[0] <= value <= bound[1])
