"""Statements of the loop IR that make, fill, hand on and release arrays."""

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

    heap: 64-byte aligned memory, released by ``Free``; when there is none the kernel releases what it holds and returns
    status 1. registers: ``length`` is a constant; a small local array whose elements live in (vector) registers where
    all its uses allow. block, warp: likewise of constant length, one array for all threads of the block or warp of a GPU.
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
    """Make room for at least ``needed`` elements in a heap array, geometrically; ``capacity`` is its i64 variable."""

    array: str
    type: Type
    capacity: Var
    needed: Value


@frozen
class Leave(Step):
    """Leave a heap array at a free place of ``parts``, with which it is released; the name holds nothing from then on."""

    array: str
    parts: ArrayRef
    place: Value


@frozen
class Take(Step):
    """Take the array, of elements of ``type``, that was left at a place of ``parts``: it is a heap array of this name from then on."""

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
