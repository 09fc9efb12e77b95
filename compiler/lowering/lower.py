"""Lowers a scheduled program to a kernel: its loop IR, and its specification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..concrete.affine import Viewed
from ..concrete.annihilation import doing_something
from ..concrete.mirrored import mirrored
from ..concrete.nodes import Program
from ..concrete.printer import loop_nest
from ..concrete.provenance import Provenance
from ..frozen import frozen
from ..ir.names import Names
from ..notation.nodes import Access, accesses
from .accumulate import accumulated
from .assembly import Assembly
from .collect import collected
from .context import Context
from .framing import framed, kernel_function
from .index_aliases import index_aliases
from .insertion import is_inserted
from .kernel_spec import KernelSpec, OperandSpec, ResultSpec
from .operands import each_use, operand_keys, operand_spec, read_format
from .parameters import Parameters, Sizes
from .patterns import is_copy, shared_type_of
from .pieces import is_appended_in_pieces
from .requests import Holds, taken
from .results import assembled_type, dense_spec, result_assembly
from .scope import Scope
from .semiring import Semiring, identity
from .signature import arrays_of, sizes_of
from .statements import lower_statement
from .tensor_types import TensorType, loop_type


@frozen(eq=False)
class _Ready:
    """A program that is ready to be lowered, with facts about its tensors.

    Attributes:
        program: the program that is lowered.
        result: the left side.
        requested: the type of the result that the caller gets.
        made: the type in which the kernel writes it.
        shares: the operand whose pattern the result shares.
        keys: for every operand access, the name of the stored copy that it reads.
        kinds: the type of every copy.
        aliases: for indices that are not in the expression, the index of the expression with the same range.
        constants: the extents that are compile-time constants, by index.
    """

    program: Program
    result: Access
    requested: TensorType
    made: TensorType
    shares: Access | None
    keys: Mapping[Access, str]
    kinds: Mapping[str, TensorType]
    aliases: Mapping[str, str]
    constants: Mapping[str, int]


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
        types: the types of the given operands and of the requested result, by name.
        result: the left side.
        sources: the name in the expression of every operand.
        extents: compile-time constant extents by index.
        viewed: the expression with plain subscripts; its indices name the extents.
        expression, schedule: texts that the specification keeps for messages.
        also: further results that the program writes, all dense.
        wide: whether extents need coordinates of 64 bits, so that no array can cover the range of an index.

    Raises:
        ScheduleError: the schedule needs loops that cannot be made.
    """
    ready = _made_ready(program, types, result, sources=sources, extents=extents, viewed=viewed, also=also)
    program = ready.program
    context = _context(ready, types, also, wide=wide)
    kept = doing_something(program.statement, program.add)
    statement = program.statement if kept is None else accumulated(context, kept)
    steps = [] if kept is None else context.lower(statement, Scope(assembly=context.assembly))
    held, steps = taken(steps, Holds)
    function = kernel_function(context, framed(context, (result, *also), statement, steps))
    first, original = _result_spec(ready, context, viewed), viewed.assignment
    indices = tuple(dict.fromkeys(name for access in (original.target, *accesses(original.value)) for name in access.indices))
    scheduled = [workspace.name for workspace in program.workspaces]
    return KernelSpec(
        function,
        _operand_specs(ready, types, sources, viewed),
        first,
        tuple(sorted((name, extent) for name, extent in ready.constants.items() if name in indices)),
        indices,
        program.build,
        expression,
        schedule,
        loop_nest(statement, viewed.as_written),
        program.relations,
        tuple(dict.fromkeys(request.array for request in held if request.workspace in scheduled)),
        viewed.ranges,
        identity(context.semiring.multiply_on(context.value_type), context.value_type),
        tuple(dense_spec(other, types[other.tensor], first) for other in also),
    )


def _made_ready(
    program: Program, types: Mapping[str, TensorType], result: Access, *, sources: Mapping[str, str], extents: Mapping[str, int],
    viewed: Viewed, also: tuple[Access, ...],
) -> _Ready:  # fmt: skip
    """Choose how the tensors of a program are stored, and rewrite the program accordingly; see ``lower``."""
    program = mirrored(program, {name: kind.format for name, kind in types.items()})
    keys, kinds = operand_keys(program, types, {result.tensor, *(other.tensor for other in also)})
    requested = types[result.tensor]
    shares, shared_type = shared_type_of(program, result, requested, kinds, keys)
    if shares is None and not requested.format.is_dense:
        program = collected(program, result, requested.format, lambda access: read_format(access, keys, kinds))
    aliases = index_aliases(program, viewed.assignment, sources)
    constants = {**extents, **Provenance(program.relations).fixed_extents()}  # type: ignore[arg-type]  # stored as objects in Program
    constants |= {name: constants[index] for name, index in aliases.items() if index in constants}
    made = shared_type if shares is not None else assembled_type(program, requested, result)
    return _Ready(program, result, requested, made, shares, keys, kinds, aliases, constants)


def _context(ready: _Ready, given: Mapping[str, TensorType], also: tuple[Access, ...], *, wide: bool) -> Context:
    """Begin a kernel; ``also`` are further results."""
    program, keys, results, names = ready.program, ready.keys, (ready.result, *also), Names()
    types = {**ready.kinds, **{other.tensor: given[other.tensor] for other in also}, ready.result.tensor: ready.made}
    sizes = sizes_of(program, types, keys, results, ready.constants, ready.aliases, names)
    assembly = _assembly(ready, sizes, names) if ready.shares is None and not ready.made.format.is_dense else None
    parameters = Parameters(arrays_of(program, types, keys, results, assembly, names), sizes)
    return Context(
        program, types, ready.result, keys, loop_type(ready.requested.dtype), parameters, names, lower_statement, assembly=assembly,
        shares=ready.shares, wide=wide, also=frozenset(other.tensor for other in also),
    )  # fmt: skip


def _assembly(ready: _Ready, sizes: Sizes, names: Names) -> Assembly:
    """Return how a sparse result is assembled that shares no pattern."""
    program, result, value_type = ready.program, ready.result, loop_type(ready.requested.dtype)
    zero = Semiring(program.add, program.multiply).zero(value_type)
    assembly = result_assembly(sizes, names, result, ready.made, value_type, zero)
    if assembly.last < 0:  # there is nothing to count, and no order
        return assembly
    return replace(assembly, inserted=is_inserted(program, result.tensor), apart=is_appended_in_pieces(program, result.tensor))


def _result_spec(ready: _Ready, context: Context, viewed: Viewed) -> ResultSpec:
    """Return how the first result is made."""
    result, made, requested, shares = ready.result, ready.made, ready.requested, ready.shares
    indices = tuple(subscript.index for subscript in result.subscripts)
    fill = context.semiring.zero(context.value_type).value
    key = None if shares is None else ready.keys[shares]
    turned = made.format.order != requested.format.order
    copies = key is not None and turned and is_copy(viewed.assignment, ready.kinds[key], requested)
    return ResultSpec(result.tensor, made.format, requested.format, indices, requested.dtype, fill, key, "any", made.widths, copies=copies)


def _operand_specs(ready: _Ready, types: Mapping[str, TensorType], sources: Mapping[str, str], viewed: Viewed) -> tuple[OperandSpec, ...]:
    """Return the operands in the order of the expression, once for every combination of stored copy and indices."""
    return tuple(
        operand_spec(indices, key, sources[name], types[name], ready.kinds[key], viewed)
        for name, key, indices in each_use(ready.keys, ready.kinds, ready.aliases)
    )
