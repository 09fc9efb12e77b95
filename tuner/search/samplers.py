"""Samplers by name, and the choice between searching and trying everything. Those that use Optuna import it when they are made."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ...compiler.errors import TuningError
from ...compiler.frozen import frozen
from ...compiler.shown import is_word, shown
from .beyond import WithDraws
from .drawn import Drawn, Local
from .space import Space
from .strategy import Exhaustive, Strategy

USUAL_SAMPLER = "two-level"


@frozen
class Search:
    """What a sampler is made for.

    Attributes:
        space: what may be proposed.
        trials: how many may be measured.
        seed: of the sampler.
        journal: file that keeps studies; None: they are forgotten.
        name: of the studies; the digest of the space is added.
    """

    space: Space
    trials: int
    seed: int
    journal: Path | None
    name: str


@frozen
class Sampler:
    """A way to search.

    Attributes:
        make: returns the strategy.
        help: what it does, in a line.
    """

    make: Callable[[Search], Strategy]
    help: str


@contextmanager
def _quietly() -> Iterator[None]:
    """Suppress the warning of tqdm, which Optuna imports, that notebooks lack a widget; nothing here draws it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="IProgress not found")
        yield


def _two_levels(search: Search) -> Strategy:
    with _quietly():
        from .two_levels import TwoLevels

    return TwoLevels(search.space, search.seed, search.journal, search.name)


def _flat(search: Search, groups: bool = False) -> Strategy:
    with _quietly():
        from .flat import FlatStudy

    return FlatStudy(search.space, search.seed, search.journal, search.name, usual=max(1, search.trials // 2), groups=groups)


SAMPLERS: dict[str, Sampler] = {
    "two-level": Sampler(_two_levels, "structures and steps from the fastest points by expected improvement, numbers between them by TPE"),
    "tpe": Sampler(_flat, "one study of TPE over everything, the structure being a parameter"),
    "grouped-tpe": Sampler(lambda search: _flat(search, groups=True), "the same, multivariate within groups of parameters"),
    "local": Sampler(lambda search: Local(search.space, search.seed, max(1, search.trials // 2)), "neighbours of the best so far"),
    "random": Sampler(lambda search: Drawn(search.space, search.seed), "points drawn at random"),
    "exhaustive": Sampler(lambda search: Exhaustive(search.space), "everything, in the order of the static ranking"),
}


def register_sampler(name: str, sampler: Sampler) -> None:
    """Make a sampler known by a name, for ``--sampler`` and ``st.tune(sampler=...)``. Raises ``TuningError``: there is one already."""
    if name in SAMPLERS:
        raise TuningError(f"there is a sampler '{name}' already")
    SAMPLERS[name] = sampler


def check_sampler(name: str) -> str:
    """Return the name of a sampler. Raises ``TuningError``: there is none."""
    if not is_word(name, *SAMPLERS):
        near = difflib.get_close_matches(name, SAMPLERS, 1) if isinstance(name, str) else []
        guess = f"; did you mean '{near[0]}'?" if near else ""
        raise TuningError(f"there is no sampler {shown(name)}, but {', '.join(SAMPLERS)}{guess}")
    return name


def choose_strategy(search: Search, sampler: str = USUAL_SAMPLER) -> Strategy:
    """Return the strategy for a space: every point that rules list if they are no more than the trials, else what the sampler proposes.
    Draws from the whole space come between, unless everything is to be tried in order.

    Raises:
        TuningError: there is no such sampler.
    """
    check_sampler(sampler)
    found = Exhaustive(search.space) if search.space.size <= search.trials else SAMPLERS[sampler].make(search)
    return found if search.space.beyond is None or sampler == "exhaustive" else WithDraws(found, search.space.beyond)
