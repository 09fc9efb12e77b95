"""Frozen dataclasses that generate little code, so that importing them is quick.

``dataclasses`` writes and compiles the source of six methods for each class, which takes most of the time until a first kernel. The
methods that compare, hash, show and freeze objects depend only on the names of their fields, so that all classes share them here. Only
``__init__`` is written for each class, once the class has made its first few objects; until then objects are filled by going through
their fields. Most classes make few objects or none in a program. The fields of a class, too, are found only when they are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, MISSING, Field, FrozenInstanceError, dataclass, field, fields
from functools import cache, cached_property, partial
from inspect import get_annotations
from operator import attrgetter
from threading import RLock
from types import MethodType
from typing import Any, ClassVar, TypeVar, dataclass_transform, get_origin, overload

T = TypeVar("T")

FEW = 24
"""Objects that a class makes before its ``__init__`` is written; writing it takes as long as filling some dozens of objects."""

_FIELDS = "__dataclass_fields__"
_FOUND = (_FIELDS, "__dataclass_params__", "__match_args__")
_finding = RLock()  # finding the fields of a class also finds those of its bases


@overload
def frozen(made: type[T], /) -> type[T]: ...
@overload
def frozen(*, eq: bool = True, repr: bool = True, kw_only: bool = False) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(made: type[Any] | None = None, /, *, eq: bool = True, repr: bool = True, kw_only: bool = False) -> Any:
    """Return a class as ``dataclass(frozen=True)`` does. Methods that it defines itself are kept. ``InitVar`` fields are not supported."""

    def decorate(made: type[Any]) -> type[Any]:
        return _frozen(made, eq, repr, kw_only)

    return decorate if made is None else decorate(made)


def _frozen(made: type[Any], eq: bool, repr: bool, kw_only: bool) -> type[Any]:
    own = dict(made.__dict__)
    made.__doc__ = made.__doc__ or made.__name__  # otherwise ``dataclass`` would compute the signature for it
    follows = any(_FIELDS in base.__dict__ for base in made.__mro__[1:])
    methods: dict[str, Any] = {"__init__": _Initializer(made)}
    if not follows:
        methods |= {"__setattr__": _set, "__delattr__": _deleted}
    if eq:
        methods |= _comparing(made)
    if repr:
        methods["__repr__"] = _shown
    for name, method in methods.items():
        if own.get(name) is None:  # a class that defines __eq__ has None for __hash__
            setattr(made, name, method)
    if any(isinstance(value, Field) for value in own.values()):  # a Field object must not be left as the class attribute
        _find_fields(made, kw_only)
    else:
        for name in _FOUND:
            setattr(made, name, _Later(made, name, kw_only))
    return made


class _Later:
    """An attribute that dataclasses have, found when it is first read: many classes are imported and never used."""

    def __init__(self, owner: type[Any], name: str, kw_only: bool) -> None:
        self.owner, self.name, self.kw_only = owner, name, kw_only

    def __get__(self, one: object, kind: type[Any] | None = None) -> Any:
        with _finding:
            if self.owner.__dict__[self.name] is self:  # otherwise another thread has found them
                _find_fields(self.owner, self.kw_only)
        return getattr(self.owner, self.name)

    @cached_property
    def plain(self) -> dict[str, Any] | None:
        """The fields of the class with their defaults, told by its annotations: to find its fields takes as long as importing it. None
        where annotations are not all that tells."""
        if self.kw_only or any(_FIELDS in base.__dict__ for base in self.owner.__mro__[1:]):
            return None
        found: dict[str, Any] = {}
        for name, kind in get_annotations(self.owner).items():
            default = found[name] = getattr(self.owner, name, MISSING)
            if default.__class__.__hash__ is None or _word(kind) in ("ClassVar", "KW_ONLY"):
                return None
        return found


def _plain(owner: type[Any]) -> dict[str, Any] | None:
    """Return the fields of a class with their defaults; None where they are found already, or more than annotations tells of them."""
    later = owner.__dict__.get(_FIELDS)
    return later.plain if isinstance(later, _Later) else None


@cache
def _markers() -> tuple[Any, Any]:
    """Return what marks an attribute as a field, and the parameters of a frozen class, both of a class that ``dataclasses`` makes."""

    @dataclass(init=False, repr=False, eq=False, match_args=False)
    class Sample:
        field: int

    entry: Any = fields(Sample)[0]
    parameters: Any = vars(Sample)["__dataclass_params__"]
    parameters.frozen = True
    return entry._field_type, parameters


def _find_fields(made: type[Any], kw_only: bool) -> None:
    """Find the fields of a class. ``dataclass`` finds the same, but takes four times as long."""
    with _finding:
        found: dict[str, Any] = {}
        for base in reversed(made.__mro__[1:]):
            found |= getattr(base, _FIELDS, {})
        for name, kind in get_annotations(made).items():
            word = _word(kind)
            kw_only = kw_only or word == "KW_ONLY"
            if word not in ("ClassVar", "KW_ONLY"):
                found[name] = _field(made, name, kind, kw_only)
        made.__dataclass_fields__, made.__dataclass_params__ = found, _markers()[1]
        made.__match_args__ = tuple(entry.name for entry in found.values() if entry.init and not entry.kw_only)


def _field(made: type[Any], name: str, kind: object, kw_only: bool) -> Any:
    """Return a field of a class, and leave its default, if it has one, as the attribute of the class."""
    value = getattr(made, name, MISSING)
    entry: Any = value if isinstance(value, Field) else field(default=value)
    entry.name, entry.type, entry._field_type = name, kind, _markers()[0]
    if entry.kw_only is MISSING:
        entry.kw_only = kw_only
    if entry.default.__class__.__hash__ is None:
        raise ValueError(f"mutable default for field {name} of {made.__name__}; use default_factory")
    if entry is value and entry.default is MISSING:
        delattr(made, name)
    elif entry is value:
        setattr(made, name, entry.default)
    return entry


def _word(kind: object) -> str:
    """Return the name of the type in an annotation, which is mostly text; empty for other annotations that are not text."""
    if isinstance(kind, str):
        return kind.partition("[")[0].rpartition(".")[2]
    return "KW_ONLY" if kind is KW_ONLY else "ClassVar" if ClassVar in (kind, get_origin(kind)) else ""


def _comparing(owner: type[Any]) -> dict[str, Any]:
    """Return the methods that compare and hash objects of a class. They are made when they are first called."""

    def equal(one: object, other: object) -> bool:
        return written()["__eq__"](one, other)

    def hashed(one: object) -> int:
        return written()["__hash__"](one)

    first = {"__eq__": equal, "__hash__": hashed}

    def written() -> dict[str, Any]:
        methods = _compared_by(_values(tuple(entry.name for entry in fields(owner) if entry.compare)))
        for name, method in methods.items():
            if owner.__dict__.get(name) is first[name]:
                setattr(owner, name, method)
        return methods

    return first


def _compared_by(values: Callable[[Any], tuple[Any, ...]]) -> dict[str, Any]:
    def equal(one: object, other: object) -> bool:
        if one is other:
            return True
        return values(one) == values(other) if other.__class__ is one.__class__ else NotImplemented

    def hashed(one: object) -> int:
        return hash(values(one))

    return {"__eq__": equal, "__hash__": hashed}


def _values(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that gives the values of some attributes of an object."""
    if len(names) > 1:
        return attrgetter(*names)
    return (lambda one: (getattr(one, names[0]),)) if names else lambda one: ()


def _shown(one: Any) -> str:
    names = _plain(type(one)) or [entry.name for entry in fields(one) if entry.repr]
    shown = ", ".join(f"{name}={getattr(one, name)!r}" for name in names)
    return f"{type(one).__qualname__}({shown})"


def _set(one: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _deleted(one: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


class _Initializer:
    """Stands for ``__init__`` of a class until ``FEW`` objects are made, or until the method itself is read from the class."""

    def __init__(self, owner: type[Any]) -> None:
        self.owner, self.left = owner, FEW
        self.plan: _Plan | None = None

    def __get__(self, one: object, kind: type[Any] | None = None) -> Any:
        if one is not None and self.left and not isinstance(one, type):  # ``inspect`` of Python 3.13 passes the class
            self.left -= 1
            return partial(self._fill, one)
        return self._write(one)

    def _fill(self, one: Any, /, *given: Any, **named: Any) -> None:
        """Give an object its fields. Arguments that do not fit go to the written ``__init__``, which refuses them."""
        plan = self.plan = self.plan or _Plan(self.owner)
        values = {**plan.defaults, **dict(zip(plan.names, given, strict=False)), **named}
        for name, factory in plan.factories:
            if name not in values:
                values[name] = factory()
        twice = len(given) > len(plan.names) or (named and not named.keys().isdisjoint(plan.names[: len(given)]))
        if twice or values.keys() != plan.all:
            self._write(one)(*given, **named)
            return
        one.__dict__.update(values)
        if plan.goes_on:
            one.__post_init__()

    def _write(self, one: object) -> Any:
        written = _written(self.owner)
        self.owner.__init__ = written
        return written if one is None else MethodType(written, one)


class _Plan:
    """How objects of a class are filled: the names of arguments by place, the defaults, and the default factories."""

    def __init__(self, owner: type[Any]) -> None:
        self.goes_on = hasattr(owner, "__post_init__")
        if (plain := _plain(owner)) is not None:
            self.names, self.factories, self.all = tuple(plain), (), plain.keys()
            self.defaults = {name: default for name, default in plain.items() if default is not MISSING}
            return
        entries = fields(owner)
        self.names = tuple(entry.name for entry in entries if entry.init and entry.kw_only is not True)
        self.defaults = {entry.name: entry.default for entry in entries if entry.init and entry.default is not MISSING}
        self.factories = tuple((entry.name, entry.default_factory) for entry in entries if entry.default_factory is not MISSING)
        self.all = {entry.name for entry in entries if entry.init} | {name for name, _ in self.factories}


def _written(owner: type[Any]) -> Any:
    """Write the ``__init__`` of a class as ``dataclass`` would, and return it."""
    known: dict[str, Any] = {"_missing": MISSING}
    parameters: dict[bool, list[str]] = {False: [], True: []}
    steps = []
    for entry in fields(owner):
        name, value = entry.name, entry.name
        if entry.default_factory is not MISSING:
            known[f"_new_{name}"] = entry.default_factory
            value = f"_new_{name}() if {name} is _missing else {name}" if entry.init else f"_new_{name}()"
        elif not entry.init:
            continue  # its value is the class's, or __post_init__ sets it
        elif entry.default is not MISSING:
            known[f"_default_{name}"] = entry.default
        steps.append(f"_held[{name!r}] = {value}")
        if entry.init:
            default = f"_default_{name}" if f"_default_{name}" in known else "_missing" if f"_new_{name}" in known else ""
            parameters[entry.kw_only is True].append(f"{name}={default}" if default else name)
    if steps:
        steps.insert(0, "_held = self.__dict__")  # assigning there takes half as long as ``object.__setattr__``
    if hasattr(owner, "__post_init__"):
        steps.append("self.__post_init__()")
    star = ["*"] if parameters[True] else []
    head = ", ".join(["self", *parameters[False], *star, *parameters[True]])
    exec(f"def __init__({head}):\n  " + "\n  ".join(steps or ["pass"]), known)  # made of names of fields only
    written = known["__init__"]
    written.__qualname__ = f"{owner.__qualname__}.__init__"
    written.__annotations__ = {entry.name: entry.type for entry in fields(owner) if entry.init} | {"return": None}
    return written
