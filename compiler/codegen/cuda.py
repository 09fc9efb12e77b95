"""A function of the loop IR, split into host code and kernels, as one file of CUDA C++.

The host's part is ``int32_t st_kernel(void **st_arrays, int64_t *st_sizes, int64_t st_threads)``. It runs kernels on arrays in the
device's memory and returns 0, or 1 when there was no memory, or 2 when the device reports an error. Assembled arrays and their lengths
are left as in C (``codegen.c``). csrc/st_cuda.h defines the functions and macros that the text uses. Compiled as C++ with
csrc/st_executor.h, the text runs on the processor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..ir.nodes import (
    I64,
    Allocate,
    ArrayRef,
    Barrier,
    Call,
    Combine,
    Const,
    Dealt,
    Declare,
    Fill,
    For,
    Free,
    Function,
    Grow,
    Kernel,
    Load,
    Node,
    Once,
    Publish,
    Run,
    Scratch,
    Step,
    Store,
    Type,
    Value,
    Var,
)
from ..ir.rewrite import array_types, nodes_of, walk
from .c import KERNEL
from .expressions import PRIMARY, ExpressionPrinter, c_type
from .memory import Region
from .names import CUDA_WORDS, NameTable
from .statements import StatementPrinter, beside

OPERATORS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "min": "min", "max": "max", "and": "and", "or": "or"}


def print_cuda(function: Function, heading: str = "") -> str:
    """Print a function as it stands."""
    return _FilePrinter(function).source(heading)


def _of_members(function: str, lanes: int) -> str:
    """Return the name of a function about members of a group. It depends on the lanes of a warp if there are fewer than 32."""
    return f"{function}<{lanes}>" if lanes != 32 and "warp" in function else function


class _Expressions(ExpressionPrinter):
    """Expressions as C++ that both the host and the device compute.

    Attributes:
        lanes: lanes of a warp in the kernel that is printed.
    """

    lanes = 32

    def _print(self, expr: Value) -> tuple[str, int]:
        match expr:
            case Const(value, kind) if kind.is_float and not math.isfinite(value):
                return (f"st_nan_{kind.name}()" if math.isnan(value) else f"st_infinity_{kind.name}({int(value > 0)})"), PRIMARY
            case Combine(op, value, unit, within):
                return f"{_of_members(f'st_{OPERATORS[op]}_of_{unit}s_of_{within}', self.lanes)}({self.text(value)})", PRIMARY
        return super()._print(expr)

    def _call(self, function: str, arguments: tuple[Value, ...], kind: Type) -> str:
        name, bracket, given = super()._call(function, arguments, kind).partition("(")
        return f"{_of_members(name, self.lanes)}{bracket}{given}"


class _Kernels(StatementPrinter):
    """Statements of a kernel.

    Attributes:
        taken: bytes of dynamic shared memory that arrays have taken so far.
    """

    least_unrolled = 1  # nvcc unrolls other loops as it likes

    def __init__(self, kernel: Kernel, expressions: ExpressionPrinter, array_types: dict[str, Type]) -> None:
        super().__init__(expressions, array_types)
        self.kernel, self.lanes, self.taken = kernel, kernel.lanes, 0

    def statement(self, statement: Step) -> None:
        match statement:
            case Once(unit, body):
                self.line(f"if ({self._of_members(f'st_first_of_{unit}')}()) {{")
                self.scope(body)
                self.line("}")
            case Barrier(unit):
                self.line(f"{self._of_members(f'st_barrier_of_{unit}')}();")
            case Run(function, arguments):
                self.line(f"{self.expressions.text(Call(function, arguments, I64))};")
            case Fill(array, low, high, value):
                place, end = self.names.own("st_place"), self.names.own("st_end_of_fill")
                first, past = self.expressions.index(low), self.expressions.index(high)
                each = f"{self.names[array]}[{place}] = {self.expressions.text(value)};"
                self.line(f"for (int64_t {place} = {first}, {end} = {past}; {place} < {end}; {place}++) {each}")
            case Allocate():
                self._made(statement)
            case _:
                super().statement(statement)

    def _of_members(self, function: str) -> str:
        return _of_members(function, self.lanes)

    def _made(self, made: Allocate) -> None:
        kind, name, length = c_type(made.type), self.names[made.array], self.expressions.text(made.length)
        self.region.declared[-1].add(made.array)
        if made.storage not in ("block", "warp"):
            self.line(f"{kind} {name}[{length}]{' = {0}' if made.zero else ''};")
            return
        macro, given = "ST_LAUNCHED" if self.kernel.shared else "ST_SHARED", [kind, name, length]
        if made.storage == "warp":
            macro += "_OF_WARP"
            given += [str(self.kernel.threads // self.lanes), str(self.lanes)]
        if self.kernel.shared:
            given.append(str(self.taken))
            self.taken += self.kernel.shared_bytes_of(made)
        self.line(f"{macro}({', '.join(given)});")

    def _store(self, store: Store) -> None:
        if store.atomic:
            place = f"{self.names[store.array]}, {self.expressions.index(store.index)}"
            kind = self._array_types[store.array]
            value = self.expressions.converted(store.value, kind)
            self.line(f"st_atomic_{OPERATORS.get(store.op, 'write')}({place}, ({c_type(kind)})({value}));")
        else:
            super()._store(store)

    def _for(self, loop: For) -> None:
        if not isinstance(loop.tag, Dealt):
            super()._for(loop)
            return
        kind, name = c_type(loop.variable.type), self.names[loop.variable.name]
        members = self._of_members(f"st_{loop.tag.unit}s_of_{loop.tag.within}")
        low, high = self.expressions.text(loop.low, 12), self.expressions.converted(loop.high, loop.variable.type)
        low = f"{self._of_members(f'st_{loop.tag.unit}_of_{loop.tag.within}')}()" + ("" if low == "0" else f" + {low}")
        end = self.names.fresh(f"{name}_end")
        self.line(f"for ({kind} {name} = {low}, {end} = {high}; {name} < {end}; {name} += {members}()) {{{beside(loop.origin)}")
        self.scope(loop.body)
        self.line("}")


class _FilePrinter:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.expressions = _Expressions(NameTable(CUDA_WORDS))
        self.names = self.expressions.names
        self.types = {name: Type(kind) for name, kind in array_types(function).items()}
        for kernel in (node for node in walk(function.body) if isinstance(node, Kernel)):
            self.types |= {made.array: made.type for made in kernel.scratch}
        self.constant = {parameter.name for parameter in function.arrays if not parameter.writable}
        self.kernels: list[str] = []
        self.parts: list[str] = []
        self.held: set[str] = set()

    def source(self, heading: str) -> str:
        head = [f"/* {line.replace('*/', '* /')} */" for line in heading.splitlines() if line.strip()]
        host = _Host(self)
        host.enter(Region("", parallel=True))
        used = set(_used(self.function.body))
        for slot, size in enumerate(self.function.sizes):
            if size.name not in used:
                continue
            host.line(f"const int64_t {self.names[size.name]} = st_sizes[{slot}];")
        for slot, array in enumerate(self.function.arrays):
            if array.name in used:
                qualified = f"{'' if array.writable else 'const '}{c_type(array.type)}"
                host.line(f"{qualified} *{self.names[array.name]} = ({qualified} *)st_arrays[{slot}];")
        for array in _held(self.function.body):
            host.line(f"{c_type(self.types[array])} *{self.names[array]} = nullptr;")
        host.statement(self.function.body)
        begin = f"ST_EXPORT int32_t {KERNEL}(void **st_arrays, int64_t *st_sizes, int64_t st_threads) {{"
        body = [begin, "  st_host st_device;", *host.lines, "  return st_device.status();", "}", ""]
        kernels = ["#if ST_KERNELS", *self.kernels, *self._of_types(), "#endif", "", *self.parts, "", "#if ST_HOST"]
        return "\n".join([*head, '#include "st_cuda.h"', "", *kernels, *body, "#endif", ""])

    def _of_types(self) -> list[str]:
        """Instantiate the kernels of csrc/st_cuda.h that host code runs, for the types that it needs."""
        found: dict[str, None] = {}
        for node in _on_host(self.function.body):
            match node:
                case Fill(array):
                    found.setdefault(f"ST_FILL({_named(self.types[array])})")
                case Run(function, arguments) if function in _OF_TYPES:
                    arrays = [self.types[argument.array] for argument in arguments if isinstance(argument, ArrayRef)]
                    found.setdefault(f"{_OF_TYPES[function]}({_named(arrays[-1])})")
                    if function == "carry":
                        found.setdefault(f"ST_FILL({_named(arrays[0])})")
        return list(found)

    def kernel(self, kernel: Kernel) -> tuple[str, list[str]]:
        """Print a kernel, and return its name and its arguments."""
        name = self.names.own(f"{KERNEL}_part")
        made = {made.array for made in kernel.scratch}
        variables, arrays = _free_names(kernel)
        gives = {variable.name for variable in kernel.gives}
        parameters, arguments = [], []
        for array in arrays:
            if array not in made:
                constant = "const " if array in self.constant else ""
                parameters.append(f"ST_ARRAY({constant}{c_type(self.types[array])}) {self.names[array]}")
                arguments.append(self.names[array])
        for variable in variables:
            constant = "" if variable.name in gives else "const "
            parameters.append(f"{constant}{c_type(variable.type)} {self.names[variable.name]}")
            arguments.append(self.names[variable.name])
        self.expressions.lanes = kernel.lanes
        printer = _Kernels(kernel, self.expressions, self.types)
        printer.enter(Region("", parallel=True))
        if kernel.lanes != 32:
            printer.line(f"ST_WARPS_OF({kernel.lanes});")
        for scratch in kernel.scratch:
            given, length = self.names.own(f"st_of_all_{self.names[scratch.array]}"), self.names.own("st_length")
            parameters += [f"ST_ARRAY({c_type(scratch.type)}) {given}", f"const int64_t {length}"]
            place = f"{_of_members(f'st_{scratch.unit}_of_grid', kernel.lanes)}() * {length}"
            printer.line(f"ST_ARRAY({c_type(scratch.type)}) {self.names[scratch.array]} = st_part({given}, {place}, {length});")
        printer.statement(kernel.body)
        if kernel.gives:
            parameters.append("ST_ARRAY(int64_t) st_given")
            for place, variable in enumerate(kernel.gives):
                printer.line(f"st_give(st_given, {place}, {self.names[variable.name]});")
        types = (part.replace("ST_ARRAY(", "").replace(") ", " *").rpartition(" ") for part in parameters)
        kinds = (f"{kind} *" if name.startswith("*") else kind.removeprefix("const ") for kind, _, name in types)
        self.parts.append(f"ST_ENTRY({', '.join((name, *kinds))})")
        threads = max(kernel.threads, 1)
        bounds = f"ST_KERNEL_WITH({threads}, {kernel.registers})" if kernel.registers else f"ST_KERNEL({threads})"
        self.kernels += [f"{bounds} {name}({', '.join(parameters)}) {{", *printer.lines, "}", ""]
        return name, arguments


class _Host(StatementPrinter):
    """Statements of host code."""

    def __init__(self, file: _FilePrinter) -> None:
        function = file.function
        assembled = [parameter.name for parameter in function.arrays if parameter.assembled]
        slots = {parameter.name: slot for slot, parameter in enumerate(function.arrays)}
        published = {name: (slots[name], len(function.sizes) + rank) for rank, name in enumerate(assembled)}
        super().__init__(file.expressions, file.types, published=published)
        self.file = file

    def statement(self, statement: Step) -> None:
        match statement:
            case Kernel():
                self._kernel(statement)
            case Fill(array, low, high, value):
                first, past, kind = self.expressions.index(low), self.expressions.index(high), c_type(self._array_types[array])
                self.line(f"st_device.fill({self.names[array]}, {first}, {past}, ({kind})({self.expressions.text(value)}));")
            case Run(function, arguments):
                self.line(f"st_device.{function}({', '.join(self.expressions.text(argument) for argument in arguments)});")
            case Allocate(array, kind, length, _, zero):
                made = f"st_device.allocate<{c_type(kind)}>({self.expressions.text(length)}, {str(zero).lower()})"
                self.line(f"if (!({self.names[array]} = {made})) return st_device.status();")
            case Free(array):
                self.line(f"st_device.release({self.names[array]});")
            case Publish(parameter, array, length):
                pointer, size = self._published[parameter]
                self.line(f"st_arrays[{pointer}] = st_device.publish({self.names[array]});")
                self.line(f"st_sizes[{size}] = {self.expressions.text(length)};")
            case _:
                super().statement(statement)

    def _kernel(self, kernel: Kernel) -> None:
        name, arguments = self.file.kernel(kernel)
        blocks = self.expressions.text(kernel.blocks)
        rooms: list[str] = []
        if kernel.scratch:
            self.line("{")
            self.depth += 1
            lengths = [self._length(scratch) for scratch in kernel.scratch]
            members = {"block": 1, "warp": kernel.threads // kernel.lanes, "thread": kernel.threads}
            needed = [f"{length} * {members[s.unit] * s.type.bytes}" for length, s in zip(lengths, kernel.scratch, strict=True)]
            count = self.names.own("st_blocks")
            self.line(f"const int64_t {count} = st_device.blocks({blocks}, {' + '.join(needed)});")
            blocks = count
            rooms = [self._scratch(s, length, f"{count} * {members[s.unit]}") for length, s in zip(lengths, kernel.scratch, strict=True)]
            arguments += [part for room, length in zip(rooms, lengths, strict=True) for part in (room, length)]
        if kernel.gives:
            arguments.append("st_device.given()")
        shape = f"{{{kernel.threads}, {kernel.shared}}}" if kernel.shared else str(kernel.threads)
        self.line(f"st_device.launch({blocks}, {shape}, {', '.join([name, *arguments])});")
        for place, variable in enumerate(kernel.gives):
            self.line(f"st_device.take({place}, {self.names[variable.name]});")
        if kernel.gives:
            self.line("if (st_device.status()) return st_device.status();")
        if kernel.scratch:
            for room in rooms:
                self.line(f"st_device.release({room});")
            self.depth -= 1
            self.line("}")

    def _length(self, scratch: Scratch) -> str:
        length = self.names.own("st_each")
        self.line(f"const int64_t {length} = {self.expressions.text(scratch.length)};")
        return length

    def _scratch(self, scratch: Scratch, length: str, members: str) -> str:
        """Allocate an array of which every block, warp or thread of a kernel has a part."""
        room, kind = self.names.own("st_room"), c_type(scratch.type)
        self.line(f"{kind} *{room} = st_device.allocate<{kind}>({members} * {length}, {str(scratch.zero).lower()});")
        self.line(f"if (!{room}) return st_device.status();")
        return room


_OF_TYPES = {"scan": "ST_SCAN", "sort": "ST_SORT", "sort_range": "ST_SORT", "carry": "ST_CARRY"}
"""The functions that host code runs, and the macro that instantiates the kernel for each."""


def _named(kind: Type) -> str:
    return f"{c_type(kind)}, {kind.name}"


def _on_host(node: Node) -> Iterator[Node]:
    """Yield the nodes of host code, without those inside kernels."""
    if not isinstance(node, Kernel):
        yield node
        for child in node.children:
            yield from _on_host(child)


def _used(body: Node) -> Iterator[str]:
    """Yield the names of the variables and arrays that are mentioned, including those in the scratch arrays of kernels."""
    for node in walk(body):
        match node:
            case Var(name) | Load(name) | Store(name) | Fill(name) | ArrayRef(name):
                yield name
            case Kernel():
                for scratch in node.scratch:
                    yield from _used(scratch.length)


def _held(body: Node) -> list[str]:
    """Return the arrays that host code makes."""

    def visit(node: Node) -> list[str]:
        if isinstance(node, Kernel):
            return []
        own = [node.array] if isinstance(node, Allocate) else []
        return own + [array for child in node.children for array in visit(child)]

    return list(dict.fromkeys(visit(body)))


def _free_names(kernel: Kernel) -> tuple[list[Var], list[str]]:
    """Return the variables and arrays that a kernel uses from outside, in the order of their first use."""
    own = {node.variable.name for node in nodes_of(kernel.body, Declare, For)}
    made = {node.array for node in nodes_of(kernel.body, Allocate)}
    variables: dict[str, Var] = {}
    arrays: dict[str, None] = {}
    for node in (*walk(kernel.body), *kernel.gives):
        if isinstance(node, Var) and node.name not in own:
            variables.setdefault(node.name, node)
        elif isinstance(node, Load | Store | Fill | ArrayRef | Grow) and node.array not in made:
            arrays.setdefault(node.array)
    return list(variables.values()), list(arrays)
