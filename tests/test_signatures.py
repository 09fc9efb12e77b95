"""What editors and type checkers know of the public calls: misspelt keywords, wrong values and kinds of results."""

from __future__ import annotations

import inspect
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler import html

ROOT = Path(st.__file__).parent
SPMV = "y(i) = A(i,j) * x(j)"
MATRIX = sp.random_array((6, 5), density=0.5, format="csr", rng=np.random.default_rng(0))
OPERANDS = {"A": MATRIX, "x": np.ones(5)}

HEAD = """\
from typing import Any
from typing_extensions import assert_type
import numpy as np
from numpy.typing import NDArray
import sparsetune as st
A: Any = None
E, O = "y(i) = A(i,j) * x(j)", {"A": A, "x": np.ones(3)}
k = st.compile(E, {"A": "csr"})
"""
RIGHT = """\
assert_type(k, st.Kernel)
assert_type(k.bind(A=A, x=A, threads=2), st.BoundKernel)
assert_type(st.evaluate(E, O), NDArray[Any])
assert_type(st.evaluate(E, O, "dense", "default"), NDArray[Any])
assert_type(st.evaluate(E, O, output_format="csr"), st.Tensor)
assert_type(st.einsum("ik,kj->ij", A, A), NDArray[Any])
assert_type(st.einsum("ik,kj->ij", A, A, output_format="csr"), st.Tensor)
assert_type(st.tensor(A), st.Tensor)
assert_type(st.tune(E, O, trials=3, schedules=["", st.Schedule("")]), st.TuneResult)
assert_type(st.lookup(E, O, target="cuda", arch="sm_90"), st.Match)
assert_type(st.explore(E, {"A": "csr"}), st.Exploration)
"""
WRONG = (
    "st.tune(E, O, trails=3)",
    "st.tune(E, O, time_buget=3.0)",
    "st.lookup(E, O, thread=2)",
    "st.lookup(E, O, architecture='sm_90')",
    "st.evaluate(E, O, output_fromat='csr')",
    "st.evaluate(E, O, schedul='default')",
    "st.evaluate(E, O, threads='two')",
    "st.einsum('ij,j->i', A, A, ouput_format='csr')",
    "st.explore(E, {'A': 'csr'}, presets='pigeon')",
    "st.compile(E, {'A': 'csr'}, extends={'k': 32})",
    "st.tensor(A, fromat='csr')",
    "k.bind(A=A, x=A, threads='two')",
    "k(A=A, x=A, out='y')",
    "st.evaluate(E, O).to_scipy()",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of right calls and one of wrong ones, in which the package has its name whatever its own folder is called."""
    found = tmp_path_factory.mktemp("typed")
    (found / "sparsetune").symlink_to(ROOT, target_is_directory=True)
    (found / "right.py").write_text(HEAD + RIGHT)
    (found / "wrong.py").write_text(HEAD + "\n".join(WRONG) + "\n")
    return found


def mypy(folder: Path, name: str) -> Iterator[int]:
    command = ["--follow-imports=silent", "--ignore-missing-imports", "--python-executable", sys.executable, "--show-error-codes", name]
    done = subprocess.run([_program("mypy"), *command], cwd=folder, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    for line in done.stdout.splitlines():
        if line.startswith(f"{name}:"):
            yield int(line.split(":")[1])


def pyright(folder: Path, name: str) -> Iterator[int]:
    (folder / "pyrightconfig.json").write_text(json.dumps({"include": [name], "typeCheckingMode": "standard"}))
    command = [_program("basedpyright"), "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    for found in json.loads(done.stdout)["generalDiagnostics"]:
        assert found["file"].endswith(name), found
        if found["severity"] == "error":
            yield found["range"]["start"]["line"] + 1


def _program(name: str) -> str:
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    return found or pytest.skip(f"{name} is not installed: pip install {name}")


@pytest.mark.parametrize("check", [mypy, pyright])
def test_type_checkers_know_what_calls_take_and_give(check, folder: Path) -> None:
    assert not list(check(folder, "right.py"))
    first = HEAD.count("\n") + 1
    assert sorted(set(check(folder, "wrong.py"))) == list(range(first, first + len(WRONG)))


CALLS = (st.tune, st.lookup, st.evaluate, st.explore, st.compile, st.einsum, st.tensor)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_every_parameter_is_named_typed_and_documented(call) -> None:
    text = inspect.getdoc(call) or ""
    for name, parameter in inspect.signature(call).parameters.items():
        assert parameter.kind is not parameter.VAR_KEYWORD, name
        assert parameter.annotation is not parameter.empty, name
        assert name in text, f"{name} is not documented"


def test_kernels_document_their_options() -> None:
    for call in (st.Kernel.bind, st.Kernel.__call__):
        assert {"threads", "out"} <= inspect.signature(call).parameters.keys()
    assert "threads" in (st.Kernel.__call__.__doc__ or "")


def test_words_of_options_go_to_operands_that_are_called_so() -> None:
    k = st.compile("y(i) = threads(i) + out(i)")
    assert np.array_equal(k(threads=np.ones(3), out=np.ones(3)), [2, 2, 2])
    assert np.array_equal(k.bind(threads=np.ones(3), out=np.ones(3))(), [2, 2, 2])
    with pytest.raises(st.ExpressionError, match=r"'threads' .* is missing"):
        k(out=np.ones(3))


def test_texts_of_values_tell_what_they_are() -> None:
    k = st.compile(SPMV, {"A": "csr"})
    assert repr(k) == f"sparsetune.compile({SPMV!r}, {{'A': 'dense, compressed'}}, schedule='')"
    assert repr(k.bind(**OPERANDS, threads=1)) == f"BoundKernel({SPMV!r}, i=6, j=5, threads=1, schedule='')"
    found = st.explore("A(i,j) = B(i,k) * C(k,j)", {"B": "csr", "C": "csr"})
    assert repr(found).startswith("Exploration('A(i,j) = B(i,k) * C(k,j)': generated ")
    assert len(repr(found)) < 400


def test_notebooks_show_tensors_and_kernels() -> None:
    tensor = st.tensor(MATRIX)._repr_html_()
    assert all(part in tensor for part in ("6 x 5", "dense, compressed", "<td>compressed</td>", f"<td>{MATRIX.nnz}</td>"))
    kernel = st.compile("y(i) = A(i,j) * x(j) * 2", {"A": "csr"})._repr_html_()
    assert "<pre>" in kernel
    assert "A(i,j)" in kernel
    assert "dense, compressed" in kernel


@pytest.mark.cc
def test_notebooks_show_how_a_search_went(tmp_path: Path) -> None:
    result = st.tune(SPMV, OPERANDS, trials=3, schedules=["unroll(j, 2)", "unroll(j, 4)"], threads=1, database=tmp_path / "records.db")
    shown = result._repr_html_()
    svg = ElementTree.fromstring(shown[shown.index("<svg") : shown.index("</svg>") + 6])
    assert len(svg.findall("circle")) == sum(trial.seconds is not None for trial in result.measured)
    (line,) = svg.findall("polyline")
    heights = [float(point.split(",")[1]) for point in line.attrib["points"].split()]
    assert heights == sorted(heights)  # the best so far only falls, and heights are counted from above
    assert "<td>unroll(j, 2)</td>" in shown


def test_a_drawing_of_equal_times_is_a_line() -> None:
    svg = ElementTree.fromstring(html.search([2.0, 2.0], "2 s", "<2 s>"))
    assert [circle.attrib["cy"] for circle in svg.findall("circle")] == ["110.0", "110.0"]
    assert [text.text for text in svg.findall("text")] == ["<2 s>", "2 s"]
