"""How the abstract interpretation reads programs: what the paper leaves open, and what our compiler does differently."""

from __future__ import annotations

from dataclasses import field

from ...compiler.errors import TuningError
from ...compiler.frozen import frozen
from ...compiler.notation.nodes import Access
from .algebra import Algebra

WORKSPACE_STATES = ("exact", "paper")


@frozen
class Reading:
    """The choices of one interpretation.

    Attributes:
        algebra: operators and fill values.
        workspace_state: whether the state of a workspace keeps the loops around its where ("exact") or not ("paper").
        idle: whether iterations in which no stepped operand has an entry cost something if the body does something there. They do in
            any program that runs; the paper counts only entries.
        dense_modes: the modes of sparse operands that are stored dense; the outermost loop visits all coordinates of one when it steps
            through it. The paper takes formats that suit the program, in which a loop visits only what is stored.

    Raises:
        TuningError: the workspace state model is unknown.
    """

    algebra: Algebra = field(default_factory=Algebra)
    workspace_state: str = "exact"
    idle: bool = True
    dense_modes: frozenset[tuple[str, int]] = frozenset()

    def __post_init__(self) -> None:
        if self.workspace_state not in WORKSPACE_STATES:
            raise TuningError(f"unknown workspace_state {self.workspace_state!r}; models are {', '.join(WORKSPACE_STATES)}")

    @property
    def exact(self) -> bool:
        """Whether the state of a workspace keeps the loops around its where."""
        return self.workspace_state == "exact"

    def is_dense_step(self, access: Access, index: str, depth: int) -> bool:
        """Whether the loop over an index visits all of a mode that it steps through; ``depth`` loops are open, this one included."""
        modes = (mode for mode, subscript in enumerate(access.subscripts) if index in subscript.indices)
        return depth == 1 and any((access.tensor, mode) in self.dense_modes for mode in modes)
