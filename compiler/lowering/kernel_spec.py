"""The specification of a lowered kernel: what it expects and returns. It is the interface between lowering and running kernels."""

from __future__ import annotations

from ..concrete.ranges import Ranges
from ..format import Format
from ..frozen import frozen
from ..ir.nodes import Function


@frozen
class OperandSpec:
    """One operand as the kernel expects it.

    Attributes:
        key: the name used in ``ArrayParameter.source``; the tensor's name, or another one for a second, differently
            stored copy of the same tensor.
        tensor: the name that the user gave.
        given: the format in which the caller gives the operand.
        format: the format that the kernel reads; if it differs from ``given``, the operand is converted first.
        indices: the index that names the extent of each mode, None where a subscript is not a plain index.
        dtype: numpy dtype name of the values.
        widths: bits (32 or 64) of the positions and coordinates of each level.
        point: whether it is the compiler's own operand with one entry, the identity of multiplication at coordinate 0
            (``concrete.affine``).
    """

    key: str
    tensor: str
    given: Format
    format: Format
    indices: tuple[str | None, ...]
    dtype: str
    widths: tuple[int, ...]
    point: bool = False


@frozen
class ResultSpec:
    """The result as the kernel makes it.

    Attributes:
        format: the format that the kernel writes (``concrete.assembled.assembled_format``).
        requested: the format that the caller gets; if it differs, the result is converted afterwards.
        indices: the index of each mode; extents give the shape.
        shares: key of the operand whose index arrays are also those of the result, or None.
        initial: the required value of a dense result before the kernel runs: "zero" (the fill value), or "any" if
            the kernel writes every entry.
        widths: bits (32 or 64) of the positions and coordinates of each level.
        copies: whether the result has the entries of the operand ``shares`` with its modes in another order, so that converting the
            operand gives the result without running the kernel.
    """

    name: str
    format: Format
    requested: Format
    indices: tuple[str, ...]
    dtype: str
    fill_value: int | float | bool
    shares: str | None
    initial: str
    widths: tuple[int, ...]
    copies: bool = False


@frozen
class KernelSpec:
    """A lowered kernel.

    Attributes:
        function: the loop IR.
        operands: the operands in the order of the expression.
        result: how the result is made.
        extents: extents that are compile-time constants, by index; operands with other extents are refused.
        indices: every original index of the expression.
        build: (compiler or None, flags or None) that the schedule asks for.
        relations: the provenance of the program; operands must keep its bounds.
        workspaces: the arrays that hold the values of the program's workspaces.
        ranges: the ranges of indices of compound subscripts; None if there are none.
        unit: the identity of multiplication in the kernel's type.
        also: further results, all dense.
        expression, schedule, loop_nest: texts for messages, and for ``Kernel.schedule`` and ``Kernel.loop_nest``.
    """

    function: Function
    operands: tuple[OperandSpec, ...]
    result: ResultSpec
    extents: tuple[tuple[str, int], ...]
    indices: tuple[str, ...]
    build: tuple[str | None, str | None]
    expression: str
    schedule: str
    loop_nest: str
    relations: tuple[object, ...] = ()
    workspaces: tuple[str, ...] = ()
    ranges: Ranges | None = None
    unit: int | float | bool = 1
    also: tuple[ResultSpec, ...] = ()

    @property
    def results(self) -> tuple[ResultSpec, ...]:
        """All results."""
        return (self.result, *self.also)
