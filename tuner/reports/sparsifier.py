"""MLIR's sparsifier as a rival on products with one sparse operand, where LLVM's programs are installed (``mlir-19-tools``, ``llvm-19``).

An expression becomes one ``linalg.generic`` over tensors with the sparse encodings of the operands. ``mlir-opt --sparsifier`` makes loops
of it, and LLVM makes machine code of those. Affine subscripts need version 17 or newer.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compiler.frozen import frozen
from ...compiler.levels import COMPRESSED, DENSE
from ...compiler.notation.nodes import Access, accesses
from ...compiler.notation.parser import parse
from ...compiler.storage.tensor import Tensor

VERSIONS = range(30, 16, -1)
"""Versions of LLVM whose sparsifier knows affine subscripts, the newest first."""

_PROGRAMS = ("mlir-opt", "mlir-translate", "opt", "llc")
_WIDTHS = "posWidth = 32, crdWidth = 32"


@cache
def programs() -> Mapping[str, str] | None:
    """Return the paths of LLVM's programs, of those on the path or of the newest version that has all; None where none has."""
    linker = shutil.which("cc")
    for folder in (None, *(f"/usr/lib/llvm-{version}/bin" for version in VERSIONS)):
        found = {name: path for name in _PROGRAMS if (path := shutil.which(name, path=folder)) is not None}
        if linker is not None and len(found) == len(_PROGRAMS):
            return {**found, "cc": linker}
    return None


@frozen
class _Argument:
    """An argument of the function: the text of its type, and the array that is handed over."""

    type: str
    array: NDArray[Any]


def sparsified(expression: str, operands: Mapping[str, Any], shape: Sequence[int], folder: Path) -> Callable[[], NDArray[Any]]:
    """Return a function that computes a product of float64 operands with the code of the sparsifier.

    Args:
        expression: a product whose left side has plain subscripts.
        operands: dense arrays, and tensors of dense and compressed levels in the order of their modes.
        shape: the extents of the result.
        folder: where the code is written.

    Raises:
        subprocess.CalledProcessError: a program of LLVM fails.
    """
    tools = programs()
    assert tools is not None
    text, given = module(expression, operands, shape)
    source = folder / "kernel.mlir"
    source.write_text(text, encoding="utf-8")
    flags = "--sparsifier=enable-runtime-library=false reassociate-fp-reductions=true"
    names = [source, *(folder / f"kernel.{ending}" for ending in ("lowered", "ll", "bc", "o", "so"))]
    for command in (
        [tools["mlir-opt"], flags],
        [tools["mlir-translate"], "--mlir-to-llvmir"],
        [tools["opt"], "-O3", "-mcpu=native"],
        [tools["llc"], "-O3", "-mcpu=native", "-filetype=obj", "-relocation-model=pic"],
        [tools["cc"], "-shared"],
    ):
        subprocess.run([*command, str(names.pop(0)), "-o", str(names[0])], check=True, capture_output=True, text=True)
    return _call(ctypes.CDLL(str(names[0]))["_mlir_ciface_kernel"], [one.array for one in given], tuple(shape))


def module(expression: str, operands: Mapping[str, Any], shape: Sequence[int]) -> tuple[str, list[_Argument]]:
    """Return a module with the function ``kernel``, and its arguments."""
    assignment = parse(expression)
    read = accesses(assignment.value)
    left = assignment.target.indices
    indices = list(dict.fromkeys([*left, *(name for access in read for name in access.indices)]))
    encodings, lines, types, names, given = list[str](), list[str](), list[str](), list[str](), list[_Argument]()
    for access in read:
        operand, name = operands[access.tensor], f"%{access.tensor}"
        if isinstance(operand, Tensor) and not operand.format.is_dense:
            own = _stored(operand)
            encodings.append(f"#{access.tensor} = {_encoding(operand)}")
            parts = [f"{name}_{place}" for place in range(len(own))]
            kind = f"tensor<{_extents(operand.shape)}xf64, #{access.tensor}>"
            levels, last = ", ".join(parts[:-1]), parts[-1]
            inner = ", ".join(one.type for one in own[:-1])
            lines.append(f"  {name} = sparse_tensor.assemble ({levels}), {last} : ({inner}), {own[-1].type} to {kind}")
        else:
            array = np.ascontiguousarray(operand.to_numpy() if isinstance(operand, Tensor) else operand, dtype=np.float64)
            kind, parts = f"tensor<{_extents(array.shape)}xf64>", [name]
            own = [_Argument(kind, array)]
        types.append(kind)
        names += parts
        given += own
    result = f"tensor<{_extents(shape)}xf64>"
    maps = ", ".join(f"affine_map<({', '.join(indices)}) -> ({_subscripts(access)})>" for access in (*read, assignment.target))
    kinds = ", ".join('"parallel"' if name in left else '"reduction"' for name in indices)
    signature = ", ".join(f"{name}: {one.type}" for name, one in zip(names, given, strict=True))
    factors = [f"%v{place}" for place in range(len(read))]
    partial = [factors[0], *(f"%m{place}" for place in range(1, len(factors)))]
    products = [
        f"    {made} = arith.mulf {before}, {factor} : f64"
        for before, made, factor in zip(partial, partial[1:], factors[1:], strict=False)
    ]
    body = [
        f"func.func @kernel({signature}) -> {result} attributes {{llvm.emit_c_interface}} {{", *lines,
        "  %zero = arith.constant 0.0 : f64",
        f"  %empty = tensor.empty() : {result}",
        f"  %cleared = linalg.fill ins(%zero : f64) outs(%empty : {result}) -> {result}",
        f"  %done = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}"
        f" ins({', '.join(f'%{access.tensor}' for access in read)} : {', '.join(types)}) outs(%cleared : {result}) {{",
        f"  ^bb({', '.join(f'{factor}: f64' for factor in factors)}, %sum: f64):", *products,
        f"    %more = arith.addf %sum, {partial[-1]} : f64", "    linalg.yield %more : f64",
        f"  }} -> {result}", f"  return %done : {result}", "}",
    ]  # fmt: skip
    return "\n".join([*encodings, *body, ""]), given


def _stored(operand: Tensor) -> list[_Argument]:
    """Return positions and coordinates of compressed levels, then the values."""
    found = list[_Argument]()
    for level in operand.levels:
        arrays = (array for array in (level.pos, level.crd) if array is not None)
        found += (_Argument("tensor<?xi32>", np.ascontiguousarray(array, np.int32)) for array in arrays)
    return [*found, _Argument("tensor<?xf64>", operand.values)]


def _encoding(operand: Tensor) -> str:
    words = {DENSE: "dense", COMPRESSED: "compressed"}
    modes = [f"d{mode}" for mode in range(operand.order)]
    levels = ", ".join(f"d{mode} : {words[kind]}" for mode, kind in zip(operand.format.order, operand.format.levels, strict=True))
    return f"#sparse_tensor.encoding<{{ map = ({', '.join(modes)}) -> ({levels}), {_WIDTHS} }}>"


def _extents(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def _subscripts(access: Access) -> str:
    return ", ".join(" + ".join([*(f"{name} * {factor}" for name, factor in one.terms), str(one.constant)]) for one in access.subscripts)


def _descriptor(array: NDArray[Any]) -> ctypes.Array[ctypes.c_int64]:
    """Return MLIR's descriptor of an array: allocation, first element, offset, extents, strides in elements."""
    strides = (stride // array.itemsize for stride in array.strides)
    return (ctypes.c_int64 * (3 + 2 * array.ndim))(array.ctypes.data, array.ctypes.data, 0, *array.shape, *strides)


def _call(function: Any, arrays: Sequence[NDArray[Any]], shape: tuple[int, ...]) -> Callable[[], NDArray[Any]]:
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    result, given = (ctypes.c_int64 * (3 + 2 * len(shape)))(), [_descriptor(array) for array in arrays]

    def run(_kept: Sequence[NDArray[Any]] = arrays) -> NDArray[Any]:
        function(result, *given)
        held = (ctypes.c_double * int(np.prod(shape))).from_address(result[1])
        found = np.frombuffer(memoryview(held), dtype=np.float64)
        weakref.finalize(found, free, result[0])
        return found.reshape(shape)

    return run
