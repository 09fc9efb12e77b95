"""Protocolized concrete index notation as text: ``forall(i) forall(k) A(i:append) += B(i:step,k:locate) * c(k:locate)``.

The paper's notation writes a protocol around the index (Ahrens et al., section 4); here it follows the subscript after a
colon, which no expression can contain, so every legal name of a tensor or index stays legal.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NoReturn

from ..concrete.nodes import Assign, Block, Forall, Stmt, Where
from ..errors import ExpressionError
from ..frozen import frozen
from ..notation.nodes import Access, Expr, accesses, transform_expression
from ..notation.parser import parse
from ..notation.printer import show
from ..source import Span, pointing

READ_PROTOCOLS = ("step", "locate")
WRITE_PROTOCOLS = ("append", "insert")


def show_protocolized(statement: Stmt) -> str:
    """Return one line that ``parse_protocolized`` reads back; accesses without protocols are written plainly."""
    match statement:
        case Assign(target, operator, value):
            return f"{show_access(target)} {operator} {show_value(value)}"
        case Forall(index, body):
            return f"forall({index}) {show_protocolized(body)}"
        case Where(consumer, producer):
            return f"({show_protocolized(consumer)} where {show_protocolized(producer)})"
        case Block(statements):
            return "{" + "; ".join(map(show_protocolized, statements)) + "}"
        case _:
            raise TypeError(f"no printer for {type(statement).__name__}")


def show_access(access: Access) -> str:
    """Return the text of an access with the protocol of each mode, such as ``A(i,j:locate)``."""
    if not access.subscripts:
        return access.tensor
    protocols = access.protocols or ("",) * len(access.subscripts)
    paired = zip(access.subscripts, protocols, strict=True)
    modes = (f"{subscript}:{protocol}" if protocol else str(subscript) for subscript, protocol in paired)
    return f"{access.tensor}({','.join(modes)})"


def show_value(value: Expr) -> str:
    """Return an expression with the protocols of its accesses."""
    written: list[str] = []

    def rule(node: Expr) -> Expr | None:
        if not isinstance(node, Access):
            return None
        written.append(show_access(node))
        return Access(f"\0{len(written) - 1}\0")

    text = show(transform_expression(value, rule))
    return re.sub("\0(\\d+)\0", lambda match: written[int(match.group(1))], text)


def loop_nest(statement: Stmt, depth: int = 0) -> str:
    """Return an indented listing with protocols, one line a loop or assignment; producers come first, as they run."""
    pad = "  " * depth
    match statement:
        case Forall(index, body):
            return f"{pad}for {index}:\n{loop_nest(body, depth + 1)}"
        case Where(consumer, producer):
            return f"{pad}produce:\n{loop_nest(producer, depth + 1)}\n{pad}consume:\n{loop_nest(consumer, depth + 1)}"
        case Block(statements):
            return "\n".join(loop_nest(part, depth) for part in statements)
        case _:
            return f"{pad}{show_protocolized(statement)}"


def parse_protocolized(text: str) -> Stmt:
    """Parse a statement of concrete index notation, with or without protocols.

    Raises:
        ExpressionError: the text is not such a statement; the message names the column.
    """
    if not isinstance(text, str):
        raise ExpressionError(f"a program is a text such as 'forall(i) y(i) = x(i)', not {type(text).__name__}")
    reader = _Reader(text)
    statement = reader.statement()
    if reader.token.text:
        reader.fail("expected the end of the program")
    return statement


@frozen
class _Token:
    text: str
    place: int


class _Reader:
    """Reads structure token by token; assignments are cut out and given to the parser of index notation."""

    _PATTERN = re.compile(r"\s+|[A-Za-z_]\w*|\+=|\d[\w.]*|.", re.DOTALL)

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [_Token(match.group(), match.start()) for match in self._PATTERN.finditer(text) if not match.group().isspace()]
        self.tokens.append(_Token("", len(text)))
        self.place = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.place]

    def fail(self, message: str) -> NoReturn:
        start = self.token.place
        found = f", found {self.token.text!r}" if self.token.text else ", found the end"
        raise ExpressionError(pointing(message + found, self.text, Span(start, start + max(1, len(self.token.text)))))

    def take(self, wanted: str) -> None:
        if self.token.text != wanted:
            self.fail(f"expected {wanted!r}")
        self.place += 1

    def statement(self) -> Stmt:
        match self.token.text:
            case "(":
                self.place += 1
                consumer = self.statement()
                self.take("where")
                producer = self.statement()
                self.take(")")
                return Where(consumer, producer)
            case "{":
                return self._block()
            case "forall" if self._is_forall():
                return self._forall()
            case _:
                return self._assignment()

    def _block(self) -> Stmt:
        self.take("{")
        statements = [self.statement()]
        while self.token.text == ";":
            self.place += 1
            statements.append(self.statement())
        self.take("}")
        return Block(tuple(statements))

    def _is_forall(self) -> bool:
        """Whether a loop starts here, and not an assignment to a tensor that is called forall."""
        texts = [token.text for token in self.tokens[self.place :]]
        return texts[1:2] == ["("] and ")" in texts and texts[texts.index(")") + 1] not in ("=", "+=")

    def _forall(self) -> Stmt:
        self.place += 2
        names = [self._name()]
        while self.token.text == ",":
            self.place += 1
            names.append(self._name())
        self.take(")")
        body = self.statement()
        for name in reversed(names):
            body = Forall(name, body)
        return body

    def _name(self) -> str:
        name = self.token.text
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            self.fail("expected an index")
        self.place += 1
        return name

    def _assignment(self) -> Stmt:
        """Take tokens up to the end of the assignment: a bracket, semicolon or ``where`` that does not belong to it."""
        start, depth, previous = self.token.place, 0, ""
        protocols: list[_Token] = []
        plain = list(self.text)
        while self.token.text:
            text = self.token.text
            if depth == 0 and (text in (")", ";", "}") or (text == "where" and re.fullmatch(r"\w+|\)|\]", previous))):
                break
            depth += (text in ("(", "[")) - (text in (")", "]"))
            if text == ":":
                protocols.append(self._protocol(plain))
            previous = text
            self.place += 1
        end = self.token.place
        if not self.text[start:end].strip():
            self.fail("expected a loop or an assignment")
        assignment = parse(" " * start + "".join(plain[start:end]))
        return self._protocolized(Assign(assignment.target, assignment.operator, assignment.value), protocols)

    def _protocol(self, plain: list[str]) -> _Token:
        """Blank out a protocol in the text for the parser; the token before the next one stays current."""
        colon = self.token.place
        self.place += 1
        word = self.token
        if word.text not in READ_PROTOCOLS + WRITE_PROTOCOLS:
            self.fail(f"expected a protocol ({', '.join(READ_PROTOCOLS + WRITE_PROTOCOLS)})")
        for place in range(colon, word.place + len(word.text)):
            plain[place] = " "
        return word

    def _protocolized(self, assign: Assign, protocols: list[_Token]) -> Assign:
        """Return protocols to the accesses, which their places in the text identify."""

        def rule(node: Expr) -> Expr | None:
            if not isinstance(node, Access) or node.span is None:
                return None
            own = [word for word in protocols if node.span.start <= word.place < node.span.end]
            modes = len(node.subscripts)
            if own and len(own) != modes:
                self._refuse(f"{node.tensor} has {modes} modes and {len(own)} protocols; name one for each mode or none", own[0])
            return replace(node, protocols=tuple(word.text for word in own))

        target, value = rule(assign.target), transform_expression(assign.value, rule)
        assert isinstance(target, Access)
        self._check(target, "written", WRITE_PROTOCOLS, protocols)
        for access in accesses(value):
            self._check(access, "read", READ_PROTOCOLS, protocols)
        return Assign(target, assign.operator, value)

    def _check(self, access: Access, side: str, allowed: tuple[str, ...], protocols: list[_Token]) -> None:
        for name in access.protocols:
            if name not in allowed:
                word = next(word for word in protocols if word.text == name)
                self._refuse(f"{access.tensor} is {side}: its protocols are {' or '.join(allowed)}, not {name}", word)

    def _refuse(self, message: str, word: _Token) -> NoReturn:
        raise ExpressionError(pointing(message, self.text, Span(word.place, word.place + len(word.text))))
