"""Frozen dataclasses of which little is generated, so that importing them is quick.

``dataclasses`` writes and compiles the source of six methods for each class, which takes most of the time until a first kernel. How
objects are compared, hashed, shown and kept from changing hangs on the names of their fields alone, so that all classes share these
methods here; ``__init__``, which does not, is written when a class has made its first few objects: of most classes a program makes none,
or hardly any, and these are filled by going through their fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields, is_dataclass
from functools import partial
from inspect import get_annotations
from operator import attrgetter
from threading import Lock
from types import MethodType
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")

FEW = 6
"""Objects of a class that are made before its ``__init__`` is written, which takes as long as filling a dozen of them."""

_thawed = Lock()  # for as long as the bases of a class are taken for ones that may change


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
    bases: list[Any] = [base for base in made.__mro__[1:] if is_dataclass(base)]
    with _thawed:  # a class with frozen bases has to be frozen, and ``dataclass`` would write methods that it inherits from these
        for base in bases:
            base.__dataclass_params__.frozen = False
        whole = _with_fields(made, kw_only)
        for one in (whole, *bases):
            one.__dataclass_params__.frozen = True
    methods: dict[str, Any] = {"__init__": _Initializer(whole)}
    if not bases:
        methods |= {"__setattr__": _set, "__delattr__": _deleted}
    if eq:
        methods |= _comparing(whole)
    if repr:
        methods["__repr__"] = _shown
    for name, method in methods.items():
        if own.get(name) is None:  # a class that says how it is compared has None for its hash
            setattr(whole, name, method)
    return whole


def _with_fields(made: type[Any], kw_only: bool) -> type[Any]:
    """Return a class with its fields found. Types that are written as text are kept from ``dataclass`` meanwhile, which looks into each
    three times for what is no plain field."""
    told = get_annotations(made)
    plain = {name: object for name, kind in told.items() if isinstance(kind, str) and "ClassVar" not in kind and "KW_ONLY" not in kind}
    made.__annotations__ = told | plain
    whole = dataclass(init=False, eq=False, repr=False, kw_only=kw_only)(made)
    made.__annotations__ = told
    for name, entry in whole.__dataclass_fields__.items():
        if name in plain:
            entry.type = told[name]
    return whole


def _comparing(whole: type[Any]) -> dict[str, Any]:
    values = _values(tuple(entry.name for entry in fields(whole) if entry.compare))

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
        self.entries: tuple[Field[Any], ...] = ()

    def __get__(self, one: object, kind: type[Any] | None = None) -> Any:
        if one is not None and self.left:
            self.left -= 1
            return partial(self._fill, one)
        return self._write(one)

    def _fill(self, one: Any, /, *given: Any, **named: Any) -> None:
        """Give an object its fields; what does not fit them is refused by the written ``__init__``."""
        self.entries = self.entries or fields(self.owner)
        in_order = (entry.name for entry in self.entries if entry.init and entry.kw_only is not True)
        values = {**dict(zip(in_order, given, strict=False)), **named}
        fits = len(values) == len(given) + len(named)
        for entry in self.entries:
            if entry.init and entry.name in values:
                value = values.pop(entry.name)
            elif entry.default_factory is not MISSING:
                value = entry.default_factory()
            elif entry.init and entry.default is not MISSING:
                value = entry.default
            else:  # __post_init__ gives it a value, or nobody does
                fits = fits and not entry.init
                continue
            object.__setattr__(one, entry.name, value)
        if values or not fits:
            self._write(one)(*given, **named)
        elif hasattr(self.owner, "__post_init__"):
            one.__post_init__()

    def _write(self, one: object) -> Any:
        written = _written(self.owner)
        self.owner.__init__ = written
        return written if one is None else MethodType(written, one)


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
