"""How tests start programs on several ranks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REASON = "mpi4py is not installed: pip install 'sparsetune[mpi]'"
_HERE = Path(__file__).parent
_MOST_SECONDS = 400


def launcher() -> str:
    """Return mpiexec, beside this Python or on the path; skip the test where there is none."""
    pytest.importorskip("mpi4py", reason=REASON)
    found = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
    if found is None:
        pytest.skip("mpiexec is not installed: pip install 'sparsetune[mpi]'")
    return found


def mpiexec(ranks: int, *arguments: Any, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a Python program of this folder, or a module with -m, on so many ranks."""
    words = [launcher(), "-n", str(ranks), sys.executable, *map(str, arguments)]
    given = {**os.environ, "PYTHONPATH": str(_HERE), "OMP_NUM_THREADS": "1", **(environment or {})}
    return subprocess.run(words, capture_output=True, text=True, timeout=_MOST_SECONDS, env=given, cwd=_HERE)

