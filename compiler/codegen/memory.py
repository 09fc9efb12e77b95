"""Prints the statements of the loop IR that make, fill, hand on and release arrays as C.

Pointers to memory that a kernel allocates are declared at the top of the kernel (or of the parallel region that
allocates it), so that one place frees all memory when an allocation fails. Serial code jumps there. A thread of a
parallel region notes the failure, and all threads skip the iterations that are left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..ir.nodes import (
    MAP,
    OPAQUE,
    PARTS,
    Allocate,
    ArrayRef,
    Call,
    Const,
    Fill,
    Free,
    Grow,
    Leave,
    Publish,
    Step,
    Take,
    Type,
    Value,
    Var,
)
from .expressions import ExpressionPrinter, c_type


@dataclass
class Region:
    """The code that shares one set of heap pointers: the kernel, or one parallel region of it."""

    fails_to: str
    parallel: bool
    status: str = "&st_status"
    declared: list[set[str]] = field(default_factory=lambda: [set()])
    """The names declared in each open pair of braces, the outermost first."""
    blocks: list[list[tuple[tuple[Step, ...], int]]] = field(default_factory=lambda: [[]])
    """The blocks that are being printed in each open pair of braces: their statements, and the number of the next one."""


class MemoryPrinter:
    """Prints statements into ``lines``; ``expressions`` gives names and collects what the head of the file must define."""

    def __init__(
        self,
        expressions: ExpressionPrinter,
        array_types: dict[str, Type],
        grown: Mapping[str, str] | None = None,
        published: dict[str, tuple[int, int]] | None = None,
    ) -> None:
        """Create a printer.

        Args:
            array_types: the element type of every array (or ``map``) of the kernel.
            grown: the arrays that grow, and are trimmed before they are published, with the names of their capacities.
            published: for every assembled parameter, the slots of its pointer and of its length.
        """
        self.expressions = expressions
        self.names = expressions.names
        self.lines: list[str] = []
        self.depth = 1
        self._array_types = array_types
        self._grown = grown or {}
        self._published = published or {}
        self._regions: list[Region] = []

    def line(self, text: str) -> None:
        """Add a line of source text, indented by the current depth."""
        self.lines.append("  " * self.depth + text)

    def enter(self, region: Region) -> None:
        """Make ``region`` the one whose arrays the next statements allocate and release."""
        self._regions.append(region)

    def leave(self) -> None:
        """Go back to the region around."""
        self._regions.pop()

    @property
    def region(self) -> Region:
        """The region that is being printed, the innermost one."""
        return self._regions[-1]

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
        """Free the arrays that a region still holds. Freed and published arrays are NULL by then."""
        for name, kind in arrays.items():
            self.line(self._freed(self.names[name], kind))

    def _freed(self, name: str, kind: Type) -> str:
        if kind == MAP:
            return f"st_map_free(&{name});"
        return f"st_parts_free({name});" if kind == PARTS else f"st_release({name});"

    def _fail_unless(self, succeeded: str) -> None:
        self.line(f"if (!{succeeded}) {{ st_fail({self.region.status}); goto {self.region.fails_to}; }}")

    def check_maps(self, value: Value) -> None:
        """Print the check that an insertion into a map has found memory."""
        if isinstance(value, Call) and value.function == "map_insert":
            keys = value.arguments[0]
            assert isinstance(keys, ArrayRef)
            self._fail_unless(f"st_map_sound(&{self.names[keys.array]})")

    def memory(self, statement: Step) -> None:
        """Print a statement that is about arrays as a whole."""
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
