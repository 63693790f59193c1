"""What has a state says of which parts it is made, and has its methods by that."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
import pytest
from pyoxigraph import NamedNode

from oxiseq import engine
from oxiseq.engine.omissions import Omissions
from oxiseq.engine.terms.dictionary import AnyIds, TermDictionary
from oxiseq.engine.terms.saved import (
    KnownTerms,
    MadeOf,
    SameTerms,
    SavedTerms,
    State,
    Stateful,
    maybe,
    numbers,
    part,
    record,
    spread,
    unsaved,
    value,
)

FIRST = NamedNode("http://example.org/first")


class Ids(Stateful):
    """Some ids, and a method of its own for each thing."""

    def __init__(self, *ids: int) -> None:
        self.ids = np.array(ids, np.int64)

    def held_ids(self) -> Iterable[AnyIds]:
        return (self.ids,)

    def save(self, terms: SavedTerms) -> State:
        return {"ids": terms.ids(self.ids)}

    def restore(self, state: State, terms: KnownTerms) -> None:
        self.ids = numbers(terms.ids(state["ids"]))

    @property
    def bytes(self) -> int:
        return self.ids.nbytes


class Inner(Stateful):
    made_of = value("_last", maybe), spread("ids")

    def __init__(self, *ids: int) -> None:
        self._last: int | None = None
        self.ids = Ids(*ids)


class Outer(Stateful):
    made_of: ClassVar[MadeOf] = (
        value("_tick"),
        value("late", missing=7),
        record("omitted", Omissions, missing=None),
        part("inner", "of it"),
        part("none"),
        part("several"),
        part("named"),
        unsaved("scratch.ids"),
    )

    def __init__(self, *ids: int) -> None:
        self._tick = self.late = 0
        self.omitted = Omissions()
        self.inner, self.none = Inner(*ids), None
        self.several, self.named = [Ids(*ids), Ids()], {"a": Ids(*ids)}
        self.scratch = Inner(5)


def made(terms: TermDictionary) -> Outer:
    """One that has seen something."""
    one = Outer(terms.intern(FIRST))
    one._tick, one.late, one.inner._last, one.omitted = 3, 4, 5, Omissions(2, ("why",))
    return one


def saved(terms: TermDictionary) -> State:
    """The state of such a one."""
    one = made(terms)
    return one.save(SavedTerms(terms))


def test_parts_are_saved_by_their_names() -> None:
    terms = TermDictionary()
    state = saved(terms)
    assert {**state, "of it": None, "several": len(state["several"]), "named": len(state["named"])} == {
        "tick": 3,
        "late": 4,
        "omitted": {"count": 2, "last": ("why",), "over": False},
        "of it": None,
        "none": None,
        "several": 2,
        "named": 1,
    }
    assert state["of it"] == {"last": 5, "ids": state["of it"]["ids"]}


def test_a_restored_one_is_as_before_with_ids_of_its_dictionary() -> None:
    terms, others = TermDictionary(), TermDictionary()
    others.intern(NamedNode("http://example.org/other"))
    one, named = made(terms), SavedTerms(terms)
    state = one.save(named)
    again = Outer()
    again.restore(state, KnownTerms(named.state(), others))
    assert (again._tick, again.late, again.inner._last, again.omitted) == (3, 4, 5, Omissions(2, ("why",)))
    parts = [again.inner.ids, again.several[0], again.named["a"]]
    assert [others.term(int(each.ids[0])) for each in parts] == [FIRST] * 3
    assert len(again.several[1].ids) == 0


def test_what_an_earlier_version_has_not_saved_is_as_it_was_then() -> None:
    terms = TermDictionary()
    state = saved(terms)
    del state["late"], state["omitted"]
    again = Outer()
    again.restore(state, SameTerms(terms))
    assert (again.late, again.omitted) == (7, Omissions())


@pytest.mark.parametrize("name", ["tick", "of it", "several"])
def test_a_state_that_lacks_a_part_is_another_versions(name: str) -> None:
    terms = TermDictionary()
    state = saved(terms)
    del state[name]
    with pytest.raises(KeyError):
        Outer().restore(state, SameTerms(terms))


def test_parts_of_another_number_are_refused() -> None:
    terms = TermDictionary()
    state = saved(terms)
    state["several"].pop()
    with pytest.raises(ValueError, match="zip"):
        Outer().restore(state, SameTerms(terms))


def test_ids_and_bytes_are_those_of_all_parts_also_of_those_that_are_not_saved() -> None:
    one = Outer(2, 3)
    assert sorted(int(i) for ids in one.held_ids() for i in ids) == [2, 2, 2, 3, 3, 3, 5]
    assert one.bytes == 7 * 8


# --- all of the engine ---------------------------------------------------------------------------------


def _all() -> Iterator[type[Stateful]]:
    """The engine's classes that have a state."""
    for module in pkgutil.walk_packages(engine.__path__, "oxiseq.engine."):
        importlib.import_module(module.name)
    left = [Stateful]
    while left:
        for each in left.pop().__subclasses__():
            left.append(each)
            if each.__module__.startswith("oxiseq.engine"):
                yield each


def _has(owner: type[Any], name: str) -> bool:
    """Whether instances have an attribute: classes define it, or methods assign it."""
    if any(name in vars(each) for each in owner.__mro__):
        return True
    assigned = re.compile(rf"self\.{name}\b[^\n]*(?<![=!<>])=(?!=)")
    return any(assigned.search(inspect.getsource(each)) for each in owner.__mro__ if "oxiseq" in each.__module__)


def test_parts_are_attributes_and_have_names_of_their_own() -> None:
    found, seen = [], 0
    for owner in _all():
        names = [each.name for each in owner.made_of if each.name]
        if len({*names}) < len(names):
            found.append(f"{owner.__qualname__}: two parts of a name: {names}")
        for each in owner.made_of:
            seen += 1
            if not _has(owner, each.attribute.split(".")[0]):
                found.append(f"{owner.__qualname__} has no {each.attribute}")
    assert seen > 90
    assert not found, "\n".join(found)
