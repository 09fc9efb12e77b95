"""Checks of preconditions that concern the program as a whole: storage orders, ranges of loops, position loops, assembly.

``Judgement.ranges`` is checked after every directive. The rest is checked when the program is finished, since directives may come in
any order, and races depend on the whole parallel nest (``schedule.parallel``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise

from ..concrete.apart import covers
from ..concrete.assembled import handing
from ..concrete.nodes import Assign, Forall, Program, assignments_in_loops, reads
from ..concrete.relations import CoordRelation
from ..concrete.said import operand_of
from ..frozen import frozen
from ..levels import LevelKind
from ..notation.nodes import Access, accesses
from ..notation.printer import show
from ..workspaces import keepers, keeps_entries
from . import directives as d
from .addresses import Address, accesses_meant, at, enclosing_loops, everywhere, find_loop, leaves
from .context import Context
from .dependence import graph_of
from .iteration import Iteration, producers_inside
from .parallel import check_parallel_loop, keeping
from .ranges import unknown_in_range
from .rules import Refusal, Rule, refuse


@frozen
class _OutOfOrder:
    """A level of an access whose loop is outside that of a level above it: the names of both, and the kind of the lower one."""

    access: Access
    kind: LevelKind
    level: str
    parent: str

    @property
    def refusal(self) -> Refusal:
        tensor = self.access.tensor
        ways = [f"keep {self.parent} outside", f"convert({tensor}, ...)"]
        if self.kind.searchable:
            ways.append(f"say protocol({tensor}, ..., locate)")
        return Refusal(
            Rule.STORAGE_ORDER,
            f"{show(self.access)} stores {self.level} below {self.parent}, and this order runs through {self.level} first;"
            f" {', '.join(ways[:-1])}, or {ways[-1]}",
        )


class Judgement:
    """Checks programs against the formats of one schedule. Rules that the default program already breaks are not enforced."""

    def __init__(self, program: Program, context: Context) -> None:
        self.context = context
        self._before = program

    @cached_property
    def tolerated(self) -> set[str]:
        """The operands that the default program reads out of storage order."""
        return {wrong.access.tensor for wrong in self._out_of_order(self._before)}

    def storage(self, program: Program) -> dict[tuple[Access, str], Refusal]:
        """Return, by access and level, why loops cannot have this order. A later directive may remove the reason."""
        wrong = (each for each in self._out_of_order(program) if each.access.tensor not in self.tolerated)
        return {(operand_of(each.access), each.level): each.refusal for each in wrong}

    def _out_of_order(self, program: Program) -> list[_OutOfOrder]:
        graph, found = graph_of(program.relations), []
        for around, assign in assignments_in_loops(program.statement):
            known = graph.known_after(around)
            for access in accesses(assign.value):
                found.extend(self._levels_out_of_order(access, known))
        return found

    def _levels_out_of_order(self, access: Access, known: Mapping[str, int]) -> list[_OutOfOrder]:
        found, deepest, parent = [], -1, ""
        protocols = self.context.protocols_of(access)
        for level, (kind, names) in enumerate(self.context.levels(access)):
            place = max((known.get(name, -1) for name in names), default=-1)
            located = kind.searchable and level < len(protocols) and protocols[level] == "locate"
            if kind.steps_in_order and place < deepest and not located:
                found.append(_OutOfOrder(access, kind, " + ".join(names), parent))
            if place > deepest:
                deepest, parent = place, " + ".join(names)
        return found

    def ranges(self, program: Program) -> None:
        """Refuse loops whose range is not known where they begin."""
        graph = graph_of(program.relations)
        if not any(graph.space(name) == "position" for relation in graph.relations for name in relation.children):
            return
        for loops, _ in assignments_in_loops(program.statement):
            for place, loop in enumerate(loops):
                missing = unknown_in_range(loop, loops[:place], graph, self.context)
                if missing:
                    refuse(
                        Rule.POS_RANGE_KNOWN,
                        f"the range of loop {loop} depends on {missing}, which is known only inside it; keep {missing} outside",
                    )

    def position_loop(self, program: Program, directive: d.Pos) -> None:
        """Refuse position loops that skip values of other operands where their own operand stores nothing."""
        graph = graph_of(program.relations)
        if any(isinstance(graph.made_by(name), CoordRelation) for name in graph.children(directive.position)):
            return  # back to all coordinates of a segment; tiles of coordinates would leave out empty segments, which have no tile
        for address, loop in everywhere(program.statement):
            if not isinstance(loop, Forall) or loop.index not in graph.leaves(directive.position):
                continue
            access = graph.position_access(directive.position)
            slots = frozenset(space.name for space in program.workspaces if set(space.indices) & set(graph.descendants(directive.position)))
            around = (*enclosing_loops(program.statement, address), loop.index)
            left = Iteration(program, self.context).left_out(loop.body, around, access, slots)
            for assign in _kept(loop):
                if assign.target.tensor in left:
                    refuse(
                        Rule.POS_VISITS_ALL,
                        f"loop {loop.index} visits what {show(access)} stores, and {show(assign.value)} is not zero elsewhere;"
                        " multiply by it, or go back with coord",
                    )

    def tiles(self, program: Program, directive: d.SplitUp) -> None:
        """Refuse a workspace over tiles of positions if one nest runs through it tile by tile, and another one across the tiles.

        A nest that runs tile by tile has tiles whose length depends on the current fibre; a nest across the tiles uses the length for
        the longest fibre. The same entry would have different slots in the workspace.
        """
        graph = graph_of(program.relations)
        pieces = directive.outer, directive.inner
        if graph.space(directive.inner) != "position":
            return
        orders: dict[str, bool] = {}
        for loops, assign in assignments_in_loops(program.statement):
            places = [next((place for place, loop in enumerate(loops) if piece in graph.ancestors(loop)), -1) for piece in pieces]
            for access in (assign.target, *accesses(assign.value)):
                made = {name for index in access.indices for name in graph.ancestors(index)}
                by_tile = places[0] < places[1]
                if min(places) >= 0 and made.issuperset(pieces) and orders.setdefault(access.tensor, by_tile) != by_tile:
                    refuse(
                        Rule.POS_RANGE_KNOWN,
                        f"{access.tensor} is filled and read once with {directive.outer} outside {directive.inner} and once inside it,"
                        " where tiles have another length; order both alike, or split by a number of iterations",
                    )

    def appended(self, program: Program, result: str) -> None:
        """Refuse to append to a result whose components are not computed in the order of its levels."""
        if (result, "append") not in program.assembly:  # a later directive assembles it in another way
            return
        graph = graph_of(program.relations)
        for loops, leaf in assignments_in_loops(program.statement):
            if leaf.target.tensor != result:
                continue
            known = graph.known_after(loops)
            places = [max((known.get(name, -1) for name in names), default=-1) for _, names in self.context.levels(leaf.target)]
            scattered = any(place < max(places) for place, loop in enumerate(loops) if not covers(leaf.target.indices, loop, graph))
            if places != sorted(places) or scattered:
                what = show(leaf.target)
                refuse(Rule.ASSEMBLE_FITS, f"components of {what} do not come in the order of its levels; use insert or workspace")

    def workspace(self, program: Program, directive: d.WorkspaceDirective) -> None:
        """Refuse workspaces that do not know which components were written, if their consumer needs that."""
        if directive.kind == "scalar" or keeps_entries(directive.kind):
            return
        entries = keeping(program, graph_of(program.relations), self.context)
        if directive.workspace in handing(program.statement, entries):
            refuse(
                Rule.WORKSPACE_FITS,
                f"what reads {directive.workspace} stores only entries, and a {directive.kind} workspace does not know which it has;"
                f" use {keepers()}",
            )

    def prefetch(self, program: Program, directive: d.Prefetch) -> None:
        """Refuse prefetches in a loop that determines no row and no entry of the operand."""
        address = find_loop(program.statement, directive.index, directive.path)
        chosen = set(_coordinates_found(program, address, directive.index))
        meant = accesses_meant(directive.access, reads(at(program.statement, address)))
        if any(chosen.intersection(_asked_ahead(access, self.context)) for access in meant):
            return
        found = " and ".join(sorted(chosen)) or "no coordinate"
        refuse(
            Rule.PREFETCH_CHOOSES,
            f"loop {directive.index} finds {found}, which chooses no row of {show(directive.access)} and no stored entry of it:"
            " name the loop that reads the coordinate of the row, or goes through the entries",
        )

    def parallel_loop(self, program: Program, directive: d.Parallelize) -> None:
        """Refuse a parallel loop that is unsound in the finished program."""
        check_parallel_loop(program, directive, self.context)


def _coordinates_found(program: Program, address: Address, index: str) -> tuple[str, ...]:
    """Return the original indices that get values in a loop; for a position loop, the index of its last level."""
    graph = graph_of(program.relations)
    around = enclosing_loops(program.statement, address)
    known = graph.known_after((*around, index))
    originals = graph.originals(index)
    if graph.space(index) == "position":
        originals = originals[-1:]
    return tuple(name for name in originals if known.get(name) == len(around))


def _asked_ahead(access: Access, context: Context) -> set[str]:
    """Return the indices that determine what can be prefetched: a row of a dense operand, an entry or a segment of a sparse one."""
    levels = context.levels(access)
    if all(kind.full for kind, _ in levels):
        return set(access.indices)
    stored = {name for kind, names in levels if kind.steps_in_order for name in names}
    pairs = pairwise(levels)
    segments = (names for (kind, names), (below, _) in pairs if kind.full and below.has_fibres)
    return stored.union(*segments)


def _kept(loop: Forall) -> list[Assign]:
    """Return the assignments under a loop whose targets outlive an iteration."""
    local = producers_inside(loop.body)
    return [leaf for _, leaf in leaves(loop.body) if leaf.target.tensor not in local]
