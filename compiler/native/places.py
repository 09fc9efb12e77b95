"""Where entries of the cache are: in a folder that all processes share, else in one of this process alone."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from ..errors import BuildError
from ..warn import warn
from .entries import MAKING, Recipe, Untrusted, sound_file
from .folders import cache_folder
from .scratch import new_scratch, sweep

_PRIVATE = "sparsetune-kernels-"


def kept_file(recipe: Callable[[Path], Recipe]) -> Path:
    """Return the file of an entry in the first folder that can be used. Raises ``BuildError``: there is none, or it cannot be made."""
    for folder in _folders():
        try:
            _sweep(folder)
            return sound_file(folder, recipe(folder))
        except Untrusted as error:
            _warn_untrusted(str(folder), str(error))
        except OSError as error:
            _warn_unwritable(str(folder), error.strerror or str(error))
    places = f"neither {cache_folder()} nor a temporary folder can be written by this user alone"
    raise BuildError(f"compiled kernels can be stored nowhere: {places}; set SPARSETUNE_CACHE to a folder of your own")


def _folders() -> Iterator[Path]:
    """Yield the shared folder, then a folder of this process alone, which is made only if the first one has failed."""
    yield cache_folder()
    if private := _private_folder():
        yield private


@cache
def _sweep(folder: Path) -> None:
    """Remove what killed processes have left behind; done once in a process."""
    sweep(folder, MAKING)


@cache
def _private_folder() -> Path | None:
    """Return a folder of this process alone, removed at exit, for use in place of the shared one; None if none can be made."""
    import atexit

    try:
        folder = new_scratch(Path(tempfile.gettempdir()), _PRIVATE)
    except OSError:
        return None
    owner = os.getpid()
    atexit.register(lambda: folder.remove() if os.getpid() == owner else None)
    return folder.path


@cache
def _warn_unwritable(folder: str, reason: str) -> None:
    warn(f"the cache of compiled kernels {folder} cannot be written ({reason}); set SPARSETUNE_CACHE")


@cache
def _warn_untrusted(folder: str, reason: str) -> None:
    warn(
        f"the cache of compiled kernels {folder} is not used, since {reason}, and whoever writes there runs code as you; kernels are "
        "compiled anew in every process until this is mended or SPARSETUNE_CACHE names a folder of your own"
    )
