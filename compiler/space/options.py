"""The open choices of the whole space and their ranges: stages are opened one by one, and narrowed by filters."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import permutations

from ..concrete.loop_tag import THREAD_REGISTERS, WARP_LANES
from ..format import Format
from ..frozen import frozen
from ..levels import LevelKind, level_kinds
from ..schedule import directives as d
from ..units import CHUNKINGS, HARDWARE, LANES, REGISTERS, UNITS
from ..workspaces import WORKSPACES, keeping_kinds
from .choices import NOTHING, All, Choice, OneOf, perhaps
from .grammar import Alternative, Derivation, Grammar
from .pieces import Run

MOST = 1 << 14
"""Largest number of iterations of a tile, of tiles, of iterations ahead, and of iterations of a chunk."""

MOST_UNROLLED = 128


@frozen
class Facts:
    """Facts about a loop when it is opened.

    Attributes:
        found: for every operand that is read inside, whether the loop finds a stored coordinate that chooses what is read of it.
        meets: whether several stored operands are read at its index.
        apart: whether its iterations write different components of the result.
        extent: how many iterations it has, where that is known when code is generated.
        units: that may run it.
    """

    found: tuple[bool, ...]
    meets: bool = True
    apart: bool = False
    extent: int | None = None
    units: tuple[str, ...] = ()


@frozen
class Options:
    """The choices of each stage; a stage without choices is closed.

    Attributes:
        divisions: whether indices may be transformed into other loops.
        runs: rules on what they become, of ``RUNS``.
        divided: how many runs of them become other loops at most; None: any number.
        sizes: of tiles.
        protocols: whether levels may be traversed in other ways than those that they are made for.
        formats: whether operands may be converted to any format.
        conversions: the formats that operands may be converted to if ``formats`` is closed, by name.
        kinds: of workspaces.
        results: ways to put a sparse result together.
        merges: how operands meet in a loop.
        units: that run loops, the outermost first; each runs one loop around a statement at most.
        calls: routines of BLAS that take the last loops around a statement over.
        races: how races between writes are resolved.
        chunkings: whether and how iterations are dealt out in chunks, and of which sizes ``chunks``.
        lanes: how many lanes a warp may have.
        registers: how many registers a thread of a GPU may have at most.
        bounds: what may be said of a loop's range, with an amount of ``sizes``.
        unrolls, distances: factors; iterations ahead for which an operand is prefetched.
        builds: (compiler, flags).
        outermost: threads run outermost loops only, vectors innermost ones.
        fitting: loops and workspaces get only directives that can have an effect there (``Facts``).
        in_order: loops come in the order in which operands are stored.
    """

    divisions: bool = False
    runs: tuple[str, ...] = ()
    divided: int | None = None
    sizes: Sequence[int] = (32,)
    protocols: bool = False
    formats: bool = False
    conversions: tuple[tuple[str, tuple[Format, ...]], ...] = ()
    kinds: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    merges: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    races: tuple[str, ...] = d.RACES
    chunkings: tuple[str, ...] = ()
    chunks: Sequence[int] = ()
    lanes: tuple[int, ...] = ()
    registers: Sequence[int] = ()
    bounds: tuple[str, ...] = ()
    unrolls: Sequence[int] = ()
    distances: Sequence[int] = ()
    builds: tuple[tuple[str | None, str | None], ...] = ()
    outermost: bool = False
    fitting: bool = False
    in_order: bool = False

    def kind(self, has_modes: bool, whole: bool) -> Choice:
        """Return the kinds of a workspace, None where the compiler chooses.

        Args:
            has_modes: whether it has any.
            whole: whether what reads it reads all of it, not only its entries.
        """
        if not self.fitting:
            return perhaps(OneOf(self.kinds))
        fitting = ("scalar",) if not has_modes else (*keeping_kinds(), "dense") if whole else keeping_kinds()
        return perhaps(OneOf(tuple(kind for kind in self.kinds if kind in fitting)))

    def told(self, unit: str | None, facts: Facts, inside: int | None = None) -> Choice:
        """Return the directives that a loop may have: races and chunks or lanes; how operands meet; its bound; unroll; distances
        of operands that it reads; the routine of BLAS that takes it over.

        Args:
            unit: that runs it.
            facts: what is known of it.
            inside: how many loops are inside it, around one statement; None: around several.
        """
        known = self._known.get((unit, facts, inside))
        if known is None:
            known = self._known[unit, facts, inside] = self._told(unit, facts, inside)
        return known

    @cached_property
    def _known(self) -> dict[tuple[str | None, Facts, int | None], Choice]:
        return {}

    def _told(self, unit: str | None, facts: Facts, inside: int | None) -> Choice:
        races = NOTHING if unit is None else All((OneOf(self._races(unit, facts)), self._dealt.get(unit, NOTHING)))
        merges = self.merges if facts.meets or not self.fitting else ()
        bound = All((OneOf(self.bounds), OneOf(self.sizes)))
        if self.fitting:
            bound = OneOf(() if facts.extent is None or "max_exact" not in self.bounds else (("max_exact", facts.extent),))
        ahead = (perhaps(OneOf(self.distances)) if near or not self.fitting else NOTHING for near in facts.found)
        calls = self._calls(facts, inside) if unit is None and inside is not None else ()
        return All((races, perhaps(OneOf(merges)), perhaps(bound), perhaps(OneOf(self.unrolls)), All(tuple(ahead)), perhaps(OneOf(calls))))

    def _calls(self, facts: Facts, inside: int) -> tuple[str, ...]:
        """Return the routines that may take over a loop and those inside it."""
        dense = not any(facts.found)
        return tuple(one for one in self.calls if d.CALL_LOOPS[one] == inside + 1 and (dense or not self.fitting))

    def _races(self, unit: str, facts: Facts) -> tuple[str, ...]:
        if not self.fitting:
            return self.races
        kept = ("no_races",) if facts.apart else ("no_races", "parallel_reduction") if UNITS[unit].is_vector else self.races
        return tuple(race for race in kept if race in self.races)

    @cached_property
    def _dealt(self) -> dict[str, Choice]:
        """How a unit distributes iterations, or None: threads by (chunking, chunk), warps to ("lanes", how many each has),
        threads of a GPU to ("registers", most registers of each)."""
        chunks = All((OneOf(self.chunkings), perhaps(OneOf(self.chunks)))) if self.chunkings else OneOf(())
        ways: dict[str, Choice] = {
            word: perhaps(OneOf(tuple((word, count) for count in counts)))
            for word, counts in ((LANES, self.lanes), (REGISTERS, self.registers))
        }
        return {unit.name: ways.get(unit.chunkings[0], perhaps(chunks)) for unit in UNITS.values() if unit.chunkings}

    def treatments(self, run: Run) -> Choice:
        """Return the ways in which indices become the loops of a run."""
        if run not in self._treatments:
            self._treatments[run] = run.treatments(self.sizes)
        return self._treatments[run]

    @cached_property
    def _treatments(self) -> dict[Run, Choice]:
        return {}

    def format(self, name: str, modes: int, order: tuple[int, ...] | None, held: tuple[int, ...]) -> Choice:
        """Return the formats that an operand may be converted to, None where it stays.

        Args:
            name: of the operand.
            modes: how many it has.
            order: of the modes of these formats; None: any.
            held: that of the operand where it stays.
        """
        known = self._forms.get((name, order))
        if known is None:
            offered = (form for other, forms in self.conversions if other == name for form in forms)
            others = _Formats(modes, order) if self.formats else OneOf(tuple(form for form in offered if order in (None, form.order)))
            known = self._forms[name, order] = perhaps(others) if order in (None, held) else others
        return known

    def orders(self, name: str, held: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Return the orders of modes in which an operand may be read, its own first."""
        offered = (form.order for other, forms in self.conversions if other == name for form in forms)
        return tuple(dict.fromkeys((held, *(permutations(sorted(held)) if self.formats else offered))))

    @cached_property
    def _forms(self) -> dict[tuple[str, tuple[int, ...] | None], Choice]:
        return {}

    def assembly(self, form: Format) -> Choice:
        """Return the ways to put a result together, None where the compiler chooses."""
        return NOTHING if form.is_dense else perhaps(OneOf(self.results))

    @cached_property
    def build(self) -> Choice:
        """Compilers and flags, None where the machine's are taken."""
        return perhaps(OneOf(self.builds))


def everything(target: str = "cpu", builds: tuple[tuple[str | None, str | None], ...] = ()) -> Options:
    """Return all options of a target."""
    numbers, units = range(1, MOST + 1), HARDWARE[target].units
    on_device, words = HARDWARE[target].on_device, {word for unit in units for word in UNITS[unit].chunkings}
    return Options(
        divisions=True, sizes=numbers, protocols=True, formats=True, kinds=tuple(WORKSPACES), results=d.ASSEMBLIES, merges=d.MERGES,
        units=units, calls=() if on_device else d.CALLS, chunkings=CHUNKINGS, chunks=numbers,
        lanes=WARP_LANES if LANES in words else (), registers=THREAD_REGISTERS if REGISTERS in words else (), bounds=d.BOUNDS,
        unrolls=range(1, MOST_UNROLLED + 1), distances=numbers, builds=builds,
    )  # fmt: skip


RUNS: dict[str, Callable[[Run], bool]] = {
    "collapsed_is_split": lambda run: len(run.indices) == 1 or len(run.loops) > 1,
    "positions_are_split": lambda run: not run.by_positions,
}
"""Rules of Senanayake et al. on the loops that runs of indices become; they drop loops that iterate as others do."""

STAGES: dict[str, tuple[str, ...]] = {
    "loop transformations": ("divisions", "runs", "divided", "fitting", "in_order"),
    "protocols": ("protocols",),
    "formats": ("formats", "conversions", "kinds", "results"),
    "merges": ("merges",),
    "parallel units": ("units", "calls", "races", "outermost"),
    "numbers": ("sizes", "bounds", "chunkings", "chunks", "lanes", "registers", "unrolls", "distances", "builds"),
}
"""The stages behind the structural ones, each with the options that it opens."""


def opened(options: Options, stages: Sequence[str]) -> Options:
    """Return the options with only some stages open."""
    fields = [name for stage in stages for name in STAGES[stage]]
    return replace(Options(), **{name: getattr(options, name) for name in fields})


class _Formats(Choice):
    """All formats of tensors with some modes, in one order of these or in any."""

    def __init__(self, modes: int, order: tuple[int, ...] | None = None) -> None:
        self._modes = modes
        self._orders = OneOf(tuple(permutations(range(modes))) if order is None else (order,))
        self._kinds: Grammar[tuple[LevelKind | None, int]] = Grammar(_levels_below)

    @cached_property
    def count(self) -> int:
        return self._orders.count * self._kinds.count((None, self._modes))

    def at(self, rank: int) -> Format:
        rank, place = divmod(rank, self._orders.count)
        derivation, kinds = self._kinds.derivation((None, self._modes), rank), list[LevelKind]()
        while derivation.parts:
            assert isinstance(derivation.label, LevelKind)
            kinds.append(derivation.label)
            (derivation,) = derivation.parts
        return Format(tuple(kinds), self._permutation(place))

    def _permutation(self, place: int) -> tuple[int, ...]:
        found = self._orders.at(place)
        assert isinstance(found, tuple)
        return found

    def rank(self, value: Hashable) -> int | None:
        if not isinstance(value, Format) or len(value) != self._modes:
            return None
        derivation = Derivation(None, 0, ())
        for kind in reversed(value.levels):
            derivation = Derivation(kind, 0, (derivation,))
        found, place = self._kinds.rank((None, self._modes), derivation), self._orders.rank(value.order)
        return None if found is None or place is None else found * self._orders.count + place


def _levels_below(symbol: tuple[LevelKind | None, int]) -> list[Alternative[tuple[LevelKind | None, int]]]:
    above, left = symbol
    if not left:
        return [Alternative(None)]
    return [Alternative(kind, ((kind, left - 1),)) for kind in level_kinds() if kind.misplaced(above) is None and not kind.mirrors]
