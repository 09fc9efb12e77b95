"""The interface of a candidate's code to the measuring process; ``kernels.compile_task`` makes such code, and tests their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ...compiler.storage.tensor import Tensor
from ..kernels import Task
from .verify import Result


class Compiled(Protocol):
    """A candidate's generated code."""

    @property
    def built_by(self) -> tuple[str, str]:
        """The compiler's name and version, and the flags, that it is compiled with."""
        ...

    @property
    def source(self) -> str:
        """Digest of the generated source."""
        ...

    @property
    def converts(self) -> bool:
        """Whether binding converts operands, which is then part of the cost."""
        ...

    @property
    def shares_work(self) -> bool:
        """Whether several threads share its work, if there are several."""
        ...

    def load(self, seconds: float) -> None:
        """Compile and load."""
        ...

    def bind(self, operands: Mapping[str, Tensor], threads: int, out: Any = None) -> Bound:
        """Return what runs on the operands."""
        ...


Bound = Callable[[], Result]
Compile = Callable[[Task, str, Mapping[str, Tensor]], Compiled]
