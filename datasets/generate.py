"""Synthetic inputs by name: ``random:KIND:SIZE:key=value:...``, for example ``random:uniform:2000x3000:nnz=1e5:seed=1``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compiler.errors import DataError, ResourceError
from ..compiler.format import Format
from ..compiler.storage.construct import from_entries
from ..compiler.storage.tensor import Tensor
from . import patterns, regular

PREFIX = "random:"
_SIZED = ("nnz", "density")
_COMMON = ("seed", "dtype")


@dataclass(frozen=True)
class Kind:
    """A kind of synthetic input.

    Args:
        name: the word after ``random:``.
        example: a whole name.
        about: one line for listings.
        options: keys besides ``seed`` and ``dtype``, with their defaults; None where one has to be given (nnz or density).
        sized: whether a size such as 200x300 follows the name.
        entries: returns (shape, coordinate columns, values or None for random ones) for a request.
    """

    name: str
    example: str
    about: str
    options: dict[str, str | None]
    sized: bool
    entries: Callable[[Request], tuple[tuple[int, ...], patterns.Columns, Any]]


@dataclass(frozen=True)
class Request:
    """What a name asks for; options as text."""

    name: str
    shape: tuple[int, ...]
    options: dict[str, str]

    def number(self, key: str) -> float:
        """Return an option as a number.

        Raises:
            DataError: it is none.
        """
        try:
            value = float(self.options[key])
        except ValueError:
            raise self.error(f"{key}={self.options[key]!r} is not a number") from None
        if not math.isfinite(value):
            raise self.error(f"{key}={self.options[key]} is not finite")
        return value

    def count(self, key: str) -> int:
        """Return an option as a whole number from 0 on; 4e6 is one.

        Raises:
            DataError: it is none.
        """
        value = self.number(key)
        if value < 0 or value != int(value):
            raise self.error(f"{key}={self.options[key]} is not a whole number from 0 on")
        return int(value)

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.count("seed"))

    def nnz(self, shape: tuple[int, ...]) -> int:
        """Return the number of entries that is asked for, by ``nnz`` or ``density``."""
        if "nnz" in self.options:
            return self.count("nnz")
        density = self.number("density")
        if not 0 <= density <= 1:
            raise self.error(f"density={self.options['density']} is not between 0 and 1")
        return round(density * math.prod(shape))

    def error(self, message: str) -> DataError:
        return DataError(f"'{self.name}': {message}")


def generate(name: str, format: Format | str | None = None) -> Tensor:
    """Return the synthetic tensor of a name; the same name always gives the same tensor.

    Values are uniform in [0.5, 1.5) (stencils: the diagonal is points - 1, the rest -1).

    Raises:
        DataError: the kind, an option or a size is wrong; the message lists the valid ones.
        ResourceError: it does not fit into memory.
    """
    kind, request = parse(name)
    dtype = _dtype(request)
    try:
        shape, columns, values = kind.entries(request)
        if values is None:
            values = np.random.default_rng([request.count("seed"), 1]).random(len(columns[0])) + 0.5
        return from_entries(shape, columns, values.astype(dtype, copy=False), format)
    except DataError as error:
        text = str(error)
        raise error if text.startswith("'") else request.error(text) from None
    except MemoryError as error:
        reason = str(error) if isinstance(error, ResourceError) else "does not fit into memory; ask for less"
        raise ResourceError(f"'{name}': {reason}") from None


def announced_shape(name: str) -> tuple[int, ...] | None:
    """Return the shape of a synthetic tensor whose name gives it, None for others (grids, graphs). Raises ``DataError`` as ``parse``."""
    kind, request = parse(name)
    if kind.name in ("uniform", "zipf"):
        return request.shape
    return _square(request) if kind.name in ("skewed", "banded", "block") else None


def parse(name: str) -> tuple[Kind, Request]:
    """Return the kind and the request of a name.

    Raises:
        DataError: the kind, an option or a size is wrong; the message lists the valid ones.
    """
    word, *parts = name.removeprefix(PREFIX).split(":")
    if word not in KINDS:
        raise DataError(
            f"'{name}': there is no kind '{word}' of synthetic inputs; there are {', '.join(KINDS)}, as in {KINDS['uniform'].example}"
        )
    kind = KINDS[word]
    request = Request(name, (), {})
    shape: tuple[int, ...] = ()
    if kind.sized:
        if not parts or "=" in parts[0]:
            raise request.error(f"the size is missing, as in {kind.example}")
        shape = _shape(request, parts.pop(0))
    known = (*kind.options, *_COMMON)
    options = {key: value for key, value in kind.options.items() if value is not None} | {"seed": "0", "dtype": "float64"}
    for part in parts:
        key, equals, value = part.partition("=")
        if key not in known or not equals or not value:
            raise request.error(f"'{part}' is no option of {word}; there are {', '.join(f'{one}=' for one in known)} as in {kind.example}")
        options[key] = value
    if set(_SIZED) <= set(kind.options) and not set(_SIZED) & set(options):
        raise request.error(f"nnz= or density= is missing, as in {kind.example}")
    return kind, Request(name, shape, options)


def _shape(request: Request, text: str) -> tuple[int, ...]:
    extents = text.lower().split("x")
    if not all(extent.isdecimal() and 0 < int(extent) < 2**62 for extent in extents):
        raise request.error(f"'{text}' is no size; a size is extents from 1 on, such as 2000x3000")
    return tuple(map(int, extents))


def _dtype(request: Request) -> np.dtype[Any]:
    if request.options["dtype"] not in ("float64", "float32"):
        raise request.error(f"dtype={request.options['dtype']} is neither float64 nor float32")
    return np.dtype(request.options["dtype"])


def _drawn(request: Request, draw: patterns.Draw, shape: tuple[int, ...], rng: np.random.Generator) -> tuple[Any, patterns.Columns, None]:
    return shape, patterns.distinct(draw, shape, request.nnz(shape), rng), None


def _square(request: Request) -> tuple[int, ...]:
    if len(request.shape) > 2:
        raise request.error("this kind is a matrix: its size is rows, or rows x columns")
    return request.shape if len(request.shape) == 2 else request.shape * 2


def _uniform(request: Request) -> Any:
    rng = request.rng
    return _drawn(request, patterns.uniform(request.shape, rng), request.shape, rng)


def _zipf(request: Request) -> Any:
    rng = request.rng
    return _drawn(request, patterns.zipf(request.shape, request.number("alpha"), rng), request.shape, rng)


def _rmat(request: Request) -> Any:
    rng, scale = request.rng, request.count("scale")
    a, b, c = (request.number(key) for key in "abc")
    if not 1 <= scale <= 30 or min(a, b, c) < 0 or a + b + c > 1:
        raise request.error("scale is from 1 to 30, and a, b, c are probabilities whose sum is at most 1")
    return _drawn(request, patterns.rmat(scale, (a, b, c), rng), (2**scale, 2**scale), rng)


def _skewed(request: Request) -> Any:
    rng, shape = request.rng, _square(request)
    return _drawn(request, patterns.skewed(shape, request.number("skew"), rng), shape, rng)


def _banded(request: Request) -> Any:
    shape = _square(request)
    return shape, regular.banded(shape, request.count("bandwidth")), None


def _block(request: Request) -> Any:
    shape = _square(request)
    return shape, regular.blocks(shape, _shape(request, request.options["block"]), request.nnz(shape), request.rng), None


def _stencil(points: int, dimension: int) -> Callable[[Request], Any]:
    def entries(request: Request) -> Any:
        grid = request.shape * dimension if len(request.shape) == 1 else request.shape
        columns, diagonal = regular.stencil(grid, points)
        return (math.prod(grid),) * 2, columns, np.where(diagonal, points - 1.0, -1.0)

    return entries


_NNZ: dict[str, str | None] = {"nnz": None, "density": None}
KINDS = {
    kind.name: kind
    for kind in (
        Kind("uniform", "random:uniform:2000x3000x400:nnz=1e5:seed=1", "any order, every place equally likely", _NNZ, True, _uniform),
        Kind(
            "zipf",
            "random:zipf:12000x9000x28000:nnz=5e6",
            "any order, Zipf frequencies in each mode",
            {**_NNZ, "alpha": "1.1"},
            True,
            _zipf,
        ),
        Kind(
            "rmat",
            "random:rmat:scale=18:nnz=4e6",
            "power-law graph",
            {**_NNZ, "scale": "16", "a": "0.57", "b": "0.19", "c": "0.19"},
            False,
            _rmat,
        ),
        Kind("skewed", "random:skewed:10000x10000:nnz=1e6:skew=8", "row lengths fall exponentially", {**_NNZ, "skew": "8"}, True, _skewed),
        Kind("banded", "random:banded:100000:bandwidth=8", "all places near the diagonal", {"bandwidth": "4"}, True, _banded),
        Kind(
            "block", "random:block:40000x40000:block=4x4:nnz=1e6", "dense blocks at random places", {**_NNZ, "block": "4x4"}, True, _block
        ),
        *(
            Kind(
                f"stencil{points}",
                f"random:stencil{points}:{size}",
                f"{points}-point stencil on a {dimension}-D grid",
                {},
                True,
                _stencil(points, dimension),
            )
            for points, dimension, size in ((3, 1, "1000000"), (5, 2, "1000x1000"), (9, 2, "1000"), (7, 3, "100"), (27, 3, "40"))
        ),
    )
}
