"""What one kernel gathers while it is lowered: parameters, tensors, hoisted allocations, facts about stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from ..concrete.completeness import Completeness
from ..concrete.nodes import Assign, Forall, Program, Stmt, Where, Workspace, assignments, assignments_in_loops, runs_on_gpu
from ..concrete.provenance import Provenance, Sum
from ..format import Format
from ..frozen import frozen
from ..ir.arithmetic import integer, multiply
from ..ir.nodes import I32, I64, Allocate, Free, Step, Type, Value, Var
from ..levels.level import Level, LevelArray, Subscript
from ..notation.nodes import Access, Div, walk
from ..notation.value_types import TYPES
from ..workspaces.levels import Storage
from .assembly import Assembly
from .parameters import Parameters
from .scope import Scope
from .semiring import Semiring
from .subscripts import SeenSubscript, sums_of

if TYPE_CHECKING:
    from .privatize import PrivateCopies


@frozen
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


def loop_type(dtype: str) -> Type:
    """Return the loop-IR type of a numpy dtype name."""
    return Type(TYPES[dtype])


Lower: TypeAlias = "Callable[[Context, Stmt, Scope], list[Step]]"


class Context:
    """What one kernel gathers while it is lowered; everything that depends on the place in the nest is in ``Scope`` instead."""

    def __init__(
        self, program: Program, types: Mapping[str, TensorType], result: Access, keys: Mapping[Access, str], value_type: Type,
        parameters: Parameters, lower: Lower, *, assembly: Assembly | None = None, shares: Access | None = None, wide: bool = False,
        also: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        """Begin a kernel.

        Args:
            program: scheduled concrete notation.
            types: of every stored operand, by key, and of the result as it is written.
            result: the left side.
            keys: the key of every operand access.
            value_type: what is computed with.
            parameters: what the kernel takes; more are declared at first use.
            lower: lowers a statement at a place of the nest.
            assembly: how a sparse result that shares no pattern is put together.
            shares: the operand whose pattern the result has.
            wide: whether extents need coordinates of 64 bits, so that no array has room for all of an index.
            also: further results, all dense.
        """
        self.program, self.types, self.result, self.keys = program, types, result, keys
        self.value_type, self.parameters = value_type, parameters
        self.assembly, self.shares, self.wide = assembly, shares, wide
        self.results = also | {result.tensor}
        self.narrow_result = assembly is not None and all(width == 32 for width in types[result.tensor].widths)
        self.extents, self.names = parameters.extents, parameters.names
        self.array, self.size, self.size_parameter = parameters.array, parameters.size, parameters.size_parameter
        self.semiring = Semiring(program.add, program.multiply)
        sums = sums_of((access, types[key].format) for access, key in keys.items())
        self.graph = Provenance((*sums, *program.relations))  # type: ignore[arg-type]  # relations are stored as objects in Program
        self.workspaces: dict[str, Workspace] = {workspace.name: workspace for workspace in program.workspaces}
        self.divides = any(isinstance(node, Div) for assign in assignments(program.statement) for node in walk(assign.value))
        self.completeness = Completeness(program.statement, self.graph, lambda name: name in self.results and types[name].format.is_dense)
        self._lower = lower
        self._writes = _by_target(program.statement)
        self._storages: dict[Access, Storage] = {}
        self._declared_last: tuple[Access, ...] = ()
        self.sums: set[str] = set()  # the workspaces of ``accumulate``
        self.hoisted = [Allocations()]
        self.facts: dict[str, StoreFacts] = {}
        self.copies: dict[tuple[str, bool], PrivateCopies] = {}
        self.rooms: dict[str, str] = {}  # the workspace whose values are in an array; "" holds those of scalars
        self.on_gpu = runs_on_gpu(program.statement)

    def lower(self, statement: Stmt, scope: Scope) -> list[Step]:
        """Return the steps of a statement at one place of the nest."""
        return self._lower(self, statement, scope)

    def level_length(self, scope: Scope, access: Access, depth: int) -> Value:
        """Return how many positions the first ``depth`` levels of an operand have."""
        key, length = self.key(access), integer(1)
        for place, level in enumerate(self.storage(scope, access).levels[:depth]):
            length = self.stored_length(key, place) if not level.kind.full else multiply(length, level.extent)
        return length

    def stored_length(self, key: str, level: int) -> Var:
        """Return how many positions a level of a stored operand has that keeps coordinates."""
        own = self.types[key].format.stored_level(level)
        return self.size_parameter((key, "length", own), f"{key}{own + 1}_length")

    def operand(self, access: Access) -> Access:
        """Return the access of the program that is meant, protocols included."""
        if not access.protocols and access in self.keys:
            return access
        written = (access.tensor, access.subscripts, access.stored)
        return next((own for own in self.keys if (own.tensor, own.subscripts, own.stored) == written), access)

    # Tensors

    def key(self, access: Access) -> str:
        """Return the name under which the stored copy of an operand is kept."""
        return self.keys.get(access, access.tensor)

    def format_of(self, access: Access) -> Format | None:
        """Return the format in which an access is stored, None for workspaces."""
        kind = self.types.get(self.key(self.operand(access)))
        return kind.format if kind is not None else None

    def storage(self, scope: Scope, access: Access) -> Storage:
        """Return the levels and values of an operand, the dense result, or a workspace, as an access indexes it."""
        if access.tensor in self.workspaces:
            return scope.workspaces[access.tensor].held.stored
        return self.operand_storage(access)

    def operand_storage(self, access: Access) -> Storage:
        """Return the levels and values of an operand or the dense result, as an access indexes it."""
        known = self._storages.get(access)
        if known is None:
            known = self._storages[access] = self._declared(access)
        return known

    def declare(self, statement: Stmt) -> None:
        """Declare what the operands of a statement consist of, in the order in which they are read: so parameters stand."""
        if statement.operands is not self._declared_last:  # loops have those of the loops in them
            self._declared_last = statement.operands
            for access in _in_order(statement):
                if access.tensor not in self.workspaces and access.tensor not in self.results:
                    self.operand_storage(access)

    def _declared(self, access: Access) -> Storage:
        key = self.key(access)
        kind = self.types[key]
        levels = tuple(self._level(key, kind, access, level) for level in range(len(kind.format)))
        values = self.array(key, "values", None, loop_type(kind.dtype), writable=access.tensor in self.results)
        return Storage(key, levels, values, loop_type(kind.dtype))

    def _level(self, key: str, kind: TensorType, access: Access, level: int) -> Level:
        form = kind.format
        what = form.levels[level]
        index = access.subscripts[form.order[level]].index
        place = form.stored_level(level)
        width = I32 if kind.widths[place] == 32 else I64
        arrays = tuple(LevelArray(part, self.array(key, part, place, own), own) for part, own in what.types(width).items())

        def subscript() -> Subscript:
            mode, names = form.in_memory.order[place], [part.index for part in access.subscripts]
            relation = self.graph.made_by(Sum(form.compound_subscripts(names)[mode]).coordinate)
            assert isinstance(relation, Sum)
            stored = self.size_parameter((key, "extent", mode), f"{key}{mode + 1}_extent")
            return SeenSubscript(relation, index, frozenset(names[own] for own in form.order[:level]), stored, self.size)

        return what.seen(Level(what, index, self.size(index), form.unique(level), arrays), subscript)

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
        self.sums.add(name)
        return name

    def is_sum(self, statement: Stmt) -> bool:
        """Whether a statement adds up in such a workspace and hands on what is in it: one thing, though it has two parts."""
        return isinstance(statement, Where) and statement.producer.assignments[0].target.tensor in self.sums

    def writes(self, tensor: str) -> tuple[tuple[tuple[str, ...], Assign], ...]:
        """Return the assignments of the program that write a tensor, each with the loops around it."""
        return self._writes.get(tensor, ())


def _in_order(statement: Stmt) -> tuple[Access, ...]:
    """Return the accesses that a statement reads, producers before consumers."""
    while isinstance(statement, Forall):
        statement = statement.body
    if isinstance(statement, Where):
        return (*_in_order(statement.producer), *_in_order(statement.consumer))
    return tuple(access for child in statement.children for access in _in_order(child)) if statement.children else statement.operands


def _by_target(statement: Stmt) -> dict[str, tuple[tuple[tuple[str, ...], Assign], ...]]:
    """Return the assignments of a statement, each with the loops around it, by the tensor that they write."""
    found: dict[str, tuple[tuple[tuple[str, ...], Assign], ...]] = {}
    for loops, assign in assignments_in_loops(statement):
        found[assign.target.tensor] = (*found.get(assign.target.tensor, ()), (loops, assign))
    return found

