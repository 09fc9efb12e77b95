"""Counts the keys of each iteration's tables before a GPU allocates the tables, and sorts iterations by that count.

Tables (``workspaces.table``) are made before a kernel runs, for every block, warp or thread that runs at the same time. Lowering gives them
room for the whole range. This pass adds a kernel that runs the loops which fill the tables, without their stores, and notes the number of
keys of each iteration. A loop that only counts is replaced by its number of iterations, so that a product of sparse matrices reads only
the first one. Iterations with few keys run on warps, with tables in the shared memory of a block, others on blocks, with larger tables in
shared memory, and those with many keys have tables on the heap; each class has a kernel (``passes.need_bins``; Nagasaka, Nukada and
Matsuoka, "High-performance and memory-saving sparse general matrix-matrix multiplication for NVIDIA Pascal GPU"). If a loop inserts the
same keys as an earlier one, as the filling pass of a result does after the counting pass, it uses the numbers of distinct keys that the
earlier one has noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from ..frozen import frozen
from ..ir.arithmetic import ONE, ZERO, subtract
from ..ir.nodes import (
    I64,
    Allocate,
    Call,
    Dealt,
    Declare,
    For,
    Free,
    Function,
    Load,
    Step,
    Steps,
    Store,
    Var,
)
from ..ir.rewrite import as_steps, flat, nodes_of, transform
from .dead import remove_dead
from .key_counts import UnknownError, keys_counted, keys_given
from .manager import Setting
from .need_bins import Bins, Tables


def count_needs(function: Function, setting: Setting) -> Function:
    """Return a function whose tables have room for as many keys as come, where that can be found out beforehand."""
    fresh = setting.fresh

    def visit(step: Step) -> Step:
        if isinstance(step, Steps) or (isinstance(step, For) and isinstance(step.tag, Dealt)):
            return _Statements(fresh, visit, setting.unit.shared_bytes).of(as_steps(step).statements)
        children = tuple(visit(child) if isinstance(child, Step) else child for child in step.children)
        return step.rebuild(children) if children else step  # type: ignore[return-value]  # statements stay statements

    body = visit(function.body)
    return function if body == function.body else remove_dead(replace(function, body=as_steps(body)))


@frozen
class _Noted:
    """What an earlier loop has noted: the keys that it inserts, its bounds, and the array with the number of keys of each iteration."""

    given: Step | None
    loop: For
    needs: str

    def fits(self, given: Step | None, loop: For) -> bool:
        same = (loop.variable, loop.low, loop.high) == (self.loop.variable, self.loop.low, self.loop.high)
        return given is not None and same and given == self.given


class _Statements:
    """Rewrites consecutive statements; blocks have at most ``most`` bytes of shared memory."""

    def __init__(self, fresh: Callable[[str], str], visit: Callable[[Step], Step], most: int) -> None:
        self.fresh = fresh
        self.visit = visit
        self.most = most
        self.noted: list[_Noted] = []

    def of(self, statements: Iterable[Step]) -> Steps:
        """Return the statements with the counting kernels before their loops; noted arrays are kept until their last use."""
        made, left = list[Step](), [*statements]
        while left:
            step = left.pop(0)
            if isinstance(step, For) and isinstance(step.tag, Dealt):
                made += self.counted(step, left)
            else:
                made.append(self.visit(step))
        return Steps((*made, *(Free(noted.needs) for noted in self.noted)))

    def counted(self, outer: For, after: list[Step]) -> list[Step]:
        """Return a dealt loop, and before it the steps that count the keys of its tables.

        Args:
            after: the statements after it.
        """
        tables = _tables_of(outer)
        if tables is None:
            return [outer]
        try:
            return self.in_bins(tables, after) if tables.loop is outer and tables.unit != "thread" else self.at_once(outer, tables)
        except UnknownError:
            return [outer]

    def at_once(self, outer: For, tables: Tables) -> list[Step]:
        """Return a loop in which all tables have room for the iteration with the most keys."""
        most, known, need = self.fresh("most"), Var(self.fresh("most_keys"), I64), Var(self.fresh("need"), I64)
        counting = keys_counted(tables.loop, need, tables.unit)
        counted = replace(tables.loop, private=(), finish=(), body=Steps((counting, Store(most, ZERO, need, "max", atomic=True))))

        far = tables.far(known, need)

        def around(loop: For) -> Step:
            return transform(outer, lambda node: loop if node == tables.loop else node)

        return [
            Allocate(most, I64, ONE, zero=True),
            around(counted),
            Declare(known, Load(most, ZERO, I64)),
            Free(most),
            around(replace(far, body=Steps((counting, far.body)))),
        ]

    def in_bins(self, tables: Tables, after: list[Step]) -> list[Step]:
        """Return the iterations of a loop in bins by their number of keys, which is noted for a later loop that inserts the same keys."""
        loop, given = tables.loop, keys_given(tables.loop)
        noted = next((noted for noted in self.noted if noted.fits(given, loop)), None)
        need = Var(self.fresh("need"), I64)
        before: list[Step] = []
        if noted is None:
            noted = _Noted(given, loop, self.fresh("needs"))
            counting = keys_counted(loop, need, "warp")
            counted = Steps((counting, Store(noted.needs, tables.place, need)))
            before = [
                Allocate(noted.needs, I64, subtract(loop.high, loop.low)),
                replace(loop, private=(), finish=(), body=counted, tag=Dealt("warp")),
            ]
            self.noted.append(noted)
            if any(isinstance(step, For) and noted.fits(keys_given(step), step) for step in after):
                tables = tables.noting(noted.needs, need)
        return [*before, *Bins(tables, noted.needs, need, self.fresh, self.most).steps()]


def _tables_of(outer: For) -> Tables | None:
    """Return the tables of the only loop that has tables; None if there is none, or several have."""
    loops = [node for node in (outer, *nodes_of(outer.body, For)) if any(map(_is_table, flat(node.private)))]
    if len(loops) != 1:
        return None
    private = [*flat(loops[0].private)]
    asked = {call.arguments[0] for call in nodes_of(loops[0].body, Call) if call.function == "table_size"}
    needs = (step for step in private if isinstance(step, Declare) and step.variable in asked)
    return Tables(loops[0], tuple(step for step in private if isinstance(step, Allocate) and _is_table(step)), tuple(needs))


def _is_table(step: Step) -> bool:
    match step:
        case Allocate(storage="heap", length=Call("table_size")):
            return True
    return False
