"""A dataclass whose methods are made later is what `dataclasses` makes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
import weakref
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from oxiseq.grammar import records

FORMS: Any = [
    {},
    {"slots": True},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "eq": False},
    {"frozen": True, "slots": True, "kw_only": True},
    {"slots": True, "weakref_slot": True},
]
"""How a class is asked for."""


def classes(form: dict[str, bool], dataclass: Callable[..., Any]) -> tuple[type, type, type]:
    """A class, one that derives from it, and one that has methods of its own."""

    @dataclass(**form)
    class Base:
        """Two fields, and one that nobody sees."""

        kind: ClassVar[str] = "base"
        a: int
        b: list[int] = field(default_factory=list)
        c: str = field(default="c", repr=False, compare=False)

        def __post_init__(self) -> None:
            if self.a == 13:
                raise ValueError("thirteen")

    @dataclass(**form)
    class Derived(Base):
        """One more field."""

        d: float = 0.5
        e: int = field(default=7, init=False)

    @dataclass(**form)
    class Own:
        """It says what it is."""

        x: int = 3

        def __repr__(self) -> str:
            return "own"

        def __hash__(self) -> int:
            return 17

    return Base, Derived, Own


def done(action: Callable[[], object]) -> object:
    """What it gives or how it fails; a TypeError by its kind alone."""
    try:
        return action()
    except (FrozenInstanceError, ValueError) as error:
        return type(error), str(error)
    except (TypeError, AttributeError) as error:
        return TypeError if isinstance(error, TypeError) else AttributeError


def facts(form: dict[str, bool], made: tuple[type, type, type]) -> list[object]:
    """All that can be seen of the classes and their instances."""
    base, derived, own = made
    one, two = base(a=1, b=[2]), derived(a=1, b=[2], d=1.5)
    seen: list[object] = [
        [(f.name, f.type, f.init, f.repr, f.compare, f.kw_only) for f in fields(derived)],
        [getattr(each, "__match_args__", None) for each in made],
        [getattr(each, "__slots__", None) for each in made],
        [each.__doc__ for each in made],
        [repr(each) for each in (one, two, own())] if form.get("eq", True) else repr(own()),
        (one == base(a=1, b=[2]), one == base(a=1, b=[3]), one == base(a=1, b=[2], c="d"), one == two, one == 1),
        [
            done(lambda: hash(one) == hash(base(a=1, b=[2]))),
            hash(own()),
            done(lambda: len({hash(each) for each in (derived(a=1, b=()), derived(a=1, b=()))})),  # both are alive
        ],
        [done(lambda: base(13)), done(lambda: base(a=13)), done(lambda: base(1, 2, 3, 4)), done(lambda: derived())],
        [done(lambda: setattr(one, "a", 3)), done(lambda: delattr(one, "c"))],
        done(lambda: setattr(one, "z", 3)) is None,  # Python's own raises TypeError for a frozen one with slots
        [done(lambda: setattr(own(), "x", 3)), done(lambda: delattr(own(), "x"))],
        asdict(replace(two, a=4, b=[9])),
        asdict(copy.deepcopy(two)),
        asdict(copy.copy(two)),
        done(lambda: isinstance(weakref.ref(one), weakref.ref)),
        [base.__init__.__qualname__, base.__init__.__doc__, derived.__init__.__module__],
    ]
    return seen


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_it_is_what_dataclasses_makes(form: dict[str, bool]) -> None:
    ours, theirs = (facts(form, classes(form, each)) for each in (records.dataclass, dataclasses.dataclass))
    assert ours == theirs


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_a_signature_is_known_before_the_first_instance(form: dict[str, bool]) -> None:
    ours, theirs = (classes(form, each) for each in (records.dataclass, dataclasses.dataclass))
    assert list(map(inspect.signature, ours)) == list(map(inspect.signature, theirs))

    class Further(ours[0]):  # type: ignore[name-defined,misc]
        """With another way to make it."""

        def __init__(self, first: int) -> None:
            super().__init__(a=first)

    assert list(inspect.signature(Further).parameters) == ["first"]


def test_methods_are_made_once_each_when_they_are_called() -> None:
    @records.dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: int = 0

    before = {name: vars(Point)[name] for name in ("__init__", "__repr__", "__eq__", "__hash__")}
    first = before["__init__"]
    assert Point(1) == Point(1, 0)
    made = vars(Point)["__init__"]
    assert made is not first and vars(Point)["__eq__"] is not before["__eq__"]
    assert vars(Point)["__repr__"] is before["__repr__"] and vars(Point)["__hash__"] is before["__hash__"]
    other = object.__new__(Point)
    first(other, 5)  # whoever has kept it may call it
    assert other == Point(5) and vars(Point)["__init__"] is made


@records.dataclass(frozen=True, slots=True)
class Pickled:
    """At a module's level."""

    x: int
    y: tuple[int, ...] = ()


def test_a_frozen_one_is_pickled() -> None:
    assert pickle.loads(pickle.dumps(Pickled(1, (2,)))) == Pickled(1, (2,))


def test_all_of_ours_are_made_so() -> None:
    root, theirs = Path(__file__).parents[2], re.compile(r"from dataclasses import .*\bdataclass\b")
    files = (file for folder in ("engine", "grammar", "kb_loader", "plugin") for file in (root / folder).rglob("*.py"))
    found = {file.relative_to(root).as_posix() for file in files if theirs.search(file.read_text(encoding="utf-8"))}
    assert found == {"grammar/records.py"}
