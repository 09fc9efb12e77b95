"""Frozen dataclasses of which little is generated, so that importing them is quick.

``dataclasses`` writes and compiles the source of six methods for each class, which takes most of the time until a first kernel. How
objects are compared, hashed, shown and kept from changing hangs on the names of their fields alone, so that all classes share these
methods here; ``__init__``, which does not, is written when a class has made its first few objects: of most classes a program makes none,
or hardly any, and these are filled by going through their fields. These are found when somebody asks for them, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, MISSING, Field, FrozenInstanceError, dataclass, field, fields
from functools import partial
from inspect import get_annotations
from operator import attrgetter
from threading import RLock
from types import MethodType
from typing import Any, ClassVar, TypeVar, dataclass_transform, get_origin, overload

T = TypeVar("T")

FEW = 24
"""Objects of a class that are made before its ``__init__`` is written, which takes as long as filling some dozens of them."""

_FIELDS = "__dataclass_fields__"
_FOUND = (_FIELDS, "__dataclass_params__", "__match_args__")
_finding = RLock()  # those of bases are found meanwhile


@overload
def frozen(made: type[T], /) -> type[T]: ...
@overload
def frozen(*, eq: bool = True, repr: bool = True, kw_only: bool = False) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(made: type[Any] | None = None, /, *, eq: bool = True, repr: bool = True, kw_only: bool = False) -> Any:
    """Return a class as ``dataclass(frozen=True)`` does; methods that it has itself are kept. Fields of type ``InitVar`` are not known."""

    def decorate(made: type[Any]) -> type[Any]:
        return _frozen(made, eq, repr, kw_only)

    return decorate if made is None else decorate(made)


def _frozen(made: type[Any], eq: bool, repr: bool, kw_only: bool) -> type[Any]:
    own = dict(made.__dict__)
    made.__doc__ = made.__doc__ or made.__name__  # else ``dataclass`` would make the signature
    follows = any(_FIELDS in base.__dict__ for base in made.__mro__[1:])
    methods: dict[str, Any] = {"__init__": _Initializer(made)}
    if not follows:
        methods |= {"__setattr__": _set, "__delattr__": _deleted}
    if eq:
        methods |= _comparing(made)
    if repr:
        methods["__repr__"] = _shown
    for name, method in methods.items():
        if own.get(name) is None:  # a class that says how it is compared has None for its hash
            setattr(made, name, method)
    if any(isinstance(value, Field) for value in own.values()):  # which are no defaults that anyone could read
        _find_fields(made, kw_only)
    else:
        for name in _FOUND:
            setattr(made, name, _Later(made, name, kw_only))
    return made


class _Later:
    """What is found with the fields of a class, when it is first asked for: many classes are imported and never used."""

    def __init__(self, owner: type[Any], name: str, kw_only: bool) -> None:
        self.owner, self.name, self.kw_only = owner, name, kw_only

    def __get__(self, one: object, kind: type[Any] | None = None) -> Any:
        with _finding:
            if self.owner.__dict__[self.name] is self:  # else another thread has found them meanwhile
                _find_fields(self.owner, self.kw_only)
        return getattr(self.owner, self.name)


@dataclass(init=False, repr=False, eq=False, match_args=False)
class _Sample:
    """A class that shows how ``dataclasses`` marks its own."""

    field: int


_MARK: Any = fields(_Sample)[0]
_PARAMETERS: Any = vars(_Sample)["__dataclass_params__"]
_PARAMETERS.frozen = True


def _find_fields(made: type[Any], kw_only: bool) -> None:
    """Find the fields of a class: as ``dataclass`` does, which takes four times as long for what it does beside."""
    with _finding:
        found: dict[str, Any] = {}
        for base in reversed(made.__mro__[1:]):
            found |= getattr(base, _FIELDS, {})
        for name, kind in get_annotations(made).items():
            word = _word(kind)
            kw_only = kw_only or word == "KW_ONLY"
            if word not in ("ClassVar", "KW_ONLY"):
                found[name] = _field(made, name, kind, kw_only)
        made.__dataclass_fields__, made.__dataclass_params__ = found, _PARAMETERS
        made.__match_args__ = tuple(entry.name for entry in found.values() if entry.init and not entry.kw_only)


def _field(made: type[Any], name: str, kind: object, kw_only: bool) -> Any:
    """Return a field of a class, which gets the default of it as an attribute, or none."""
    value = getattr(made, name, MISSING)
    entry: Any = value if isinstance(value, Field) else field(default=value)
    entry.name, entry.type, entry._field_type = name, kind, _MARK._field_type
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
    """Return the name of what an annotation is, which is mostly written as text; empty for other types that are not."""
    if isinstance(kind, str):
        return kind.partition("[")[0].rpartition(".")[2]
    return "KW_ONLY" if kind is KW_ONLY else "ClassVar" if ClassVar in (kind, get_origin(kind)) else ""


def _comparing(owner: type[Any]) -> dict[str, Any]:
    """Return how objects of a class are compared and hashed, which is written when two are compared, or one is hashed, first."""

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
    """Return what gives the values of some attributes of an object."""
    if len(names) > 1:
        return attrgetter(*names)
    return (lambda one: (getattr(one, names[0]),)) if names else lambda one: ()


def _shown(one: Any) -> str:
    shown = ", ".join(f"{entry.name}={getattr(one, entry.name)!r}" for entry in fields(one) if entry.repr)
    return f"{type(one).__qualname__}({shown})"


def _set(one: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _deleted(one: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


class _Initializer:
    """``__init__`` of a class until somebody asks for it, or ``FEW`` objects are made."""

    def __init__(self, owner: type[Any]) -> None:
        self.owner, self.left = owner, FEW
        self.plan: _Plan | None = None

    def __get__(self, one: object, kind: type[Any] | None = None) -> Any:
        if one is not None and self.left and not isinstance(one, type):  # a class is what ``inspect`` of Python 3.13 comes with
            self.left -= 1
            return partial(self._fill, one)
        return self._write(one)

    def _fill(self, one: Any, /, *given: Any, **named: Any) -> None:
        """Give an object its fields; what does not fit them is refused by the written ``__init__``."""
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
    """How objects of a class are filled: names of arguments by place, what others are by default, and those that all have."""

    def __init__(self, owner: type[Any]) -> None:
        entries = fields(owner)
        self.names = tuple(entry.name for entry in entries if entry.init and entry.kw_only is not True)
        self.defaults = {entry.name: entry.default for entry in entries if entry.init and entry.default is not MISSING}
        self.factories = tuple((entry.name, entry.default_factory) for entry in entries if entry.default_factory is not MISSING)
        self.all = {entry.name for entry in entries if entry.init} | {name for name, _ in self.factories}
        self.goes_on = hasattr(owner, "__post_init__")


def _written(owner: type[Any]) -> Any:
    """Return the ``__init__`` of a class, which is written as ``dataclass`` writes it."""
    known: dict[str, Any] = {"_missing": MISSING}
    parameters: dict[bool, list[str]] = {False: [], True: []}
    steps = []
    for entry in fields(owner):
        name, value = entry.name, entry.name
        if entry.default_factory is not MISSING:
            known[f"_new_{name}"] = entry.default_factory
            value = f"_new_{name}() if {name} is _missing else {name}" if entry.init else f"_new_{name}()"
        elif not entry.init:
            continue  # the class has its value, or __post_init__ gives it one
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
    exec(f"def __init__({head}):\n  " + "\n  ".join(steps or ["pass"]), known)  # names of fields, nothing that anyone gives
    written = known["__init__"]
    written.__qualname__ = f"{owner.__qualname__}.__init__"
    written.__annotations__ = {entry.name: entry.type for entry in fields(owner) if entry.init} | {"return": None}
    return written
