"""How much work a look at the past may be."""

from __future__ import annotations

from collections.abc import Callable

from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """`matches`: for each query that is run, no more than so many are examined (None: all of them); `check` is called
    now and then, and may raise whatever is to end the work."""

    matches: int | None = None
    check: Callable[[], None] = lambda: None


FREE = Bounds()
"""No bounds."""
