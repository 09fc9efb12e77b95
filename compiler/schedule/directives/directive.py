"""What every directive is: a value with a keyword, and a list of parameters in the order of its text."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field
from typing import ClassVar

from ...frozen import frozen


class Required:
    """Stands for the missing default of a parameter that must be given."""


@frozen
class Parameter:
    """One argument of a directive.

    Attributes:
        field: the attribute that holds its value.
        kind: index (an existing loop), name (an existing workspace), new (a new name), indices and news (one, or several in
            brackets), integer, ordinal (an integer that may be left out, also before other arguments), boolean, choice,
            expression, addend (an expression, or an assignment to a new workspace), access (an operand, or one access of
            it), path, text, compiler, flags.
        choices: the values of kind choice.
        default: the value of a last argument that is left out.
        many: whether it takes all further arguments, at least one.
    """

    field: str
    kind: str
    choices: Collection[str] = ()
    default: object = Required
    many: bool = False


@frozen
class Directive:
    """One step of a schedule. ``path`` leads to its statement; None: the root, or the place where its index is unique.

    ``takes_path`` is false if no path may be given, because the directive is about the whole program or names its statements itself.
    """

    keyword: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]]
    takes_path: ClassVar[bool] = True
    path: tuple[int, ...] | None = field(default=None, kw_only=True)
