"""C functions that gather vectors from scattered places, and that load vectors of which only the first lanes are in memory.

With AVX-512 each is one instruction. The builtins are the same for gcc and clang. ``immintrin.h`` has official names for them, but
reading that header takes longer than compiling a kernel. Where the builtins are missing, elements are read one by one.
"""

from __future__ import annotations

from ..ir.nodes import I32, I64, U16, Type
from .expressions import c_type, lane_function

_GATHERS = {
    ("f64x8", "i32x8"): "gathersiv8df",
    ("f64x8", "i64x8"): "gatherdiv8df",
    ("f64x4", "i32x4"): "gather3siv4df",
    ("f64x4", "i64x4"): "gather3div4df",
    ("f32x16", "i32x16"): "gathersiv16sf",
    ("f32x8", "i32x8"): "gather3siv8sf",
    ("f32x8", "i64x8"): "gatherdiv16sf",
    ("f32x4", "i64x4"): "gather3div8sf",
}
"""Builtins that gather values, by the vector types of values and places; their arguments are vector, base, places, mask, scale."""

_FIRST = {"f64": "loadupd", "f32": "loadups", "i32": "loaddqusi", "i64": "loaddqudi", "u16": "loaddquhi"}
"""Names of the builtins that load some lanes, by element and without the width in bits; their arguments are address, vector, mask."""


def gather_definition(function: str, kind: Type) -> list[str]:
    """Return the function ``gather_PLACES`` (all lanes) or ``first_gather_PLACES`` (as many lanes as its last argument says)."""
    some, places = function.startswith("first_"), Type(function.rpartition("_")[2])
    base, count = f"const {c_type(kind.element)} *base, {places.name} at", ", int64_t count" if some else ""
    if some:
        plain = _lane_by_lane(kind, "base[at[lane]]")
    else:
        plain = [f"  return ({kind.name}){{{', '.join(f'base[at[{lane}]]' for lane in range(kind.lanes))}}};"]
    taken = I32.vector(places.lanes) if places.element == U16 else places
    builtin = _GATHERS.get((kind.name, taken.name))
    fast = [f"  return {_gather(builtin, kind, places, some)};"] if builtin else []
    test = f"ST_GATHERS({kind.bytes}) && " if fast and not some else ""
    return _function(f"{kind.name} {lane_function(function, kind)}({base}{count})", builtin, fast, plain, test)


def first_definition(kind: Type) -> list[str]:
    """Return the function that loads the first lanes of a vector and sets the others to 0."""
    width = max(kind.bytes, 16)  # bytes of the narrowest builtin; a smaller vector is the lower part of its result
    builtin = f"{_FIRST[kind.element.name]}{8 * width}_mask" if kind.element.name in _FIRST and width <= 64 else None
    loaded = f"__builtin_ia32_{builtin}((const void *)from, ({_as_builtin(kind, width)}){{0}}, ST_FIRST(count))"
    if width == kind.bytes:
        fast = [f"  return ({kind.name}){loaded};"]
    else:
        fast = [f"  {_as_builtin(kind, width)} wider = {loaded};", f"  {kind.name} v;", "  memcpy(&v, &wider, sizeof v);", "  return v;"]
    heading = f"{kind.name} {lane_function('first', kind)}(const {c_type(kind.element)} *from, int64_t count)"
    return _function(heading, builtin, fast, _lane_by_lane(kind, "from[lane]"), known="ST_AVX512BW" if kind.element == U16 else "ST_AVX512")


def keep_definition(function: str, kind: Type) -> list[str]:
    """Return the function ``keep`` (the first lanes of a vector) or ``keep_COUNTS`` (those where another one is positive); others are 0."""
    mask, counts = lane_mask(kind), Type(function.rpartition("_")[2])
    if function == "keep":
        given, kept = "int64_t count", f"(lane < ({c_type(mask.element)})count)"
    else:
        given, kept = f"{counts.name} left", "(left > 0)" if counts == mask else f"__builtin_convertvector(left > 0, {mask.name})"
    return [
        f"static inline {kind.name} {lane_function(function, kind)}({kind.name} v, {given}) {{",
        *([f"  const {mask.name} lane = {{{', '.join(map(str, range(kind.lanes)))}}};"] if function == "keep" else []),
        f"  return ({kind.name})(({mask.name})v & {kept});",
        "}",
    ]


def lane_mask(kind: Type) -> Type:
    """Return the vector type of integers, with lanes as wide, that comparisons of two vectors give."""
    return Type(f"i{8 * kind.element.bytes}").vector(kind.lanes)


def _function(
    heading: str, builtin: str | None, fast: list[str], plain: list[str], test: str = "", known: str = "ST_AVX512"
) -> list[str]:
    """Return a function with a fast body for compilers that have a builtin, as the macro ``known`` says, and a plain one for others."""
    body = [f"#if {test}{known}(__builtin_ia32_{builtin})", *fast, "#else", *plain, "#endif"] if builtin else plain
    return [f"static inline {heading} {{", *body, "}"]


def _gather(builtin: str, kind: Type, places: Type, some: bool) -> str:
    at = f"({_as_builtin(places)})at" if places.element == I64 else "at"
    at = f"__builtin_convertvector(at, {I32.vector(places.lanes).name})" if places.element == U16 else at
    mask = "ST_FIRST(count)" if some else "-1"
    return f"__builtin_ia32_{builtin}(({kind.name}){{0}}, base, {at}, {mask}, {kind.element.bytes})"


_BUILTIN_ELEMENTS = {"i64": "long long", "u16": "short"}


def _as_builtin(kind: Type, width: int | None = None) -> str:
    """Return a vector type as builtins take it. Their integers are signed, and those of 64 bits are long long, which int64_t may not be."""
    element = _BUILTIN_ELEMENTS.get(kind.element.name, c_type(kind.element))
    return f"{element} __attribute__((vector_size({width or kind.bytes})))"


def _lane_by_lane(kind: Type, element: str) -> list[str]:
    return [f"  {kind.name} v = {{0}};", f"  for (int64_t lane = 0; lane < count; lane++) v[lane] = {element};", "  return v;"]
