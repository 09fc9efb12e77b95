"""Splits a program for a GPU into host code and kernels: loops that are dealt out to the whole GPU, and all else that accesses arrays.

The host cannot access elements of arrays. Statements outside of dealt loops that do so become kernels of one
thread, which give back the scalars that host code needs, such as bounds and conditions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..errors import ScheduleError
from ..ir.arithmetic import ONE, integer
from ..ir.nodes import (
    BOOL,
    I64,
    Allocate,
    ArrayRef,
    Binary,
    Call,
    Comment,
    Const,
    Dealt,
    Declare,
    Fill,
    For,
    Free,
    Function,
    Group,
    Grow,
    If,
    Kernel,
    Load,
    Node,
    Prefetch,
    Publish,
    Run,
    Scratch,
    SetVar,
    Step,
    Steps,
    Type,
    Value,
    Var,
    While,
)
from ..ir.rewrite import as_steps, nodes_of, transform, walk, written_arrays
from .block_sizes import lanes_of, registers_of, threads_of
from .manager import Setting


def split_kernels(function: Function, setting: Setting) -> Function:
    """Return host code with kernels in it.

    Raises:
        ScheduleError: the kernel would allocate memory while it runs, which a GPU cannot do.
    """
    _refuse(function)
    body = as_steps(_placed(_without_prefetches(function.body), "grid"))
    return replace(function, body=_Splitter(function, setting.fresh).block(body))


def outside_kernels(function: Function) -> str | None:
    """Return a fault: something in host code that only kernels can do; None if there is nothing."""

    def visit(node: Node) -> str | None:
        if isinstance(node, Kernel):
            return None
        if isinstance(node, Load):
            return f"host code reads {node.array}"
        if isinstance(node, For) and isinstance(node.tag, Dealt):
            return f"the loop over {node.variable.name} is in no kernel"
        return next((found for child in node.children if (found := visit(child)) is not None), None)

    return visit(function.body)


def _refuse(function: Function) -> None:
    for node in walk(function.body):
        if isinstance(node, Grow):
            raise ScheduleError(f"on a GPU arrays are made before a kernel runs, and {node.array} grows while it does")


def _placed(step: Step, within: Group) -> Step:
    """Set the group of every dealt loop: the loop around that formed the group may be gone, if it had one iteration."""
    if isinstance(step, For) and isinstance(step.tag, Dealt):
        inner: Group = "block" if step.tag.unit == "block" else "warp"
        return replace(step, tag=replace(step.tag, within=within), body=_placed(step.body, inner))
    children = tuple(_placed(child, within) if isinstance(child, Step) else child for child in step.children)
    return step.rebuild(children) if children else step  # type: ignore[return-value]  # statements stay statements


def _without_prefetches(body: Steps) -> Steps:
    return transform(body, lambda node: Steps(()) if isinstance(node, Prefetch) else node)


class _Splitter:
    """Splits host code; ``fresh`` gives names."""

    def __init__(self, function: Function, fresh: Callable[[str], str]) -> None:
        self.fresh = fresh
        self.uses: dict[str, int] = {}
        for node in walk(function.body):
            if isinstance(node, Var):
                self.uses[node.name] = self.uses.get(node.name, 0) + 1

    def block(self, steps: Steps) -> Steps:
        """Return host code for statements in order; consecutive statements for one thread become one kernel."""
        made: list[Step] = []
        serial: list[Step] = []

        def flush() -> None:
            if any(_touches(step) for step in serial):
                made.extend(self.serial(tuple(serial)))
            else:
                made.extend(serial)
            serial.clear()

        for step in _flat(steps):
            if _is_serial(step):
                serial.append(step)
                continue
            flush()
            made.extend(self.host(step))
        flush()
        return Steps(tuple(_without_registers(made)))

    def host(self, step: Step) -> list[Step]:
        """Return the host code of a statement that contains kernels, or that only the host can do."""
        match step:
            case For(tag=Dealt()):
                return self.kernel(step)
            case For():
                before, (low, high) = self.read((step.low, step.high))
                return [*before, replace(step, low=low, high=high, body=self.block(as_steps(step.body)), tag=None)]
            case If(condition, then, otherwise):
                before, (known,) = self.read((condition,))
                return [*before, If(known, self.block(as_steps(then)), None if otherwise is None else self.block(as_steps(otherwise)))]
            case While(condition, body):
                if not _reads(condition):
                    return [While(condition, self.block(as_steps(body)), step.origin)]
                again = Var(self.fresh("again"), BOOL)
                test = self.serial((SetVar(again, condition),), (again,))
                return [Declare(again, Const(False, BOOL)), *test, While(again, Steps((self.block(as_steps(body)), *test)), step.origin)]
            case Allocate(length=length):
                before, (known,) = self.read((length,))
                return [*before, replace(step, length=known, storage="heap")]
            case Fill(low=low, high=high, value=value):
                before, (first, past, given) = self.read((low, high, value))
                return [*before, replace(step, low=first, high=past, value=given)]
            case Publish(length=length):
                before, (known,) = self.read((length,))
                return [*before, replace(step, length=known)]
            case Run(function, arguments):
                before, known = self.read(arguments)
                return [*before, Run(function, known)]
        return [step]

    def read(self, values: tuple[Value, ...]) -> tuple[list[Step], tuple[Value, ...]]:
        """Return values for host code; values that read arrays are computed by a kernel first."""
        whole = [isinstance(value, ArrayRef) or not _reads(value) for value in values]
        known = tuple(value if kept else Var(self.fresh("known"), value.type) for value, kept in zip(values, whole, strict=True))
        wanted = [(variable, value) for variable, value in zip(known, values, strict=True) if variable is not value]
        if not wanted:
            return [], values
        steps = tuple(SetVar(variable, value) for variable, value in wanted if isinstance(variable, Var))
        variables = tuple(step.variable for step in steps)
        declared: list[Step] = [Declare(variable, _blank(variable.type)) for variable in variables]
        return [*declared, *self.serial(steps, variables)], known

    def serial(self, steps: tuple[Step, ...], gives: tuple[Var, ...] | None = None) -> list[Step]:
        """Return a kernel of one thread. It gives back variables that it declares or assigns and that other code uses."""
        declared: list[Step] = []
        body: list[Step] = []
        if gives is None:
            inside = _counts(steps)
            found: dict[str, Var] = {}
            own = {node.variable.name for step in steps for node in nodes_of(step, Declare, For)}
            for step in steps:
                if isinstance(step, Declare) and self.uses.get(step.variable.name, 0) > inside[step.variable.name]:
                    found[step.variable.name] = step.variable
                    declared.append(Declare(step.variable, _blank(step.variable.type)))
                    step = SetVar(step.variable, step.value)
                for node in walk(step):
                    if isinstance(node, SetVar) and node.variable.name not in own:
                        found[node.variable.name] = node.variable
                body.append(step)
            gives, steps = tuple(found.values()), tuple(body)
        return [*declared, Kernel(Steps(steps), ONE, 1, gives)]

    def kernel(self, loop: For) -> list[Step]:
        """Return a dealt loop as a kernel. If its bounds are in arrays, the kernel reads them, and as many blocks as run at once are
        launched."""
        before: list[Step] = []
        low, high, is_known = loop.low, loop.high, not (_reads(loop.low) or _reads(loop.high))
        if not is_known and _changes_bounds(loop):
            before, (low, high) = self.read((low, high))
            is_known = True
        scratch: list[Scratch] = []
        body = _hoisted(replace(loop, low=low, high=high), scratch)
        threads, lanes, registers = threads_of(loop), lanes_of(loop), registers_of(loop)
        assert isinstance(loop.tag, Dealt)
        if not is_known:
            blocks = Call("resident_blocks", (integer(threads),), I64)
            return [Kernel(Steps((body,)), blocks, threads, (), tuple(scratch), lanes, registers=registers)]
        count: Value = Binary("-", high, low, I64) if low != Const(0, I64) else high
        a_block = {"block": 1, "warp": threads // lanes, "thread": threads}[loop.tag.unit]
        if a_block > 1:
            count = Binary("/", Binary("+", count, integer(a_block - 1), I64), integer(a_block), I64)
        return [*before, Kernel(Steps((body,)), count, threads, (), tuple(scratch), lanes, registers=registers)]


def _flat(steps: Step) -> list[Step]:
    """Return the statements of a block; blocks inside that declare nothing, or are host code, are flattened."""
    found: list[Step] = []
    for step in as_steps(steps).statements:
        found += _flat(step) if isinstance(step, Steps) else [step]
    return found


def _is_serial(step: Step) -> bool:
    """Return whether one thread of the GPU can do a statement, or the host if the statement accesses no arrays."""
    if isinstance(step, Fill | Run) or (isinstance(step, Allocate) and step.storage == "registers"):
        return False
    for node in walk(step):
        if isinstance(node, Allocate) and node.storage == "heap":
            return False
        if isinstance(node, Free | Publish) or (isinstance(node, For) and isinstance(node.tag, Dealt)):
            return False
    return True


def _touches(step: Step) -> bool:
    return not isinstance(step, Comment) and (_reads(step) or not isinstance(step, Declare | SetVar))


def _reads(node: Node) -> bool:
    return bool(nodes_of(node, Load, ArrayRef))


def _changes_bounds(loop: For) -> bool:
    """Return whether iterations write arrays that the loop's bounds read."""
    bounds = {node.array for value in (loop.low, loop.high) for node in nodes_of(value, Load, ArrayRef)}
    return bool(bounds & written_arrays(loop.body))


def _blank(kind: Type) -> Const:
    return Const(False, BOOL) if kind == BOOL else Const(0.0 if kind.is_float else 0, kind)


def _counts(steps: tuple[Step, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for step in steps:
        for node in walk(step):
            if isinstance(node, Var):
                found[node.name] = found.get(node.name, 0) + 1
    return found


def _without_registers(steps: list[Step]) -> list[Step]:
    """Turn register arrays of host code into heap arrays, which are freed at the end of the block."""
    held = {node.array for step in steps for node in nodes_of(step, Free, Publish)}
    made = [step.array for step in steps if isinstance(step, Allocate)]
    return [*steps, *(Free(array) for array in made if array not in held)]


def _hoisted(step: Step, scratch: list[Scratch]) -> Step:
    """Move the heap arrays of each block, warp or thread out of dealt loops."""
    match step:
        case For(tag=Dealt(unit=unit)):
            own: list[Step] = []  # iterations reset these arrays, so that each may allocate them anew
            for part in (node for one in step.private for node in as_steps(one).statements):
                if isinstance(part, Allocate) and part.storage == "heap":
                    scratch.append(Scratch(part.array, part.type, part.length, unit, part.zero))
                else:
                    own.append(part)
            return replace(step, private=(), finish=(), body=Steps((*own, _hoisted(step.body, scratch))))
        case Allocate(storage="heap"):
            raise ScheduleError("on a GPU arrays are made before a kernel runs; make the workspace smaller, or give its extents")
    children = tuple(_hoisted(child, scratch) if isinstance(child, Step) else child for child in step.children)
    return step.rebuild(children) if children else step  # type: ignore[return-value]  # statements stay statements
