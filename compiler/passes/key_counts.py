"""Finds how many keys, and which, an iteration inserts into its tables, from its loops without their stores (``passes.needs``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..ir.arithmetic import ONE, ZERO, maximum, multiply, subtract
from ..ir.nodes import (
    I64,
    Allocate,
    Call,
    Const,
    Dealt,
    Declare,
    For,
    Group,
    If,
    Load,
    Member,
    Node,
    Run,
    SetVar,
    Step,
    Steps,
    Value,
    Var,
    While,
)
from ..ir.rewrite import block, flat, is_pure, mentions, nodes_of, written_arrays
from .dead import live_block


class UnknownError(Exception):
    """The number of iterations of a loop depends on the tables themselves."""


def keys_counted(loop: For, need: Var, group: Member) -> Steps:
    """Return the steps that count the keys that an iteration inserts into its tables; threads of a block or warp share the outermost loops.

    Raises:
        UnknownError: the number of iterations of a loop depends on the tables themselves.
    """
    counting = _Counting(loop, need)
    counted, _ = live_block((counting.of(loop.body),), frozenset((need.name,)))
    steps = [*flat((counted,))]
    if group != "thread":
        steps = [_shared(step, group, need) for step in steps]
    return Steps((Declare(need, ZERO), *steps))


def keys_given(loop: For) -> Step | None:
    """Return the loops of an iteration that insert keys into its tables, with these keys; None if conditions or keys depend on the tables.
    Two loops for which this is equal insert the same keys."""
    given = Var("given", I64)
    try:
        return live_block((_Given(loop, given).of(loop.body),), frozenset((given.name,)))[0]
    except UnknownError:
        return None


def _shared(step: Step, group: Group, need: Var) -> Step:
    if not isinstance(step, For):
        return step
    own = {node.variable.name for node in nodes_of(step.body, Declare, For)} | {need.name}
    alone = all(node.variable.name in own for node in nodes_of(step.body, SetVar))
    return replace(step, tag=Dealt("thread", group)) if alone else step


class _Counting:
    """Statements without their stores, which count how often a key is inserted into a table."""

    def __init__(self, loop: For, need: Var) -> None:
        """Find the variables that depend on dropped statements."""
        self.need = need
        self.changed = written_arrays(loop.body) | {node.array for node in nodes_of(loop, Allocate)}
        inside = {node.variable.name for node in nodes_of(loop.body, Declare)}
        outside = {node.variable.name for node in nodes_of(Steps(loop.private), Declare)}
        skipped = [inner for inner in nodes_of(loop.body, For, While, If) if not _inserts(inner)]
        self.unknown = outside | {node.variable.name for node in nodes_of(loop.body, SetVar)} - inside
        self.unknown |= {node.variable.name for inner in skipped for node in nodes_of(inner, SetVar)}
        assigned = [*_assigned(loop.body)]
        while more := {node.variable.name for node in assigned if not self.is_known(node.value)} - self.unknown:
            self.unknown |= more

    def is_known(self, value: Value) -> bool:
        changes = any(node.array in self.changed for node in nodes_of(value, Load))
        return is_pure(value) and not changes and not mentions(value, self.unknown)

    def of(self, step: Step) -> Step:
        """Return the steps by which a statement adds to the count. Raises ``UnknownError`` if loops depend on dropped statements."""
        match step:
            case Steps(statements):
                return block([self.of(inner) for inner in statements])
            case Declare(_, Call("table_insert", arguments)) | Run("table_insert", arguments):
                return self.insertion(arguments[2])
            case Declare(variable) | SetVar(variable):
                return step if variable.name not in self.unknown else Steps(())
            case _ if not _inserts(step):
                return Steps(())
            case If(condition, then, otherwise):
                branches = self.of(then), Steps(()) if otherwise is None else self.of(otherwise)
                return If(condition, *branches) if self.is_known(condition) else self.either(branches)
            case While(condition, body) if self.is_known(condition):
                return While(condition, self.of(body))
            case For(low=low, high=high) if self.is_known(low) and self.is_known(high):
                return self.repeated(replace(step, body=self.of(step.body), tag=None, private=(), finish=()))
        raise UnknownError

    def insertion(self, _key: Value) -> Step:
        return SetVar(self.need, ONE, "+")

    def either(self, branches: tuple[Step, Step]) -> Step:
        """Return the steps for two branches if it is not known which one is taken."""
        return Steps(branches)

    def repeated(self, loop: For) -> Step:
        return _at_once(loop, self.need)


class _Given(_Counting):
    """Statements without their stores, which list the keys that are inserted, one after another."""

    def insertion(self, key: Value) -> Step:
        if not self.is_known(key):
            raise UnknownError
        return SetVar(self.need, key, "+")

    def either(self, branches: tuple[Step, Step]) -> Step:
        raise UnknownError

    def repeated(self, loop: For) -> Step:
        return loop


def _assigned(step: Step) -> Iterator[Declare | SetVar]:
    """Yield the declarations and assignments of variables, except in loops that insert no keys, whose declarations are not used outside."""
    if isinstance(step, Declare | SetVar):
        yield step
    elif isinstance(step, Steps) or _inserts(step):
        for child in step.children:
            if isinstance(child, Step):
                yield from _assigned(child)


def _inserts(step: Node) -> bool:
    return any(node.function == "table_insert" for node in nodes_of(step, Call, Run))


def _at_once(loop: For, need: Var) -> Step:
    """Return the count of a loop without the loop, if every iteration counts the same."""
    counted = [step for step in flat((loop.body,)) if not (isinstance(step, Declare) and is_pure(step.value))]
    match counted:
        case [SetVar(variable, Const() as each, "+")] if variable == need and loop.step == 1:
            return SetVar(need, multiply(maximum(subtract(loop.high, loop.low), ZERO), each), "+")
    return loop
