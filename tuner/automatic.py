"""Kernels and functions whose schedule is decided when operands come: ``compile(schedule="auto")`` and ``autotune``."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from functools import cached_property, update_wrapper
from typing import Any

from ..compiler.build.kernel import TypedKernel
from ..compiler.concrete.affine import Boundary
from ..compiler.concrete.given import constant_extents
from ..compiler.errors import ExpressionError
from ..compiler.evaluate import evaluate, or_default
from ..compiler.kernel import Kernel
from ..compiler.notation.parser import parse
from ..compiler.output_pattern import restriction
from ..compiler.schedule.schedule import Schedule
from ..compiler.shown import shown
from ..compiler.storage.recalled import recalled
from .asking import choose, lookup
from .extents import known_extents
from .kept_kernels import kept_kernel

TUNE = "SPARSETUNE_TUNE"
"""The environment variable that makes ``autotune`` tune where it is 1."""


class AutomaticKernel(Kernel):
    """A kernel with the schedule that ``evaluate`` would use, decided at the first call or binding, and kept from then on.

    Until then it has the default schedule. Small extents of dense operands are compiled in, so that operands with others have code of
    their own.
    """

    def __init__(self, default: Kernel, convert: str, database: str | os.PathLike[str] | None, boundary: Boundary = None) -> None:
        super().__init__(
            default.assignment, default.formats, default.extents, default.concretized, default.schedule, default.dtype, convert,
            default.target, default.threads, default.arch, default.viewed, default.derived,
        )  # fmt: skip
        self._convert, self._database, self._boundary, self._decided = convert, database, boundary, False
        self._compiled: dict[tuple[tuple[str, int], ...], Kernel] = {}

    def specialised(
        self, operands: Mapping[str, Any], extents: Mapping[str, int] | None = None, once: bool = False, threads: int | None = None
    ) -> tuple[TypedKernel, dict[str, Any]]:
        """Return the kernel for some operands, and these in the formats that it reads; the first ones decide the schedule, with the threads
        that will run.

        Operands to be bound are replaced by the tensors remembered for them (``recalled``), so that facts about a pattern are found once.
        """
        if operands.keys() != set(self._operand_names):
            return super().specialised(operands, extents, once)  # it says what is missing
        known = operands if self._decided or once else {name: recalled(data) for name, data in operands.items()}
        ready = {name: self._ready(name, data, once) for name, data in known.items()}
        constants = {**self._constants(ready, extents or {}), **self.extents}
        if not self._decided:
            self._decide(ready, constants, extents, threads)
        return self._compile(self.schedule, constants).specialised(ready, extents, once)

    def _constants(self, ready: Mapping[str, Any], extents: Mapping[str, int]) -> dict[str, int]:
        """Return the extents to compile in: as ``evaluate`` does."""
        shapes = {name: tuple(getattr(data, "shape", ())) for name, data in ready.items()}
        if any(len(shape) != len(self.formats[name]) for name, shape in shapes.items()):
            return {}
        return constant_extents(self.assignment, self.formats, known_extents(self.assignment, shapes, extents))

    def _decide(
        self, ready: Mapping[str, Any], constants: Mapping[str, int], extents: Mapping[str, int] | None, threads: int | None
    ) -> None:
        form = self.formats[self.assignment.target.tensor]
        shape = {**self.extents, **(extents or {})}
        meant = {"semiring": self.semiring, "dtype": self.dtype, "shape": shape, "boundary": self._boundary, "arch": self.arch}
        schedule = choose(self.assignment.text, ready, form, self.target, threads, self._database, **meant)

        def prepared(schedule: Schedule) -> Schedule:
            self._compile(schedule, constants).specialised(ready, extents)[0].load()
            return schedule

        self.schedule = or_default(self.assignment.text, schedule, prepared)
        self.concretized = self._compile(self.schedule, constants).concretized
        self._decided = True
        self._kernels.clear()
        self.__dict__.pop("default_kernel", None)

    def _compile(self, schedule: Schedule, constants: Mapping[str, int]) -> Kernel:
        key = tuple(sorted(constants.items()))
        found = self._compiled.get(key)
        if found is None or found.schedule != schedule:
            found = self._compiled[key] = kept_kernel(
                self.assignment.text, self.formats, constants, schedule, self.dtype, self.target, self.semiring, self._convert,
                self._boundary, arch=self.arch,
            )  # fmt: skip
        return found


class AutoTuned:
    """A function of operands that computes an expression as ``evaluate`` does, and tunes first where it is asked to.

    Operands come by name, or in the order of the parameters of the function that was decorated.

    Attributes:
        expression: index notation.
        trials: how many schedules a campaign measures at most.
    """

    def __init__(self, expression: str, trials: int, is_tuning: bool, options: Mapping[str, Any]) -> None:
        parse(expression)
        self.expression, self.trials, self._options = expression, trials, dict(options)
        pattern = options.get("output_pattern")
        self._restriction = restriction(expression, pattern, options["semiring"], options["dtype"]) if pattern is not None else None
        self._is_tuning, self._parameters = is_tuning, None

    def of(self, function: Callable[..., Any]) -> AutoTuned:
        """Return this object with the name, the documentation and the parameters of a function."""
        self._parameters = inspect.signature(function)
        update_wrapper(self, function)
        return self

    @cached_property
    def _tunes(self) -> bool:
        return self._is_tuning or os.environ.get(TUNE, "") == "1"

    def __call__(self, *operands: Any, threads: int | None = None, out: Any = None, **named: Any) -> Any:
        """Compute the expression.

        Args:
            operands: in the order of the decorated function's parameters, if there is one.
            threads: how many run at most, and into how many shares work is cut; None: $SPARSETUNE_THREADS, or the cores at hand.
            out: takes a dense result, and is returned.
            named: operands by name.
        """
        given, options, expression = self._named(operands, named), self._options, self.expression
        if (kept := self._restriction) is not None:
            form = options["output_format"]
            expression, given = kept.expression, kept.operands(given)
            options = {**options, "output_format": kept.usual_format if form is None else form}
        places = {name: options[name] for name in ("output_format", "target", "database", "semiring", "dtype", "shape", "boundary")}
        if self._tunes and lookup(expression, given, threads=threads, **places).origin != "exact":
            from .session import tune  # which imports all that searches and measures

            tune(expression, given, trials=self.trials, threads=threads, **places)

        def chosen(*_request: Any) -> Schedule:
            return choose(expression, given, threads=threads, **places)

        return evaluate(
            expression, given, options["output_format"], "auto", options["shape"], options["dtype"], options["target"], threads,
            semiring=options["semiring"], choose=chosen, out=out, boundary=options["boundary"],
        )  # fmt: skip

    def _named(self, operands: tuple[Any, ...], named: Mapping[str, Any]) -> Mapping[str, Any]:
        if not operands:
            return named
        if self._parameters is None:
            raise ExpressionError(f"the operands of '{self.expression}' are given by name: f(A=A, x=x)")
        try:
            return self._parameters.bind(*operands, **named).arguments
        except TypeError as error:
            raise ExpressionError(f"operands of '{self.expression}': {error}") from None

    def __repr__(self) -> str:
        return f"sparsetune.autotune({self.expression!r}, trials={self.trials})"


def documented(function: Callable[..., Any]) -> str:
    """Return the expression in the first line of a function's documentation.

    Raises:
        ExpressionError: there is none.
    """
    if not callable(function):
        raise ExpressionError(f"autotune takes an expression or a function, not {shown(function)}")
    lines = (inspect.getdoc(function) or "").splitlines()
    name = getattr(function, "__name__", "the function")
    if not lines:
        raise ExpressionError(f"autotune takes the expression from the first line of the docstring, but {name} has none")
    try:
        parse(lines[0])
    except ExpressionError as error:
        raise ExpressionError(f"the first line of the docstring of {name} is no expression: {error}") from None
    return lines[0]
