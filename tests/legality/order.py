"""Names and numbers, the order of directives, loops that change places or become one: rules 1 to 10."""

from __future__ import annotations

from sparsetune.compiler.schedule.rules import Rule

from .case import BRANCHES, BROADCAST, COO, MTTKRP, SPGEMM, SPMM, SPMV, SQUARE, TWINS, Case

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
        "there are 2 loops k; say which by a path: [1] or [0]",
    ),
    Case(Rule.NAMES_UNIQUE, BRANCHES, "reorder(k, l, j)", "reorder(k, j)", 1, "2 nests have the loops k, j; say which by a path: [0] or"),
    Case(Rule.NAMES_UNIQUE, BRANCHES, "collapse(k, l, f)", "split(k, a, b, 4)", 1, "there are 2 loops k; say which by a path: [0] or [1]"),
    Case(
        Rule.NAMES_UNIQUE,
        TWINS,
        "precompute([0], A(i,k) * B(k,j), [], [], t)",
        "precompute(A(i,k) * B(k,j), [], [], t)",
        1,
        "A(i,k) * B(k,j) occurs in several assignments; say which by a path: [0] or [1]",
    ),
    Case(
        Rule.NAMES_UNIQUE, SQUARE, "pos(j, p, A(i,j))", "pos(j, p, A)", 1, "A is read several times here; name one access, such as A(i,j)"
    ),
    Case(Rule.NAMES_NEW, SPMV, "split(i, a, b, 4)", "split(i, j, b, 4)", 1, "the name j is taken"),
    Case(Rule.NAMES_NEW, SPMV, "split(i, a, b, 4)", "split(i, a, a, 4)", 1, "the name a is given twice"),
    Case(Rule.NAMES_NEW, SPMV, "split(i, a, b, 4); split(a, c, d, 2)", "split(i, a, b, 4); split(a, i, d, 2)", 2, "the name i is taken"),
    Case(
        Rule.NAMES_NEW,
        BRANCHES,
        "split([0], k, a, b, 4); split([1], k, a, b, 4)",
        "split([0], k, a, b, 4); split([1], k, a, b, 8)",
        2,
        "the name a is taken",
    ),
    Case(
        Rule.NAMES_NEW,
        BRANCHES,
        "split([0], k, a, b, 4); split([1], k, a, b, 4)",
        "split([0], k, a, b, 4); split([1], l, a, b, 4)",
        2,
        "the name a is taken",
    ),
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
    Case(
        Rule.STORAGE_ORDER, COO, 'convert(A, "csc"); reorder(j, i)', "reorder(j, i)", 1, "first; keep i outside, or convert(A, ...) (rule"
    ),
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
]
