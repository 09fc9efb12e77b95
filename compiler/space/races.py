"""Candidates for each way to keep writes of threads to the same elements apart: by atomic additions, or in results of their own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..concrete.apart import covers
from ..concrete.nodes import Forall, Stmt, transform, walk
from ..schedule.dependence import graph_of
from .candidates import Candidate
from .decorations import RACE
from .situation import result_leaf
from .template import Open, Part, Template


def by_race(items: Iterable[Candidate]) -> list[Candidate]:
    """Return a candidate for each open choice of how to keep writes of threads apart. These may differ many times in speed, so that each
    is judged, and searched, by itself."""
    return [one for item in items for one in (_each(item) if RACE in item.template.holes else [item])]


def meets_everywhere(item: Candidate) -> bool:
    """Whether any two threads of a candidate with this choice add to the same elements, not only those that share a row: the result is
    not ordered by the outermost index that threads go through."""
    if RACE not in item.template.holes:
        return False
    graph, components = graph_of(item.program.relations), result_leaf(item.program)[1].target.indices
    loops = (node.index for node in walk(item.program.statement) if isinstance(node, Forall) and node.tag.race == RACE.usual)
    return any(not covers(components, graph.originals(loop)[0], graph) for loop in loops)


def _each(item: Candidate) -> list[Candidate]:
    found: list[Candidate] = []
    for race in RACE.choices:
        template = Template(tuple(_with_race(part, str(race)) for part in item.template.parts))
        statement = transform(item.program.statement, lambda node, race=str(race): _kept_apart(node, race))
        found.append(replace(item, template=template, program=replace(item.program, statement=statement)))
    return found


def _with_race(part: Part, race: str) -> Part:
    if not isinstance(part, Open) or all(hole != RACE for _, hole in part.places):
        return part
    places = tuple(place for place in part.places if place[1] != RACE)
    directive = replace(part.directive, race=race)
    return Open(directive, places) if places else directive


def _kept_apart(node: Stmt, race: str) -> Stmt | None:
    """Return a parallel loop with another way; None for everything else, which stays."""
    if isinstance(node, Forall) and node.tag.race == RACE.usual:
        return replace(node, tag=replace(node.tag, race=race))
    return None
