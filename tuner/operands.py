"""Operands from the command line: files, catalogue names, and seeded random dense arrays for the rest."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import numpy as np

from ..compiler.concrete.check import parsed, tensor_names
from ..compiler.errors import DataError, ExpressionError, ShapeError
from ..compiler.format import parse_format
from ..compiler.native.memory import claim, readable_bytes
from ..compiler.notation.nodes import Access, Assignment
from ..compiler.output_pattern import restriction
from ..compiler.storage.construct import tensor
from ..compiler.storage.tensor import Tensor
from ..datasets import announced_shape
from .extents import all_indices, known_extents, reads
from .limits import make_limits
from .problem import Problem
from .resolve import make_problem, require_target

_POSITION_BYTES = 4


def problem_of(given: Mapping[str, Any]) -> Problem:
    """Return the problem that the options of a command describe.

    Raises:
        SparsetuneError: an operand, a format or an extent does not fit.
    """
    arch = given.get("arch")
    require_target(given["target"], arch)
    files, formats = given["inputs"], dict(given["formats"])
    expression, dims = given["expression"], given["dims"]
    output_format = given["output_format"] or formats.get(parsed(expression).target.tensor)
    asked, others = None, dict[str, Tensor]()
    if given.get("output_pattern") is not None:
        asked = restriction(expression, given["output_pattern"], given.get("semiring"))
        output_format, named = output_format or asked.usual_format, asked.pattern.tensor
        if named not in asked.reads and named in files:
            others = {named: _load(named, files[named], formats.pop(named, None))}
    read = {operand: source for operand, source in files.items() if operand not in others}
    operands: Mapping[str, Any] = load_operands(expression, read, dims, formats, given.get("seed", 0), output_format=output_format)
    if asked is not None:
        expression, operands = asked.expression, asked.operands({**operands, **others})
    name = ", ".join(f"{operand}={source}" for operand, source in files.items())
    limits, semiring = make_limits(given.get("memory_bound"), given.get("cache_share")), given.get("semiring")
    boundary = given.get("boundary") or None
    return make_problem(
        expression, operands, output_format, given["target"], given["threads"], name, dims, arch, limits, semiring, boundary=boundary
    )


def load_operands(
    expression: str,
    files: Mapping[str, str],
    dims: Mapping[str, int],
    formats: Mapping[str, str],
    seed: int = 0,
    given: Mapping[str, Tensor] | None = None,
    output_format: str | None = None,
) -> dict[str, Tensor]:
    """Return every operand of an expression.

    Args:
        expression: index notation.
        files: operand -> path, catalogue name or ``random:...``.
        dims: extents of indices that no file gives.
        formats: operand -> format to convert it to.
        seed: of the random arrays.
        given: operands that are loaded already.
        output_format: of the result; None: dense, so that there has to be memory for all of it besides the random arrays.

    Raises:
        ExpressionError: a name is not in the expression.
        ShapeError: an extent is not known, or disagrees.
        ResourceError: there is no memory for the dense arrays.
        SparsetuneError: a file cannot be read, a format does not fit.
    """
    assignment = parsed(expression)
    names = tensor_names(assignment)
    _check_names(files, names, "-i", "operand")
    _check_names(formats, (*names, assignment.target.tensor), "--format", "tensor")
    _claim_announced(assignment, files, dims, formats, output_format)
    loaded = {**(given or {}), **{name: _load(name, source, formats.get(name)) for name, source in files.items()}}
    extents = _extents(assignment, loaded, dims)
    dtype = np.result_type(*(operand.dtype for operand in loaded.values())) if loaded else np.dtype(np.float64)
    _claim(assignment, [name for name in names if name not in loaded], extents, dtype, output_format, {})
    made = {name: loaded[name] if name in loaded else _random(_access(assignment, name), extents, dtype, seed) for name in names}
    return {name: operand.convert(formats[name]) if name in formats else operand for name, operand in made.items()}


def load_tensor(source: str, form: str | None = None) -> Tensor:
    """Return the tensor of a path, catalogue name or ``random:...``. Raises ``DataError``, ``FormatError``."""
    from ..datasets import load

    return load(source, form)


def _load(name: str, source: str, form: str | None) -> Tensor:
    try:
        return load_tensor(source, form)
    except DataError as error:
        raise type(error)(f"operand {name}: {error}") from None


def _check_names(given: Mapping[str, Any], known: tuple[str, ...], option: str, what: str) -> None:
    for name in given:
        if name not in known:
            raise ExpressionError(f"{option} {name}=...: the expression has no {what} '{name}'; it has {', '.join(dict.fromkeys(known))}")


def _extents(assignment: Assignment, loaded: Mapping[str, Tensor], dims: Mapping[str, int]) -> dict[str, int]:
    indices = all_indices(assignment)
    for index, extent in dims.items():
        if index not in indices:
            raise ExpressionError(f"--dim {index}={extent}: the expression has no index '{index}'; it has {', '.join(indices)}")
    found = known_extents(assignment, {name: operand.shape for name, operand in loaded.items()}, dims)
    for access in reads(assignment):
        if access.tensor in loaded:
            continue
        for index in access.indices:
            if index not in found:
                missing = f"the extent of index {index} of {access.tensor} is not known"
                raise ShapeError(f"{missing}: add --dim {index}=N, or a file for {access.tensor}")
    return found


def _claim_announced(
    assignment: Assignment, files: Mapping[str, str], dims: Mapping[str, int], formats: Mapping[str, str], output_format: str | None
) -> None:
    """Check, before any file is read, that there is memory for all operands, as far as names and file headers tell their sizes."""
    shapes = {name: shape for name, source in files.items() if (shape := announced_shape(source)) is not None}
    if not shapes:
        return
    extents = known_extents(assignment, shapes, dims)
    dense = [name for name in tensor_names(assignment) if name not in files and set(_access(assignment, name).indices) <= extents.keys()]
    stored = {name: _least_bytes(shape, formats.get(name)) for name, shape in shapes.items()}
    _claim(assignment, dense, extents, np.dtype(np.float64), output_format, stored)


def _least_bytes(shape: tuple[int, ...], form: str | None) -> int:
    """Return how many bytes an operand of a shape takes at least, whatever it stores: the positions below its dense levels."""
    found = parse_format(form or ("csr" if len(shape) == 2 else "csf"), len(shape))
    dense = list(takewhile(lambda level: found.levels[level].full, range(len(shape))))
    return math.prod(shape[found.order[level]] for level in dense) * _POSITION_BYTES if dense else 0


def _claim(
    assignment: Assignment,
    names: Sequence[str],
    extents: Mapping[str, int],
    dtype: np.dtype[Any],
    output_format: str | None,
    stored: Mapping[str, int],
) -> None:
    """Check that there is memory for dense operands, a dense result and the stored entries of other operands together."""
    needed = [_access(assignment, name) for name in names]
    if output_format in (None, "dense"):
        needed.append(assignment.target)
    dense = {access.tensor: math.prod(_shape(access, extents)) * dtype.itemsize for access in needed}
    sizes = {**stored, **dense}
    arrays = ", ".join(f"{name}: {readable_bytes(size)}" for name, size in sizes.items())
    claim(sum(sizes.values()), f"what '{assignment.text}' needs ({arrays})", "give smaller extents, or sparser formats")


def _random(access: Access, extents: Mapping[str, int], dtype: np.dtype[Any], seed: int) -> Tensor:
    """Return a dense array of values in [0, 1), or of whole numbers from 0 to 9 for integer dtypes; name and seed determine it."""
    generator = np.random.default_rng([seed, zlib.crc32(access.tensor.encode())])
    shape = _shape(access, extents)
    if np.issubdtype(dtype, np.floating):
        return tensor(generator.random(shape, dtype=np.float32 if dtype == np.float32 else np.float64))
    return tensor(generator.integers(0, 10, shape).astype(dtype))


def _shape(access: Access, extents: Mapping[str, int]) -> tuple[int, ...]:
    """Return a shape within which all subscripts of an access lie; an index of unknown extent counts as one value."""
    return tuple(
        1 + max(0, part.constant + sum(max(0, factor * (extents.get(name, 1) - 1)) for name, factor in part.terms))
        for part in access.subscripts
    )


def _access(assignment: Assignment, name: str) -> Access:
    return next(access for access in reads(assignment) if access.tensor == name)
