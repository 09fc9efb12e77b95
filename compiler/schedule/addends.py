"""Directives for how the right-hand side is summed: ``addends``, and ``accumulate`` for one workspace.

The addends say where products are distributed over sums. Addends are summed in one assignment or one after another. A sum over its own
indices may go into a workspace, which a later addend reads (Ahrens et al., section 6.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..concrete.applied import acting
from ..concrete.nodes import Assign, Block, Program, Stmt, Workspace, assignments, nest, transform
from ..concrete.ordering import default_order
from ..errors import ExpressionError
from ..notation import nodes as notation
from ..notation.functions import has_functions
from ..notation.nodes import Access, Add, Assignment, Expr, Sum, accesses, index_subscript
from ..notation.printer import show
from ..notation.terms import Term, terms
from . import directives as d
from .context import Context, check_new
from .rules import Rule, refuse
from .sequences import arranged
from .summed import pieces, sum_of, with_meanings, workspace_meanings


def addends(program: Program, directive: d.Addends, context: Context) -> Program:
    """Write the right-hand side as a sum of given addends, each in loops of its own, in the default order."""
    if program.relations:
        refuse(Rule.ADDENDS_FIRST, "loops are transformed already; addends comes before what changes loops")
    target, known = _summed(program)
    inner = any(has_functions(term.value) for term in known)
    given = tuple(_acting(part, context.types[target.tensor].is_dense) for part in directive.addends) if inner else directive.addends
    named = {part.target.tensor: part for part in given if isinstance(part, Assignment)}
    bare = Program(Block(tuple(Assign(target, "=", term.value) for term in known)))
    check_new(tuple(part.target.tensor for part in given if isinstance(part, Assignment)), bare)
    wanted = _meaning(given, named, frozenset(target.indices), inner)
    _check_same(known, wanted)
    plain = [part for part in given if not isinstance(part, Assignment)]
    made = [_named_nest(part, target, context) for part in named.values()]
    roots = [_root(part, target, len(plain) > 1, context) for part in plain]
    workspaces = tuple(Workspace(part.target.tensor, part.target.indices) for part in named.values())
    return replace(program, statement=arranged((*made, *roots), {target.tensor}), workspaces=workspaces)


def _acting(part: Expr | Assignment, dense: bool) -> Expr | Assignment:
    """Return an addend whose functions are marked to act on all coordinates, or only on stored ones."""
    return replace(part, value=acting(part.value, dense)) if isinstance(part, Assignment) else acting(part, dense)


def _summed(program: Program) -> tuple[Access, list[Term]]:
    """Return the left side of a default program, and the terms that it sums, including those in workspaces that it only copies."""
    local = {space.name for space in program.workspaces}
    target = next(assign.target for assign in assignments(program.statement) if assign.target.tensor not in local)
    free = frozenset(target.indices)
    if any(has_functions(assign.value) for assign in assignments(program.statement)):
        meanings = workspace_meanings(program)
        values = [with_meanings(assign.value, meanings) for assign in assignments(program.statement) if assign.target == target]
        return target, [Term(part.over, part.operand) if isinstance(part, Sum) else _bare(part, free) for part in _parts(values)]
    found = []
    for assign in assignments(program.statement):
        handed_on = isinstance(assign.value, Access) and assign.value.tensor in local
        if handed_on:
            continue
        if any(access.tensor in local for access in accesses(assign.value)):
            refuse(Rule.ADDENDS_FIRST, "parts are in workspaces already; addends comes before precompute and loopfuse")
        found.append(_bare(assign.value, free))
    return target, found


def _parts(values: Sequence[Expr]) -> Iterator[Expr]:
    """Yield the addends of sums of sums."""
    for value in values:
        yield from _parts(value.operands) if isinstance(value, Add) else (value,)


def _bare(value: Expr, free: frozenset[str]) -> Term:
    return Term(tuple(name for name in notation.unbound(value) if name not in free), value)


def _meaning(given: Sequence[Expr | Assignment], named: Mapping[str, Assignment], left: frozenset[str], inner: bool) -> list[Term]:
    """Return the sums that the addends mean. With ``inner``, functions may read workspaces."""
    found: list[Term] = []
    used: Counter[str] = Counter()
    meanings: dict[str, Expr] = {}
    for part in given:
        if isinstance(part, Assignment):
            _check_named(part, named, left, inner)
            kept = frozenset(part.target.indices)
            term = _term(part.value, kept if inner else left, show(part.target))
            used.update(access.tensor for access in accesses(part.value) if access.tensor in named)
            meanings[part.target.tensor] = sum_of(with_meanings(part.value, meanings), kept)
            if not inner:
                found.append(term)
            continue
        operands = part.operands if isinstance(part, Add) else (part,)
        mine = [operand for operand in operands if _is_named(operand, named)]
        used.update(access.tensor for operand in operands for access in accesses(operand) if access.tensor in named)
        rest = [operand for operand in operands if not _is_named(operand, named)]
        if not inner and any(access.tensor in named for operand in rest for access in accesses(operand)):
            refuse(Rule.ADDENDS_SAME, f"in {show(part)} a workspace is no addend of its own; it may only be added as it is")
        if rest:
            term = _term(rest[0] if len(rest) == 1 else Add(tuple(rest)), left, show(part))
            if mine and term.reduced:
                refuse(Rule.ADDENDS_SAME, f"the sum over {term.reduced[0]} in {show(part)} would add {show(mine[0])} as often; name it")
            found.append(Term(term.reduced, with_meanings(term.value, meanings)))
        if inner:
            found += [_bare(value, left) for value in _parts([with_meanings(operand, meanings) for operand in mine])]
    for name in named:
        if used[name] != 1:
            refuse(Rule.ADDENDS_SAME, f"{name} is added {used[name]} times; every workspace is an addend of one later addend")
    return found


def _is_named(operand: Expr, named: Mapping[str, Assignment]) -> bool:
    return isinstance(operand, Access) and operand.tensor in named and operand.subscripts == named[operand.tensor].target.subscripts


def _check_named(part: Assignment, named: Mapping[str, Assignment], left: frozenset[str], inner: bool) -> None:
    free = frozenset(notation.indices(part.value)) & left
    target = frozenset(part.target.indices)
    fits = free <= target <= frozenset(notation.indices(part.value)) if inner else target == free
    if part.operator != "=" or not part.target.is_plain or not fits:
        wanted = show(Access(part.target.tensor, tuple(index_subscript(name) for name in notation.indices(part.value) if name in left)))
        refuse(Rule.ADDENDS_SAME, f"{show(part.target)} {part.operator} {show(part.value)} is written {wanted} = {show(part.value)}")
    if not inner and any(access.tensor in named for access in accesses(part.value)):
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
    ours, theirs = (Counter(text for term in side for text in pieces(term)) for side in (known, wanted))
    if ours != theirs:
        more, less = sorted((theirs - ours).elements()), sorted((ours - theirs).elements())
        what = f"{more[0]} is not in the right-hand side" if more else f"{less[0]} is missing"
        refuse(Rule.ADDENDS_SAME, f"the addends do not sum up to the right-hand side: distributed, {what}")


def _named_nest(part: Assignment, target: Access, context: Context) -> Stmt:
    kept = part.target.indices
    left = (*(name for name in target.indices if name in kept), *(name for name in kept if name not in target.indices))
    loops = _loops(part.value, left, context)
    return nest(loops, Assign(part.target, "+=" if set(loops) - set(left) else "=", part.value))


def _root(part: Expr, target: Access, several: bool, context: Context) -> Stmt:
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
    """Let assignments add to a workspace, which starts with the identity of addition, even if every component is written only once."""
    name = directive.workspace
    if name not in {space.name for space in program.workspaces}:
        names = ", ".join(space.name for space in program.workspaces)
        refuse(Rule.NAMES_EXIST, f"there is no workspace {name}; the workspaces are {names or 'none'}")

    def rule(node: Stmt) -> Stmt | None:
        return replace(node, operator="+=") if isinstance(node, Assign) and node.target.tensor == name else None

    return replace(program, statement=transform(program.statement, rule))
