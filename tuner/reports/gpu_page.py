"""``results/gpu.md``: the rows of ``reports.gpu``, with a section for each device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from .drawings import Dots, dot_chart
from .gpu_cases import CPU, DEFAULT, KERNELS, PLAIN, UNROLLED
from .gpu_cusparse import BEFOREHAND
from .gpu_rivals import BY_HAND
from .gpu_rows import Row
from .markdown import geometric_mean, table

_NONE = """
No device has been measured yet. The generated code is compiled for sm_80 and sm_90, and the tests run it thread by thread
on the processor: that checks its results, and tells nothing of its speed.
"""
PICTURE = "gpu.svg"


def page(rows: Sequence[Row], is_drawn: bool = False) -> str:
    """Return the page, also where nothing was measured yet. ``is_drawn``: whether there is a picture to show."""
    devices = list(dict.fromkeys(row.device for row in rows))
    parts = [part for device in devices for part in _device([row for row in rows if row.device == device])]
    shown = [f"![How many times as fast as the best rival]({PICTURE})"] if is_drawn and parts else []
    return "\n\n".join(["# Kernels on a GPU", _COMMAND, *shown, *(parts or [_NONE.strip()])]) + "\n"


def picture(rows: Sequence[Row]) -> str | None:
    """Return a chart of the speed of kernels over that of the best rival, with a dot for each input; None where no rival was measured.

    Raises:
        DataError: matplotlib is not installed.
    """
    raced = _of_part(rows, "kernels")
    kernels = [kernel.name for kernel in KERNELS]
    groups = (
        ("the fastest mapping", "#1f77b4", _best_of(raced, _is_ours)),
        ("the default mapping", "#999999", _best_of(raced, _is_default)),
    )
    rivals = _best_of(raced, _is_rival)
    series = [Dots(label, color, _ratios(rivals, found)) for label, color, found in groups]
    names = [kernel for kernel in kernels if series[0].values.get(kernel)]
    return dot_chart(names, series, "times as fast as the best rival on the same input", "Generated kernels on a GPU") if names else None


_COMMAND = (
    "`python -m sparsetune.tuner.reports.gpu all INPUT ...` measures, `... page` makes this page of the rows, which stand in "
    "[gpu.csv](gpu.csv), those of every mapping and every rival among them. Times are medians by the clock of the device, with "
    "operands and result in its memory, and second-level caches cold in the races. Share of copy: the bytes of operands and result "
    "over those of a copy in the same time. Rivals: kernels by hand, every algorithm of cuSPARSE, CuPy, torch; what cuSPARSE does "
    "beforehand stands beside."
)
_APART = ("copy", "library", "state")
"""The rows that describe the machine."""


def _is_ours(row: Row) -> bool:
    return row.who == "generated"


def _is_default(row: Row) -> bool:
    return _is_ours(row) and row.what == DEFAULT


def _is_rival(row: Row) -> bool:
    return row.who != "generated" and not row.what.endswith(BEFOREHAND)


def _of_part(rows: Iterable[Row], part: str) -> list[Row]:
    """Return the rows of a part that were timed and are right."""
    return [row for row in rows if row.part == part and row.right == "yes" and row.seconds and row.kernel not in _APART]


def _device(rows: Sequence[Row]) -> Iterator[str]:
    copies = [row.bytes / row.seconds for row in rows if row.kernel == "copy" and row.seconds]
    bandwidth = max(copies, default=0.0)
    yield f"## {rows[0].device}"
    stands = sorted({f"{row.version} ({row.commit or 'no commit'}, {row.date})" for row in rows})
    here = [row.who for row in rows if row.kernel == "library" and row.right == "yes"]
    yield f"Copies reach {bandwidth / 1e9:.0f} GB/s. Libraries: {', '.join(here) or 'none'}. Rows of {', '.join(stands)}."
    yield from _faults(rows)
    yield from _races(_of_part(rows, "kernels"), bandwidth)
    yield from _choices(_of_part(rows, "choices"), _of_part(rows, "kernels"))
    yield from _streamed([row for part in ("streams", "tensors") for row in _of_part(rows, part)], bandwidth)
    yield from _skewed(_of_part(rows, "skew"), bandwidth)
    yield from _large(_of_part(rows, "far"), bandwidth)
    states = [row.what for row in rows if row.kernel == "state"]
    if states:
        yield f"The driver on the device's clocks, first and last: {states[0]}; {states[-1]}."


def _faults(rows: Sequence[Row]) -> Iterator[str]:
    """Yield lines on which results are right and which are not."""
    listed = [row for row in rows if row.part == "right" and row.kernel not in _APART]
    if listed:
        exact = sum(row.right == "yes" for row in listed)
        yield f"Of {len(listed)} schedules that the tuner lists, {exact} have results of whole numbers that are equal to the bit."
    edges = [row for row in rows if row.part == "edges" and row.kernel not in _APART]
    if edges:
        names = ", ".join(dict.fromkeys(row.input for row in edges))
        right = sum(row.right == "yes" for row in edges)
        yield f"Of {len(edges)} mappings on matrices that break careless ones ({names}), {right} are right."
    sanitized = [row for row in rows if row.part == "sanitizer" and row.kernel not in _APART]
    checked = [f"{row.what}: {'no fault' if row.right == 'yes' else row.right}" for row in sanitized]
    if checked:
        yield f"compute-sanitizer over a sample of these: {'; '.join(checked)}."
    wrong = [row for row in rows if row.right != "yes" and row.kernel not in _APART and row.part != "sanitizer"]
    if wrong:
        yield "Not right, or not run:"
        yield table(("input", "kernel", "who", "what", "why"), [(row.input, row.kernel, row.who, row.what, row.right) for row in wrong])


def _races(raced: Sequence[Row], bandwidth: float) -> Iterator[str]:
    """Yield the tables of kernels and their rivals: by kernel, then by input."""
    ours, rivals = _best_of(raced, _is_ours), _best_of(raced, _is_rival)
    if not ours:
        return
    plain = _best_of(raced, _is_default)
    beaten, gained, moved = _ratios(rivals, ours), _ratios(plain, ours), _shares(ours, bandwidth)
    yield "The fastest mapping by kernel: geometric means over inputs, and of shares of copy the largest. The default is rows to threads."
    kernels = list(dict.fromkeys(kernel for _, kernel in ours))
    yield table(
        ("kernel", "inputs", "times the best rival's speed", "least", "times the default's", "most share of copy"),
        [
            (kernel, f"{len(moved[kernel])}", _mean(beaten.get(kernel)), _least(beaten.get(kernel)), _mean(gained.get(kernel)),
             f"{max(moved[kernel]):.2f}" if kernel not in _PARTLY else "")
            for kernel in kernels
        ],
    )  # fmt: skip
    by_hand = {row.kernel for row in raced if row.who == "by hand"}
    unraced = [kernel for kernel in kernels if kernel in BY_HAND and kernel not in by_hand]
    if unraced:
        yield f"Not yet raced against the kernels by hand on this device: {', '.join(unraced)}."
    yield "By input:"
    yield table(_EACH, _each(raced, bandwidth))


def _choices(chosen: Sequence[Row], raced: Sequence[Row]) -> Iterator[str]:
    """Yield the table of what the static model chooses, beside the default, the fastest mapping and the best rival of the races."""
    if not chosen:
        return
    versions = ", ".join(dict.fromkeys(row.version for row in chosen))
    yield f"What the static model chose for each input before anything was measured, in version {versions}: geometric means, and the least."
    found = _best_of(chosen, _is_ours)
    beside = [_ratios(_best_of(raced, kept), found) for kept in (_is_default, _is_ours, _is_rival)]
    inputs = Counter(row.kernel for row in found.values())
    lines = [
        (kernel, f"{count}", *(shown(each.get(kernel)) for each in beside for shown in (_mean, _least))) for kernel, count in inputs.items()
    ]
    heads = (f"times {whose} speed" for whose in ("the default's", "the fastest mapping's", "the best rival's"))
    yield table(("kernel", "inputs", *(name for head in heads for name in (head, "least"))), lines)


def _streamed(rows: Sequence[Row], bandwidth: float) -> Iterator[str]:
    """Yield the table of kernels on generated inputs far larger than the caches."""
    if rows:
        yield (
            "Inputs far larger than the caches. Those in order are bound by memory: what is gathered is in a cache, or read once. Where "
            "entries are in random places, up to 512 bytes of matrices are gathered from caches for the 12 of an entry: copying is no "
            "bound of these."
        )
        yield table(_EACH, _each(rows, bandwidth))


_EACH = ("input", "kernel", "entries", "generated", "ms", "share of copy", "best rival", "ms", "ms beforehand", "ratio")


def _each(rows: Sequence[Row], bandwidth: float) -> Iterator[tuple[str, ...]]:
    """Yield lines of the table with the columns ``_EACH``: the fastest mapping of each kernel and input, and the fastest rival."""
    ours, rivals = _best_of(rows, _is_ours), _best_of(rows, _is_rival)
    beforehand = {(row.input, row.kernel, row.what.removesuffix(BEFOREHAND)): row for row in rows if row.what.endswith(BEFOREHAND)}
    for name, row in ours.items():
        theirs = rivals.get(name)
        rival = ("", "", "", "")
        if theirs is not None:
            before = beforehand.get((*name, theirs.what))
            ahead = _milliseconds(before) if before is not None else ""
            rival = (f"{theirs.who}, {theirs.what}", _milliseconds(theirs), ahead, f"{theirs.seconds / row.seconds:.2f}")
        yield row.input, row.kernel, f"{row.entries}", row.what, _milliseconds(row), _share(row, bandwidth), *rival


def _skewed(rows: Sequence[Row], bandwidth: float) -> Iterator[str]:
    """Yield section 7.3 and Figure 33: mappings on entries at random, on few long rows, and on rows of growing skew."""
    inputs = sorted({row.input for row in rows}, key=_generated_order)
    if not inputs:
        return
    yield "SpMV on generated matrices (section 7.3, Figure 33), in ms, and the share of copy of the fastest mapping:"
    names = list(dict.fromkeys((row.who, row.what) for row in rows if not row.what.endswith(BEFOREHAND)))
    times = {(row.input, row.who, row.what): row for row in rows}
    fastest = _best_of(rows, _is_ours)
    shares = [_share(found, bandwidth) for name in inputs if (found := fastest.get((name, rows[0].kernel))) is not None]
    lines = [(f"{who}, {what}", *(_milliseconds(times.get((name, who, what))) for name in inputs)) for who, what in names]
    yield table(("mapping", *inputs), [*lines, ("share of copy", *shares)])
    for what, base, source in _COMPARED:
        for name in inputs:
            first, second = (times.get((name, "generated", each)) for each in (what, base))
            if first is not None and second is not None and name.endswith(_SPREAD):
                yield f"{name}: {what} is {second.seconds / first.seconds:.2f} times as fast as {base} ({source})."


def _generated_order(name: str) -> tuple[bool, bool, str]:
    """Return by what columns are sorted, whatever was measured first: entries at random, long rows, then growing skew."""
    return not name.endswith(_SPREAD), "skew" in name, name


_SPREAD = "entries at random"
_COMPARED = (
    (UNROLLED, PLAIN, "1.36 in section 7.3"),
    ("warp per row", CPU, "6.9 in section 7.3"),
)  # fmt: skip
"""Pairs of mappings to compare on entries at random, with the paper's ratio."""


def _large(rows: Sequence[Row], bandwidth: float) -> Iterator[str]:
    if rows:
        yield "More than 2^31 stored entries:"
        lines = [(row.input, row.kernel, row.what, _milliseconds(row), _share(row, bandwidth)) for row in rows]
        yield table(("input", "kernel", "mapping", "ms", "share of copy"), lines)


def _best(rows: Iterable[Row]) -> Row | None:
    return min(rows, key=lambda row: row.seconds, default=None)


Pair = tuple[str, str]


def _best_of(rows: Sequence[Row], kept: Callable[[Row], bool]) -> dict[Pair, Row]:
    """Return the fastest row of those kept, for every input and kernel."""
    names = dict.fromkeys((row.input, row.kernel) for row in rows)
    found = ((name, _best(row for row in rows if (row.input, row.kernel) == name and kept(row))) for name in names)
    return {name: row for name, row in found if row is not None}


def _ratios(others: Mapping[Pair, Row], rows: Mapping[Pair, Row]) -> dict[str, list[float]]:
    """Return by kernel the times of other rows over those of some rows, one for each input."""
    found: dict[str, list[float]] = {}
    for name, row in rows.items():
        if name in others:
            found.setdefault(row.kernel, []).append(others[name].seconds / row.seconds)
    return found


def _shares(rows: Mapping[Pair, Row], bandwidth: float) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for row in rows.values():
        found.setdefault(row.kernel, []).append(row.bytes / row.seconds / bandwidth if bandwidth else 0.0)
    return found


def _share(row: Row, bandwidth: float) -> str:
    return f"{row.bytes / row.seconds / bandwidth:.2f}" if bandwidth and row.kernel not in _PARTLY else ""


_PARTLY = {kernel.name for kernel in KERNELS if not kernel.reads_all}
"""Kernels that read only a part of their input, so that its bytes give no bandwidth."""


def _milliseconds(row: Row | None) -> str:
    return "" if row is None else f"{1e3 * row.seconds:.4g}"


def _mean(ratios: Sequence[float] | None) -> str:
    return f"{geometric_mean(ratios):.2f}" if ratios else ""


def _least(ratios: Sequence[float] | None) -> str:
    return f"{min(ratios):.2f}" if ratios else ""
