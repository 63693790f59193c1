"""The parts of an algebra that are of one kind, at any depth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import TypeVar

T = TypeVar("T")


def parts(value: object, kind: type[T]) -> Iterator[T]:
    """`value` and all in it that is of this kind, each before what is in it."""
    if isinstance(value, kind):
        yield value
    inner: Iterable[object] = ()
    if is_dataclass(value):
        inner = [getattr(value, each.name) for each in fields(value)]
    elif isinstance(value, Mapping):
        inner = value.values()
    elif isinstance(value, tuple | list | frozenset):
        inner = value
    for each in inner:
        yield from parts(each, kind)
