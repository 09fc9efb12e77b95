"""Compares ways to write one computation: their lines of code, their seconds, and whether their results agree."""

from __future__ import annotations

import ast
import inspect
import textwrap
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


def beside(ways: Mapping[str, Callable[..., Any]], *data: Any, runs: int = 3) -> dict[str, float]:
    """Run every way in turn, print lines and the least seconds of each, and return these.

    The first run of each is left out of the times: it loads, compiles and allocates.

    Raises:
        AssertionError: the results of two ways differ by more than rounding.
    """
    results = {name: way(*data) for name, way in ways.items()}
    first, *others = results
    for other in others:
        np.testing.assert_allclose(results[other], results[first], rtol=1e-6, atol=1e-12)
    seconds = dict.fromkeys(ways, float("inf"))
    for _ in range(runs):
        for name, way in ways.items():
            begin = time.perf_counter()
            way(*data)
            seconds[name] = min(seconds[name], time.perf_counter() - begin)
    for name, way in ways.items():
        print(f"{name:12} {lines(way):3} lines  {seconds[name]:9.4f} s")
    return seconds


def lines(way: Callable[..., Any]) -> int:
    """Return the lines of code of a function, without its documentation."""
    source = textwrap.dedent(inspect.getsource(way))
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    first = function.body[0]
    documented = range(first.lineno, (first.end_lineno or 0) + 1) if ast.get_docstring(function) else range(0)
    return sum(1 for number, line in enumerate(source.splitlines(), 1) if line.strip() and number not in documented)
