"""Every precondition, from both sides: a schedule that keeps it and one that breaks it, with the reason that the user reads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.concrete.concretize import concretize
from sparsetune.compiler.concrete.nodes import Program
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.schedule import schedule as schedule_module
from sparsetune.compiler.schedule.apply import apply_schedule
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
DENSE = ("Z(i,j) = B(i,k) * C(k,j)", {})
BROADCAST = ("y(i) = b(i) + A(i,j) * x(j)", {"A": "csr"})
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


CASES = [
    Case(Rule.NAMES_EXIST, SPMV, "unroll(j, 2)", "unroll(k, 2)", 1, "there is no loop k; the loops are i, j"),
    Case(
        Rule.NAMES_EXIST, SPMV, "precompute(A(i,j) * x(j), [], [], t); unroll([0], j, 2)", "unroll([0], j, 2)", 1, "path [0] leads nowhere"
    ),
    Case(Rule.NAMES_EXIST, SPGEMM, "workspace(w, hashed)", "workspace(v, hashed)", 1, "there is no workspace v; the workspaces are w"),
    Case(Rule.NAMES_EXIST, SPMV, 'convert(A, "csc")', 'convert(B, "csc")', 1, "there is no operand B"),
    Case(Rule.NAMES_EXIST, SPMV, 'convert([], A, "csc")', 'convert([7], A, "csc")', 1, "path [7] leads nowhere"),
    Case(Rule.NAMES_EXIST, SPMV, "build([], gcc)", "build([7], gcc)", 1, "path [7] leads nowhere"),
    Case(Rule.NAMES_EXIST, SPGEMM, "workspace([1], w, hashed)", "workspace([2], w, hashed)", 1, "path [2] leads nowhere"),
    Case(Rule.NAMES_EXIST, SPGEMM, "assemble([1], Z, insert)", "assemble([0, 0], Z, insert)", 1, "path [0, 0] leads nowhere"),
    Case(Rule.NAMES_EXIST, SPGEMM, "protocol([0], A, step, step)", "protocol([1], A, step, step)", 1, "there is no access A"),
    Case(Rule.NAMES_EXIST, SPGEMM, "assemble(Z, insert)", "assemble(A, insert)", 1, "A is not the result; the result is Z"),
    Case(Rule.NAMES_EXIST, SPMV, "protocol(A, step, step)", "protocol(B, step, step)", 1, "there is no access B"),
    Case(
        Rule.NAMES_UNIQUE,
        SPMM,
        "precompute(A(i,j) * X(j,k), k, k, w); unroll([1], k, 4)",
        "precompute(A(i,j) * X(j,k), k, k, w); unroll(k, 4)",
        2,
        "there are 2 loops k; say which by a path",
    ),
    Case(
        Rule.NAMES_UNIQUE, SQUARE, "pos(j, p, A(i,j))", "pos(j, p, A)", 1, "A is read several times here; name one access, such as A(i,j)"
    ),
    Case(Rule.NAMES_NEW, SPMV, "split(i, a, b, 4)", "split(i, j, b, 4)", 1, "the name j is taken"),
    Case(Rule.NAMES_NEW, SPMV, "split(i, a, b, 4)", "split(i, a, a, 4)", 1, "the name a is given twice"),
    Case(Rule.NAMES_NEW, SPMV, "split(i, a, b, 4); split(a, c, d, 2)", "split(i, a, b, 4); split(a, i, d, 2)", 2, "the name i is taken"),
    Case(Rule.NAMES_NEW, SPMV, "precompute(A(i,j) * x(j), [], [], t)", "precompute(A(i,j) * x(j), [], [], A)", 1, "the name A is taken"),
    Case(Rule.NUMBERS_POSITIVE, SPMV, "split(i, a, b, 1)", "split(i, a, b, 0)", 1, "the factor must be a positive integer, not 0"),
    Case(Rule.NUMBERS_POSITIVE, SPMV, "split_up(i, a, b, 1)", "split_up(i, a, b, -4)", 1, "the factor must be a positive integer, not -4"),
    Case(Rule.NUMBERS_POSITIVE, SPMV, "unroll(j, 1)", "unroll(j, 0)", 1, "the factor must be a positive integer"),
    Case(Rule.NUMBERS_POSITIVE, SPMV, "unroll(j, 128)", "unroll(j, 129)", 1, "the factor must be 128 at most, not 129"),
    Case(Rule.NUMBERS_POSITIVE, SPMV, "split(i, a, b, 4611686018427387904)", "split(i, a, b, 4611686018427387905)", 1, "at most"),
    Case(Rule.NUMBERS_POSITIVE, SPMV, "split_up(j, a, b, 2147483647)", "split_up(j, a, b, 18446744073709551616)", 1, "at most"),
    Case(Rule.NUMBERS_POSITIVE, SPMM, "prefetch(j, X, 2147483647)", "prefetch(j, X, 2147483648)", 1, "2147483647 at most"),
    Case(
        Rule.NUMBERS_POSITIVE,
        SPMV,
        "bound(j, jb, 4611686018427387904, max_constraint)",
        "bound(j, jb, 4611686018427387905, max_constraint)",
        1,
        "the amount must be 4611686018427387904 at most",
    ),
    Case(
        Rule.NUMBERS_POSITIVE,
        SPMV,
        "parallelize(i, cpu_thread, no_races, static, 2147483647)",
        "parallelize(i, cpu_thread, no_races, static, 100000000000000000000000)",
        1,
        "the chunk must be 2147483647 at most",
    ),
    Case(Rule.NUMBERS_POSITIVE, SPMM, "prefetch(j, X, 8)", "prefetch(j, X, 0)", 1, "the distance must be a positive integer"),
    Case(
        Rule.NUMBERS_POSITIVE,
        SPMV,
        "parallelize(i, cpu_thread, no_races, dynamic, 8)",
        "parallelize(i, cpu_thread, no_races, dynamic, 0)",
        1,
        "the chunk must be a positive integer",
    ),
    Case(
        Rule.NUMBERS_POSITIVE, SPMV, "bound(j, jb, 8, divisible)", "bound(j, jb, 0, divisible)", 1, "the amount must be a positive integer"
    ),
    Case(
        Rule.NOTHING_AFTER_PARALLELIZE,
        SPMM,
        "split(i, a, b, 4); parallelize(a, cpu_thread, no_races); unroll(k, 2); prefetch(j, X, 4); parallelize(k, cpu_vector, no_races);"
        ' convert(X, "dense; 1, 0"); build(gcc)',
        "parallelize(i, cpu_thread, no_races); split(j, a, b, 4)",
        2,
        "it follows parallelize (directive 1); move it before",
    ),
    Case(Rule.TAGGED_LOOPS_STAY, SPMM, "split(k, a, b, 4); unroll(b, 4)", "unroll(k, 4); split(k, a, b, 4)", 2, "loop k is tagged already"),
    Case(Rule.REORDER_DIRECTLY_NESTED, SPMM, "reorder(i, k, j)", "reorder(i, i, j)", 1, "loop i is named twice"),
    Case(
        Rule.REORDER_DIRECTLY_NESTED,
        SPMM,
        "precompute(A(i,j) * X(j,k), k, k, w); reorder([0], k, j)",
        "precompute(A(i,j) * X(j,k), k, k, w); reorder([1], k, i)",
        2,
        "loop i is not one of the directly nested loops k",
    ),
    Case(
        Rule.REORDER_DISTRIBUTES,
        BROADCAST,
        "reorder(i)",
        "reorder(j, i)",
        1,
        "loop j stands inside a where, whose other parts do not repeat with it",
    ),
    Case(
        Rule.STORAGE_ORDER, SPMM, "reorder(i, k, j)", "reorder(j, i, k)", 1, "A(i,j) stores j below i, and this order runs through j first"
    ),
    Case(
        Rule.STORAGE_ORDER,
        SPMM,
        "split(j, a, b, 4); reorder(a, i, k, b)",
        "split(j, a, b, 4); reorder(a, b, i, k)",
        2,
        "A(i,j) stores j below i",
    ),
    Case(Rule.STORAGE_ORDER, SPMM, 'convert(A, "csc"); reorder(j, i, k)', "reorder(j, i, k)", 1, "convert(A, ...)"),
    Case(Rule.STORAGE_ORDER, SPMM, "reorder(j, i, k); protocol(A, step, locate)", "reorder(j, i, k)", 1, "protocol(A, ..., locate)"),
    Case(Rule.STORAGE_ORDER, MTTKRP, "reorder(r, i, j, k)", "reorder(i, k, j, r)", 1, "B(i,j,k) stores k below j"),
    Case(Rule.COLLAPSE_DIRECTLY_NESTED, SPMM, "collapse(i, j, f)", "collapse(i, k, f)", 1, "loop k is not directly nested in loop i"),
    Case(
        Rule.COLLAPSE_DIRECTLY_NESTED,
        SPMM,
        "reorder(i, k, j); collapse(i, k, f)",
        "collapse(j, i, f)",
        1,
        "loop i is not directly nested in loop j",
    ),
    Case(
        Rule.COLLAPSE_OUTER_COORDINATE,
        MTTKRP,
        "collapse(i, j, f); pos(f, p, B)",
        "pos(i, p, B); collapse(p, j, f)",
        2,
        "p counts positions; collapse coordinates first",
    ),
    Case(Rule.POS_OF_COORDINATE, SPMV, "pos(j, p, A)", "pos(j, p, A); pos(p, q, A)", 2, "p counts positions already"),
    Case(
        Rule.POS_OF_COORDINATE,
        SPMV,
        "split(j, a, b, 4); reorder(a, i, b); pos(b, p, A)",
        "split(j, a, b, 4); reorder(a, i, b); pos(a, p, A)",
        3,
        "a runs through tiles; take the positions of the loop inside a tile",
    ),
    Case(Rule.POS_ACCESS_INDEXED, SPMM, "pos(j, p, A)", "pos(k, p, A)", 1, "A(i,j) is not indexed by k"),
    Case(Rule.POS_ACCESS_INDEXED, SPMM, "pos(j, p, A)", "pos(j, p, X)", 1, "X(j,k) is dense and stores no coordinates"),
    Case(Rule.POS_ACCESS_INDEXED, SPMM, "pos(j, p, A(i,j))", "pos(j, p, A(j,i))", 1, "no operand A(j,i) is read in this loop"),
    Case(
        Rule.POS_LEVELS_CONSECUTIVE,
        ("y(i) = A(i,j) * x(j)", {"A": "csc"}),
        "collapse(j, i, f); pos(f, p, A)",
        "protocol(A, step, locate); reorder(i, j); collapse(i, j, f); pos(f, p, A)",
        4,
        "i, j are not consecutive levels of A(i,j)",
    ),
    Case(Rule.POS_LEVELS_CONSECUTIVE, COO, WHOLE, "pos(i, p, A)", 1, "A(i,j) stores i once per entry; collapse it with the levels below"),
    Case(
        Rule.POS_LEVELS_CONSECUTIVE,
        SPMV,
        WHOLE + "; split(p, a, b, 4)",
        "collapse(i, j, f); split(f, a, b, 4); pos(b, p, A)",
        3,
        "b is a piece of a collapsed loop, or collapsed from pieces; take positions before splitting",
    ),
    Case(
        Rule.POS_RANGE_KNOWN,
        SPMV,
        "pos(j, p, A); split(p, a, b, 4); reorder(i, a, b)",
        "pos(j, p, A); split(p, a, b, 4); reorder(a, i, b)",
        3,
        "the range of loop a depends on i, which is known only inside it",
    ),
    Case(Rule.POS_VISITS_ALL, ADD, "pos(j, p, A); coord(p, c)", "pos(j, p, A)", 1, "A(i,j) + B(i,j) is not zero elsewhere"),
    Case(
        Rule.POS_VISITS_ALL,
        ("Z(i,j) = (A(i,j) + B(i,j)) * C(i,j)", {"A": "csr", "C": "csr"}),
        "pos(j, p, C)",
        "pos(j, p, A)",
        1,
        "is not zero elsewhere",
    ),
    Case(
        Rule.COORD_OF_POSITION,
        SPMV,
        "pos(j, p, A); split(p, a, b, 4); coord(b, c)",
        "split(j, a, b, 4); coord(b, c)",
        2,
        "b counts coordinates already",
    ),
    Case(
        Rule.COORD_OF_POSITION,
        SPMV,
        "pos(j, p, A); coord(p, c)",
        "pos(j, p, A); split(p, a, b, 4); coord(a, c)",
        3,
        "coord takes the loop inside a tile, b",
    ),
    Case(
        Rule.COORD_OF_POSITION,
        SPMV,
        "pos(j, p, A); coord(p, c)",
        "collapse(i, j, f); pos(f, p, A); coord(p, c)",
        3,
        "p counts positions of i, j together",
    ),
    Case(
        Rule.BOUND_HOLDS,
        SPMM,
        "bound(k, kb, 32, max_exact)",
        "bound(k, kb, 16, max_exact)",
        1,
        "contradicts the range of k, which is 0 to 31",
    ),
    Case(Rule.BOUND_HOLDS, SPMM, "bound(k, kb, 8, divisible)", "bound(k, kb, 5, divisible)", 1, "divisible 5 contradicts the range of k"),
    Case(
        Rule.BOUND_HOLDS,
        SPMM,
        "bound(i, ib, 0, min_exact)",
        "bound(i, ib, 2, min_exact)",
        1,
        "contradicts the range of i, which is 0 upwards",
    ),
    Case(
        Rule.BOUND_HOLDS,
        SPMV,
        "pos(j, p, A); split(p, a, b, 4); bound(b, q, 4, divisible)",
        "pos(j, p, A); bound(p, q, 4, divisible)",
        2,
        "begins at a stored position",
    ),
    Case(
        Rule.BOUND_HOLDS,
        SPMV,
        "pos(j, p, A); split(p, a, b, 4); bound(a, q, 0, min_exact)",
        "pos(j, p, A); split(p, a, b, 4); bound(a, q, 4, divisible)",
        3,
        "how far a goes depends on what is stored",
    ),
    Case(
        Rule.POS_RANGE_KNOWN,
        SPMV,
        "pos(j, p, A); split_up(p, a, b, 4); reorder(i, b, a)",
        "pos(j, p, A); split_up(p, a, b, 4); reorder(a, i, b)",
        3,
        "depends on i, which is known only inside it",
    ),
    Case(Rule.FACTORS_COMPLETE, SDDMM, "factors(C, D, B)", "factors(C, D)", 1, "no product has exactly the factors C, D, each once"),
    Case(
        Rule.PRECOMPUTE_FOUND,
        SDDMM,
        "precompute(D(j,k) * C(i,k), [], [], t)",
        "precompute(C(i,k) * E(k,j), [], [], t)",
        1,
        "is no part of an assignment",
    ),
    Case(
        Rule.PRECOMPUTE_INDICES,
        SPMM,
        "precompute(A(i,j) * X(j,k), k, kw, w)",
        "precompute(A(i,j) * X(j,k), k, [a, b], w)",
        1,
        "equally long",
    ),
    Case(
        Rule.PRECOMPUTE_INDICES,
        SPMM,
        "precompute(A(i,j) * X(j,k), k, k, w)",
        "reorder(k, i, j); precompute(A(i,j) * X(j,k), k, k, w)",
        2,
        "loop k stands outside the where, which goes inside i",
    ),
    Case(Rule.PRECOMPUTE_INDICES, SPMM, "precompute(X(j,k), k, k, w)", "precompute(A(i,j), k, k, w)", 1, "A(i,j) does not depend on k"),
    Case(
        Rule.PRECOMPUTE_INDICES,
        SPMV,
        "pos(j, p, A); precompute(A(i,j) * x(j), p, q, w)",
        "pos(j, p, A); precompute(A(i,j) * x(j), [i, p], [i, p], w)",
        2,
        "the range of p depends on i, which is known only inside the where",
    ),
    Case(
        Rule.PRECOMPUTE_DISTRIBUTES,
        ("y(i) = b(i) / d(k)", {}),
        "precompute(b(i) / d(k), [], [], t)",
        "precompute(d(k), [], [], t)",
        1,
        "the sum over k cannot move into the workspace: what surrounds d(k) does not distribute over it",
    ),
    Case(
        Rule.LOOPS_WHOLE,
        ("a = b(i) * c(j)", {}),
        "collapse(i, j, f); precompute(b(i) * c(j), f, g, w)",
        "collapse(i, j, f); precompute(c(j), f, g, w)",
        2,
        "loop f runs through i, j together, and one side needs a part of them only",
    ),
    Case(
        Rule.LOOPS_WHOLE,
        ("a = b(i) * c(j) * d(k)", {}),
        "loopfuse(2, true, [])",
        "collapse(j, k, f); loopfuse(2, true, [])",
        2,
        "loop f runs through j, k together",
    ),
    Case(
        Rule.LOOPS_WHOLE,
        ("a = b(i,j) * c(i,j)", {}),
        "split(j, v, u, 2); collapse(i, v, f); precompute(b(i,j) * c(i,j), [u], [u], w)",
        "split(j, v, u, 2); collapse(i, v, f); precompute(b(i,j) * c(i,j), [j, u], [j, u], w)",
        3,
        "loop f runs through i, j together, and the workspace keeps j only",
    ),
    Case(Rule.LOOPFUSE_PRODUCT, MTTKRP, "loopfuse(2, true, [])", "loopfuse(3, true, [])", 1, "has 3 factors and cannot be split after 3"),
    Case(
        Rule.LOOPFUSE_PRODUCT,
        MTTKRP,
        "loopfuse(2, true, []); loopfuse(1, true, [0])",
        "loopfuse(2, true, []); loopfuse(1, true, [])",
        2,
        "the loops at path [] are split already; name a side by a longer path",
    ),
    Case(Rule.PROTOCOL_FITS, SPMV, "protocol(A, step, locate)", "protocol(A, step)", 1, "A has 2 modes, and 1 protocols are given"),
    Case(Rule.PROTOCOL_FITS, SPMV, "protocol(y, insert)", "protocol(A, step, append)", 1, "its protocols are step and locate, not append"),
    Case(Rule.WORKSPACE_FITS, SPGEMM, "workspace(w, hashed)", "workspace(w, scalar)", 1, "w has the modes j, and so cannot be scalar"),
    Case(
        Rule.WORKSPACE_FITS,
        SPGEMM,
        "workspace(w, list)",
        "workspace(w, registers)",
        1,
        "registers need a constant extent, and that of j is not known; split or bound it",
    ),
    Case(
        Rule.WORKSPACE_FITS,
        MTTKRP,
        "pos(k, p, B); precompute(B(i,j,k) * D(k,r), [p, r], [p, r], w); workspace(w, positions)",
        "precompute(B(i,j,k) * D(k,r), [k, r], [k, r], w); workspace(w, positions)",
        2,
        "no mode of w counts positions",
    ),
    Case(
        Rule.WORKSPACE_FITS,
        SPGEMM,
        "workspace(w, bitmap)",
        "workspace(w, dense)",
        1,
        "what reads w stores only entries",
    ),
    Case(Rule.CONVERT_FITS, SPMV, 'convert(A, "coo")', 'convert(A, "csb")', 1, "A cannot be converted"),
    Case(Rule.CONVERT_FITS, MTTKRP, 'convert(B, "coo")', 'convert(B, "csr")', 1, "B cannot be converted"),
    Case(Rule.ASSEMBLE_FITS, SCALED, "assemble(Z, insert)", "assemble(Z, append)", 1, "do not come in the order of its levels"),
    Case(Rule.PREFETCH_READS, SPMM, "prefetch(j, X, 8)", "prefetch(j, Y, 8)", 1, "Y is no operand read in loop j; those read are A, X"),
    Case(
        Rule.PREFETCH_READS,
        SPMM,
        "protocol(X, step, step); prefetch(j, X(j,k), 8)",
        "prefetch(j, X(k,j), 8)",
        1,
        "loop j does not read X(k,j)",
    ),
    Case(Rule.CALL_DENSE, DENSE, "call([], gemm)", "call([], gemv)", 1, "gemv is 2 loops around one assignment; here are 3 loops"),
    Case(
        Rule.CALL_DENSE,
        DENSE,
        "call([], gemm)",
        "collapse(i, j, f); call([], gemm)",
        2,
        "gemm is 3 loops around one assignment; here are 2",
    ),
    Case(
        Rule.UNIT_NESTING,
        SPMM,
        "parallelize(i, cpu_thread, no_races); parallelize(k, cpu_vector, no_races)",
        "parallelize(i, cpu_thread, no_races); parallelize(k, cpu_thread, no_races)",
        2,
        "loop k on cpu_thread cannot stand inside loop i on cpu_thread",
    ),
    Case(
        Rule.UNIT_NESTING,
        SPMM,
        "parallelize(i, gpu_block, no_races); parallelize(k, gpu_thread, no_races)",
        "parallelize(i, gpu_thread, no_races); parallelize(k, gpu_block, no_races)",
        2,
        "loop k on gpu_block cannot stand inside loop i on gpu_thread",
    ),
    Case(
        Rule.UNIT_NESTING,
        SPMM,
        "parallelize(i, cpu_thread, no_races)",
        "parallelize(i, cpu_thread, no_races); parallelize(k, gpu_thread, no_races)",
        1,
        "one program runs on the CPU or on the GPU",
    ),
    Case(
        Rule.UNIT_NESTING,
        SPMM,
        "parallelize(i, cpu_thread, no_races)",
        "parallelize(i, cpu_thread, no_races); parallelize(i, cpu_vector, no_races)",
        2,
        "loop i is parallel already",
    ),
    Case(
        Rule.UNIT_NESTING,
        SPMM,
        "parallelize(k, cpu_vector, no_races)",
        "parallelize(k, cpu_vector, no_races, static)",
        1,
        "static deals out iterations to CPU threads",
    ),
    Case(
        Rule.VECTOR_INNERMOST,
        SPMM,
        "parallelize(k, cpu_vector, no_races)",
        "parallelize(i, cpu_vector, no_races)",
        1,
        "loop j stands inside i",
    ),
    Case(
        Rule.VECTOR_INNERMOST,
        SPMM,
        "split(j, a, b, 8); reorder(i, a, k, b); parallelize(k, cpu_vector, no_races)",
        "reorder(i, k, j); parallelize(k, cpu_vector, no_races)",
        2,
        "has no constant length",
    ),
    Case(
        Rule.NO_PARALLEL_COITERATION,
        COO,
        "split(i, a, b, 8); parallelize(a, cpu_thread, no_races)",
        "parallelize(i, cpu_thread, no_races)",
        1,
        "A(i,j) stores coordinates of loop i more than once",
    ),
    Case(
        Rule.NO_PARALLEL_COITERATION,
        ADD,
        "split(j, a, b, 8); reorder(a, i, b); parallelize(a, cpu_thread, no_races)",
        "split(j, a, b, 8); reorder(a, i, b); parallelize(b, cpu_thread, no_races)",
        3,
        "A(i,j) and B(i,j) meet in loop b, where one iteration finds the next",
    ),
    Case(
        Rule.NO_PARALLEL_COITERATION,
        ("a = B(i) * C(i)", {"B": "compressed", "C": "compressed"}),
        "merge(i, locate); parallelize(i, cpu_thread, atomics)",
        "parallelize(i, cpu_thread, atomics)",
        1,
        "split it and parallelize the outer loop",
    ),
    Case(
        Rule.PARALLEL_INSERT,
        SPARSE_ADD,
        "parallelize(i, cpu_thread, no_races); assemble(Z, insert)",
        "parallelize(i, cpu_thread, no_races)",
        1,
        "say assemble(Z, insert)",
    ),
    Case(
        Rule.PARALLEL_INSERT,
        SPARSE_ADD,
        "split(i, a, b, 4); parallelize(a, cpu_thread, no_races); assemble(Z, insert)",
        "split(j, a, b, 4); reorder(a, i, b); parallelize(a, cpu_thread, no_races); assemble(Z, insert)",
        3,
        "is inserted into in parallel over its outermost level, i, not a",
    ),
    Case(
        Rule.PARALLEL_INSERT,
        SPARSE_ADD,
        "split(i, a, b, 4); parallelize(a, cpu_thread, no_races); assemble(Z, insert)",
        "split(i, a, b, 4); split(j, c, d, 4); reorder(a, c, b, d); parallelize(a, cpu_thread, no_races); assemble(Z, insert)",
        4,
        "do not come in the order of its levels inside loop a",
    ),
    Case(
        Rule.PARALLEL_INSERT,
        SPMM,
        "precompute(A(i,j) * X(j,k), [i, k], [i, k], w); parallelize([0], i, cpu_thread, no_races)",
        "precompute(A(i,j) * X(j,k), [i, k], [i, k], w); workspace(w, hashed); parallelize([0], i, cpu_thread, no_races)",
        3,
        "iterations of i fill workspace w together",
    ),
    Case(
        Rule.PARALLEL_INSERT,
        SDDMM,
        "parallelize(i, cpu_thread, no_races)",
        'convert(B, "dcsr"); parallelize(i, cpu_thread, no_races)',
        2,
        "nor has it the pattern of an operand",
    ),
    Case(
        Rule.NO_RACES,
        SPMV,
        "parallelize(i, cpu_thread, no_races)",
        "parallelize(j, cpu_thread, no_races)",
        1,
        "iterations of j write the same components of y(i)",
    ),
    Case(
        Rule.NO_RACES,
        SPMV,
        WHOLE + "; split(p, a, b, 4); parallelize(a, cpu_thread, atomics)",
        WHOLE + "; split(p, a, b, 4); parallelize(a, cpu_thread, no_races)",
        4,
        "use atomics, temporary or parallel_reduction",
    ),
    Case(
        Rule.NO_RACES,
        SPMV,
        WHOLE + "; split(p, a, q, 64); split(q, b, c, 4); parallelize(a, gpu_block, no_races); parallelize(b, gpu_thread, atomics)",
        WHOLE + "; split(p, a, q, 64); split(q, b, c, 4); parallelize(a, gpu_block, no_races); parallelize(b, gpu_thread, no_races)",
        5,
        "iterations of a write",
    ),
    Case(
        Rule.NO_RACES,
        TTV,
        "collapse(i, j, f); pos(f, p, B); parallelize(p, cpu_thread, no_races)",
        "collapse(i, j, f); collapse(f, k, g); pos(g, p, B); parallelize(p, cpu_thread, no_races)",
        4,
        "components of T(i,j)",
    ),
    Case(Rule.NO_RACES, SPMV, "parallelize(i, cpu_thread, atomics)", "parallelize(j, cpu_vector, no_races)", 1, "iterations of j write"),
    Case(
        Rule.NO_RACES,
        (SPMV[0], {"A": "csc"}),
        "pos(i, p, A); split(p, a, b, 4); parallelize(a, cpu_thread, no_races)",
        "pos(i, p, A); split(p, a, b, 4); reorder(b, j, a); parallelize(b, cpu_thread, no_races)",
        4,
        "iterations of b write the same components of y(i)",
    ),
    Case(
        Rule.RACE_OVER_VARIABLE,
        SPMV,
        "split(j, a, b, 4); reorder(a, i, b); parallelize(a, cpu_thread, temporary); parallelize(b, cpu_vector, parallel_reduction)",
        "split(j, a, b, 4); reorder(a, i, b); parallelize(a, cpu_thread, no_races); parallelize(b, cpu_vector, parallel_reduction)",
        3,
        "the strategy of loop b keeps apart only its own iterations",
    ),
    Case(
        Rule.POS_OF_COORDINATE,
        HASHED,
        "pos(j, p, A); split(p, a, b, 4)",
        "split(j, a, b, 4); pos(b, p, A)",
        2,
        "A(i,j) keeps coordinates of b in no order",
    ),
    Case(
        Rule.COORD_OF_POSITION,
        HASHED,
        "pos(j, p, A); coord(p, q); split(q, a, b, 4)",
        "pos(j, p, A); split(p, a, b, 4); coord(b, q)",
        3,
        "A(i,j) keeps coordinates in no order; only all positions lead back to a range of them",
    ),
    Case(
        Rule.POS_LEVELS_CONSECUTIVE,
        ("y(j) = A(i,i,j)", {"A": "csf"}),
        "pos(i, p, A)",
        "collapse(i, j, f); pos(f, p, A)",
        2,
        "i, j are not consecutive levels of A(i,i,j), which is stored by i, i, j",
    ),
    Case(
        Rule.POS_LEVELS_CONSECUTIVE,
        SPMV,
        "split(j, a, b, 4); split(b, c, d, 2); pos(d, p, A)",
        "split(j, a, b, 4); split(b, c, d, 2); collapse(c, d, f); pos(f, p, A)",
        4,
        "f is a piece of a collapsed loop, or collapsed from pieces",
    ),
    Case(
        Rule.WORKSPACE_FITS,
        SPMM,
        "split(k, a, b, 64); precompute(A(i,j) * X(j,k), b, b, w); workspace(w, registers)",
        "split(k, a, b, 32768); precompute(A(i,j) * X(j,k), b, b, w); workspace(w, registers)",
        3,
        "w has 32768 elements, more than the 16384 that registers and stack take",
    ),
    Case(
        Rule.POS_VISITS_ALL,
        ("y(i) = b(i,j) / c(j)", {"b": "csr", "c": "compressed"}),
        "pos(j, p, b); coord(p, q)",
        "pos(j, p, b)",
        1,
        "loop p visits what b(i,j) stores, and b(i,j) / c(j) is not zero elsewhere",
    ),
    Case(
        Rule.NO_PARALLEL_COITERATION,
        ("a = b(i) / c(i)", {"c": "compressed"}),
        "split(i, o, n, 4); parallelize(o, cpu_thread, temporary)",
        "parallelize(i, cpu_vector, parallel_reduction)",
        1,
        "c(i) meets dense operands in loop i",
    ),
    Case(
        Rule.PREFETCH_CHOOSES,
        SPMM,
        "prefetch(j, X, 8)",
        "prefetch(i, X, 8)",
        1,
        "loop i finds i, which chooses no row of X and no stored entry of it",
    ),
    Case(
        Rule.PREFETCH_CHOOSES,
        SPMM,
        "split(j, a, b, 8); prefetch(b, X(j,k), 8)",
        "split(j, a, b, 8); prefetch(a, X(j,k), 8)",
        2,
        "loop a finds no coordinate, which chooses no row of X(j,k)",
    ),
    Case(
        Rule.PREFETCH_CHOOSES,
        SPMM,
        "pos(j, p, A); split(p, a, b, 8); prefetch(b, A, 64)",
        "pos(j, p, A); split(p, a, b, 8); prefetch(a, A, 64)",
        3,
        "loop a finds no coordinate, which chooses no row of A and no stored entry of it",
    ),
]


def applied(expression: Expression, schedule: str) -> Program:
    assignment = parse(expression[0])
    found = concretize(assignment, formats_of(assignment, expression[1]))
    return apply_schedule(found.program, schedule, found.formats, {"k": 32})


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule.value} {case.rule.name}: {case.illegal}")
def test_kept_and_broken(case: Case) -> None:
    applied(case.expression, case.legal)
    with pytest.raises(ScheduleError) as caught:
        applied(case.expression, case.illegal)
    text = str(caught.value)
    directive = schedule_module.Schedule(case.illegal).directives[case.number - 1]
    assert text.startswith(f"directive {case.number}, {schedule_module.Schedule([directive])}: ")
    assert case.reason in text
    assert text.endswith(f"(rule {case.rule.value})")
    assert "\n" not in text


def test_every_rule_has_both_sides() -> None:
    assert {case.rule for case in CASES} == set(Rule)


def test_the_documented_list_is_the_list() -> None:
    readme = Path(schedule_module.__file__).with_name("README.md").read_text()
    listed = re.findall(r"^(\d+)\. \*\*(\w+)\*\*", readme, re.MULTILINE)
    assert [(int(number), name.upper()) for number, name in listed] == [(rule.value, rule.name) for rule in Rule]
