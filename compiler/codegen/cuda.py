"""A function of the loop IR, split into host code and kernels, as one file of CUDA C++.

The host's part is ``int32_t st_kernel(void **st_arrays, int64_t *st_sizes, int64_t st_threads)``. It runs kernels on arrays in the
device's memory and returns 0, or 1 when there was no memory, or 2 when the device reports an error. Assembled arrays and their lengths
are left as in C (``codegen.c``). csrc/st_cuda.h defines the functions and macros that the text uses. Compiled as C++ with
csrc/st_executor.h, the text runs on the processor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..ir.nodes import Allocate, ArrayRef, Fill, Free, Function, Kernel, Load, Node, Publish, Run, Scratch, Step, Store, Type, Var
from ..ir.rewrite import array_types, nodes_of, walk
from .c import KERNEL
from .cuda_kernels import CudaExpressions, PrintedKernel, print_kernel
from .expressions import c_type
from .memory import Region
from .names import CUDA_WORDS, NameTable
from .statements import StatementPrinter


def print_cuda(function: Function, heading: str = "") -> str:
    """Print a function as it stands."""
    host = _Host(function)
    body = host.body()
    head = [f"/* {line.replace('*/', '* /')} */" for line in heading.splitlines() if line.strip()]
    kernels = [line for kernel in host.kernels for line in kernel.lines]
    entries = [kernel.entry for kernel in host.kernels]
    parts = ["#if ST_KERNELS", *kernels, *_of_types(function, host.types), "#endif", "", *entries, "", "#if ST_HOST"]
    return "\n".join([*head, '#include "st_cuda.h"', "", *parts, *body, "#endif", ""])


def _of_types(function: Function, types: Mapping[str, Type]) -> list[str]:
    """Instantiate the kernels of csrc/st_cuda.h that host code runs, for the types that it needs."""
    found: dict[str, None] = {}
    for node in _on_host(function.body):
        match node:
            case Fill(array):
                found.setdefault(f"ST_FILL({_named(types[array])})")
            case Run(name, arguments) if name in _OF_TYPES:
                arrays = [types[argument.array] for argument in arguments if isinstance(argument, ArrayRef)]
                found.setdefault(f"{_OF_TYPES[name]}({_named(arrays[-1])})")
                if name == "carry":
                    found.setdefault(f"ST_FILL({_named(arrays[0])})")
    return list(found)


class _Host(StatementPrinter):
    """Statements of host code.

    Attributes:
        types: of the elements of all arrays.
        kernels: those that it launches, in order, as far as it is printed.
    """

    def __init__(self, function: Function) -> None:
        assembled = [parameter.name for parameter in function.arrays if parameter.assembled]
        slots = {parameter.name: slot for slot, parameter in enumerate(function.arrays)}
        published = {name: (slots[name], len(function.sizes) + rank) for rank, name in enumerate(assembled)}
        self.types = {name: Type(kind) for name, kind in array_types(function).items()}
        self.types |= {made.array: made.type for kernel in nodes_of(function.body, Kernel) for made in kernel.scratch}
        super().__init__(CudaExpressions(NameTable(CUDA_WORDS)), self.types, published=published)
        self.function, self.kernels = function, list[PrintedKernel]()
        self.constant = {parameter.name for parameter in function.arrays if not parameter.writable}

    def body(self) -> list[str]:
        """Print the function that the caller calls."""
        self.enter(Region("", parallel=True))
        used = set(_used(self.function.body))
        for slot, size in enumerate(self.function.sizes):
            if size.name in used:
                self.line(f"const int64_t {self.names[size.name]} = st_sizes[{slot}];")
        for slot, array in enumerate(self.function.arrays):
            if array.name in used:
                qualified = f"{'' if array.writable else 'const '}{c_type(array.type)}"
                self.line(f"{qualified} *{self.names[array.name]} = ({qualified} *)st_arrays[{slot}];")
        for array in _held(self.function.body):
            self.line(f"{c_type(self.types[array])} *{self.names[array]} = nullptr;")
        self.statement(self.function.body)
        begin = f"ST_EXPORT int32_t {KERNEL}(void **st_arrays, int64_t *st_sizes, int64_t st_threads) {{"
        return [begin, "  st_host st_device;", *self.lines, "  return st_device.status();", "}", ""]

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
        printed = print_kernel(kernel, self.names, self.types, self.constant)
        self.kernels.append(printed)
        arguments = list(printed.arguments)
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
        self.line(f"st_device.launch({blocks}, {shape}, {', '.join([printed.name, *arguments])});")
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
