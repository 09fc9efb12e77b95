"""Places in a program: paths, which users write; addresses, which the code uses; and how loops are found.

An address is the sequence of child numbers from the root to a statement, as in ``Stmt.children`` (the consumer of a ``Where`` is
child 0). A path leaves out loops, and counts as in the text of schedules: the producer of a ``where`` is 0, the consumer 1;
in a block it is the number of a statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain as chained

from ..concrete.nodes import Assign, Block, Forall, Stmt, Where
from ..notation.nodes import Access
from .rules import Rule, refuse

Address = tuple[int, ...]


def at(statement: Stmt, address: Address) -> Stmt:
    """Return the statement at an address."""
    for child in address:
        statement = statement.children[child]
    return statement


def put(statement: Stmt, address: Address, new: Stmt) -> Stmt:
    """Return the program with another statement at an address."""
    if not address:
        return new
    children = list(statement.children)
    children[address[0]] = put(children[address[0]], address[1:], new)
    return statement.rebuild(tuple(children))


def frames(statement: Stmt, address: Address) -> tuple[Stmt, ...]:
    """Return the statements from the root down to an address, without the one at the address."""
    found = []
    for child in address:
        found.append(statement)
        statement = statement.children[child]
    return tuple(found)


def enclosing_loops(statement: Stmt, address: Address) -> tuple[str, ...]:
    """Return the indices of the loops around an address, outermost first."""
    found = list[str]()
    for child in address:
        if isinstance(statement, Forall):
            found.append(statement.index)
        statement = statement.children[child]
    return tuple(found)


def everywhere(statement: Stmt) -> Iterator[tuple[Address, Stmt]]:
    """Yield every statement with its address, parents first."""
    return chained([((), statement)], statement.inside)


def leaves(statement: Stmt) -> Iterator[tuple[Address, Assign]]:
    """Yield every assignment with its address."""
    return ((address, found) for address, found in everywhere(statement) if isinstance(found, Assign))


def executed(statement: Stmt, address: Address = ()) -> Iterator[tuple[Address, Assign]]:
    """Yield the assignments with their addresses, in the order in which they run: producers before their consumers."""
    if isinstance(statement, Assign):
        yield address, statement
        return
    places = range(len(statement.children))
    for place in reversed(places) if isinstance(statement, Where) else places:
        yield from executed(statement.children[place], (*address, place))


def body_address(statement: Stmt, address: Address) -> Address:
    """Return the address below all directly nested loops that begin at an address."""
    while isinstance(at(statement, address), Forall):
        address = (*address, 0)
    return address


def chain(statement: Stmt, address: Address) -> tuple[str, ...]:
    """Return the indices of the directly nested loops that begin at an address."""
    return enclosing_loops(at(statement, address), body_address(at(statement, address), ()))


def follow(statement: Stmt, path: Sequence[int]) -> Address:
    """Return the address to which a directive's path leads."""
    address: Address = ()
    for depth, number in enumerate(path):
        address = body_address(statement, address)
        found = at(statement, address)
        if isinstance(found, Where) and number in (0, 1):
            address = (*address, 1 - number)
        elif isinstance(found, Block) and number < len(found.statements):
            address = (*address, number)
        else:
            there = list(path[: depth + 1])
            what = "a where has a producer 0 and a consumer 1" if isinstance(found, Where) else _holding(found)
            refuse(Rule.NAMES_EXIST, f"path {there} leads nowhere: {what}")
    return address


def path_to(statement: Stmt, address: Address) -> tuple[int, ...]:
    """Return the path for which ``follow`` gives the nest of loops that contains an address."""
    path = []
    for depth, frame in enumerate(frames(statement, address)):
        if isinstance(frame, Where):
            path.append(1 - address[depth])
        elif isinstance(frame, Block):
            path.append(address[depth])
    return tuple(path)


def _holding(found: Stmt) -> str:
    if isinstance(found, Block):
        return f"the block has statements 0 to {len(found.statements) - 1}"
    return "the nest before it ends in an assignment"


def find_loop(statement: Stmt, index: str, path: Sequence[int] | None) -> Address:
    """Return the address of the loop that a directive names.

    The directly nested loops at the path (or at the root without a path) are searched first; below them the index must be unique.
    """
    start = follow(statement, path or ())
    found = [address for address, node in everywhere(at(statement, start)) if isinstance(node, Forall) and node.index == index]
    outer = set(range(len(chain(statement, start))))
    nested = [address for address in found if len(address) in outer and not any(address)]
    candidates = nested or found
    if not candidates:
        here = dict.fromkeys(node.index for _, node in everywhere(at(statement, start)) if isinstance(node, Forall))
        where = f" at path {list(path)}" if path is not None else ""
        refuse(Rule.NAMES_EXIST, f"there is no loop {index}{where}; the loops are {', '.join(here) or 'none'}")
    if len(candidates) > 1:
        where = show_paths(statement, ((*start, *address) for address in candidates))
        refuse(Rule.NAMES_UNIQUE, f"there are {len(candidates)} loops {index}; say which by a path: {where}")
    return (*start, *candidates[0])


def show_paths(statement: Stmt, addresses: Iterable[Address]) -> str:
    """Return the paths to some addresses for a message: ``[0] or [1, 0]``."""
    return " or ".join(dict.fromkeys(str(list(path_to(statement, address))) for address in addresses))


def accesses_meant(wanted: Access, found: Iterable[Access]) -> list[Access]:
    """Return the accesses that a directive names, either by the text of one access or by the name of a tensor."""
    return [
        access
        for access in dict.fromkeys(found)
        if access.tensor == wanted.tensor and (not wanted.subscripts or access.subscripts == wanted.subscripts)
    ]
