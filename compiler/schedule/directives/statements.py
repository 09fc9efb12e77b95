"""Directives about statements: how the right-hand side is written, what is computed first, and which loops are shared."""

from __future__ import annotations

from dataclasses import field

from ...frozen import frozen
from ...notation.nodes import Assignment, Expr
from .directive import Directive, Parameter


@frozen
class Factors(Directive):
    """Set the order of the factors of a product."""

    keyword = "factors"
    parameters = (Parameter("order", "expression", many=True),)
    order: tuple[Expr, ...]


@frozen
class Precompute(Directive):
    """Compute a part of an expression into a workspace first."""

    keyword = "precompute"
    parameters = (
        Parameter("expression", "expression"),
        Parameter("indices", "indices"),
        Parameter("producer_indices", "news"),
        Parameter("workspace", "new"),
    )
    expression: Expr
    indices: tuple[str, ...]
    producer_indices: tuple[str, ...]
    workspace: str


@frozen
class Addends(Directive):
    """Write the right-hand side as a sum of the given addends, each in its own loops; ``w(i) = e`` sums into a workspace that a later
    addend reads."""

    keyword = "addends"
    parameters = (Parameter("addends", "addend", many=True),)
    takes_path = False
    addends: tuple[Expr | Assignment, ...]


@frozen
class Join(Directive):
    """Make the outermost loops of two statements one loop, around the smallest block that contains both."""

    keyword = "join"
    parameters = (Parameter("index", "index"), Parameter("first", "path"), Parameter("second", "path"))
    takes_path = False
    index: str
    first: tuple[int, ...]
    second: tuple[int, ...]


@frozen
class Recompute(Directive):
    """Move the outermost loop of the second statement around the first one too, which does not depend on it and runs in every iteration."""

    keyword = "recompute"
    parameters = Join.parameters
    takes_path = False
    index: str
    first: tuple[int, ...]
    second: tuple[int, ...]


@frozen
class Accumulate(Directive):
    """Let assignments add to a workspace (``+=``) even if every component is written only once."""

    keyword = "accumulate"
    parameters = (Parameter("workspace", "name"),)
    takes_path = False
    workspace: str


@frozen
class Loopfuse(Directive):
    """Split a product after its ``count``-th factor into a producer and a consumer that share their outermost loops."""

    keyword = "loopfuse"
    parameters = (Parameter("count", "integer"), Parameter("producer_is_left", "boolean"))
    count: int
    producer_is_left: bool
    path: tuple[int, ...] | None = field(default=(), kw_only=True)
