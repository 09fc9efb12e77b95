"""What notebooks show of tensors, kernels and results: small pieces of HTML with few styles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate


def escape(text: str) -> str:
    """Return a text with the characters of markup escaped."""
    from html import escape as escaped  # imported late: it loads a table of all entities

    return escaped(text)


def facts(title: str, rows: Mapping[str, object]) -> str:
    """Return a heading and a table of names and values."""
    lines = (f"<th style='text-align:left'>{escape(name)}</th><td>{escape(str(value))}</td>" for name, value in rows.items())
    return f"<div><code>{escape(title)}</code></div><table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with a head."""
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    cells = ("".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows)
    return f"<table><tr>{names}</tr>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def search(times: Sequence[float], low: str, high: str) -> str:
    """Return a drawing of times in the order of measurement, on a logarithmic scale, with a line for the best one so far.

    Args:
        times: positive ones.
        low, high: labels of the least and of the largest time.
    """
    least, most = math.log(min(times)), math.log(max(times))
    wide, tall, room = 420, 120, 70

    def at(number: int, seconds: float) -> tuple[float, float]:
        share = (math.log(seconds) - least) / ((most - least) or 1)
        return room + (wide - room - 5) * number / max(len(times) - 1, 1), 10 + (tall - 20) * (1 - share)

    dots = "".join(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='2.5' fill='gray'/>" for x, y in map(at, range(len(times)), times))
    best = list(accumulate(times, min))
    corners = [at(place, best[number]) for number in range(len(times)) for place in (number, min(number + 1, len(times) - 1))]
    line = f"<polyline points='{' '.join(f'{x:.1f},{y:.1f}' for x, y in corners)}' fill='none' stroke='currentColor'/>"
    texts = (high, 14), (low, tall - 6)
    words = "".join(f"<text x='0' y='{y}' font-size='11' fill='currentColor'>{escape(text)}</text>" for text, y in texts)
    return f"<svg width='{wide}' height='{tall}' role='img' aria-label='times of trials, and the best so far'>{words}{dots}{line}</svg>"


def listing(text: str) -> str:
    """Return a text as HTML that keeps its line breaks."""
    return f"<pre>{escape(text)}</pre>"
