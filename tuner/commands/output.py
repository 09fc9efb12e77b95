"""How commands print: results on standard output, as one JSON object or as lines; notes on standard error."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from ...compiler.native.toolchain import find_compiler
from ..interrupts import heard_interrupts

if TYPE_CHECKING:
    from ..database import Database


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object. NaN and infinity, which JSON does not have, become null."""
    print(json.dumps(_plain(value), indent=2))


def print_table(rows: Sequence[Sequence[str]], headings: Sequence[str]) -> None:
    """Print rows in aligned columns, numbers on the right."""
    table = [list(headings), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(headings))]
    numeric = [all(_is_number(row[column]) for row in rows) for column in range(len(headings))]
    for row in table:
        cells = (cell.rjust(width) if right else cell.ljust(width) for cell, width, right in zip(row, widths, numeric, strict=True))
        print("  ".join(cells).rstrip())


def show_count(count: int) -> str:
    """Return a count in digits, or as a power of ten if it has more than 15."""
    return str(count) if count < 10**15 else f"10^{len(str(count)) - 1}"


def leave(status: int) -> NoReturn:
    """End the process at once, without the functions that Python runs at exit."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def note(message: str) -> None:
    """Print a message on standard error, apart from the result."""
    print(f"tune-kernel: {message}", file=sys.stderr, flush=True)


def require_compiler() -> None:
    """Raise a ``BuildError`` that names the package to install if there is no C compiler."""
    find_compiler()


@contextmanager
def interruptible(store: Database, how: str = "run the same command again to go on") -> Iterator[None]:
    """Hear interruptions, and add to them how to continue."""
    try:
        with heard_interrupts():
            yield
    except KeyboardInterrupt as interruption:
        interruption.add_note(f"every finished trial is kept in {store.url}: {how}")
        raise


def warn_if_busy() -> None:
    """Warn if other programs are using the cores."""
    from ..environment import load_per_core

    load = load_per_core()
    if load is not None and load > 0.5:
        note(f"other programs are using this machine (load {load:.1f} per core): times will be unreliable, the choice of schedule less so")


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
