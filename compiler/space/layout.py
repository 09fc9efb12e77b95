"""The decisions of a derivation, collected: the nest of loops and statements, the indices of workspaces, the protocols of reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..frozen import frozen
from .grammar import Derivation
from .nestings import Cut, Executed, Loop, Nestings, Scope


@frozen
class Nest:
    """Loops, outermost first, around one statement or around parts that run one after another."""

    loops: tuple[str, ...]
    statement: int | None
    parts: tuple[Nest, ...] = ()

    @property
    def depth(self) -> int:
        """The largest number of loops around a statement."""
        return len(self.loops) + max((part.depth for part in self.parts), default=0)


@dataclass
class Layout:
    """A program without names.

    Attributes:
        nest: loops and statements.
        workspaces: indices of each workspace, in canonical order.
        outside: the loops around the place where each workspace lives; none for the result.
        enclosing: the loops around each statement.
        protocols: (statement, read, mode) of sparse reads, in the numbering of ``Nestings.read_indices``: step or locate.
    """

    nest: Nest = field(default_factory=lambda: Nest((), None))
    workspaces: dict[int, tuple[str, ...]] = field(default_factory=dict)
    outside: dict[int, tuple[str, ...]] = field(default_factory=dict)
    enclosing: dict[int, tuple[str, ...]] = field(default_factory=dict)
    protocols: dict[tuple[int, int, int], str] = field(default_factory=dict)


def layout_of(nestings: Nestings, scope: Scope, derivation: Derivation) -> Layout:
    """Collect what a derivation of a grouping's loop nests decides."""
    layout = Layout()
    layout.nest = _walk(nestings, scope, derivation, (), layout)
    return layout


def protocolized(nestings: Nestings, scope: Scope, derivation: Derivation, protocols: Mapping[tuple[int, int, int], str]) -> Derivation:
    """Return the derivation with the same loops and the given protocols.

    Args:
        nestings, scope: where the derivation belongs, with protocols as part of the schedules.
        derivation: the loops; its choices are ignored.
        protocols: step or locate for every (statement, read, mode), as in ``Layout``.
    """
    choices = 0
    if isinstance(derivation.label, Loop):
        for bit, mode in enumerate(nestings.protocol_modes(scope, derivation.label.index)):
            choices |= (protocols[mode] == "locate") << bit
    scopes = _continued(nestings, scope, derivation)
    parts = (protocolized(nestings, part, tree, protocols) for part, tree in zip(scopes, derivation.parts, strict=True))
    return Derivation(derivation.label, choices, tuple(parts))


def _walk(nestings: Nestings, scope: Scope, derivation: Derivation, outer: tuple[str, ...], layout: Layout) -> Nest:
    opened: list[str] = []
    while isinstance(derivation.label, Loop):
        name = derivation.label.index
        if nestings.protocols:
            for bit, mode in enumerate(nestings.protocol_modes(scope, name)):
                layout.protocols[mode] = "locate" if derivation.choices >> bit & 1 else "step"
        (scope,) = _continued(nestings, scope, derivation)
        opened.append(name)
        (derivation,) = derivation.parts
    enclosing = (*outer, *opened)
    match derivation.label:
        case Executed(statement):
            layout.enclosing[statement] = enclosing
            return Nest(tuple(opened), statement)
        case Cut():
            scopes = _continued(nestings, scope, derivation)
            for part in scopes:
                for number, indices in part.given:
                    if number not in layout.workspaces:
                        layout.workspaces[number] = indices
                        layout.outside[number] = enclosing
            parts = [_walk(nestings, part, tree, enclosing, layout) for part, tree in zip(scopes, derivation.parts, strict=True)]
            return Nest(tuple(opened), None, tuple(parts))
        case _:
            raise TypeError(f"no layout of {derivation.label}")


def _continued(nestings: Nestings, scope: Scope, derivation: Derivation) -> tuple[Scope, ...]:
    scopes = nestings.continued(scope, derivation.label)
    assert scopes is not None, f"{derivation.label} cannot follow {scope}"
    return scopes
