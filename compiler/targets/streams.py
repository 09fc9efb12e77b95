"""The stream of a GPU in which kernels run: the default one, or inside a ``with`` block one of CuPy, torch or cuda-core."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..errors import DataError

_STREAM: ContextVar[int | None] = ContextVar("stream", default=None)


@contextmanager
def on_stream(stream: Any) -> Iterator[None]:
    """Run kernels for GPUs in a stream, inside a ``with`` block.

    Calls then do not wait for the device, unless they transfer something: results on the device are ready for later work in the stream.

    Args:
        stream: of CuPy, torch, cuda-core (whatever has ``__cuda_stream__``), or the driver's handle as a whole number.

    Raises:
        DataError: it is no stream.
    """
    token = _STREAM.set(_handle(stream))
    try:
        yield
    finally:
        _STREAM.reset(token)


def current_stream() -> int | None:
    """Return the driver's handle of the stream in which kernels run; None: the default stream, and calls wait for the device."""
    return _STREAM.get()


def _handle(stream: Any) -> int:
    if hasattr(type(stream), "__cuda_stream__"):
        stream = stream.__cuda_stream__()[1]
    for name in ("ptr", "cuda_stream"):
        if not isinstance(stream, int) and hasattr(type(stream), name) | (name in getattr(stream, "__dict__", ())):
            stream = getattr(stream, name)
    if isinstance(stream, bool) or not isinstance(stream, int) or stream < 0:
        raise DataError(f"{type(stream).__name__} is no stream of a GPU: give one of CuPy, torch or cuda-core, or its handle")
    return stream
