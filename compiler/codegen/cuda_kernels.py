"""A kernel of the loop IR as a function of CUDA C++ that runs on the device, with what host code needs to launch it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from ..frozen import frozen
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
    Grow,
    Kernel,
    Load,
    Once,
    Run,
    Step,
    Store,
    Type,
    Value,
    Var,
)
from ..ir.rewrite import nodes_of, walk
from .c import KERNEL
from .expressions import PRIMARY, ExpressionPrinter, c_type
from .memory import Region
from .names import NameTable
from .statements import StatementPrinter, beside

OPERATORS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "min": "min", "max": "max", "and": "and", "or": "or"}


@frozen
class PrintedKernel:
    """A kernel as text.

    Attributes:
        name: of the function.
        arguments: what host code hands it, before scratch arrays and the place of the scalars that it gives.
        lines: the function.
        entry: the line that tells the host its parameters.
    """

    name: str
    arguments: tuple[str, ...]
    lines: tuple[str, ...]
    entry: str


def print_kernel(kernel: Kernel, names: NameTable, types: Mapping[str, Type], constant: Collection[str]) -> PrintedKernel:
    """Print a kernel.

    Args:
        names: of the file around.
        types: of the elements of all arrays.
        constant: the arrays that are only read.
    """
    name = names.own(f"{KERNEL}_part")
    made = {made.array for made in kernel.scratch}
    variables, arrays = _free_names(kernel)
    gives = {variable.name for variable in kernel.gives}
    parameters, arguments = [], []
    for array in arrays:
        if array not in made:
            parameters.append(f"ST_ARRAY({'const ' if array in constant else ''}{c_type(types[array])}) {names[array]}")
            arguments.append(names[array])
    for variable in variables:
        parameters.append(f"{'' if variable.name in gives else 'const '}{c_type(variable.type)} {names[variable.name]}")
        arguments.append(names[variable.name])
    printer = _Kernels(kernel, CudaExpressions(names, kernel.lanes), dict(types))
    printer.enter(Region("", parallel=True))
    if kernel.lanes != 32:
        printer.line(f"ST_WARPS_OF({kernel.lanes});")
    for scratch in kernel.scratch:
        given, length = names.own(f"st_of_all_{names[scratch.array]}"), names.own("st_length")
        parameters += [f"ST_ARRAY({c_type(scratch.type)}) {given}", f"const int64_t {length}"]
        place = f"{_of_members(f'st_{scratch.unit}_of_grid', kernel.lanes)}() * {length}"
        printer.line(f"ST_ARRAY({c_type(scratch.type)}) {names[scratch.array]} = st_part({given}, {place}, {length});")
    printer.statement(kernel.body)
    if kernel.gives:
        parameters.append("ST_ARRAY(int64_t) st_given")
        for place, variable in enumerate(kernel.gives):
            printer.line(f"st_give(st_given, {place}, {names[variable.name]});")
    threads = max(kernel.threads, 1)
    bounds = f"ST_KERNEL_WITH({threads}, {kernel.registers})" if kernel.registers else f"ST_KERNEL({threads})"
    lines = (f"{bounds} {name}({', '.join(parameters)}) {{", *printer.lines, "}", "")
    return PrintedKernel(name, tuple(arguments), lines, f"ST_ENTRY({', '.join((name, *_kinds(parameters)))})")


def _kinds(parameters: list[str]) -> list[str]:
    """Return the types of parameters as the host sees them."""
    parts = (part.replace("ST_ARRAY(", "").replace(") ", " *").rpartition(" ") for part in parameters)
    return [f"{kind} *" if name.startswith("*") else kind.removeprefix("const ") for kind, _, name in parts]


def _of_members(function: str, lanes: int) -> str:
    """Return the name of a function about members of a group. It depends on the lanes of a warp if there are fewer than 32."""
    return f"{function}<{lanes}>" if lanes != 32 and "warp" in function else function


class CudaExpressions(ExpressionPrinter):
    """Expressions as C++ that both the host and the device compute; ``lanes`` are those of a warp in the kernel around."""

    def __init__(self, names: NameTable, lanes: int = 32) -> None:
        super().__init__(names)
        self.lanes = lanes

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
