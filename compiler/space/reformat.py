"""Concordant programs: conversions of operands, kinds of workspaces, and workspaces for results (Ahrens et al., section 6.8).

The cost model assumes that every tensor is stored in the order of its loops, in levels that can do what the protocols ask.
Here a schedule is completed so that this holds: operands that do not suit are converted before the kernel runs, and a
sparse result that is written out of order is gathered in a workspace over just the modes that need it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..concrete.nodes import Assign, Block, Forall, Program, Stmt, Where, Workspace, assignments, is_looked_up, nest, reads, transform
from ..format import Format, LevelKind
from ..notation.nodes import Access, accesses, index_subscript
from ..notation.nodes import transform as transform_expr

_LOCATABLE = (LevelKind.DENSE, LevelKind.HASHED)


def lowerable(program: Program, formats: Mapping[str, Format]) -> Program:
    """Return a program that needs no protocols: conversions, workspace kinds and workspaces for the result say the same.

    Only reads of workspaces whose entries are all looked up keep theirs, since such a workspace is kept without order.

    Args:
        program: a schedule of the space.
        formats: the format of every operand and of the result.
    """
    whole = reformatted(program, formats)
    looked_up = {workspace.name for workspace in whole.workspaces if is_looked_up(workspace, whole.statement)}
    return replace(whole, statement=transform(whole.statement, lambda node: _plain(node, looked_up)))


def reformatted(program: Program, formats: Mapping[str, Format]) -> Program:
    """Return a concordant program, its protocols kept: operands converted, the result gathered where it must be."""
    conversions = tuple(required_conversions(program.statement, formats).items())
    written = {assign.target.tensor for assign in assignments(program.statement)}
    sparse = any(name in formats and not formats[name].is_dense for name in written)
    kinds = tuple(replace(workspace, kind=workspace_kind(workspace, program.statement, sparse)) for workspace in program.workspaces)
    return _gathered(replace(program, workspaces=kinds, conversions=conversions), formats)


def required_conversions(statement: Stmt, formats: Mapping[str, Format]) -> dict[Access, Format]:
    """Return the sparse operands that cannot be read as they are stored, without protocols, and a format that suits each.

    Reads that are written alike are served by one conversion: in the loop order of the first, and stepped through in a
    mode that one of them steps through.
    """
    uses: dict[Access, list[tuple[tuple[str, ...], Access]]] = {}
    for loops, assign in _enclosed(statement, ()):
        for access in accesses(assign.value):
            if access.tensor in formats and not formats[access.tensor].is_dense:
                uses.setdefault(Access(access.tensor, access.subscripts), []).append((loops, access))
    found: dict[Access, Format] = {}
    for plain, reads_alike in uses.items():
        form = formats[plain.tensor]
        wanted = {concordant_format(access, form, loops) for loops, access in reads_alike}
        served = wanted.pop() if len(wanted) == 1 else _serving_all(reads_alike, form)
        if served != form:
            found[plain] = served
    return found


def _serving_all(reads_alike: Sequence[tuple[tuple[str, ...], Access]], form: Format) -> Format:
    loops, first = reads_alike[0]
    chosen = zip(*(access.protocols for _, access in reads_alike), strict=True)
    merged = replace(first, protocols=tuple("step" if "step" in protocols else "locate" for protocols in chosen))
    return concordant_format(merged, form, loops)


def concordant_format(access: Access, form: Format, loops: Sequence[str]) -> Format:
    """Return the given format if it suits, else one whose levels follow the loops and can do what the protocols ask.

    Stepping needs a compressed level; a dense one will do in the outermost loop, where it costs no more than its
    dimension. Locating needs a dense level, or a hashed one below the first level, where dense would densify the tensor.
    """
    order = tuple(sorted(range(len(form)), key=lambda mode: (_position(access, mode, loops), mode)))
    protocols = [access.protocols[mode] if access.protocols else "step" for mode in order]
    outermost = [_position(access, mode, loops) == 0 for mode in order]
    wanted = list(zip(protocols, outermost, strict=True))
    if order == form.order and all(_able(kind, *need) for kind, need in zip(form.levels, wanted, strict=True)):
        return form
    return Format(tuple(_level(level, protocol) for level, protocol in enumerate(protocols)), order)


def _able(kind: LevelKind, protocol: str, outermost: bool) -> bool:
    if protocol == "locate":
        return kind in _LOCATABLE
    return kind.steps_in_order or (kind is LevelKind.DENSE and outermost)


def _level(level: int, protocol: str) -> LevelKind:
    if protocol == "step":
        return LevelKind.COMPRESSED
    return LevelKind.HASHED if level else LevelKind.DENSE


def _position(access: Access, mode: int, loops: Sequence[str]) -> int:
    return max((loops.index(name) for name in access.subscripts[mode].indices), default=-1)


def _enclosed(statement: Stmt, loops: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Assign]]:
    """Yield the assignments with the loops around them."""
    if isinstance(statement, Assign):
        yield loops, statement
    inner = (*loops, statement.index) if isinstance(statement, Forall) else loops
    for child in statement.children:
        yield from _enclosed(child, inner)


def workspace_kind(workspace: Workspace, statement: Stmt, sparse: bool = False) -> str:
    """Return the storage that serves the protocols of a workspace.

    One mode is an array, with a list of coordinates if it is stepped through, or if the result is ``sparse`` and stores
    nothing where the workspace has none; more modes are hashed, since an array of all coordinates could be far larger than
    what is stored.
    """
    if not workspace.indices:
        return "scalar"
    if len(workspace.indices) > 1:
        return "hashed"
    return "dense" if is_looked_up(workspace, statement) and not sparse else "list"


def _gathered(program: Program, formats: Mapping[str, Format]) -> Program:
    """Give a sparse result that is written out of order a workspace over the modes that are (section 6.8, last example)."""
    names = {workspace.name for workspace in program.workspaces}
    target = next(assign.target for assign in assignments(program.statement) if assign.target.tensor not in names)
    form = formats[target.tensor]
    stored = tuple(target.subscripts[mode].index for mode in form.order)
    shared = _shared_loops(program.statement, stored)
    inner = _below(program.statement, shared)
    rest = stored[shared:]
    in_order = not rest and not isinstance(inner, Block)
    if in_order or form.is_dense or (rest and all(kind is LevelKind.DENSE for kind in form.levels[shared:])):
        return program
    name = _fresh("w" if rest else "t", program)
    held = Access(name, tuple(map(index_subscript, rest)))

    def write(node: Stmt) -> Stmt | None:
        if not isinstance(node, Assign) or node.target.tensor != target.tensor:
            return None
        chosen = dict(zip(node.target.indices, node.target.protocols, strict=False))
        return replace(node, target=replace(held, protocols=tuple(chosen[index] for index in rest) if chosen else ()))

    appended = replace(target, protocols=("append",) * len(target.protocols))
    stepped = replace(held, protocols=("step",) * len(rest) if target.protocols else ())
    copied = Where(nest(rest, Assign(appended, "=", stepped)), transform(inner, write))
    gathering = Workspace(name, rest, ("scalar", "list", "hashed")[min(len(rest), 2)])
    statement = _with_below(program.statement, shared, copied)
    return replace(program, statement=statement, workspaces=(*program.workspaces, gathering))


def _shared_loops(statement: Stmt, stored: tuple[str, ...]) -> int:
    """Return how many leading modes of the result have the loops around all its writers as outermost loops, in order."""
    match statement:
        case Forall(index, body) if stored and index == stored[0]:
            return 1 + _shared_loops(body, stored[1:])
        case Where(consumer, _):
            return _shared_loops(consumer, stored)
        case _:
            return 0


def _below(statement: Stmt, loops: int) -> Stmt:
    """Return what the result's writers are in below some loops: where statements are followed into their consumers."""
    match statement:
        case Where(consumer, _):
            return _below(consumer, loops)
        case Forall(_, body) if loops:
            return _below(body, loops - 1)
        case _:
            return statement


def _with_below(statement: Stmt, loops: int, new: Stmt) -> Stmt:
    """Return a statement with another one in the place that ``_below`` finds."""
    match statement:
        case Where(consumer, producer):
            return Where(_with_below(consumer, loops, new), producer)
        case Forall(_, body) if loops:
            return statement.rebuild((_with_below(body, loops - 1, new),))
        case _:
            return new


def _fresh(wish: str, program: Program) -> str:
    found = (*reads(program.statement), *(assign.target for assign in assignments(program.statement)))
    taken = {access.tensor for access in found} | {name for access in found for name in access.indices}
    number, name = 1, wish
    while name in taken:
        number += 1
        name = f"{wish}{number}"
    return name


def _plain(node: Stmt, looked_up: set[str]) -> Stmt | None:
    """Drop the protocols of an assignment, but for reads of workspaces that are ``looked_up``."""
    if not isinstance(node, Assign):
        return None
    target = replace(node.target, protocols=())
    plain = transform_expr(
        node.value, lambda value: replace(value, protocols=()) if isinstance(value, Access) and value.tensor not in looked_up else None
    )
    return Assign(target, node.operator, plain)
