"""Products of several stored operands in orders of the loops for which a read is served by a copy in another order."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.schedule.directives import Convert
from sparsetune.compiler.space.candidates import Candidate, candidates

CSR, CSC, DCSR = "csr", "csc", "dcsr"
PRODUCTS = {
    "C(i,j) = A(i,k) * A(j,k)": ({"A": CSR, "C": CSR}, "ik,jk->ij"),
    "C(i,j) = A(i,k) * B(j,k)": ({"A": CSR, "B": DCSR}, "ik,jk->ij"),
    "C(i,j) = A(k,i) * B(k,j)": ({"A": CSR, "B": CSR, "C": CSR}, "ki,kj->ij"),
    "C(i,j) = A(k,i) * B(j,k)": ({"A": CSR, "B": CSR, "C": CSR}, "ki,jk->ij"),
    "C(i,j) = A(i,k) * B(k,j)": ({"A": CSC, "B": CSC, "C": CSR}, "ik,kj->ij"),
    "C(i,j) = A(j,i) * B(i,k) * A(k,j)": ({"A": CSR, "B": CSR, "C": DCSR}, "ji,ik,kj->ij"),
    "t = A(i,j) * A(j,k) * A(i,k)": ({"A": CSR}, "ij,jk,ik->"),
}


def copied(expression: str, formats: dict[str, str], threads: int = 1) -> list[Candidate]:
    assignment = parse(expression)
    found = candidates(assignment, formats_of(assignment, formats), {}, threads)
    return [one for one in found if one.origin.startswith("conversion")]


def square(density: float, seed: int, size: int = 7) -> sp.csr_array:
    found = sp.random_array((size, size), density=density, format="csr", rng=np.random.default_rng(seed))
    found.data[:] = np.round(8 * found.data + 1)
    return found


def test_one_read_of_an_operand_is_copied() -> None:
    columns = 'convert(A(j,k), "dense, compressed; 1, 0"); reorder(i, k, j)'
    (found,) = {str(one.template.fill()) for one in copied("C(i,j) = A(i,k) * A(j,k)", {"A": CSR, "C": CSR})}
    assert found == f"{columns}; precompute(A(i,k) * A(j,k), j, j, w1)"
    dense = [str(one.template.fill()) for one in copied("C(i,j) = A(i,k) * A(j,k)", {"A": CSR, "C": "dense"})]
    assert sorted(dense) == [columns.replace("j,k", "i,k").replace("i, k, j", "j, k, i"), columns]


def test_nothing_is_copied_that_suits() -> None:
    orders = {str(one.template.fill()) for one in copied("C(i,j) = A(i,k) * B(k,j)", {"A": CSR, "B": CSR, "C": CSR})}
    assert not any("reorder(i, k, j)" in order for order in orders)
    assert not copied("y(i) = A(i,j) * B(i,j)", {"A": CSR, "B": CSR, "y": "dense"})[2:]


@pytest.mark.parametrize("expression", PRODUCTS)
def test_copies_give_the_same(expression: str) -> None:
    formats, subscripts = PRODUCTS[expression]
    operands = {name: square(0.3, seed) for seed, name in enumerate(sorted(set(formats) & set("AB")))}
    named = {name: operand.asformat("csc" if formats[name] == CSC else "csr") for name, operand in operands.items()}
    reads = [text[0] for text in expression.partition("=")[2].replace(" ", "").split("*")]
    right = np.einsum(subscripts, *(operands[name].toarray() for name in reads))
    found = copied(expression, formats)
    assert found
    for one in found:
        given = {name: st.tensor(operand, format=formats[name]) for name, operand in named.items()}
        result = st.compile(expression, formats=formats, schedule=str(one.template.fill()))(**given)
        assert np.array_equal(result.to_numpy() if isinstance(result, st.Tensor) else result, right), one.template.fill()


def test_copies_are_few() -> None:
    for expression, (formats, _) in PRODUCTS.items():
        for one in copied(expression, formats):
            assert 1 <= sum(isinstance(step, Convert) for step in one.template.fill()) <= 2


def test_rows_of_a_sparse_result_are_shared_by_threads() -> None:
    assert all("parallelize(i" in str(one.template.fill()) for one in copied("C(i,j) = A(i,k) * A(j,k)", {"A": CSR, "C": CSR}, 2))
