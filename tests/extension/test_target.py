"""A target that no file of the compiler knows: C on one thread, without vectors, as five lines of compiler/README.md say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.ir.intrinsics import INTRINSICS, Intrinsic
from sparsetune.compiler.ir.nodes import Barrier, For, Function, Node, Steps
from sparsetune.compiler.ir.rewrite import transform
from sparsetune.compiler.lowering.kernel_spec import KernelSpec
from sparsetune.compiler.passes.manager import Pass, PassList, Setting, VectorUnit
from sparsetune.compiler.passes.simplify import simplify
from sparsetune.compiler.targets import registry
from sparsetune.compiler.targets.c import C, NativeKernel


def untagged(function: Function, _: Setting) -> Function:
    def change(node: Node) -> Node:
        return replace(node, tag=None) if isinstance(node, For) else node

    return replace(function, body=transform(function.body, change))


@dataclass(frozen=True)
class Serial:
    """C without threads and vectors."""

    name: str = "serial"
    language: str = "c"
    units: tuple[str, ...] = ("cpu_vector",)
    memory: tuple[str, ...] = ("heap", "registers")
    groups: tuple[str, ...] = ()
    intrinsics: Mapping[str, Intrinsic] = field(default_factory=lambda: INTRINSICS)
    passes: PassList = field(
        default_factory=lambda: PassList([Pass("serial", untagged), Pass("simplify", lambda function, _: simplify(function))])
    )

    on_device: bool = False
    has_architectures: bool = False

    def vectors(self, spec: KernelSpec) -> VectorUnit:
        return VectorUnit(8)

    def print(self, function: Function, heading: str) -> str:
        return C.print(function, f"serial\n{heading}")

    def compile(self, spec: KernelSpec, source: str, timeout: float) -> NativeKernel:
        return C.compile(spec, source, timeout)

    def built_by(self, spec: KernelSpec, source: str) -> tuple[str, str]:
        return C.built_by(spec, source)


@pytest.fixture(autouse=True)
def serial() -> Iterator[None]:
    known = dict(registry._TARGETS)
    registry.register(Serial())
    yield
    registry._TARGETS.clear()
    registry._TARGETS.update(known)


RNG = np.random.default_rng(1)
A = scipy.sparse.random_array((9, 8), density=0.3, format="csr", rng=RNG)
B = scipy.sparse.random_array((8, 7), density=0.3, format="csr", rng=RNG)
CASES: list[tuple[str, dict[str, Any], str | None, Any]] = [
    ("y(i) = A(i,j) * x(j)", {"A": A, "x": np.arange(8.0)}, None, A @ np.arange(8.0)),
    ("C(i,j) = A(i,k) * B(k,j)", {"A": A, "B": B}, "csr", (A @ B).toarray()),
    ("C(i,j) = A(i,j) + D(i,j)", {"A": A, "D": A.T.T.tocsr()}, "csr", (A + A).toarray()),
]


@pytest.mark.parametrize(("expression", "operands", "form", "expected"), CASES, ids=["rows", "product", "sum"])
def test_a_target_of_somebody_else_computes_the_same(expression: str, operands: dict[str, Any], form: str | None, expected: Any) -> None:
    formats = {name: "csr" for name, data in operands.items() if scipy.sparse.issparse(data)}
    kernel = st.compile(expression, formats | ({} if form is None else {"C": form}), target="serial")
    found = kernel(**operands)
    np.testing.assert_allclose(found.to_numpy() if isinstance(found, st.Tensor) else found, expected)
    assert [*kernel.stages] == ["concrete", "lowering", "serial", "simplify", "c"]
    assert kernel.source.startswith("/* serial */")


def test_it_refuses_units_that_it_lacks() -> None:
    with pytest.raises(ScheduleError, match=r"^parallelize\(i, cpu_thread\): target serial has no such unit; it has cpu_vector"):
        st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}, schedule="parallelize(i, cpu_thread, no_races)", target="serial")
    registry.register(Serial("plain", units=()))
    with pytest.raises(ScheduleError, match=r"^parallelize\(i, cpu_thread\): target plain has no such unit; it has none"):
        st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}, schedule="parallelize(i, cpu_thread, no_races)", target="plain")


LACKING: dict[str, tuple[dict[str, Any], str]] = {
    "function": ({"intrinsics": {}}, r"function \w+"),
    "memory": ({"memory": ("registers",)}, "memory of kind heap"),
    "group": ({"passes": PassList([Pass("waits", lambda function, _: replace(function, body=Steps((function.body, Barrier("block")))))])},
              "threads of a block that work together"),
}  # fmt: skip


@pytest.mark.parametrize("lacking", LACKING)
def test_it_refuses_programs_that_use_what_it_lacks(lacking: str) -> None:
    options, what = LACKING[lacking]
    registry.register(Serial("poor", **options))
    kernel = st.compile("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"}, target="poor")
    with pytest.raises(ScheduleError, match=f"^target poor has no {what}, which this schedule needs there; use another one$"):
        _ = kernel.source
