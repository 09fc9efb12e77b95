"""The loop IR: what a kernel does, statement by statement, before a target prints it.

Typed scalars and flat arrays, loops with a tag, searches and sorts as calls of named intrinsics. Names are the final names
of the generated code. Everything is immutable; ``children`` and ``rebuild`` let passes treat nodes generically.
"""

from __future__ import annotations

from .device import Barrier, Combine, Kernel, Once, Scratch
from .function import PAST_CACHES, STEP, ArrayParameter, Function, SizeParameter
from .memory import Allocate, Fill, Free, Grow, Leave, Publish, Storage, Take
from .node import Node, Step, Value
from .steps import Carry, Comment, Declare, For, If, Prefetch, Run, SetVar, Steps, Store, While
from .tags import SHARE_BEGIN, SHARE_NUMBER, Dealt, Group, Member, Parallel, Simd, Unroll, Vector
from .types import BOOL, F32, F64, I32, I64, MAP, OPAQUE, PARTS, U16, Type
from .values import ArrayRef, Binary, Call, Cast, Const, Load, Select, Unary, Var

__all__ = [
    "BOOL",
    "F32",
    "F64",
    "I32",
    "I64",
    "MAP",
    "OPAQUE",
    "PARTS",
    "PAST_CACHES",
    "SHARE_BEGIN",
    "SHARE_NUMBER",
    "STEP",
    "U16",
    "Allocate",
    "ArrayParameter",
    "ArrayRef",
    "Barrier",
    "Binary",
    "Call",
    "Carry",
    "Cast",
    "Combine",
    "Comment",
    "Const",
    "Dealt",
    "Declare",
    "Fill",
    "For",
    "Free",
    "Function",
    "Group",
    "Grow",
    "If",
    "Kernel",
    "Leave",
    "Load",
    "Member",
    "Node",
    "Once",
    "Parallel",
    "Prefetch",
    "Publish",
    "Run",
    "Scratch",
    "Select",
    "SetVar",
    "Simd",
    "SizeParameter",
    "Step",
    "Steps",
    "Storage",
    "Store",
    "Take",
    "Type",
    "Unary",
    "Unroll",
    "Value",
    "Var",
    "Vector",
    "While",
]
