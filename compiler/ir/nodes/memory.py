"""Statements of the loop IR that allocate, fill, hand on and release arrays."""

from __future__ import annotations

from typing import Literal as OneOf

from ...frozen import frozen
from .node import Step, Value
from .types import Type
from .values import ArrayRef, Var

Storage = OneOf["heap", "registers", "block", "warp"]


@frozen
class Allocate(Step):
    """An array of ``length`` elements.

    ``storage`` is one of: heap: 128-byte aligned memory, released by ``Free``; if there is none, the kernel releases what it holds and
    returns status 1. registers: a small local array of constant length, whose elements live in (vector) registers if all its uses
    allow that. block, warp: one array of constant length for all threads of a block or warp of a GPU.
    """

    array: str
    type: Type
    length: Value
    storage: Storage = "heap"
    zero: bool = False


@frozen
class Free(Step):
    """Release a heap array; it must not be used afterwards."""

    array: str


@frozen
class Grow(Step):
    """Make room for at least ``needed`` elements in a heap array, growing geometrically; the i64 variable ``capacity`` has its size."""

    array: str
    type: Type
    capacity: Var
    needed: Value


@frozen
class Leave(Step):
    """Leave a heap array at a free place of ``parts``, which releases it later. The name holds no array from then on."""

    array: str
    parts: ArrayRef
    place: Value


@frozen
class Take(Step):
    """Take the array with elements of ``type`` that was left at a place of ``parts``. It is a heap array of this name from then on."""

    array: str
    type: Type
    parts: ArrayRef
    place: Value


@frozen
class Fill(Step):
    """``array[low .. high] = value``."""

    array: str
    low: Value
    high: Value
    value: Value


@frozen
class Publish(Step):
    """Hand an assembled heap array of ``length`` elements to the caller through an output parameter."""

    parameter: str
    array: str
    length: Value
