"""Sparse matrices of SciPy, valid and broken, and objects of other packages that somebody gives as an operand."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp

MATRIX = np.array([[0, 2, 0, 1], [0, 0, 0, 0], [3, 0, 1, 0], [0, 1, 0, 2]], dtype=float)
"""The matrix that every valid object represents: small whole numbers, which are the same in every dtype; the second row is empty."""

Make = Callable[[], Any]


FORMATS = ("csr", "csc", "coo", "dok", "lil", "dia", "bsr")


def sparse() -> dict[str, Make]:
    """Every format of SciPy, as an array and as a matrix, of every dtype that it has."""
    found: dict[str, Make] = {}
    for form in FORMATS:
        for kind in ("array", "matrix"):
            for code in ("f8", "f4", "i8", "i4", "u1", "?", "c16", "g"):
                found[f"{form}_{kind} {code}"] = lambda form=form, kind=kind, code=code: getattr(sp, f"{form}_{kind}")(MATRIX.astype(code))
            found[f"{form}_{kind} empty"] = lambda form=form, kind=kind: getattr(sp, f"{form}_{kind}")((4, 4))
            found[f"{form}_{kind} transposed"] = lambda form=form, kind=kind: getattr(sp, f"{form}_{kind}")(MATRIX.T).T
    found["csr int64 indices"] = lambda: changed("indices", lambda a: a.astype(np.int64))
    found["csr unsorted"] = unsorted
    found["csr duplicates"] = lambda: sp.csr_array((np.array([1.0, 1, 1, 3, 1, 1, 2]), [1, 1, 3, 0, 2, 1, 3], [0, 3, 3, 5, 7]), (4, 4))
    found["coo duplicates"] = lambda: sp.coo_array(([1.0, 1, 1, 3, 1, 1, 2], ([0, 0, 0, 2, 2, 3, 3], [1, 1, 3, 0, 2, 1, 3])), (4, 4))
    found["coo vector"] = lambda: sp.coo_array(MATRIX[0])
    found["csr vector"] = lambda: sp.csr_array(sp.coo_array(MATRIX[0]))
    found["coo of order 3"] = lambda: sp.coo_array(MATRIX[None])
    found["csr read-only"] = lambda: changed("data", read_only)
    found["csr with explicit zeros"] = lambda: sp.csr_array(
        (np.where(MATRIX.ravel() >= 0, MATRIX.ravel(), 0), np.tile(range(4), 4), range(0, 17, 4)), (4, 4)
    )
    found["csr of objects"] = lambda: changed("data", lambda a: a.astype(object))
    found["csr with room"] = lambda: changed("data", lambda a: np.append(a, 7.0), lambda a: np.append(a, 0))
    return found


def changed(name: str, change: Callable[[Any], Any], also: Callable[[Any], Any] | None = None) -> Any:
    found = sp.csr_array(MATRIX)
    setattr(found, name, change(getattr(found, name)))
    if also is not None:
        found.indices = also(found.indices)
    return found


def read_only(values: Any) -> Any:
    values.flags.writeable = False
    return values


def unsorted() -> Any:
    found = sp.csr_array(MATRIX)
    found.indices[:2], found.data[:2] = found.indices[:2][::-1].copy(), found.data[:2][::-1].copy()
    found.has_sorted_indices = False
    return found


def broken_sparse() -> dict[str, Make]:
    """Sparse matrices whose arrays do not fit together."""
    changes: dict[str, tuple[str, Callable[[Any], Any]]] = {
        "index too large": ("indices", lambda a: a + 100),
        "index negative": ("indices", lambda a: a - 50),
        "indices of floats": ("indices", lambda a: a + 0.5),
        "indices too short": ("indices", lambda a: a[:-2]),
        "data too short": ("data", lambda a: a[:-2]),
        "indptr too short": ("indptr", lambda a: a[:-1]),
        "indptr falls": ("indptr", lambda a: a[::-1].copy()),
        "indptr beyond": ("indptr", lambda a: a + 40),
        "indptr negative": ("indptr", lambda a: a - 3),
        "data None": ("data", lambda a: None),
        "indices None": ("indices", lambda a: None),
        "data text": ("data", lambda a: np.array(["x"] * len(a))),
        "indptr a list": ("indptr", list),
        "indices a list": ("indices", list),
        "data of two modes": ("data", lambda a: a[:, None]),
        "_shape lies": ("_shape", lambda a: (2, 2)),
        "_shape huge": ("_shape", lambda a: (2**60, 2**60)),
        "_shape text": ("_shape", lambda a: "ab"),
        "data of dates": ("data", lambda a: a.astype("M8[s]")),
        "unsigned indices": ("indices", lambda a: a.astype(np.uint32)),
        "narrow indices": ("indices", lambda a: a.astype(np.int8)),
    }
    return {f"broken csr: {what}": lambda name=name, change=change: changed(name, change) for what, (name, change) in changes.items()}


def of_others() -> dict[str, Make]:
    """Objects of other packages, if these are installed."""
    return {**of_pandas(), **of_pydata(), **of_networkx(), **of_torch()}


def of_pandas() -> dict[str, Make]:
    import pandas as pd

    found: dict[str, Make] = {
        "frame": lambda: pd.DataFrame(MATRIX),
        "frame of texts": lambda: pd.DataFrame(MATRIX.astype(str)),
        "sparse frame": lambda: pd.DataFrame(MATRIX).astype(pd.SparseDtype(float, 0)),
        "frame with names": lambda: pd.DataFrame(MATRIX, columns=list("abcd")),
        "frame of two kinds": lambda: pd.DataFrame({"a": [1.0] * 4, "b": ["x"] * 4}),
        "empty frame": pd.DataFrame,
        "series": lambda: pd.Series(MATRIX[0]),
        "nullable integers": lambda: pd.Series([1, 5, 2, 3], dtype="Int64"),
        "sparse series": lambda: pd.Series(MATRIX[0]).astype(pd.SparseDtype(float, 0)),
        "sparse array": lambda: pd.arrays.SparseArray(MATRIX[0]),
        "index": lambda: pd.Index([1, 2, 3, 4]),
        "categorical": lambda: pd.Categorical(list("abca")),
        "timestamps": lambda: pd.date_range("2026", periods=4),
        "NA": lambda: pd.NA,
        "NaT": lambda: pd.NaT,
        "texts": lambda: pd.Series(list("abcd")),
        "nullable floats": lambda: pd.array([1.0, 5.0, 2.0, 3.0], dtype="Float64"),
        "intervals": lambda: pd.interval_range(0, 4),
        "Timestamp": lambda: pd.Timestamp(0),
    }
    return {f"pandas {name}": make for name, make in found.items()}


def of_pydata() -> dict[str, Make]:
    if not find_spec("sparse"):
        return {}
    import sparse

    found: dict[str, Make] = {
        "COO": lambda: sparse.COO(MATRIX),
        "GCXS": lambda: sparse.GCXS.from_numpy(MATRIX),
        "DOK": lambda: sparse.DOK.from_numpy(MATRIX),
        "fill 1": lambda: sparse.COO(MATRIX, fill_value=1.0),
        "bool": lambda: sparse.COO(MATRIX != 0),
        "order 3": lambda: sparse.COO(MATRIX[None]),
        "complex": lambda: sparse.COO(MATRIX + 0j),
        "float16": lambda: sparse.COO(MATRIX.astype("f2")),
    }
    return {f"PyData {name}": make for name, make in found.items()}


def of_networkx() -> dict[str, Make]:
    if not find_spec("networkx"):
        return {}
    import networkx as nx

    found: dict[str, Make] = {
        "Graph": lambda: nx.from_numpy_array(MATRIX + MATRIX.T),
        "DiGraph": lambda: nx.from_numpy_array(MATRIX, create_using=nx.DiGraph),
        "MultiGraph": nx.MultiGraph,
        "empty": nx.Graph,
        "names": lambda: nx.Graph([("a", "b"), ("c", "d")]),
        "nodes": lambda: nx.path_graph(4).nodes,
        "edges": lambda: nx.path_graph(4).edges,
        "adjacency": lambda: nx.path_graph(4).adj,
    }
    return {f"networkx {name}": make for name, make in found.items()}


def of_torch() -> dict[str, Make]:
    if not find_spec("torch"):
        return {}
    import torch

    t = lambda: torch.from_numpy(MATRIX.copy())  # noqa: E731
    kinds = (
        "float64",
        "float32",
        "float16",
        "bfloat16",
        "int64",
        "int32",
        "int16",
        "int8",
        "uint8",
        "bool",
        "complex64",
        "complex128",
        "float8_e5m2",
        "uint16",
        "uint32",
        "uint64",
    )
    found: dict[str, Make] = {name: lambda name=name: t().to(getattr(torch, name)) for name in kinds}
    for name in ("float64", "float32", "float16", "bfloat16", "int64", "bool", "complex128"):
        for layout in ("coo", "csr", "csc"):
            found[f"{layout} {name}"] = lambda name=name, layout=layout: getattr(
                t().to(getattr(torch, name)), f"to_sparse_{layout}" if layout != "coo" else "to_sparse"
            )()
    found |= {
        "bsr": lambda: t().to_sparse_bsr((2, 2)),
        "bsc": lambda: t().to_sparse_bsc((2, 2)),
        "grad": lambda: t().requires_grad_(),
        "sparse grad": lambda: t().to_sparse().requires_grad_(),
        "csr grad": lambda: t().to_sparse_csr().requires_grad_(),
        "meta": lambda: t().to("meta"),
        "quantized": lambda: torch.quantize_per_tensor(t().float(), 0.1, 0, torch.qint8),
        "conjugate": lambda: (t() + 0j).conj(),
        "negated": lambda: (t() * 1j).conj().imag,
        "uncoalesced": lambda: torch.sparse_coo_tensor(
            [[0, 0, 0, 2, 2, 3, 3], [1, 1, 3, 0, 2, 1, 3]], torch.tensor([1.0, 1, 1, 3, 1, 1, 2]).double(), (4, 4)
        ),
        "transposed": lambda: t().T,
        "strided": lambda: t().repeat(2, 2)[::2, :4],
        "expanded": lambda: t()[:1].expand(4, 4),
        "scalar": lambda: torch.tensor(2.0),
        "hybrid": lambda: t().to_sparse(1),
        "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "Parameter": lambda: torch.nn.Parameter(t()),
        "Size": lambda: torch.Size((4, 4)),
        "dtype": lambda: torch.float64,
        "module": lambda: torch.nn.Linear(4, 4),
        "storage": lambda: t().untyped_storage(),
        "mkldnn": lambda: t().float().to_mkldnn(),
    }
    return {f"torch {name}": make for name, make in found.items()}
