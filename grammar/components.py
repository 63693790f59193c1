"""What hangs together: elements of a pattern that share variables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Set
from typing import TypeVar

T = TypeVar("T")


def components(items: Sequence[T], keys: Callable[[T], Set[Hashable]]) -> list[list[T]]:
    """The items in lists of those that share keys, directly or by way of others; one without keys is alone."""
    found: list[tuple[Set[Hashable], list[T]]] = []
    for item in items:
        mine = keys(item)
        near = [each for each in found if not mine.isdisjoint(each[0])]
        found = [each for each in found if mine.isdisjoint(each[0])]
        found.append((frozenset(mine).union(*(k for k, _ in near)), [*(one for _, ones in near for one in ones), item]))
    return [ones for _, ones in found]
