"""Relations between loop variables: what each transformation did to the indices, in one place each.

Every relation answers the same questions (Senanayake et al., "A Sparse Iteration Space Transformation Framework", sections 3.2 and
5.1 to 5.3): which variables it relates, how a parent is recovered from its children and a child from its parents (Figure 18),
which range a child has given those of its parents (Figure 19), and whether a parent may run out of its range (5.3).

Conventions. A variable has a range ``[low, high)``. The pieces of a split count from 0 within their parent's range, so
``parent = low(parent) + outer * factor + inner``; a collapsed coordinate counts from 0 through the Cartesian product. A
position variable holds absolute positions of the deepest collapsed level of its access; where ``collapse`` joins a coordinate
with a position, the result is a position. A coordinate that ``coord`` makes counts as the variable that ``pos`` replaced.

A sum of indices (``i + j``, Liu et al., "Compiler support for sparse tensor convolutions") has what a compound subscript reads as its
child. Loops stay those of its parents; where some of these are known, it says which coordinates are left, and at which values of the
next one something stored is among them. Levels of views (``levels.affine``) ask it through ``levels.level.Subscript``.

The rules are written over an ``Arithmetic`` (``concrete.arithmetic``): they run on integers (tests, ``concrete.evaluate``) and build
expressions (``lowering.recovery``). A relation is one class here: what it does not say otherwise is lowered as a loop over the
child's range, inside which the parents are recovered by value.
"""

from __future__ import annotations

from .collapse import CollapseRelation
from .positions import CoordRelation, MergePathRelation, PosRelation
from .relation import Relation
from .renamed import BoundRelation, RenameRelation
from .split import SplitRelation
from .sum import SumRelation

__all__ = [
    "BoundRelation", "CollapseRelation", "CoordRelation", "MergePathRelation", "PosRelation", "Relation", "RenameRelation",
    "SplitRelation", "SumRelation",
]  # fmt: skip
