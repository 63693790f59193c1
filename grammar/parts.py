"""The parts of an algebra that are of one kind, at any depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def parts(value: object, kind: type[T]) -> Iterator[T]:
    """`value` and all in it that is of this kind, each before what is in it."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, kind):
            yield each
        its: Any = type(each)
        if (inside := _inside(its)) is not None:
            waiting.extend(reversed(inside(each)))


@cache
def _inside(kind: type) -> Callable[[Any], list[object]] | None:
    """What a value of this type consists of; None: it has no parts."""
    if is_dataclass(kind):
        names = [each.name for each in fields(kind)]
        return lambda value: [getattr(value, name) for name in names]
    if issubclass(kind, Mapping):
        return lambda value: list(value.values())
    return list if issubclass(kind, tuple | list | frozenset) else None
