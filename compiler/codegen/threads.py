"""Prints parallel loops as C functions that the threads of the team run (csrc/st_loop.h).

Each thread that takes part runs the function once, and claims pieces of the iterations until none are left. A struct hands the
function what it uses of the kernel around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..ir.nodes import I64, MAP, For, Parallel, Step, Steps, Type
from ..ir.rewrite import may_fail
from .analysis import gathered_sums, heap_allocations
from .expressions import ExpressionPrinter, c_type
from .memory import Region
from .regions import captured, has_shares
from .statements import StatementPrinter, beside


class ThreadedPrinter(StatementPrinter):
    """Prints the statements of a kernel for processors into ``lines``, and the functions that threads run into ``functions``."""

    def __init__(
        self,
        expressions: ExpressionPrinter,
        array_types: dict[str, Type],
        grown: Mapping[str, str],
        published: dict[str, tuple[int, int]],
        region_head: Callable[[For], list[str]],
        parameters: frozenset[str],
    ) -> None:
        """Create a printer.

        Args:
            region_head: returns the lines that declare the array parameters that a parallel region uses.
            parameters: names of the arrays that are parameters.
            array_types, grown, published: as for ``MemoryPrinter``.
        """
        super().__init__(expressions, array_types, grown, published)
        self.functions: list[str] = []
        self._region_head = region_head
        self._parameters = parameters

    def _for(self, loop: For) -> None:
        if isinstance(loop.tag, Parallel) and not self.region.parallel:
            self._parallel(loop)
        else:
            super()._for(loop)

    def _keep_in_order(self, loop: For) -> None:
        self.depth += 1
        for variable in gathered_sums(loop.body):
            self.line(f"ST_IN_ORDER({self.names[variable.name]});")
        self.depth -= 1

    def _parallel(self, loop: For) -> None:
        """Print a parallel loop as a function, and the call that makes threads run it."""
        self.expressions.headers.add("st_loop.h")
        parts = (*loop.private, loop.body, *loop.finish)
        fails, shares = any(may_fail(part) for part in parts), has_shares(loop)
        region, work, shared = (self.names.own(name) for name in ("st_region", "st_parallel", "st_shared"))
        head = self._region_head(loop)
        inside = captured(loop, self._parameters)
        fields = [("st_loop", "st_loop", self._iterations(loop, shares))]
        fields += [("void **", "st_arrays", "st_arrays")] if head else []
        fields += [("int32_t *", "st_status", "&st_status")] if fails else []
        fields += [("int64_t ", "st_threads", "st_threads")] if shares else []
        fields += [(f"{self.expressions.type_name(variable.type)} ", self.names[variable.name], "") for variable in inside.variables]
        fields += [(self._array_field(name), self.names[name], "") for name in inside.arrays]
        self.line("{")
        self.depth += 1
        self.line(f"const {region} {shared} = {{{', '.join(value or name for _, name, value in fields)}}};")
        pieces = "st_threads" if shares else f"{shared}.st_loop.pieces"
        own = "false" if isinstance(loop.tag, Parallel) and loop.tag.chunking in ("guided", "ordered") and not shares else "true"
        self.line(f"st_run(st_threads, {pieces}, {own}, {work}, &{shared});")
        self.depth -= 1
        self.line("}")
        if fails:
            self.line(f"if (st_status) goto {self.region.fails_to};")
        self._function(loop, region, work, fields, head, fails, shares)

    def _iterations(self, loop: For, shares: bool) -> str:
        """Return the C value that describes how the iterations of a parallel loop are cut into pieces."""
        tag = loop.tag
        assert isinstance(tag, Parallel)
        ends = ", ".join(self.expressions.converted(end, I64) for end in (loop.low, loop.high))
        if tag.chunking == "guided":
            return f"st_guided({ends}, {tag.chunk or 1}, st_threads)"
        if tag.chunk or tag.chunking == "dynamic":
            return f"st_chunks({ends}, {tag.chunk or 1}, st_threads)"
        return f"{'st_even_shares' if shares else 'st_even'}({ends}, st_threads)"

    def _array_field(self, array: str) -> str:
        """Return the type of the struct member for an array of the kernel: a pointer, or a map, in which threads only look up."""
        kind = self._array_types[array]
        return "st_map " if kind == MAP else f"{c_type(kind)} *"

    def _function(
        self, loop: For, region: str, work: str, fields: list[tuple[str, str, str]], head: list[str], fails: bool, shares: bool
    ) -> None:
        """Print the function that each thread of a parallel loop runs."""
        kernel, depth = self.lines, self.depth
        self.lines, self.depth = [], 1
        done = self.names.own("st_private_done") if fails else ""
        self.enter(Region(done, parallel=True, status="st_status"))
        for kind, name, value in fields:
            if not value:
                restrict = "restrict " if kind.endswith("*") else ""
                self.line(f"{'' if restrict else 'const '}{kind}{restrict}{name} = st_in->{name};")
            elif name != "st_loop":
                self.line(f"{kind}const {name} = st_in->{name};" if kind.endswith("*") else f"const {kind}{name} = st_in->{name};")
        for text in head:
            self.line(text)
        held = self.declare_heap(heap_allocations((*loop.private, loop.body, *loop.finish), inside_parallel=True))
        self._statements(loop.private)
        if fails and any(may_fail(part) for part in loop.private):
            self.line(f"{done}:;")
        self._pieces(loop, shares)
        self._finish(loop.finish, fails)
        self.free_heap(held)
        self.leave()
        first = "st_share" if shares else "st_piece"
        self.functions += [
            "typedef struct {",
            *(f"  {kind}{'' if kind.endswith(('*', ' ')) else ' '}{name};" for kind, name, _ in fields),
            f"}} {region};",
            "",
            f"static __attribute__((noinline)) void {work}(const void *st_given, st_claims *st_claimed, int64_t {first}) {{",
            f"  const {region} *const st_in = st_given;",
            "  const st_loop st_iterations = st_in->st_loop;",
            *self.lines,
            "}",
            "",
        ]
        self.lines, self.depth = kernel, depth

    def _pieces(self, loop: For, shares: bool) -> None:
        """Print the loops over the pieces that a thread claims (or over shares and their pieces), and over the iterations of a piece."""
        if shares:
            self.line("for (; st_share >= 0; st_share = st_next(st_claimed)) {")
            self.depth += 1
            self.line("for (int64_t st_piece = st_share; st_piece < st_iterations.pieces; st_piece += st_threads) {")
        else:
            self.line("for (; st_piece >= 0; st_piece = st_next(st_claimed)) {")
        self.depth += 1
        kind, name = c_type(loop.variable.type), self.names[loop.variable.name]
        end = self.names.fresh(f"{name}_end")
        bounds = f"{name} = st_begin(&st_iterations, st_piece), {end} = st_end(&st_iterations, st_piece)"
        self.line(f"for ({kind} {bounds}; {name} < {end}; {name}++) {{{beside(loop.origin)}")
        self._iteration(loop.body)
        self.line("}")
        for _ in range(2 if shares else 1):
            self.depth -= 1
            self.line("}")

    def _iteration(self, body: Step) -> None:
        """Print one iteration of a parallel loop. If iterations may fail, those after a failure are skipped."""
        if not may_fail(body):
            self.scope(body)
            return
        end = self.names.own("st_next")
        outer = self.region
        self.enter(Region(end, parallel=True, status=outer.status, declared=outer.declared))
        self.depth += 1
        self.line("if (st_failed(st_status)) continue;")
        self.depth -= 1
        self.scope(body)
        self.leave()
        self.line(f"{end}:;")

    def _finish(self, finish: tuple[Step, ...], fails: bool) -> None:
        if not finish:
            return
        if not fails:
            self._statements(finish)
            return
        end = self.names.own("st_finished")
        may = any(may_fail(part) for part in finish)
        self.line("if (!st_failed(st_status)) {")
        self.enter(Region(end, parallel=True, status="st_status"))
        self.scope(Steps(finish))
        self.leave()
        self.line("}")
        if may:
            self.line(f"{end}:;")

    def _statements(self, statements: tuple[Step, ...]) -> None:
        self.statement(Steps(statements))
