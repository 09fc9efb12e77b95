"""Schedules of the whole space as schedules of the scheduling language.

Directives on loops follow those that make the nest (``spelling``). Indices become loops while there is one nest, before workspaces split
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from ..concrete.nodes import Assign
from ..concrete.said import operand_of, said_of
from ..errors import ScheduleError
from ..format import Format
from ..notation.nodes import Access, accesses
from ..schedule import directives as d
from ..schedule.addresses import at, chain
from ..schedule.schedule import Schedule
from .defaults import with_default_protocols
from .layout import Nest
from .pieces import Treatment
from .reading import with_modes
from .reads import told_apart
from .spelling import Speller
from .whole import WholeSpace
from .whole_plan import Plan

_OTHER = {"step": "locate", "locate": "step"}
_CUTS = {"split": d.Split, "split_up": d.SplitUp}


def written(plan: Plan, space: WholeSpace) -> Schedule:
    """Return the schedule that makes a program of the whole space from the default one. The language may refuse it."""
    return Schedule(_Writer(plan, space).directives())


class _Writer(Speller):
    def __init__(self, plan: Plan, space: WholeSpace) -> None:
        super().__init__(plan.member, space.default, space.pieces.restored)
        self.plan, self.space = plan, space

    def directives(self) -> list[d.Directive]:
        for name, form in self.plan.formats.items():
            if form is not None:
                self.write(d.Convert(Access(name), str(form)))
        self.addends()
        self._divide()
        start = self.program, list(self.written)
        try:
            self.nest_all()
        except ScheduleError:
            if len(self.layout.enclosing) > 1 and (len(self.roots) > 1 or any(self.table[number].summed for number in self.numbers)):
                raise
            self.program, self.written = start
            self._nest_inside(self.layout.nest)
        self._protocols()
        self._storage()
        self._tell()
        return self.written

    def _nest_inside(self, nest: Nest) -> None:
        """Compute workspaces inside the loops that are shared, from the outside inwards: ranges of loops may be known only there."""
        end = last_of(nest)
        present = chain(self.program.statement, self.nest(end))
        if not set(nest.loops) <= set(present):
            raise ScheduleError("a loop around several statements is not one of each")
        wanted = (*nest.loops, *(name for name in present if name not in nest.loops))
        if wanted != present:
            self.write(d.Reorder(wanted, path=self.path(self.address(end)) or None))
        holding = dict.fromkeys(self._inside(nest), end)
        for part in reversed(nest.parts[:-1]):
            made = last_of(part)
            over = tuple(name for name in wanted if name in self.layout.workspaces[made])
            path = self.path(self.address(holding[self.consumers[made]])) or None
            self.write(d.Precompute(self.addend(made), over, over, self.names[made], path=path))
            holding |= dict.fromkeys(self._inside(part), made)
        for part in nest.parts:
            self._nest_inside(part)

    def _inside(self, nest: Nest) -> list[int]:
        return [number for number in self.numbers if nest in self.nests[number]]

    def _divide(self) -> None:
        """Move indices that are collapsed next to each other, and make the loops, in every nest that has these indices."""
        changed = [one for one in self.plan.treatments if not one.is_plain]
        if not changed:
            return
        for number in self.in_order():
            self._divide_nest(number, changed)

    def _divide_nest(self, number: int, changed: Sequence[Treatment]) -> None:
        path = self.path(self.address(number)) or None
        present = chain(self.program.statement, self.nest(number))
        runs = [tuple(index for index in one.order if index in present) for one in self.plan.treatments]
        order = tuple(index for run in sorted(filter(None, runs), key=lambda run: min(map(present.index, run))) for index in run)
        if order != present and any(len(run) > 1 for run in runs):
            self.write(d.Reorder(order, path=path))
        for one in sorted((one for one in changed if one.order[0] in present), key=lambda one: present.index(one.order[0])):
            for step in self._steps(one):
                self.write(replace(step, path=path))

    def _steps(self, one: Treatment) -> Iterator[d.Directive]:
        loops, tiles, order = self.space.pieces.loops_of(one), one.tiles, one.order
        stem, head = "".join(order), order[0]
        if one.before:
            kind, number = tiles[-1]
            yield _CUTS[kind](order[-1], f"{stem}_o", loops[-1], number)
            loops, tiles, order = loops[:-1], tiles[:-1], (*order[:-1], f"{stem}_o")
        more = bool(tiles) or one.positions is not None
        for place, index in enumerate(order[1:], 2):
            fused = loops[0] if place == len(order) and not more else f"{stem[:place]}_{place}_f"
            yield d.Collapse(head, index, fused)
            head = fused
        if one.positions is not None:
            position = f"{stem}_p" if tiles or one.path else loops[0]
            yield d.Pos(head, position, Access(one.positions))
            head = position
        if one.path:
            item = f"{stem}_m" if tiles else loops[0]
            yield d.MergePath(head, item)
            head = item
        for place, (kind, number) in enumerate(tiles):
            last = place == len(tiles) - 1
            inner = f"{stem}_t{place}" if not last or one.back else loops[-1]
            yield _CUTS[kind](head, loops[place], inner, number)
            head = inner
        if one.back:
            yield d.Coord(head, loops[-1])

    def _protocols(self) -> None:
        """Write the protocols of modes that are not traversed as their levels are made for."""
        if not self.plan.flipped:
            return
        stored = {name: self.formats[name] for name in self.space.stored}
        usual = with_default_protocols(with_modes(self.program, self.formats), stored)
        for number in self.in_order():
            leaf = at(usual, self.address(number))
            assert isinstance(leaf, Assign)
            pending: dict[Access, list[Access]] = {}
            for access in accesses(leaf.value):
                pending.setdefault(operand_of(access), []).append(access)
            said: list[tuple[Access, tuple[str, ...] | None]] = []
            for place, read in enumerate(self.member.nestings.stored(number)):
                operand = operand_of(self.space.pieces.narrowed(read))
                found = pending[operand].pop(0)
                modes = {mode for other, which, mode in self.plan.flipped if (other, which) == (number, place)}
                form = self.form(found)
                chosen = tuple(_OTHER[found.protocols[mode]] if mode in modes else found.protocols[mode] for mode in form.order)
                said.append((operand, chosen if modes else None))
            for access, place, chosen in told_apart(said):
                if chosen is not None:
                    self.write(d.ProtocolDirective(access, chosen, place=place, path=self.path(self.address(number)) or None))

    def form(self, access: Access) -> Format:
        """Return the format in which the program reads an operand."""
        return access.stored or said_of(access, self.program.conversions) or self.formats[access.tensor]

    def _storage(self) -> None:
        for number, kind in self.plan.kinds.items():
            if kind is not None:
                self.write(d.WorkspaceDirective(self.names[number], kind))
        if self.plan.assembly is not None:
            self.written.append(d.Assemble(self.table.target.tensor, self.plan.assembly))

    def _tell(self) -> None:
        """Write the directives on loops, parallel units last."""
        units: list[d.Directive] = []
        places = {where: self.loop(min(where[1]), where[0]) for where in self.plan.told}
        for where in sorted(places, key=places.__getitem__):
            (index, statements), (unit, value) = where, self.plan.told[where]
            race, merge, bound, unroll, distances, routine = cast("tuple[Any, ...]", value)
            path = self.path(places[where]) or None
            if bound is not None:
                kind, amount = bound
                self.write(d.Bound(index, f"{index}_b", amount, kind, path=path))
                index = f"{index}_b"
            if merge is not None:
                self.write(d.Merge(index, merge, path=path))
            if unroll is not None:
                self.write(d.Unroll(index, unroll, path=path))
            for operand, distance in zip(self.space.facts.read(sorted(statements)), distances, strict=True):
                if distance is not None:
                    self.write(d.Prefetch(index, Access(operand), distance, path=path))
            if routine is not None:
                self.written.append(d.Call(routine, path=path))
            if unit is not None:
                kept, chunks = race
                chunking, chunk = chunks or (None, None)
                units.append(d.Parallelize(index, unit, kept, chunking, chunk, path=path))
        self.written += units
        if self.plan.build is not None:
            self.written.append(d.Build(*self.plan.build))


def last_of(nest: Nest) -> int:
    """Return the last statement of a nest, for which the others are computed."""
    return nest.statement if nest.statement is not None else last_of(nest.parts[-1])
