"""A program that times a kernel which stands alone: its arguments in a file, and a main that reads them and runs it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..frozen import frozen
from ..lowering.kernel_spec import KernelSpec
from ..storage.construct import tensor
from ..targets.c import NativeTarget
from .kernel import TypedKernel

_LARGEST = 1 << 20  # positions of the largest dense operand or result
_LONGEST = 1 << 10  # extents that nobody gave
_IN_ROW = 16  # entries of a sparse operand, for each of its first coordinates
_ALIGNMENT = 128  # as in the memory of results (``storage.aligned.LINE_PAIR``)

_MAIN = """/* Times {title} on arguments of operands.bin: random ones, {shown}. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int32_t st_kernel(void **arrays, int64_t *sizes, int64_t threads);
void st_release(void *memory);

enum {{ ARRAYS = {count}, SIZES = {sizes}, RUNS = 1000 }};

static const int64_t bytes[ARRAYS] = {{{bytes}}}; /* of each array; 0: the kernel makes it */
static const int64_t given[SIZES] = {{{given}}};

static double now(void) {{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}}

int main(void) {{
  void *arrays[ARRAYS] = {{0}};
  int64_t sizes[SIZES + ARRAYS];
  FILE *file = fopen("operands.bin", "rb");
  double least = 1e9, begin = now();
  int runs = 0;
  for (int k = 0; k < ARRAYS; k++) {{
    if (!bytes[k]) continue;
    arrays[k] = aligned_alloc({alignment}, (size_t)bytes[k]);
    if (!file || !arrays[k] || fread(arrays[k], 1, (size_t)bytes[k], file) != (size_t)bytes[k]) {{
      fprintf(stderr, "operands.bin cannot be read here, or there is no memory for it\\n");
      return 2;
    }}
  }}
  for (; runs < 3 || (runs < RUNS && now() - begin < 1); runs++) {{
    memcpy(sizes, given, sizeof given);
    const double start = now();
    if (st_kernel(arrays, sizes, 1)) {{
      fprintf(stderr, "there is no memory for the result\\n");
      return 1;
    }}
    const double seconds = now() - start;
    least = seconds < least ? seconds : least;
    for (int k = 0; k < ARRAYS; k++) {{
      if (bytes[k]) continue;
      st_release(arrays[k]);
      arrays[k] = NULL;
    }}
  }}
  printf("%.9f s, the least of %d runs\\n", least, runs);
  return 0;
}}
"""


def timed(kernel: TypedKernel) -> dict[str, str | bytes]:
    """Return a main and a file of arguments by their names; an empty dictionary for a kernel whose operands cannot be made up.

    Extents that the kernel was compiled for are kept; the others are chosen so that no dense array is large. Sparse operands have a few
    entries in each row. The kernel runs in one thread.
    """
    spec = kernel.spec
    if spec.ranges is not None or any(index is None for operand in spec.operands for index in operand.indices):
        return {}
    extents = _extents(spec)
    target: Any = _Described()
    bound = TypedKernel(spec, target).bind_operands(_operands(spec, extents), threads=1, extents=extents)
    arrays, sizes = bound.arguments()
    stored = [b"" if array is None else _padded(array) for array in arrays]
    text = _MAIN.format(
        title=spec.expression, shown=", ".join(f"{index} = {extent}" for index, extent in extents.items()) or "numbers",
        count=len(arrays), sizes=max(len(sizes), 1), bytes=", ".join(str(len(part)) for part in stored),
        given=", ".join(map(str, sizes)) or "0", alignment=_ALIGNMENT,
    )  # fmt: skip
    return {"main.c": text, "operands.bin": b"".join(stored)}


@frozen
class _Arguments:
    """Takes the place of a loaded kernel, and records the arguments that it would be called with."""

    compiler: str = ""
    flags: tuple[str, ...] = ()

    def bind(self, *_: Any) -> Any:
        return _Launch()


class _Launch:
    def run(self) -> int:
        raise AssertionError("a kernel that is written, not run")


@frozen
class _Described(NativeTarget):
    def compile(self, spec: KernelSpec, source: str, timeout: float = 120.0) -> Any:
        return _Arguments()


def _extents(spec: KernelSpec) -> dict[str, int]:
    """Return an extent for every index: the more indices a dense array has, the smaller they are."""
    dense = [operand.indices for operand in spec.operands if operand.format.is_dense]
    dense += [result.indices for result in spec.results if result.format.is_dense]
    modes = max((len(indices) for indices in dense), default=1)
    common = min(_LONGEST, int(_LARGEST ** (1 / max(modes, 1))))
    known = dict(spec.extents)
    return {index: known.get(index, common) for index in spec.indices}


def _operands(spec: KernelSpec, extents: Mapping[str, int]) -> dict[str, Any]:
    random, found = np.random.default_rng(0), dict[str, Any]()
    for operand in spec.operands:
        shape = tuple(extents[index] for index in operand.indices if index is not None)
        if operand.point or operand.tensor in found:
            continue
        if operand.given.is_dense:
            found[operand.tensor] = tensor(random.random(shape).astype(operand.dtype), operand.given)
            continue
        count = min(_IN_ROW * shape[0], math.prod(shape))
        places = [random.integers(extent, size=count) for extent in shape]
        places[0] = np.arange(count) % shape[0]
        found[operand.tensor] = tensor((np.array(places), random.random(count).astype(operand.dtype)), operand.given, shape)
    return found


def _padded(array: NDArray[Any]) -> bytes:
    stored = array.tobytes()
    return stored + bytes(_ALIGNMENT - len(stored) % _ALIGNMENT)
