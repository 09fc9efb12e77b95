"""Entry lines of text formats: coordinates, then a value. In C where there is a compiler, else in NumPy and Python."""

from __future__ import annotations

from dataclasses import replace

from ..compiler.errors import DataError
from ..compiler.storage import native
from .layout import MOST_MODES, Entries, Layout, Mistake
from .native_lines import NativeLines, TooManyUndecided
from .plain_lines import INTEGER, NUMBER, count_entries, read_lines
from .textfile import TextFile


def read_entries(file: TextFile, begin: int, layout: Layout, expected: int | None = None) -> Entries:
    """Read the entries from a place of a file on; empty lines and comments (% or #) are skipped.

    Args:
        file: the text.
        begin: place of the first line to read.
        layout: that of each line.
        expected: how many entries the header promises; None where it does not.

    Raises:
        DataError: a line is wrong (the message names the first such line), or there are not as many entries as promised.
    """
    if layout.order > MOST_MODES:
        raise file.error(f"{layout.order} coordinates on a line; tensors in text files have at most {MOST_MODES} modes", begin)
    loaded = native.library("st_text")
    lines = None if loaded is None else NativeLines(*loaded, file, begin)
    count = count_entries(file, begin) if lines is None else lines.count
    if expected is not None and count != expected:
        hint = "the file is truncated, or its header wrong" if count < expected else "the header is wrong"
        raise file.error(f"the header promises {expected} entries, but the file holds {count}; {hint}")
    try:
        try:
            return read_lines(file, begin, layout) if lines is None else lines.read(layout)
        except TooManyUndecided:
            return read_lines(file, begin, layout)
    except Mistake as mistake:
        if mistake.kind == "too large" and mistake.mode == layout.order and layout.kind == "integer":
            return read_entries(file, begin, replace(layout, kind="unsigned"), expected)
        raise _explained(file, layout, mistake) from None


def _explained(file: TextFile, layout: Layout, mistake: Mistake) -> DataError:
    """Return the error for a mistake, quoting the file."""
    fields = file.line_at(mistake.place).split()
    field, mode = fields[min(mistake.mode, len(fields) - 1)], mistake.mode
    extent = layout.extents[mode] if mode < layout.order else None
    parts = [f"{layout.order} coordinates"] if layout.order else []
    parts += {"pattern": [], "complex": ["the two parts of a value"]}.get(layout.kind, ["a value"])
    if mistake.kind in ("bad value", "too large") and mode == layout.order:
        field = next((one for one in fields[mode:] if not (INTEGER if layout.kind == "integer" else NUMBER).match(one.encode())), field)
    hint = "; read a file that counts from 0 with index_base=0" if layout.base and field == "0" else ""
    messages = {
        "bad coordinate": f"coordinate {field!r} of mode {mode + 1} is {'too large' if field.isdecimal() else 'not a whole number'}",
        "below base": f"coordinate {field} of mode {mode + 1} is below {layout.base}: coordinates count from {layout.base}{hint}",
        "beyond extent": f"coordinate {field} of mode {mode + 1} is out of range: the header says {extent}",
        "bad value": f"value {field!r} is not {'an integer' if layout.kind in ('integer', 'unsigned') else 'a number'}",
        "too large": f"{field} does not fit into 64 bits, beside the other values of the file",
        "too few": f"{len(fields)} fields, but an entry has {layout.fields}: {' and '.join(parts)}",
        "too many": f"{len(fields)} fields, but an entry has {layout.fields}: {' and '.join(parts)}",
    }
    return file.error(messages[mistake.kind], mistake.place)
