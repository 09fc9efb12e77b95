"""Chooses expressions that are computed in one pass over a sparse operand that they have in common, and computes them.

All are products of one sparse operand of three modes or more with dense ones, and their results are dense, as in MTTKRP and TTMc in
all modes. One pass keeps sums and products of factors for each node of the operand's tree (``concrete.one_pass``). It is taken if the
cost model says that it needs fewer products than one kernel for each expression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from .build.chain import Chain, alone
from .build.kernel import TypedKernel
from .build.repeat import repeated
from .concrete.affine import Viewed
from .concrete.check import tensor_names
from .concrete.given import CONSTANT_BOUND, checked_semiring
from .concrete.loop_tag import LoopTag
from .concrete.one_pass import OnePass, Product
from .concrete.one_pass_costs import dealt, far_rows, pass_time
from .format import Format, dense_format
from .lowering.tensor_types import TensorType
from .native.team import thread_count
from .notation.nodes import Access, Affine, Assignment, Mul, accesses, index_subscript
from .notation.value_types import TYPES
from .pipeline import compile_together
from .storage import aligned
from .storage.construct import borrowed
from .storage.tensor import Tensor

LEAST_MODES = 3
"""Least number of modes of the sparse operand. Products with a matrix have no partial sums that two of them could share."""

PAYS = 0.9
"""An expression takes part in a pass if it adds less than this share of its own time to it."""

LEAST_SAVED = 2_000
"""Least products that a pass must save, over all threads: deciding about operands not met before takes as long."""

_KEPT = 64  # passes that a process keeps at hand


@dataclass(frozen=True)
class _Tree:
    """What the choice of a pass depends on in a sparse operand: how it is stored, and how many nodes each level has, the root first."""

    format: Format
    widths: tuple[int, ...]
    dtype: str
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class _Pass:
    """All that the kernel of one pass depends on."""

    assignments: tuple[Assignment, ...]
    operand: str
    format: Format
    widths: tuple[int, ...]
    dtype: str
    constants: tuple[tuple[str, int], ...]
    semiring: tuple[str, str]
    tag: LoopTag
    ahead: tuple[tuple[Access, int], ...] = ()


def computed_together(
    ordered: Sequence[Assignment], free: frozenset[str], available: Mapping[str, Any], semiring: tuple[str, str] | None, threads: int | None
) -> tuple[dict[str, Any], Chain | None]:
    """Compute an expression together with later ones that share partial products with it.

    Args:
        ordered: the expression, and all that follow.
        free: the results that may be computed together with others, since no option concerns one of them alone.
        available: operands and the results of earlier expressions, by name.

    Returns:
        Results by name, and the call if it can be made again. There are no results if one pass does not pay, or if operands do not
        fit one another: evaluating one expression gives the better message.
    """
    arrays = frozenset(name for name, data in available.items() if type(data) is np.ndarray)
    for operand in tensor_names(ordered[0]):
        if _is_sparse(data := available[operand]) and (members := _members(tuple(ordered), operand, free, arrays)):
            return _results(members, operand, borrowed(data), available, checked_semiring(semiring), threads)
    return {}, None


def may_share(assignments: Sequence[Assignment]) -> bool:
    """Return whether some of the expressions might be computed together; the operands are not known yet."""
    some = [one for one in assignments if any(len(access.subscripts) >= LEAST_MODES for access in accesses(one.value))]
    return len(some) > 1


@lru_cache(_KEPT)
def _members(ordered: tuple[Assignment, ...], operand: str, free: frozenset[str], arrays: frozenset[str]) -> tuple[Assignment, ...]:
    """Return the expressions that can be computed now in one pass over an operand together with the first one; empty if there are none.

    Args:
        arrays: the names of the dense arrays among operands and earlier results.
    """
    found, made = list[Assignment](), set[str]()
    for one in ordered:
        names = tensor_names(one)
        if one.target.tensor in free and made.isdisjoint(names) and operand in names and _fits(one, operand):
            same = _alike(one, operand, _access(found[0] if found else one, operand).subscripts)
            if same is not None and arrays.issuperset(name for name in names if name != operand):
                found.append(same)
        if not found:
            break
        made.add(one.target.tensor)
    return tuple(found) if len(found) > 1 else ()


def _results(
    members: tuple[Assignment, ...], operand: str, tensor: Tensor, available: Mapping[str, Any],
    semiring: tuple[str, str], threads: int | None,
) -> tuple[dict[str, Any], Chain | None]:  # fmt: skip
    """Return the results of expressions, computed in one pass; empty if that does not pay or is not possible."""
    read = {name: available[name] for one in members for name in tensor_names(one) if name != operand}
    extents = _extents(members, read, operand, tensor) if _is_tree(tensor) else None
    if extents is None:
        return {}, None
    tree = _Tree(tensor.format, tuple(_width(tensor, level) for level in range(tensor.order)), tensor.dtype.name, tuple(_nodes(tensor)))
    wish = _wish(members, operand, tree, tuple(extents.items()), semiring, thread_count(threads))
    if wish is None:
        return {}, None
    given = {name: available[name] for name in dict.fromkeys(name for one in wish.assignments for name in tensor_names(one))}
    bound = _kernel(wish).bind_operands({**given, operand: tensor}, threads, once=True)
    names, made, again = tuple(one.target.tensor for one in wish.assignments), bound.once(), repeated(bound, given)
    return dict(zip(names, made, strict=True)), alone(names, again) if again is not None else None


@lru_cache(_KEPT)
def _wish(
    members: tuple[Assignment, ...], operand: str, tree: _Tree, sizes: tuple[tuple[str, int], ...], semiring: tuple[str, str], shares: int
) -> _Pass | None:
    """Return the pass that computes the first expression and those others for which it pays; None if it does not pay for the first.

    Args:
        sizes: the extent of every index.
        shares: the number of shares into which threads cut the work.
    """
    extents = dict(sizes)
    levels = tuple(_access(members[0], operand).subscripts[mode].index for mode in tree.format.order)

    def time(*some: Assignment) -> float:
        return pass_time(_one_pass(some, operand, levels), tree.nodes, extents, shares) if some else 0.0

    def gains(one: Assignment) -> bool:
        return time(*members) - time(*(other for other in members if other is not one)) < PAYS * time(one)

    if not gains(members[0]):
        return None
    members = tuple(filter(gains, members))
    if shares * (sum(map(time, members)) - time(*members)) < LEAST_SAVED:
        return None
    whole = _one_pass(members, operand, levels)
    constants = {name: extent for name, extent in extents.items() if name not in levels and 0 < extent <= CONSTANT_BOUND}
    return _Pass(
        members, operand, tree.format, tree.widths, tree.dtype, tuple(sorted(constants.items())), semiring,
        dealt(whole, tree.nodes, extents, shares), far_rows(whole, levels, extents, np.dtype(tree.dtype).itemsize),
    )  # fmt: skip


def _is_sparse(data: Any) -> bool:
    """Whether an operand is a sparse tensor of enough modes."""
    if isinstance(data, (np.ndarray, np.generic, int, float, str)):
        return False
    modes = data.order if isinstance(data, Tensor) else getattr(data, "ndim", 0)
    return isinstance(modes, int) and modes >= LEAST_MODES


def _fits(assignment: Assignment, operand: str) -> bool:
    """Whether an expression is a product of one access of an operand with others, and every index is in that access or on the left."""
    factors = assignment.value.operands if isinstance(assignment.value, Mul) else ()
    own = [factor for factor in factors if isinstance(factor, Access) and factor.tensor == operand]
    if assignment.operator != "=" or len(own) != 1 or len(own[0].subscripts) < LEAST_MODES or not assignment.target.subscripts:
        return False
    every = [assignment.target, *(factor for factor in factors if isinstance(factor, Access))]
    if len(every) != len(factors) + 1 or any(not access.is_plain or len(access.indices) < len(access.subscripts) for access in every):
        return False
    read = {name for access in every[1:] for name in access.indices}
    return read - {*own[0].indices} <= {*assignment.target.indices} <= read


def _alike(assignment: Assignment, operand: str, subscripts: tuple[Affine, ...]) -> Assignment | None:
    """Return an expression with indices renamed so that the operand has the given subscripts; None if names would clash."""
    own = _access(assignment, operand)
    names = {before.index: after.index for before, after in zip(own.subscripts, subscripts, strict=True)}
    others = {name for access in (assignment.target, *accesses(assignment.value)) for name in access.indices} - {*names}
    if others & {*names.values()}:
        return None

    def renamed(access: Access) -> Access:
        return replace(access, subscripts=tuple(index_subscript(names.get(part.index, part.index)) for part in access.subscripts))

    value = Mul(tuple(renamed(access) for access in accesses(assignment.value)))
    return Assignment(renamed(assignment.target), "=", value, assignment.text)


def _is_tree(tensor: Tensor) -> bool:
    """Whether a tensor stores its entries as a tree, every coordinate once below its parent, with values that kernels compute with."""
    form = tensor.format
    kinds = all((kind.full or kind.steps) and not kind.holes and form.unique(level) for level, kind in enumerate(form.levels))
    return kinds and not form.is_dense and tensor.dtype.name in TYPES and max(tensor.shape) <= aligned.INDEX_LIMIT


def _access(assignment: Assignment, operand: str) -> Access:
    return next(access for access in accesses(assignment.value) if access.tensor == operand)


@lru_cache(_KEPT)
def _one_pass(assignments: tuple[Assignment, ...], operand: str, levels: tuple[str, ...]) -> OnePass:
    own = _access(assignments[0], operand)
    every = [access for one in assignments for access in (one.target, *accesses(one.value))]
    taken = {name for access in every for name in (access.tensor, *access.indices)}
    products = [Product(one.target, tuple(access for access in accesses(one.value) if access.tensor != operand)) for one in assignments]
    return OnePass(own, levels, products, taken)


def _extents(assignments: Sequence[Assignment], operands: Mapping[str, Any], operand: str, tensor: Tensor) -> dict[str, int] | None:
    """Return the extent of every index; None if operands disagree, or the kernel would have to convert one."""
    found: dict[str, int] = {}
    for access in (access for one in assignments for access in accesses(one.value)):
        data = tensor if access.tensor == operand else operands[access.tensor]
        shape = data.shape
        if data.dtype != tensor.dtype or len(shape) != len(access.subscripts):
            return None
        for name, extent in zip(access.indices, shape, strict=True):
            if found.setdefault(name, int(extent)) != extent:
                return None
    return found


def _nodes(tensor: Tensor) -> list[int]:
    """Return how many nodes every level of a tensor has, the root first."""
    found = [1]
    for level, kind in enumerate(tensor.format.levels):
        found.append(kind.positions(tensor.levels[level].parts, found[-1], tensor.shape[tensor.format.order[level]]))
    return found


def _width(tensor: Tensor, level: int) -> int:
    return 64 if any(array.itemsize == 8 for array in tensor.levels[level].parts.values()) else 32


@lru_cache(_KEPT)
def _kernel(wish: _Pass) -> TypedKernel:
    """Return the kernel of one pass. The expression in its specification, for messages, is the product of all tensors that it reads."""
    levels_of = _access(wish.assignments[0], wish.operand).subscripts
    one = _one_pass(wish.assignments, wish.operand, tuple(levels_of[mode].index for mode in wish.format.order))
    read = tuple(dict.fromkeys(access for assignment in wish.assignments for access in accesses(assignment.value)))
    targets = tuple(assignment.target for assignment in wish.assignments)
    dense = [*(access for access in read if access.tensor != wish.operand), *targets]
    types = {access.tensor: _dense_type(len(access.subscripts), wish.dtype) for access in dense}
    types[wish.operand] = TensorType(wish.format, wish.dtype, wish.widths)
    text = "; ".join(assignment.text for assignment in wish.assignments)
    viewed = Viewed(Assignment(targets[0], "=", Mul(read), text), {name: kind.format for name, kind in types.items()})
    return compile_together(one.program(wish.tag, wish.ahead, *wish.semiring), types, targets, viewed, dict(wish.constants))


def _dense_type(order: int, dtype: str) -> TensorType:
    return TensorType(dense_format(order), dtype, (32,) * order)
