"""The result of a kernel: the format in which it is written, its assembly, and its specification."""

from __future__ import annotations

from ..concrete.assembled import assembled_format, known_order, loops_to
from ..concrete.nodes import Program, runs_on_gpu
from ..concrete.provenance import Provenance
from ..ir.names import Names
from ..ir.nodes import BOOL, I64, Const, Type, Var
from ..notation.nodes import Access
from .assembled_levels import assembled_levels
from .assembly import Assembly
from .kernel_spec import ResultSpec
from .parameters import Sizes
from .tensor_types import TensorType


def dense_spec(result: Access, kind: TensorType, first: ResultSpec) -> ResultSpec:
    """Return the specification of a further result, which is dense."""
    indices = tuple(subscript.index for subscript in result.subscripts)
    return ResultSpec(result.tensor, kind.format, kind.format, indices, kind.dtype, first.fill_value, None, "any", kind.widths)


def assembled_type(program: Program, requested: TensorType, result: Access) -> TensorType:
    """Return the format in which a sparse result is written: levels in the order of the loops around its assignment."""
    if requested.format.is_dense:
        return requested
    loops = known_order(Provenance(program.relations), loops_to(program.statement, result.tensor))  # type: ignore[arg-type]
    form = assembled_format(result, requested.format, loops, on_gpu=runs_on_gpu(program))
    widest = max(requested.widths, default=32)
    return TensorType(form, requested.dtype, tuple(widest for _ in form.levels))


def result_assembly(sizes: Sizes, names: Names, result: Access, kind: TensorType, value_type: Type, zero: Const) -> Assembly:
    """Return how a sparse result is assembled, with names for its arrays and variables.

    Args:
        sizes, names: those of the kernel; the names are added to.
        result: the left side.
        kind: how it is written (``concrete.assembled.written_kinds``).
        value_type, zero: the type of its values, and the value of components that are not stored.
    """
    name, form = result.tensor, kind.format
    indices = tuple(result.subscripts[mode].index for mode in form.order)
    levels = assembled_levels(name, form, indices, tuple(map(sizes.of, indices)), kind.widths, names)
    given = names.permanent(f"{name}_vals")
    values = names.permanent(f"{name}_listed") if any(level.places for level in form.levels) else given
    capacity, used = Var(names.permanent(f"{name}_capacity"), I64), Var(names.permanent(f"{name}_used"), BOOL)
    return Assembly(name, levels, values, given, capacity, used, value_type, zero)
