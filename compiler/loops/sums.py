"""Which sums are made in vectors where a schedule does not say: those of consecutive elements, or of gathered ones.

A sum of floats one by one waits three to five cycles for each addition before the next; in vectors several run side by
side, as in NumPy's own sums. ``unroll(j, 1)`` keeps the additions of a loop one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .nodes import Block, Comment, Declare, For, Prefetch, SetVar, Stmt, Vector
from .rewrite import transform, walk

GatheredBytes = Callable[[For], int | None]
"""How wide the places are that a vector loop gathers from, in bytes (0: it gathers nothing); None: it has no vector form."""


def sum_in_vectors(body: Block, gathered: GatheredBytes, gathers: bool) -> Block:
    """Tag the loops that do nothing but add to scalars.

    Args:
        gathers: whether gathering a vector is faster than reading its elements one by one.
    """

    def change(node: object) -> object:
        if not isinstance(node, For) or node.tag is not None or not _only_adds(node):
            return node
        tagged = replace(node, tag=Vector())
        places = gathered(tagged)
        return node if places is None or (places and not gathers) else tagged

    return transform(body, change)  # type: ignore[arg-type]  # statements become statements


def _only_adds(loop: For) -> bool:
    """Return whether a loop has none inside, stores nothing and adds floats to scalars from outside."""
    steps = [node for node in walk(loop.body) if isinstance(node, Stmt)]
    if not all(isinstance(step, Block | Comment | Declare | Prefetch | SetVar) for step in steps):
        return False
    own = {step.variable.name for step in steps if isinstance(step, Declare)}
    sums = [step for step in steps if isinstance(step, SetVar) and step.variable.name not in own]
    return bool(sums) and all(step.variable.type.is_float and step.op in ("+", "-") for step in sums)
