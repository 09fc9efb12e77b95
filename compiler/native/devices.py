"""What kernels run on beside the processor: whether this machine has it."""

from __future__ import annotations

import shutil

from ..errors import BuildError


def require_gpu(wish: str) -> None:
    """Refuse what needs a GPU on a machine without one.

    Args:
        wish: what needs it, as a message begins: "target cuda".

    Raises:
        BuildError: there is no GPU.
    """
    if shutil.which("nvidia-smi") is None:
        raise BuildError(f"{wish} needs an NVIDIA GPU with its driver, and none was found (nvidia-smi is missing); use target cpu")
