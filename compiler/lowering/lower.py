"""From a scheduled program to a kernel: the loop IR, and what it expects and gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..concrete.affine import Viewed
from ..concrete.annihilation import doing_something
from ..concrete.assembled import assembled_format, known_order, loops_to
from ..concrete.mirrored import mirrored
from ..concrete.nodes import Program, reads, runs_on_gpu, said_of
from ..concrete.printer import loop_nest
from ..concrete.provenance import Provenance
from ..format import Format
from ..ir.arithmetic import ONE, ZERO, multiply
from ..ir.nodes import (
    PAST_CACHES,
    ArrayRef,
    Const,
    Fill,
    For,
    Free,
    Function,
    Load,
    Parallel,
    Prefetch,
    Publish,
    SizeParameter,
    Step,
    Steps,
    Store,
    Type,
    Value,
    Var,
)
from ..ir.rewrite import nodes_of
from ..notation.nodes import Access, accesses
from .accumulate import accumulated
from .assembly import Assembly, assembly_of
from .collect import collected
from .context import Context, TensorType, loop_type
from .index_aliases import index_aliases
from .insertion import is_inserted
from .kernel_spec import KernelSpec, OperandSpec, ResultSpec
from .parameters import Parameters
from .patterns import is_copy, shared_type_of
from .pieces import is_appended_in_pieces
from .placing import placed
from .rooms import expected_entries
from .rows import added_in_rows, written_in_rows
from .scope import Scope
from .semiring import Semiring, identity
from .statements import lower_statement


def lower(
    program: Program,
    types: Mapping[str, TensorType],
    result: Access,
    *,
    sources: Mapping[str, str],
    extents: Mapping[str, int],
    viewed: Viewed,
    expression: str,
    schedule: str,
    wide: bool = False,
    also: tuple[Access, ...] = (),
) -> KernelSpec:
    """Lower a program to one kernel.

    Args:
        program: scheduled concrete notation.
        types: how every operand is handed over, and how the result is asked for, by name.
        result: the left side.
        sources: the name in the expression of every operand.
        extents: compile-time constant extents by index.
        viewed: the expression with plain subscripts; its indices name the extents.
        expression, schedule: texts kept for people.
        also: further results that the program writes, all dense.
        wide: whether extents need coordinates of 64 bits, so that no array has room for all of an index.

    Raises:
        ScheduleError: the schedule asks for loops that cannot be made.
    """
    original, program = viewed.assignment, mirrored(program, {name: kind.format for name, kind in types.items()})
    scheduled = [workspace.name for workspace in program.workspaces]
    keys, operand_types = _operand_keys(program, types, {result.tensor, *(other.tensor for other in also)})
    requested = types[result.tensor]
    shares, shared_type = shared_type_of(program, result, requested, operand_types, keys)
    if shares is None and not requested.format.is_dense:
        program = collected(program, result, requested.format, lambda access: _format_of(access, keys, operand_types))
    aliases = index_aliases(program, original, sources)
    graph = Provenance(program.relations)  # type: ignore[arg-type]  # relations are stored as objects in Program
    constants = {**extents, **graph.fixed_extents()}
    constants |= {name: constants[index] for name, index in aliases.items() if index in constants}
    made = shared_type if shares is not None else _assembled_type(program, requested, result)
    value_type = loop_type(requested.dtype)
    parameters = Parameters(constants, aliases)
    assembly = None
    if shares is None and not made.format.is_dense:
        zero = Semiring(program.add, program.multiply).zero(value_type)
        inserted, apart = is_inserted(program, result.tensor), is_appended_in_pieces(program, result.tensor)
        assembly = _assembly(parameters, result, made, value_type, zero)
        anywhere = assembly.last < 0  # there is nothing to count, and no order
        assembly = replace(assembly, inserted=inserted and not anywhere, apart=apart and not anywhere)
    context = Context(
        program, {**operand_types, **{other.tensor: types[other.tensor] for other in also}, result.tensor: made}, result, keys, value_type,
        parameters, lower_statement, assembly=assembly, shares=shares, wide=wide, also=frozenset(other.tensor for other in also),
    )  # fmt: skip
    kept = doing_something(program.statement, program.add)
    statement = program.statement if kept is None else accumulated(context, kept)
    steps = [] if kept is None else context.lower(statement, Scope(assembly=assembly))
    body = _framed(context, (result, *also), steps)
    function = _function(context, body)
    operands = tuple(
        _operand(indices, key, sources[name], types[name], operand_types[key], viewed)
        for name, key, indices in _each_use(keys, operand_types, aliases)
    )
    spec = ResultSpec(
        result.tensor, made.format, requested.format, tuple(subscript.index for subscript in result.subscripts), requested.dtype,
        context.semiring.zero(context.value_type).value, keys[shares] if shares is not None else None, "any", made.widths,
        shares is not None and made.format.order != requested.format.order and is_copy(original, operand_types[keys[shares]], requested),
    )  # fmt: skip
    indices = tuple(dict.fromkeys(name for access in (original.target, *accesses(original.value)) for name in access.indices))
    constants = {name: extent for name, extent in constants.items() if name in indices}
    others = tuple(_dense_spec(other, types[other.tensor], spec) for other in also)
    return KernelSpec(
        function,
        operands,
        spec,
        tuple(sorted(constants.items())),
        indices,
        program.build,
        expression,
        schedule,
        loop_nest(statement, viewed.as_written),
        program.relations,
        tuple(array for array, workspace in context.rooms.items() if array and workspace in scheduled),
        viewed.ranges,
        identity(context.semiring.multiply_on(context.value_type), context.value_type),
        others,
    )


# Operands


def _operand_keys(program: Program, types: Mapping[str, TensorType], written: set[str]) -> tuple[dict[Access, str], dict[str, TensorType]]:
    """Return, for every operand access, the name of its stored copy, and the type of every copy."""
    workspaces = {workspace.name for workspace in program.workspaces}
    keys: dict[Access, str] = {}
    kinds: dict[str, TensorType] = {}
    for access in dict.fromkeys(reads(program.statement)):
        if access.tensor in workspaces or access.tensor in written:
            continue
        given = types[access.tensor]
        wanted = access.stored or said_of(access, program.conversions) or given.format
        if wanted == given.format:
            key, kind = access.tensor, given
        else:
            kind = TensorType(wanted, given.dtype, converted_widths(given, wanted))
            key = _copy_name(access.tensor, kind, kinds, types)
        keys[access], kinds[key] = key, kind
    return keys, kinds


def _format_of(wanted: Access, keys: Mapping[Access, str], kinds: Mapping[str, TensorType]) -> Format | None:
    """Return the format in which an operand is read, whatever the protocols."""
    alike = ((access.tensor, access.subscripts) == (wanted.tensor, wanted.subscripts) for access in keys)
    return next((kinds[key].format for key, same in zip(keys.values(), alike, strict=True) if same), None)


def converted_widths(given: TensorType, wanted: Format) -> tuple[int, ...]:
    """Return the index widths of a converted copy: wide as soon as any level of the original is."""
    widest = max(given.widths, default=32)
    return tuple(widest for _ in wanted.in_memory.levels)


def _copy_name(tensor: str, kind: TensorType, kinds: Mapping[str, TensorType], types: Mapping[str, TensorType]) -> str:
    name, count = f"{tensor}_{''.join(level.letters[:1] or level for level in kind.format.levels)}{''.join(map(str, kind.format.order))}", 1
    wish = name
    while (name in kinds and kinds[name] != kind) or name in types:
        count += 1
        name = f"{wish}_{count}"
    return name


def _each_use(
    keys: Mapping[Access, str], kinds: Mapping[str, TensorType], aliases: Mapping[str, str]
) -> Iterator[tuple[str, str, tuple[str | None, ...]]]:
    """Yield (tensor, key, index of each mode in memory) for every stored copy and every way in which it is indexed."""
    seen: set[tuple[str, tuple[str | None, ...]]] = set()
    for access, key in keys.items():
        modes = (None if mode is None else access.subscripts[mode].index for mode in kinds[key].format.plain_modes)
        indices = tuple(None if index is None else aliases.get(index, index) for index in modes)
        if (key, indices) not in seen:
            seen.add((key, indices))
            yield access.tensor, key, indices


def _operand(
    indices: tuple[str | None, ...], key: str, tensor: str, given: TensorType, kind: TensorType, viewed: Viewed
) -> OperandSpec:
    form = kind.format.in_memory
    widths, point = kind.widths[: len(form)], tensor in viewed.points
    return OperandSpec(key, viewed.source(tensor), given.format.in_memory, form, indices, kind.dtype, widths, point)


# Result


def _dense_spec(result: Access, kind: TensorType, first: ResultSpec) -> ResultSpec:
    """Return a further result, which is dense."""
    indices = tuple(subscript.index for subscript in result.subscripts)
    return ResultSpec(result.tensor, kind.format, kind.format, indices, kind.dtype, first.fill_value, None, "any", kind.widths)


def _assembled_type(program: Program, requested: TensorType, result: Access) -> TensorType:
    """Return the format in which a sparse result is written: levels in the order of the loops around its assignment."""
    if requested.format.is_dense:
        return requested
    loops = known_order(Provenance(program.relations), loops_to(program.statement, result.tensor))  # type: ignore[arg-type]
    form = assembled_format(result, requested.format, loops, on_gpu=runs_on_gpu(program.statement))
    widest = max(requested.widths, default=32)
    return TensorType(form, requested.dtype, tuple(widest for _ in form.levels))


def _assembly(parameters: Parameters, result: Access, kind: TensorType, value_type: Type, zero: Const) -> Assembly:
    """Return how a sparse result is put together; its arrays are handed back."""
    indices = tuple(result.subscripts[mode].index for mode in kind.format.order)
    extents = tuple(map(parameters.size, indices))
    assembly = assembly_of(result.tensor, kind.format, indices, extents, kind.widths, value_type, zero, parameters.names)
    for place, entry in enumerate(assembly.levels):
        for array in entry.level.arrays:
            parameters.assembled(result.tensor, array.part, place, array.type, array.name)
    parameters.assembled(result.tensor, "values", None, value_type, assembly.given)
    return assembly


def _framed(context: Context, results: tuple[Access, ...], steps: list[Step]) -> Steps:
    """Put what was hoisted around the steps, and zeros into the results where they are needed."""
    own = context.hoisted[0]
    before: list[Step] = list(own.before)
    after: list[Step] = list(own.after)
    if context.assembly is not None:
        made = bool(steps)  # nothing to count appends nothing
        assembly = replace(context.assembly, inserted=context.assembly.inserted and made, apart=context.assembly.apart and made)
        begin = [] if assembly.inserted or assembly.apart else assembly.begin(expected_entries(context))
        last = placed(assembly, context.names, in_threads=_in_threads(steps))
        return Steps((*begin, *before, *steps, *assembly.end(), *last, *after))
    for result in results:
        facts = context.facts.get(result.tensor)
        if facts is None or facts.needs_zero:
            before += _zeros(context, result, steps)
    return Steps((*before, *steps, *after))


def _zeros(context: Context, result: Access, steps: list[Step]) -> list[Step]:
    stored = context.operand_storage(result)
    zero = context.semiring.zero(stored.type)
    length: Value = ONE
    sizes = list(stored.levels)
    if context.shares is not None:
        depth = max(depth for depth, level in enumerate(stored.levels, 1) if not level.kind.full)
        length = context.size_parameter((context.key(context.shares), "length", depth - 1), f"{context.key(context.shares)}{depth}_length")
        sizes = sizes[depth:]
    for level in sizes:
        length = multiply(length, level.extent)
    if not _in_threads(steps):
        return [Fill(stored.values, ZERO, length, zero)]
    place = Var(context.names.permanent("place"), ZERO.type)
    return [For(place, ZERO, length, Steps((Store(stored.values, place, zero),)), Parallel("static"))]


def _in_threads(steps: list[Step]) -> bool:
    """Whether threads run any of the loops."""
    return any(isinstance(node.tag, Parallel) for step in steps for node in nodes_of(step, For))


def _function(context: Context, body: Steps) -> Function:
    """Return the kernel with the parameters that its body uses."""
    used = {node.array for node in nodes_of(body, Load, Store, ArrayRef, Fill, Prefetch, Free)}
    used |= {node.parameter for node in nodes_of(body, Publish)} | {node.name for node in nodes_of(body, Var)}
    arrays = tuple(parameter for parameter in context.parameters.arrays.values() if parameter.name in used or parameter.assembled)
    sizes = [parameter for parameter in context.parameters.sizes.values() if parameter.name in used]
    results = [array for array in arrays if array.writable and not array.assembled]
    rows = [array.source[0] for array in results if written_in_rows(body, array.name) or added_in_rows(body, array.name)]
    sizes += [SizeParameter(context.names.permanent(f"{tensor}_{PAST_CACHES}"), (tensor, PAST_CACHES, 0)) for tensor in rows]
    return Function("st_kernel", arrays, tuple(sizes), body)
