"""Finds the place of a schedule's text in the whole space, by taking the program that it makes apart.

Loops of the program are pieces of runs of indices, by their provenance; its nest is read off as in the structural space, over these
pieces; the directives on loops, reads, workspaces and the result are looked up in the options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..concrete.loop_tag import PLAIN, LoopTag
from ..concrete.nodes import Assign, Forall, Program, Stmt, Where, assignments, targets, transform, walk
from ..concrete.relations import BoundRelation
from ..errors import ScheduleError
from ..format import Format
from ..notation.nodes import Access, Affine, Expr, accesses, index_subscript, transform_expression
from ..schedule.apply import apply_schedule
from ..schedule.dependence import graph_of
from ..schedule.schedule import Schedule
from .defaults import with_default_protocols
from .grammar import Derivation
from .loop_reading import LoopReader
from .nestings import Scope
from .pieces import Division, Run, Treatment
from .reading import ungathered, with_modes
from .recognise import Recognizer, program_key, recognised
from .space import Member
from .whole import WholeSpace
from .whole_plan import LoopOf, Plan, Start, Told


def found_in(schedule: Schedule | str, space: WholeSpace, extents: Mapping[str, int] | None = None) -> tuple[Plan, Division] | None:
    """Return what a schedule chooses, and the division of indices; None where it makes no program of such a form.

    Args:
        schedule: of the expression.
        space: the whole space; its options do not matter.
        extents: compile-time constants.
    """
    try:
        program = apply_schedule(space.default.program, schedule, space.default.formats, extents)
    except ScheduleError:
        return None
    found = _Reader(program, space).plan()
    if found is not None:
        return found
    direct = ungathered(program.statement, space.pieces.narrowed(space.structures.assignment.target))
    gone = set(targets(program.statement)) - set(targets(direct))
    said = any(one.kind is not None for one in program.workspaces if one.name in gone) or _tags(direct) != _tags(program.statement)
    if not gone or said:
        return None  # no workspace only passes the result on, or it has directives of its own
    return _Reader(replace(program, statement=direct), space).plan()


class _Reader:
    def __init__(self, program: Program, space: WholeSpace) -> None:
        self.program, self.space = program, space
        self.graph = graph_of(program.relations)
        self.loops = LoopReader(self.graph, space.pieces)
        self.target = space.pieces.narrowed(space.structures.assignment.target)

    def plan(self) -> tuple[Plan, Division] | None:
        program, space = self.program, self.space
        treatments = self.loops.treatments(program.statement)
        if treatments is None:
            return None
        division = self._division(treatments)
        modes = with_modes(program, space.default.formats)
        said, usual = (self._normal(statement) for statement in (modes, self._unsaid(modes)))
        read = self._structure(said, division)
        plain = self._structure(usual, division)
        if read is None or plain is None or read[0] != plain[0]:
            return None
        number, derivation, reader = read
        flipped = self._flipped(reader, plain[2])
        if flipped is None:
            return None
        assembly = dict(program.assembly).get(self.target.tensor)
        kinds = {
            reader.numbers[id(assign)]: next((one.kind for one in program.workspaces if one.name == assign.target.tensor), None)
            for assign in assignments(said.statement)
            if assign.target.tensor != self.target.tensor
        }
        formats = {operand.tensor: form.in_memory for operand, form in program.conversions if self._is_converted(operand, form)}
        if not self._converts_whole():
            return None
        build = None if program.build == (None, None) else program.build
        member = Member(number, space.nestings, Derivation(number, 0, (derivation,)), space.top(Start(division, number)).scope)
        return Plan(member, treatments, flipped, formats, assembly, build, kinds, self._told(said.statement, reader)), division

    def _is_converted(self, operand: Access, form: Format) -> bool:
        """Return whether a schedule stores an operand in another format; the loops alone decide the order of a view's modes."""
        if form.in_memory is not form:
            return form.in_memory != self.space.facts.in_memory[operand.tensor]
        return (operand, form) not in self.space.default.program.conversions

    def _converts_whole(self) -> bool:
        """Return whether no conversion is of a single read of an operand that is read several times."""
        found = {access for assign in assignments(self.program.statement) for access in accesses(assign.value)}
        if any(access.stored is not None for access in found):
            return False
        written = [operand for operand, _ in self.program.conversions if operand.subscripts]
        return all(sum(access.tensor == operand.tensor for access in found) == 1 for operand in written)

    # The division of indices

    def _division(self, treatments: tuple[Treatment, ...]) -> Division:
        pieces = self.space.pieces
        return tuple(self._run(one) if set(one.order) <= set(pieces.movable) else Run(one.order, one.order) for one in treatments)

    def _run(self, one: Treatment) -> Run:
        pieces = self.space.pieces
        indices = tuple(name for name in pieces.movable if name in one.order)
        loops = pieces.loops_of(one)
        return next(run for run in pieces.becoming[indices] if run.loops == loops)

    # The nest over these pieces

    def _normal(self, statement: Stmt) -> Program:
        """Return a program over the pieces, with operators and protocols of writes as the space has them."""
        roots = sum(assign.target.tensor == self.target.tensor for assign in _assigns(statement))
        over = transform(statement, self._over_pieces)
        stored = {name: self.space.default.formats[name] for name in self.space.stored}
        return Program(_written(with_default_protocols(over, stored), (), {}, self.target.tensor, roots), self.program.workspaces)

    def _over_pieces(self, node: Stmt) -> Stmt | None:
        match node:
            case Assign(target, operator, value):
                return Assign(self._wide(target), operator, transform_expression(value, self._wide_read))
            case Forall(index):
                return replace(node, index=self.loops.names[self.loops.base(index)])
            case _:
                return None

    def _wide_read(self, part: Expr) -> Expr | None:
        return self._wide(part) if isinstance(part, Access) else None

    def _wide(self, access: Access) -> Access:
        if not any(space.name == access.tensor for space in self.program.workspaces):
            return replace(self.space.pieces.widened(access), stored=None)
        subscripts = tuple(piece for one in access.subscripts for piece in self._pieces(one))
        return Access(access.tensor, subscripts, access.protocols if len(subscripts) == len(access.subscripts) else ())

    def _pieces(self, subscript: Affine) -> tuple[Affine, ...]:
        """Return a workspace's subscript, a loop or what loops replaced, as pieces."""
        leaves = dict.fromkeys(self.loops.base(leaf) for name in subscript.indices for leaf in self.graph.leaves(name))
        return tuple(index_subscript(self.loops.names.get(leaf, leaf)) for leaf in leaves)

    def _unsaid(self, statement: Stmt) -> Stmt:
        """Return a statement whose reads have the protocols that their levels are made for."""
        bare = replace(self.program, statement=transform(statement, _without_protocols))
        return with_modes(bare, self.space.default.formats)

    def _structure(self, program: Program, division: Division) -> tuple[int, Derivation, Recognizer] | None:
        space = self.space
        key = program_key(program, space.structures.assignment.target)
        if key is None:
            return None
        for number, grouping in enumerate(space.structures.groupings):
            if space.nestings.table.key(grouping) != key:
                continue
            top = space.top(Start(division, number)).scope

            def build(tree: Derivation, number: int = number, top: Scope = top) -> Program:
                return Member(number, space.nestings, Derivation(number, 0, (tree,)), top).program

            found = recognised(space.nestings, top, program, build)
            if found is not None:
                reader = Recognizer(space.nestings, program)
                reader.derivation(top)
                return number, found, reader
        return None

    def _flipped(self, said: Recognizer, usual: Recognizer) -> frozenset[tuple[int, int, int]] | None:
        """Return the modes of stored operands that are not traversed as their levels are made for; None where that is so of a
        workspace."""
        found = set()
        for (number, place), access in said.order.items():
            modes = zip(access.protocols, usual.order[number, place].protocols, strict=True)
            found |= {(number, place, mode) for mode, (ours, theirs) in enumerate(modes) if ours != theirs}
        stored = self.space.nestings.stored
        return frozenset(found) if all(place < len(stored(number)) for number, place, _ in found) else None

    def _told(self, statement: Stmt, reader: Recognizer) -> dict[LoopOf, Told]:
        """Return the directives on each loop, as ``Options.told`` has them."""
        found: dict[LoopOf, Told] = {}
        for node, given in zip(_loops(statement), _loops(self.program.statement), strict=True):
            inside = frozenset(reader.numbers[id(assign)] for assign in _assigns(node))
            found[node.index, inside] = self._tag(node.tag, self._bound(given.index), inside)
        return found

    def _bound(self, name: str) -> tuple[str, int] | None:
        """Return what ``bound`` says of a loop, found by its name in the program, which differs between loops over one index."""
        relation = self.graph.maker(name)
        while relation is not None and relation.renames:
            if isinstance(relation, BoundRelation):
                return relation.kind, relation.amount
            relation = self.graph.maker(*relation.parents)
        return None

    def _tag(self, tag: LoopTag, bound: tuple[str, int] | None, inside: frozenset[int]) -> Told:
        distances = {operand.tensor: distance for operand, distance in tag.prefetch}
        ahead = tuple(distances.get(name) for name in self.space.facts.read(sorted(inside)))
        chunks = None if tag.chunking is None else (tag.chunking, tag.chunk)
        return tag.unit, (None if tag.unit is None else (tag.race, chunks), tag.merge, bound, tag.unroll, ahead, tag.routine)


def _tags(statement: Stmt) -> int:
    return sum(node.tag != PLAIN for node in _loops(statement))


def _loops(statement: Stmt) -> list[Forall]:
    return [node for node in walk(statement) if isinstance(node, Forall)]


def _assigns(statement: Stmt) -> list[Assign]:
    return [node for node in walk(statement) if isinstance(node, Assign)]


def _without_protocols(node: Stmt) -> Stmt | None:
    if not isinstance(node, Assign):
        return None
    value = transform_expression(node.value, lambda part: replace(part, protocols=()) if isinstance(part, Access) else None)
    return replace(node, value=value)


def _written(node: Stmt, loops: tuple[str, ...], outside: Mapping[str, int], result: str, roots: int) -> Stmt:
    """Give every write its operator; ``outside`` says how many loops stand around the place where a workspace is made."""
    match node:
        case Assign(target, _, value):
            inner = loops[outside.get(target.tensor, 0) :]
            several = target.tensor == result and roots > 1
            repeated = several or not set(inner) <= set(target.indices)
            return Assign(replace(target, protocols=()), "+=" if repeated else "=", value)
        case Where(consumer, producer):
            made = {**outside, **{name: len(loops) for name in targets(producer) if name not in targets(consumer)}}
            parts = (consumer, producer)
            return node.rebuild(tuple(_written(part, loops, made, result, roots) for part in parts))
        case Forall(index, body):
            return replace(node, body=_written(body, (*loops, index), outside, result, roots))
        case _:
            return node.rebuild(tuple(_written(child, loops, outside, result, roots) for child in node.children))
