"""The order in which contestants run, round by round, and the rest between them, so that none is favoured or hindered by the one that ran
before it."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Name = TypeVar("Name")

_REST = 0.015  # seconds


def rest() -> None:
    """Wait until the threads of the contestant before have fallen asleep: those of OpenMP spin for up to 10 ms after a call, on cores that
    the threads of the next one need."""
    time.sleep(_REST)


def turns(names: Iterable[Name]) -> Iterator[list[Name]]:
    """Yield one order of contestants after another, without end and the same every time.

    Each is shuffled, so that no contestant always follows the same other one. No order begins with the last of the order before: a
    contestant that runs twice in a row finds its own data in the caches.
    """
    draw, order = random.Random(0), list(names)
    last: Name | None = None
    while True:
        draw.shuffle(order)
        if len(order) > 1 and order[0] == last:
            order.append(order.pop(0))
        last = order[-1] if order else None
        yield list(order)
