"""The cost of stepping through stored operands: finding where a subsection begins and ends, finding the coordinates that several operands
have in common, and branches at the ends of fibres."""

from __future__ import annotations

from collections.abc import Mapping

from ..compiler.concrete.nodes import Assign, Forall
from ..compiler.concrete.said import said_of
from ..compiler.levels.affine import Resolving
from ..compiler.levels.subsection import Subsection
from ..compiler.notation.nodes import Access, Add, accesses, walk_expression
from ..compiler.schedule.addresses import Address, enclosing_loops, everywhere, frames
from ..compiler.space.relations import Scan, join
from ..compiler.views import View
from .facts import extent as extent_of
from .iterations import Iterations
from .steps import log2

_SUBSECTION = 12.0  # operations that finding where a subsection begins costs
_HALVING = 20.0  # operations of each step of the binary searches for the begin and the end of a subsection, with mispredicted branches
_MEETING = 12.0  # operations of a step through operands that meet: 5 if patterns are regular, 36 if no branch is predicted
_LOOKED_UP = 7.0  # operations of a step to an entry that is looked up among the marks of another operand
_FIBRE = 16.0  # operations that the end of a fibre costs around other loops, since it is mispredicted where fibres are short


class Stepping(Iterations):
    """How the loops of one program step through stored operands; see ``Iterations`` for its arguments."""

    def _entering(self, address: Address, leaf: Assign) -> float:
        """Return what entering the loops around an assignment costs where some of them search for the begin of subsections."""
        views = [access for access in accesses(leaf.value) if isinstance(self._formats.get(access.tensor), View)]
        total, outside = 0.0, set[str]()
        for loop in enclosing_loops(self._program.statement, address):
            found = set(self._graph.originals(loop))
            entered = [self._sought(access, found) for access in views if found.intersection(access.indices)]
            if outside and entered:
                total += self._points(set(outside), address, leaf) * max(entered)
            outside.update(found)
        return total / self._threads(address)

    def _sought(self, access: Access, found: set[str]) -> float:
        """Return what it costs to find where a subsection begins and ends: little where a loop outside steps from one subsection of the
        row to the next; else a binary search of the row, whose branches are not predicted."""
        form = said_of(access, self._program.conversions) or self._formats[access.tensor]
        name = self._sources.get(access.tensor, access.tensor)
        level = max(place for place, mode in enumerate(form.order) if access.subscripts[mode].index in found)
        kind, stored, prefixes = form.levels[level], form.stored_level(level), self._prefixes.get(name)
        if prefixes is None or not isinstance(kind, Resolving) or not kind.steps:
            return _SUBSECTION
        outside = (form.levels[place] for place in range(level) if form.stored_level(place) == stored)
        if any(isinstance(one, Subsection) and not (one.across or one.wraps) for one in outside):
            return _SUBSECTION
        window = abs(kind.coefficient) * self._problem.extents[access.subscripts[form.order[level]].index]
        extent = extent_of(self._problem.operands[self._problem.viewed.source(name)], form.in_memory.order[stored])
        row = prefixes[stored] / max(1.0, prefixes[stored - 1] if stored else 1.0)
        return _SUBSECTION + _HALVING * log2(max(1.0, min(row, extent / max(1, window))))

    def _meetings(self) -> float:
        """Return the cost of stepping through operands that meet in loops, or whose entries are looked up in a workspace: all entries
        count, however few they have in common."""
        total = 0.0
        for address, node in everywhere(self._program.statement):
            stored = {access for access in node.reads if access.is_plain and self._is_stored(access)}
            if not isinstance(node, Forall) or not stored:
                continue
            outside = self._covered(address)
            inside = outside.union(self._graph.originals(node.index))
            lengths = {access: length for access in stored if (length := self._stepped(access, outside, inside)) is not None}
            gathered = [access for access in node.reads if access.tensor in self._written and inside.issuperset(access.indices)]
            gathered = [access for access in gathered if not outside.issuperset(access.indices)]
            below, leaf = next((place, leaf) for place, leaf in self._leaves if place[: len(address)] == address)
            if len(lengths) + len(gathered) < 2 or not lengths or any(isinstance(part, Add) for part in walk_expression(leaf.value)):
                continue
            looked_up = any("locate" in access.protocols for access in gathered)
            met = self._met_entries(lengths, outside, below, leaf)
            if not looked_up:
                met += sum(self._entries_gathered(access, inside) for access in gathered)
            total += (_LOOKED_UP if looked_up and len(lengths) == 1 else _MEETING) * met / self._threads(below)
        return total

    def _entries_gathered(self, access: Access, inside: set[str]) -> float:
        """Return how many entries a workspace has that knows them, each time it is filled: those that loops over it go through."""
        relation = self._relation(access, inside)
        size = None if relation is None else self._problem.joins.size(relation)
        return self._written[access.tensor].points if size is None else size

    def _met_entries(self, lengths: Mapping[Access, float], outside: set[str], below: Address, leaf: Assign) -> float:
        """Return how many entries a loop goes through, in all its runs, that finds what stored operands have in common.

        Args:
            lengths: how many entries each operand has in a run, on average over its own fibres.
        """
        relations = {relation for pair in self._met(outside, below, leaf)[0] if (relation := self._relation(*pair)) is not None}
        fibres = [self._fibre(access, outside) for access in lengths]
        around = join(relations) if relations else None
        if around is not None and all(fibre is not None and fibre[1] in around.kept for fibre in fibres):
            steps = self._problem.joins.steps(around, tuple(sorted((fibre for fibre in fibres if fibre is not None), key=str)))
            if steps is not None:
                return steps
        return sum(lengths.values()) * self._points(outside, below, leaf)

    def _fibre(self, access: Access, outside: set[str]) -> tuple[Scan, str] | None:
        """Return the levels of an operand that has two, in whichever order it is read, with the index of loops outside that chooses what
        a loop over the other goes through; None where there are not two such levels."""
        form = self._formats[name := self._sources.get(access.tensor, access.tensor)]
        order = tuple(access.subscripts[mode].index for mode in form.order)
        chosen = outside.intersection(order)
        if isinstance(form, View) or len(set(order)) != 2 or len(order) != 2 or len(chosen) != 1:
            return None
        return Scan(self._problem.viewed.source(name), order), chosen.pop()

    def _fibres(self) -> float:
        """Return the cost of the ends of fibres in loops that have other loops inside: a mispredicted end is waited for, however little
        work an entry is. A loop over positions of several levels counts as a loop over each of them."""
        total, loops = 0.0, [(address, node) for address, node in everywhere(self._program.statement) if isinstance(node, Forall)]
        for address, node in loops:
            names = self._graph.originals(node.index)
            if any(self._graph.originals(loop) == names for loop in enclosing_loops(self._program.statement, address)):
                continue  # this loop goes through a piece of what the other one goes through
            within = (inner.index for place, inner in loops if len(place) > len(address) and place[: len(address)] == address)
            inside = [loop for loop in within if self._graph.originals(loop) != names]
            below, leaf = next((place, leaf) for place, leaf in self._leaves if place[: len(address)] == address)
            outside = self._covered(address).difference(names)
            for name in names if inside else names[:-1]:
                if outside and any(self._is_through(access, outside, outside | {name}) for access in node.reads):
                    total += _FIBRE * self._points(outside, below, leaf) / self._threads(below)
                outside = outside | {name}
        return total

    def _is_through(self, access: Access, outside: set[str], inside: set[str]) -> bool:
        """Return whether a loop goes through the fibres of an operand."""
        stored = access.is_plain and self._is_stored(access) and not isinstance(self._formats.get(access.tensor), View)
        return stored and self._stepped(access, outside, inside) is not None

    def _starts(self) -> float:
        """Return how many starts of threads a run waits for: one each time a parallel loop is entered, however many assignments it has
        inside. Threads that have begun take over pieces of those that have not; where each has one piece, all of the delay is waited for.
        """
        total = 0.0
        for address, node in everywhere(self._program.statement):
            if isinstance(node, Forall) and node.tag.is_threaded:
                below, leaf = next((place, leaf) for place, leaf in self._leaves if place[: len(address)] == address)
                outside, sharers = self._covered(address), self._sharers(node.index)
                waiting = sharers if self._graph.constant_extent(node.index, self._problem.extents) == sharers else 1
                total += waiting * (self._points(outside, below, leaf) if outside else 1.0)
        return total

    def _threads(self, address: Address) -> int:
        """Return how many threads share the work of a statement."""
        around = (frame for frame in frames(self._program.statement, address) if isinstance(frame, Forall))
        return next((self._sharers(frame.index) for frame in around if frame.tag.is_threaded), 1)

    def _sharers(self, loop: str) -> int:
        """Return how many threads find work in a parallel loop."""
        length = self._graph.constant_extent(loop, self._problem.extents)
        return self._problem.threads if length is None else max(1, min(self._problem.threads, length))

    def _stepped(self, access: Access, outside: set[str], inside: set[str]) -> float | None:
        """Return how many entries of an operand a loop finds, the last of the loops over a level; None where it steps through no level."""
        name = self._sources.get(access.tensor, access.tensor)
        form = access.stored or said_of(access, self._program.conversions) or self._formats[name]
        order = [access.subscripts[mode].index for mode in form.order]
        place = next((place for place, index in enumerate(order) if index not in outside), len(order))
        if place == len(order) or order[place] not in inside or form.levels[place].full:
            return None
        return self._stored(name, access, inside) / max(1.0, self._stored(name, access, outside))
