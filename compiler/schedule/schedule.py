"""A schedule: the directives that turn the default program of an expression into another one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import ScheduleError

if TYPE_CHECKING:
    from .directives import Directive


class Schedule:
    """Directives in order. ``str`` gives text that parses back to an equal schedule; an empty text is the default schedule.

    Schedules are equal if their texts are equal: the same expression may have different trees.

    Args:
        directives: text, or directives, whose arguments are checked.

    Raises:
        ScheduleError: the text is not a schedule, or an argument is not of the right kind.
    """

    __slots__ = ("_text", "directives")
    _text: str  # set at its first use
    directives: tuple[Directive, ...]

    def __init__(self, directives: str | Sequence[Directive] | Schedule = ()) -> None:
        if isinstance(directives, str):
            found = _parsed(directives)
        elif isinstance(directives, Schedule):
            found = directives.directives
        else:
            found = _directives(directives)
        object.__setattr__(self, "directives", found)

    @classmethod
    def shown_as(cls, text: str) -> Schedule:
        """Return the schedule of a text from ``str``. It is parsed, and the parser imported, at the first use of its directives."""
        made = cls.__new__(cls)
        object.__setattr__(made, "_text", text)
        return made

    def __getattr__(self, name: str) -> Any:
        """Compute an attribute at its first use; Python calls this for missing attributes."""
        if name == "directives":
            found: Any = _parsed(object.__getattribute__(self, "_text"))
        elif name == "_text":
            from .text import show_directives

            found = show_directives(object.__getattribute__(self, "directives"))
        else:
            raise AttributeError(f"a schedule has no attribute {name!r}")
        object.__setattr__(self, name, found)
        return found

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a schedule does not change; make another one")

    def __reduce__(self) -> tuple[type[Schedule], tuple[str]]:
        return Schedule, (str(self),)

    def __str__(self) -> str:
        return self._text

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
        from .renaming import made_by

        found = (name for directive in self.directives for name in made_by(directive))
        return tuple(dict.fromkeys(found))

    def rename(self, mapping: Mapping[str, str], avoid: Iterable[str] = ()) -> Schedule:
        """Return the same schedule for an expression with other names.

        Args:
            mapping: the new names, by old ones, of indices, operands and names that the schedule introduces; other names
                stay.
            avoid: further names of that expression. Names that the schedule introduces itself are changed if they clash with these
                or with the new names.
        """
        from ..fresh import fresh
        from .renaming import renamed_directive

        taken = {*mapping.values(), *avoid}
        whole = dict(mapping)
        for name in self.made_names:
            if name in taken and name not in mapping:
                whole[name] = fresh(name, {*taken, *self.made_names, *whole.values()}, "_")
        return _of(tuple(renamed_directive(directive, whole) for directive in self.directives))


def canonical_names(schedule: Schedule, avoid: Iterable[str] = ()) -> Schedule:
    """Return a schedule in which the names that it introduces are d1, d2, ... in order of their introduction."""
    from ..fresh import numbered

    taken, names = set(avoid), dict[str, str]()
    for name in schedule.made_names:
        names[name] = numbered("d", taken)
        taken.add(names[name])
    return schedule.rename(names)


def _of(directives: tuple[Directive, ...]) -> Schedule:
    """Return a schedule of directives that are already checked, since they come from schedules."""
    made = Schedule.__new__(Schedule)
    object.__setattr__(made, "directives", directives)
    return made


def _parsed(text: str) -> tuple[Directive, ...]:
    from .text import parse_directives

    return parse_directives(text)


def _directives(given: Sequence[Directive]) -> tuple[Directive, ...]:
    if not isinstance(given, (tuple, list)):
        raise ScheduleError(f"a schedule is text such as 'split(i, i0, i1, 32)', or a list of directives, not {type(given).__name__}")
    from .arguments import checked

    return tuple(checked(directive, number) for number, directive in enumerate(given, 1))
