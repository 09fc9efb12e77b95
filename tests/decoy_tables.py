"""Truth tables with decoys: what looks best at first is not, each in a way of its own.

A table has 24 structures, each with two numbers of seven values: 1,176 points, and the default schedule. Structures stand in the order of
``expected``, and each begins with its usual numbers, as in a search; where the best structure stands, what the others take and what is
usual is drawn by the seed.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

from sparsetune.tuner.records import Status
from sparsetune.tuner.truth.table import TablePoint, TruthTable

SIZES = (2, 4, 8, 16, 32, 64, 128)
PLACES = range(len(SIZES))
_LOOPS = ("split(i, i0, i1, {a}); unroll(i1, {b})", "split(j, j0, j1, {a}); unroll(j1, {b})",
          "split(i, i0, i1, {a}); prefetch(j, x, {b})", "split(j, j0, j1, {a}); prefetch(j1, x, {b})")  # fmt: skip
_THREADS = ("", "; parallelize({o}, cpu_thread, no_races)", "; parallelize({o}, cpu_thread, no_races, dynamic, 1)",
            "; reorder({n}, {o})", "; protocol(A, step, locate)", "; reorder({n}, {o}); protocol(A, step, locate)")  # fmt: skip
STRUCTURES = tuple(loops + threads.format(o="i0" if "i0" in loops else "j0", n="i1" if "i0" in loops else "j1")
                   for loops in _LOOPS for threads in _THREADS)  # fmt: skip

Place = tuple[int, int]
"""The two numbers of a point, as places in ``SIZES``."""

Time = Callable[[Place], float]

_DEFAULT = 4.0
"""What the default schedule takes, which has no numbers."""


def bowl(floor: float, least: Place, slope: float, most: float = math.inf) -> Time:
    """Return times that grow by a factor with every place from the least one, up to a factor in all."""
    return lambda place: floor * min(most, (1 + slope) ** (abs(place[0] - least[0]) + abs(place[1] - least[1])))


def others(draw: random.Random, low: float, high: float, slope: float) -> list[Time]:
    """Return times of structures of no particular kind, the least of each between two bounds."""
    return [bowl(draw.uniform(low, high), _anywhere(draw), slope) for _ in STRUCTURES]


def _anywhere(draw: random.Random) -> Place:
    return draw.choice(PLACES), draw.choice(PLACES)


def _away(place: Place, by: int, draw: random.Random) -> Place:
    """Return a place so many steps from another one."""
    return draw.choice([one for one in itertools.product(PLACES, PLACES) if abs(one[0] - place[0]) + abs(one[1] - place[1]) == by])


def made(
    times: list[Time], usual: list[Place], ranks: list[float] | None = None, failing: Callable[[int, Place], bool] | None = None
) -> TruthTable:
    """Return the table of structures.

    Args:
        times: of each structure.
        usual: where each begins.
        ranks: what the static model expects of each; None: what its first point takes.
        failing: tells which points of which structure crash.
    """
    points = [TablePoint(schedule="", seconds=_DEFAULT)]
    for number, (text, time, first) in enumerate(zip(STRUCTURES, times, usual, strict=True)):
        expected = time(first) if ranks is None else ranks[number]
        for place in sorted(itertools.product(PLACES, PLACES), key=lambda one: one != first):
            crashes = failing is not None and failing(number, place)
            points.append(TablePoint(
                schedule=text.format(a=SIZES[place[0]], b=SIZES[place[1]]), seconds=None if crashes else time(place),
                status=Status.CRASH if crashes else Status.OK, expected=expected * (1 + 1e-9 * (place != first)),
            ))  # fmt: skip
    return TruthTable(expression="y(i) = A(i,j) * x(j)", points=tuple(points))


def elsewhere(draw: random.Random) -> TruthTable:
    """A structure that is good where it begins and hardly better elsewhere, and one that begins badly and gets a tenth better a step."""
    times = others(draw, 1.5, 3, 0.05)
    decoy, best = draw.sample(range(len(STRUCTURES)), 2)
    least = _anywhere(draw)
    usual = [_anywhere(draw) for _ in STRUCTURES]
    times[decoy], times[best] = bowl(1.12, _away(usual[decoy], 2, draw), 0.01), bowl(1, least, 0.1)
    usual[best] = _away(least, 4, draw)
    return made(times, usual)


def narrow(draw: random.Random) -> TruthTable:
    """A broad valley of 1.08, and one that is deeper and so narrow that a step from its least is slower than all of the broad one."""
    times = others(draw, 1.4, 3, 0.05)
    broad, best = draw.sample(range(len(STRUCTURES)), 2)
    least = _anywhere(draw)
    usual = [_anywhere(draw) for _ in STRUCTURES]
    times[broad], times[best] = bowl(1.08, _anywhere(draw), 0.01), bowl(1, least, 0.2, 2)
    usual[best] = _away(least, 2, draw)
    return made(times, usual)


def together(draw: random.Random) -> TruthTable:
    """Two numbers of which the product counts: either alone makes it worse; the same in all structures, of which one is best."""
    product, best = draw.choice(range(4, 9)), draw.randrange(len(STRUCTURES))
    valley = [place for place in itertools.product(PLACES, PLACES) if sum(place) == product]
    least = draw.choice(valley)

    def ridge(floor: float) -> Time:
        return lambda place: floor * 1.2 ** abs(sum(place) - product) * 1.04 ** abs(place[0] - place[1] - least[0] + least[1])

    times = [ridge(draw.uniform(1.2, 2)) for _ in STRUCTURES]
    times[best] = ridge(1)
    first = max(valley, key=lambda place: abs(place[0] - least[0]))
    return made(times, [first for _ in STRUCTURES])


def misranked(draw: random.Random) -> TruthTable:
    """The static model is wrong by factors of up to three, and expects of the best structure four times of what it takes."""
    times = others(draw, 1.3, 4, 0.08)
    best, least = draw.randrange(len(STRUCTURES)), _anywhere(draw)
    usual = [_anywhere(draw) for _ in STRUCTURES]
    times[best], usual[best] = bowl(1, least, 0.1), _away(least, 3, draw)
    ranks = [time(first) * 3 ** draw.uniform(-1, 1) for time, first in zip(times, usual, strict=True)]
    ranks[best] = 4 * times[best](usual[best])
    return made(times, usual, ranks)


def twins(draw: random.Random) -> TruthTable:
    """Two structures that are equally fast, at opposite numbers."""
    times = others(draw, 1.3, 2.5, 0.08)
    one, other = draw.sample(range(len(STRUCTURES)), 2)
    times[one], times[other] = bowl(1, (1, 1), 0.12), bowl(1, (5, 5), 0.12)
    return made(times, [(3, 3) for _ in STRUCTURES])


def noisy(draw: random.Random) -> TruthTable:
    """Times with errors of up to 2%, and one in twenty that is half as long again."""
    times = others(draw, 1.15, 2.5, 0.06)
    best, least = draw.randrange(len(STRUCTURES)), _anywhere(draw)
    usual = [_anywhere(draw) for _ in STRUCTURES]
    times[best], usual[best] = bowl(1, least, 0.06), _away(least, 3, draw)

    def disturbed(time: Time) -> Time:
        errors = {place: draw.uniform(0.98, 1.02) * (1.5 if draw.random() < 0.05 else 1) for place in itertools.product(PLACES, PLACES)}
        return lambda place: time(place) * errors[place]

    return made([disturbed(time) for time in times], usual)


def crashing(draw: random.Random) -> TruthTable:
    """The best structure crashes where it begins, and wherever its first number is as large as there or larger."""
    times = others(draw, 1.25, 3, 0.08)
    best, row = draw.randrange(len(STRUCTURES)), draw.choice(range(3, 7))
    usual = [_anywhere(draw) for _ in STRUCTURES]
    least = row - 2, draw.choice(PLACES)
    times[best], usual[best] = bowl(1, least, 0.1), (row, least[1])
    ranks = [time(first) for time, first in zip(times, usual, strict=True)]
    return made(times, usual, ranks, lambda structure, place: structure == best and place[0] >= row)


def needle(draw: random.Random) -> TruthTable:
    """One point among others that say nothing about it."""
    times = others(draw, 1.3, 2, 0)
    best, least = draw.randrange(len(STRUCTURES)), _anywhere(draw)
    around = times[best]
    times[best] = lambda place: 1.0 if place == least else around(place)
    return made(times, [_anywhere(draw) for _ in STRUCTURES])


KINDS = {make.__name__: make for make in (elsewhere, narrow, together, misranked, twins, noisy, crashing, needle)}
