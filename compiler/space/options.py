"""Which choices of the whole space are open, and in what range: stages that can be opened one by one, and narrowed by filters."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations

from ..format import Format
from ..levels import LevelKind, level_kinds
from ..schedule import directives as d
from ..workspaces import WORKSPACES
from .choices import NOTHING, All, Choice, OneOf, perhaps
from .grammar import Alternative, Derivation, Grammar
from .pieces import Run

MOST = 1 << 14
"""Of iterations of a tile, tiles, iterations ahead, iterations of a chunk."""

MOST_UNROLLED = 128
UNITS = {"cpu": ("cpu_thread", "cpu_vector"), "cuda": ("gpu_block", "gpu_warp", "gpu_thread")}


@dataclass(frozen=True)
class Options:
    """What may be chosen; each stage is closed where it has no choices.

    Attributes:
        divisions: whether indices become other loops than themselves.
        runs: rules on what they become, of ``RUNS``.
        sizes: of tiles.
        protocols: whether levels may be traversed in other ways than those that they are made for.
        formats: whether operands may be converted to whatever format.
        kinds: of workspaces.
        results: ways to put a sparse result together.
        merges: how operands meet in a loop.
        units: that run loops, the outermost first; each runs one loop around a statement at most.
        races: how writes are kept apart.
        chunkings: whether and how iterations are dealt out in chunks, and of which sizes ``chunks``.
        bounds: what may be said of a loop's range, with an amount of ``sizes``.
        unrolls, distances: factors; iterations ahead for which an operand is prefetched.
        builds: (compiler, flags).
        outermost: threads run outermost loops only, vectors innermost ones.
    """

    divisions: bool = False
    runs: tuple[str, ...] = ()
    sizes: Sequence[int] = (32,)
    protocols: bool = False
    formats: bool = False
    kinds: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    merges: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    races: tuple[str, ...] = d.RACES
    chunkings: tuple[str, ...] = ()
    chunks: Sequence[int] = ()
    bounds: tuple[str, ...] = ()
    unrolls: Sequence[int] = ()
    distances: Sequence[int] = ()
    builds: tuple[tuple[str | None, str | None], ...] = ()
    outermost: bool = False

    @cached_property
    def dealt(self) -> Choice:
        """(how races are kept apart, (chunking, chunk)) of a loop that threads run."""
        chunks = All((OneOf(self.chunkings), perhaps(OneOf(self.chunks)))) if self.chunkings else OneOf(())
        return All((OneOf(self.races), perhaps(chunks)))

    @cached_property
    def kind(self) -> Choice:
        """The kind of a workspace, None where the compiler chooses."""
        return OneOf((None, *self.kinds))

    def told(self, unit: str | None, operands: tuple[str, ...]) -> Choice:
        """Return what a loop may be told, where it reads some operands; see ``_told``."""
        known = self._known.get((unit, len(operands)))
        if known is None:
            known = self._known[unit, len(operands)] = self._told(unit, len(operands))
        return known

    @cached_property
    def _known(self) -> dict[tuple[str | None, int], Choice]:
        return {}

    def _told(self, unit: str | None, operands: int) -> Choice:
        """Return what a loop may be told: races and chunks; how operands meet; its bound; unroll; distances of operands that it reads."""
        races = NOTHING if unit is None else self.dealt if unit == "cpu_thread" else All((OneOf(self.races), NOTHING))
        ahead = perhaps(OneOf(self.distances))
        bound = perhaps(All((OneOf(self.bounds), OneOf(self.sizes))))
        return All((races, OneOf((None, *self.merges)), bound, perhaps(OneOf(self.unrolls)), All((ahead,) * operands)))

    def format(self, order: int) -> Choice:
        """Return the formats that an operand may be converted to, None where it stays."""
        return perhaps(_Formats(order)) if self.formats else NOTHING

    def assembly(self, form: Format) -> Choice:
        """Return the ways to put a result together, None where the compiler chooses."""
        return NOTHING if form.is_dense else OneOf((None, *self.results))

    @cached_property
    def build(self) -> Choice:
        """Compilers and flags, None where the machine's are taken."""
        return OneOf((None, *self.builds))


def everything(target: str = "cpu", builds: tuple[tuple[str | None, str | None], ...] = ()) -> Options:
    """Return what there is for a target."""
    numbers = range(1, MOST + 1)
    return Options(
        divisions=True, sizes=numbers, protocols=True, formats=True, kinds=tuple(WORKSPACES), results=d.ASSEMBLIES, merges=d.MERGES,
        units=UNITS[target], chunkings=d.CHUNKINGS, chunks=numbers, bounds=d.BOUNDS, unrolls=range(1, MOST_UNROLLED + 1), distances=numbers,
        builds=builds,
    )  # fmt: skip


RUNS: dict[str, Callable[[Run], bool]] = {
    "collapsed_is_split": lambda run: len(run.indices) == 1 or len(run.loops) > 1,
    "positions_are_split": lambda run: not run.by_positions,
}
"""Rules of Senanayake et al. on what runs of indices become: what they drop iterates as something else does."""

STAGES: dict[str, tuple[str, ...]] = {
    "loop transformations": ("divisions", "runs"),
    "protocols": ("protocols",),
    "formats": ("formats", "kinds", "results"),
    "merges": ("merges",),
    "parallel units": ("units", "races", "outermost"),
    "numbers": ("sizes", "bounds", "chunkings", "chunks", "unrolls", "distances", "builds"),
}
"""The stages behind the structural ones, each with the options that it opens."""


def opened(options: Options, stages: Sequence[str]) -> Options:
    """Return options of which only some stages are open."""
    fields = [name for stage in stages for name in STAGES[stage]]
    return replace(Options(), **{name: getattr(options, name) for name in fields})


class _Formats(Choice):
    """All formats of tensors of an order."""

    def __init__(self, order: int) -> None:
        self._order = order
        self._orders = OneOf(tuple(permutations(range(order))))
        self._kinds: Grammar[tuple[LevelKind | None, int]] = Grammar(_levels_below)

    @cached_property
    def count(self) -> int:
        return self._orders.count * self._kinds.count((None, self._order))

    def at(self, rank: int) -> Format:
        rank, place = divmod(rank, self._orders.count)
        derivation, kinds = self._kinds.derivation((None, self._order), rank), list[LevelKind]()
        while derivation.parts:
            assert isinstance(derivation.label, LevelKind)
            kinds.append(derivation.label)
            (derivation,) = derivation.parts
        return Format(tuple(kinds), tuple(range(self._order)) if place == 0 else self._permutation(place))

    def _permutation(self, place: int) -> tuple[int, ...]:
        found = self._orders.at(place)
        assert isinstance(found, tuple)
        return found

    def rank(self, value: Hashable) -> int | None:
        if not isinstance(value, Format) or len(value) != self._order:
            return None
        derivation = Derivation(None, 0, ())
        for kind in reversed(value.levels):
            derivation = Derivation(kind, 0, (derivation,))
        found, place = self._kinds.rank((None, self._order), derivation), self._orders.rank(value.order)
        return None if found is None or place is None else found * self._orders.count + place


def _levels_below(symbol: tuple[LevelKind | None, int]) -> list[Alternative[tuple[LevelKind | None, int]]]:
    above, left = symbol
    if not left:
        return [Alternative(None)]
    return [Alternative(kind, ((kind, left - 1),)) for kind in level_kinds() if kind.misplaced(above) is None]
