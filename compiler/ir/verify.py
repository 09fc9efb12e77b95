"""The rules that every program of the loop IR keeps between any two passes: names, types, widths, tags, lifetimes.

Scalars are declared before they are used, and once in a block; arrays are allocated, used, and released (``lifetimes``). Every use has the
type of the declaration. Calls have as many arguments as the function takes. The lanes of vectors agree. Conditions are truth values, places
are integers. Only the loop itself changes its counter. Threads assign no variable from outside their loop, and only threads update
atomically. An insertion into a map, which may find no memory, is a whole value, so that its failure can be noticed.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import SparsetuneError
from .lifetimes import check_lifetimes
from .nodes import (
    I64,
    PARTS,
    Allocate,
    ArrayRef,
    Barrier,
    Comment,
    Const,
    Dealt,
    Declare,
    Fill,
    For,
    Free,
    Function,
    Grow,
    If,
    Kernel,
    Leave,
    Once,
    Parallel,
    Prefetch,
    Publish,
    Run,
    SetVar,
    Simd,
    Step,
    Steps,
    Store,
    Take,
    Value,
    While,
)
from .value_rules import GROUPS, MEMBERS, UPDATES, Fault, Scope, ValueRules


class IllFormed(SparsetuneError):
    """A program of the loop IR breaks a rule that every one must keep: a defect of the compiler."""


def verify(function: Function, maker: str) -> None:
    """Check a program.

    Args:
        maker: what made the program, for the message: "lowering", "pass 'vectorize'".

    Raises:
        IllFormed: a rule is broken; the message names the maker, the rule, and the statement that breaks it.
    """
    try:
        _Verifier(function).block((function.body,), {size.name: I64 for size in function.sizes}, {})
        check_lifetimes(function)
    except Fault as fault:
        raise IllFormed(f"{maker} made an ill-formed program: {fault}") from None


class _Verifier(ValueRules):
    """Walks over a program. ``scope`` has the visible scalars, ``local`` the visible register arrays."""

    def block(self, statements: Iterable[Step], scope: Scope, local: Scope) -> None:
        """Check statements in order. Declarations of a block inside stay visible, unless they hide a name of this block."""
        declared = set[str]()
        for statement in statements:
            if isinstance(statement, Steps):
                inside, arrays, shared = dict(scope), dict(local), self.shared
                self.block(statement.statements, inside, arrays)
                self.shared = shared
                scope |= {name: kind for name, kind in inside.items() if name not in scope}
                local |= {name: kind for name, kind in arrays.items() if name not in local}
            else:
                self.here = statement
                name = _defined(statement)
                if name in declared:
                    self.fail(f"{name} is declared twice")
                declared |= {name} if name is not None else set()
                self.statement(statement, scope, local)

    def inner(self, body: Step, scope: Scope, local: Scope) -> None:
        """Check a statement with a scope of its own, so that its declarations end with it."""
        shared = self.shared
        self.block((body,), dict(scope), dict(local))
        self.shared = shared

    def statement(self, statement: Step, scope: Scope, local: Scope) -> None:
        match statement:
            case Declare(variable, value):
                self.assigned(variable, value, "", scope, local)
                if variable.name in self.counters:
                    self.fail(f"{variable.name} is declared, with which a loop counts")
                scope[variable.name] = variable.type
                self.hidden((variable.name,))
            case SetVar(variable, value, op):
                self.variable(variable, scope)
                if op not in UPDATES:
                    self.fail(f"nothing is updated by {op}")
                if variable.name in self.counters:
                    self.fail(f"{variable.name} is assigned, with which a loop counts")
                if self.shared is not None and variable.name in self.shared:
                    self.fail(f"threads assign {variable.name}, which is declared outside of their loop")
                self.assigned(variable, value, op, scope, local)
            case Store():
                self.store(statement, scope, local)
            case If(condition, then, otherwise):
                self.condition(condition, scope, local)
                self.inner(then, scope, local)
                if otherwise is not None:
                    self.inner(otherwise, scope, local)
            case While(condition, body):
                self.condition(condition, scope, local)
                self.inner(body, scope, local)
            case For():
                self.loop(statement, scope, local)
            case Prefetch(array, index, _):
                self.array(array, local)
                self.place(index, scope, local)
            case Run(function, arguments):
                self.call(function, arguments, scope, local)
            case Kernel(body, blocks, _, gives, scratch):
                self.place(blocks, scope, local)
                for given in gives:
                    self.variable(given, scope)
                for made in scratch:
                    self.place(made.length, scope, local)
                outside, self.shared = self.shared, frozenset()
                self.block((body,), dict(scope), dict(local) | {made.array: made.type for made in scratch})
                self.shared = outside
            case Once(unit, body) if unit in GROUPS:
                self.inner(body, scope, local)
            case Barrier(unit) if unit in GROUPS:
                pass
            case Comment():
                pass
            case _:
                self.memory(statement, scope, local)

    def loop(self, loop: For, scope: Scope, local: Scope) -> None:
        if loop.variable.type.is_float or loop.variable.type.lanes > 1 or loop.step < 1:
            self.fail("a loop counts upwards in whole numbers")
        self.place(loop.low, scope, local)
        self.place(loop.high, scope, local)
        if isinstance(loop.tag, Simd):
            for name in {name for _, names in loop.tag.reductions for name in names} - scope.keys():
                self.fail(f"variable {name}, which lanes add up, is not declared")
        if isinstance(loop.tag, Dealt) and (loop.tag.unit not in MEMBERS or loop.tag.within not in ("grid", *GROUPS)):
            self.fail(f"a GPU has no {loop.tag.unit} of a {loop.tag.within}")
        parallel, dealt = isinstance(loop.tag, Parallel), isinstance(loop.tag, Dealt)
        if (loop.private or loop.finish) and not parallel and not dealt:
            self.fail("only threads have something private")
        outside, arrays, shared = dict(scope), dict(local), self.shared
        if parallel and shared is None:
            self.shared = frozenset(scope)
        elif dealt and shared is None:  # until ``passes.members`` combines them, sums over dealt iterations go to scalars outside
            self.shared = frozenset()
        self.block(loop.private, outside, arrays)
        self.hidden(outside.keys() - scope.keys())
        self.hidden((loop.variable.name,))
        counters, self.counters = self.counters, self.counters | {loop.variable.name}
        self.inner(loop.body, {**outside, loop.variable.name: loop.variable.type}, arrays)
        self.counters = counters
        self.block(loop.finish, outside, arrays)
        self.shared = shared

    def hidden(self, names: Iterable[str]) -> None:
        """Let the names that threads declare hide those from outside."""
        if self.shared is not None:
            self.shared = self.shared.difference(names)

    def store(self, store: Store, scope: Scope, local: Scope) -> None:
        kind = self.array(store.array, local)
        if store.array in self.constant and store.array not in local:
            self.fail(f"array {store.array} is only read")
        self.place(store.index, scope, local)
        self.value(store.value, scope, local)
        self.converts(store.value.type, kind.vector(store.value.type.lanes))
        if store.op not in UPDATES:
            self.fail(f"nothing is updated by {store.op}")
        if store.atomic and (self.shared is None or store.value.type.lanes > 1):
            self.fail("only scalars are updated atomically, and only by threads")
        if store.carry is not None:
            self.place(store.carry.slot, scope, local)
            self.place(store.carry.width, scope, local)
            if not store.atomic or not store.op:
                self.fail("only what threads add atomically is carried")
        if store.streams and (store.op or store.atomic or store.value.type.lanes == 1):
            self.fail("only whole vectors are written past the caches")

    def memory(self, statement: Step, scope: Scope, local: Scope) -> None:
        match statement:
            case Allocate(array, kind, length, storage):
                self.place(length, scope, local)
                if storage != "heap":
                    if not isinstance(length, Const):
                        self.fail(f"array {array} is to live in registers and has no constant length")
                    local[array] = kind
                elif self.arrays.setdefault(array, kind) != kind:
                    self.fail(f"array {array} is allocated as {self.arrays[array].name} and as {kind.name}")
            case Free(array):
                self.array(array, {})
            case Grow(array, kind, capacity, needed):
                self.variable(capacity, scope)
                self.place(needed, scope, local)
                if self.array(array, {}) != kind or capacity.type != I64:
                    self.fail(f"array {array} grows as another type than it has")
            case Fill(array, low, high, value):
                self.place(low, scope, local)
                self.place(high, scope, local)
                self.value(value, scope, local)
                self.converts(value.type, self.array(array, local))
            case Leave(array, parts, place):
                self.array(array, {})
                self.parts(parts, place, scope, local)
            case Take(array, kind, parts, place):
                if self.arrays.setdefault(array, kind) != kind:
                    self.fail(f"array {array} is known as {self.arrays[array].name} and taken as {kind.name}")
                self.parts(parts, place, scope, local)
            case Publish(parameter, array, length):
                self.place(length, scope, local)
                if parameter not in self.assembled:
                    self.fail(f"{parameter} is no array that the caller receives")
                if self.array(array, {}) != self.assembled[parameter]:
                    self.fail(f"array {array} of {self.arrays[array].name} is handed over as {self.assembled[parameter].name}")
            case _:
                self.fail(f"{type(statement).__name__} is no statement")

    def parts(self, parts: ArrayRef, place: Value, scope: Scope, local: Scope) -> None:
        self.place(place, scope, local)
        if parts.type != PARTS or self.array(parts.array, {}) != PARTS:
            self.fail(f"{parts.array} has no places for arrays")


def _defined(step: Step) -> str | None:
    """Return the scalar, or array of registers or of threads that share it, that a statement declares; None where it declares none."""
    match step:
        case Declare(variable):
            return variable.name
        case Allocate(array, storage=storage) if storage != "heap":
            return array
    return None
