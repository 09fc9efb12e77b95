"""Directives that collapse loops, or iterate stored positions instead of coordinates: one function each, as in ``loop_directives``."""

from __future__ import annotations

from ..concrete.nodes import Forall, Program, Stmt, reads
from ..concrete.provenance import Provenance
from ..concrete.relations import CollapseRelation, CoordRelation, MergePathRelation, PosRelation, SplitRelation
from ..concrete.shapes import Entries
from ..notation.nodes import Access
from ..notation.printer import show
from . import directives as d
from .addresses import Address, at, everywhere, find_loop, follow
from .context import Context
from .dependence import graph_of
from .loop_directives import replace_loop, untagged, with_loops
from .rules import Rule, refuse


def collapse(program: Program, directive: d.Collapse, context: Context) -> Program:
    """Make one loop of two directly nested ones."""
    graph = graph_of(program.relations)
    address = _pair_of(program.statement, directive)
    outer = untagged(at(program.statement, address))
    if not isinstance(outer.body, Forall) or outer.body.index != directive.inner:
        find_loop(program.statement, directive.inner, directive.path)
        refuse(Rule.COLLAPSE_DIRECTLY_NESTED, f"loop {directive.inner} is not directly nested in loop {directive.outer}")
    inner = untagged(outer.body)
    if graph.space(directive.outer) == "position":
        refuse(Rule.COLLAPSE_OUTER_COORDINATE, f"{directive.outer} counts positions; collapse coordinates first, then take their positions")
    if graph.space(directive.inner) == "position":
        _check_joined(directive.outer, directive.inner, graph, context)
    relation = CollapseRelation(directive.outer, directive.inner, directive.fused)
    return with_loops(program, address, inner.body, relation)


def _pair_of(statement: Stmt, directive: d.Collapse) -> Address:
    """Return the address of the outer loop. If only one branch has both loops directly nested, that one is meant."""
    start = follow(statement, directive.path or ())
    wanted = (directive.outer, directive.inner)
    pairs = [
        (*start, *address)
        for address, node in everywhere(at(statement, start))
        if isinstance(node, Forall) and isinstance(node.body, Forall) and (node.index, node.body.index) == wanted
    ]
    return pairs[0] if len(pairs) == 1 else find_loop(statement, directive.outer, directive.path)


def _check_joined(outer: str, inner: str, graph: Provenance, context: Context) -> None:
    """Check that a coordinate that is collapsed with positions is a whole level, directly above them."""
    whole = graph.position_relation(inner)
    if inner != whole.position or _is_piece(outer, graph):
        refuse(Rule.POS_LEVELS_CONSECUTIVE, f"{outer} and {inner} are not whole levels of {show(whole.access)}; collapse before splitting")
    _check_levels((*graph.originals(outer), *graph.originals(inner)), whole.access, context)


def _is_piece(index: str, graph: Provenance) -> bool:
    return any(isinstance(graph.maker(name), SplitRelation) for name in graph.ancestors(index))


def pos(program: Program, directive: d.Pos, context: Context) -> Program:
    """Iterate the stored positions of an access instead of coordinates."""
    graph = graph_of(program.relations)
    address = find_loop(program.statement, directive.index, directive.path)
    if graph.space(directive.index) == "position":
        refuse(Rule.POS_OF_COORDINATE, f"{directive.index} counts positions already")
    access = _resolve(directive.access, at(program.statement, address), context)
    originals = graph.originals(directive.index)
    for index in originals:
        if index not in access.indices:
            refuse(Rule.POS_ACCESS_INDEXED, f"{show(access)} is not indexed by {index}")
    form = context.format_of(access)
    if form is None or form.is_dense:
        refuse(Rule.POS_ACCESS_INDEXED, f"{show(access)} is dense and stores no coordinates; its positions are those of the loop")
    if form.in_memory is not form:
        refuse(Rule.POS_ACCESS_INDEXED, f"{show(access)} is read at compound subscripts, so that no loop goes through all its positions")
    makers = map(graph.maker, graph.ancestors(directive.index))
    if _is_piece(directive.index, graph) and any(isinstance(maker, CollapseRelation) for maker in makers):
        refuse(
            Rule.POS_LEVELS_CONSECUTIVE,
            f"{directive.index} is a piece of a collapsed loop, or collapsed from pieces; take positions before splitting",
        )
    makers = [made for name in graph.ancestors(directive.index) if (made := graph.maker(name)) is not None]
    if not all(made.in_order for made in makers):
        refuse(Rule.POS_OF_COORDINATE, f"{directive.index} does not go through {', '.join(originals)} in order; take the positions first")
    tiles = [made for made in makers if isinstance(made, SplitRelation)]
    if any(made.inner not in graph.ancestors(directive.index) for made in tiles):
        refuse(Rule.POS_OF_COORDINATE, f"{directive.index} runs through tiles; take the positions of the loop inside a tile")
    if tiles and _unsorted(originals, access, context):
        refuse(
            Rule.POS_OF_COORDINATE,
            f"{show(access)} keeps coordinates of {directive.index} in no order; take all positions, and split these",
        )
    _check_levels(originals, access, context)
    return replace_loop(program, directive.index, PosRelation(directive.index, directive.position, access), directive.path)


def _check_levels(indices: tuple[str, ...], access: Access, context: Context) -> None:
    stored = [names for _, names in context.levels(access)]
    wanted = [(index,) for index in indices]
    runs = [stored[start : start + len(wanted)] for start in range(len(stored))]
    if wanted not in runs or set(wanted).intersection(stored[: runs.index(wanted)]):
        order, given = ", ".join("+".join(names) for names in stored), ", ".join(indices)
        refuse(Rule.POS_LEVELS_CONSECUTIVE, f"{given} are not consecutive levels of {show(access)}, which is stored by {order}")
    if any(kind.stride != 1 for kind, names in context.levels(access) if set(names) & set(indices)):
        refuse(Rule.POS_LEVELS_CONSECUTIVE, f"{show(access)} has positions of other fibres between those of one; iterate coordinates")
    form, last = context.format_of(access), runs.index(wanted) + len(wanted) - 1
    if form is not None and not form.unique(last):
        refuse(Rule.POS_LEVELS_CONSECUTIVE, f"{show(access)} stores {indices[-1]} once per entry; collapse it with the levels below first")


def _unsorted(indices: tuple[str, ...], access: Access, context: Context) -> bool:
    return any(not kind.ordered and set(names) & set(indices) for kind, names in context.levels(access))


def _resolve(wanted: Access, statement: Stmt, context: Context) -> Access:
    """Return the access that a directive means, by its text, or by the operand's name if it is read only once."""
    found = list(dict.fromkeys(access for access in reads(statement) if access.tensor == wanted.tensor))
    if wanted.subscripts:
        found = [access for access in found if access.subscripts == wanted.subscripts]
    if not found or wanted.tensor not in context.types:
        operands = dict.fromkeys(access.tensor for access in reads(statement) if access.tensor in context.types)
        refuse(Rule.POS_ACCESS_INDEXED, f"no operand {show(wanted)} is read in this loop; those read are {', '.join(operands) or 'none'}")
    if len(found) > 1:
        refuse(Rule.NAMES_UNIQUE, f"{wanted.tensor} is read several times here; name one access, such as {show(found[0])}")
    return found[0]


def coord(program: Program, directive: d.Coord, context: Context) -> Program:
    """Iterate coordinates again over the range of a position loop."""
    graph = graph_of(program.relations)
    find_loop(program.statement, directive.position, directive.path)
    if graph.space(directive.position) != "position":
        refuse(Rule.COORD_OF_POSITION, f"{directive.position} counts coordinates already; coord takes a loop that pos made")
    whole = graph.position_relation(directive.position)
    made = graph.made_by(directive.position)
    originals = graph.originals(directive.position)
    if len(originals) > 1:
        refuse(
            Rule.COORD_OF_POSITION,
            f"{directive.position} counts positions of {', '.join(originals)} together; only those of one index lead back to coordinates",
        )
    if isinstance(made, SplitRelation) and directive.position != made.inner:
        refuse(Rule.COORD_OF_POSITION, f"{directive.position} runs through tiles; coord takes the loop inside a tile, {made.inner}")
    sources = directive.position, *graph.parents(directive.position)
    if isinstance(made, CollapseRelation | MergePathRelation) or whole.position not in sources:
        refuse(Rule.COORD_OF_POSITION, f"{directive.position} is not a position loop or the inner part of one that was split once")
    if directive.position != whole.position and _unsorted(originals, whole.access, context):
        refuse(
            Rule.COORD_OF_POSITION, f"{show(whole.access)} keeps coordinates in no order; only all positions lead back to a range of them"
        )
    for space in program.workspaces:
        if set(space.indices).intersection(graph.ancestors(directive.position)):
            refuse(Rule.COORD_OF_POSITION, f"workspace {space.name} has slots for positions of {directive.position}, none for coordinates")
    return replace_loop(program, directive.position, CoordRelation(directive.position, directive.coordinate), directive.path)


def merge_path(program: Program, directive: d.MergePath, context: Context) -> Program:
    """Iterate entries and ends of fibres over the range of a position loop."""
    graph = graph_of(program.relations)
    position = directive.position
    find_loop(program.statement, position, directive.path)
    if graph.space(position) != "position":
        refuse(Rule.MERGE_PATH_OF_FIBRES, f"{position} counts coordinates; merge_path takes a loop that pos made")
    if not isinstance(graph.shape(position), Entries):
        refuse(Rule.MERGE_PATH_OF_FIBRES, f"{position} is no whole position loop; take the merge path first, and split that")
    originals, access = graph.originals(position), graph.position_access(position)
    kind = next(kind for kind, names in context.levels(access) if originals[-1] in names)
    if len(originals) < 2 or not kind.has_fibres or kind.holes:
        refuse(
            Rule.MERGE_PATH_OF_FIBRES,
            f"{position} does not go through fibres of {show(access)} whose ends are stored;"
            " collapse a compressed level with the one above it",
        )
    for space in program.workspaces:
        if set(space.indices).intersection(graph.ancestors(position)):
            refuse(Rule.MERGE_PATH_OF_FIBRES, f"workspace {space.name} has slots for positions of {position}, none for ends of fibres")
    return replace_loop(program, position, MergePathRelation(position, directive.item), directive.path)
