"""The page about a GPU: rows of ``reports.gpu``, each device for itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from .gpu_cases import PLAIN, UNROLLED
from .gpu_rows import Row
from .markdown import geometric_mean, table

_NONE = """
No device has been measured yet. The generated code is compiled for sm_80 and sm_90, and the tests run it thread by thread
on the processor: that checks its results, and tells nothing of its speed.
"""


def page(rows: Sequence[Row]) -> str:
    """Return the page; it says so where nothing was measured."""
    devices = list(dict.fromkeys(row.device for row in rows))
    parts = [part for device in devices for part in _device(device, [row for row in rows if row.device == device])]
    return "\n\n".join(["# Kernels on a GPU", _COMMAND, *(parts or [_NONE.strip()])]) + "\n"


_COMMAND = (
    "`python -m sparsetune.tuner.reports.gpu all INPUT ...` measures, `... page` makes this page of the rows. Times are those of the"
    " device, with operands and result in its memory; second-level caches are cold in part kernels. Share of copy: the bytes of operands"
    " and result over those of a copy in the same time."
)
_SPREAD = "entries at random"
_COMPARED = (
    (UNROLLED, PLAIN, "1.36 in section 7.3"),
    ("warp per row", "row to a thread", "6.9 in section 7.3"),
)  # fmt: skip
"""Pairs of mappings that are compared on entries at random, with the paper's ratio."""
_APART = ("copy", "library", "state")
"""Rows that are about the machine."""


def _device(device: str, rows: Sequence[Row]) -> Iterator[str]:
    copies = [row.bytes / row.seconds for row in rows if row.kernel == "copy" and row.seconds]
    bandwidth = max(copies, default=0.0)
    yield f"## {device}"
    stands = sorted({f"{row.version} ({row.commit or 'no commit'}, {row.date})" for row in rows})
    here = [row.who for row in rows if row.kernel == "library" and row.right == "yes"]
    yield f"Copies reach {bandwidth / 1e9:.0f} GB/s. Libraries: {', '.join(here) or 'none'}. Row with {', '.join(stands)}."
    listed = [row for row in rows if row.part == "right"]
    if listed:
        exact = sum(row.right == "yes" for row in listed)
        yield f"Of {len(listed)} schedules that the tuner lists, {exact} have results of whole numbers that are equal to the bit."
    sanitized = [row for row in rows if row.part == "sanitizer" and row.kernel not in _APART]
    checked = [f"{row.what}: {'no fault' if row.right == 'yes' else row.right}" for row in sanitized]
    if checked:
        yield f"compute-sanitizer over a sample of these: {'; '.join(checked)}."
    wrong = [row for row in rows if row.right != "yes" and row.kernel not in _APART and row.part != "sanitizer"]
    if wrong:
        yield "Not right, or not run:"
        yield table(("input", "kernel", "who", "what", "why"), [(row.input, row.kernel, row.who, row.what, row.right) for row in wrong])
    raced = [row for row in rows if row.right == "yes" and row.seconds and row.kernel not in _APART]
    yield table(("input", "kernel", "entries", "generated", "ms", "share of copy", "best rival", "ms", "ratio"), _races(raced, bandwidth))
    for kernel, ratios in _ratios(raced, _best_rivals(raced)).items():
        yield f"{kernel}: generated kernels are {geometric_mean(ratios):.2f} times as fast as the best rival ({len(ratios)} inputs)."
    for kernel, ratios in _ratios(raced, _defaults(raced)).items():
        yield f"{kernel}: the fastest mapping is {geometric_mean(ratios):.2f} times as fast as rows to threads ({len(ratios)} inputs)."
    for what, base, source in _COMPARED:
        for name, row in _best_of(raced, lambda row, what=what: row.what == what).items():
            other = _best_of(raced, lambda row, base=base: row.what == base).get(name)
            if other is not None and name[0].endswith(_SPREAD):
                yield f"{row.input}, {row.kernel}: {what} is {other.seconds / row.seconds:.2f} times as fast as {base} ({source})."
    yield "Every mapping, in ms:"
    yield table(("input", "kernel", "who", "what", "ms"), [
        (row.input, row.kernel, row.who, row.what, f"{1e3 * row.seconds:.4g}") for row in raced
    ])  # fmt: skip
    states = [row.what for row in rows if row.kernel == "state"]
    if states:
        yield f"The driver on the device's clocks: {'; '.join(states)}."


def _best(rows: Iterable[Row]) -> Row | None:
    return min(rows, key=lambda row: row.seconds, default=None)


Pair = tuple[str, str]


def _best_of(rows: Sequence[Row], kept: Callable[[Row], bool]) -> dict[Pair, Row]:
    """Return the fastest row of those kept, for every input and kernel."""
    names = dict.fromkeys((row.input, row.kernel) for row in rows)
    found = ((name, _best(row for row in rows if (row.input, row.kernel) == name and kept(row))) for name in names)
    return {name: row for name, row in found if row is not None}


def _ours(rows: Sequence[Row]) -> dict[Pair, Row]:
    return _best_of(rows, lambda row: row.who == "generated")


def _best_rivals(rows: Sequence[Row]) -> dict[Pair, Row]:
    return _best_of(rows, lambda row: row.who != "generated")


def _defaults(rows: Sequence[Row]) -> dict[Pair, Row]:
    """Return how fast schedules for processors are on a GPU (section 7.3), where each row is the work of one thread."""
    return _best_of(rows, lambda row: row.what == "row to a thread")


def _races(rows: Sequence[Row], bandwidth: float) -> Iterator[tuple[str, ...]]:
    rivals = _best_rivals(rows)
    for name, ours in _ours(rows).items():
        share, theirs = f"{ours.bytes / ours.seconds / bandwidth:.2f}" if bandwidth else "", rivals.get(name)
        rival = ("", "", "") if theirs is None else (
            f"{theirs.who}, {theirs.what}", f"{1e3 * theirs.seconds:.4g}", f"{theirs.seconds / ours.seconds:.2f}",
        )  # fmt: skip
        yield ours.input, ours.kernel, f"{ours.entries}", ours.what, f"{1e3 * ours.seconds:.4g}", share, *rival


def _ratios(rows: Sequence[Row], others: Mapping[Pair, Row]) -> dict[str, list[float]]:
    """Return by kernel how many times as fast as others the fastest generated kernel is."""
    found: dict[str, list[float]] = {}
    for name, ours in _ours(rows).items():
        if name in others:
            found.setdefault(ours.kernel, []).append(others[name].seconds / ours.seconds)
    return found
