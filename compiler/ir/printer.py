"""Loop IR as readable pseudo-code, for people, tests and error reports."""

from __future__ import annotations

from collections.abc import Iterator

from .nodes import (
    Allocate,
    ArrayRef,
    Binary,
    Call,
    Cast,
    Comment,
    Const,
    Declare,
    Fill,
    For,
    Free,
    Function,
    Grow,
    If,
    Load,
    Parallel,
    Prefetch,
    Publish,
    Run,
    Select,
    SetVar,
    Step,
    Steps,
    Store,
    Unary,
    Unroll,
    Value,
    Var,
    Vector,
    While,
)

_PRECEDENCE = {
    "or": 1, "and": 2, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6,
}  # fmt: skip


def show_function(function: Function) -> str:
    """Return a kernel as text: its parameters, then its body."""
    lines = [f"kernel {function.name}"]
    for array in function.arrays:
        use = "assembles" if array.assembled else "writes" if array.writable else "reads"
        lines.append(f"  {use} {array.name}: {array.type.name}[] = {_source(array.source)}")
    lines += [f"  size {size.name} = {_source(size.source)}" for size in function.sizes]
    return "\n".join([*lines, *show_statement(function.body, "  ").splitlines()])


def show_statement(statement: Step, indent: str = "") -> str:
    """Return a statement as lines of text."""
    return "\n".join(_lines(statement, indent))


def show_expression(expr: Value) -> str:
    """Return an expression as text."""
    return _expression(expr, 0)


def _source(source: tuple[str, str] | tuple[str, str, int]) -> str:
    return " ".join(str(part) for part in source)


def _lines(statement: Step, indent: str) -> Iterator[str]:
    below = indent + "  "
    match statement:
        case Steps(statements):
            for inner in statements:
                yield from _lines(inner, indent)
        case If(condition, then, otherwise):
            yield f"{indent}if {show_expression(condition)}:"
            yield from _lines(then, below)
            if otherwise is not None:
                yield f"{indent}else:"
                yield from _lines(otherwise, below)
        case While(condition, body):
            yield f"{indent}while {show_expression(condition)}:"
            yield from _lines(body, below)
        case For():
            yield from _loop(statement, indent)
        case _:
            yield indent + _simple(statement)


def _loop(loop: For, indent: str) -> Iterator[str]:
    below = indent + "  "
    step = f" step {loop.step}" if loop.step != 1 else ""
    bounds = f"{show_expression(loop.low)} .. {show_expression(loop.high)}{step}"
    yield f"{indent}{_tag(loop.tag)}for {loop.variable.name}: {loop.variable.type.name} in {bounds}:"
    for title, statements in (("private", loop.private), ("finish", loop.finish)):
        if statements:
            yield f"{below}{title}:"
            for inner in statements:
                yield from _lines(inner, below + "  ")
    yield from _lines(loop.body, below)


def _tag(tag: Parallel | Vector | Unroll | None) -> str:
    match tag:
        case Parallel(chunking, chunk):
            details = ", ".join(str(part) for part in (chunking, chunk) if part is not None)
            return f"parallel({details}) " if details else "parallel "
        case Vector(vectors):
            return f"vector({vectors}) " if vectors else "vector "
        case Unroll(factor):
            return f"unroll({factor}) "
    return ""


def _simple(statement: Step) -> str:
    match statement:
        case Comment(text):
            return f"# {text}"
        case Declare(variable, value):
            return f"{variable.name}: {variable.type.name} = {show_expression(value)}"
        case SetVar(variable, value, op):
            return f"{variable.name} {op}= {show_expression(value)}"
        case Store(array, index, value, op, atomic):
            return f"{'atomic ' if atomic else ''}{array}[{show_expression(index)}] {op}= {show_expression(value)}"
        case Allocate(array, kind, length, storage, zero):
            return f"{array} = {storage} {kind.name}[{show_expression(length)}]{' of zeros' if zero else ''}"
        case Free(array):
            return f"free {array}"
        case Grow(array, _, capacity, needed):
            return f"grow {array} ({capacity.name}) to {show_expression(needed)}"
        case Fill(array, low, high, value):
            return f"{array}[{show_expression(low)} .. {show_expression(high)}] = {show_expression(value)}"
        case Run(function, arguments):
            return f"{function}({', '.join(map(show_expression, arguments))})"
        case Prefetch(array, index, count):
            return f"prefetch {array}[{show_expression(index)}]{f' and {count - 1} more' if count > 1 else ''}"
        case Publish(parameter, array, length):
            return f"publish {array}[0 .. {show_expression(length)}] as {parameter}"
    raise TypeError(f"not a statement of the loop IR: {statement!r}")


def _expression(expr: Value, above: int) -> str:
    match expr:
        case Var(name):
            return name
        case Const(value, kind):
            return str(float(value) if kind.is_float else value)
        case ArrayRef(array):
            return array
        case Load(array, index, kind, first):
            lanes = f" x{kind.lanes}" if kind.lanes > 1 else ""
            some = "" if first is None else f" first {show_expression(first)}"
            return f"{array}[{show_expression(index)}{lanes}{some}]"
        case Unary(op, operand):
            return f"{'not ' if op == 'not' else op}{_expression(operand, 7)}"
        case Cast(operand, kind):
            return f"{kind.name}({show_expression(operand)})"
        case Select(condition, then, otherwise):
            return f"({show_expression(then)} if {show_expression(condition)} else {show_expression(otherwise)})"
        case Call(function, arguments):
            return f"{function}({', '.join(map(show_expression, arguments))})"
        case Binary(op, left, right) if op in _PRECEDENCE:
            own = _PRECEDENCE[op]
            shown = f"{_expression(left, own)} {op} {_expression(right, own + 1)}"
            return f"({shown})" if own < above else shown
        case Binary(op, left, right):
            return f"{op}({show_expression(left)}, {show_expression(right)})"
    raise TypeError(f"not an expression of the loop IR: {expr!r}")
