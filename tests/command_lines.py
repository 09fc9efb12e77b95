"""The command line as tests read it."""

from __future__ import annotations

import json
import sys

import pytest
from sparsetune.compiler.native.toolchain import available_compilers

needs_compiler = pytest.mark.skipif(not available_compilers(), reason="needs a C compiler")
PROGRAM = [sys.executable, "-c", "from sparsetune.tuner.cli import main; main()"]
SPMV = "y(i) = A(i,j) * x(j)"
RANDOM = "A=random:uniform:300x200:nnz=2000"


def call_json(call, *arguments: str) -> dict:
    """Return what a command prints as JSON."""
    status, out, _ = call(*arguments, "--json")
    assert status == 0
    return json.loads(out)
