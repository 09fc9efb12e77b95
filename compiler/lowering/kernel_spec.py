"""What a lowered kernel expects and gives: the border between lowering and everything that runs kernels."""

from __future__ import annotations

from ..concrete.ranges import Ranges
from ..format import Format
from ..frozen import frozen
from ..ir.nodes import Function


@frozen
class OperandSpec:
    """One operand as the kernel wants it.

    Attributes:
        key: the name used in ``ArrayParameter.source``; the tensor's name, or another one for a second, differently
            stored copy of the same tensor.
        tensor: the name that the user gave.
        given: the format in which the operand is handed over.
        format: the format that the kernel reads; where it differs from ``given`` the operand is converted first.
        indices: the index that names the extent of each mode, None where a subscript is not a plain index.
        dtype: numpy dtype name of the values.
        widths: bits (32 or 64) of the positions and coordinates of each level.
        point: whether it is one entry that nobody gives, the identity of the multiply at coordinate 0 (``concrete.affine``).
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
        requested: the format that the caller gets; where it differs the result is converted afterwards.
        indices: the index of each mode; extents give the shape.
        shares: key of the operand whose index arrays are also those of the result, or None.
        initial: what every entry of a dense result holds before the kernel runs: "zero" (the fill value), or "any" where
            the kernel writes every entry.
        widths: bits (32 or 64) of the positions and coordinates of each level.
        copies: whether the result is the operand ``shares``, entry by entry, with its modes in another order: converting the
            operand gives it without the kernel.
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
        operands: in the order of the expression.
        result: how the result is made.
        extents: extents that are compile-time constants, by index; operands with others are refused.
        indices: every original index of the expression.
        build: (compiler or None, flags or None) that the schedule asks for.
        relations: provenance of the program, whose bounds operands must keep.
        workspaces: the arrays that hold the values of the program's workspaces.
        ranges: how far indices of compound subscripts go; None where there are none.
        unit: the identity of the multiply, as the kernel computes.
        also: further results, all dense.
        expression, schedule, loop_nest: texts for people and for ``Kernel.schedule`` and ``Kernel.loop_nest``.
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
