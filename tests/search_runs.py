"""Small spaces, and searches through them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from sparsetune.compiler.schedule import directives as d
from sparsetune.compiler.space.template import Hole, Template, opened
from sparsetune.tuner.search.samplers import SAMPLERS, Search
from sparsetune.tuner.search.space import Space
from sparsetune.tuner.search.strategy import Strategy

CHUNK = Hole("chunk", (64, 1, 4, 16, 256))
KIND = Hole("kind", ("static", "dynamic"))
UNROLL = Hole("u", tuple(range(1, 9)))


def threads(loop: str, **holes: Hole) -> Template:
    return Template((opened(d.Parallelize(loop, "cpu_thread", "no_races", "static"), **holes),))


SMALL = Space((threads("a", chunking=KIND), threads("b", chunk=CHUNK, chunking=KIND), threads("c")))

LARGE = Space(
    tuple(threads(f"t{number}", chunk=CHUNK, chunking=KIND).then(opened(d.Unroll("x", 1), factor=UNROLL)) for number in range(6))
)


def text(template: int, chunk: int, kind: str, unroll: int) -> str:
    """Return a schedule of the large space."""
    return f"parallelize(t{template}, cpu_thread, no_races, {kind}, {chunk}); unroll(x, {unroll})"


KEPT = ("two-level", "tpe", "grouped-tpe")
"""Samplers that keep studies."""

MODELLED = (*KEPT, "local")
"""Samplers that learn."""


def study(space: Space, journal: Path | None = None, seed: int = 0, name: str = "tpe", trials: int = 6) -> Strategy:
    return SAMPLERS[name].make(Search(space, trials, seed, journal, "test"))


def cost(schedule: str) -> float | None:
    """Return a made-up time: template 3 with a large chunk and small u is best; template 1 always fails."""
    found = re.fullmatch(r"parallelize\(t(\d), cpu_thread, no_races, (\w+), (\d+)\); unroll\(x, (\d)\)", schedule)
    assert found is not None
    template, kind, chunk, unroll = found.groups()
    if template == "1":
        return None
    return 1 + abs(int(template) - 3) + 100 / int(chunk) + (kind == "static") + 0.1 * int(unroll)


def run(strategy: Strategy, count: int, time: Callable[[str], float | None] = cost) -> list[str]:
    found = []
    while len(found) < count and (proposal := strategy.ask()) is not None:
        found.append(proposal.schedule)
        strategy.tell(proposal, time(proposal.schedule))
    return found
