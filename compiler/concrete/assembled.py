"""The format in which a sparse result is written: the one asked for, or levels in the order of the loops, converted afterwards."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ..format import Format
from ..levels import COMPRESSED, DENSE, LevelKind
from ..notation.nodes import Access, accesses
from .nodes import Forall, Program, Stmt, Where, assignments, runs_on_gpu, statements_around, targets
from .provenance import Provenance
from .relations import CollapseRelation, PosRelation, SplitRelation


def assembled_format(result: Access, form: Format, loops: Sequence[str], *, on_gpu: bool = False) -> Format:
    """Return the format that loops in some order write.

    Args:
        result: the left side.
        form: the format that is asked for.
        loops: indices in the order in which the loops around the result's assignment make them known.
        on_gpu: whether a GPU writes it, which has compressed and dense levels only.

    In another order than the one asked for, only those levels stay dense that store no more than they would there: all
    that stand above the first stored level, and the block of dense levels below the last one if it is the same.
    If all levels are inserted into, any order of loops suits.
    """
    if form.is_dense or (not on_gpu and all(kind.inserts for kind in form.levels)):
        return form
    order = tuple(sorted(form.order, key=lambda mode: loops.index(result.subscripts[mode].index)))
    if order == form.order:
        return Format(_plain(form.levels) if on_gpu else written_kinds(form.levels), order)
    kinds = dict(zip(form.order, _plain(form.levels), strict=True))
    above = next(place for place, mode in enumerate(order) if not kinds[mode].full)
    below = max(level for level, kind in enumerate(form.levels) if not kind.full) + 1
    same_block = set(order[below:]) == set(form.order[below:])
    dense = set(order[:above]) | (set(order[below:]) if same_block else set())
    return Format(tuple(DENSE if mode in dense else COMPRESSED for mode in order), order)


def written_kinds(levels: Sequence[LevelKind]) -> tuple[LevelKind, ...]:
    """Return the kinds in which levels are written where loops come in their order.

    These levels keep their kind: full ones; those that are inserted into, if all levels above are too; those that are appended to
    (singletons together with the compressed level above); and the last one with coordinates, if it places its entries. All others are
    written as compressed levels and converted afterwards.
    """
    written: list[LevelKind] = []
    for place, kind in enumerate(levels):
        above = written[-1] if written else None
        inserts = kind.full or (kind.inserts and all(each.inserts for each in written))
        carried = kind.shares_positions and above is not None and above.appends and above.repeats
        appends = kind.appends and (carried or not kind.shares_positions)
        places = kind.places and all(below.full for below in levels[place + 1 :])
        written.append(kind if inserts or appends or places else COMPRESSED)
    return tuple(written)


def _plain(levels: Sequence[LevelKind]) -> tuple[LevelKind, ...]:
    return tuple(kind if kind.full else COMPRESSED for kind in levels)


def appended_levels(form: Format) -> int:
    """Return how many levels of a format must be written in order: all down to the last that is not inserted into."""
    return max((level for level, kind in enumerate(form.levels) if not kind.inserts), default=-1) + 1


def handing(statement: Stmt, entries: Collection[str]) -> frozenset[str]:
    """Return the tensors whose entries a statement passes on to given ones, directly or through others."""
    found = frozenset(entries)
    while True:
        read = (access.tensor for assign in assignments(statement) if assign.target.tensor in found for access in accesses(assign.value))
        more = found.union(read)
        if more == found:
            return found - frozenset(entries)
        found = more


def loops_to(statement: Stmt, tensor: str) -> tuple[str, ...]:
    """Return the loops around the first assignment to a tensor, outermost first."""
    found = statements_around(statement, tensor)
    return () if found is None else tuple(node.index for node in found if isinstance(node, Forall))


def known_order(graph: Provenance, path: Sequence[str]) -> tuple[str, ...]:
    """Return the original indices in the order in which loops make them known; those of one loop in the order in
    which they were collapsed."""
    known = {name: place for name, place in graph.known_after(path).items() if not graph.is_derived(name)}
    inside = {name: graph.originals(path[place]).index(name) for name, place in known.items() if name in graph.originals(path[place])}
    return tuple(sorted(known, key=lambda name: (known[name], inside.get(name, len(inside)))))


def ordered_loops(
    program: Program, graph: Provenance, result: Access, form: Format, stored: Callable[[Access], Format | None]
) -> int | None:
    """Return whether the components of a sparse result come in the order of its levels, each once, so that they can be appended.

    Args:
        program: scheduled concrete notation.
        graph: its provenance.
        result: the left side.
        form: the format that is asked for.
        stored: the format of an operand; None where it is not known.

    Returns:
        None if they do; else the number of outermost loops that go through whole levels in order: what lies
        inside these must be collected in a workspace.
    """
    path = statements_around(program.statement, result.tensor)
    writes = [assign for assign in assignments(program.statement) if assign.target.tensor == result.tensor]
    if path is None:
        return 0
    loops = [node.index for node in path if isinstance(node, Forall)]
    levels = appended_indices(program, graph, result, form)
    count = len(levels)
    ordered = _in_order(graph, loops, levels, stored)
    collects = writes[0].operator == "+=" and count == len(form.levels) and not _sums_at_once(path, graph, levels)
    if len(writes) == 1 and ordered == len(loops) and not collects:
        return None
    return _whole_levels(graph, loops[: min(ordered, _around_all_writes(path, result))], result)


def appended_indices(program: Program, graph: Provenance, result: Access, form: Format) -> list[str]:
    """Return the indices of the levels that must be written in order, as they are assembled, outermost first."""
    loops = known_order(graph, loops_to(program.statement, result.tensor))
    written = assembled_format(result, form, loops, on_gpu=runs_on_gpu(program))
    return [result.subscripts[mode].index for mode in written.order[: appended_levels(written)]]


def _around_all_writes(path: Sequence[Stmt], result: Access) -> int:
    """Return how many outermost loops stand around everything that writes a result; other statements fill workspaces."""
    count = 0
    for node in path:
        if isinstance(node, Forall):
            count += 1
        elif not (isinstance(node, Where) and result.tensor not in targets(node.producer)):
            break
    return count


def _in_order(graph: Provenance, loops: Sequence[str], levels: Sequence[str], stored: Callable[[Access], Format | None]) -> int:
    """Return how many outermost loops reach the entries in order: none cuts a level into pieces, none repeats the levels below."""
    reached, repeating = 0, False
    for place, loop in enumerate(loops):
        originals = graph.originals(loop)
        own = [levels.index(name) for name in originals if name in levels]
        if own and (repeating or min(own) < reached or _strided(graph, loops, place) or _cut(graph, loop, stored)):
            return place
        repeating = repeating or not set(originals) <= set(levels)  # a sum, or a piece of the dense levels below
        reached = max([reached, *own])
    return len(loops)


def _cut(graph: Provenance, loop: str, stored: Callable[[Access], Format | None]) -> bool:
    """Return whether a loop goes through its indices in another order, or in pieces that begin and end inside a row.

    Such are pieces that were collapsed, and pieces of collapsed loops. Positions of hashed levels have their
    coordinates in no order, and those of levels with slots that hold nothing, below others, are taken one by one.
    """
    makers = [graph.maker(name) for name in graph.ancestors(loop)]
    if any(made is not None and not made.in_order for made in makers):
        return True
    positions = (made for made in makers if isinstance(made, PosRelation))
    if any(_is_apart(stored(made.access), made.access, graph.originals(made.parent)) for made in positions):
        return True
    return any(isinstance(made, SplitRelation) for made in makers) and any(isinstance(made, CollapseRelation) for made in makers)


def _is_apart(form: Format | None, access: Access, indices: Sequence[str]) -> bool:
    """Return whether positions of an operand, over its levels of some indices, do not go from row to row in order."""
    levels = () if form is None else zip(form.levels, form.order, strict=True)
    through = [kind for kind, mode in levels if set(access.subscripts[mode].indices) & set(indices)]
    return not all(kind.ordered for kind in through) or any(kind.holes for kind in through[1:])


def _strided(graph: Provenance, loops: Sequence[str], place: int) -> bool:
    """Return whether a loop over the inner half of a split stands outside one over its outer half."""
    later = {name for loop in loops[place + 1 :] for name in graph.ancestors(loop)}
    mine = graph.ancestors(loops[place])
    splits = [made for name in mine if isinstance(made := graph.maker(name), SplitRelation)]
    return any(made.inner in mine and made.outer in later for made in splits)


def _sums_at_once(path: Sequence[Stmt], graph: Provenance, levels: Sequence[str]) -> bool:
    """Return whether what is summed for a component is summed by the innermost loops, with nothing between them."""
    inner = list(path)
    while inner and isinstance(node := inner[-1], Forall) and not set(graph.originals(node.index)) & set(levels):
        if node.tag.is_on_gpu and not _is_combined(node, inner[:-1]):
            return False
        inner.pop()
    sums = [node for node in inner if isinstance(node, Forall) and not set(graph.originals(node.index)) <= set(levels)]
    return not sums and len(inner) < len(path)


def _is_combined(loop: Forall, around: Sequence[Stmt]) -> bool:
    """Whether the members of a block or warp, to which a loop is distributed, combine what they add into one value."""
    units = [node.tag.member for node in around if isinstance(node, Forall) and node.tag.is_on_gpu]
    return loop.tag.keeps_sums and units[-1:] in (["block"], ["warp"])


def _whole_levels(graph: Provenance, loops: Sequence[str], result: Access) -> int:
    """Return how many of the outermost loops run through whole indices of the result, and nothing else."""
    for count in range(len(loops), 0, -1):
        originals = {name for loop in loops[:count] for name in graph.originals(loop)}
        known = graph.known_after(loops[:count])
        if originals <= set(result.indices) and all(name in known for name in originals):
            return count
    return 0
