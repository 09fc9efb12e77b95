"""What one kernel gathers while it is lowered: parameters, tensors, hoisted allocations, facts about stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..concrete.completeness import Completeness
from ..concrete.nodes import Assign, Program, Stmt, Workspace, assignments, assignments_in_loops, runs_on_gpu
from ..concrete.provenance import Provenance
from ..format import Format
from ..ir.arithmetic import integer, multiply
from ..ir.nodes import I32, I64, Allocate, ArrayParameter, Free, SizeParameter, Step, Type, Value, Var
from ..levels.level import Level, LevelArray
from ..notation.nodes import Access, Div, walk
from .assembly import Assembly
from .levels import Stored
from .names import Names
from .scope import Scope
from .semiring import Semiring
from .workspaces import HeldWorkspace

if TYPE_CHECKING:
    from .privatize import PrivateCopies


@dataclass(frozen=True)
class TensorType:
    """How a tensor of the statement is stored: format, numpy dtype name, bits of the index arrays of each level."""

    format: Format
    dtype: str
    widths: tuple[int, ...]


@dataclass
class Allocations:
    """Allocations and counters hoisted to where they are made once: the kernel's start, or the start of a thread."""

    before: list[Step] = field(default_factory=list)
    after: list[Step] = field(default_factory=list)


@dataclass
class StoreFacts:
    """What the stores to one tensor need: zeros before them, because some are conditional or accumulate."""

    needs_zero: bool = False


TYPES = {
    "float64": "f64", "float32": "f32", "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip


def loop_type(dtype: str) -> Type:
    """Return the loop-IR type of a numpy dtype name."""
    return Type(TYPES[dtype])


class Context:
    """Mutable state of one lowering; everything that depends on the place in the nest is in ``Scope`` instead."""

    def __init__(
        self, program: Program, types: Mapping[str, TensorType], result: Access, extents: Mapping[str, int], keys: Mapping[Access, str],
        value_type: Type, aliases: Mapping[str, str],
    ) -> None:  # fmt: skip
        self.program = program
        self.types = types
        self.result = result
        self.extents = dict(extents)
        self.keys = keys
        self.value_type = value_type
        self.aliases = aliases
        self.semiring = Semiring(program.add, program.multiply)
        self.graph = Provenance(program.relations)  # type: ignore[arg-type]  # relations are stored as objects in Program
        self.workspaces: dict[str, Workspace] = {workspace.name: workspace for workspace in program.workspaces}
        self.divides = any(isinstance(node, Div) for assign in assignments(program.statement) for node in walk(assign.value))
        self.completeness = Completeness(program.statement, self.graph, lambda name: name == result.tensor and types[name].format.is_dense)
        self._writes = _by_target(program.statement)
        self.names = Names()
        self.arrays: dict[tuple[object, ...], ArrayParameter] = {}
        self.sizes: dict[tuple[object, ...], SizeParameter] = {}
        self.stored: dict[str, Stored] = {}
        self._storages: dict[Access, Stored] = {}
        self.hoisted = [Allocations()]
        self.facts: dict[str, StoreFacts] = {}
        self.copies: dict[str, PrivateCopies] = {}
        self.held: dict[str, HeldWorkspace] = {}
        self.rooms: dict[str, str] = {}  # the workspace whose values are in an array; "" holds those of scalars
        self.outside: dict[str, int] = {}  # how many parallel loops stand around the where of a workspace
        self.assembly: Assembly | None = None
        self.shares: Access | None = None
        self.narrow_result = False
        self.on_gpu = runs_on_gpu(program.statement)
        self.wide = False
        self.lower: Callable[[Stmt, Scope], list[Step]] = _unset

    # Parameters

    def array(self, tensor: str, part: str, level: int | None, kind: Type, *, writable: bool = False, assembled: bool = False) -> str:
        """Return the name of an array parameter, declaring it at first use."""
        source = (tensor, part) if level is None else (tensor, part, level)
        if source not in self.arrays:
            wish = f"{tensor}_vals" if level is None else f"{tensor}{level + 1}_{part}"
            self.arrays[source] = ArrayParameter(self.names.permanent(wish), kind, source, writable, assembled)
        return self.arrays[source].name

    def size_parameter(self, source: tuple[str, str] | tuple[str, str, int], wish: str) -> Var:
        if source not in self.sizes:
            self.sizes[source] = SizeParameter(self.names.permanent(wish), source)
        return Var(self.sizes[source].name, I64)

    def size(self, index: str) -> Value:
        """Return the extent of an original index."""
        if index in self.extents:
            return integer(self.extents[index])
        name = self.aliases.get(index, index)
        return self.size_parameter(("index", name), f"{name}_size")

    def level_length(self, access: Access, depth: int) -> Value:
        """Return how many positions the first ``depth`` levels of an operand have."""
        key, length = self.key(access), integer(1)
        for place, level in enumerate(self.storage(access).levels[:depth]):
            stored = not level.kind.full
            length = self.size_parameter((key, "length", place), f"{key}{place + 1}_length") if stored else multiply(length, level.extent)
        return length

    def operand(self, access: Access) -> Access:
        """Return the access of the program that is meant, protocols included."""
        return next((own for own in self.keys if replace(own, protocols=()) == replace(access, protocols=())), access)

    # Tensors

    def key(self, access: Access) -> str:
        """Return the name under which the stored copy of an operand is kept."""
        return self.keys.get(access, access.tensor)

    def format_of(self, access: Access) -> Format | None:
        """Return the format in which an access is stored, None for workspaces."""
        kind = self.types.get(self.key(self.operand(access)))
        return kind.format if kind is not None else None

    def storage(self, access: Access) -> Stored:
        """Return the levels and values of an operand, the dense result, or a visible workspace, as an access indexes it."""
        if access.tensor in self.workspaces:
            return self.stored[access.tensor]
        known = self._storages.get(access)
        if known is None:
            known = self._storages[access] = self._declared(access)
        return known

    def _declared(self, access: Access) -> Stored:
        key = self.key(access)
        kind = self.types[key]
        levels = tuple(self._level(key, kind, access, level) for level in range(len(kind.format)))
        values = self.array(key, "values", None, loop_type(kind.dtype), writable=access.tensor == self.result.tensor)
        return Stored(key, levels, values, loop_type(kind.dtype))

    def _level(self, key: str, kind: TensorType, access: Access, level: int) -> Level:
        form = kind.format
        what = form.levels[level]
        index = access.subscripts[form.order[level]].index
        width = I32 if kind.widths[level] == 32 else I64
        arrays = tuple(LevelArray(part, self.array(key, part, level, own), own) for part, own in what.types(width).items())
        return Level(what, index, self.size(index), form.unique(level), arrays)

    # Hoisting

    def hoist(self, array: str, kind: Type, length: Value, *, zero: bool) -> None:
        """Allocate an array once: at the start of the kernel, or of the thread inside a parallel loop."""
        self.hoisted[-1].before.append(Allocate(array, kind, length, "heap", zero))
        self.hoisted[-1].after.append(Free(array))

    @contextmanager
    def thread(self) -> Iterator[Allocations]:
        """Collect what is hoisted inside a parallel loop: it is private to a thread."""
        own = Allocations()
        self.hoisted.append(own)
        try:
            yield own
        finally:
            self.hoisted.pop()

    def accumulator(self, target: str, indices: tuple[str, ...]) -> str:
        """Return the name of a new workspace in which what goes to a target is summed: a scalar, or a row in registers."""
        name = f"t{target}"
        count = 1
        while name in self.workspaces or name in self.types:
            count += 1
            name = f"t{target}{count}"
        self.workspaces[name] = Workspace(name, indices, "registers" if indices else "scalar")
        return name

    def writes(self, tensor: str) -> tuple[tuple[tuple[str, ...], Assign], ...]:
        """Return the assignments of the program that write a tensor, each with the loops around it."""
        return self._writes.get(tensor, ())


def _by_target(statement: Stmt) -> dict[str, tuple[tuple[tuple[str, ...], Assign], ...]]:
    """Return the assignments of a statement, each with the loops around it, by the tensor that they write."""
    found: dict[str, tuple[tuple[tuple[str, ...], Assign], ...]] = {}
    for loops, assign in assignments_in_loops(statement):
        found[assign.target.tensor] = (*found.get(assign.target.tensor, ()), (loops, assign))
    return found


def _unset(statement: Stmt, scope: Scope) -> list[Step]:
    raise AssertionError("the statement lowering is not set")
