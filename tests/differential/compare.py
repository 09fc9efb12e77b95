"""Runs a case and says what is wrong with its result, if anything."""

from __future__ import annotations

from typing import Any

import numpy as np
from sparsetune.compiler.build.bound import BoundKernel
from sparsetune.compiler.build.kernel import TypedKernel
from sparsetune.compiler.errors import FormatError
from sparsetune.compiler.kernel import Kernel
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.storage.tensor import Tensor
from storage_cases import stored_entries

from .again import datasets, spoil
from .cases import Case
from .formats import one_coordinate_levels, padded_above, storable, stored
from .interpreted import interpreted
from .oracle import Expected, expected

INTERPRETED_EVERY = 8
"""One case in so many is run through the interpreter of the loop IR too, unless asked otherwise."""


def compiled(case: Case) -> tuple[Kernel, TypedKernel]:
    """Return the compiled expression of a case, and the kernel for its operands, not built yet."""
    semiring = None if case.semiring == ("+", "*") else case.semiring
    made = compile_kernel(case.text, case.formats, case.constants, case.schedule or None, semiring=semiring)
    return made, _kernel(case, made)


def bound(case: Case, made: Kernel, threads: int = 1) -> BoundKernel:
    return made.bind_operands({name: operand.given for name, operand in case.operands.items()}, threads, None, case.given)


def fault(case: Case, made: Kernel, interpreted_every: int = INTERPRETED_EVERY) -> str | None:
    """Run a case whose kernel has been built, then on other data; return what is wrong with a result, or None."""
    built = _kernel(case, made)
    for data in datasets(case):
        if data is not case and _kernel(data, made) is not built:
            continue  # other widths of indices, another kernel
        found = _fault(data, made, interpreted_every)
        if found is not None:
            return found if data is case else f"on other data, {data.extents}: {found}"
    return None


def _kernel(case: Case, made: Kernel) -> TypedKernel:
    """Return the kernel for the operands of a case."""
    return made.specialised({name: operand.given for name, operand in case.operands.items()}, case.given)[0]


def _fault(case: Case, made: Kernel, interpreted_every: int) -> str | None:
    """Return what is wrong with the results of some data, or None."""
    before = {name: _arrays(operand.given) for name, operand in case.operands.items()}
    wanted = expected(case)
    impossible = unstorable(case, wanted)
    try:
        found = next((wrong for threads in case.threads if (wrong := _run(case, wanted, bound(case, made, threads)))), None)
    except FormatError:
        return None if impossible else "refused, although the format holds the result"
    if impossible:
        return "not refused, although the format cannot hold the result"
    if any(_changed(before[name], _arrays(operand.given)) for name, operand in case.operands.items()):
        return "an operand was changed"
    if found is None and case.seed % interpreted_every == 0:
        found = judge(case, wanted, interpreted(bound(case, made), "ignore_races" in case.schedule)[0])
        return None if found is None else f"interpreted: {found}"
    return found


def _run(case: Case, wanted: Expected, kernel: BoundKernel) -> str | None:
    """Run a kernel, and again into what it returned; return what is wrong with a result, or None."""
    for when in ("", "called again: "):
        spoil(kernel)
        found = judge(case, wanted, kernel.once())
        if found is not None:
            return when + found
    return None


def unstorable(case: Case, wanted: Expected) -> bool:
    """Whether singleton levels of the result's format would need several coordinates below one parent, or a coordinate where none is."""
    form = case.result_format
    if any(case.shape[form.order[level]] == 0 and padded_above(form, case.shape, level) for level in one_coordinate_levels(form)):
        return True
    entries = [tuple(map(int, place)) for place in np.argwhere(wanted.present)]
    return len(storable(entries, form)) < len(entries)


def judge(case: Case, wanted: Expected, result: Any) -> str | None:
    """Return what is wrong with a result, or None."""
    if isinstance(result, Tensor) == case.result_format.is_dense:
        return f"the result is a {type(result).__name__}"
    if result.shape != case.shape:
        return f"the result has shape {result.shape}, not {case.shape}"
    if result.dtype != case.dtype:
        return f"the result has dtype {result.dtype}, not {case.dtype}"
    dense = result
    if isinstance(result, Tensor):
        if result.format != case.result_format:
            return f"the result has format {result.format}"
        try:
            entries = stored_entries(result)
        except AssertionError as error:
            return f"level arrays: {error}"
        found = set(entries)
        right = stored(map(tuple, np.argwhere(wanted.present).tolist()), case.result_format, case.shape)
        if found != right:
            return f"pattern: missing {sorted(right - found)[:5]}, too many {sorted(found - right)[:5]}, of {len(right)}"
        dense = result.to_numpy()
    return _off(np.asarray(dense), wanted)


def _off(found: np.ndarray[Any, Any], wanted: Expected) -> str | None:
    with np.errstate(all="ignore"):
        near = np.abs(found.astype(float) - wanted.values.astype(float)) <= wanted.error if found.dtype.kind == "f" else False
        same = (found == wanted.values) | near
    if found.dtype.kind == "f":
        same |= np.isnan(found) & np.isnan(wanted.values)
    if np.all(same):
        return None
    place = tuple(np.argwhere(~np.asarray(same))[0].tolist())
    return f"value at {place}: {found[place]}, not {wanted.values[place]} ({np.count_nonzero(~same)} of {found.size} wrong)"


def _arrays(operand: Any) -> list[np.ndarray[Any, Any]]:
    if not isinstance(operand, Tensor):
        return [operand.copy()]
    parts = [operand.values, *(array for level in operand.levels for array in level.parts.values())]
    return [part.copy() for part in parts]


def _changed(before: list[np.ndarray[Any, Any]], after: list[np.ndarray[Any, Any]]) -> bool:
    return any(not np.array_equal(left, right, equal_nan=left.dtype.kind == "f") for left, right in zip(before, after, strict=True))
