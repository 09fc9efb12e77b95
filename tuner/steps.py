"""What recordings consist of, and what the functions need whose answers and numbers they note (``recording``).

Little is imported here: to go through recordings takes this, and not what makes them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Concatenate, ParamSpec, TypeVar

    Arguments = ParamSpec("Arguments")
    Answer = TypeVar("Answer")

Step = list[Any]
"""A step of a recording: ``["ask", question, operand, *places]``, ``["=", constant]``, ``[operation, *places]``, or a comparison
``["?", comparison, left place, right place, outcome, other]``. All but comparisons have a value, and the place of a value is its number."""

OF_TWO: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
    "**": operator.pow, "hypotenuse": math.hypot,
}  # fmt: skip
"""Operations on two numbers, by the names that they have in steps: nearly all steps are one of these, or a comparison."""

OPERATIONS: Mapping[str, Callable[..., Any]] = {
    **OF_TWO, "negative": operator.neg, "size": abs, "round": round, "ceil": math.ceil, "log2": math.log2, "root": math.sqrt,
}  # fmt: skip
"""All operations on numbers, by their names."""

COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
"""Comparisons of numbers, by their names."""


class Noted:
    """A number that notes how it is computed."""

    __slots__ = ()

    def made(self, operation: str, *operands: Any) -> Any:
        """Return what an operation makes of numbers, of which this is one."""
        raise NotImplementedError


class Asked:
    """An operand that notes what it is asked."""

    format: Any

    def by_format(self, find: Callable[[Any], Answer]) -> Answer:
        """Return what a function finds out about the operand of which only that is used that depends on the operand's format alone."""
        raise NotImplementedError

    def answer(self, question: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        """Return the answer to a question (``asks``)."""
        raise NotImplementedError


def asks(question: Callable[Concatenate[Any, Arguments], Answer]) -> Callable[Concatenate[Any, Arguments], Answer]:
    """Make a function that returns a number, of an operand and of further numbers, one that is a step of recordings. It must depend on
    the operand's format, extents and stored coordinates alone, and be in a module of this folder that needs few imports."""

    @wraps(question)
    def answered(operand: Any, /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Any:
        if isinstance(operand, Asked) and not named:
            return operand.answer(question, arguments)
        return question(operand, *arguments, **named)

    return answered


def log2(value: Any) -> Any:
    """Return the base-2 logarithm of a number."""
    return value.made("log2", value) if isinstance(value, Noted) else math.log2(value)


def root(value: Any) -> Any:
    """Return the square root of a number."""
    return value.made("root", value) if isinstance(value, Noted) else math.sqrt(value)


def hypotenuse(one: Any, other: Any) -> Any:
    """Return the length of the hypotenuse over two sides of a right angle."""
    numbers: tuple[Any, ...] = one, other
    noted = [number for number in numbers if isinstance(number, Noted)]
    return noted[0].made("hypotenuse", *numbers) if noted else math.hypot(*numbers)
