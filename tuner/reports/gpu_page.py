"""The page about a GPU: rows of ``reports.gpu``, each device for itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .gpu_rows import Row
from .markdown import geometric_mean, table

_NONE = """
No device has been measured yet. What is generated is compiled for sm_80 and sm_90 and runs in the executor of the tests, which says that
it is right, not how fast it is.
"""


def page(rows: Sequence[Row]) -> str:
    """Return the page; it says so where nothing was measured."""
    devices = list(dict.fromkeys(row.device for row in rows))
    parts = [part for device in devices for part in _device(device, [row for row in rows if row.device == device])]
    return "\n\n".join(["# Kernels on a GPU", _COMMAND, *(parts or [_NONE.strip()])]) + "\n"


_COMMAND = (
    "`python -m sparsetune.tuner.reports.gpu PART` measures (parts machine, edges, kernels, skew), `... gpu page` makes this page. Times "
    "are those of the device, with operands and result in its memory; second-level caches are cold in part kernels."
)


def _device(device: str, rows: Sequence[Row]) -> Iterator[str]:
    copies = [row.bytes / row.seconds for row in rows if row.kernel == "copy" and row.seconds]
    bandwidth = max(copies, default=0.0)
    yield f"## {device}"
    stands = sorted({f"{row.version} ({row.commit or 'no commit'}, {row.date})" for row in rows})
    yield f"Copies reach {bandwidth / 1e9:.0f} GB/s. Row with {', '.join(stands)}."
    wrong = [row for row in rows if row.right != "yes"]
    if wrong:
        yield "Not right, or not run:"
        yield table(("input", "kernel", "who", "what", "why"), [(row.input, row.kernel, row.who, row.what, row.right) for row in wrong])
    raced = [row for row in rows if row.right == "yes" and row.seconds and row.kernel != "copy"]
    yield table(("input", "kernel", "entries", "generated", "ms", "share of copy", "best rival", "ms", "ratio"), _races(raced, bandwidth))
    for kernel, ratios in _ratios(raced).items():
        yield f"{kernel}: generated kernels are {geometric_mean(ratios):.2f} times as fast as the best rival ({len(ratios)} inputs)."
    yield "Every mapping, in ms:"
    yield table(("input", "kernel", "who", "what", "ms"), [
        (row.input, row.kernel, row.who, row.what, f"{1e3 * row.seconds:.4g}") for row in raced
    ])  # fmt: skip


def _best(rows: Iterable[Row]) -> Row | None:
    return min(rows, key=lambda row: row.seconds, default=None)


def _groups(rows: Sequence[Row]) -> Iterator[tuple[Row, Row | None]]:
    """Yield the best generated kernel and the best rival of every input and kernel."""
    for name, kernel in dict.fromkeys((row.input, row.kernel) for row in rows):
        here = [row for row in rows if (row.input, row.kernel) == (name, kernel)]
        ours = _best(row for row in here if row.who == "generated")
        if ours is not None:
            yield ours, _best(row for row in here if row.who != "generated")


def _races(rows: Sequence[Row], bandwidth: float) -> Iterator[tuple[str, ...]]:
    for ours, theirs in _groups(rows):
        share = f"{ours.bytes / ours.seconds / bandwidth:.2f}" if bandwidth else ""
        rival = ("", "", "") if theirs is None else (
            f"{theirs.who}, {theirs.what}", f"{1e3 * theirs.seconds:.4g}", f"{theirs.seconds / ours.seconds:.2f}",
        )  # fmt: skip
        yield ours.input, ours.kernel, f"{ours.entries}", ours.what, f"{1e3 * ours.seconds:.4g}", share, *rival


def _ratios(rows: Sequence[Row]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for ours, theirs in _groups(rows):
        if theirs is not None:
            found.setdefault(ours.kernel, []).append(theirs.seconds / ours.seconds)
    return found
