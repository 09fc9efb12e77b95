"""What is known of a kernel everywhere in its nest: its program and tensors, names and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ..concrete.completeness import Completeness
from ..concrete.nodes import Assign, Program, Stmt, Workspace, assignments, assignments_in_loops, runs_on_gpu
from ..concrete.provenance import Provenance
from ..ir.names import Names
from ..ir.nodes import Step, Type
from ..notation.nodes import Access, Div, walk_expression
from .assembly import Assembly
from .parameters import Parameters
from .scope import Scope
from .semiring import Semiring
from .subscripts import sums_of
from .tensor_types import TensorType
from .tensors import Tensors

Lower: TypeAlias = "Callable[[Context, Stmt, Scope], list[Step]]"


class Context:
    """What is known of one kernel; everything that depends on the place in the nest is in ``Scope`` instead."""

    def __init__(
        self, program: Program, types: Mapping[str, TensorType], result: Access, keys: Mapping[Access, str], value_type: Type,
        parameters: Parameters, names: Names, lower: Lower, *, assembly: Assembly | None = None, shares: Access | None = None,
        wide: bool = False, also: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        """Begin a kernel.

        Args:
            program: scheduled concrete notation.
            types: the types of every stored operand, by key, and of the result as it is written.
            result: the left side.
            keys: the key of every operand access.
            value_type: the type of values in which the kernel computes.
            parameters: what the kernel may take.
            names: the names of the kernel, those of its parameters among them.
            lower: lowers a statement at a place of the nest.
            assembly: how a sparse result is assembled that shares no pattern.
            shares: the operand whose pattern the result shares.
            wide: whether extents need coordinates of 64 bits, so that no array can cover the range of an index.
            also: further results, all dense.
        """
        self.program, self.result = program, result
        self.value_type, self.parameters = value_type, parameters
        self.assembly, self.shares, self.wide = assembly, shares, wide
        self.results = also | {result.tensor}
        self.narrow_result = assembly is not None and all(width == 32 for width in types[result.tensor].widths)
        self.extents, self.names = parameters.sizes.extents, names
        self.size, self.size_parameter = parameters.sizes.of, parameters.sizes.parameter
        self.semiring = Semiring(program.add, program.multiply)
        sums = sums_of((access, types[key].format) for access, key in keys.items())
        self.graph = Provenance((*sums, *program.relations))  # type: ignore[arg-type]  # relations are stored as objects in Program
        self.workspaces: dict[str, Workspace] = {workspace.name: workspace for workspace in program.workspaces}
        self.divides = any(isinstance(node, Div) for assign in assignments(program.statement) for node in walk_expression(assign.value))
        self.completeness = Completeness(program.statement, self.graph, lambda name: name in self.results and types[name].format.is_dense)
        self._lower = lower
        self._writes = _by_target(program.statement)
        self.tensors = Tensors(types, keys, self.results, self.graph, parameters)
        self.is_workspace = self.tensors.is_workspace
        self.on_gpu = runs_on_gpu(program)

    def lower(self, statement: Stmt, scope: Scope) -> list[Step]:
        """Return the steps of a statement at one place of the nest."""
        return self._lower(self, statement, scope)

    def writes(self, tensor: str) -> tuple[tuple[tuple[str, ...], Assign], ...]:
        """Return the assignments of the program that write a tensor, each with the loops around it."""
        return self._writes.get(tensor, ())


def _by_target(statement: Stmt) -> dict[str, tuple[tuple[tuple[str, ...], Assign], ...]]:
    """Return the assignments of a statement, each with the loops around it, by the tensor that they write."""
    found: dict[str, tuple[tuple[tuple[str, ...], Assign], ...]] = {}
    for loops, assign in assignments_in_loops(statement):
        found[assign.target.tensor] = (*found.get(assign.target.tensor, ()), (loops, assign))
    return found
