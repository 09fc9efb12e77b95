"""Kernels to be called later: ``compile``."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ...compiler.format import Format
    from ...compiler.kernel import Kernel
    from ...compiler.schedule.schedule import Schedule
    from .operands import Boundary, Shape


def compile(  # noqa: A001  # the contract's name
    expression: str,
    formats: Mapping[str, Format | str | None] | None = None,
    extents: Mapping[str, int] | None = None,
    schedule: Schedule | str | None = None,
    dtype: DTypeLike | None = None,
    target: str = "cpu",
    *,
    semiring: tuple[str, str] | None = None,
    convert: str = "auto",
    arch: str | None = None,
    threads: int | None = None,
    database: str | PathLike[str] | None = None,
    shape: Shape | None = None,
    boundary: Boundary = None,
    output_pattern: str | None = None,
) -> Kernel:
    """Compile an expression for formats, a schedule and a target.

    Args:
        expression: index notation, ``"y(i) = A(i,j) * x(j)"``.
        formats: format of every tensor that is not dense, the result included.
        extents: extents that become compile-time constants, by index.
        schedule: None or "default", a text (DESIGN 4.3), a ``Schedule``, or "auto": what ``evaluate`` would use, decided
            at the first call or binding, and kept; small dense extents are compiled in then.
        dtype: of the values; None: ``numpy.result_type`` of the operands at the first call.
        target: "cpu"; "cuda": an NVIDIA GPU; "interpreter": Python, which checks every access and counts operations; "cuda-executor": the
            code for a GPU, run thread by thread in Python and checked in the same way.
        semiring: (add, multiply), such as ("min", "+"); None: ("+", "*").
        convert: "auto", or "never" to refuse schedules that convert operands.
        arch: architecture of the GPU that is meant, such as "sm_90", which need not be here; None: this machine's.
        threads: how many run at most where a call does not say; None: $SPARSETUNE_THREADS, or the cores at hand.
        database: where "auto" looks: path or URL; None: $SPARSETUNE_DATABASE or the default file.
        shape: as extents; the whole shape of the result may stand under its name.
        boundary: what compound subscripts read outside of their operand, as for ``evaluate``.
        output_pattern: the access of an operand whose pattern the result has, as for ``evaluate``; the operand is given at each call, and
            its format need not be told.

    Raises:
        ExpressionError, FormatError, ScheduleError: what is asked for has no meaning; the first line says where.
        BuildError: it needs a GPU, this machine has none, and arch names none.
    """
    from ...compiler.uncollected import uncollected

    with uncollected():
        from ...compiler.pipeline import compile_kernel

    derived = None
    if output_pattern is not None:
        from ...compiler.output_pattern import restriction

        found = restriction(expression, output_pattern, semiring, dtype)
        expression, formats, derived = found.expression, found.formats({} if formats is None else formats), found.operands
    is_chosen = isinstance(schedule, str) and schedule == "auto"
    wish = None if is_chosen else schedule
    made = compile_kernel(
        expression, formats, extents, wish, dtype, target, semiring=semiring, convert=convert, arch=arch, threads=threads,
        shape=shape, boundary=boundary, derived=derived,
    )  # fmt: skip
    if not is_chosen:
        return made
    from ..automatic import AutomaticKernel

    return AutomaticKernel(made, convert, database, boundary)
