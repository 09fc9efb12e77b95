"""Reads the text of the loop IR (``ir.printer``) back: ``parse_function(show_function(f))`` prints as ``f`` does.

Indentation marks blocks. A name gets its type from its declaration; an operator has the type of its operands.
"""

from __future__ import annotations

import re

from .nodes import I64, ArrayParameter, Comment, For, Function, If, Kernel, Once, Scratch, SizeParameter, Step, Steps, Type, Var, While
from .statement_reader import StatementReader
from .tokens import Line, UnreadableProgram, bare

_HEAD = re.compile(r"(reads|writes|assembles) (\S+): (\w+)\[\] = (.+)|size (\S+) = (.+)")


def parse_function(text: str) -> Function:
    """Read a kernel.

    Raises:
        UnreadableProgram: the text is not a program; the message names the line and what is wrong.
    """
    numbered = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    lines = [Line(number, len(line) - len(line.lstrip()), line.strip()) for number, line in numbered]
    if not lines or not lines[0].text.startswith("kernel "):
        raise UnreadableProgram("line 1: a program begins with 'kernel' and its name")
    arrays: list[ArrayParameter] = []
    sizes: list[SizeParameter] = []
    rest = lines[1:]
    while rest and (found := _HEAD.fullmatch(rest[0].text)):
        use, array, kind, source, size, where = found.groups()
        if size:
            sizes.append(SizeParameter(bare(size), _source(where)))
        else:
            arrays.append(ArrayParameter(bare(array), Type(kind), _source(source), use != "reads", use == "assembles"))
        rest = rest[1:]
    reader = _Reader(rest, {array.name: array.type for array in arrays if not array.assembled}, {size.name: I64 for size in sizes})
    return Function(lines[0].text.removeprefix("kernel "), tuple(arrays), tuple(sizes), reader.body(-1))


def _source(text: str) -> tuple[str, str] | tuple[str, str, int]:
    parts = text.split(" ")
    return (parts[0], parts[1], int(parts[2])) if len(parts) == 3 else (parts[0], parts[1])


class _Reader(StatementReader):
    """Reads lines from the first to the last."""

    def __init__(self, lines: list[Line], arrays: dict[str, Type], scalars: dict[str, Type]) -> None:
        super().__init__(arrays, scalars)
        self.lines = lines[::-1]

    def body(self, above: int) -> Steps:
        """Read the lines that are indented deeper than ``above``. Their declarations are visible only there."""
        outer = dict(self.scalars)
        made: list[Step] = []
        while self.lines and self.lines[-1].depth > above:
            made.append(self._step(self.lines.pop()))
        self.scalars = outer
        return Steps(tuple(made))

    def _step(self, line: Line) -> Step:
        if line.text.startswith("#"):
            return Comment(line.text[1:].removeprefix(" "))
        self._begin(line)
        made = self._compound(line.depth) or self._simple()
        if self.tokens:
            raise self._wrong("the end of the line")
        return made

    def _compound(self, depth: int) -> Step | None:
        """Read a statement that contains other statements."""
        if self._take("if"):
            condition = self._value()
            self._expect(":")
            then = self.body(depth)
            otherwise: Step | None = None
            if self.lines and self.lines[-1].depth == depth and self.lines[-1].text == "else:":
                self.lines.pop()
                inner = self.body(depth)
                chained = len(inner.statements) == 1 and isinstance(inner.statements[0], If)  # "else if"
                otherwise = inner.statements[0] if chained else inner
            return If(condition, then, otherwise)
        if self._take("while"):
            condition = self._value()
            self._expect(":")
            return While(condition, self.body(depth))
        if self._take("block"):
            self._expect(":")
            return self.body(depth)
        if self._take("kernel"):
            return self._kernel(depth)
        if self._take("once"):
            self._expect("a")
            unit = self._next()[1]
            self._expect(":")
            return Once(unit, self.body(depth))  # type: ignore[arg-type]  # the verifier knows the units
        if any(map(self._sees, ("for", "parallel", "vector", "simd", "unroll", "dealt"))):
            return self._loop(depth)
        return None

    def _kernel(self, depth: int) -> Kernel:
        self._expect("of")
        blocks = self._value()
        self._expect("blocks")
        self._expect("of")
        threads, lanes, registers, gives = self._number(), 32, 0, list[Var]()
        if self._take("in"):
            self._expect("warps")
            self._expect("of")
            lanes = self._number()
        shared = self._number() if self._take("sharing") else 0
        if self._take("with"):
            registers = self._number()
            self._expect("registers")
        if self._take("giving"):
            while not gives or self._take(","):
                gives.append(self._variable(self._name()))
        self._expect(":")
        scratch: list[Scratch] = []
        while self.lines and self.lines[-1].depth > depth and self.lines[-1].text.startswith("scratch "):
            self._begin(self.lines.pop())
            scratch.append(self._scratch())
        return Kernel(self.body(depth), blocks, threads, tuple(gives), tuple(scratch), lanes, shared, registers)

    def _scratch(self) -> Scratch:
        self._expect("scratch")
        array = self._name()
        self._expect(":")
        kind = self.arrays[array] = self._type()
        length = self._bracketed()
        self._expect("a")
        unit, zero = self._next()[1], self._take("of")
        if zero:
            self._expect("zeros")
        return Scratch(array, kind, length, unit, zero)  # type: ignore[arg-type]  # the verifier knows the units

    def _loop(self, depth: int) -> For:
        tag = self._tag()
        self._expect("for")
        name = self._name()
        self._expect(":")
        variable = Var(name, self._type())
        self._expect("in")
        low = self._value()
        self._expect("..")
        high = self._value()
        step = self._number() if self._take("step") else 1
        self._expect(":")
        outer = dict(self.scalars)
        private, finish = self._part("private:", depth), None
        self.scalars[name] = variable.type
        finish_first = self._finish_lines(depth)
        body = self.body(depth)
        if finish_first:
            rest, self.lines = self.lines, finish_first
            finish = self._part("finish:", depth)
            self.lines = rest
        self.scalars = outer
        return For(variable, low, high, body, tag, private, finish or (), step)

    def _part(self, title: str, depth: int) -> tuple[Step, ...]:
        """Read the statements under a title. Their declarations stay visible in the loop."""
        if not (self.lines and self.lines[-1].depth > depth and self.lines[-1].text == title):
            return ()
        below, made = self.lines.pop().depth, list[Step]()
        while self.lines and self.lines[-1].depth > below:
            made.append(self._step(self.lines.pop()))
        return tuple(made)

    def _finish_lines(self, depth: int) -> list[Line]:
        """Remove and return the lines of ``finish``. They come before the body in the text, but see what the body leaves visible."""
        if not (self.lines and self.lines[-1].depth > depth and self.lines[-1].text == "finish:"):
            return []
        below, taken = self.lines[-1].depth, [self.lines.pop()]
        while self.lines and self.lines[-1].depth > below:
            taken.append(self.lines.pop())
        return taken[::-1]
