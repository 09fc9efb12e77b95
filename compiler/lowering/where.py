"""Where statements: choose and make the workspaces that a producer fills, then lower producer and consumer."""

from __future__ import annotations

from dataclasses import replace

from ..concrete.assembled import handing
from ..concrete.nodes import Block, Stmt, Where, Workspace, filled_by_threads, is_looked_up, targets
from ..concrete.workspace_kinds import KEEPERS, keeps_entries
from ..errors import ScheduleError
from ..ir.arithmetic import ZERO, integer, multiply
from ..ir.nodes import BOOL, I32, I64, MAP, Allocate, Const, Declare, Free, Step, Steps, Type, Value, Var
from .context import Context, StoreFacts
from .levels import Storage
from .recovery import extent_of
from .scope import Scope
from .workspaces import (
    U64,
    BitmapWorkspace,
    DenseWorkspace,
    FewKeysWorkspace,
    HashedWorkspace,
    HeldWorkspace,
    ListWorkspace,
    ScalarWorkspace,
    bit_words,
    dense_levels,
    entry_levels,
    key_levels,
)

REGISTER_BYTES = 2048  # a workspace of constant size up to here is a local array: 32 vectors of 64 bytes
DENSE_MODES = 1  # sparse workspaces of more modes are hashed: a dense array over them may be far too large


def lower_where(context: Context, scope: Scope, statement: Where) -> list[Step]:
    """Return producer and consumer around the workspaces that pass values between them."""
    own = [context.workspaces[name] for name in filled(statement.producer) if name in context.workspaces and name not in context.held]
    with context.names.block():
        for workspace in own:
            context.facts[workspace.name] = StoreFacts()
            context.outside[workspace.name] = len(scope.parallel)
            held = _make(context, scope, workspace, statement)
            context.held[workspace.name] = held
            context.rooms[held.stored.values] = workspace.name
        producer = _produce(context, scope, statement.producer, own)
        steps: list[Step] = []
        for workspace in own:
            steps += context.held[workspace.name].prepare(context.facts[workspace.name].needs_zero)
        steps += producer
        steps.append(Steps(tuple(context.lower(statement.consumer, scope))))
        for workspace in own:
            steps += context.held.pop(workspace.name).clean(context.names)
            del context.stored[workspace.name]
    return [Steps(tuple(steps))]


def filled(producer: Stmt) -> tuple[str, ...]:
    """Return what a producer writes for its own ``where``; workspaces of nested ones live inside them."""
    match producer:
        case Where(consumer, _):
            return filled(consumer)
        case _ if producer.children:
            return tuple(dict.fromkeys(name for child in producer.children for name in filled(child)))
        case _:
            return targets(producer)


def _produce(context: Context, scope: Scope, producer: Stmt, own: list[Workspace]) -> list[Step]:
    """Lower a producer part by part; a workspace can be read as soon as its last writer is through."""
    parts = producer.statements if isinstance(producer, Block) else (producer,)
    steps: list[Step] = []
    for place, part in enumerate(parts):
        steps.append(Steps(tuple(context.lower(part, scope))))
        later = {name for other in parts[place + 1 :] for name in targets(other)}
        for workspace in own:
            if workspace.name in targets(part) and workspace.name not in later:
                held = context.held[workspace.name]
                steps = held.produced(steps)
                context.stored[workspace.name] = held.stored
    return steps


def _make(context: Context, scope: Scope, workspace: Workspace, statement: Where) -> HeldWorkspace:
    kind = workspace.kind or _choose(context, workspace, statement)
    zero = context.semiring.zero(context.value_type)
    summed = not workspace.indices and bool(scope.parallel)  # inside a kernel of a GPU, whose threads combine what each has
    if filled_by_threads(statement.producer, workspace.name) and not summed:
        kind = _shared_kind(context, workspace, kind, statement)
    if kind == "scalar":
        return _scalar(context, scope, workspace, statement, zero)
    extents = tuple(extent_of(context, index) for index in workspace.indices)
    length: Value = integer(1)
    for extent in extents:
        length = multiply(length, extent)
    if not keeps_entries(kind):
        if asks_pattern(context, workspace.name, statement.consumer):
            raise ScheduleError(f"workspace({workspace.name}, {kind}): its reader stores only entries; use {KEEPERS}")
        return _dense(context, scope, workspace, kind, extents, length, zero)
    if kind == "list":
        return _list(context, scope, workspace, extents, length, zero, is_looked_up(workspace, statement))
    if kind == "bitmap":
        again = bool(scope.loops) and len(filled(statement.producer)) == 1
        return _bitmap(context, scope, workspace, extents, length, zero, again)
    return _hashed(context, scope, workspace, extents, zero, is_looked_up(workspace, statement))


def _choose(context: Context, workspace: Workspace, statement: Where) -> str:
    """Choose a kind: what asks for a pattern gets bits or a map, small constant sizes registers, the rest an array."""
    if not workspace.indices:
        return "scalar"
    if asks_pattern(context, workspace.name, statement.consumer):
        if len(workspace.indices) > DENSE_MODES or context.wide:
            return "hashed"
        return "list" if is_looked_up(workspace, statement) else "bitmap"
    length: Value = integer(1)
    for index in workspace.indices:
        length = multiply(length, extent_of(context, index))
    if isinstance(length, Const) and int(length.value) * context.value_type.bytes <= REGISTER_BYTES:
        return "registers"
    return "dense"


def _shared_kind(context: Context, workspace: Workspace, kind: str, statement: Where) -> str:
    """Return the kind of a workspace that threads fill together: an array, since no two of them can put entries in one list."""
    if kind != "scalar" and not keeps_entries(kind):
        return kind
    if workspace.kind not in (None, "scalar") or asks_pattern(context, workspace.name, statement.consumer):
        raise ScheduleError(f"workspace({workspace.name}, {kind}): threads fill it together and cannot keep its entries; use dense")
    return "dense"


def asks_pattern(context: Context, name: str, consumer: Stmt) -> bool:
    """Whether a consumer hands the entries of a workspace on to something that stores only entries, through others or at once."""
    asking = {name for name, held in context.held.items() if held.keeps_entries}
    if context.assembly is not None:
        asking.add(context.result.tensor)
    return name in handing(consumer, asking)


def _scalar(context: Context, scope: Scope, workspace: Workspace, statement: Where, zero: Const) -> ScalarWorkspace:
    value = Var(context.names.local(workspace.name), context.value_type)
    flagged = asks_pattern(context, workspace.name, statement.consumer)
    flag = Var(context.names.local(f"{workspace.name}_set"), BOOL) if flagged else None
    return ScalarWorkspace(Storage(workspace.name, (), "", context.value_type), zero, scope.guards, value, flag)


def _dense(
    context: Context, scope: Scope, workspace: Workspace, kind: str, extents: tuple[Value, ...], length: Value, zero: Const
) -> DenseWorkspace:
    registers = kind == "registers"
    if registers and not isinstance(length, Const):
        raise ScheduleError(
            f"workspace({workspace.name}, registers): its size is not a compile-time constant; give extents or split its loops"
        )
    array = context.names.permanent(workspace.name)
    if not registers:
        context.hoist(array, context.value_type, length, zero=False)
    stored = Storage(workspace.name, dense_levels(workspace.indices, extents), array, context.value_type)
    return DenseWorkspace(stored, zero, scope.guards, length, registers)


def _list(
    context: Context, scope: Scope, workspace: Workspace, extents: tuple[Value, ...], length: Value, zero: Const, looked_up: bool
) -> ListWorkspace:
    stored, keys, count = _keyed(context, workspace, extents, length)
    marks = context.names.permanent(f"{workspace.name}_set")
    context.hoist(marks, BOOL, length, zero=True)
    if looked_up:
        stored = replace(stored, levels=entry_levels(workspace.indices, extents, marks=marks))
    return ListWorkspace(stored, zero, scope.guards, marks, keys, _key_type(context, workspace), count)


def _bitmap(
    context: Context, scope: Scope, workspace: Workspace, extents: tuple[Value, ...], length: Value, zero: Const, again: bool
) -> BitmapWorkspace:
    """Make a bitmap; ``again``: it is filled in every iteration around, by one producer alone, which then has two forms."""
    stored, keys, count = _keyed(context, workspace, extents, length)
    bits = context.names.permanent(f"{workspace.name}_bits")
    context.hoist(bits, U64, bit_words(length), zero=True)
    key_type = _key_type(context, workspace)
    kind = FewKeysWorkspace if again and key_type == I32 else BitmapWorkspace
    return kind(stored, zero, scope.guards, bits, keys, key_type, count, length)


def _keyed(context: Context, workspace: Workspace, extents: tuple[Value, ...], length: Value) -> tuple[Storage, str, Var]:
    """Make the values over the whole range, the array that takes the sorted keys, and their count."""
    names, name, key_type = context.names, workspace.name, _key_type(context, workspace)
    array, keys = names.permanent(f"{name}_vals"), names.permanent(f"{name}_list")
    count = Var(names.permanent(f"{name}_count"), I64)
    context.hoist(array, context.value_type, length, zero=False)
    context.hoist(keys, key_type, length, zero=False)
    context.hoisted[-1].before.append(Declare(count, ZERO))
    levels = key_levels(workspace.indices, extents, keys, key_type, count)
    return Storage(name, levels, array, context.value_type), keys, count


def _key_type(context: Context, workspace: Workspace) -> Type:
    """Return 32 bits for the keys of one mode whose coordinates the result stores in 32 bits."""
    if len(workspace.indices) == 1 and context.assembly is not None and context.narrow_result:
        return I32
    return I64


def _hashed(
    context: Context, scope: Scope, workspace: Workspace, extents: tuple[Value, ...], zero: Const, looked_up: bool
) -> HashedWorkspace:
    names, name = context.names, workspace.name
    array, table, keys = names.permanent(f"{name}_vals"), names.permanent(f"{name}_map"), names.permanent(f"{name}_keys")
    count = Var(names.permanent(f"{name}_count"), I64)
    capacity, keys_capacity = Var(names.permanent(f"{name}_capacity"), I64), Var(names.permanent(f"{keys}_capacity"), I64)
    start = integer(64)
    own = context.hoisted[-1]
    own.before += [Declare(count, ZERO), Declare(capacity, start), Declare(keys_capacity, start), Allocate(table, MAP, start)]
    own.after.append(Free(table))
    context.hoist(array, context.value_type, start, zero=False)
    context.hoist(keys, I64, start, zero=False)
    levels = entry_levels(workspace.indices, extents, keys=table) if looked_up else key_levels(workspace.indices, extents, keys, I64, count)
    stored = Storage(name, levels, array, context.value_type)
    return HashedWorkspace(stored, zero, scope.guards, table, keys, count, capacity, keys_capacity)
