"""What holes of different structures have in common: the same decision about loops of other names.

A structure that goes through rows has a loop ``j``, one that cuts the stored entries into shares a loop ``p1`` in its place. Whether that
loop runs in vectors, and how far ahead it prefetches, are the same decisions, so what one structure has found out about them is worth
trying in the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ...compiler.schedule.directives import Directive
from ...compiler.schedule.text import show_directive
from ...compiler.space.template import Hole, Value

Key = tuple[str, int | str]
"""A role and what was decided (``meaning``)."""


def role(hole: Hole) -> str:
    """Return the name of a hole without the loop that it is about."""
    for choice in hole.choices:
        if isinstance(choice, Directive) and (loop := getattr(choice, "index", None)) is not None:
            labels = ("_".join(map(str, (loop, *(choice.path or ())))), str(loop))
            return next((hole.name.removesuffix(f"_{label}") for label in labels if hole.name.endswith(f"_{label}")), hole.name)
    return hole.name


def meaning(hole: Hole, value: Value) -> int | str:
    """Return what a choice of a hole decides, equal in holes of one role: its label, without the loop."""
    if isinstance(value, Directive) and hasattr(value, "index"):
        without = replace(value, index="", path=None)  # pyright: ignore[reportCallIssue] it has an index
        return show_directive(without)
    return hole.labels[hole.choices.index(value)]


def keys(holes: Iterable[Hole], values: Iterable[Value]) -> list[Key]:
    """Return the roles of holes and what values decide there."""
    return [(role(hole), meaning(hole, value)) for hole, value in zip(holes, values, strict=True)]


def carried(holes: Iterable[Hole], values: Iterable[Value], others: Iterable[Hole]) -> dict[str, Value]:
    """Return values that stand in some holes for those of another structure, by the names of its holes: from the hole of the same name, or
    else of the same role. Holes for which there is none are left out."""
    pairs = list(zip(holes, values, strict=True))
    by_name: Mapping[str, Key] = {hole.name: (role(hole), meaning(hole, value)) for hole, value in pairs}
    by_role: Mapping[str, Key] = {key[0]: key for key in reversed(by_name.values())}
    found: dict[str, Value] = {}
    for other in others:
        key = by_name.get(other.name) or by_role.get(role(other))
        choice = [] if key is None else [choice for choice in other.choices if meaning(other, choice) == key[1]]
        if choice:
            found[other.name] = choice[0]
    return found
