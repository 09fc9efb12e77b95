"""What a kernel may take: the arrays of its operands and results, and the sizes that lowering may ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from ..concrete.nodes import Forall, Program, Stmt, Where, assignments, reads
from ..ir.names import Names
from ..ir.nodes import I32, I64, STEP, ArrayParameter, SizeParameter, Type
from ..notation.nodes import Access
from .assembly import Assembly
from .parameters import THREADS, ArraySource, Sizes, SizeSource
from .tensor_types import TensorType, loop_type


def sizes_of(
    program: Program, kinds: Mapping[str, TensorType], keys: Mapping[Access, str], results: Sequence[Access],
    extents: Mapping[str, int], aliases: Mapping[str, str], names: Names,
) -> Sizes:  # fmt: skip
    """Return the sizes that a kernel may take: extents of indices, in the order of the arrays, then what is known of stored copies.

    Args:
        program: scheduled concrete notation.
        kinds: the types of every stored copy, by key, and of the results.
        keys: the key of every operand access.
        results: the left sides.
        extents: compile-time constant extents by index.
        aliases: for indices that are not in the expression, the index of the expression with the same range.
        names: the names of the kernel, to which those of the sizes are added.
    """
    sparse = [result for result in results if not kinds[result.tensor].format.is_dense]
    inner = [*(assign.target for assign in assignments(program.statement)), *reads(program.statement)]
    indices = chain.from_iterable(_by_level(access, kinds, keys) for access in (*sparse, *in_order(program.statement), *results, *inner))
    named = dict.fromkeys(aliases.get(index, index) for index in indices if index not in extents)
    wishes: dict[SizeSource, str] = {("index", name): f"{name}_size" for name in named}
    for key in dict.fromkeys(keys.values()):
        form = kinds[key].format
        if form.in_memory is not form:  # a view, whose compound subscripts are compared with extents of the tensor behind it
            wishes |= {(key, "extent", mode): f"{key}{mode + 1}_extent" for mode in form.in_memory.order}
        places = [form.stored_level(level) for level, kind in enumerate(form.levels) if not kind.full]
        wishes |= {(key, "length", place): f"{key}{place + 1}_length" for place in places}
        if kinds[key].apart:
            wishes[key, STEP, len(form) - 1] = f"{key}_step"
    wishes[THREADS] = "threads"
    return Sizes({source: SizeParameter(names.permanent(wish), source) for source, wish in wishes.items()}, extents, aliases)


def _by_level(access: Access, kinds: Mapping[str, TensorType], keys: Mapping[Access, str]) -> Iterator[str]:
    """Yield the indices of an access, those of a stored tensor in the order of its levels."""
    kind = kinds.get(keys.get(access, access.tensor))
    modes = range(len(access.subscripts)) if kind is None else kind.format.order
    return (access.subscripts[mode].index for mode in modes)


def arrays_of(
    program: Program, kinds: Mapping[str, TensorType], keys: Mapping[Access, str], results: Sequence[Access], assembly: Assembly | None,
    names: Names,
) -> dict[ArraySource, ArrayParameter]:  # fmt: skip
    """Return the arrays that a kernel may take, by source: those that it makes for an assembled result, then those of its operands in the
    order in which they are read, then those of its results; see ``sizes_of``."""
    arrays: dict[ArraySource, ArrayParameter] = {}
    if assembly is not None:
        arrays |= {array.source: array for array in _assembled(results[0].tensor, assembly)}
    read = dict.fromkeys(keys[access] for access in in_order(program.statement) if access in keys)
    for key in (*read, *(result.tensor for result in results)):
        for source, wish, kind in _stored(key, kinds[key]):
            if source not in arrays:
                arrays[source] = ArrayParameter(names.permanent(wish), kind, source, writable=key not in read and source[1] == "values")
    return arrays


def _stored(key: str, kind: TensorType) -> Iterator[tuple[ArraySource, str, Type]]:
    """Yield the source, the wished name and the type of each array of a stored tensor."""
    for level, what in enumerate(kind.format.levels):
        place = kind.format.stored_level(level)
        for part, own in what.types(I32 if kind.widths[place] == 32 else I64).items():
            yield (key, part, place), f"{key}{place + 1}_{part}", own
    yield (key, "values"), f"{key}_vals", loop_type(kind.dtype)


def _assembled(tensor: str, assembly: Assembly) -> Iterator[ArrayParameter]:
    """Yield the arrays of an assembled result, which the kernel makes and hands to its caller."""
    for place, entry in enumerate(assembly.levels):
        for array in entry.level.arrays:
            yield ArrayParameter(f"{array.name}_out", array.type, (tensor, array.part, place), writable=True, assembled=True)
    yield ArrayParameter(f"{assembly.given}_out", assembly.value_type, (tensor, "values"), writable=True, assembled=True)


def in_order(statement: Stmt) -> tuple[Access, ...]:
    """Return the accesses that a statement reads, producers before consumers."""
    while isinstance(statement, Forall):
        statement = statement.body
    if isinstance(statement, Where):
        return (*in_order(statement.producer), *in_order(statement.consumer))
    return tuple(access for child in statement.children for access in in_order(child)) if statement.children else statement.operands
