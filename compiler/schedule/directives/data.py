"""Directives about data: how operands are traversed and stored, and how results and workspaces are made."""

from __future__ import annotations

from dataclasses import field
from typing import Final

from ...frozen import frozen
from ...notation.nodes import Access
from ...workspaces import WORKSPACES
from .directive import Directive, Parameter

PROTOCOLS: Final = ("step", "locate", "append", "insert")
ASSEMBLIES: Final = ("append", "insert", "workspace")
MERGES: Final = ("two_finger", "gallop", "locate", "bitmap")


@frozen
class ProtocolDirective(Directive):
    """Set how each mode of an access is traversed, in the order in which modes are stored, outermost first.

    ``place`` distinguishes reads with the same text: 1 is the first of them; None: all of them.
    """

    keyword = "protocol"
    parameters = (
        Parameter("access", "access"),
        Parameter("place", "ordinal", default=None),
        Parameter("protocols", "choice", PROTOCOLS, many=True),
    )
    access: Access
    protocols: tuple[str, ...]
    place: int | None = field(default=None, kw_only=True)

    @property
    def is_general(self) -> bool:
        """Whether it concerns all accesses of the operand, or all with the same text."""
        return not self.path and self.place is None


@frozen
class WorkspaceDirective(Directive):
    """Choose the storage of a workspace."""

    keyword = "workspace"
    parameters = (Parameter("workspace", "name"), Parameter("kind", "choice", WORKSPACES))
    workspace: str
    kind: str


@frozen
class Convert(Directive):
    """Convert an operand to another format before the kernel runs.

    With a path, or with the ``place`` of one of several reads with the same text, a copy is made for these reads alone.
    """

    keyword = "convert"
    parameters = (Parameter("access", "access"), Parameter("place", "ordinal", default=None), Parameter("format", "text"))
    access: Access
    format: str
    place: int | None = field(default=None, kw_only=True)

    @property
    def is_general(self) -> bool:
        """Whether it concerns all reads of the operand, or all with the same text."""
        return not self.path and self.place is None


@frozen
class Assemble(Directive):
    """Choose how a sparse result is assembled."""

    keyword = "assemble"
    parameters = (Parameter("result", "name"), Parameter("strategy", "choice", ASSEMBLIES))
    result: str
    strategy: str


@frozen
class Merge(Directive):
    """Choose how sparse operands are merged in a loop."""

    keyword = "merge"
    parameters = (Parameter("index", "index"), Parameter("strategy", "choice", MERGES))
    index: str
    strategy: str
