"""What a case says, and the expressions that cases are about."""

from __future__ import annotations

from dataclasses import dataclass

from sparsetune.compiler.schedule.rules import Rule

SPMV = ("y(i) = A(i,j) * x(j)", {"A": "csr"})
SPMM = ("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"})
SPGEMM = ("Z(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "Z": "csr"})
ADD = ("Z(i,j) = A(i,j) + B(i,j)", {"A": "csr", "B": "csr"})
SPARSE_ADD = ("Z(i,j) = A(i,j) + B(i,j)", {"A": "csr", "B": "csr", "Z": "csr"})
SDDMM = ("Z(i,j) = B(i,j) * C(i,k) * D(j,k)", {"B": "csr", "Z": "csr"})
MTTKRP = ("M(i,r) = B(i,j,k) * C(j,r) * D(k,r)", {"B": "csf"})
TTV = ("T(i,j) = B(i,j,k) * c(k)", {"B": "csf", "T": "dcsr"})
SQUARE = ("y(i) = A(i,j) * A(j,i)", {"A": "csr"})
BRANCHES = ("Y(i,j) = A(i,k) * B(k,j) + C(i,k) * D(k,l) * E(l,j)", {"A": "csr", "C": "csr", "D": "csr"})
TWINS = ("Y(i,j) = A(i,k) * B(k,j) * 2 + A(i,k) * B(k,j) * C(j,l)", {"A": "csr"})
DENSE = ("Z(i,j) = B(i,k) * C(k,j)", {})
BROADCAST = ("y(i) = b(i) + A(i,j) * x(j)", {"A": "csr"})
RELU = ("y(i) = b(i) * relu(A(i,j) * x(j) + b(i))", {"A": "csr"})
SCALED = ("Z(i,j) = A(i,j) * 2", {"A": "csr", "Z": "csc"})
COO = ("y(i) = A(i,j) * x(j)", {"A": "coo"})
HASHED = ("y(i) = A(i,j) * x(j)", {"A": "dense, hashed"})
WHOLE = "collapse(i, j, f); pos(f, p, A)"

Expression = tuple[str, dict[str, str]]


@dataclass(frozen=True)
class Case:
    """A rule, an expression, a schedule that is legal, one that is not, the number of the directive at fault, its reason."""

    rule: Rule
    expression: Expression
    legal: str
    illegal: str
    number: int
    reason: str
