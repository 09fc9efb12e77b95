"""Numbers that tell inputs apart: sizes, fibres a level, skew, locality; cheap enough to take before every kernel call.

Features of one operand are computed once as long as the operand lives. All of them are base-2 logarithms, so that a difference
of 1 is a factor of two in whatever is measured, and the distance of two inputs adds up like with like (``distance``). The time is
linear in the positions of the outer levels at worst; coordinates are sampled.
"""

from __future__ import annotations

import hashlib
import math
import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..compiler.frozen import frozen
from ..compiler.storage.positions import level_extent
from .steps import Asked, asks, root
from .steps import log2 as logarithm

if TYPE_CHECKING:
    from ..compiler.storage.tensor import Tensor
    from .records import Input

SAMPLE = 4096
"""Coordinates in the sample for a feature or the pattern."""

EXACT_PARENTS = 2**22
"""Most segments that are all looked at; of more, an even sample."""

WEIGHTS = {"extent": 1.0, "nnz": 1.0, "fibre": 1.5, "skew": 0.5, "gap": 0.25, "band": 0.25}
"""Weight of each kind of feature in a distance: highest for lengths of fibres, lowest for locality. ``reports.evidence`` fits them."""


@frozen
class OperandFeatures:
    """Features of one operand.

    Attributes:
        values: (name, log2 value) pairs:

            - nnz: stored entries;
            - fibre<l>: mean length of the segments of level l that are not empty;
            - skew<l>: longest segment over that mean;
            - gap<l>: mean step between neighbours of one sample of level l, relative to its extent (how scattered gathers are);
            - band: mean distance from the diagonal, relative to the extents (matrices).
        pattern: digest of shape, sizes and sampled coordinates.
    """

    values: tuple[tuple[str, float], ...]
    pattern: str


_known: weakref.WeakKeyDictionary[Tensor, OperandFeatures] = weakref.WeakKeyDictionary()


def operand_features(tensor: Tensor) -> OperandFeatures:
    """Return the features of an operand; dense ones have none beside their extents."""
    if isinstance(tensor, Asked):
        found = tensor.by_format(operand_features)
        return OperandFeatures(tuple((name, feature(tensor, place)) for place, (name, _) in enumerate(found.values)), found.pattern)
    found = _known.get(tensor)
    if found is None:
        found = _known[tensor] = _dense(tensor) if tensor.format.is_dense else _sparse(tensor)
    return found


@asks
def feature(tensor: Tensor, place: int) -> float:
    """Return the value of one of the features of an operand."""
    return operand_features(tensor).values[place][1]


def describe_input(operands: Mapping[str, Tensor], extents: Mapping[str, int], name: str = "") -> Input:
    """Return the description of operands (by canonical name) and extents (by canonical index)."""
    from .records import Input  # imported here: a replay asks for features alone

    values: list[tuple[str, float]] = [(f"extent:{index}", log2(extent)) for index, extent in sorted(extents.items())]
    patterns = []
    for canonical, tensor in sorted(operands.items()):
        features = operand_features(tensor)
        values += [(f"{feature}:{canonical}", value) for feature, value in features.values]
        patterns.append(f"{canonical} {features.pattern}")
    pattern = hashlib.blake2b("\n".join(patterns).encode(), digest_size=8).hexdigest()
    return Input(tuple(sorted(extents.items())), tuple((feature, round(value, 6)) for feature, value in values), pattern, name)


def distance(left: Input, right: Input) -> float:
    """Return the distance of two inputs of one kernel: 0 for the same, 1 if every feature of one kind differs by a factor of two."""
    return 0.0 if left.key == right.key else by_features(left, right)


def by_features(left: Input, right: Input) -> float:
    """Return the distance of two inputs of one kernel that need not be described in full."""
    return root(sum(WEIGHTS.get(kind, 1.0) * square for kind, square in differences(left, right).items()))


def differences(left: Input, right: Input) -> dict[str, float]:
    """Return the squares by which two inputs of one kernel differ, by kind of feature (extents, lengths of fibres ...).

    Features of one kind are averaged; a feature that only one of the inputs has counts as a factor of two.
    """
    mine, other = dict(left.features), dict(right.features)
    squares: dict[str, list[float]] = {}
    for feature in sorted(mine.keys() | other.keys()):  # sums of floats depend on their order
        both = feature in mine and feature in other
        difference = mine[feature] - other[feature] if both else 1.0
        squares.setdefault(_kind(feature), []).append(difference * difference)
    return {kind: sum(parts) / len(parts) for kind, parts in squares.items()}


def log2(value: float) -> float:
    """Return the base-2 logarithm of a value, which counts as 1 if it is below 1."""
    return logarithm(value) if value >= 1 else 0.0


def _kind(feature: str) -> str:
    return feature.partition(":")[0].rstrip("0123456789")


def _dense(tensor: Tensor) -> OperandFeatures:
    return OperandFeatures((), _digest(tensor, ()))


def _sparse(tensor: Tensor) -> OperandFeatures:
    values: list[tuple[str, float]] = [("nnz", log2(tensor.nnz))]
    sampled, parents = [], 1
    for number, level in enumerate(tensor.levels):
        if level.pos is not None:
            values += _segments(number, level.pos)
        kind = tensor.format.levels[number]
        parents = kind.positions(level.parts, parents, level_extent(tensor, number))
        if not kind.full:
            sampled.append(_coordinates(tensor, number, np.arange(0, parents, max(1, parents // SAMPLE))))
        if kind.steps:
            values.append((f"gap{number}", _gap(tensor, number, parents)))
    if (band := _band(tensor)) is not None:
        values.append(("band", band))
    return OperandFeatures(tuple(values), _digest(tensor, sampled))


def _segments(level: int, pos: NDArray[Any]) -> list[tuple[str, float]]:
    step = max(1, (len(pos) - 1) // EXACT_PARENTS)
    begins = np.arange(0, len(pos) - 1, step)
    lengths = (pos[1:] - pos[:-1]) if step == 1 else pos[begins + 1] - pos[begins]
    filled = int(np.count_nonzero(lengths))
    if not filled:
        return [(f"fibre{level}", 0.0), (f"skew{level}", 0.0)]
    mean = float(lengths.sum(dtype=np.int64)) / filled
    return [(f"fibre{level}", log2(mean)), (f"skew{level}", log2(float(lengths.max()) / mean))]


def _coordinates(tensor: Tensor, number: int, places: NDArray[Any]) -> NDArray[np.int64]:
    """Return the coordinates at some positions of a level."""
    return tensor.format.levels[number].sampled(tensor.levels[number].parts, places, level_extent(tensor, number))


def _gap(tensor: Tensor, number: int, count: int) -> float:
    extent = level_extent(tensor, number)
    if count < 2 or extent < 2:
        return 0.0
    places = np.linspace(0, count - 2, min(SAMPLE, count - 1)).astype(np.int64)
    steps = np.abs(_coordinates(tensor, number, places + 1) - _coordinates(tensor, number, places))
    return math.log2((float(steps.mean()) + 1) / extent)


def _band(tensor: Tensor) -> float | None:
    """Return log2 of the mean |i/I - j/J| of sampled entries of a matrix whose second level is the first that is compressed."""
    if tensor.order != 2 or tensor.levels[0].crd is not None or tensor.levels[1].pos is None or tensor.levels[1].crd is None:
        return None
    pos, stored = tensor.levels[1].pos, len(tensor.levels[1].crd)
    if not stored:
        return 0.0
    outer, inner = (max(1, tensor.shape[mode]) for mode in tensor.format.order)
    places = np.linspace(0, stored - 1, min(SAMPLE, stored)).astype(np.int64)
    parents = np.searchsorted(pos, places, side="right") - 1
    away = np.abs(parents / outer - _coordinates(tensor, 1, places) / inner)
    return math.log2(float(away.mean()) + 1.0 / max(outer, inner))


def _digest(tensor: Tensor, sampled: Iterable[NDArray[Any]]) -> str:
    found = hashlib.blake2b(repr((tensor.shape, len(tensor.values))).encode(), digest_size=8)
    for array in sampled:
        found.update(np.ascontiguousarray(array, dtype=np.int64).tobytes())
    return found.hexdigest()
