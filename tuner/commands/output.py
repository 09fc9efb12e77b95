"""What commands print: one JSON object or a few lines on standard output, progress on standard error."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from ...compiler.native.toolchain import find_compiler

if TYPE_CHECKING:
    from ..database import Database


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object; what JSON cannot say (NaN, infinity) becomes null."""
    print(json.dumps(_plain(value), indent=2))


def print_table(rows: Sequence[Sequence[str]], headings: Sequence[str]) -> None:
    """Print rows in columns, numbers to the right."""
    table = [list(headings), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(headings))]
    numeric = [all(_is_number(row[column]) for row in rows) for column in range(len(headings))]
    for row in table:
        cells = (cell.rjust(width) if right else cell.ljust(width) for cell, width, right in zip(row, widths, numeric, strict=True))
        print("  ".join(cells).rstrip())


def show_count(count: int) -> str:
    """Return a number as it is, or its order of magnitude where that is all that can be read."""
    return str(count) if count < 10**15 else f"10^{len(str(count)) - 1}"


def leave(status: int) -> NoReturn:
    """End the process without what is done at its end."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def note(message: str) -> None:
    """Tell something beside the result."""
    print(f"tune-kernel: {message}", file=sys.stderr, flush=True)


def require_compiler() -> None:
    """Refuse to go on without a C compiler. Raises ``BuildError``, which names the package to install."""
    find_compiler()


@contextmanager
def interruptible(store: Database, how: str = "run the same command again to go on") -> Iterator[None]:
    """Say how to go on when a campaign is interrupted."""
    try:
        yield
    except KeyboardInterrupt as interruption:
        interruption.add_note(f"every finished trial is kept in {store.url}: {how}")
        raise


def warn_if_busy() -> None:
    """Say so when other programs are using the cores that are to be measured."""
    from ..environment import load_per_core

    load = load_per_core()
    if load is not None and load > 0.5:
        note(f"other programs are using this machine (load {load:.1f} a core): times will be unreliable, winners less so")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value.item() if hasattr(value, "item") else value


def _is_number(text: str) -> bool:
    return text[:1].isdigit() or text in ("-", "")
