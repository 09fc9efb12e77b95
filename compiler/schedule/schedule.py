"""A schedule: the directives that turn the default program of an expression into another one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..errors import ScheduleError
from ..notation.nodes import Access, Affine, Assignment, Expr, transform
from .arguments import checked
from .directives import Directive
from .text import parse_directives, show_directives


class Schedule:
    """Directives in order. ``str`` gives text that parses back to an equal schedule; empty is the default schedule.

    Schedules are equal if their texts are: an expression may be written as several trees.

    Args:
        directives: text, or directives, whose arguments are checked.

    Raises:
        ScheduleError: the text is not a schedule, or an argument is not what its directive takes.
    """

    __slots__ = ("directives",)
    directives: tuple[Directive, ...]

    def __init__(self, directives: str | Sequence[Directive] | Schedule = ()) -> None:
        if isinstance(directives, str):
            found = parse_directives(directives)
        elif isinstance(directives, Schedule):
            found = directives.directives
        else:
            found = _directives(directives)
        object.__setattr__(self, "directives", found)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a schedule does not change; make another one")

    def __reduce__(self) -> tuple[type[Schedule], tuple[str]]:
        return Schedule, (str(self),)

    def __str__(self) -> str:
        return show_directives(self.directives)

    def __repr__(self) -> str:
        return f"Schedule({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Schedule) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    def __len__(self) -> int:
        return len(self.directives)

    def __iter__(self) -> Iterator[Directive]:
        return iter(self.directives)

    def __add__(self, other: Schedule) -> Schedule:
        return _of((*self.directives, *other.directives))

    @property
    def made_names(self) -> tuple[str, ...]:
        """The names that the directives introduce, each once."""
        found = (name for directive in self.directives for name in _made(directive))
        return tuple(dict.fromkeys(found))

    def rename(self, mapping: Mapping[str, str], avoid: Iterable[str] = ()) -> Schedule:
        """Return the same schedule for an expression with other names.

        Args:
            mapping: new names of indices, operands and names that the schedule introduces, by their old ones; names that
                are not in it stay.
            avoid: further names of that expression. Names that the schedule introduces itself give way to them and to the
                new names.
        """
        taken = {*mapping.values(), *avoid}
        whole = dict(mapping)
        for name in self.made_names:
            if name in taken and name not in mapping:
                whole[name] = _fresh(name, {*taken, *self.made_names, *whole.values()})
        return _of(tuple(_rename(directive, whole) for directive in self.directives))


def canonical_names(schedule: Schedule, avoid: Iterable[str] = ()) -> Schedule:
    """Return a schedule whose own names are d1, d2, ... in the order in which they are made, whatever they were before."""
    taken, names, count = set(avoid), {}, 0
    for name in schedule.made_names:
        count += 1
        while f"d{count}" in taken:
            count += 1
        names[name] = f"d{count}"
    return schedule.rename(names)


def _of(directives: tuple[Directive, ...]) -> Schedule:
    """Return a schedule of directives that come from schedules."""
    made = Schedule()
    object.__setattr__(made, "directives", directives)
    return made


def _directives(given: Sequence[Directive]) -> tuple[Directive, ...]:
    if not isinstance(given, (tuple, list)):
        raise ScheduleError(f"a schedule is text such as 'split(i, i0, i1, 32)', or a list of directives, not {type(given).__name__}")
    return tuple(checked(directive, number) for number, directive in enumerate(given, 1))


def _made(directive: Directive) -> Iterator[str]:
    for parameter in directive.parameters:
        value = getattr(directive, parameter.field)
        if parameter.kind == "new":
            yield value
        elif parameter.kind == "news":
            kept = getattr(directive, "indices", ())
            yield from (name for name in value if name not in kept)
        elif parameter.kind == "addend":
            yield from (part.target.tensor for part in value if isinstance(part, Assignment))


def _fresh(name: str, taken: set[str]) -> str:
    count = 1
    while f"{name}_{count}" in taken:
        count += 1
    return f"{name}_{count}"


def _rename(directive: Directive, names: Mapping[str, str]) -> Directive:
    changes = {}
    for parameter in directive.parameters:
        if parameter.kind in ("index", "name", "new", "indices", "news", "expression", "addend", "access"):
            changes[parameter.field] = _renamed(getattr(directive, parameter.field), names)
    return replace(directive, **changes)


def _renamed(value: object, names: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, tuple):
        return tuple(_renamed(item, names) for item in value)
    if isinstance(value, Assignment):
        target = rename_expression(value.target, names)
        assert isinstance(target, Access)
        return Assignment(target, value.operator, rename_expression(value.value, names))
    return rename_expression(value, names) if isinstance(value, Expr) else value


def rename_expression(value: Expr, names: Mapping[str, str]) -> Expr:
    """Return an expression with other names of tensors and indices; names that are not in the mapping stay."""
    return transform(value, lambda node: _renamed_access(node, names) if isinstance(node, Access) else None)


def _renamed_access(access: Access, names: Mapping[str, str]) -> Access:
    subscripts = tuple(
        Affine(tuple((names.get(name, name), coefficient) for name, coefficient in subscript.terms), subscript.constant)
        for subscript in access.subscripts
    )
    return Access(names.get(access.tensor, access.tensor), subscripts, access.protocols, span=access.span)
