"""What users see: an answer, and what has come and gone of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeAlias

from pyoxigraph import Triple

from oxiseq.engine.events.time import to_datetime, to_text
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.arguments import public

Form: TypeAlias = Literal["SELECT", "CONSTRUCT", "ASK"]
Row: TypeAlias = Mapping[str, Term | None] | Triple
Weighed: TypeAlias = Sequence[tuple[Row, int]]
"""Rows and how many of them come, or (below 0) go."""


class _Rows:
    """Rows that are made when somebody looks: of a large change nobody may."""

    __slots__ = ("_made", "_make", "at_us", "form", "number")

    def __init__(self, form: Form, number: int, at: int, make: Callable[[], Weighed]) -> None:
        self.form: Form = form
        self.number = number
        self.at_us = at
        self._make: Callable[[], Weighed] | None = make
        self._made: Weighed = ()

    @property
    def weighed(self) -> Weighed:
        """Each different row once, with how many there are."""
        if self._make is not None:
            self._made, self._make = self._make(), None
        return self._made

    @property
    def at(self) -> datetime:
        """When it was so, in UTC."""
        return to_datetime(self.at_us)

    def _some(self, sign: int) -> tuple[Row, ...]:
        return tuple(row for row, weight in self.weighed for _ in range(sign * weight))


@public
class StoreChange(_Rows):
    """What one update has changed of an answer. `number`: its id; `at`, `at_us`: when the update was made.

    >>> import oxiseq
    >>> store = oxiseq.Store()
    >>> query = store.register("SELECT ?s { ?s <urn:p> ?o }", language="sparql")
    >>> before = query.snapshot()
    >>> store.update("INSERT DATA { <urn:a> <urn:p> 1 }")
    >>> for change in query.poll(after=before.number):
    ...     print([row["s"].value for row in change.added], len(change.removed))
    ['urn:a'] 0
    """

    __slots__ = ("_count",)

    def __init__(self, form: Form, number: int, at: int, count: int, make: Callable[[], Weighed]) -> None:
        super().__init__(form, number, at, make)
        self._count = count

    @property
    def after(self) -> int:
        """The number of the state that it changes."""
        return self.number - self._count

    @property
    def added(self) -> tuple[Row, ...]:
        """The rows (of CONSTRUCT the triples) that came, each as often as it did."""
        return self._some(1)

    @property
    def removed(self) -> tuple[Row, ...]:
        """Those that went."""
        return self._some(-1)

    @property
    def answer(self) -> bool | None:
        """Of ASK: what the answer is now."""
        return any(weight > 0 for _, weight in self.weighed) if self.form == "ASK" else None

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        what = f"now {self.answer}" if self.form == "ASK" else f"+{len(self.added)} -{len(self.removed)}"
        return f"<StoreChange {self.number} {to_text(self.at_us)} {what}>"


@public
class Snapshot(_Rows):
    """An answer. `number`: that of the last change in it; `at`, `at_us`: when it was read.

    >>> import oxiseq
    >>> store = oxiseq.Store()
    >>> query = store.register("SELECT ?s { ?s <urn:p> ?o }", language="sparql")
    >>> len(query.snapshot().rows), query.snapshot().number
    (0, 0)
    """

    __slots__ = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows (of CONSTRUCT the triples), each as often as it is there, in no order."""
        return self._some(1)

    @property
    def answer(self) -> bool | None:
        """Of ASK."""
        return bool(self.weighed) if self.form == "ASK" else None

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return sum(weight for _, weight in self.weighed)

    def __repr__(self) -> str:
        what = self.answer if self.form == "ASK" else f"{len(self):,} rows"
        return f"<Snapshot {self.number} {to_text(self.at_us)} {what}>"
