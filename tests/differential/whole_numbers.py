"""Operands of whole numbers by patterns, and what the kernels of the papers make of them, by NumPy's ``einsum`` alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sparsetune.compiler.notation.nodes import Access, Add, Expr, Literal, Neg, accesses
from sparsetune.compiler.notation.parser import parse

from .blocks import row_lengths


def operands(
    expression: str, sparse: set[str], shape: Mapping[str, int], pattern: str, rng: np.random.Generator, dtype: str = "float64"
) -> dict[str, NDArray[Any]]:
    """Return whole numbers, so that every order of adding gives the same; sparse tensors follow the pattern."""
    found = {}
    for access in accesses(parse(expression).value):
        extents = tuple(shape[name] for name in access.indices)
        values = rng.integers(1, 5, extents).astype(dtype)
        found[access.tensor] = values * _mask(extents, pattern, rng) if access.tensor in sparse else values
    return found


def _mask(shape: tuple[int, ...], pattern: str, rng: np.random.Generator) -> NDArray[np.bool_]:
    match pattern:
        case "scattered":
            return rng.random(shape) < 0.3
        case "rows":
            return (rng.random(shape) < 0.8) & (rng.random(shape[0]) < 0.4).reshape(-1, *(1 for _ in shape[1:]))
        case "one":
            mask = np.zeros(shape, bool)
            if mask.size:
                mask.flat[rng.integers(mask.size)] = True
            return mask
        case "blocks":
            width = math.prod(shape[1:])
            lengths = row_lengths(Random(int(rng.integers(2**32))), shape[0], width)
            return np.array([rng.permutation(width) < length for length in lengths], bool).reshape(shape)
        case _:
            return np.full(shape, pattern == "full")


def reference(expression: str, arrays: Mapping[str, NDArray[Any]], shape: Mapping[str, int]) -> NDArray[Any]:
    """Return the sum of the terms of an expression without quotients, each summed over its own indices."""
    assignment = parse(expression)
    target = "".join(assignment.target.indices)
    whole = np.zeros([shape[name] for name in target])
    for sign, factors in _terms(assignment.value):
        own = {name for factor in factors for name in factor.indices}
        spread = [name for name in target if name not in own]
        subscripts = ",".join(["".join(factor.indices) for factor in factors] + spread)
        values = [arrays[factor.tensor] for factor in factors] + [np.ones(shape[name]) for name in spread]
        whole = whole + sign * np.einsum(f"{subscripts}->{target}", *values)
    return whole


def _terms(value: Expr) -> list[tuple[float, list[Access]]]:
    match value:
        case Access():
            return [(1.0, [value])]
        case Literal(number):
            return [(float(number), [])]
        case Neg(operand):
            return [(-sign, factors) for sign, factors in _terms(operand)]
        case Add(operands):
            return [term for operand in operands for term in _terms(operand)]
        case _:
            found: list[tuple[float, list[Access]]] = [(1.0, [])]
            for operand in value.children:
                found = [(left * right, [*some, *more]) for left, some in found for right, more in _terms(operand)]
            return found
