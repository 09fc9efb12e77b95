"""Statements of the loop IR as C lines.

Memory that a kernel allocates hangs on pointers declared at the top of the kernel (or of the parallel region that
allocates it), so that one place frees whatever is held when an allocation fails: serial code jumps there; a thread of a
parallel region notes the failure, and all skip the iterations that are left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..ir.nodes import (
    BOOL,
    I64,
    MAP,
    Allocate,
    ArrayRef,
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
    Load,
    Parallel,
    Prefetch,
    Publish,
    Run,
    SetVar,
    Step,
    Steps,
    Store,
    Type,
    Unroll,
    Value,
    Var,
    Vector,
    While,
)
from ..ir.rewrite import own_declarations
from .analysis import heap_allocations, may_fail, scalar_reductions
from .expressions import ExpressionPrinter, c_type

_COMPOUND = frozenset(("+", "-", "*", "/"))
_LOGICAL = {"or": "|", "and": "&"}


def _beside(origin: str) -> str:
    return f"  // {origin}" if origin else ""


@dataclass
class Region:
    """The code that shares one set of heap pointers: the kernel, or one parallel region of it."""

    fails_to: str
    parallel: bool
    declared: list[set[str]] = field(default_factory=lambda: [set()])


class StatementPrinter:
    """Prints statements into ``lines``; ``expressions`` gives names and collects what the file's head must define."""

    def __init__(
        self,
        expressions: ExpressionPrinter,
        array_types: dict[str, Type],
        grown: Mapping[str, str],
        region_head: Callable[[For], list[str]],
        published: dict[str, tuple[int, int]],
    ) -> None:
        """Create a printer.

        Args:
            array_types: the element type of every array (or ``map``) of the kernel.
            grown: the arrays that grow, and are trimmed before they are published, with the names of their capacities.
            region_head: gives the lines that declare the parameters which a parallel region uses.
            published: slot of the pointer and slot of the length of every assembled parameter.
        """
        self.expressions = expressions
        self.names = expressions.names
        self.lines: list[str] = []
        self.depth = 1
        self._array_types = array_types
        self._grown = grown
        self._region_head = region_head
        self._published = published
        self._regions: list[Region] = []

    # Scaffolding

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def enter(self, region: Region) -> None:
        self._regions.append(region)

    def leave(self) -> None:
        self._regions.pop()

    @property
    def region(self) -> Region:
        return self._regions[-1]

    def scope(self, statement: Step | None) -> None:
        """Print a statement as the body of a pair of braces that the caller prints."""
        self.depth += 1
        self.region.declared.append(set())
        if statement is not None:
            self.statement(statement)
        self.region.declared.pop()
        self.depth -= 1

    def statement(self, statement: Step) -> None:
        match statement:
            case Steps(statements):
                for inner in statements:
                    self._nested(inner)
            case Comment(text):
                self.line(f"/* {text.replace('*/', '* /')} */")
            case Declare(variable, value):
                self._declare(variable, value)
            case SetVar(variable, value, op):
                self.line(self._assignment(self.names[variable.name], variable, value, op))
                self._check_maps(value)
            case Store():
                self._store(statement)
            case If():
                self._if(statement)
            case While(condition, body, origin):
                self.line(f"while ({self.expressions.text(condition)}) {{{_beside(origin)}")
                self.scope(body)
                self.line("}")
            case For():
                self._for(statement)
            case Prefetch(array, index, count):
                self._prefetch(array, index, count)
            case Run(function, arguments):
                self.line(f"{self.expressions.text(Call(function, arguments, I64))};")
            case Allocate() | Free() | Grow() | Fill() | Publish():
                self._memory(statement)
            case _:
                raise TypeError(f"not a statement of the loop IR: {statement!r}")

    def _nested(self, statement: Step) -> None:
        """Print a statement of a block; a block in a block gets braces only where its names are taken already."""
        if isinstance(statement, Steps) and not own_declarations(statement).isdisjoint(self.region.declared[-1]):
            self.line("{")
            self.scope(statement)
            self.line("}")
        else:
            self.statement(statement)

    # Scalars and elements

    def _declare(self, variable: Var, value: Value) -> None:
        self.region.declared[-1].add(variable.name)
        kind = self.expressions.type_name(variable.type)
        first = self.expressions.converted(value, variable.type).removeprefix(f"({kind})")
        self.line(f"{kind} {self.names[variable.name]} = {first};")
        self._check_maps(value)

    def _assignment(self, target: str, current: Value, value: Value, op: str) -> str:
        """Return ``target = target op value`` in the shortest form that C has for it."""
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
        elif store.op in ("min", "max", "and", "or"):
            self.expressions.headers.add("st_atomic.h")
            self.line(f"st_atomic_{store.op}_{kind.name}(&{target}, {self.expressions.text(store.value)});")
        else:
            self.line(f"#pragma omp atomic {'update' if store.op else 'write'}")
            self.line(f"{target} {store.op}= {self.expressions.text(store.value)};")

    def _prefetch(self, array: str, index: Value, count: int) -> None:
        self.line(f"st_prefetch({self.names[array]}, {self.expressions.index(index)}, {count}, {self._array_types[array].bytes});")

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
        if isinstance(loop.tag, Parallel) and not self.region.parallel:
            self._parallel(loop)
            return
        simd = scalar_reductions(loop) if isinstance(loop.tag, Vector) and not may_fail(loop.body) else None
        if simd is not None:
            self.line(f"#pragma omp simd{self._reduction_clauses(simd)}")
        elif isinstance(loop.tag, Unroll) and loop.tag.factor > 1:
            self.line(f"ST_UNROLL({loop.tag.factor})")
        # OpenMP wants the plain form of a loop, and evaluates its bound once by itself.
        self.line(self._loop_head(loop, hoist=simd is None))
        self.scope(loop.body)
        self.line("}")

    def _loop_head(self, loop: For, hoist: bool) -> str:
        kind, name = c_type(loop.variable.type), self.names[loop.variable.name]
        low = self.expressions.converted(loop.low, loop.variable.type)
        step = f"{name}++" if loop.step == 1 else f"{name} += {loop.step}"
        if hoist and not isinstance(loop.high, Const | Var):
            end = self.names.fresh(f"{name}_end")
            high = self.expressions.converted(loop.high, loop.variable.type)
            return f"for ({kind} {name} = {low}, {end} = {high}; {name} < {end}; {step}) {{{_beside(loop.origin)}"
        return f"for ({kind} {name} = {low}; {name} < {self.expressions.text(loop.high, 11)}; {step}) {{{_beside(loop.origin)}"

    def _reduction_clauses(self, reductions: dict[str, set[str]]) -> str:
        listed = {op: ", ".join(sorted(self.names[name] for name in names)) for op, names in sorted(reductions.items())}
        return "".join(f" reduction({op}:{names})" for op, names in listed.items())

    def _parallel(self, loop: For) -> None:
        tag = loop.tag
        assert isinstance(tag, Parallel)
        fails = any(may_fail(part) for part in (*loop.private, loop.body, *loop.finish))
        done = self.names.own("st_private_done") if fails else ""
        schedule = f" schedule({tag.chunking}{f', {tag.chunk}' if tag.chunk else ''})" if tag.chunking else ""
        self.line("#pragma omp parallel num_threads((int)st_threads)")
        self.line("{")
        self.enter(Region(done, parallel=True))
        self.depth += 1
        for text in self._region_head(loop):
            self.line(text)
        held = self.declare_heap(heap_allocations((*loop.private, loop.body, *loop.finish), inside_parallel=True))
        self._statements(loop.private)
        if fails and any(may_fail(part) for part in loop.private):
            self.line(f"{done}:;")
        self.line(f"#pragma omp for{schedule} nowait")
        self.line(self._loop_head(loop, hoist=False))
        self._iteration(loop.body)
        self.line("}")
        self._finish(loop.finish, fails)
        self.free_heap(held)
        self.depth -= 1
        self.leave()
        self.line("}")
        if fails:
            self.line(f"if (st_status) goto {self.region.fails_to};")

    def _iteration(self, body: Step) -> None:
        """Print one iteration of a parallel loop; if it may fail, all later ones are skipped once one has failed."""
        if not may_fail(body):
            self.scope(body)
            return
        end = self.names.own("st_next")
        outer = self.region
        self.enter(Region(end, parallel=True, declared=outer.declared))
        self.depth += 1
        self.line("if (st_failed(&st_status)) continue;")
        self.depth -= 1
        self.scope(body)
        self.leave()
        self.line(f"{end}:;")

    def _finish(self, finish: tuple[Step, ...], fails: bool) -> None:
        if not finish:
            return
        if not fails:
            self._statements(finish)
            return
        end = self.names.own("st_finished")
        may = any(may_fail(part) for part in finish)
        self.line("if (!st_failed(&st_status)) {")
        self.enter(Region(end, parallel=True))
        self.scope(Steps(finish))
        self.leave()
        self.line("}")
        if may:
            self.line(f"{end}:;")

    def _statements(self, statements: tuple[Step, ...]) -> None:
        self.statement(Steps(statements))

    # Memory

    def declare_heap(self, arrays: dict[str, Allocate]) -> dict[str, Allocate]:
        """Declare the pointers (and maps) of a region's heap arrays, all empty."""
        for name, allocation in arrays.items():
            shown = self.names[name]
            self.region.declared[0].add(name)
            empty = f"st_map {shown} = {{0}};" if allocation.type == MAP else f"{c_type(allocation.type)} *restrict {shown} = NULL;"
            if allocation.type == MAP:
                self.expressions.headers.add("st_map.h")
            self.line(empty)
        return arrays

    def free_heap(self, arrays: dict[str, Allocate]) -> None:
        """Free what a region still holds; freed and published arrays are NULL by then."""
        for name, allocation in arrays.items():
            self.line(f"st_map_free(&{self.names[name]});" if allocation.type == MAP else f"st_release({self.names[name]});")

    def _fail_unless(self, succeeded: str) -> None:
        self.line(f"if (!{succeeded}) {{ st_fail(&st_status); goto {self.region.fails_to}; }}")

    def _check_maps(self, value: Value) -> None:
        if isinstance(value, Call) and value.function == "map_insert":
            keys = value.arguments[0]
            assert isinstance(keys, ArrayRef)
            self._fail_unless(f"st_map_sound(&{self.names[keys.array]})")

    def _memory(self, statement: Step) -> None:
        match statement:
            case Allocate():
                self._allocate(statement)
            case Free(array):
                name = self.names[array]
                if self._array_types[array] == MAP:
                    self.line(f"st_map_free(&{name});")
                else:
                    self.line(f"st_release({name});")
                    self.line(f"{name} = NULL;")
            case Grow(array, _, capacity, needed):
                self._grow(self.names[array], self.names[capacity.name], needed)
            case Fill():
                self._fill(statement)
            case Publish(parameter, array, length):
                pointer, size = self._published[parameter]
                name = self.names[array]
                grown = array in self._grown
                trimmed = f"st_trim({name}, {self.expressions.text(length)}, sizeof *{name})" if grown else name
                self.line(f"st_arrays[{pointer}] = {trimmed};")
                self.line(f"st_sizes[{size}] = {self.expressions.text(length)};")
                self.line(f"{name} = NULL;")

    def _allocate(self, allocation: Allocate) -> None:
        name = self.names[allocation.array]
        length = self.expressions.text(allocation.length)
        if allocation.storage == "registers":
            zero = " = {0}" if allocation.zero else ""
            self.region.declared[-1].add(allocation.array)
            self.line(f"{c_type(allocation.type)} {name}[{length}] __attribute__((aligned(64))){zero};")
        elif allocation.type == MAP:
            self._fail_unless(f"st_map_reserve(&{name}, {length})")
        else:
            capacity = allocation.length
            if isinstance(capacity, Var) and self._grown.get(allocation.array) == capacity.name and not allocation.zero:
                self.line(f"{name} = st_reserve(&{length}, sizeof *{name});")
            else:
                function = "st_allocate_zeros" if allocation.zero else "st_allocate"
                self.line(f"{name} = {function}({length}, sizeof *{name});")
            self._fail_unless(name)

    def _grow(self, name: str, capacity: str, needed: Value) -> None:
        self.line(f"if ({capacity} < {self.expressions.text(needed, 11)}) {{")
        self.depth += 1
        self.line(f"void *st_room = st_grow({name}, &{capacity}, {self.expressions.text(needed)}, sizeof *{name});")
        self._fail_unless("st_room")
        self.line(f"{name} = st_room;")
        self.depth -= 1
        self.line("}")

    def _fill(self, fill: Fill) -> None:
        name = self.names[fill.array]
        low, high = self.expressions.index(fill.low), self.expressions.index(fill.high)
        if isinstance(fill.value, Const) and fill.value.value == 0 and math.copysign(1, fill.value.value) > 0:
            self.line(f"st_zero({name}, {low}, {high}, sizeof *{name});")
            return
        place, end = self.names.own("st_place"), self.names.own("st_end_of_fill")
        value = self.expressions.text(fill.value)
        self.line(f"for (int64_t {place} = {low}, {end} = {high}; {place} < {end}; {place}++) {name}[{place}] = {value};")
