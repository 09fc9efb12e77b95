"""Named expressions from the literature as cases: what people compute, in the formats that they compute it in.

The tables are in ``literature_tables``; an expression is read by Python's own parser, so that the text is understood twice.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import numpy as np
from sparsetune.compiler.format import Format, dense_format, parse_format

from .cases import Case, Manner, Operand, drawn_extents, fill_of
from .expressions import Constant, Leaf, Minus, Product, Quotient, Sum, Tree, denominators, leaves
from .formats import pads, storable
from .patterns import random_values


@dataclass(frozen=True)
class Named:
    """An expression that has a name.

    Attributes:
        source: where it is from, shortly.
        formats: of every tensor that is not dense, the result included.
        semiring: (add, multiply).
    """

    name: str
    source: str
    text: str
    formats: Mapping[str, str]
    semiring: tuple[str, str]


def named(name: str, source: str, text: str, semiring: str = "+ *", **formats: str) -> Named:
    add, multiply = semiring.split()
    return Named(name, source, text, formats, (add, multiply))


def case_of(entry: Named) -> Case:
    """Return the case that computes a named expression on small random operands, the same ones every time."""
    rng = Random(entry.name)
    left, right = entry.text.split("=", 1)
    accumulates = left.endswith("+")
    target = _leaf(ast.parse(left.rstrip("+ "), mode="eval").body)
    tree = _tree(ast.parse(right.strip(), mode="eval").body)
    accesses = {leaf.tensor: leaf for leaf in (*leaves(tree), *([target] if accumulates else []))}
    indices = {index for leaf in (target, *accesses.values()) for index in leaf.indices}
    most = {1: 9, 2: 8, 3: 6, 4: 5, 5: 4, 6: 3}.get(len(indices), 2)
    extents = drawn_extents((target, *leaves(tree)), lambda _: rng.randint(2, most))
    kind = np.dtype("bool" if entry.semiring == ("or", "and") else "float64")
    below = {leaf.tensor for leaf in denominators(tree)}
    forms = {leaf.tensor: _format(entry, leaf) for leaf in (target, *accesses.values())}
    operands = {}
    for name, leaf in accesses.items():
        shape = tuple(extents[index] for index in leaf.indices)
        places = [place for place in np.ndindex(shape) if forms[name].is_dense or rng.random() < 0.4]
        rng.shuffle(places)
        positive = name in below or entry.semiring == ("max", "*")
        assert not (positive and pads(forms[name]) and not forms[name].is_dense), "padding is not positive"
        kept = storable(places, forms[name])
        values = random_values(rng, len(kept), kind, positive=positive)
        operands[name] = Operand(shape, forms[name], tuple(kept), values, fill_of(entry.semiring, kind))
    read = {index for leaf in accesses.values() for index in leaf.indices}
    given = {index: extents[index] for index in target.indices if index not in read}
    result = forms[target.tensor]
    manner = Manner(rows=False, divisors=frozenset(below), positive=entry.semiring == ("max", "*"), exact=False, special=False)
    return Case(0, entry.text, target, tree, accumulates, extents, operands, result, {}, given, entry.semiring, kind, 2**31 - 1, manner)


def _format(entry: Named, leaf: Leaf) -> Format:
    order = len(leaf.indices)
    return parse_format(entry.formats[leaf.tensor], order) if leaf.tensor in entry.formats else dense_format(order)


def _tree(node: ast.expr) -> Tree:
    match node:
        case ast.Constant(value=float() | int() as value):
            return Constant(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return Minus(_tree(operand))
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as operator, right=right):
            return Sum(_tree(left), _tree(right), isinstance(operator, ast.Sub))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return Product(_tree(left), _tree(right))
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return Quotient(_tree(left), _tree(right))
    return _leaf(node)


def _leaf(node: ast.expr) -> Leaf:
    match node:
        case ast.Name(id=name):
            return Leaf(name, ())
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return Leaf(name, tuple(argument.id for argument in arguments if isinstance(argument, ast.Name)))
    raise ValueError(f"no access: {ast.dump(node)}")
