"""Loop IR as text, for people, tests and error reports; ``ir.parser`` reads it.

Types are printed where names are declared, and with constants that are neither i64 nor f64; all other types follow from these. Names
that are also words of the language are printed in backticks. The ``origin`` of loops is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from .nodes import (
    BOOL,
    F64,
    I64,
    Allocate,
    ArrayRef,
    Barrier,
    Binary,
    Call,
    Cast,
    Combine,
    Comment,
    Const,
    Dealt,
    Declare,
    Fill,
    For,
    Free,
    Function,
    Grow,
    If,
    Kernel,
    Leave,
    Load,
    Once,
    Parallel,
    Prefetch,
    Publish,
    Run,
    Select,
    SetVar,
    Simd,
    Step,
    Steps,
    Store,
    Take,
    Unary,
    Unroll,
    Value,
    Var,
    Vector,
    While,
)
from .rewrite import own_declarations

PRECEDENCE = {
    "or": 1, "and": 2, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6,
}  # fmt: skip
WORDS = frozenset((
    "and", "as", "assembles", "at", "atomic", "barrier", "block", "combine", "dealt", "else", "finish", "first", "for", "free", "grow",
    "heap", "from", "if", "in", "inf", "kernel", "least", "leave", "map", "max", "min", "more", "nan", "not", "of", "once", "or",
    "parallel", "parts", "prefetch", "private", "publish", "reads", "registers", "scratch", "simd", "size", "step", "stream", "take",
    "to", "unroll", "vector", "warp", "while", "writes", "zeros", "True", "False",
))  # fmt: skip
"""Words of the language, so that names like them are printed in backticks."""


def show_function(function: Function) -> str:
    """Return a kernel as text: its parameters, then its body."""
    lines = [f"kernel {function.name}"]
    for array in function.arrays:
        use = "assembles" if array.assembled else "writes" if array.writable else "reads"
        lines.append(f"  {use} {_name(array.name)}: {array.type.name}[] = {_source(array.source)}")
    lines += [f"  size {_name(size.name)} = {_source(size.source)}" for size in function.sizes]
    return "\n".join([*lines, *show_statement(function.body, "  ").splitlines()])


def show_statement(statement: Step, indent: str = "") -> str:
    """Return a statement as lines of text."""
    return "\n".join(_lines(statement, indent, set()))


def show_expression(expr: Value) -> str:
    """Return an expression as text."""
    return _expression(expr, 0)


def _name(name: str) -> str:
    return f"`{name}`" if name in WORDS else name


def _source(source: tuple[str, str] | tuple[str, str, int]) -> str:
    return " ".join(str(part) for part in source)


def _lines(statement: Step, indent: str, declared: set[str]) -> Iterator[str]:
    """Yield lines. A block in a block is marked as such only if it hides a name that is ``declared`` around it."""
    below = indent + "  "
    match statement:
        case Steps(statements):
            for inner in statements:
                if isinstance(inner, Steps) and not own_declarations(inner).isdisjoint(declared):
                    yield f"{indent}block:"
                    yield from _lines(inner, below, set())
                else:
                    yield from _lines(inner, indent, declared)
                    declared |= own_declarations(Steps((inner,)))
        case If(condition, then, otherwise):
            yield f"{indent}if {show_expression(condition)}:"
            yield from _lines(then, below, set())
            if otherwise is not None:
                yield f"{indent}else:"
                yield from _lines(otherwise, below, set())
        case While(condition, body):
            yield f"{indent}while {show_expression(condition)}:"
            yield from _lines(body, below, set())
        case For():
            yield from _loop(statement, indent)
        case Kernel(body, blocks, threads, gives, scratch, lanes, shared, registers):
            given = "".join(f", {_name(variable.name)}" for variable in gives)
            warps = "" if lanes == 32 else f" in warps of {lanes}"
            room = (f" sharing {shared}" if shared else "") + (f" with {registers} registers" if registers else "")
            yield f"{indent}kernel of {show_expression(blocks)} blocks of {threads}{warps}{room}{given and ' giving ' + given[2:]}:"
            for made in scratch:
                zeros = " of zeros" if made.zero else ""
                yield f"{below}scratch {_name(made.array)}: {made.type.name}[{show_expression(made.length)}] a {made.unit}{zeros}"
            yield from _lines(body, below, set())
        case Once(unit, body):
            yield f"{indent}once a {unit}:"
            yield from _lines(body, below, set())
        case _:
            yield indent + _simple(statement)


def _loop(loop: For, indent: str) -> Iterator[str]:
    below = indent + "  "
    step = f" step {loop.step}" if loop.step != 1 else ""
    bounds = f"{show_expression(loop.low)} .. {show_expression(loop.high)}{step}"
    yield f"{indent}{_tag(loop.tag)}for {_name(loop.variable.name)}: {loop.variable.type.name} in {bounds}:"
    for title, statements in (("private", loop.private), ("finish", loop.finish)):
        if statements:
            yield f"{below}{title}:"
            yield from _lines(Steps(statements), below + "  ", set())
    yield from _lines(loop.body, below, set())


def _tag(tag: Parallel | Vector | Simd | Unroll | Dealt | None) -> str:
    match tag:
        case Parallel(chunking, chunk):
            details = ", ".join(str(part) for part in (chunking, chunk) if part is not None)
            return f"parallel({details}) " if details else "parallel "
        case Vector(vectors, least, foreseen):
            details = ", ".join([str(vectors)] * bool(vectors) + [f"least {least}"] * bool(least) + ["foreseen"] * foreseen)
            return f"vector({details}) " if details else "vector "
        case Simd(reductions):
            details = ", ".join(f"{op} {' '.join(map(_name, names))}" for op, names in reductions)
            return f"simd({details}) " if details else "simd "
        case Unroll(factor):
            return f"unroll({factor}) "
        case Dealt(unit, within, lanes, at_once, registers):
            more = (f", {lanes} lanes" if lanes != 32 else "") + (f", {at_once} at_once" if at_once != 1 else "")
            more += f", {registers} registers" if registers else ""
            return f"dealt({unit} of {within}{more}) "
    return ""


def _simple(statement: Step) -> str:
    match statement:
        case Comment(text):
            return f"# {text}"
        case Declare(variable, value):
            return f"{_name(variable.name)}: {variable.type.name} = {show_expression(value)}"
        case SetVar(variable, value, op):
            return f"{_name(variable.name)} {op}= {show_expression(value)}"
        case Store(array, index, value, op, atomic, streams, carry):
            own = f"({show_expression(carry.slot)}, {show_expression(carry.width)})" if carry is not None else ""
            how = f"atomic{own} " if atomic else "stream " if streams else ""
            return f"{how}{_name(array)}[{show_expression(index)}] {op}= {show_expression(value)}"
        case Allocate(array, kind, length, storage, zero):
            return f"{_name(array)} = {storage} {kind.name}[{show_expression(length)}]{' of zeros' if zero else ''}"
        case Free(array):
            return f"free {_name(array)}"
        case Grow(array, _, capacity, needed):
            return f"grow {_name(array)} ({_name(capacity.name)}) to {show_expression(needed)}"
        case Leave(array, parts, place):
            return f"leave {_name(array)} at {_name(parts.array)}[{show_expression(place)}]"
        case Take(array, kind, parts, place):
            return f"take {_name(array)}: {kind.name} from {_name(parts.array)}[{show_expression(place)}]"
        case Fill(array, low, high, value):
            return f"{_name(array)}[{show_expression(low)} .. {show_expression(high)}] = {show_expression(value)}"
        case Run(function, arguments):
            return f"{function}({', '.join(map(show_expression, arguments))})"
        case Prefetch(array, index, count, cache):
            more, where = f" and {count - 1} more" if count > 1 else "", f" into cache {cache}" if cache > 1 else ""
            return f"prefetch {_name(array)}[{show_expression(index)}]{more}{where}"
        case Barrier(unit):
            return f"barrier of {unit}"
        case Publish(parameter, array, length):
            return f"publish {_name(array)}[0 .. {show_expression(length)}] as {_name(parameter)}"
    raise TypeError(f"not a statement of the loop IR: {statement!r}")


def _expression(expr: Value, above: int) -> str:
    match expr:
        case Var(name) | ArrayRef(name):
            return _name(name)
        case Const():
            return _constant(expr)
        case Load(array, index, kind, first):
            lanes = f" x{kind.lanes}" if kind.lanes > 1 else ""
            some = "" if first is None else f" first {show_expression(first)}"
            return f"{_name(array)}[{show_expression(index)}{lanes}{some}]"
        case Unary("-", Const() as operand):
            return f"-({_constant(operand)})"
        case Unary(op, operand):
            return f"{'not ' if op == 'not' else op}{_expression(operand, 7)}"
        case Cast(operand, kind):
            return f"{kind.name}({show_expression(operand)})"
        case Select(condition, then, otherwise):
            return f"({show_expression(then)} if {show_expression(condition)} else {show_expression(otherwise)})"
        case Combine(op, value, unit, within):
            return f"combine({op}, {unit} of {within}, {show_expression(value)})"
        case Call(function, arguments):
            return f"{function}({', '.join(map(show_expression, arguments))})"
        case Binary(op, left, right) if op in PRECEDENCE:
            own = PRECEDENCE[op]
            shown = f"{_expression(left, own)} {op} {_expression(right, own + 1)}"
            return f"({shown})" if own < above else shown
        case Binary(op, left, right):
            return f"{op}({show_expression(left)}, {show_expression(right)})"
    raise TypeError(f"not an expression of the loop IR: {expr!r}")


def _constant(constant: Const) -> str:
    """Return the text of a constant, with its type unless that is i64, f64 or bool."""
    if not constant.type.is_float:
        usual = constant.type in (I64, BOOL)
        return f"{constant.value}{'' if usual else constant.type.name}"
    value = float(constant.value)
    shown = str(value) if math.isfinite(value) else f"{'-' if value < 0 else '+'}{abs(value)}"
    return shown if constant.type == F64 else f"{shown}{constant.type.name}"
