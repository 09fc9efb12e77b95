"""Vector types that a generated file defines, and functions over lanes for which GNU C has no operator."""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.nodes import Type
from .expressions import c_type, lane_function, vector_access
from .gathers import first_definition, gather_definition, keep_definition, lane_mask

_OPERATORS = {"sum": "+", "product": "*"}


def vector_definitions(used: Iterable[Type], functions: Iterable[tuple[str, Type]]) -> list[str]:
    """Return the typedefs and functions for the vectors that a file uses, each after the ones that it needs."""
    wanted = _closure(functions)
    masked = {lane_mask(kind) for function, kind in wanted if function.startswith(("min", "max", "keep"))}
    halves = {_half(kind) for function, kind in wanted if function.startswith("halves_")}
    kinds = set(used) | {kind for _, kind in wanted} | masked | halves
    lines = []
    for kind in sorted(kinds, key=lambda kind: (kind.element.name, kind.lanes)):
        lines += _typedefs(kind)
    for function, kind in wanted:
        lines += ["", *_definition(function, kind)]
    return [*lines, ""] if lines else []


def _typedefs(kind: Type) -> list[str]:
    """Return the typedef of variables, and the typedef for access to memory of any alignment and type."""
    element = c_type(kind.element)
    access = f"vector_size({kind.bytes}), aligned({kind.element.bytes}), may_alias"
    return [
        f"typedef {element} {kind.name} __attribute__((vector_size({kind.bytes})));",
        f"typedef {element} {vector_access(kind)} __attribute__(({access}));",
    ]


def _half(kind: Type) -> Type:
    return kind.vector(kind.lanes // 2)


def _needs(function: str, kind: Type) -> list[tuple[str, Type]]:
    if function.startswith("sums_"):
        return [("lanes_sum", _summed(function))]
    if not function.startswith("lanes_"):
        return []
    halves = [(function, _half(kind))] if kind.lanes > 2 else []
    elementwise = function.removeprefix("lanes_")
    return [*halves, (elementwise, _half(kind))] if elementwise in ("min", "max") and kind.lanes > 2 else halves


def _closure(functions: Iterable[tuple[str, Type]]) -> list[tuple[str, Type]]:
    """Return functions with all they call, callees first."""
    ordered: list[tuple[str, Type]] = []

    def visit(wanted: tuple[str, Type]) -> None:
        for needed in _needs(*wanted):
            visit(needed)
        if wanted not in ordered:
            ordered.append(wanted)

    for wanted in sorted(functions, key=lambda wanted: (wanted[0], wanted[1].lanes, wanted[1].name)):
        visit(wanted)
    return ordered


def _definition(function: str, kind: Type) -> list[str]:
    name, element = lane_function(function, kind), c_type(kind.element)
    if "gather_" in function:
        return gather_definition(function, kind)
    if function == "stream":
        return _stream_definition(kind)
    if function == "first":
        return first_definition(kind)
    if function.startswith("sums_"):
        return _sums_definition(function, kind)
    if function.startswith("keep"):
        return keep_definition(function, kind)
    if function in ("min", "max"):
        mask, symbol = lane_mask(kind), "<" if function == "min" else ">"
        return [
            f"static inline {kind.name} {name}({kind.name} a, {kind.name} b) {{",
            f"  const {mask.name} first = (a {symbol} b) | (a != a);",
            f"  return ({kind.name})((({mask.name})a & first) | (({mask.name})b & ~first));",
            "}",
        ]
    if function.startswith("halves_"):
        return _halves_definition(function, kind)
    elementwise = function.removeprefix("lanes_")
    if kind.lanes == 2:
        value = _combined(elementwise, f"st_{elementwise}_{kind.element.name}", "v")
        return [f"static inline {element} {name}({kind.name} v) {{ return {value}; }}"]
    half = _half(kind)
    combined = _combined(elementwise, lane_function(elementwise, half), "half")
    return [
        f"static inline {element} {name}({kind.name} v) {{",
        f"  {half.name} half[2];",
        "  memcpy(half, &v, sizeof v);",
        f"  return {lane_function(function, half)}({combined});",
        "}",
    ]


def _halves_definition(function: str, kind: Type) -> list[str]:
    half, operator = _half(kind), _OPERATORS[function.removeprefix("halves_")]
    return [
        f"static inline {half.name} {lane_function(function, kind)}({kind.name} v) {{",
        f"  {half.name} half[2];",
        "  memcpy(half, &v, sizeof v);",
        f"  return half[0] {operator} half[1];",
        "}",
    ]


def _summed(function: str) -> Type:
    """Return the type of the vectors whose lanes ``sums_VECTOR`` adds."""
    return Type(function.removeprefix("sums_"))


def _sums_definition(function: str, kind: Type) -> list[str]:
    """Return the function that sums the lanes of several vectors and gives one sum in each lane. It adds halves, then neighbours of two
    vectors at once."""
    given, count = _summed(function), kind.lanes
    names, steps, group = [f"v{number}" for number in range(count)], list[str](), 1
    if given.lanes > count:
        parts = given.lanes // count
        for each in names:
            steps += [f"{kind.name} {each}_part[{parts}]", f"memcpy({each}_part, &{each}, sizeof {each})"]
        steps += [f"{kind.name} {each}_sum = {_halves([f'{each}_part[{part}]' for part in range(parts)])}" for each in names]
        names = [f"{each}_sum" for each in names]
    while len(names) > 1:
        blocks = range(0, count, 2 * group)
        low = [first + lane for block in blocks for first in (block, count + block) for lane in range(group)]
        made = [f"sums_{group}_{number}" for number in range(len(names) // 2)]
        for pair, one, other in zip(made, names[::2], names[1::2], strict=True):
            both = (f"__builtin_shufflevector({one}, {other}, {', '.join(str(lane + side) for lane in low)})" for side in (0, group))
            steps.append(f"{kind.name} {pair} = {' + '.join(both)}")
        names, group = made, 2 * group
    vectors, alone = [f"v{number}" for number in range(count)], lane_function("lanes_sum", given)
    return [
        f"static inline {kind.name} {lane_function(function, kind)}({', '.join(f'{given.name} {each}' for each in vectors)}) {{",
        "#if ST_BUILTIN(__builtin_shufflevector)",
        *(f"  {step};" for step in steps),
        f"  return {names[0]};",
        "#else",
        f"  return ({kind.name}){{{', '.join(f'{alone}({each})' for each in vectors)}}};",
        "#endif",
        "}",
    ]


def _halves(parts: list[str]) -> str:
    """Return the text of a sum of parts: the first half is added to the second until one part is left."""
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [f"({one} + {other})" if half > 1 else f"{one} + {other}" for one, other in zip(parts[:half], parts[half:], strict=True)]
    return parts[0]


def _stream_definition(kind: Type) -> list[str]:
    """Return the function that stores a vector at a multiple of its size and bypasses the caches."""
    builtin = f"__builtin_ia32_movntps{8 * kind.bytes if kind.bytes > 16 else ''}"
    single = f"float __attribute__((vector_size({kind.bytes})))"
    return [
        f"static inline void {lane_function('stream', kind)}({c_type(kind.element)} *to, {kind.name} v) {{",
        "#if ST_BUILTIN(__builtin_nontemporal_store)",
        f"  __builtin_nontemporal_store(v, ({kind.name} *)to);",
        f"#elif ST_BUILTIN({builtin})",
        f"  {builtin}((float *)to, ({single})v);",
        "#else",
        f"  *({vector_access(kind)} *)to = v;",
        "#endif",
        "}",
    ]


def _combined(operation: str, function: str, pair: str) -> str:
    """Return C text that combines the two elements of an array."""
    if operation in _OPERATORS:
        return f"{pair}[0] {_OPERATORS[operation]} {pair}[1]"
    return f"{function}({pair}[0], {pair}[1])"
