"""Directives that say how the right-hand side is summed: ``addends``, and ``accumulate`` for one workspace.

Products are distributed over sums where the addends say so, addends are summed in one assignment or one after another, and what is
summed over indices of its own may go into a workspace that a later addend adds (Ahrens et al., section 6.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..concrete.nodes import Assign, Block, Program, Stmt, Workspace, assignments, nest, transform
from ..concrete.ordering import default_order
from ..errors import ExpressionError
from ..notation import nodes as notation
from ..notation.functions import has_functions
from ..notation.nodes import Access, Add, Assignment, Expr, accesses, index_subscript
from ..notation.order_free import flattened, order_free_text
from ..notation.printer import show
from ..notation.terms import Term, addend_count, distributed, terms
from . import directives as d
from .context import Context, check_new
from .rules import Rule, refuse
from .sequences import arranged

MOST_PIECES = 4096
"""Addends that products of sums may be distributed to, to see whether two sums are the same; they double with every factor."""


def addends(program: Program, directive: d.Addends, context: Context) -> Program:
    """Write the right-hand side as a sum of given addends, each in loops of its own, in the default order."""
    target, known = _summed(program)
    if any(has_functions(term.value) for term in known):
        refuse(Rule.ADDENDS_SAME, "functions do not distribute over sums; take parts of their arguments with precompute")
    if program.relations:
        refuse(Rule.ADDENDS_FIRST, "loops are transformed already; addends comes before what changes loops")
    named = {part.target.tensor: part for part in directive.addends if isinstance(part, Assignment)}
    bare = Program(Block(tuple(Assign(target, "=", term.value) for term in known)))
    check_new(tuple(part.target.tensor for part in directive.addends if isinstance(part, Assignment)), bare)
    left = frozenset(target.indices)
    wanted = _meaning(directive, named, left)
    _check_same(known, wanted)
    plain = [part for part in directive.addends if not isinstance(part, Assignment)]
    made = [_named_nest(part, target, context) for part in named.values()]
    roots = [_root(part, named, target, len(plain) > 1, context) for part in plain]
    workspaces = tuple(Workspace(part.target.tensor, part.target.indices) for part in named.values())
    return replace(program, statement=arranged((*made, *roots), {target.tensor}), workspaces=workspaces)


def _summed(program: Program) -> tuple[Access, list[Term]]:
    """Return the left side of a default program, and the terms that it sums: those of workspaces that are only handed on."""
    local = {space.name for space in program.workspaces}
    target = next(assign.target for assign in assignments(program.statement) if assign.target.tensor not in local)
    found = []
    for assign in assignments(program.statement):
        handed_on = isinstance(assign.value, Access) and assign.value.tensor in local
        if handed_on:
            continue
        if any(access.tensor in local for access in accesses(assign.value)):
            refuse(Rule.ADDENDS_FIRST, "parts are in workspaces already; addends comes before precompute and loopfuse")
        free = frozenset(target.indices)
        found.append(Term(tuple(name for name in notation.indices(assign.value) if name not in free), assign.value))
    return target, found


def _meaning(directive: d.Addends, named: Mapping[str, Assignment], left: frozenset[str]) -> list[Term]:
    """Return the sums that the addends stand for."""
    found: list[Term] = []
    used: Counter[str] = Counter()
    for part in directive.addends:
        if isinstance(part, Assignment):
            _check_named(part, named, left)
            found.append(_term(part.value, left, show(part.target)))
            continue
        operands = part.operands if isinstance(part, Add) else (part,)
        mine = [operand for operand in operands if _is_named(operand, named)]
        used.update(operand.tensor for operand in mine if isinstance(operand, Access))
        rest = [operand for operand in operands if not _is_named(operand, named)]
        if any(access.tensor in named for operand in rest for access in accesses(operand)):
            refuse(Rule.ADDENDS_SAME, f"in {show(part)} a workspace is no addend of its own; it may only be added as it is")
        if rest:
            term = _term(rest[0] if len(rest) == 1 else Add(tuple(rest)), left, show(part))
            if mine and term.reduced:
                refuse(Rule.ADDENDS_SAME, f"the sum over {term.reduced[0]} in {show(part)} would add {show(mine[0])} as often; name it")
            found.append(term)
    for name in named:
        if used[name] != 1:
            refuse(Rule.ADDENDS_SAME, f"{name} is added {used[name]} times; every workspace is an addend of one later addend")
    return found


def _is_named(operand: Expr, named: Mapping[str, Assignment]) -> bool:
    return isinstance(operand, Access) and operand.tensor in named and operand.subscripts == named[operand.tensor].target.subscripts


def _check_named(part: Assignment, named: Mapping[str, Assignment], left: frozenset[str]) -> None:
    free = frozenset(notation.indices(part.value)) & left
    if part.operator != "=" or not part.target.is_plain or frozenset(part.target.indices) != free:
        wanted = show(Access(part.target.tensor, tuple(index_subscript(name) for name in notation.indices(part.value) if name in left)))
        refuse(Rule.ADDENDS_SAME, f"{show(part.target)} {part.operator} {show(part.value)} is written {wanted} = {show(part.value)}")
    if any(access.tensor in named for access in accesses(part.value)):
        refuse(Rule.ADDENDS_SAME, f"{show(part.value)} reads a workspace of addends; take parts of products with precompute")


def _term(value: Expr, left: frozenset[str], where: str) -> Term:
    try:
        found = terms(value, left)
    except ExpressionError as error:
        refuse(Rule.ADDENDS_SAME, str(error))
    first, *others = found
    if others:
        over = " and ".join(", ".join(term.reduced) or "nothing" for term in found[:2])
        refuse(Rule.ADDENDS_SAME, f"parts of {where} are summed over {over}; write them as addends of their own")
    return Term(first.reduced, value)


def _check_same(known: Sequence[Term], wanted: Sequence[Term]) -> None:
    ours, theirs = (Counter(text for term in side for text in _pieces(term)) for side in (known, wanted))
    if ours != theirs:
        more, less = sorted((theirs - ours).elements()), sorted((ours - theirs).elements())
        what = f"{more[0]} is not in the right-hand side" if more else f"{less[0]} is missing"
        refuse(Rule.ADDENDS_SAME, f"the addends do not sum up to the right-hand side: distributed, {what}")


def _pieces(term: Term) -> Iterator[str]:
    if addend_count(term.value) > MOST_PIECES:
        refuse(Rule.ADDENDS_SAME, f"the products of sums in {show(term.value)[:40]}... have more than {MOST_PIECES} addends")
    for piece in distributed(term.value):
        text = order_free_text(flattened(piece))
        yield f"the sum over {', '.join(sorted(term.reduced))} of {text}" if term.reduced else text


def _named_nest(part: Assignment, target: Access, context: Context) -> Stmt:
    left = tuple(name for name in target.indices if name in part.target.indices)
    loops = _loops(part.value, left, context)
    return nest(loops, Assign(part.target, "+=" if set(loops) - set(left) else "=", part.value))


def _root(part: Expr, named: Mapping[str, Assignment], target: Access, several: bool, context: Context) -> Stmt:
    form = context.types[target.tensor]
    left = tuple(target.subscripts[mode].index for mode in form.order)
    loops = _loops(part, left, context)
    return nest(loops, Assign(target, "+=" if several or set(loops) - set(left) else "=", part))


def _loops(value: Expr, left: Sequence[str], context: Context) -> tuple[str, ...]:
    """Return the default order of loops around an assignment, for operands in the formats that they are converted to."""
    found = [access for access in accesses(value) if access.tensor in context.types]
    keyed = [replace(access, tensor=f"#{place}") for place, access in enumerate(found)]
    formats = {f"#{place}": form for place, access in enumerate(found) if (form := context.format_of(access)) is not None}
    return default_order(keyed, formats, left, (*left, *notation.indices(value))).loops


def accumulate(program: Program, directive: d.Accumulate, context: Context) -> Program:
    """Add to a workspace, which starts at the identity of add, also where every component is written once."""
    name = directive.workspace
    if name not in {space.name for space in program.workspaces}:
        names = ", ".join(space.name for space in program.workspaces)
        refuse(Rule.NAMES_EXIST, f"there is no workspace {name}; the workspaces are {names or 'none'}")

    def rule(node: Stmt) -> Stmt | None:
        return replace(node, operator="+=") if isinstance(node, Assign) and node.target.tensor == name else None

    return replace(program, statement=transform(program.statement, rule))
