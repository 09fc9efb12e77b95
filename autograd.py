"""Expressions among torch's operations: ``st.torch.evaluate``.

    import torch, sparsetune as st
    H = st.torch.evaluate("H(i,k) = relu(A(i,j) * X(j,l) * W(l,k))", {"A": A, "X": X, "W": W})    # W.requires_grad
    H.sum().backward()                                                                            # W.grad

The derivative of an expression is expressions of the same kind (``compiler.notation.derivative``), compiled by the same compiler.
Sparse operands get derivatives where they store something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .compiler.concrete.check import check_assignment, tensor_names
from .compiler.concrete.given import checked_operands
from .compiler.errors import DataError, ExpressionError
from .compiler.fresh import FreshNames
from .compiler.notation.derivative import derivatives, function_operands, statements, text_of
from .compiler.notation.nodes import Access, Assignment, accesses, indices
from .compiler.notation.parser import parse
from .tuner.calls.evaluating import evaluate as computed
from .tuner.calls.operands import tensor as stored_tensor

if TYPE_CHECKING:
    from .compiler.storage.tensor import Tensor

__all__ = ["evaluate"]


def evaluate(expression: str, operands: Mapping[str, Any], shape: Mapping[str, int] | None = None, threads: int | None = None) -> Any:
    """Compute an expression on torch's tensors, and let torch differentiate it, any number of times.

    Args:
        expression: index notation, with a dense result; functions, comparisons and sums inside functions are differentiated too.
        operands: by name: tensors of torch on the processor, strided, sparse_coo, sparse_csr or sparse_csc, and whatever else
            ``sparsetune.evaluate`` takes, by which nothing is differentiated.
        shape: extents of indices that no operand determines, by index.
        threads: as for ``sparsetune.evaluate``.

    Returns:
        A strided tensor of torch. Derivatives by sparse operands have the operands' layout and pattern; they are differentiated no
        further. At jumps of comparisons and corners of ``abs``, ``relu``, ``max`` and ``min`` they are those of one side.

    Raises:
        DataError: torch cannot be imported, or an operand is none. ExpressionError: there is no derivative, or ``+=`` is used.
        SparsetuneError: as ``sparsetune.evaluate``.
    """
    torch, found = _torch(), None
    given = checked_operands(expression, tensor_names(parse(expression)), operands)
    for one in _statements(expression):
        found = given[one.target.tensor] = _differentiable(torch, one, _read(one, given), dict(shape or {}), threads)
    return found


def _differentiable(torch: Any, statement: Assignment, operands: Mapping[str, Any], shape: Mapping[str, int], threads: int | None) -> Any:
    """Compute one statement as one operation of torch's graph."""
    names = [name for name, data in operands.items() if isinstance(data, torch.Tensor)]
    for name in names:
        if operands[name].device.type != "cpu":
            raise DataError(f"operand '{name}' is on {operands[name].device}; kernels of st.torch run on the processor: use .cpu()")
    tensors = [operands[name].coalesce() if operands[name].layout == torch.sparse_coo else operands[name] for name in names]
    others = {name: data for name, data in operands.items() if name not in names}
    return _operation().apply(_Call(statement, tuple(names), others, shape, threads), *tensors)


class _Call:
    """A statement, what it reads beside tensors of torch, and how it is run."""

    def __init__(
        self, statement: Assignment, names: Sequence[str], others: Mapping[str, Any], shape: Mapping[str, int], threads: int | None
    ) -> None:
        self.statement, self.names, self.others, self.shape, self.threads = statement, names, others, shape, threads

    def run(self, tensors: Sequence[Any]) -> Any:
        """Return the result as torch has it."""
        torch, statement = _torch(), self.statement
        own = {*statement.target.indices, *indices(statement.value)}
        shape = {index: extent for index, extent in self.shape.items() if index in own}
        given = {**dict(zip(self.names, (tensor.detach() for tensor in tensors), strict=True)), **self.others}
        text = text_of(statement)
        return torch.as_tensor(computed(text, given, shape=shape or None, threads=self.threads))

    def derivative(self, place: int, worth: Any, tensors: Sequence[Any]) -> Any:
        """Return the derivative by one tensor, where each entry of the result is worth something."""
        torch, name, tensor = _torch(), self.names[place], tensors[place]
        given = {**dict(zip(self.names, tensors, strict=True)), **self.others}
        names = FreshNames({*given, self.statement.target.tensor})
        seed, result, mask = map(names.fresh, "gdm")
        extents = {**self.shape, **_extents(self.statement, given)}
        if tensor.layout == torch.strided:
            parts = derivatives(self.statement, name, seed, result)
            return sum((self._part(one, {**given, seed: worth}, extents) for one in parts), start=torch.zeros_like(tensor))
        stored = stored_tensor(tensor.detach())
        data = {key: one.detach() if isinstance(one, torch.Tensor) else one for key, one in {**given, seed: worth, name: stored}.items()}
        values = np.zeros(stored.values.shape, stored.dtype)
        for one in derivatives(self.statement, name, seed, result, mask):
            values += self._on_pattern(one, name, mask, stored, data, extents)
        return _with_values(tensor, stored, values)

    def _part(self, statement: Assignment, given: Mapping[str, Any], extents: Mapping[str, int]) -> Any:
        return _differentiable(_torch(), statement, _read(statement, given), _missing(statement, extents), self.threads)

    def _on_pattern(
        self, statement: Assignment, name: str, mask: str, stored: Tensor, data: Mapping[str, Any], extents: Mapping[str, int]
    ) -> Any:
        """Return a derivative at the positions that an operand stores.

        Functions of other sparse operands act on what these store, where the result is sparse: then it is computed everywhere first.
        """
        place, shape = Access(name, statement.target.subscripts), _missing(statement, extents)
        ones = stored.with_values(np.ones_like(stored.values))
        given = _read(statement, {**data, mask: ones})
        applied = {access for access in function_operands(statement) if access != place}
        if any(_is_sparse(given[access.tensor]) for access in applied):
            dense = computed(text_of(statement), given, shape=shape or None, threads=self.threads)
            return dense[tuple(stored.to_coordinates()[0])]
        found = computed(text_of(statement), given, stored.format, shape=shape or None, threads=self.threads)
        if found.values.shape != stored.values.shape:  # it stores less where other operands do
            found = found + stored.with_values(np.zeros_like(stored.values))
        return found.values


@cache
def _operation() -> Any:
    """Return the operation that torch knows how to go back through."""
    torch = _torch()

    class Evaluate(torch.autograd.Function):
        """An expression, computed by sparsetune."""

        @staticmethod
        def forward(ctx: Any, call: _Call, *tensors: Any) -> Any:
            ctx.call = call
            ctx.save_for_backward(*tensors)
            return call.run(tensors)

        @staticmethod
        def backward(ctx: Any, worth: Any) -> Any:
            tensors = ctx.saved_tensors
            needed = ctx.needs_input_grad[1:]
            return None, *(ctx.call.derivative(place, worth, tensors) if wanted else None for place, wanted in enumerate(needed))

    return Evaluate


@cache
def _torch() -> Any:
    try:
        import torch  # pyright: ignore[reportMissingImports] the caller's
    except ImportError:
        raise DataError("st.torch needs torch, which is not installed: pip install torch") from None
    return torch


@lru_cache(256)
def _statements(expression: str) -> tuple[Assignment, ...]:
    assignment = parse(expression)
    check_assignment(assignment)
    if assignment.operator != "=":
        raise ExpressionError("st.torch.evaluate takes no '+='; add the operand on the right: y(i) = z(i) + ...")
    taken = {assignment.target.tensor, *(access.tensor for access in accesses(assignment.value))}
    return tuple(statements(assignment, FreshNames(taken).fresh))


def _extents(statement: Assignment, operands: Mapping[str, Any]) -> dict[str, int]:
    """Return the extents of the plain indices of operands."""
    found: dict[str, int] = {}
    for access in accesses(statement.value):
        for subscript, extent in zip(access.subscripts, getattr(operands[access.tensor], "shape", ()), strict=False):
            if subscript.is_index:
                found.setdefault(subscript.index, int(extent))
    return found


def _missing(statement: Assignment, extents: Mapping[str, int]) -> dict[str, int]:
    """Return the extents of indices on the left that nothing on the right determines."""
    known = set(indices(statement.value))
    return {index: extents[index] for index in statement.target.indices if index not in known and index in extents}


def _read(statement: Assignment, operands: Mapping[str, Any]) -> dict[str, Any]:
    names = {access.tensor for access in accesses(statement.value)}
    return {name: data for name, data in operands.items() if name in names}


def _is_sparse(data: Any) -> bool:
    if isinstance(data, (int, float, np.ndarray, np.generic)):
        return False
    return not stored_tensor(data).format.is_dense


def _with_values(tensor: Any, stored: Tensor, values: Any) -> Any:
    """Return a torch tensor of the pattern and layout of another one.

    Raises:
        DataError: its rows are not sorted, so that values have no place in it.
    """
    torch = _torch()
    made = torch.from_numpy(values).to(tensor.dtype)
    options: dict[str, Any] = {"size": tensor.shape, "check_invariants": False}
    if tensor.layout == torch.sparse_coo:
        return torch.sparse_coo_tensor(tensor.indices(), made, is_coalesced=True, **options)
    is_csr = tensor.layout == torch.sparse_csr
    parts = (tensor.crow_indices(), tensor.col_indices()) if is_csr else (tensor.ccol_indices(), tensor.row_indices())
    coordinates = stored.levels[1].crd
    if coordinates is None or not np.array_equal(coordinates, parts[1].numpy()):
        raise DataError("a sparse torch tensor with unsorted or repeated indices has no place for derivatives; coalesce it first")
    return (torch.sparse_csr_tensor if is_csr else torch.sparse_csc_tensor)(*parts, made, **options)
