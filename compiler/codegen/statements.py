"""Statements of the loop IR as C lines.

Memory that a kernel allocates hangs on pointers declared at the top of the kernel (or of the parallel region that
allocates it), so that one place frees whatever is held when an allocation fails: serial code jumps there; a thread of a
parallel region notes the failure, and all skip the iterations that are left.

A parallel loop becomes a function, which each thread that takes part runs once (csrc/st_loop.h): it claims pieces of the iterations
until none are left. What it has from the kernel around it comes in a struct.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..ir.nodes import (
    BOOL,
    I64,
    MAP,
    OPAQUE,
    PARTS,
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
    Leave,
    Load,
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
    Type,
    Unroll,
    Value,
    Var,
    While,
)
from ..ir.rewrite import may_fail, own_declarations
from .analysis import heap_allocations
from .expressions import ExpressionPrinter, c_type
from .regions import captured, has_shares

_COMPOUND = frozenset(("+", "-", "*", "/"))
_LOGICAL = {"or": "|", "and": "&"}
_ATOMIC = {"": "write", "+": "add", "-": "subtract", "*": "multiply", "/": "divide"}


def beside(origin: str) -> str:
    return f"  // {origin}" if origin else ""


@dataclass
class Region:
    """The code that shares one set of heap pointers: the kernel, or one parallel region of it."""

    fails_to: str
    parallel: bool
    status: str = "&st_status"
    declared: list[set[str]] = field(default_factory=lambda: [set()])


class StatementPrinter:
    """Prints statements into ``lines``; ``expressions`` gives names and collects what the file's head must define."""

    def __init__(
        self,
        expressions: ExpressionPrinter,
        array_types: dict[str, Type],
        grown: Mapping[str, str],
        region_head: Callable[[For], list[str]],
        parameters: frozenset[str],
        published: dict[str, tuple[int, int]],
    ) -> None:
        """Create a printer.

        Args:
            array_types: the element type of every array (or ``map``) of the kernel.
            grown: the arrays that grow, and are trimmed before they are published, with the names of their capacities.
            region_head: gives the lines that declare the arrays among the parameters which a parallel region uses.
            parameters: names of the arrays that are parameters.
            published: slot of the pointer and slot of the length of every assembled parameter.
        """
        self.expressions = expressions
        self.names = expressions.names
        self.lines: list[str] = []
        self.functions: list[str] = []
        self.depth = 1
        self._array_types = array_types
        self._grown = grown
        self._region_head = region_head
        self._parameters = parameters
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
                self.line(f"while ({self.expressions.text(condition)}) {{{beside(origin)}")
                self.scope(body)
                self.line("}")
            case For():
                self._for(statement)
            case Prefetch(array, index, count):
                self._prefetch(array, index, count)
            case Run(function, arguments):
                self.line(f"{self.expressions.text(Call(function, arguments, I64))};")
            case Allocate() | Free() | Grow() | Leave() | Take() | Fill() | Publish():
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
        else:
            self.expressions.headers.add("st_atomic.h")
            self.line(f"st_atomic_{_ATOMIC.get(store.op, store.op)}_{kind.name}(&{target}, {self.expressions.text(store.value)});")

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
        simd = isinstance(loop.tag, Simd)
        if isinstance(loop.tag, Simd):
            self.line(f"#pragma omp simd{self._reduction_clauses(loop.tag)}")
        elif isinstance(loop.tag, Unroll) and loop.tag.factor > 1:
            self.line(f"ST_UNROLL({loop.tag.factor})")
        # OpenMP's simd wants the plain form of a loop.
        self.line(self._loop_head(loop, hoist=not simd))
        self.scope(loop.body)
        self.line("}")

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

    def _parallel(self, loop: For) -> None:
        """Print a parallel loop as a function, and the call that has threads run it."""
        self.expressions.headers.add("st_loop.h")
        parts = (*loop.private, loop.body, *loop.finish)
        fails, shares = any(may_fail(part) for part in parts), has_shares(loop)
        region, work, shared = (self.names.own(name) for name in ("st_region", "st_parallel", "st_shared"))
        head = self._region_head(loop)
        inside = captured(loop, self._parameters)
        fields = [("st_loop", "st_loop", self._iterations(loop, shares))]
        fields += [("void **", "st_arrays", "st_arrays")] if head else []
        fields += [("int32_t *", "st_status", "&st_status")] if fails else []
        fields += [("int64_t ", "st_threads", "st_threads")] if shares else []
        fields += [(f"{self.expressions.type_name(variable.type)} ", self.names[variable.name], "") for variable in inside.variables]
        fields += [(self._array_field(name), self.names[name], "") for name in inside.arrays]
        self.line("{")
        self.depth += 1
        self.line(f"const {region} {shared} = {{{', '.join(value or name for _, name, value in fields)}}};")
        pieces = "st_threads" if shares else f"{shared}.st_loop.pieces"
        own = "false" if isinstance(loop.tag, Parallel) and loop.tag.chunking in ("guided", "ordered") and not shares else "true"
        self.line(f"st_run(st_threads, {pieces}, {own}, {work}, &{shared});")
        self.depth -= 1
        self.line("}")
        if fails:
            self.line(f"if (st_status) goto {self.region.fails_to};")
        self._function(loop, region, work, fields, head, fails, shares)

    def _iterations(self, loop: For, shares: bool) -> str:
        """Return the value that says how the iterations of a parallel loop are cut into pieces."""
        tag = loop.tag
        assert isinstance(tag, Parallel)
        ends = ", ".join(self.expressions.converted(end, I64) for end in (loop.low, loop.high))
        if tag.chunking == "guided":
            return f"st_guided({ends}, {tag.chunk or 1}, st_threads)"
        if tag.chunk or tag.chunking == "dynamic":
            return f"st_chunks({ends}, {tag.chunk or 1}, st_threads)"
        return f"{'st_even_shares' if shares else 'st_even'}({ends}, st_threads)"

    def _array_field(self, array: str) -> str:
        """Return the type of a member that hands on an array of the kernel: a pointer, or a map, which is only looked up."""
        kind = self._array_types[array]
        return "st_map " if kind == MAP else f"{c_type(kind)} *"

    def _function(
        self, loop: For, region: str, work: str, fields: list[tuple[str, str, str]], head: list[str], fails: bool, shares: bool
    ) -> None:
        """Print the function that each thread of a parallel loop runs."""
        kernel, depth = self.lines, self.depth
        self.lines, self.depth = [], 1
        done = self.names.own("st_private_done") if fails else ""
        self.enter(Region(done, parallel=True, status="st_status"))
        for kind, name, value in fields:
            if not value:
                restrict = "restrict " if kind.endswith("*") else ""
                self.line(f"{'' if restrict else 'const '}{kind}{restrict}{name} = st_in->{name};")
            elif name != "st_loop":
                self.line(f"{kind}const {name} = st_in->{name};" if kind.endswith("*") else f"const {kind}{name} = st_in->{name};")
        for text in head:
            self.line(text)
        held = self.declare_heap(heap_allocations((*loop.private, loop.body, *loop.finish), inside_parallel=True))
        self._statements(loop.private)
        if fails and any(may_fail(part) for part in loop.private):
            self.line(f"{done}:;")
        self._pieces(loop, shares)
        self._finish(loop.finish, fails)
        self.free_heap(held)
        self.leave()
        first = "st_share" if shares else "st_piece"
        self.functions += [
            "typedef struct {",
            *(f"  {kind}{'' if kind.endswith(('*', ' ')) else ' '}{name};" for kind, name, _ in fields),
            f"}} {region};",
            "",
            f"static __attribute__((noinline)) void {work}(const void *st_given, st_claims *st_claimed, int64_t {first}) {{",
            f"  const {region} *const st_in = st_given;",
            "  const st_loop st_iterations = st_in->st_loop;",
            *self.lines,
            "}",
            "",
        ]
        self.lines, self.depth = kernel, depth

    def _pieces(self, loop: For, shares: bool) -> None:
        """Print the loops over what a thread claims: pieces, or shares and their pieces; and over the iterations of a piece."""
        if shares:
            self.line("for (; st_share >= 0; st_share = st_next(st_claimed)) {")
            self.depth += 1
            self.line("for (int64_t st_piece = st_share; st_piece < st_iterations.pieces; st_piece += st_threads) {")
        else:
            self.line("for (; st_piece >= 0; st_piece = st_next(st_claimed)) {")
        self.depth += 1
        kind, name = c_type(loop.variable.type), self.names[loop.variable.name]
        end = self.names.fresh(f"{name}_end")
        bounds = f"{name} = st_begin(&st_iterations, st_piece), {end} = st_end(&st_iterations, st_piece)"
        self.line(f"for ({kind} {bounds}; {name} < {end}; {name}++) {{{beside(loop.origin)}")
        self._iteration(loop.body)
        self.line("}")
        for _ in range(2 if shares else 1):
            self.depth -= 1
            self.line("}")

    def _iteration(self, body: Step) -> None:
        """Print one iteration of a parallel loop; if it may fail, all later ones are skipped once one has failed."""
        if not may_fail(body):
            self.scope(body)
            return
        end = self.names.own("st_next")
        outer = self.region
        self.enter(Region(end, parallel=True, status=outer.status, declared=outer.declared))
        self.depth += 1
        self.line("if (st_failed(st_status)) continue;")
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
        self.line("if (!st_failed(st_status)) {")
        self.enter(Region(end, parallel=True, status="st_status"))
        self.scope(Steps(finish))
        self.leave()
        self.line("}")
        if may:
            self.line(f"{end}:;")

    def _statements(self, statements: tuple[Step, ...]) -> None:
        self.statement(Steps(statements))

    # Memory

    def declare_heap(self, arrays: dict[str, Type]) -> dict[str, Type]:
        """Declare the pointers (and maps) of a region's heap arrays, all empty."""
        for name, kind in arrays.items():
            shown = self.names[name]
            self.region.declared[0].add(name)
            if kind in OPAQUE:
                self.expressions.headers.add("st_map.h" if kind == MAP else "st_pieces.h")
            self.line(f"st_map {shown} = {{0}};" if kind == MAP else f"{c_type(kind)} *restrict {shown} = NULL;")
        return arrays

    def free_heap(self, arrays: dict[str, Type]) -> None:
        """Free what a region still holds; freed and published arrays are NULL by then."""
        for name, kind in arrays.items():
            self.line(self._freed(self.names[name], kind))

    def _freed(self, name: str, kind: Type) -> str:
        if kind == MAP:
            return f"st_map_free(&{name});"
        return f"st_parts_free({name});" if kind == PARTS else f"st_release({name});"

    def _fail_unless(self, succeeded: str) -> None:
        self.line(f"if (!{succeeded}) {{ st_fail({self.region.status}); goto {self.region.fails_to}; }}")

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
                name, kind = self.names[array], self._array_types[array]
                self.line(self._freed(name, kind))
                if kind != MAP:
                    self.line(f"{name} = NULL;")
            case Grow(array, _, capacity, needed):
                self._grow(self.names[array], self.names[capacity.name], needed)
            case Leave(array, parts, place):
                self.line(f"{self._part(parts, place)} = {self.names[array]};")
                self.line(f"{self.names[array]} = NULL;")
            case Take(array, _, parts, place):
                self.line(f"{self.names[array]} = {self._part(parts, place)};")
                self.line(f"{self._part(parts, place)} = NULL;")
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
        elif allocation.type == PARTS:
            self.line(f"{name} = st_parts_make({length});")
            self._fail_unless(name)
        else:
            capacity = allocation.length
            if isinstance(capacity, Var) and self._grown.get(allocation.array) == capacity.name and not allocation.zero:
                self.line(f"{name} = st_reserve(&{length}, sizeof *{name});")
            else:
                function = "st_allocate_zeros" if allocation.zero else "st_allocate"
                self.line(f"{name} = {function}({length}, sizeof *{name});")
            self._fail_unless(name)

    def _part(self, parts: ArrayRef, place: Value) -> str:
        return f"{self.names[parts.array]}->arrays[{self.expressions.index(place)}]"

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
