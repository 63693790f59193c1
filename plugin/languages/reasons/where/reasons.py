"""Which conditions of a part keep rows from it, and the rows that come nearest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.languages.reasons.near import distance
from oxiseq.languages.reasons.report import SHOWN, Near, Reason, Step
from oxiseq.languages.reasons.where.relax import Relaxation
from oxiseq.languages.reasons.where.rows import Ask, Rows

Times = Callable[[Relaxation, Rows, int], dict[str, tuple[int, ...]]]
"""The events that a row is made of, by name."""

_AS_LONG: Final = ("filter", "order", "constant")
"""What, if it is left out, leaves rows with the intervals that they have."""


def reasons(
    relaxations: Iterable[Relaxation], strict: Rows, ask: Ask, terms: TermDictionary, times: Times
) -> Iterator[Reason]:
    """Those that would give more rows. Nothing is listed for a part with more rows than are examined."""
    if strict.more:
        return
    for relaxation in relaxations:
        try:
            found = (relaxation.ask or ask)(relaxation.where)
        except OxiseqError:
            continue  # a variant that the engine refuses shows nothing
        new = _new(found, strict, relaxation)
        if len(new):
            nearest = _nearest(found, new, relaxation, terms)
            near = tuple(_near(found, i, relaxation, terms, times) for i in nearest)
            yield Reason(relaxation.kind, relaxation.text, len(new), found.more, near)


def _new(found: Rows, strict: Rows, relaxation: Relaxation) -> NDArray[np.int64]:
    """The rows that are not among those of the unchanged part."""
    if not len(found):
        return np.zeros(0, np.int64)
    if relaxation.same is not None:
        one, other = (found.ids[:, found.columns.index(name)] for name in relaxation.same)
        return np.flatnonzero(one != other)
    common = tuple(name for name in strict.columns if name in found.columns)
    timed = found.spans is not None and relaxation.kind in _AS_LONG
    known = set(strict.parts(common, timed=timed))
    return np.array([i for i, row in enumerate(found.parts(common, timed=timed)) if row not in known], np.int64)


def _nearest(found: Rows, new: NDArray[np.int64], relaxation: Relaxation, terms: TermDictionary) -> list[int]:
    rows: list[int] = new.tolist()
    condition = relaxation.condition
    lengths = np.zeros(len(found)) if found.spans is None else found.spans[:, 1] - found.spans[:, 0]
    far = {i: 0.0 if condition is None else distance(condition, found.mapping(i, terms)) for i in rows}
    rows.sort(key=lambda i: (far[i], lengths[i]))
    return rows[:SHOWN]


def _near(found: Rows, index: int, relaxation: Relaxation, terms: TermDictionary, times: Times) -> Near:
    bound = found.bound(index)
    shown = relaxation.shown or found.columns
    values = {name: terms.term(bound[name]) if name in bound else None for name in shown if name in found.columns}
    return Near(times(relaxation, found, index), values)


def counted(number: int, one: str, text: str, most: int) -> Step:
    """How many there are; `most`: where the count ended."""
    return Step("holds", f"{'or more ' * (number >= most)}{one}{'s' * (number != 1)} {text}", number)
