"""A sequence of calls that is made again with like operands: results go from kernel to kernel without being checked again.

Each call of a chain can be made again by itself (``build.repeat``). Operands from outside are checked in every call. Results of earlier
calls need no check: as long as the operands from outside are like before, the results have the same shapes, types and patterns, so that
only their addresses are handed on. For the same reason a kernel that computes several expressions together does so again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..frozen import frozen
from .inputs import DenseInput, Input, StoredInput
from .repeat import MISS, AssembledResult, Repeat, Repeats, Result


@frozen(eq=False)
class _Link:
    """One call of a chain.

    Attributes:
        given: the operands that come from outside.
        made: for the other operands, which result of an earlier call each is, and the kernel's slots for its values.
    """

    repeat: Repeat
    given: tuple[tuple[str, Input], ...]
    made: tuple[tuple[int, tuple[int, ...]], ...]


@frozen(eq=False)
class Chain:
    """Calls that can be made again one after another, by one thread at a time.

    Attributes:
        names: of the results, in the order in which they are made.
    """

    links: tuple[_Link, ...]
    names: tuple[str, ...]
    threads: int

    def __call__(self, operands: Mapping[str, Any], threads: int) -> Any:
        """Make the calls again and return their results by name. Returns ``MISS``, before any is made, if an operand is not like before."""
        if threads != self.threads:
            return MISS
        kept: list[Any] = []
        for link in self.links:
            if not link.repeat.takes(link.given, operands, kept):
                return MISS
        made: list[tuple[Any, Any]] = []
        for link in self.links:
            repeat = link.repeat
            for source, slots in link.made:
                memory = made[source][1]
                for slot in slots:
                    repeat.pointers[slot] = memory
            made += repeat.carried_out()
        return {name: result for name, (result, _) in zip(self.names, made, strict=True)}


def alone(names: tuple[str, ...], repeat: Repeat) -> Chain:
    """Return a chain of one call, whose results get the given names."""
    return Chain((_Link(repeat, repeat.inputs, ()),), names, repeat.threads)


def chained(calls: Sequence[tuple[tuple[str, ...], Repeats[Repeat] | Repeats[Chain]]]) -> Chain | None:
    """Take the latest call of each request, and return them as a chain; None where they do not fit together.

    Args:
        calls: by the names of their results, in order.
    """
    links, makers, results, repeats = list[_Link](), dict[str, int](), list[Result | AssembledResult](), list[Repeat]()
    for names, known in calls:
        latest = known.take()
        repeat = latest.links[0].repeat if isinstance(latest, Chain) else latest
        if repeat is None or repeat.threads != (repeats or [repeat])[0].threads:
            return None
        sources = {operand: makers[operand] for operand, _ in repeat.inputs if operand in makers}
        if any(operand in sources for operand, _ in repeat.decided_for):
            return None
        made = []
        for operand, found in repeat.inputs:
            if operand in sources:
                slots = _slots(found, results[sources[operand]])
                if slots is None:
                    return None
                made.append((sources[operand], slots))
        links.append(_Link(repeat, tuple(pair for pair in repeat.inputs if pair[0] not in sources), tuple(made)))
        repeats.append(repeat)
        makers |= {name: len(results) + place for place, name in enumerate(names)}
        results += repeat.results
    return Chain(tuple(links), tuple(makers), repeats[0].threads)


def _slots(found: Input, result: Result | AssembledResult) -> tuple[int, ...] | None:
    """Return the kernel's slots for the values that an earlier call makes; None if the kernel was called with something else, or if the
    earlier call makes a new pattern each time."""
    if isinstance(result, AssembledResult):
        return None
    pattern = result.pattern
    if isinstance(found, DenseInput):
        fits = pattern is None and not result.is_scalar and (result.shape, result.dtype) == (found.shape, found.dtype)
    elif isinstance(found, StoredInput) and pattern is not None:
        fits = (pattern.shape, pattern.format, result.dtype, result.shape) == (found.shape, found.format, found.dtype, (found.count,))
        own = [level() for level in pattern.levels if level is not None]
        fits = fits and pattern.fill_value == found.fill_value and own == [level() for level in found.levels] and None not in own
    else:
        fits = False
    return tuple(found.slots) if fits and isinstance(found, DenseInput | StoredInput) else None
