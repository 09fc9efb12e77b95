"""The files that ship in configs/ are read whole, and say what the program does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from sparsetune.compiler.concrete.check import check_assignment
from sparsetune.compiler.errors import DataError
from sparsetune.compiler.evaluate import evaluate
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.storage.construct import tensor
from sparsetune.datasets import describe
from sparsetune.datasets.catalogue import bundled
from sparsetune.tuner import toml_table
from sparsetune.tuner.config import SuiteInput, SuiteKernel, load_settings, load_suite, suite_names
from sparsetune.tuner.extents import reads
from sparsetune.tuner.machine_settings import load_machine
from sparsetune.tuner.operands import load_tensor
from sparsetune.tuner.settings import Settings
from sparsetune.tuner.suite import Item, make_item, suite_items
from sparsetune.tuner.suite_keys import KEYS


def test_suites_that_ship() -> None:
    assert {"quick", "matrices", "tensors", "sparseauto", "taco", "waco", "baco", "suitesparse", "frostt", "nightly"} <= set(suite_names())


@pytest.mark.parametrize("name", suite_names())
def test_suite_is_well_formed(name: str) -> None:
    suite = load_suite(name)
    for kernel in suite.kernels:
        assignment = parse(kernel.expression)
        check_assignment(assignment, affine=True)
        own = [access for access in reads(assignment) if access.tensor == kernel.operand]
        assert {len(access.subscripts) for access in own} == {kernel.order}
        given = {index for access in own for index in access.indices} | set(kernel.dims)
        assert {index for access in reads(assignment) for index in access.indices} == given
    assert suite_items(suite)


def test_suites_of_collections_name_what_there_is() -> None:
    frostt = load_suite("frostt")
    assert {entry.source for entry in frostt.inputs} == {name for name in bundled() if name.startswith("frostt:")}
    assert len({entry.name for entry in load_suite("sparseauto").inputs}) == 15
    matrices = [bundled()[entry.source] for entry in load_suite("suitesparse").inputs]
    assert len(matrices) > 500
    assert all(item.field == "real" and item.shape and item.shape[0] == item.shape[1] for item in matrices)
    for name in suite_names():
        for entry in load_suite(name).inputs:
            if not entry.source.startswith("random:"):
                shape = bundled()[entry.source].shape
                assert shape is None or len(shape) == entry.order


def mine(folder: Path, text: str) -> str:
    (folder / "mine.toml").write_text(
        '[suite]\n[[kernel]]\nname = "spmv"\nexpression = "y(i) = A(i,j) * x(j)"\noperand = "A"\norder = 2\n' + text
    )
    return str(folder / "mine.toml")


def test_inputs_by_what_they_are_like(tmp_path: Path) -> None:
    chosen = '[[select]]\ngroup = "Williams"\nnnz = [2e6, 5e6]\nlimit = 3\n[[input]]\nname = "own"\nsource = "a.mtx"\norder = 2\n'
    names = [entry.name for entry in load_suite(mine(tmp_path, chosen)).inputs]
    assert names == ["own", "Williams/mc2depi", "Williams/cop20k_A", "Williams/webbase-1M"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[select]]\ngrup = "SNAP"\n', r"mine.toml, select '1': unknown key 'grup' \(did you mean 'group'\?\); keys are "),
        ('[[select]]\nfield = "rael"\n', r"select '1': field is 'rael' \(did you mean 'real'\?\); there are real, complex, binary"),
        ("[[select]]\nnnz = [5, 1]\n", r"mine.toml, select '1': nnz is \[5, 1\]; a list of two numbers from 0 on, from and to"),
        ("[[select]]\nrows = 7\n", r"rows is 7; a list of two numbers"),
        ("[[select]]\ndefinite = 1\n", r"definite is 1; true or false is expected"),
        ('[[select]]\ngroup = "none such"\n', r"mine.toml, select '1': nothing of the collections is like that"),
        ("", r"at least one \[\[kernel\]\] and one \[\[input\]\], \[\[files\]\] or \[\[select\]\]"),
        ('[[files]]\npattern = "*.mtx"\norder = 2\n', r"mine.toml, files '1': no file that can be read is like '\*.mtx' \(in "),
        ('[[files]]\npatern = "*.mtx"\n', r"files '1': the key 'pattern' is missing \(is it 'patern'\?\)"),
    ],
)
def test_mistakes_in_selections(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_suite(mine(tmp_path, text))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("y(i) = A(i,j) *", "y(i) A(i,j) *", r"mine.toml, kernel 'spmv': expression: .*column 6"),
        ('"A"', '"a"', r"kernel 'spmv': operand 'a' is not in the expression"),
        ("order = 2", "order = 3", r"kernel 'spmv': order is 3, but 'A' has 2 modes in the expression"),
        ("order = 2", 'order = 2\nformat = "csrr"', r"kernel 'spmv': format: .*csrr"),
        ("order = 2", 'order = 2\noutput_format = "csr"', r"kernel 'spmv': output_format: .*csr.* is for matrices"),
        ("order = 2", 'order = 2\nsemiring = ["min", "min"]', r"kernel 'spmv': semiring: .*is no semiring"),
        ('x(j)"', '-x(j)"\nsemiring = ["min", "+"]', r"kernel 'spmv': semiring: .*'-' has no meaning where the sum is min"),
        ("order = 2", "order = 2\ndims = { k = 3 }", r"kernel 'spmv', \[dims\]: 'k' is no index of the expression, which has i, j"),
    ],
)
def test_kernels_that_could_never_run_are_refused_before_any_does(tmp_path: Path, before: str, after: str, message: str) -> None:
    path = Path(mine(tmp_path, '[[input]]\nname = "a"\nsource = "a.mtx"\norder = 2\n'))
    assert load_suite(str(path)).kernels
    path.write_text(path.read_text().replace(before, after, 1))
    with pytest.raises(DataError, match=message) as caught:
        load_suite(str(path))
    assert "\n" not in str(caught.value)


def test_files_of_a_folder_are_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("b.mtx", "a.mtx.gz", "deeper/b.mtx", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = load_suite(mine(tmp_path, '[[files]]\npattern = "**/*"\norder = 2\n')).inputs
    assert [(entry.name, entry.source) for entry in found] == [("a", "a.mtx.gz"), ("b.mtx", "b.mtx"), ("deeper/b.mtx", "deeper/b.mtx")]
    assert {entry.order for entry in found} == {2}


def test_the_description_has_every_key_that_is_read(tmp_path: Path) -> None:
    """A file that says everything is read; a key that is not described is refused by a message that lists those that are."""
    for table, keys in KEYS.items():
        needed = "".join(f"{key.name} = {2 if key.value == 'whole number' else chr(34) + 'A' + chr(34)}\n" for key in keys if key.needed)
        kind = table.strip("[]")
        text = f"[suite]\n{'x = 1' if kind == 'suite' else ''}\n" + ("" if kind == "suite" else f"{table}\nx = 1\n{needed}")
        (tmp_path / "mine.toml").write_text(text)
        with pytest.raises(DataError, match="unknown key 'x'") as caught:
            load_suite(str(tmp_path / "mine.toml"))
        listed = str(caught.value).rpartition("keys are ")[2].split(", ")
        assert set(listed) == {key.name for key in keys}, table


def test_inputs_of_the_quick_suite_are_generated() -> None:
    for entry in (*load_suite("quick").inputs, *load_suite("nightly").inputs, *load_suite("convolutions").inputs):
        assert entry.source.startswith("random:")
        assert len(describe(entry.source)["shape"]) == entry.order


@pytest.mark.parametrize("kernel", load_suite("convolutions").kernels, ids=lambda kernel: kernel.name)
def test_convolutions_of_the_suite_are_what_they_are_called(kernel: SuiteKernel) -> None:
    """On small inputs, against sums over windows of dense arrays by NumPy."""
    shape = {1: (12,), 2: (8, 10), 3: (7, 9, 8), 4: (2, 7, 9, 8)}[kernel.order]
    array = np.random.default_rng(1).integers(1, 9, shape) * (np.random.default_rng(2).random(shape) < 0.3) * 1.0
    item = Item(kernel.name, kernel, SuiteInput("small", "", kernel.order), tuple((name, each[0]) for name, each in kernel.dims.items()), 1)
    problem = make_item(item, tensor(array))
    weights = problem.operands["F"].to_numpy() if "F" in problem.operands else np.ones(0)
    options = {"semiring": kernel.semiring or ("+", "*"), "shape": dict(item.dims), "target": "interpreter"}
    found = evaluate(kernel.expression, problem.operands, schedule="default", **options)
    np.testing.assert_allclose(found, convolved(kernel.name, array, weights), rtol=1e-12)


def convolved(name: str, image: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """Return what a kernel of the suite ``convolutions`` computes."""

    def windows(modes: Sequence[int], step: int = 1, reach: int = 1) -> NDArray[Any]:
        size = 2 if "pooling" in name else 3
        every = sliding_window_view(image, [reach * (size - 1) + 1] * len(modes), tuple(modes))
        starts = tuple(slice(None, None, step) if mode in modes else slice(None) for mode in range(image.ndim))
        return every[(*starts, *(slice(None, None, reach) for _ in modes))]

    match name:
        case "1-D" | "2-D" | "3-D":
            return (windows(range(image.ndim)) * weights).sum(tuple(range(image.ndim, 2 * image.ndim)))
        case "layer" | "strided layer" | "dilated layer":
            seen = windows((0, 1), 2 if "strided" in name else 1, 2 if "dilated" in name else 1)
            return np.einsum("hwcpq,pqcf->hwf", seen, weights)
        case "layer, NHWC":
            return np.einsum("nhwcpq,pqcf->nhwf", windows((1, 2)), weights)
        case "layer, NCHW":
            return np.einsum("nchwpq,fcpq->nfhw", windows((2, 3)), weights)
        case "depthwise":
            return np.einsum("chwpq,cpq->chw", windows((1, 2)), weights)
        case "transposed layer":
            (high, wide, _), (*reach, _, filters) = image.shape, weights.shape
            whole = np.zeros((2 * high - 1 + reach[0] - 1, 2 * wide - 1 + reach[1] - 1, filters))
            for p, q in np.ndindex(*reach):
                whole[p : p + 2 * high - 1 : 2, q : q + 2 * wide - 1 : 2] += image @ weights[p, q]
            return whole
        case "mean pooling":
            return windows((0, 1), 2).mean((2, 3))
        case "max pooling":
            largest = windows((0, 1), 2).max((2, 3))
            return np.where(largest > 0, largest, -np.inf)
    raise AssertionError(f"what does {name} compute?")


def test_settings() -> None:
    assert load_settings("default") == Settings()
    assert load_settings("quick").policy.final_seconds < Settings().policy.final_seconds
    assert load_settings("thorough").policy.max_seconds > Settings().policy.max_seconds
    with pytest.raises(DataError, match="unknown search settings 'slow'"):
        load_settings("slow")


def test_machines(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_machine("whatever").workspace_share == 0.5
    (tmp_path / "machines.toml").write_text('[default]\nworkspace_share = 0.5\n["Big One"]\nworkspace_share = 0.25\n')
    monkeypatch.setattr(toml_table, "FOLDER", tmp_path)
    assert load_machine("Big One").workspace_share == 0.25
    (tmp_path / "machines.toml").write_text("[default]\nworkspace_shar = 0.5\n")
    with pytest.raises(DataError, match=r"workspace_share' is missing \(is it 'workspace_shar'\?\)"):
        load_machine("Big One")


def test_sparse_results_of_suites_need_no_memory_for_dense_ones(tmp_path: Path) -> None:
    source = 'name = "large"\nsource = "random:uniform:1000000x1000000:nnz=10"\norder = 2\n'
    text = mine(tmp_path, f'format = "dcsr"\noutput_format = "dcsr"\n[[input]]\n{source}')
    Path(text).write_text(Path(text).read_text().replace("y(i) = A(i,j) * x(j)", "Y(i,j) = A(i,j) * x(j)"))
    (item,) = suite_items(load_suite(text))
    problem = make_item(item, load_tensor(item.input.source))
    assert str(problem.formats["Y"]) == "compressed, compressed"
