"""Memory of large results that nobody uses any more, kept for a moment for the next one of the size.

The system hands memory out as pages of zeros, made when they are first touched: that can take as long as computing what goes there. A
program that computes result after result lets go of each, so the memory of the last one serves the next. What is kept is bounded: by a
share of what the process can have, and by a second, after which it is given back to the system; at once where memory is claimed that
could not be had otherwise. A forked process begins with none.

Blocks come back from destructors, which may run at any place in any thread, so nothing here waits for a lock: lists are changed by
single operations of the interpreter.
"""

from __future__ import annotations

import _thread
import os
import time
from typing import Any

SECONDS = 1.0
"""How long memory is kept that nobody asks for."""

SPARE = 8
"""Part of a block by which it may be larger than what is asked for."""


class Block:
    """Memory of a size in bytes, and since when nobody uses it; compared by identity."""

    __slots__ = ("memory", "since", "size")

    def __init__(self, memory: Any, size: int) -> None:
        self.memory, self.size, self.since = memory, size, time.monotonic()


class IdleMemory:
    """Blocks that nobody uses.

    Attributes:
        limit: bytes of all of them together, at most.
    """

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self._blocks: list[Block] = []
        self._is_watched = False

    @property
    def bytes(self) -> int:
        """How much is kept."""
        return sum(block.size for block in list(self._blocks))

    def take(self, size: int) -> Any:
        """Return memory of a size or a little more, which is the caller's from now on; None where there is none."""
        for block in sorted(self._blocks, key=lambda block: block.size):
            if size <= block.size <= size + size // SPARE and self._remove(block):
                return block.memory
        return None

    def give(self, memory: Any, size: int) -> None:
        """Keep memory that nobody uses any more, in place of what has been kept longest, or let go of it where it is too large."""
        if size > self.limit:
            return
        self._blocks.append(Block(memory, size))
        while self.bytes > self.limit and (blocks := list(self._blocks)):
            self._remove(blocks[0])
        if not self._is_watched:
            self._is_watched = True
            try:
                _thread.start_new_thread(self._watch, ())  # threading.Thread takes locks, which a destructor must not wait for
            except RuntimeError:  # no thread can be had, or the interpreter ends
                self._is_watched = False
                self.clear()

    def clear(self) -> int:
        """Give everything back to the system. Returns how many bytes."""
        return sum(block.size for block in list(self._blocks) if self._remove(block))

    def forget(self) -> None:
        """Begin anew, in a process that was forked, where no thread watches."""
        self._blocks, self._is_watched = [], False

    def _remove(self, block: Block) -> bool:
        """Return whether a block was still there, and is not any more."""
        try:
            self._blocks.remove(block)
        except ValueError:  # another thread has taken it
            return False
        return True

    def _watch(self) -> None:
        """Give back what has been kept for long, until nothing is left."""
        while True:
            time.sleep(SECONDS / 4)
            for block in list(self._blocks):
                if time.monotonic() - block.since > SECONDS:
                    self._remove(block)
            if not self._blocks:
                self._is_watched = False
                if not self._blocks:  # else one came in between, whose giver saw that it was watched
                    return
                self._is_watched = True


IDLE = IdleMemory()
"""What this process keeps."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=IDLE.forget)
