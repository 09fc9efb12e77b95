"""Frozen classes behave as those that ``dataclasses`` makes."""

from __future__ import annotations

import inspect
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, FrozenInstanceError, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import pytest
from sparsetune.compiler.frozen import FEW, frozen


@frozen
class Point:
    x: int
    y: int = 2
    names: list[str] = field(default_factory=list, compare=False)

    @cached_property
    def total(self) -> int:
        return self.x + self.y


@frozen
class Named(Point):
    """A point with a name."""

    name: str = "p"
    length: int = field(init=False, repr=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", len(self.name))


@dataclass(frozen=True)
class Plain(Named):
    depth: int = 0


@frozen(eq=False, repr=False, kw_only=True)
class Settings:
    deep: bool
    most: int = 3


@frozen
class Counted:
    made: ClassVar[int] = 0
    x: int
    _: KW_ONLY
    label: str = "a"


def test_types_are_told_as_they_are_written_and_what_is_no_field_is_none() -> None:
    assert [(entry.name, entry.type) for entry in fields(Counted)] == [("x", "int"), ("label", "str")]
    assert Counted.__annotations__ == {"made": "ClassVar[int]", "x": "int", "_": "KW_ONLY", "label": "str"}
    assert {entry.name: entry.type for entry in fields(Named)} == {
        "x": "int", "y": "int", "names": "list[str]", "name": "str", "length": "int",
    }  # fmt: skip
    assert (Counted(3), Counted.made) == (Counted(3, label="a"), 0)
    with pytest.raises(TypeError):
        Counted(3, "a")  # type: ignore[misc]


def test_fields_defaults_and_factories() -> None:
    one, other = Point(1), Point(1, y=2, names=["a"])
    assert (one.x, one.y, one.names, one.total) == (1, 2, [], 3)
    assert one.names is not Point(1).names
    assert one == other
    assert hash(one) == hash(other)
    assert one != Point(2)
    assert one != Named(1)
    assert repr(other) == "Point(x=1, y=2, names=['a'])"
    assert [entry.name for entry in fields(Named)] == ["x", "y", "names", "name", "length"]
    assert replace(one, y=5) == Point(1, 5)
    assert pickle.loads(pickle.dumps(other)).names == ["a"]
    match one:
        case Point(x, y):
            assert (x, y) == (1, 2)


@pytest.mark.parametrize("one", [Point(1), Named(1), Plain(1), Settings(deep=True)])
def test_objects_keep_what_they_have(one: Any) -> None:
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        one.x = 3
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del one.x


def test_classes_that_follow_others() -> None:
    one = Named(1, name="abc")
    assert one.length == 3
    assert repr(one) == "Named(x=1, y=2, names=[], name='abc')"
    below = Plain(1, name="ab", depth=4)
    assert (below.length, below.depth) == (2, 4)
    assert below == Plain(1, 2, ["b"], "ab", 4)


def test_signatures_are_those_of_the_fields() -> None:
    assert list(inspect.signature(Plain).parameters) == ["x", "y", "names", "name", "depth"]
    assert inspect.signature(Named).parameters["name"].default == "p"
    assert inspect.signature(Settings).parameters["deep"].kind is inspect.Parameter.KEYWORD_ONLY
    assert Settings(deep=True) != Settings(deep=True)
    with pytest.raises(TypeError, match="positional argument"):
        Settings(True)  # type: ignore[misc]  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match=r"Point.__init__\(\) missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    ("given", "named", "reason"),
    [
        ((), {}, "missing 1 required positional argument: 'x'"),
        ((1, 2, [], 4), {}, "takes from 2 to 4 positional arguments but 5 were given"),
        ((1,), {"x": 2}, "got multiple values for argument 'x'"),
        ((1,), {"z": 2}, "got an unexpected keyword argument 'z'"),
    ],
)
@pytest.mark.parametrize("made", [0, 2 * FEW])
def test_the_first_objects_are_as_all_others(made: int, given: tuple[Any, ...], named: dict[str, Any], reason: str) -> None:
    @frozen
    class Place:
        x: int
        y: int = 2
        names: list[str] = field(default_factory=list)
        total: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "total", self.x + self.y)

    before = [Place(count, names=["a"]) for count in range(made)]
    assert [one.total for one in before] == [count + 2 for count in range(made)]
    with pytest.raises(TypeError, match=reason):
        Place(*given, **named)
    assert Place(3).names == []
    assert Place(3) == Place(y=2, x=3)
    assert Place(3, 4, ["b"]).total == 7


def _members(types: dict[str, Any]) -> dict[str, Any]:
    """Members of a class whose types are not written as text."""
    extra = {"z": field(default=3, compare=False, kw_only=True), "names": field(default_factory=list, repr=False)}
    return {"__annotations__": types, "__module__": __name__, "__doc__": "", "y": 2, "shared": 5, **extra}


def test_fields_are_those_that_dataclasses_finds() -> None:
    types = {"x": int, "y": int, "shared": ClassVar[int], "z": int, "names": list[str], "_": KW_ONLY, "w": float}
    ours: Any = frozen(type("Ours", (), _members(types)))
    theirs: Any = dataclass(frozen=True)(type("Theirs", (), _members(types)))
    assert [repr(entry) for entry in fields(ours)] == [repr(entry) for entry in fields(theirs)]
    assert ours.__match_args__ == theirs.__match_args__ == ("x", "y", "names")
    told = [[(one.name, one.kind) for one in inspect.signature(made).parameters.values()] for made in (ours, theirs)]
    assert told[0] == told[1]
    assert not hasattr(ours, "names")
    assert (ours.y, ours.z, ours.shared) == (2, 3, 5)


def test_defaults_that_could_change_are_refused() -> None:
    with pytest.raises(ValueError, match="mutable default"):
        fields(frozen(type("Wrong", (), {"__annotations__": {"x": list}, "x": []})))


def test_to_make_and_show_objects_fields_need_not_be_found() -> None:
    @frozen
    class Made:
        x: int
        y: int = 2

    assert repr(Made(1)).endswith("Made(x=1, y=2)")
    assert (Made(1, 3).y, Made(y=4, x=1).x) == (3, 1)
    assert not isinstance(vars(Made)["__dataclass_fields__"], dict)
    with pytest.raises(TypeError, match="missing 1 required"):
        Made()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword"):
        Made(1, z=3)  # type: ignore[call-arg]

    @frozen
    class Shown(Made):
        hidden: int = field(default=3, repr=False)

    assert repr(Shown(1)).endswith("Shown(x=1, y=2)")

    @frozen
    class Quiet:
        x: int
        made: ClassVar[int] = 0

    assert repr(Quiet(1)).endswith("Quiet(x=1)")


def test_fields_of_a_class_are_found_when_somebody_asks() -> None:
    @frozen
    class Base:
        x: int
        y: int = 2

    @frozen
    class Below(Base):
        z: int = 3

    assert not isinstance(vars(Base)["__dataclass_fields__"], dict)
    match Below(1):
        case Below(x, y, z):
            assert (x, y, z) == (1, 2, 3)
    assert isinstance(vars(Base)["__dataclass_fields__"], dict)
    assert Below(1) == Below(1, 2, 3)
    assert len({Below(1), Below(1), Below(2)}) == 2
    assert Below.__match_args__ == ("x", "y", "z")


def test_threads_find_the_fields_of_a_class_once() -> None:
    for _ in range(20):

        @frozen
        class Place:
            x: int
            y: int = 2

        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(Place, range(16)))
        assert [hash(one) for one in made] == [hash(Place(count)) for count in range(16)]
        assert made == [Place(count) for count in range(16)]
