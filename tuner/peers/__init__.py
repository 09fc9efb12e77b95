"""Other libraries that compute some of the same kernels. Those that are installed can be compared on the same operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ...compiler.errors import DataError
from ...compiler.units import PROCESSOR, is_processor
from ..problem import Problem
from .mkl_peer import MklPeer
from .pydata_peer import PydataPeer
from .scipy_peer import ScipyPeer


class Peer(Protocol):
    """One library."""

    name: str

    def version(self) -> str | None:
        """Return its version; None where it is not installed."""
        ...

    def prepare(self, problem: Problem) -> Callable[[], Any] | None:
        """Return a function that computes the problem's result; None where the library has no such kernel."""
        ...


def all_peers() -> tuple[Peer, ...]:
    """Return the libraries that kernels are compared with."""
    return (ScipyPeer(), MklPeer(), PydataPeer())


def installed_peers() -> dict[str, str]:
    """Return the versions of the peers that are installed, by name."""
    return {peer.name: version for peer in all_peers() if (version := peer.version()) is not None}


def choose_peers(names: tuple[str, ...], target: str = PROCESSOR.target) -> tuple[Peer, ...]:
    """Return the peers of these names, or all that are installed where none is named: all of them run on the processor.

    Raises:
        DataError: a name is not known, or that peer is not installed, or kernels for another target cannot be compared with it.
    """
    peers = {peer.name: peer for peer in all_peers()}
    if not is_processor(target):
        if names:
            raise DataError(f"the peer '{names[0]}' runs on the processor and is not compared with target {target}; leave --against out")
        return ()
    for name in names:
        if name not in peers:
            raise DataError(f"unknown peer '{name}'; peers are {', '.join(peers)}")
        if peers[name].version() is None:
            raise DataError(f"the peer '{name}' is not installed: pip install {name}")
    return tuple(peers[name] for name in names) if names else tuple(peer for peer in peers.values() if peer.version() is not None)
