"""Indented text drawn as a tree with branches."""

from __future__ import annotations

from collections.abc import Sequence


def drawn(text: str) -> str:
    """Return lines, indented by two spaces a level, with branches in place of the indentation; columns stay aligned."""
    lines = [line for line in text.splitlines() if line.strip()]
    depths = [(len(line) - len(line.lstrip(" "))) // 2 for line in lines]
    return "\n".join(_branches(depths, place) + line.lstrip(" ") for place, line in enumerate(lines))


def _branches(depths: Sequence[int], place: int) -> str:
    """Return the branches in front of a line: for each level around it, a bar if another line of that level follows."""
    depth = depths[place]
    parts = ["│ " if _goes_on(depths, place, level) else "  " for level in range(1, depth)]
    if depth:
        parts.append("├ " if _goes_on(depths, place, depth) else "└ ")
    return "".join(parts)


def _goes_on(depths: Sequence[int], place: int, level: int) -> bool:
    """Return whether another line of a level follows before the next line of an outer level."""
    below = next((depth for depth in depths[place + 1 :] if depth <= level), 0)
    return below == level
