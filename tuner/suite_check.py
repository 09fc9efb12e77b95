"""Checks of a suite before any input is loaded: its expressions, operands, formats and names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ..compiler.concrete.check import check_semiring
from ..compiler.errors import DataError, SparsetuneError
from ..compiler.format import parse_format
from ..compiler.notation.nodes import accesses
from ..compiler.notation.parser import parse
from ..compiler.units import HARDWARE
from .nightly.probes import PROBES
from .toml_table import nearest

if TYPE_CHECKING:
    from .config import Suite, SuiteKernel

Found = TypeVar("Found")


def check_suite(suite: Suite, where: str) -> None:
    """Refuse a suite of which some item could never run.

    Args:
        suite: with its kernels and the inputs that were found.
        where: its file, with which messages begin.

    Raises:
        DataError: the message names file, table and key.
    """
    if suite.target not in HARDWARE:
        near = nearest(suite.target, HARDWARE)
        raise DataError(f"{where}, [suite]: unknown target '{suite.target}'{near}; targets are {', '.join(HARDWARE)}")
    names = [entry.name for entry in suite.inputs]
    for kernel in suite.kernels:
        _check_kernel(kernel, f"{where}, kernel '{kernel.name}'")
        for name in kernel.inputs:
            if name not in names:
                raise DataError(f"{where}, kernel '{kernel.name}': unknown input '{name}'{nearest(name, names)}")
    probes = [probe.name for probe in PROBES]
    for name in suite.probes:
        if name not in probes:
            raise DataError(f"{where}, [suite]: unknown probe '{name}'{nearest(name, probes)}; probes are {', '.join(probes)}")
    if not suite.kernels or not suite.inputs:
        raise DataError(f"{where}: a suite has at least one [[kernel]] and one [[input]], [[files]] or [[select]]")


def _check_kernel(kernel: SuiteKernel, where: str) -> None:
    assignment = _said(lambda: parse(kernel.expression), where, "expression")
    read = accesses(assignment.value)
    known = {access.tensor: len(access.subscripts) for access in read}
    if kernel.operand not in known:
        raise DataError(f"{where}: operand '{kernel.operand}' is not in the expression{nearest(kernel.operand, known)}")
    if known[kernel.operand] != kernel.order:
        raise DataError(f"{where}: order is {kernel.order}, but '{kernel.operand}' has {known[kernel.operand]} modes in the expression")
    add, multiply = kernel.semiring or ("+", "*")
    _said(lambda: check_semiring(assignment.value, add, assignment, multiply), where, "semiring")
    _said(lambda: parse_format(kernel.format, kernel.order), where, "format")
    _said(lambda: parse_format(kernel.output_format, len(assignment.target.subscripts)), where, "output_format")
    indices = [*dict.fromkeys(name for access in (assignment.target, *read) for name in access.indices)]
    for index in kernel.dims:
        if index not in indices:
            raise DataError(f"{where}, [dims]: '{index}' is no index of the expression, which has {', '.join(indices)}")


def _said(read: Callable[[], Found], where: str, key: str) -> Found:
    """Return what ``read`` makes of a key's value. Raises ``DataError``, whose message names the key, if the value has no meaning."""
    try:
        return read()
    except SparsetuneError as error:
        raise DataError(f"{where}: {key}: {str(error).splitlines()[0]}") from None
