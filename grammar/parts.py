"""The parts of an algebra, at any depth: those of one kind, all of them changed, and what is asked of them again and
again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass, replace
from functools import cache, wraps
from operator import attrgetter, is_
from typing import Any, Final, TypeAlias, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")
_MOST_KNOWN: Final = 1024
"""Of parts that a function is called once for."""


def parts(value: object, kind: type[T], without: type | tuple[type, ...] = ()) -> Iterator[T]:
    """`value` and all in it that is of this kind, each before what is in it; nothing in what is of a kind `without`."""
    of: Any = kind
    known, waiting = _facts(of, without), [value]
    while waiting:
        each = waiting.pop()
        its: Any = type(each)
        if its not in known:
            known[its] = _fact(its, kind, without)
        wanted, inside = known[its]
        if wanted:
            yield cast(T, each)
        if inside is not None:
            waiting += inside(each)


def changed(value: T, change: Callable[[Any], Any]) -> T:
    """`value` with `change` made of all that is in it, then of itself; what does not change stays the same object."""
    return cast(T, _changed(value, change))


def _changed(value: Any, change: Callable[[Any], Any]) -> Any:
    if is_dataclass(value):
        before = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        after = {name: _changed(part, change) for name, part in before.items()}
        new = {name: part for name, part in after.items() if part is not before[name]}
        return change(replace(value, **new) if new else value)  # type: ignore[type-var]  # it is no class
    if type(value) is tuple:
        several = tuple([_changed(each, change) for each in value])
        return value if all(map(is_, several, value)) else several
    return change(value)


def once(function: Callable[[T], R]) -> Callable[[T], R]:
    """A function of a part, called once for each: checks and compiler ask for the same. Parts never change, and are
    told apart by identity."""
    known: dict[int, tuple[T, R]] = {}

    @wraps(function)
    def called(part: T) -> R:
        found = known.get(id(part))
        if found is None or found[0] is not part:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            found = known[id(part)] = part, function(part)
        return found[1]

    return called


_Inside: TypeAlias = Callable[[Any], Sequence[object]]


@cache
def _facts(kind: type, without: type | tuple[type, ...]) -> dict[type, tuple[bool, _Inside | None]]:
    """What `parts` knows of types when it looks for this kind: whether they are of it, and what is in them."""
    return {}


def _fact(its: Any, kind: type, without: type | tuple[type, ...]) -> tuple[bool, _Inside | None]:
    return (False, None) if issubclass(its, without) else (issubclass(its, kind), _inside(its))


@cache
def _inside(kind: type) -> _Inside | None:
    """What a value of this type consists of, the last first; None: it has no parts."""
    if is_dataclass(kind):
        names = [each.name for each in reversed(fields(kind)) if each.compare]  # no span, no text
        if len(names) > 1:
            return attrgetter(*names)  # of several names it gives a tuple
        return lambda value: [getattr(value, name) for name in names]
    if issubclass(kind, Mapping):
        return lambda value: [*value.values()][::-1]
    return (lambda value: [*value][::-1]) if issubclass(kind, tuple | list | frozenset) else None


def components(items: Sequence[T], keys: Callable[[T], Set[Hashable]]) -> list[list[T]]:
    """The items in lists of those that share keys, directly or by way of others; one without keys is alone."""
    found: list[tuple[Set[Hashable], list[T]]] = []
    for item in items:
        mine = keys(item)
        near = [each for each in found if not mine.isdisjoint(each[0])]
        found = [each for each in found if mine.isdisjoint(each[0])]
        found.append((frozenset(mine).union(*(k for k, _ in near)), [*(one for _, ones in near for one in ones), item]))
    return [ones for _, ones in found]
