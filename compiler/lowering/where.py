"""Lowers where statements: chooses and makes the workspaces that a producer fills, then lowers producer and consumer."""

from __future__ import annotations

from ..concrete.assembled import handing
from ..concrete.nodes import Block, Stmt, Where, Workspace, filled_by_threads, is_looked_up, targets
from ..errors import ScheduleError
from ..ir.arithmetic import integer, multiply
from ..ir.nodes import I32, I64, Const, Step, Steps, Type, Value
from ..workspaces import keepers, keeps_entries, workspace_kind
from ..workspaces.held import HeldWorkspace
from ..workspaces.making import Making
from .context import Context
from .recovery import extent_of
from .requests import Holds, NeedsZeros, Once, made_once, needs_zeros, taken
from .scope import Scope

REGISTER_BYTES = 2048  # a workspace of constant size up to this is an array in registers: 32 vectors of 64 bytes
DENSE_MODES = 1  # sparse workspaces with more modes are hashed, since a dense array could be far too large


def lower_where(context: Context, scope: Scope, statement: Where) -> list[Step]:
    """Return the steps of producer and consumer, with those of the workspaces between them."""
    known = context.workspaces if statement.local is None else {**context.workspaces, statement.local.name: statement.local}
    own = [known[name] for name in filled(statement.producer) if name in known and name not in scope.workspaces]
    steps: list[Step] = []
    with context.names.block():
        for workspace in own:
            held = _make(context, scope, workspace, statement)
            steps += [made_once(held.once)] if held.once else []
            steps += [Holds(held.stored.values, workspace.name)] if held.stored.values else []
            scope = scope.open(workspace.name, held)
        asked, producer, filled_scope = _produce(context, scope, statement.producer, own)
        names = [workspace.name for workspace in own]
        made = [scope.workspaces[name].held for name in names]
        steps += [request for request in asked if not isinstance(request, NeedsZeros) or request.tensor not in names]
        for workspace, held in zip(own, made, strict=True):
            steps += held.prepare(needs_zeros(statement.producer, asked, workspace.name))
        steps += producer
        steps.append(Steps(tuple(context.lower(statement.consumer, filled_scope))))
        for held in made:
            steps += held.clean(context.names)
    return [Steps(tuple(steps))]


def filled(producer: Stmt) -> tuple[str, ...]:
    """Return the workspaces that a producer writes for its own ``where``, without those of nested ones."""
    match producer:
        case Where(consumer, _):
            return filled(consumer)
        case _ if producer.children:
            return tuple(dict.fromkeys(name for child in producer.children for name in filled(child)))
        case _:
            return targets(producer)


def _produce(context: Context, scope: Scope, producer: Stmt, own: list[Workspace]) -> tuple[list[Step], list[Step], Scope]:
    """Lower a producer part by part. Return its requests, its steps, and the scope of the consumer; a workspace can be read after its last
    writer."""
    parts = producer.statements if isinstance(producer, Block) else (producer,)
    asked, steps = list[Step](), list[Step]()
    for place, part in enumerate(parts):
        requests, lowered = taken(context.lower(part, scope), Once, Holds, NeedsZeros)
        asked += requests
        steps.append(Steps(tuple(lowered)))
        later = {name for other in parts[place + 1 :] for name in targets(other)}
        for workspace in own:
            if workspace.name in targets(part) and workspace.name not in later:
                steps = scope.workspaces[workspace.name].held.produced(steps)
                scope = scope.filled(workspace.name)
    return asked, steps, scope


def _make(context: Context, scope: Scope, workspace: Workspace, statement: Where) -> HeldWorkspace:
    """Return a workspace as its kind makes it."""
    kind = workspace.kind or _choose(context, scope, workspace, statement)
    zero = context.semiring.zero(context.value_type)
    summed = not workspace.indices and bool(scope.parallel)  # inside a kernel of a GPU threads combine their parts
    if filled_by_threads(statement.producer, workspace.name) and not summed:
        kind = _shared_kind(context, scope, workspace, kind, statement)
    asked = asks_pattern(context, scope, workspace.name, statement.consumer)
    if asked and workspace.indices and not keeps_entries(kind):
        raise ScheduleError(f"workspace({workspace.name}, {kind}): its reader stores only entries; use {keepers()}")
    extents = tuple(extent_of(context, index) for index in workspace.indices)
    length: Value = integer(1)
    for extent in extents:
        length = multiply(length, extent)
    again = bool(scope.loops) and len(filled(statement.producer)) == 1
    making = Making(
        workspace.name, workspace.indices, extents, length, context.value_type, zero, _key_type(context, workspace), scope.guards, asked,
        is_looked_up(workspace, statement), again, context.on_gpu, context.names,
    )  # fmt: skip
    return workspace_kind(kind).make(making)


def _choose(context: Context, scope: Scope, workspace: Workspace, statement: Where) -> str:
    """Choose a kind: bits or a map if the consumer needs the entries, registers for small constant sizes, else an array."""
    if not workspace.indices:
        return "scalar"
    if asks_pattern(context, scope, workspace.name, statement.consumer):
        if len(workspace.indices) > DENSE_MODES or context.wide or context.on_gpu:
            return "hashed"
        return "list" if is_looked_up(workspace, statement) else "bitmap"
    length: Value = integer(1)
    for index in workspace.indices:
        length = multiply(length, extent_of(context, index))
    if isinstance(length, Const) and int(length.value) * context.value_type.bytes <= REGISTER_BYTES:
        return "registers"
    return "dense"


def _shared_kind(context: Context, scope: Scope, workspace: Workspace, kind: str, statement: Where) -> str:
    """Return the kind of a workspace that threads fill together: an array, or a table on a GPU, since threads cannot add entries to one
    list."""
    if (kind != "scalar" and not keeps_entries(kind)) or (kind == "hashed" and context.on_gpu):
        return kind
    if workspace.kind not in (None, "scalar") or asks_pattern(context, scope, workspace.name, statement.consumer):
        where = "on a GPU " if context.on_gpu else ""
        remedy = "use dense" if workspace.indices else "distribute a loop around it instead"
        raise ScheduleError(f"workspace({workspace.name}, {kind}): {where}threads fill it together and cannot keep its entries; {remedy}")
    return "dense"


def asks_pattern(context: Context, scope: Scope, name: str, consumer: Stmt) -> bool:
    """Whether a consumer passes the entries of a workspace, directly or through others, to something that stores only entries."""
    asking = {name for name, open_one in scope.workspaces.items() if open_one.held.keeps_entries}
    if context.assembly is not None:
        asking.add(context.result.tensor)
    return name in handing(consumer, asking)


def _key_type(context: Context, workspace: Workspace) -> Type:
    """Return the type of keys: 32 bits for one mode whose coordinates the result stores in 32 bits, else 64."""
    if len(workspace.indices) == 1 and context.assembly is not None and context.narrow_result:
        return I32
    return I64
