"""Memory of workspaces from the first statement that uses it to the last.

Arrays are allocated once, before all loops. Where a kernel is several nests one after another, as a chain of products is, an array that
only some of them use is allocated, and cleared, before the first of these, and freed after the last: what is in memory at one time is
what passes from one nest to a later one (``space.lifespans`` says so of programs).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..frozen import frozen
from ..ir.nodes import Allocate, ArrayRef, Fill, Free, Grow, Load, Prefetch, Step, Steps, Store
from ..ir.rewrite import nodes_of

Framed = tuple[list[Step], list[Step], list[Step]]
"""The steps at the start of a kernel, its statements, and the steps at its end."""


@frozen
class _Span:
    """What an array needs first, and the first and the last statement that use it then, by their numbers."""

    array: str
    made: tuple[Step, ...]
    first: int
    last: int


def allocated_in_time(before: Sequence[Step], steps: Sequence[Step], after: Sequence[Step]) -> Framed:
    """Move allocations and frees of arrays that not all statements of a kernel use next to those that do.

    Args:
        before, after: the steps at its start and its end.
        steps: its statements.
    """
    leaves = list(_leaves(steps))
    used = [_arrays(leaf) for leaf in leaves]
    kept = _arrays(Steps(tuple(step for step in (*before, *after) if not isinstance(step, Allocate | Free))))
    spans: list[_Span] = []
    for made in before:
        if isinstance(made, Allocate) and made.array not in kept and Free(made.array) in after:
            places = [place for place, arrays in enumerate(used) if made.array in arrays]
            fills = places[:1] if places[1:] and isinstance(leaves[places[0]], Fill) else []
            if places and (places[len(fills)] > len(fills) or places[-1] + 1 < len(leaves)):
                spans.append(_Span(made.array, (made, *(leaves[place] for place in fills)), places[len(fills)], places[-1]))
    moved = {id(step) for span in spans for step in span.made}
    freed = {span.array for span in spans}
    first = [step for step in before if id(step) not in moved]
    last = [step for step in after if not isinstance(step, Free) or step.array not in freed]
    return first, _placed(steps, spans, moved, 0), last


def _leaves(steps: Sequence[Step]) -> Iterator[Step]:
    """Yield statements in order, without the blocks around them."""
    for step in steps:
        if isinstance(step, Steps):
            yield from _leaves(step.statements)
        else:
            yield step


def _arrays(step: Step) -> frozenset[str]:
    return frozenset(node.array for node in nodes_of(step, Load, Store, ArrayRef, Fill, Grow, Prefetch))


def _placed(steps: Sequence[Step], spans: Sequence[_Span], moved: set[int], place: int) -> list[Step]:
    """Return statements with what arrays need before and after them; ``place`` is the number of the first."""
    made: list[Step] = []
    for step in steps:
        if isinstance(step, Steps):
            made.append(Steps(tuple(_placed(step.statements, spans, moved, place))))
            place += sum(1 for _ in _leaves(step.statements))
        else:
            made += [needed for span in spans if span.first == place for needed in span.made]
            if id(step) not in moved:
                made.append(step)
            made += [Free(span.array) for span in spans if span.last == place]
            place += 1
    return made
