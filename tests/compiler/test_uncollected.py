"""What is imported is not looked through for garbage, and the collector is left as it was found."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest
from sparsetune.compiler.uncollected import uncollected


@pytest.mark.parametrize("collects", [True, False])
def test_the_collector_is_left_as_it_was(collects: bool) -> None:
    try:
        (gc.enable if collects else gc.disable)()
        with uncollected():
            assert not gc.isenabled()
        assert gc.isenabled() == collects
        with pytest.raises(ImportError), uncollected():
            raise ImportError("a module that fails")
        assert gc.isenabled() == collects
    finally:
        gc.enable()


def test_what_the_user_froze_stays_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with uncollected():
            pass
        assert gc.get_freeze_count() >= frozen - 1000  # some die meanwhile
    finally:
        gc.unfreeze()


def test_no_full_collection_in_a_first_call() -> None:
    code = """
import gc, numpy, scipy.sparse, sparsetune as st
A = st.tensor(scipy.sparse.random_array((9, 9), density=0.5, format="csr"))
x, seen = numpy.ones(9), []
gc.callbacks.append(lambda phase, told: seen.append(told["generation"]))
st.evaluate("y(i) = A(i,j) * x(j)", {"A": A, "x": x})
print(seen.count(2))
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "0\n"
