"""Loop transformations as a stage of the whole space: which loops the indices of an expression become.

Indices stay as they are, or runs of them are collapsed; what results is gone through by coordinates or by the positions of an
operand, and cut into tiles, each tile into smaller ones up to a bound (Senanayake et al., section 6). The last of several indices may be
cut before: its tiles are collapsed with the others, and the loop over a tile stays inside, where registers hold what it computes. The
structural space has all loops that an index may become. A division says which of them exist, so that counts for one division serve the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations, permutations, product

from ..format import Format
from ..fresh import FreshNames
from ..frozen import frozen
from ..notation.nodes import Access, Affine, Assignment, Expr, Sum, accesses, transform_expression
from .choices import All, Choice, OneOf
from .forms import unwatched

TILES = ("split", "split_up")
"""Ways to cut a loop: tiles of a number of iterations, a number of tiles."""

_BY_COORDINATES, _BY_TILES = (None, False, False, False), (None, False, False, True)
"""How a run of indices is gone through where no positions are counted: by coordinates, by tiles of the last index."""


@frozen
class Treatment:
    """How a run of indices becomes loops.

    Attributes:
        order: the indices in the order in which they are collapsed.
        positions: the operand whose positions are counted; None: coordinates.
        path: whether the loop also has the ends of fibres as items: the merge path.
        tiles: (kind of ``TILES``, number) for every cut, the outermost first.
        back: the innermost loop runs through coordinates again.
        before: the last of ``tiles`` cuts the last index before it is collapsed.
    """

    order: tuple[str, ...]
    positions: str | None = None
    path: bool = False
    tiles: tuple[tuple[str, int], ...] = ()
    back: bool = False
    before: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether a single index becomes a single loop over its coordinates."""
        return len(self.order) == 1 and self.positions is None and not self.tiles

    @property
    def value(self) -> Hashable:
        """Its value among ``Run.treatments``."""
        return self.order, (self.positions, self.path, self.back, self.before), self.tiles


@frozen
class Run:
    """Indices that are collapsed, or one alone, and the loops that they become.

    Attributes:
        indices: in the order of the expression.
        loops: the outermost tile first.
        operands: those that are indexed by all of them, whose positions may be counted.
        by_positions: whether a single loop counts positions; tiles may or may not.
    """

    indices: tuple[str, ...]
    loops: tuple[str, ...]
    operands: tuple[str, ...] = ()
    by_positions: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the index stays the loop that it is."""
        return self.loops == self.indices

    def treatments(self, sizes: Sequence[int]) -> Choice:
        """Return the choices that give these loops: the order of the indices; how the collapsed loop is gone through; the tiles.

        The second is (operand whose positions are counted or None, whether along the merge path, whether back to coordinates, whether the
        last cut comes before the collapse). A merge path goes through fibres, which the last of several indices has.
        """
        orders = OneOf(tuple(permutations(self.indices)))
        several = len(self.indices) > 1
        along = [(path, False, False) for path in ((False, True) if several else (False,))]
        if len(self.loops) == 1:
            found = ((name, *how) for name in self.operands for how in along)
            ways = OneOf(tuple(found) if self.by_positions else (_BY_COORDINATES,))
            return All((orders, ways, OneOf(((),))))
        along += [(False, True, False)] if len(self.loops) == 2 else []
        ways = OneOf((_BY_COORDINATES, *((_BY_TILES,) if several else ()), *((name, *how) for name in self.operands for how in along)))
        cuts = All(tuple(All((OneOf(TILES), OneOf(sizes))) for _ in self.loops[1:]))
        return All((orders, ways, cuts))


class _Wide(Affine):
    """Stands for all loops that the index of some number may become."""

    def __str__(self) -> str:
        return f"#{self.constant}"


Division = tuple[Run, ...]
"""A run for every index or several, which together have all indices."""


class Pieces:
    """The loops that the indices of an assignment may become.

    Args:
        assignment: the expression; indices in compound subscripts stay as they are.
        operands: formats of those that are stored; their positions may be counted where they are indexed by all of a run, except where
            subscripts are compound: no loop goes through all positions of a view.
        levels: how often a loop may be cut.
        watch: called again and again while divisions are listed; it may raise to end that.
    """

    def __init__(
        self, assignment: Assignment, operands: Mapping[str, Format], levels: int = 1, watch: Callable[[], None] = unwatched
    ) -> None:
        self.levels = levels
        self._watch = watch
        self._assignment = assignment
        appearing = (assignment.target, *accesses(assignment.value))
        self.indices = tuple(dict.fromkeys(name for access in appearing for name in access.indices))
        self._names = FreshNames((*self.indices, *(access.tensor for access in appearing)), "_")
        compound = {name for access in appearing for one in access.subscripts if not one.is_index for name in one.indices}
        self.movable = tuple(name for name in self.indices if name not in compound)
        self._indexed: dict[str, set[str]] = {name: set() for name, form in operands.items() if form.in_memory is form}
        for access in appearing:
            if access.tensor in self._indexed:
                self._indexed[access.tensor].update(access.indices)
        self.coordinates = {name: _with_coordinates(appearing, name, form) for name, form in operands.items()}
        self.choosing = {access.tensor: self._choosing(appearing, access.tensor) for access in appearing}

    def _choosing(self, appearing: Sequence[Access], name: str) -> frozenset[str]:
        """Return the indices that choose a row of a dense tensor, or an entry of a stored one."""
        if name in self.coordinates:
            return self.coordinates[name]
        return frozenset(index for access in appearing if access.tensor == name for one in access.subscripts[:-1] for index in one.indices)

    @cached_property
    def plain(self) -> Division:
        """Every index alone and unchanged."""
        return tuple(Run((name,), (name,)) for name in self.indices)

    @cached_property
    def divisions(self) -> tuple[Division, ...]:
        """All divisions, the plain one first."""
        fixed = tuple(Run((name,), (name,)) for name in self.indices if name not in self.movable)
        found = []
        for runs in _runs(self.movable):
            for chosen in product(*(self.becoming[run] for run in runs)):
                self._watch()
                found.append((*chosen, *fixed))
        return tuple(sorted(found, key=lambda division: not all(run.is_plain for run in division)))

    @cached_property
    def becoming(self) -> Mapping[tuple[str, ...], tuple[Run, ...]]:
        """The treatments that every run of indices may have."""
        found = {}
        for size in range(1, len(self.movable) + 1):
            for run in combinations(self.movable, size):
                self._watch()
                found[run] = tuple(self._becoming(run))
        return found

    def _becoming(self, run: tuple[str, ...]) -> Iterator[Run]:
        stem = "".join(run)
        whole = run[0] if len(run) == 1 else self._names.fresh(f"{stem}_")
        yield Run(run, (whole,))
        operands = tuple(name for name, indices in self._indexed.items() if indices.issuperset(run))
        if operands:
            yield Run(run, (self._names.fresh(f"{stem}p"),), operands, True)
        for cuts in range(1, self.levels + 1):
            form = "{}{}" if self.levels == 1 else f"{{}}{cuts}_{{}}"
            yield Run(run, tuple(self._names.fresh(form.format(stem, piece)) for piece in range(cuts + 1)), operands)

    @cached_property
    def runs(self) -> Mapping[str, Run]:
        """The run that every loop is a piece of."""
        fixed = {name: Run((name,), (name,)) for name in self.indices}
        return fixed | {loop: run for several in self.becoming.values() for run in several for loop in run.loops}

    @cached_property
    def loops(self) -> Mapping[str, tuple[str, ...]]:
        """All loops that an index may become, itself among them."""
        found: dict[str, dict[str, None]] = {name: {name: None} for name in self.indices}
        for run, several in self.becoming.items():
            for one in several:
                for index in run:
                    found[index].update(dict.fromkeys(one.loops))
        return {index: tuple(names) for index, names in found.items()}

    def loops_of(self, one: Treatment) -> tuple[str, ...]:
        """Return the loops that a treatment makes."""
        indices = tuple(name for name in self.movable if name in one.order)
        wanted = len(one.tiles) + 1, one.positions is not None and not one.tiles
        return next(run.loops for run in self.becoming[indices] if (len(run.loops), run.by_positions) == wanted)

    # Subscripts

    @cached_property
    def _wide(self) -> dict[Affine, Affine]:
        return {
            Affine(((name, 1),)): _Wide(tuple((loop, 1) for loop in self.loops[name]), place)
            for place, name in enumerate(self.indices)
            if name in self.movable
        }

    @cached_property
    def _narrow(self) -> dict[Affine, Affine]:
        return {wide: plain for plain, wide in self._wide.items()}

    @property
    def assignment(self) -> Assignment:
        """The assignment with every subscript as all loops that its index may become."""
        value = transform_expression(widened(self._assignment.value, self.widened), self._over_loops)
        return Assignment(self.widened(self._assignment.target), self._assignment.operator, value)

    def _over_loops(self, part: Expr) -> Expr | None:
        return Sum(tuple(loop for name in part.over for loop in self.loops[name]), part.operand) if isinstance(part, Sum) else None

    def widened(self, access: Access) -> Access:
        """Return a read or write with every index as all loops that it may become."""
        return replace(access, subscripts=tuple(self._wide.get(one, one) for one in access.subscripts))

    def restored(self, value: Expr) -> Expr:
        """Return an expression with indices as they were written."""
        return widened(value, self.narrowed)

    def narrowed(self, access: Access) -> Access:
        """Return what was widened."""
        return replace(access, subscripts=tuple(self._narrow.get(one, one) for one in access.subscripts))


def widened(value: Expr, change: Callable[[Access], Access]) -> Expr:
    """Return an expression with changed accesses."""
    return transform_expression(value, lambda part: change(part) if isinstance(part, Access) else None)


def _with_coordinates(appearing: Sequence[Access], name: str, form: Format) -> frozenset[str]:
    """Return the indices whose coordinates a tensor stores."""
    modes = [mode for kind, mode in zip(form.levels, form.order, strict=True) if not kind.full]
    return frozenset(index for access in appearing if access.tensor == name for mode in modes for index in access.subscripts[mode].indices)


def treatment(value: Hashable) -> Treatment:
    """Return what a value of ``Run.treatments`` stands for."""
    assert isinstance(value, tuple)
    order, (positions, path, back, before), tiles = value
    return Treatment(order, positions, path, tiles, back, before)


def _runs(items: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Yield every way to put items into runs."""
    if not items:
        yield ()
        return
    first, rest = items[0], items[1:]
    for size in range(len(rest) + 1):
        for others in combinations(rest, size):
            left = tuple(item for item in rest if item not in others)
            yield from (((first, *others), *more) for more in _runs(left))
