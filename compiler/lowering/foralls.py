"""Loops over original and derived indices: what each one iterates, and what becomes known in it.

The provenance of an index says which loop to make (Senanayake et al., section 5): the outer index of a split runs over tiles and
narrows the window of its parent; the inner one iterates the parent inside its tile; a position index iterates stored
entries; a collapsed one the nest of its parts, clipped at both ends of its window.
"""

from __future__ import annotations

from dataclasses import replace

from ..concrete.nodes import Forall, LoopTag, Stmt, targets, walk
from ..concrete.relations import Bound, Collapse, Coord, Pos, Rename, Split
from ..errors import ScheduleError
from ..format import LevelKind
from ..loops.nodes import I64, Const, Declare, For, If, Parallel, Select, Var
from ..loops.nodes import Block as Steps
from ..loops.nodes import Expr as Value
from ..loops.nodes import Stmt as Step
from ..notation.nodes import Access
from .arithmetic import ZERO, add, ceiling_quotient, compare, integer, load_index, maximum, minimum, multiply, quotient, remainder, subtract
from .coiterate import iterate, loop_mode, position_loop
from .context import Context
from .levels import Level, Stored
from .privatize import with_copies
from .resolve import Body, named, settle
from .scope import ParallelLoop, Scope, Window


def lower_forall(context: Context, scope: Scope, forall: Forall) -> list[Step]:
    """Return the loop of a forall, dealt out to threads where its tag says so."""
    if forall.tag.unit in ("gpu_block", "gpu_warp", "gpu_thread"):
        raise ScheduleError(f"parallelize({forall.index}, {forall.tag.unit}): this unit is of the GPU, but the target is the CPU")
    if _inserts(context, scope, forall):
        return _inserted(context, scope, forall)
    return _threaded(context, scope, forall) if forall.tag.unit == "cpu_thread" else _loop(context, scope, forall)


def _inserts(context: Context, scope: Scope, forall: Forall) -> bool:
    """Whether this is the outermost loop of a result that is assembled by counting first and filling then."""
    assembly = context.assembly
    if assembly is None or assembly.phase != "append" or scope.loops or context.result.tensor not in targets(forall):
        return False
    return forall.tag.unit == "cpu_thread" or dict(context.program.assembly).get(context.result.tensor) == "insert"


def _inserted(context: Context, scope: Scope, forall: Forall) -> list[Step]:
    """Run the loop twice: to count what every iteration appends, and to fill it in at its own place."""
    assembly = context.assembly
    assert assembly is not None
    steps: list[Step] = []
    for phase in ("count", "fill"):
        assembly.phase = phase
        if forall.tag.unit != "cpu_thread":
            steps += assembly.pass_at_once(_loop(context, scope, forall))
            continue
        *before, loop = _threaded(context, scope, forall)
        assert isinstance(loop, For)
        length = add(subtract(loop.high, loop.low), integer(1))
        steps += before
        steps += assembly.counted(loop, length) if phase == "count" else assembly.filled(loop)
    return steps


def _threaded(context: Context, scope: Scope, forall: Forall) -> list[Step]:
    if scope.parallel:
        around = scope.parallel[-1].index
        raise ScheduleError(f"parallelize({forall.index}, cpu_thread): the loop over {around} around it is parallel already")
    originals = context.graph.originals(forall.index)
    whole = context.graph.space(forall.index) == "coordinate" and len(originals) == 1
    inside = scope.threaded(ParallelLoop(forall.index, frozenset(originals), whole, forall.tag.race))
    with context.thread() as own:
        steps = _loop(context, inside, forall)
    if not steps:
        return []
    *before, last = _for_last(steps)
    if not isinstance(last, For):
        raise ScheduleError(f"parallelize({forall.index}, cpu_thread): its iterations depend on one another; split the loop first")
    tag = Parallel(forall.tag.chunking, forall.tag.chunk)
    loop: list[Step] = [*before, replace(last, tag=tag, private=tuple(own.before), finish=tuple(own.after))]
    return with_copies(context, context.result, loop) if context.result.tensor in context.copies else loop


def _for_last(steps: list[Step]) -> list[Step]:
    """Take a trailing block apart, so that its loop stands last."""
    *before, last = steps
    return [*before, *last.statements] if isinstance(last, Steps) and last.statements else steps


def _loop(context: Context, scope: Scope, forall: Forall) -> list[Step]:
    """Follow the provenance of an index up to what its loop iterates."""
    index, aliases = forall.index, [forall.index]
    while True:
        relation = context.graph.made_by(index) if context.graph.is_derived(index) else None
        if isinstance(relation, (Bound, Rename)):
            index = relation.parents[0]
        elif isinstance(relation, Split) and index == relation.inner and relation.outer in scope.coordinates:
            index = relation.parent
        else:
            break
        aliases.append(index)
    match relation:
        case Split() if index == relation.outer and relation.inner not in scope.coordinates:
            return _tiles(context, scope, forall, relation, aliases)
        case Split():
            return _strided(context, scope, forall, relation, index, aliases)
        case Collapse():
            return _collapsed(context, scope, forall, relation, aliases)
        case Pos():
            return _positions(context, scope, forall, relation, aliases)
        case Coord():
            return _coordinates(context, scope, forall, relation, aliases)
        case _:
            return _original(context, scope, forall, index, aliases)


def window(context: Context, scope: Scope, index: str) -> Window:
    """Return the range that an index has left here."""
    if index in scope.windows:
        return scope.windows[index]
    relation = context.graph.made_by(index) if context.graph.is_derived(index) else None
    if isinstance(relation, Pos):
        return _all_positions(context, scope, relation)
    if isinstance(relation, (Bound, Rename)) and relation.parents[0] in scope.windows:
        return scope.windows[relation.parents[0]]
    extent = context.extent(index)
    return Window(ZERO, extent, int(extent.value) if isinstance(extent, Const) else None)


def _all_positions(context: Context, scope: Scope, relation: Pos) -> Window:
    """Return the positions of the last collapsed level that lie below the present place of the operand."""
    access, chain = position_chain(context, relation)
    place = scope.place(access)
    levels = context.storage(access).levels[place.depth : place.depth + len(chain)]
    low, high = levels[0].bounds(place) if levels[0].steps else (ZERO, levels[0].extent)
    for level in levels[1:]:
        low = load_index(level.pos, low, level.pos_type) if low != ZERO else ZERO
        high = load_index(level.pos, high, level.pos_type)
    return Window(low, high)


def _root(context: Context, scope: Scope, index: str) -> str:
    """Return the variable whose window an index cuts: through inner halves of splits that are open, and other names."""
    while context.graph.is_derived(index):
        relation = context.graph.made_by(index)
        inside = isinstance(relation, Split) and index == relation.inner and relation.outer in scope.coordinates
        if not inside and not isinstance(relation, (Bound, Rename)):
            break
        index = relation.parents[0]
    return index


def _known(context: Context, scope: Scope, aliases: list[str], value: Value) -> Scope:
    """Make an index and everything that only renames it, or counts from its tile's begin, known."""
    for alias in aliases:
        scope = scope.know(alias, subtract(value, scope.bases[alias]) if alias in scope.bases else value)
    return scope


def _original(context: Context, scope: Scope, forall: Forall, index: str, aliases: list[str]) -> list[Step]:
    body = _opened(context, forall.body, index, aliases)
    return iterate(context, scope, index, window(context, scope, index), forall.body, forall.tag, body)


def _opened(context: Context, statement: Stmt, index: str, aliases: list[str]) -> Body:
    """Return the body of a loop over an original index; a level of an assembled result opens and closes around it."""

    def body(scope: Scope) -> list[Step]:
        value = scope.coordinates[index]
        inner_scope = _known(context, scope, aliases, value)
        return opened(context, inner_scope, statement, index)

    return body


def opened(context: Context, scope: Scope, statement: Stmt, index: str) -> list[Step]:
    """Lower a statement in which an original index has just become known."""
    assembly = context.assembly
    writes = assembly is not None and context.result.tensor in targets(statement) and assembly.stores(index)
    if assembly is None or not writes:
        return context.lower(statement, scope)
    before, after = assembly.open(index, dict(scope.coordinates), context.names)
    inner = context.lower(statement, scope)
    return [*before, *inner, *after] if inner else []


def _tiles(context: Context, scope: Scope, forall: Forall, split: Split, aliases: list[str]) -> list[Step]:
    """The loop over the tiles of a split: the window of the parent shrinks to one tile."""
    root = _root(context, scope, split.parent)
    parent = window(context, scope, root)
    length = subtract(parent.high, parent.low)
    size: Value = integer(split.factor) if split.constant_inner else ceiling_quotient(length, integer(split.factor))
    count = ceiling_quotient(length, size) if split.constant_inner else integer(split.factor)
    divides = split.constant_inner and _divides(context, scope, split, root, parent)
    before: list[Step] = []
    if not split.constant_inner:
        size = named(context, f"{split.outer}_tile", size, before)
    with context.names.block():
        variable = Var(context.names.local(forall.index), I64)
        inside: list[Step] = []
        low = named(context, f"{root}_low", add(parent.low, multiply(variable, size)), inside)
        inner = _known(context, scope.inside(forall.index), aliases, variable).base(split.inner, low)
        body = _tile_body(context, inner, forall, split, root, low, add(low, size), parent, divides, inside)
    return [*before, For(variable, ZERO, count, Steps(tuple(body)), loop_mode(forall.tag))] if body else []


def _divides(context: Context, scope: Scope, split: Split, root: str, parent: Window) -> bool:
    """Whether every tile is full: the range is a known multiple of the factor."""
    if parent.width is not None:
        return parent.width % split.factor == 0
    return root not in scope.windows and context.graph.divisible(split.parent, split.factor, context.extents)


def _tile_body(
    context: Context, scope: Scope, forall: Forall, split: Split, root: str, low: Value, end: Value, parent: Window, divides: bool,
    before: list[Step],
) -> list[Step]:  # fmt: skip
    """Lower what is inside a tile; where full tiles are worth code of their own, once for them and once for the rest."""
    width = split.factor if split.constant_inner else None

    def tile(high: Value, full: bool) -> list[Step]:
        with context.names.block():
            steps: list[Step] = []
            bounded = high if full else named(context, f"{root}_high", high, steps)
            narrowed = scope.narrow(root, Window(low, bounded, width if full else None))
            inner = context.lower(forall.body, narrowed)
            return [*steps, *inner] if inner else []

    if divides:
        inner = tile(end, True)
        return [*before, *inner] if inner else []
    clipped = minimum(end, parent.high)
    if width is None or not _worth_cloning(context, forall.body, split):
        inner = tile(clipped, False)
        return [*before, *inner] if inner else []
    full, rest = tile(end, True), tile(clipped, False)
    if not full and not rest:
        return []
    return [*before, If(compare("<=", end, parent.high), Steps(tuple(full)), Steps(tuple(rest)))]


def _worth_cloning(context: Context, body: Stmt, split: Split) -> bool:
    """Whether the loop inside a tile profits from a constant number of iterations: it goes to lanes or is unrolled."""
    inner = {split.inner, *context.graph.descendants(split.inner)}
    loops = [node for node in walk(body) if isinstance(node, Forall) and node.index in inner]
    return any(node.tag.unit == "cpu_vector" or node.tag.unroll for node in loops)


def _strided(context: Context, scope: Scope, forall: Forall, split: Split, index: str, aliases: list[str]) -> list[Step]:
    """One half of a split whose inner loop stands outside: the parent is outer * size + inner once both are known."""
    if split.inner not in scope.coordinates and index == split.inner:
        size = context.extent(split.inner)
        with context.names.block():
            variable = Var(context.names.local(forall.index), I64)
            inside = context.lower(forall.body, _known(context, scope.inside(forall.index), aliases, variable))
        return [For(variable, ZERO, size, Steps(tuple(inside)), loop_mode(forall.tag))] if inside else []
    parent = window(context, scope, split.parent)
    if context.graph.space(split.parent) == "position":
        raise ScheduleError(
            f"{split.inner} stands outside {split.outer}: tiles of positions are cut by the outer loop, which must come first"
        )
    size = context.extent(split.inner)
    count = ceiling_quotient(subtract(parent.high, parent.low), size)
    with context.names.block():
        variable = Var(context.names.local(forall.index), I64)
        value = Var(context.names.local(split.parent), I64)
        position = add(parent.low, add(multiply(variable, size), scope.coordinates[split.inner]))
        inner_scope = _known(context, scope.inside(forall.index), aliases, variable).guarded()
        inside = _becomes_known(context, inner_scope, split.parent, value, forall.body)
    if not inside:
        return []
    guard = If(compare("<", value, parent.high), Steps(tuple(inside)))
    return [For(variable, ZERO, count, Steps((Declare(value, position), guard)), loop_mode(forall.tag))]


def _becomes_known(context: Context, scope: Scope, index: str, value: Value, statement: Stmt) -> list[Step]:
    """Go on where a variable has got a value by arithmetic: recover what follows from it, locate in all operands."""
    scope = scope.know(index, value)
    if not context.graph.is_derived(index):
        return settle(context, scope, statement, lambda inner: opened(context, inner, statement, index))
    relation = context.graph.made_by(index)
    match relation:
        case Bound() | Rename():
            return _becomes_known(context, scope, relation.parents[0], value, statement)
        case Split() if index == relation.inner and relation.outer in scope.coordinates:
            base = scope.bases.get(index, ZERO)
            return _becomes_known(context, scope, relation.parent, add(base, value), statement)
        case Collapse() if context.graph.space(index) == "coordinate":
            extent = context.extent(relation.inner)
            inner = remainder(value, extent)
            outer_known = scope.know(relation.inner, inner)
            return _becomes_known_both(context, outer_known, relation, quotient(value, extent), inner, statement)
        case _:
            return context.lower(statement, scope)


def _becomes_known_both(context: Context, scope: Scope, relation: Collapse, outer: Value, inner: Value, statement: Stmt) -> list[Step]:
    """Both parts of a collapsed coordinate become known at once."""
    for part, value in ((relation.outer, outer), (relation.inner, inner)):
        scope = scope.know(part, value)
        if context.graph.is_derived(part):
            raise ScheduleError(f"{relation.fused} is strided: {part} is derived, so its coordinate cannot be recovered in every iteration")
    return settle(context, scope, statement, lambda found: context.lower(statement, found))


def _collapsed(context: Context, scope: Scope, forall: Forall, relation: Collapse, aliases: list[str]) -> list[Step]:
    """A collapsed coordinate loop: the nest of its parts, each clipped where the window cuts its first or last row."""
    whole = relation.fused not in scope.windows
    if whole:
        return _nest_of(context, scope, forall, relation, aliases, None, None)
    own = window(context, scope, relation.fused)
    steps: list[Step] = []
    with context.names.block():
        extent = named(context, f"{relation.inner}_extent", context.extent(relation.inner), steps)
        low, high = named(context, f"{relation.fused}_low", own.low, steps), named(context, f"{relation.fused}_high", own.high, steps)
        inner = _nest_of(context, scope, forall, relation, aliases, (low, high), extent)
    return [*steps, *inner] if inner else []


def _nest_of(
    context: Context, scope: Scope, forall: Forall, relation: Collapse, aliases: list[str], clip: tuple[Value, Value] | None,
    extent: Value | None,
) -> list[Step]:  # fmt: skip
    plain = LoopTag()
    inner_loop = Forall(relation.inner, forall.body, plain)
    if clip is None or extent is None:
        tag = forall.tag if forall.tag.unit == "cpu_thread" else plain
        return _loop(context, scope, Forall(relation.outer, inner_loop, tag))
    low, high = clip
    rows = Window(quotient(low, extent), ceiling_quotient(high, extent))
    narrowed = replace(scope.narrow(relation.outer, rows), revisited=True)

    def body(inside: Scope) -> list[Step]:
        row = multiply(inside.coordinates[relation.outer], extent)
        columns = Window(maximum(subtract(low, row), ZERO), minimum(subtract(high, row), extent))
        steps: list[Step] = []
        first = named(context, f"{relation.inner}_low", columns.low, steps)
        last = named(context, f"{relation.inner}_high", columns.high, steps)
        clipped = inside.narrow(relation.inner, Window(first, last))
        inner = context.lower(inner_loop, clipped)
        return [*steps, *inner] if inner else []

    if context.graph.is_derived(relation.outer):
        raise ScheduleError(
            f"collapse({relation.outer}, {relation.inner}, {relation.fused}): tiles of {relation.fused} cannot be cut, "
            f"{relation.outer} is derived"
        )

    return iterate(context, narrowed, relation.outer, rows, forall.body, plain, body)


def _positions(context: Context, scope: Scope, forall: Forall, relation: Pos, aliases: list[str]) -> list[Step]:
    """A loop over stored positions of one operand, through all levels that were collapsed into it."""
    access, chain = position_chain(context, relation)
    storage = context.storage(access)
    depth = scope.place(access).depth
    levels = storage.levels[depth : depth + len(chain)]
    if relation.position not in scope.windows:
        return _whole_positions(context, scope, forall, chain, aliases, access)
    own = scope.windows[relation.position]
    steps: list[Step] = []
    with context.names.block():
        low, high = (
            named(context, f"{relation.position}_begin", own.low, steps),
            named(context, f"{relation.position}_end", own.high, steps),
        )
        inside = replace(scope, revisited=scope.revisited or len(chain) > 1)
        inner = _clipped(context, inside, forall, chain, levels, access, storage, low, high, steps, aliases)
    return [*steps, *inner] if inner else []


def _whole_positions(
    context: Context, scope: Scope, forall: Forall, chain: tuple[str, ...], aliases: list[str], access: Access
) -> list[Step]:
    """Positions that are not cut: the plain nest over the collapsed indices, driven by the operand."""
    statement: Stmt = forall.body
    for index in reversed(chain[1:]):
        statement = Forall(index, statement)
    return _driven(context, scope, chain[0], statement, forall.tag, access, None, aliases if len(chain) == 1 else [])


def _driven(
    context: Context, scope: Scope, index: str, statement: Stmt, tag: LoopTag, access: Access, clip: tuple[Value, Value] | None,
    aliases: list[str],
) -> list[Step]:  # fmt: skip
    """Iterate one level of the operand whose positions are counted; all others are located."""
    storage = context.storage(access)
    above = scope.place(access)
    level = storage.levels[above.depth]

    def body(inside: Scope) -> list[Step]:
        for alias in aliases:
            inside = inside.know(alias, inside.place(access).positions[-1])
        return opened(context, inside, statement, index)

    if level.kind is LevelKind.DENSE:
        low, high = clip if clip is not None else (ZERO, level.extent)
        return _dense_rows(context, scope, index, statement, tag, access, level, low, high, body)
    low, high = clip if clip is not None else level.bounds(above)
    return position_loop(context, scope, index, statement, tag, access, low, high, body)


def _dense_rows(
    context: Context,
    scope: Scope,
    index: str,
    statement: Stmt,
    tag: LoopTag,
    access: Access,
    level: Level,
    low: Value,
    high: Value,
    body: Body,
) -> list[Step]:
    """Coordinates [low, high) of a dense level: every position is its coordinate, counted from the parent's."""
    with context.names.block():
        variable = Var(context.names.local(index), I64)
        inside = settle(context, scope.know(index, variable).inside(index), statement, body)
    return [For(variable, low, high, Steps(tuple(inside)), loop_mode(tag))] if inside else []


def _clipped(
    context: Context, scope: Scope, forall: Forall, chain: tuple[str, ...], levels: tuple[Level, ...], access: Access, storage: Stored,
    low: Value, high: Value, before: list[Step], aliases: list[str],
) -> list[Step]:  # fmt: skip
    """Positions [low, high) of the last of several levels: a nest over all of them, cut at both ends.

    The first parent is found by binary search in the segments, later ones follow one another (coordinate tracking).
    """
    if len(levels) == 1:
        return _driven(context, scope, chain[0], forall.body, forall.tag, access, (low, high), aliases)
    *upper, last = levels
    if any(level.kind is not LevelKind.COMPRESSED or not level.unique for level in (last, *upper[1:])) or not upper[0].unique:
        raise ScheduleError(
            f"positions of {storage.name} cannot be cut through levels that are not dense or compressed; convert it to csr or csf first"
        )
    bounds = [(low, high)]
    for place in range(len(levels) - 1, 0, -1):
        depth = scope.place(access).depth + place
        level = levels[place]
        count = _level_length(context, storage, scope, access, depth)
        first = named(context, f"first_{storage.name}{depth}", _parent_of(level, count, bounds[0][0]), before)
        past = named(context, f"past_{storage.name}{depth}", _parent_past(level, count, bounds[0][1]), before)
        bounds.insert(0, (first, past))

    def nest(inside: Scope, place: int) -> list[Step]:
        level_low, level_high = bounds[place]
        if place > 0:
            segment_low, segment_high = levels[place].bounds(inside.place(access))
            level_low, level_high = maximum(segment_low, level_low), minimum(segment_high, level_high)
        if place == len(levels) - 1:
            return _driven(context, inside, chain[place], forall.body, _inner_tag(forall.tag), access, (level_low, level_high), aliases)
        rest = forall.body
        for name in reversed(chain[place + 1 :]):
            rest = Forall(name, rest)
        return _row(context, inside, chain[place], rest, access, (level_low, level_high), lambda deeper: nest(deeper, place + 1))

    return nest(scope, 0)


def _inner_tag(tag: LoopTag) -> LoopTag:
    return replace(tag, unit=None if tag.unit == "cpu_thread" else tag.unit)


def _row(context: Context, scope: Scope, index: str, statement: Stmt, access: Access, clip: tuple[Value, Value], body: Body) -> list[Step]:
    storage = context.storage(access)
    level = storage.levels[scope.place(access).depth]
    if level.kind is LevelKind.DENSE:
        return _dense_rows(context, scope, index, statement, LoopTag(), access, level, clip[0], clip[1], body)
    return position_loop(context, scope, index, statement, LoopTag(), access, clip[0], clip[1], body)


def _level_length(context: Context, storage: Stored, scope: Scope, access: Access, depth: int) -> Value:
    """Return how many positions level ``depth - 1`` has."""
    above = storage.levels[depth - 1]
    if above.kind is LevelKind.DENSE and depth == 1:
        return above.extent
    return context.size_parameter((storage.name, "length", depth - 1), f"{storage.name}{depth}_length")


def _parent_of(level: Level, count: Value, position: Value) -> Value:
    """Return the parent whose segment holds a position: the last p with pos[p] <= position."""
    found = Level(level.kind, level.index, level.extent, crd=level.pos, crd_type=level.pos_type)
    return subtract(found.search(integer(1), add(count, integer(1)), position, "upper_bound"), integer(1))


def _parent_past(level: Level, count: Value, position: Value) -> Value:
    """Return the first parent whose segment begins at or behind a position."""
    found = Level(level.kind, level.index, level.extent, crd=level.pos, crd_type=level.pos_type)
    return found.search(ZERO, count, position, "lower_bound")


def position_chain(context: Context, relation: Pos) -> tuple[Access, tuple[str, ...]]:
    """Return the access whose positions are counted, and the indices of the levels that are collapsed."""
    return relation.access, context.graph.originals(relation.position)


def _coordinates(context: Context, scope: Scope, forall: Forall, relation: Coord, aliases: list[str]) -> list[Step]:
    """Back to coordinates: the range between the coordinates at both ends of the window of positions."""
    source = context.graph.position_relation(relation.position)
    access, chain = position_chain(context, source)
    if len(chain) != 1:
        raise ScheduleError(
            f"coord({relation.position}, {relation.coordinate}): {source.access.tensor} is collapsed over {', '.join(chain)}; "
            "positions of one index only lead back to coordinates"
        )
    storage = context.storage(access)
    level = storage.levels[scope.place(access).depth]
    low, high = level.bounds(scope.place(access))
    own = window(context, scope, _root(context, scope, relation.position))
    steps: list[Step] = []
    with context.names.block():
        first = Var(context.names.local(f"{relation.coordinate}_low"), I64)
        last = Var(context.names.local(f"{relation.coordinate}_high"), I64)
        steps += _coordinate_range(level, own, low, high, first, last, context.size(chain[0]))
        inside = scope.narrow(chain[0], Window(first, last))
        inner = iterate(
            context,
            inside,
            chain[0],
            Window(first, last),
            forall.body,
            forall.tag,
            _opened(context, forall.body, chain[0], [*aliases, chain[0]]),
        )
    return [*steps, *inner] if inner else []


def _coordinate_range(level: Level, own: Window, low: Value, high: Value, first: Var, last: Var, size: Value) -> list[Step]:
    begins = compare("<=", own.low, low)
    ends = compare(">=", own.high, high)
    return [
        Declare(first, Select(begins, ZERO, level.coordinate(own.low), I64)),
        Declare(last, Select(ends, size, level.coordinate(own.high), I64)),
    ]
