"""Prints the statements of the loop IR that are the same in C and in CUDA."""

from __future__ import annotations

from ..ir.nodes import (
    BOOL,
    I64,
    Allocate,
    Binary,
    Call,
    Comment,
    Const,
    Declare,
    Fill,
    For,
    Free,
    Grow,
    If,
    Leave,
    Load,
    Prefetch,
    Publish,
    Run,
    SetVar,
    Simd,
    Step,
    Steps,
    Store,
    Take,
    Unroll,
    Value,
    Var,
    While,
)
from ..ir.rewrite import own_declarations
from .expressions import c_type
from .memory import MemoryPrinter
from .regions import taken_from_before

_COMPOUND = frozenset(("+", "-", "*", "/"))
_LOGICAL = {"or": "|", "and": "&"}
_ATOMIC = {"": "write", "+": "add", "-": "subtract", "*": "multiply", "/": "divide"}


def beside(origin: str) -> str:
    """Return a comment, for the end of a line of C, with the origin of the line; empty if there is none."""
    return f"  // {origin}" if origin else ""


class StatementPrinter(MemoryPrinter):
    """Prints statements of one thread."""

    least_unrolled = 2
    """The least factor for which a pragma that asks for unrolling is printed."""

    def scope(self, statement: Step | None) -> None:
        """Print a statement as the body of braces, which the caller prints."""
        self.depth += 1
        self.region.declared.append(set())
        self.region.blocks.append([])
        if statement is not None:
            self.statement(statement)
        self.region.declared.pop()
        self.region.blocks.pop()
        self.depth -= 1

    def statement(self, statement: Step) -> None:
        """Print a statement and everything in it.

        Raises:
            TypeError: it is no statement of the loop IR.
        """
        match statement:
            case Steps(statements):
                for place, inner in enumerate(statements, 1):
                    self.region.blocks[-1].append((statements, place))
                    self._nested(inner)
                    self.region.blocks[-1].pop()
            case Comment(text):
                self.line(f"/* {text.replace('*/', '* /')} */")
            case Declare(variable, value):
                self._declare(variable, value)
            case SetVar(variable, value, op):
                self.line(self._assignment(self.names[variable.name], variable, value, op))
                self.check_maps(value)
            case Store():
                self._store(statement)
            case If():
                self._if(statement)
            case While(condition, body, origin):
                self.line(f"while ({self.expressions.text(condition)}) {{{beside(origin)}")
                self.scope(body)
                self.line("}")
            case For():
                self._for(statement)
            case Prefetch():
                self._prefetch(statement)
            case Run(function, arguments):
                self.line(f"{self.expressions.text(Call(function, arguments, I64))};")
            case Allocate() | Free() | Grow() | Leave() | Take() | Fill() | Publish():
                self.memory(statement)
            case _:
                raise TypeError(f"not a statement of the loop IR: {statement!r}")

    def _nested(self, statement: Step) -> None:
        """Print a statement of a block. A block in a block gets braces only if it hides a name."""
        if isinstance(statement, Steps) and self._hides(statement):
            self.line("{")
            self.scope(statement)
            self.line("}")
        else:
            self.statement(statement)

    def _hides(self, inner: Steps) -> bool:
        """Return whether a block needs braces because it declares a name that is taken. If such names are only in blocks inside it, and
        other names of it are needed after it, only the blocks inside get braces."""
        taken, own = self.region.declared[-1], own_declarations(inner)
        if own.isdisjoint(taken):
            return False
        direct = own_declarations(Steps(tuple(step for step in inner.statements if not isinstance(step, Steps))))
        return not direct.isdisjoint(taken) or not self._outlive(own - taken)

    def _outlive(self, names: set[str]) -> bool:
        """Return whether statements up to the next closing brace use the current value of one of the variables."""
        rest = tuple(step for statements, place in reversed(self.region.blocks[-1]) for step in statements[place:])
        return not names.isdisjoint(taken_from_before(rest))

    # Scalars and elements

    def _declare(self, variable: Var, value: Value) -> None:
        self.region.declared[-1].add(variable.name)
        kind = self.expressions.type_name(variable.type)
        first = self.expressions.converted(value, variable.type).removeprefix(f"({kind})")
        self.line(f"{kind} {self.names[variable.name]} = {first};")
        self.check_maps(value)

    def _assignment(self, target: str, current: Value, value: Value, op: str) -> str:
        """Return ``target = target op value`` in its shortest form in C."""
        kind = current.type
        if op == "":
            return f"{target} = {self.expressions.converted(value, kind)};"
        if op in _COMPOUND:
            return f"{target} {op}= {self.expressions.text(value)};"
        if op in _LOGICAL and kind == BOOL:
            return f"{target} {_LOGICAL[op]}= {self.expressions.text(value)};"
        return f"{target} = {self.expressions.text(Binary(op, current, value, kind))};"

    def _store(self, store: Store) -> None:
        kind = self._array_types[store.array].vector(store.value.type.lanes)
        target = self.expressions.element(store.array, store.index, kind)
        if store.streams:
            self.line(f"{self.expressions.stream(store.array, store.index, store.value)};")
        elif not store.atomic:
            self.line(self._assignment(target, Load(store.array, store.index, kind), store.value, store.op))
        else:
            self.expressions.headers.add("st_atomic.h")
            self.line(f"st_atomic_{_ATOMIC.get(store.op, store.op)}_{kind.name}(&{target}, {self.expressions.text(store.value)});")

    def _prefetch(self, asked: Prefetch) -> None:
        place, size = self.expressions.index(asked.index), self._array_types[asked.array].bytes
        self.line(f"st_prefetch({self.names[asked.array]}, {place}, {asked.count}, {size}, {asked.cache});")

    # Control

    def _if(self, statement: If) -> None:
        self.line(f"if ({self.expressions.text(statement.condition)}) {{")
        self.scope(statement.then)
        otherwise = statement.otherwise
        while isinstance(otherwise, If):
            self.line(f"}} else if ({self.expressions.text(otherwise.condition)}) {{")
            self.scope(otherwise.then)
            otherwise = otherwise.otherwise
        if otherwise is not None:
            self.line("} else {")
            self.scope(otherwise)
        self.line("}")

    def _for(self, loop: For) -> None:
        simd = isinstance(loop.tag, Simd)
        if isinstance(loop.tag, Simd):
            self.line(f"#pragma omp simd{self._reduction_clauses(loop.tag)}")
        elif isinstance(loop.tag, Unroll) and loop.tag.factor >= self.least_unrolled:
            self.line(f"ST_UNROLL({loop.tag.factor})")
        # ``omp simd`` requires a loop with a plain condition, so that the bound is not declared in its head.
        self.line(self._loop_head(loop, hoist=not simd))
        self.scope(loop.body)
        if not simd:
            self._keep_in_order(loop)
        self.line("}")

    def _keep_in_order(self, loop: For) -> None:
        """Print at the end of a loop what keeps its sums in their order out of vectors."""

    def _loop_head(self, loop: For, hoist: bool) -> str:
        kind, name = c_type(loop.variable.type), self.names[loop.variable.name]
        low = self.expressions.converted(loop.low, loop.variable.type)
        step = f"{name}++" if loop.step == 1 else f"{name} += {loop.step}"
        if hoist and not isinstance(loop.high, Const | Var):
            end = self.names.fresh(f"{name}_end")
            high = self.expressions.converted(loop.high, loop.variable.type)
            return f"for ({kind} {name} = {low}, {end} = {high}; {name} < {end}; {step}) {{{beside(loop.origin)}"
        return f"for ({kind} {name} = {low}; {name} < {self.expressions.text(loop.high, 11)}; {step}) {{{beside(loop.origin)}"

    def _reduction_clauses(self, tag: Simd) -> str:
        listed = [(op, ", ".join(sorted(self.names[name] for name in names))) for op, names in tag.reductions]
        return "".join(f" reduction({op}:{names})" for op, names in listed)
