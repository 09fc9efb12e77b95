"""The result that candidates are compared with, and how it is known to be right.

One schedule, usually the default one, is right on a sample cut out of the operands, by the definition of the expression (``verify``,
``windows``). Its result on all of them is the reference; the same kernel's result on absolute operands bounds what rounding may do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ...compiler.concrete.affine import Viewed, is_affine, view_subscripts
from ...compiler.concrete.check import formats_of
from ...compiler.errors import FormatError, SparsetuneError
from ...compiler.notation.functions import has_functions
from ...compiler.notation.nodes import Assignment
from ...compiler.notation.parser import parse
from ...compiler.notation.printer import show_assignment
from ...compiler.storage.construct import tensor
from ...compiler.storage.tensor import Tensor
from ..extents import all_extents
from ..kernels import Task, free_extents
from . import handover
from .oracle import absolute
from .verify import Reference, Result, dense_difference, oracle_difference, reduction_length, sampled_problem, tolerance_factor
from .windows import as_read, cut_out

RunOn = Callable[[str, Mapping[str, Tensor], Task], Result]
"""Runs a schedule on operands, for a task."""

_ORACLE_ENTRIES = 5_000_000  # stored entries up to which a sample is cut out of the operands


@dataclass(frozen=True)
class Referee:
    """Keeps the reference result of one problem, and checks against the definition the schedule that makes it.

    Attributes:
        folder: where the reference result is kept.
        task, operands: the problem.
        run: runs a schedule, also on other operands than these.
    """

    folder: Path
    task: Task
    operands: Mapping[str, Tensor]
    run: RunOn

    def wrong_on_sample(self, schedule: str) -> str | None:
        """Return in what a schedule's result on a sample differs from the definition; None: in nothing, or no sample can be cut out."""
        assignment, task = parse(self.task.expression), self.task
        if sum(len(operand.values) for operand in self.operands.values() if not operand.format.is_dense) > _ORACLE_ENTRIES:
            return None
        if is_affine(assignment):
            return self._wrong_on_window(assignment, schedule)
        try:
            operands, extents = sampled_problem(assignment, self.operands, task.extents)
            result = self.run(schedule, operands, replace(task, extents=extents))
        except FormatError:  # a sample of a symmetric matrix is not symmetric; the whole result is compared with the reference later
            return None
        return oracle_difference(assignment, result, operands, extents, task.semiring, task.dtype)

    def _wrong_on_window(self, assignment: Assignment, schedule: str) -> str | None:
        """Do what ``wrong_on_sample`` does for an assignment with compound subscripts."""
        plain, known, semiring = self._plain(assignment), self.task.extents, self.task.semiring
        if (found := cut_out(plain, assignment, self.operands, known)) is None:
            return None
        operands, known = found
        result = self.run(schedule, operands, replace(self.task, extents=known))
        extents = all_extents(plain, known, {name: operand.shape for name, operand in operands.items()})
        dense, places = as_read(plain, operands, extents, semiring)
        return dense_difference(plain.assignment, result, dense, places, extents, semiring, self.task.dtype)

    def keep(self, result: Result, schedule: str) -> None:
        """Store a schedule's result as the reference, and what it gives for absolute operands."""
        self.folder.mkdir(exist_ok=True)
        stored = {"result": _as_tensor(result)}
        if (bound := self._bound(schedule)) is not None:
            stored["bound"] = _as_tensor(bound)
        handover.save(self.folder, stored)

    def _bound(self, schedule: str) -> Result | None:
        """Return the result of the expression without differences on absolute operands; None where that is the expression itself on its
        own operands."""
        assignment = parse(self.task.expression)
        if not self._is_bounded(assignment):
            return None
        bounding = absolute(assignment)
        magnitudes = {name: _absolute(operand) for name, operand in self.operands.items()}
        if bounding == assignment and all(magnitudes[name] is operand for name, operand in self.operands.items()):
            return None
        task = replace(self.task, expression=show_assignment(bounding))
        try:
            return self.run(schedule, magnitudes, task)
        except SparsetuneError:  # a schedule may name parts of the expression that change with it
            return self.run("", magnitudes, task)

    def reference(self) -> Reference:
        """Return the reference that was stored."""
        assignment, stored = parse(self.task.expression), handover.load(self.folder)
        result, bound = (_as_result(stored[name]) for name in ("result", "bound" if "bound" in stored else "result"))
        shapes = {name: operand.shape for name, operand in self.operands.items()}
        extents = all_extents(self._plain(assignment), self.task.extents, shapes)
        length = reduction_length(assignment, self.operands, extents)
        return Reference(result, bound if self._is_bounded(assignment) else None, tolerance_factor(stored["result"].dtype, length))

    def _is_bounded(self, assignment: Assignment) -> bool:
        """Whether absolute operands bound what rounding may do to a value."""
        return not has_functions(assignment.value) and self.task.semiring == ("+", "*")

    def _plain(self, assignment: Assignment) -> Viewed:
        known = formats_of(assignment, self.task.formats)
        return view_subscripts(assignment, known, free_extents(assignment, self.task.extents), self.task.boundary)


def _absolute(operand: Tensor) -> Tensor:
    """Return the operand with absolute values, itself where it has no others."""
    if not np.any(operand.values < 0) and not np.any(np.isnan(operand.values)):
        return operand
    return Tensor.made(operand.shape, operand.format, operand.levels, np.abs(operand.values), operand.fill_value)


def _as_tensor(result: Result) -> Tensor:
    return result if isinstance(result, Tensor) else tensor(np.array(result))


def _as_result(stored: Tensor) -> Result:
    return stored.values.reshape(stored.shape) if stored.format.is_dense else stored
