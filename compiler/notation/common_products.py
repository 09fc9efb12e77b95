"""Finds products of a sparse operand with dense ones that occur several times in a sequence of expressions, under any index names.

``n(i) = A(i,j) * exp(u(i) + v(j))`` and ``Y(p,k) = A(p,q) * H(q,k) * exp(v(q) + u(p))`` have ``A(i,j) * exp(u(i) + v(j))`` in common. Such
a product has a value for each entry of the sparse operand and is 0 elsewhere, so that a tensor with that operand's pattern can replace it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ..frozen import frozen
from .nodes import Access, Add, Affine, Assignment, Expr, Literal, Mul, Sum, accesses, indices, transform_expression, walk_expression
from .printer import show

MOST_FACTORS = 16
"""Products of more factors are ignored: each factor may be the sparse operand, and is compared with all others."""

Path = tuple[int, ...]
"""The path from a right-hand side to a part of it, as numbers of children."""


@frozen
class _Product:
    """One product of an expression, with one of its factors as the sparse operand.

    Attributes:
        number: the number of the expression in the sequence.
        base: the place of the sparse factor, whose entries the product has.
        operand: the name of that factor, and the number of the expression that computes it, if any does.
        texts: by place, texts of the other factors that may be kept with it. They are equal for factors that are equal up to index names.
        outside: indices that also occur outside of the product.
    """

    number: int
    path: Path
    whole: Mul
    base: int
    operand: tuple[str, int | None]
    texts: tuple[tuple[int, str], ...]
    outside: frozenset[str]

    @property
    def access(self) -> Access:
        found = self.whole.operands[self.base]
        assert isinstance(found, Access)
        return found

    def places(self, wanted: Counter[str]) -> tuple[int, ...] | None:
        """Return the places of the wanted factors; None if one is missing, or if a sum over their indices also has other factors."""
        left, found = Counter(wanted), list[int]()
        for place, text in self.texts:
            if left[text] > 0:
                left[text] -= 1
                found.append(place)
        if left.total() or self.closed(found) != found:
            return None
        return tuple(found)

    def closed(self, places: list[int]) -> list[int]:
        """Return those of the factors whose indices are the sparse operand's, or occur in no other factor and not outside."""
        own = {*self.access.indices}
        while True:
            others = [factor for place, factor in enumerate(self.whole.operands) if place not in places]
            elsewhere = (self.outside | {name for factor in others for name in _names(factor)}) - own
            kept = [place for place in places if not elsewhere.intersection(_names(self.whole.operands[place]))]
            if len(kept) == len(places):
                return kept
            places = kept


@frozen
class Use:
    """One occurrence of a product: the expression, the part of it, and the places of the factors in that part."""

    number: int
    path: Path
    base: Access
    places: tuple[int, ...]
    is_all: bool


@frozen
class Common:
    """A product that occurs several times.

    Attributes:
        base: the sparse operand, as in the first use.
        factors: the other factors, as in the first use.
        uses: its occurrences in order of expressions; none is a part of another.
        is_made: whether the sparse operand is itself the result of an expression.
    """

    base: Access
    factors: tuple[Expr, ...]
    uses: tuple[Use, ...]
    is_made: bool


def common_products(assignments: Sequence[Assignment], stored: frozenset[str]) -> list[Common]:
    """Return products of a sparse operand with dense ones that occur in several places, those with most factors first.

    Args:
        assignments: the expressions in order; later ones may read earlier results.
        stored: the names of operands and results that are or may be sparse.
    """
    products = [one for number in range(len(assignments)) for one in _products(assignments, number, stored)]
    found: dict[tuple[object, ...], Common] = {}
    for place, first in enumerate(products):
        for second in products[place + 1 :]:
            if first.operand != second.operand:
                continue
            shared = Counter(text for _, text in first.texts) & Counter(text for _, text in second.texts)
            while shared and (kept := _closed_in_both(first, second, shared)) != shared:
                shared = kept
            key = first.operand, frozenset(shared.items())
            if shared and key not in found and (common := _common(products, first, shared)) is not None:
                found[key] = common
    return sorted(found.values(), key=lambda common: -len(common.factors))


def replaced(value: Expr, path: Path, places: tuple[int, ...], product: Access) -> Expr:
    """Return a right-hand side with the factors at some places of a product replaced by one access."""
    if path:
        children = list(value.children)
        children[path[0]] = replaced(children[path[0]], path[1:], places, product)
        return value.rebuild(tuple(children))
    left = [factor for place, factor in enumerate(value.children) if place not in places]
    at = sum(place not in places for place in range(min(places)))
    left.insert(at, product)
    return left[0] if len(left) == 1 else Mul(tuple(left), span=value.span)


def _common(products: list[_Product], first: _Product, shared: Counter[str]) -> Common | None:
    uses = list[Use]()
    for one in products:
        places = one.places(shared) if one.operand == first.operand else None
        if places is None or any(use.number == one.number and _overlap(use.path, one.path) for use in uses):
            continue
        every = tuple(sorted((one.base, *places)))
        uses.append(Use(one.number, one.path, one.access, every, not one.path and len(every) == len(one.whole.operands)))
    if len(uses) < 2:
        return None
    places = first.places(shared)
    assert places is not None
    return Common(first.access, tuple(first.whole.operands[place] for place in places), tuple(uses), first.operand[1] is not None)


def _overlap(one: Path, other: Path) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _closed_in_both(first: _Product, second: _Product, shared: Counter[str]) -> Counter[str]:
    for one in (first, second):
        left, places = Counter(shared), list[int]()
        for place, text in one.texts:
            if left[text] > 0:
                left[text] -= 1
                places.append(place)
        texts = dict(one.texts)
        shared = Counter(texts[place] for place in one.closed(places))
    return shared


def _products(assignments: Sequence[Assignment], number: int, stored: frozenset[str]) -> Iterator[_Product]:
    """Yield the products of an expression, once for each factor that is a sparse operand."""
    assignment = assignments[number]
    made = {earlier.target.tensor: place for place, earlier in enumerate(assignments[:number])}
    for path, node in _parts(assignment.value):
        if not isinstance(node, Mul) or len(node.operands) > MOST_FACTORS:
            continue
        around = _outside(assignment, path)
        for place, factor in enumerate(node.operands):
            if isinstance(factor, Access) and factor.tensor in stored and _is_entry(factor):
                texts = _texts(node, place, stored, made)
                if texts:
                    yield _Product(number, path, node, place, (factor.tensor, made.get(factor.tensor)), texts, around)


def _is_entry(access: Access) -> bool:
    return access.is_plain and len(access.indices) == len(access.subscripts) >= 2


def _parts(value: Expr, path: Path = ()) -> Iterator[tuple[Path, Expr]]:
    yield path, value
    for number, child in enumerate(value.children):
        yield from _parts(child, (*path, number))


def _outside(assignment: Assignment, path: Path) -> frozenset[str]:
    """Return the indices outside a part of a right-hand side: those on the left, those that sums around it bind, and those beside it."""
    found, value = set(assignment.target.indices), assignment.value
    for step in path:
        if isinstance(value, Sum):
            found |= {*value.over}
        found |= {name for number, child in enumerate(value.children) if number != step for name in _names(child)}
        value = value.children[step]
    return frozenset(found)


def _names(value: Expr) -> set[str]:
    """Return all indices of an expression, including those that it binds."""
    return {*indices(value), *(name for node in walk_expression(value) if isinstance(node, Sum) for name in node.over)}


def _texts(product: Mul, base: int, stored: frozenset[str], made: Mapping[str, int]) -> tuple[tuple[int, str], ...]:
    """Return, by place, the factors that may be kept with a sparse operand, as texts that do not depend on index names.

    They read dense tensors, or the operand itself at the same entry. A function of another sparse operand may not be kept: if the
    result is sparse, the function acts on the entries of that operand too.
    """
    own = product.operands[base]
    assert isinstance(own, Access)
    names = {name: f"#{mode}" for mode, name in enumerate(own.indices)}
    eligible = [
        (place, factor)
        for place, factor in enumerate(product.operands)
        if place != base and not isinstance(factor, Literal) and _is_dense(factor, own, stored) and not _binds(factor, own)
    ]
    summed = dict.fromkeys(name for factor in product.operands for name in sorted(_names(factor)) if name not in names)
    signs = {name: _sign(product, name, names) for name in summed}
    seen = Counter[str]()
    for name, sign in signs.items():
        names[name] = f"<{sign}>{seen[sign]}"
        seen[sign] += 1
    return tuple((place, _renamed_text(factor, names, made)) for place, factor in eligible)


def _is_dense(factor: Expr, own: Access, stored: frozenset[str]) -> bool:
    read = accesses(factor)
    same = [access for access in read if access.tensor == own.tensor and access.subscripts == own.subscripts]
    return all(access.is_plain and (access.tensor not in stored or access in same) for access in read)


def _binds(factor: Expr, own: Access) -> bool:
    """Whether a sum inside a factor binds an index with a name that the operand uses."""
    return any(isinstance(node, Sum) and not {*own.indices}.isdisjoint(node.over) for node in walk_expression(factor))


def _sign(product: Mul, index: str, names: Mapping[str, str]) -> str:
    """Return a text that distinguishes a summed index from others: the accesses of the product in which it occurs."""
    marks = {**dict.fromkeys(_names(product), "?"), **names, index: "*"}
    every = {access for access in accesses(product) if index in access.indices}
    return "|".join(sorted(_renamed_text(access, marks, {}) for access in every))


def _renamed_text(value: Expr, names: Mapping[str, str], made: Mapping[str, int]) -> str:
    """Return the text of an expression with other index names, and with addends and factors in a fixed order. Operands that an earlier
    expression computes have its number after their names."""

    def rule(node: Expr) -> Expr | None:
        match node:
            case Access():
                shown = tuple(_renamed(subscript, names) for subscript in node.subscripts)
                return Access(f"{node.tensor}@{made[node.tensor]}" if node.tensor in made else node.tensor, shown)
            case Sum(over, operand):
                return Sum(tuple(sorted(names[name] for name in over)), operand)
            case Add() | Mul():
                return node.rebuild(tuple(sorted(node.children, key=show)))
            case _:
                return None

    return show(transform_expression(value, rule))


def _renamed(subscript: Affine, names: Mapping[str, str]) -> Affine:
    return Affine(tuple((names[name], coefficient) for name, coefficient in subscript.terms), subscript.constant)
