"""Memory of large results that is not used any more, kept for a moment for the next result of the size.

The system hands out pages of zeros when they are first touched, which can take as long as computing the values. A program that computes
result after result drops each, so the memory of the last one serves the next. The amount is limited to a share of the memory that the
process can have. Memory is kept for a second, then it goes back to the system; it goes back at once if other memory could not be
allocated otherwise. A forked process begins with none.

Blocks come back from destructors, which may run at any place in any thread. So nothing here waits for a lock, and lists are changed only
by single operations of the interpreter.
"""

from __future__ import annotations

import _thread
import os
import time
from typing import Any

SECONDS = 1.0
"""How long memory is kept that is not used again."""

SPARE = 8
"""The share of a block's size by which it may be larger than the request."""


class Block:
    """Memory, its size in bytes, and the time since when it is unused; compared by identity."""

    __slots__ = ("memory", "since", "size")

    def __init__(self, memory: Any, size: int) -> None:
        self.memory, self.size, self.since = memory, size, time.monotonic()


class IdleMemory:
    """The unused blocks.

    Attributes:
        limit: the most bytes of all blocks together.
    """

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self._blocks: list[Block] = []
        self._is_watched = False

    @property
    def bytes(self) -> int:
        """The bytes of all blocks together."""
        return sum(block.size for block in list(self._blocks))

    def take(self, size: int) -> Any:
        """Remove and return memory of a size or a little more; None if there is none."""
        for block in sorted(self._blocks, key=lambda block: block.size):
            if size <= block.size <= size + size // SPARE and self._remove(block):
                return block.memory
        return None

    def give(self, memory: Any, size: int) -> None:
        """Keep unused memory, in place of the oldest blocks if the limit requires it; drop it if it is larger than the limit."""
        if size > self.limit:
            return
        self._blocks.append(Block(memory, size))
        while self.bytes > self.limit and (blocks := list(self._blocks)):
            self._remove(blocks[0])
        if not self._is_watched:
            self._is_watched = True
            try:
                _thread.start_new_thread(self._watch, ())  # threading.Thread takes locks, which a destructor must not wait for
            except RuntimeError:  # no thread can be started, or the interpreter is ending
                self._is_watched = False
                self.clear()

    def clear(self) -> int:
        """Give everything back to the system. Returns how many bytes."""
        return sum(block.size for block in list(self._blocks) if self._remove(block))

    def forget(self) -> None:
        """Drop all blocks in a forked process, in which the watching thread does not exist."""
        self._blocks, self._is_watched = [], False

    def _remove(self, block: Block) -> bool:
        """Remove a block; return whether it was still there."""
        try:
            self._blocks.remove(block)
        except ValueError:  # another thread has taken it
            return False
        return True

    def _watch(self) -> None:
        """Give back blocks whose time is over, until none is left."""
        while True:
            time.sleep(SECONDS / 4)
            for block in list(self._blocks):
                if time.monotonic() - block.since > SECONDS:
                    self._remove(block)
            if not self._blocks:
                self._is_watched = False
                if not self._blocks:  # otherwise a block came in between, whose giver saw this thread running
                    return
                self._is_watched = True


IDLE = IdleMemory()
"""The unused blocks of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=IDLE.forget)
