"""Expressions of the loop IR as C text, with no more parentheses than precedence asks for.

C converts operands by its own rules. If they would compute in a narrower or wider type than the IR says, a cast is
printed. Indices of arrays are computed in 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ..ir.intrinsics import INTRINSICS, OF_HALVES
from ..ir.nodes import (
    F32,
    I32,
    I64,
    MAP,
    SHARE_BEGIN,
    SHARE_NUMBER,
    U16,
    ArrayRef,
    Binary,
    Call,
    Cast,
    Const,
    Load,
    Select,
    Type,
    Unary,
    Value,
    Var,
)
from ..numpy_later import np
from .names import NameTable

PRIMARY, UNARY, TERNARY, LOWEST = 16, 14, 3, 0
_PRECEDENCE = {"*": 13, "/": 13, "%": 13, "+": 12, "-": 12, "<": 10, "<=": 10, ">": 10, ">=": 10, "==": 9, "!=": 9, "and": 5, "or": 4}
_SYMBOLS = {"and": "&&", "or": "||"}
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
_SCALARS = {"f32": "float", "f64": "double", "bool": "bool", "map": "st_map", "parts": "st_parts"}


def c_type(kind: Type) -> str:
    """Return the C name of a type; vectors are typedefs of the generated file."""
    if kind.lanes > 1:
        return kind.name
    return _SCALARS.get(kind.name) or f"{'u' if kind.name.startswith('u') else ''}int{kind.name[1:]}_t"


def vector_access(kind: Type) -> str:
    """Return the typedef through which a vector is read from or written to memory of any alignment."""
    return f"{kind.name}_u"


def lane_function(function: str, kind: Type) -> str:
    """Return the name of a function over vectors that the generated file defines: sum, product, min, max, gather_i32x8."""
    return f"st_{function}_{kind.name}"


class ExpressionPrinter:
    """Prints expressions with the names of one function; remembers which headers, functions and vector helpers they need."""

    def __init__(self, names: NameTable) -> None:
        self.names = names
        self.headers: set[str] = set()
        self.brought: dict[str, str] = {}  # the C of functions that no header defines, by name
        self.vectors: set[Type] = set()
        self.lane_functions: set[tuple[str, Type]] = set()

    def text(self, expr: Value, above: int = LOWEST) -> str:
        """Return an expression as an operand of an operator of precedence ``above``."""
        shown, precedence = self._print(expr)
        return f"({shown})" if precedence < above else shown

    def converted(self, expr: Value, kind: Type) -> str:
        """Return an expression as the value of a variable or element of the given type."""
        if kind.lanes > 1 and expr.type.lanes == 1:
            return self.text(Cast(expr, kind))
        return self.text(_without_widening(expr) if kind == I64 else expr)

    def index(self, expr: Value) -> str:
        """Return the index of an array element; arithmetic in it is done in 64 bits."""
        return self.text(_without_widening(_widened(expr)))

    def type_name(self, kind: Type) -> str:
        """Return the C name of a type, and note that the file must define it."""
        if kind.lanes > 1:
            self.vectors.add(kind)
        return c_type(kind)

    def element(self, array: str, index: Value, kind: Type) -> str:
        """Return an element of an array, or a vector of elements, as text that can be read or assigned."""
        if kind.lanes == 1:
            return f"{self.names[array]}[{self.index(index)}]"
        self.vectors.add(kind)
        return f"*({vector_access(kind)} *)&{self.names[array]}[{self.index(index)}]"

    def stream(self, array: str, index: Value, value: Value) -> str:
        """Return the call that stores a vector and bypasses the caches."""
        return self._lane_call("stream", (f"&{self.names[array]}[{self.index(index)}]", self.text(value)), value.type)

    def _print(self, expr: Value) -> tuple[str, int]:
        match expr:
            case Var(name):
                return self.names[name], PRIMARY
            case Const():
                return _constant(expr)
            case Binary():
                return self._binary(expr)
            case Load():
                return self._load(expr)
            case ArrayRef(array, kind):
                return (f"&{self.names[array]}", UNARY) if kind == MAP else (self.names[array], PRIMARY)
            case Unary(op, operand):
                shown = self.text(operand, UNARY)
                symbol = "!" if op == "not" else op
                return (f"{symbol}({shown})" if shown.startswith(symbol) else f"{symbol}{shown}"), UNARY
            case Select(condition, then, otherwise):
                parts = (self.text(condition, TERNARY + 1), self.text(then, TERNARY + 1), self.text(otherwise, TERNARY))
                return f"{parts[0]} ? {parts[1]} : {parts[2]}", TERNARY
            case Cast(operand, kind):
                return self._cast(operand, kind)
            case Call(function, arguments, kind):
                return self._call(function, arguments, kind), PRIMARY
        raise TypeError(f"not an expression of the loop IR: {expr!r}")

    def _load(self, load: Load) -> tuple[str, int]:
        array, index, kind = load.array, load.index, load.type
        if index.type.lanes > 1:
            return self._gather(load), PRIMARY
        if load.first is not None:
            place = self.element(array, index, kind.element)
            return self._lane_call("first", (f"&{place}", self.text(load.first)), kind), PRIMARY
        if kind.lanes == 1:
            return self.element(array, index, kind), PRIMARY
        return f"*(const {self.element(array, index, kind)[2:]}", UNARY

    def _cast(self, operand: Value, kind: Type) -> tuple[str, int]:
        if kind.lanes == 1:
            return f"({c_type(kind)}){self.text(operand, UNARY)}", UNARY
        name = self.type_name(kind)
        if operand.type.lanes > 1:
            return f"__builtin_convertvector({self.text(operand)}, {name})", PRIMARY
        if isinstance(operand, Const) and operand.value == 0 and math.copysign(1, operand.value) > 0:
            return f"({name}){{0}}", PRIMARY
        operand = operand if kind.is_float else _as_element(operand, kind)
        return f"{self.text(operand, 12)} - ({name}){{0}}", 12  # x - 0 is x for every x, -0.0 and NaN included

    def _call(self, function: str, arguments: tuple[Value, ...], kind: Type) -> str:
        if function == "keep_lanes":
            counts = arguments[1].type
            some = "keep" if counts.lanes == 1 else f"keep_{self.type_name(counts)}"
            return self._lane_call(some, [self.text(argument) for argument in arguments], kind)
        if function == "sums_of_lanes":
            return self._lane_call(f"sums_{self.type_name(arguments[0].type)}", [self.text(argument) for argument in arguments], kind)
        if function in ("sum_lanes", "product_lanes", "min_lanes", "max_lanes"):
            return self._elementwise(function.removesuffix("_lanes"), arguments)
        if function in OF_HALVES:
            return self._lane_call(f"halves_{function.removesuffix('_halves')}", [self.text(arguments[0])], arguments[0].type)
        if function == SHARE_NUMBER:
            return "st_share"
        if function == SHARE_BEGIN:
            return "st_begin(&st_iterations, st_share)"
        intrinsic = INTRINSICS[function]
        self.headers.add(intrinsic.header)
        if intrinsic.code:
            self.brought[function] = intrinsic.code
        suffix = f"_{arguments[0].type.name}" if intrinsic.typed else ""
        return f"{intrinsic.c_name}{suffix}({', '.join(self.text(argument) for argument in arguments)})"

    def _elementwise(self, function: str, arguments: tuple[Value, ...]) -> str:
        kind = next((argument.type for argument in arguments if argument.type.lanes > 1), arguments[0].type)
        wanted = f"lanes_{function}" if len(arguments) == 1 else function
        return self._lane_call(wanted, [self.converted(argument, kind) for argument in arguments], kind)

    def _gather(self, load: Load) -> str:
        array, places = self.names[load.array], load.index
        if isinstance(places, Binary) and places.op == "+" and places.left.type.lanes == 1:  # a base that is the same in all lanes
            array, places = f"&{self.element(load.array, places.left, load.type.element)}", places.right
        if isinstance(places, Cast) and places.operand.type.element in (U16, I32):
            self.type_name(I32.vector(places.type.lanes))  # the type of places that gather instructions take
            places = places.operand
        function = f"gather_{self.type_name(places.type)}"
        arguments = [array, self.text(places)]
        if load.first is None:
            return self._lane_call(function, arguments, load.type)
        return self._lane_call(f"first_{function}", [*arguments, self.text(load.first)], load.type)

    def _lane_call(self, function: str, arguments: Sequence[str], kind: Type) -> str:
        self.type_name(kind)
        self.lane_functions.add((function, kind))
        return f"{lane_function(function, kind)}({', '.join(arguments)})"

    def _binary(self, expr: Binary) -> tuple[str, int]:
        op, left, right = expr.op, expr.left, expr.right
        if op in ("min", "max"):
            if expr.type.lanes > 1:
                return self._elementwise(op, (left, right)), PRIMARY
            return f"st_{op}_{expr.type.name}({self.text(left)}, {self.text(right)})", PRIMARY
        if op not in _COMPARISONS and op not in _SYMBOLS:
            if expr.type.lanes == 1:
                left, right = _converted_operands(left, right, expr.type)
            elif not expr.type.is_float:
                left, right = (_as_element(operand, expr.type) for operand in (left, right))
        precedence = _PRECEDENCE[op]
        if op in _SYMBOLS:  # both && and || in one expression: parentheses for the reader
            shown = (self._logical(left, op, precedence), self._logical(right, op, precedence))
        else:
            shown = (self.text(left, precedence), self.text(right, precedence + 1))
        return f"{shown[0]} {_SYMBOLS.get(op, op)} {shown[1]}", precedence

    def _logical(self, operand: Value, op: str, precedence: int) -> str:
        mixed = isinstance(operand, Binary) and operand.op in _SYMBOLS and operand.op != op
        return f"({self.text(operand)})" if mixed else self.text(operand, precedence)


def _constant(constant: Const) -> tuple[str, int]:
    value, kind = constant.value, constant.type
    if kind.name == "bool":
        return ("true" if value else "false"), PRIMARY
    if not kind.is_float:
        whole = int(value)
        if whole == -(2**63) or (whole == -(2**31) and kind == I32):
            return f"INT{8 * kind.bytes}_MIN", PRIMARY
        if whole >= 2**63:
            return f"UINT64_C({whole})", PRIMARY
        shown = f"INT64_C({abs(whole)})" if abs(whole) >= 2**31 else str(abs(whole))
        return (f"-{shown}", UNARY) if whole < 0 else (shown, PRIMARY)
    suffix = "f" if kind == F32 else ""
    if math.isnan(value):
        return f'__builtin_nan{suffix}("")', PRIMARY
    negative = math.copysign(1, value) < 0
    if kind == F32:
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    if math.isinf(value):
        shown = f"__builtin_inf{suffix}()"
    else:
        magnitude = abs(value)
        shown = (str(np.float32(magnitude)) if kind == F32 else repr(float(magnitude))) + suffix
    return (f"-{shown}", UNARY) if negative else (shown, PRIMARY)


def _printed_type(expr: Value) -> Type:
    """Return the type that the C text of an expression has: small constants and narrow integers are int."""
    kind = expr.type
    if kind.is_float:
        return kind
    if isinstance(expr, Const):
        return I32 if abs(int(expr.value)) < 2**31 or kind == I32 else I64
    return I64 if kind.name in ("i64", "u64", "u32") else I32


def _converted_operands(left: Value, right: Value, kind: Type) -> tuple[Value, Value]:
    """Cast operands so that C computes in ``kind``: wider operands are cast down, and one is cast up if neither has the type."""
    target = kind if kind.is_float else (I64 if kind.name == "i64" else I32)
    operands = [Cast(operand, kind) if _wider(_printed_type(operand), target) else operand for operand in (left, right)]
    if all(_printed_type(operand) != target for operand in operands):
        place = 1 if isinstance(operands[0], Const) and not isinstance(operands[1], Const) else 0
        operands[place] = Cast(operands[place], kind)
    return operands[0], operands[1]


def _as_element(operand: Value, kind: Type) -> Value:
    """Cast a scalar that is spread over lanes: C computes narrow integers as int, which cannot be combined with a narrower vector."""
    return operand if operand.type.lanes > 1 or isinstance(operand, Var | Load) else Cast(operand, kind.element)


def _wider(kind: Type, target: Type) -> bool:
    if kind.is_float and not target.is_float:
        return True
    return kind.is_float == target.is_float and kind.bytes > target.bytes


def _without_widening(expr: Value) -> Value:
    """Leave out a cast to 64 bits that C makes by itself when it assigns or indexes."""
    return expr.operand if isinstance(expr, Cast) and expr.type == I64 and expr.operand.type == I32 else expr


def _widened(expr: Value) -> Value:
    """Compute the products, sums and differences of an index in 64 bits."""
    if isinstance(expr, Binary) and expr.op in ("+", "-", "*", "min", "max") and not expr.type.is_float:
        left, right = _widened(expr.left), _widened(expr.right)
        same = expr.type == I64 and left is expr.left and right is expr.right
        return expr if same else replace(expr, left=left, right=right, type=I64)
    return expr
