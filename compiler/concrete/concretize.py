"""Index notation to concrete index notation: the default program of an expression.

One term becomes a loop nest around one assignment. Terms with different reductions, sums of many sparse operands, and
sparse results that a reduction loop would scatter into go through workspaces (Kjolstad et al., "Tensor algebra
compilation with workspaces").
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import ExpressionError
from ..format import Format, dense_format
from ..fresh import FreshNames, fresh
from ..frozen import frozen
from ..notation.functions import has_functions
from ..notation.inner_sums import Resolved, resolved
from ..notation.nodes import Access, Add, Assignment, Expr, accesses, index_subscript, indices
from ..notation.printer import show
from ..notation.terms import Term, addend_count, distributed, terms
from .affine import names_of
from .applied import acting, arguments_without_functions, replaced, where_defined
from .assembled import appended_levels, assembled_format
from .identities import without_identities
from .lattice import cover, only_point
from .lattice_size import cases
from .nodes import Assign, Block, Program, Stmt, Where, Workspace, nest
from .ordering import LoopOrder, default_order
from .sharing import denominators, entries, shared_operand

MOST_DENOMINATORS = 4  # stored operands that one assignment divides by
MOST_CASES = 20  # cases that the loops of one nest distinguish; a sum with more is added up part by part
MOST_ADDENDS = 1024  # parts that such a sum may have at most
MOST_FUNCTION_CASES = 300  # cases with functions: five rows in one function have 211, six have 665 and take minutes to compile


@frozen
class Concretized:
    """The default program and what its names stand for.

    Attributes:
        program: the statement with its workspaces and conversions.
        formats: format of every tensor name in the statement, the result's included (as requested).
        sources: the user's name of every operand in the statement; they differ for ``+=``, where the given value of the
            result is read under another name.
    """

    program: Program
    formats: dict[str, Format]
    sources: dict[str, str]


def concretize(assignment: Assignment, formats: Mapping[str, Format], add: str = "+", multiply: str = "*") -> Concretized:
    """Return the default program of a checked assignment.

    Args:
        assignment: the expression.
        formats: a format for every tensor.
        add, multiply: operators of the semiring.
    """
    whole, known = started(assignment, formats)
    sources = {access.tensor: access.tensor for access in accesses(whole.value)}
    if assignment.operator == "+=":
        sources[initial_name(assignment)] = assignment.target.tensor
    names = FreshNames(names_of(whole))
    found = resolved(without_identities(whole.value, add, multiply), whole.target.indices, names.fresh)
    made = _made(whole.target, found, known, names, known[whole.target.tensor].is_dense)
    program = Program(made.statement, made.workspaces, conversions=tuple(made.conversions.items()), add=add, multiply=multiply)
    return Concretized(program, known, sources)


def started(assignment: Assignment, formats: Mapping[str, Format]) -> tuple[Assignment, dict[str, Format]]:
    """Return an assignment that reads the start value of ``+=`` as one more operand, and the formats with that of this operand."""
    if assignment.operator != "+=":
        return assignment, dict(formats)
    initial = Access(initial_name(assignment), assignment.target.subscripts)
    known = {**formats, initial.tensor: formats[assignment.target.tensor].whole}
    return Assignment(assignment.target, "=", Add((initial, assignment.value)), assignment.text), known


def initial_name(assignment: Assignment) -> str:
    """Return what programs and schedules call the given value of a result that is added to."""
    return fresh(f"{assignment.target.tensor}_initial", names_of(assignment))


@frozen
class _Made:
    """A statement with the workspaces and conversions that it needs."""

    statement: Stmt
    workspaces: tuple[Workspace, ...]
    conversions: Mapping[Access, Format]


def _made(target: Access, found: Resolved, formats: Mapping[str, Format], names: FreshNames, dense: bool) -> _Made:
    """Return the statement that computes an expression, after the statements that define its temporaries.

    ``dense`` tells whether the result that the user gets is dense: functions act on all entries then.
    """
    temporaries = [definition.target for definition in found.definitions]
    held = {access.tensor: dense_format(len(access.subscripts)) for access in (target, *temporaries)}
    builder = _Builder(target, acting(found.value, dense), {**held, **formats}, names)
    statement = builder.statement()
    if not found.definitions:
        return _Made(statement, tuple(builder.workspaces), builder.conversions)
    inner = [_made(each.target, Resolved(each.value, each.inner), formats, names, dense) for each in found.definitions]
    wanted = [Workspace(access.tensor, access.indices) for access in temporaries]
    whole, workspaces = where_defined(statement, [part.statement for part in inner], wanted)
    inside = tuple(workspace for part in inner for workspace in part.workspaces)
    conversions = {access: form for part in inner for access, form in part.conversions.items()}
    return _Made(whole, (*builder.workspaces, *workspaces, *inside), {**conversions, **builder.conversions})


class _Builder:
    """Builds the statement of one assignment and notes the workspaces and conversions it needs."""

    def __init__(self, target: Access, value: Expr, formats: dict[str, Format], names: FreshNames) -> None:
        self.target = target
        self.formats = formats
        self.names = names
        self.result = formats[target.tensor]
        self.left = tuple(target.subscripts[mode].index for mode in self.result.order)
        self.assembled = frozenset() if self.result.is_dense else frozenset(self.left)
        self.conversions: dict[Access, Format] = {}
        self.crowded = set[Expr]()
        self.parts = tuple(part for term in terms(value, frozenset(self.left)) for part in self.bounded(term))
        self.workspaces: list[Workspace] = []

    def statement(self) -> Stmt:
        orders = [self.order(part) for part in self.parts]
        for order in orders:
            self.conversions.update(order.conversions)
        if len(self.parts) == 1:
            return self.single(self.parts[0], orders[0].loops)
        return self.several(orders)

    def order(self, term: Term) -> LoopOrder:
        found = accesses(term.value)
        known = dict(self.formats)
        unsorted = [access for access in found if _unreadable(access, known[access.tensor], term, self.assembled, self.formats)]
        for access in unsorted:
            known[access.tensor] = known[access.tensor].sorted_levels()
        order = default_order(found, known, self.left, (*self.left, *indices(term.value)))
        sorted_first = tuple((access, known[access.tensor]) for access in unsorted)
        return LoopOrder(order.loops, (*sorted_first, *order.conversions))

    def bounded(self, term: Term) -> tuple[Term, ...]:
        """Return each addend of a term as a term where the loops over all of them would distinguish too many cases."""
        complete = self.result.is_dense and not term.reduced
        if cases(term.value, self.order(term).loops, self.formats, MOST_CASES, complete) <= MOST_CASES:
            return (term,)
        if (count := addend_count(term.value)) > MOST_ADDENDS:
            raise ExpressionError(
                f"products of sums of sparse operands are added up one by one: {count}, more than {MOST_ADDENDS}; compute it in parts"
            )
        pieces = tuple(Term(term.reduced, piece) for piece in distributed(term.value))
        self.crowded.update(piece.value for piece in pieces if has_functions(piece.value) and self.crowds(piece))
        return pieces

    def crowds(self, term: Term) -> bool:
        """Whether arguments of functions are read into scalars first, so that each argument has cases of its own only.

        A scalar does not tell whether anything was stored. Where the result depends on that, functions of too
        many sparse operands are refused.

        Raises:
            ExpressionError: so many that their cases would take minutes to compile.
        """
        dense = self.result.is_dense
        most = MOST_CASES if dense else MOST_FUNCTION_CASES
        if cases(term.value, self.order(term).loops, self.formats, most, dense and not term.reduced) <= most:
            return False
        if not dense:
            raise ExpressionError(
                f"'{show(term.value)}' meets more sparse operands in functions than one loop can tell apart; "
                "compute it in parts, the inner ones first"
            )
        return True

    def single(self, term: Term, loops: tuple[str, ...]) -> Stmt:
        operator = "+=" if term.reduced else "="
        scattered = self.scattered(term, loops)
        if not scattered:
            return nest(loops, self.assign(self.target, operator, term.value))
        prefix = loops[: min(loops.index(name) for name in term.reduced)]
        inner = tuple(name for name in loops if name not in prefix)
        workspace = self.workspace(tuple(name for name in self.left if name not in prefix))
        consumer = nest(workspace.indices, Assign(self.target, "=", self.read(workspace)))
        return nest(prefix, Where(consumer, nest(inner, self.assign(self.read(workspace), "+=", term.value))))

    def assign(self, target: Access, operator: str, value: Expr) -> Stmt:
        """Return an assignment; many stored operands that it divides by, or that functions take, are first read into scalars.

        Each of them is 0 where it is not stored, which is a case of its own, and the cases double with every one.
        """
        below: list[Expr] = [access for access in dict.fromkeys(denominators(value)) if self.sparse(access)]
        if len(below) <= MOST_DENOMINATORS:
            below = []
        if value in self.crowded:
            below += [part for part in dict.fromkeys(arguments_without_functions(value)) if any(map(self.sparse, accesses(part)))]
        if not below:
            return Assign(target, operator, value)
        scalars = {part: self.read(self.workspace(())) for part in below}
        producers = tuple(Assign(scalar, "+=", part) for part, scalar in scalars.items())
        consumed = replaced(value, scalars)
        return Where(Assign(target, operator, consumed), Block(producers))

    def sparse(self, access: Access) -> bool:
        return not self.formats[access.tensor].is_dense

    def scattered(self, term: Term, loops: tuple[str, ...]) -> bool:
        """Whether a reduction loop stands outside a loop over a level that the result cannot insert into."""
        if self.result.is_dense or not term.reduced:
            return False
        if shared_operand(self.target, self.result, term.value, self.formats) is not None:
            return False
        written = assembled_format(self.target, self.result, loops)
        first_reduction = min(loops.index(name) for name in term.reduced)
        return any(loops.index(self.target.subscripts[mode].index) > first_reduction for mode in written.order[: appended_levels(written)])

    def several(self, orders: list[LoopOrder]) -> Stmt:
        prefix = self.common_prefix(orders)
        inner = [tuple(name for name in order.loops if name not in prefix) for order in orders]
        rest = tuple(name for name in self.left if name not in prefix)
        own = [(loops, part.value) for loops, part in zip(inner, self.parts, strict=True)]
        if rest and self.result.is_dense:
            return nest(prefix, Block(tuple(nest(loops, self.assign(self.target, "+=", value)) for loops, value in own)))
        workspace = self.workspace(rest)
        producers = tuple(nest(loops, self.assign(self.read(workspace), "+=", value)) for loops, value in own)
        consumer = nest(rest, Assign(self.target, "=", self.read(workspace)))
        return nest(prefix, Where(consumer, Block(producers)))

    def common_prefix(self, orders: list[LoopOrder]) -> tuple[str, ...]:
        """Return the loops that all parts share; parts of one sum into a dense result need not meet in loops over coordinates."""
        prefix = []
        for place, name in enumerate(self.left):
            if any(order.loops[place] != name for order in orders) or (self.split and self.result.is_dense and self.stepped(name)):
                break
            prefix.append(name)
        return tuple(prefix)

    @property
    def split(self) -> bool:
        """Whether a sum was taken apart because its loops would distinguish too many cases."""
        return len({frozenset(part.reduced) for part in self.parts}) < len(self.parts)

    def stepped(self, index: str) -> bool:
        """Whether an operand stores the coordinates of an index."""
        return any(access.has_coordinates(index, self.formats[access.tensor]) for part in self.parts for access in accesses(part.value))

    def workspace(self, over: tuple[str, ...]) -> Workspace:
        workspace = Workspace(self.names.fresh("w" if over else "t"), over)
        self.workspaces.append(workspace)
        return workspace

    def read(self, workspace: Workspace) -> Access:
        return Access(workspace.name, tuple(index_subscript(name) for name in workspace.indices))


def _unreadable(access: Access, form: Format, term: Term, assembled: frozenset[str], formats: Mapping[str, Format]) -> bool:
    """Whether an operand has hashed levels that must come sorted, since the result is appended to or they are merged.

    In a product they are located while another operand is stepped through, or stepped through themselves.
    """
    unsorted = {access.subscripts[mode].index for mode, kind in zip(form.order, form.levels, strict=True) if not kind.ordered}
    if not unsorted:
        return False
    found = only_point(cover(entries(term.value, formats)))
    if found is None:
        return True
    ordered = {
        factor.subscripts[mode].index
        for factor in found
        for mode, kind in zip(formats[factor.tensor].order, formats[factor.tensor].levels, strict=True)
        if kind.steps_in_order
    }
    return not (unsorted & assembled) <= ordered
