"""How often the loops of a nest run on the operands of a problem, without running anything.

Iterations are counted from the fibres that operands really store, as in the operation counts of Dias et al. ("SparseLNR"): a loop nest over
i, j of a tensor B(i,j,k) runs once for each stored (i,j). Where several stored operands drive loops, the combinations of indices that they
have in common are counted on a sample of their entries (``space.joins``); where that cannot be done, as if entries were spread evenly.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TypeAlias

from ..compiler.concrete.annihilation import Patterns
from ..compiler.concrete.completeness import Completeness
from ..compiler.concrete.lattice import NOWHERE, Complement, Domain, Intersection, Stored, Union
from ..compiler.concrete.mirrored import is_mirrored, mirrored
from ..compiler.concrete.nodes import Assign, Program, Where, targets
from ..compiler.concrete.provenance import Provenance
from ..compiler.concrete.said import said_of
from ..compiler.format import Format
from ..compiler.frozen import frozen
from ..compiler.notation.nodes import Access, Add, accesses, walk_expression
from ..compiler.schedule.addresses import Address, at, enclosing_loops, leaves
from ..compiler.schedule.dependence import graph_of
from ..compiler.space.arrays import array_workspaces
from ..compiler.space.relations import Relation, Scan, join
from ..compiler.space.situation import Situation
from ..compiler.storage.tensor import Tensor
from ..compiler.views import View
from .facts import positions, shape
from .problem import Problem
from .subsections import combinations_found

_Met: TypeAlias = list[tuple[Access, set[str]]]


@frozen
class _Written:
    """What a workspace that knows its entries was filled with.

    Attributes:
        loops: the original indices of the loops around what filled it.
        points: how often these ran.
        relation: the combinations of their indices, where they can be told.
    """

    loops: set[str]
    points: float
    relation: Relation | None


class Iterations:
    """How often the loops of one program run on the operands of a problem.

    Args:
        problem: gives the operands.
        program: a scheduled program of its expression.
        sources: the user's name of every operand in the program.
    """

    def __init__(self, problem: Problem, program: Program, sources: Mapping[str, str]) -> None:
        formats = {**problem.formats, **{name: problem.formats[source] for name, source in sources.items()}}
        program = mirrored(program, formats) if is_mirrored(program, formats) else program
        self._problem, self._program, self._sources, self._formats = problem, program, sources, formats
        self._graph: Provenance = graph_of(program.relations)
        stored = {name: _stored_operand(problem, name) for name in problem.formats}
        self._prefixes = {name: positions(operand) for name, operand in stored.items() if operand is not None}
        self._leaves = tuple(leaves(program.statement))
        result = problem.assignment.target.tensor
        dense = self._formats[result].is_dense
        self._completeness = Completeness(program.statement, self._graph, lambda name: dense and name == result)
        self._patterns = Patterns(Stored, program.add)
        self._arrays = array_workspaces(program, Situation(program, self._formats, problem.extents))
        self._adds = any(isinstance(node, Add) for _, leaf in self._leaves for node in walk_expression(leaf.value))
        self._domains: dict[Address, Domain] = {}
        self._written: dict[str, _Written] = {}
        self._writes()

    def _points(self, covered: set[str], address: Address, leaf: Assign) -> float:
        """Return how often loops over these original indices run for an assignment.

        Loops that it shares with the other side of a where are driven by what is read there too, unless it reads a workspace
        from there that knows its entries.
        """
        met, share = self._met(covered, address, leaf)
        return self._everywhere(covered) * share * self._met_share(met)

    def _met(self, covered: set[str], address: Address, leaf: Assign) -> tuple[_Met, float]:
        """Return the stored accesses that together drive the loops around an assignment, each with those of its indices that count here,
        and the share of iterations that all other conditions leave."""
        domain = self._domain(address, leaf)
        parts = domain.parts if isinstance(domain, Intersection) else (domain,)
        met: _Met = [(part.access, covered) for part in parts if isinstance(part, Stored)]
        share = math.prod(self._density(part, covered) for part in parts if not isinstance(part, Stored))
        if self._adds:
            return met, share
        for other, read in self._leaves:
            shared = next((place for place, (mine, its) in enumerate(zip(address, other, strict=False)) if mine != its), len(address))
            split = at(self._program.statement, address[:shared])
            if not isinstance(split, Where):
                continue
            around = self._covered(address[:shared])
            filled = set(targets(split.producer)) if other[shared] == 1 else set[str]()
            if covered <= around:  # it is filled inside these loops, and drives none of them
                met = [pair for pair in met if pair[0].tensor not in filled]
            elif filled.intersection(self._written, (access.tensor for access in accesses(leaf.value))):
                continue
            together = covered & around
            driving = (access for access in accesses(read.value) if self._is_stored(access))
            met += ((access, together) for access in driving if not together.isdisjoint(access.indices))
        return [*met, *self._gone_through(address, {access for access, _ in met}, covered)], share

    def _domain(self, address: Address, leaf: Assign) -> Domain:
        """Return the domain in which an assignment does something; it is found once and kept."""
        found = self._domains.get(address)
        if found is None:
            complete = self._completeness.holds(leaf, enclosing_loops(self._program.statement, address))
            found = self._domains[address] = self._patterns.expression(leaf.value, lambda: complete)
        return found

    def _gone_through(self, address: Address, read: Collection[Access], covered: set[str]) -> Iterator[tuple[Access, set[str]]]:
        """Yield the operands that loops around an assignment go through although the assignment does not read them, with those of their
        indices that count here."""
        for loop in enclosing_loops(self._program.statement, address):
            if self._graph.space(loop) == "position" and (access := self._graph.position_access(loop)) not in read:
                yield access, covered.intersection(self._graph.originals(loop))

    def _met_share(self, met: _Met) -> float:
        """Return the share of all combinations of indices that several accesses have in common: by the join of their entries where that
        can be counted, else as if entries were spread evenly."""
        relations = {relation for access, covered in met if (relation := self._relation(access, covered)) is not None}
        if len(relations) > 1:
            joined = join(relations)
            size = self._problem.joins.size(joined)
            if size is not None:
                others = [pair for pair in met if self._relation(*pair) is None]
                return self._share_of(size, joined) * math.prod(self._stored_share(*pair) for pair in others)
        return math.prod(self._stored_share(*pair) for pair in met)

    def _relation(self, access: Access, covered: set[str]) -> Relation | None:
        """Return what drives loops over some indices of an access: outermost levels of an operand, or what filled a workspace."""
        written = self._written.get(access.tensor)
        if written is not None:
            kept = frozenset() if written.relation is None else written.relation.kept & covered
            return join({written.relation}, kept) if written.relation is not None and kept else None
        name, form = self._sources.get(access.tensor, access.tensor), self._formats.get(access.tensor)
        operand = self._problem.operand(name)
        if name not in self._prefixes or operand is None or form is None or isinstance(form, View) or not access.is_plain:
            return None
        order = [access.subscripts[mode].index for mode in form.order]
        levels = list(takewhile(covered.__contains__, order)) if len(set(order)) == len(order) else []
        while levels and form.levels[len(levels) - 1].full:
            levels.pop()
        return Scan(self._problem.viewed.source(name), tuple(levels)) if levels else None

    def _share_of(self, size: float, relation: Relation) -> float:
        everywhere = self._everywhere(set(relation.kept))
        return size / everywhere if everywhere else 0.0

    def _is_stored(self, access: Access) -> bool:
        return self._sources.get(access.tensor, access.tensor) in self._prefixes

    def _everywhere(self, covered: set[str]) -> float:
        return math.prod((self._problem.extents.get(index, 1) for index in sorted(covered)), start=1.0)

    def _density(self, domain: Domain, covered: set[str]) -> float:
        """Return the share of the combinations of the covered indices that a domain holds."""
        match domain:
            case Union(parts):
                return min(1.0, sum(self._density(part, covered) for part in parts))
            case Intersection(parts):
                others = math.prod(self._density(part, covered) for part in parts if not isinstance(part, Stored))
                return others * self._met_share([(part.access, covered) for part in parts if isinstance(part, Stored)])
            case Complement(part):
                return 1.0 - self._density(part, covered)
            case Stored(access):
                return self._stored_share(access, covered)
            case _:
                return 0.0 if domain == NOWHERE else 1.0

    def _stored_share(self, access: Access, covered: set[str]) -> float:
        name = self._sources.get(access.tensor, access.tensor)
        if name in self._prefixes:
            everywhere = self._everywhere(covered.intersection(access.indices))
            return self._stored(name, access, covered) / everywhere if everywhere else 0.0
        if access.tensor in self._written:
            relation, written = self._relation(access, covered), self._written[access.tensor]
            size = None if relation is None else self._problem.joins.size(relation)
            if relation is not None and size is not None:
                return self._share_of(size, relation)
            everywhere = self._everywhere(written.loops & covered)
            return min(1.0, written.points / everywhere) if everywhere else 0.0
        return 1.0

    def _writes(self) -> None:
        """Note the loops around what fills each workspace that knows its entries, and how often they run."""
        known = {space.name for space in self._program.workspaces if space.name not in self._arrays}
        for address, leaf in reversed(self._leaves):
            if leaf.target.tensor in known:
                covered = self._covered(address)
                met, share = self._met(covered, address, leaf)
                relations = {relation for pair in met if (relation := self._relation(*pair)) is not None}
                untold = (self._stored_share(*pair) for pair in met if self._relation(*pair) is None)
                told = join(relations) if relations and share == 1.0 and all(left == 1.0 for left in untold) else None
                self._written[leaf.target.tensor] = _Written(covered, self._points(covered, address, leaf), told)

    def _covered(self, address: Address) -> set[str]:
        """Return the original indices that the loops around an assignment run through."""
        return self._originals(enclosing_loops(self._program.statement, address))

    def _originals(self, loops: Sequence[str]) -> set[str]:
        return {original for loop in loops for original in self._graph.originals(loop)}

    def _stored(self, name: str, access: Access, covered: set[str]) -> float:
        """Return how many combinations of the covered indices an operand stores; exact for its outer levels, and found on a sample where it
        is read in another order of its levels."""
        form, prefixes = self._formats[name], self._prefixes[name]
        if isinstance(form, View):
            stored = shape(self._problem.operands[self._problem.viewed.source(name)])
            return combinations_found(form, access, prefixes, stored, self._problem.extents, covered)
        order = [access.subscripts[mode].index for mode in form.order]
        depth = next((place for place, index in enumerate(order) if index not in covered), len(order))
        count = prefixes[depth - 1] if depth else 1.0
        beyond = math.prod((self._problem.extents[index] for index in order[depth:] if index in covered), start=1.0)
        wanted = access.stored or said_of(access, self._program.conversions) or form
        told = self._told_apart(name, order, covered) if beyond > 1 and wanted.order != form.order else None
        found = min(count * beyond, prefixes[-1] if told is None else told) if beyond > 1 else count
        found = found if wanted == form else max(found, self._gone_through_whole(wanted, access, covered))
        return found / 2 if depth == len(order) and wanted.mirrors and not form.mirrors else found

    def _gone_through_whole(self, form: Format, access: Access, covered: set[str]) -> float:
        """Return how many combinations of the covered indices dense outer levels of a converted operand have, stored or not."""
        levels = zip(form.levels, (access.subscripts[mode].index for mode in form.order), strict=True)
        whole = takewhile(lambda level: level[0].full and level[1] in covered, levels)
        return math.prod((self._problem.extents[index] for _, index in whole), start=1.0)

    def _told_apart(self, name: str, order: list[str], covered: set[str]) -> float | None:
        """Return how many combinations of some indices the entries of an operand have; None where that takes too long to say."""
        if len(set(order)) < len(order) or self._problem.operand(name) is None:
            return None
        scan = Scan(self._problem.viewed.source(name), tuple(order))
        return self._problem.joins.size(join({scan}, frozenset(covered.intersection(order))))


def _stored_operand(problem: Problem, name: str) -> Tensor | None:
    """Return the operand of a name in the plain assignment, if it stores coordinates."""
    operand = problem.operand(name)
    return None if operand is None or operand.format.is_dense else operand
