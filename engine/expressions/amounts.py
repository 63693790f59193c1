"""Sums over the events of a match, event by event: what is summed, and what each event adds (semantics.md 2.6b).

In the flow: a key of ORDER BY → summands; events and what is summed of them → **what each adds**, exactly or as
doubles → the best on the compact set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import lcm
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal

from oxiseq.engine import kinds
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Call, Expression

_EXACT: Final = 1 << 53
"""Sums of whole numbers below this are exact in a double."""
_WHOLE: Final = (kinds.INTEGER, kinds.DECIMAL)
_NUMBERS: Final = (*_WHOLE, kinds.FLOAT, kinds.DOUBLE)


def summands(e: Expression, factor: Fraction = Fraction(1)) -> Iterator[tuple[Expression, Fraction]]:
    """A sum taken apart: each summand with its factor. What is no sum is one summand."""
    match e:
        case Call("+", (left, right)):
            yield from summands(left, factor)
            yield from summands(right, factor)
        case Call("-", (left, right)):
            yield from summands(left, factor)
            yield from summands(right, -factor)
        case Call("*", (Literal() as number, other) | (other, Literal() as number)) if _exact(number) is not None:
            yield from summands(other, factor * (_exact(number) or 0))
        case _:
            yield e, factor


def _exact(literal: Literal) -> Fraction | None:
    """An integer's or a decimal's value."""
    if literal.datatype.value.rpartition("#")[2] not in ("integer", "decimal"):
        return None
    try:
        return Fraction(literal.value)
    except ValueError:
        return None


class Added(NamedTuple):
    """What some events add: `factor`, times their values (ids of terms) if there are any."""

    events: NDArray[np.intp]
    ids: NDArray[Any] | None
    factor: Fraction


def added_up(parts: Sequence[Added], count: int, terms: TermDictionary) -> NDArray[np.float64] | None:
    """Of `count` events what each adds: exactly, in a unit that makes all of them whole, or as doubles if some are;
    None where that cannot be."""
    exact, rounded, whole = list[_Part](), np.zeros(count), True
    columns = terms.columns
    for events, ids, factor in parts:
        if ids is None:
            rounded[events] += float(factor)
            exact.append(_Part(events, np.ones(len(events), np.int64), np.zeros(len(events), np.int64), factor))
            continue
        kind, quality, number = columns.kind[ids], columns.quality[ids], columns.number[ids]
        if not (np.isin(kind, _NUMBERS) & np.isfinite(number)).all():
            return None
        whole = whole and bool((np.isin(kind, _WHOLE) & ((quality & kinds.EXACT_INTEGER) != 0)).all())
        scales = np.where(kind == kinds.DECIMAL, quality >> kinds.SCALE_SHIFT, 0).astype(np.int64)
        rounded[events] += float(factor) * number
        exact.append(_Part(events, columns.exact[ids], scales, factor))
    return _in_one_unit(exact, count) if whole else rounded


class _Part(NamedTuple):
    """Of some events the numbers mantissa · 10^-scale · factor."""

    events: NDArray[np.intp]
    mantissa: NDArray[np.int64]
    scale: NDArray[np.int64]
    factor: Fraction


def _in_one_unit(parts: Sequence[_Part], count: int) -> NDArray[np.float64] | None:
    """Sums by event, as multiples of one unit; None if they may be too large to be exact."""
    scale = max((int(part.scale.max(initial=0)) for part in parts), default=0)
    common = lcm(*(part.factor.denominator for part in parts))
    sums, most = np.zeros(count, np.int64), 0.0
    for part in parts:
        steps = int(part.factor * common)
        most += float((np.abs(part.mantissa.astype(np.float64)) * 10.0 ** (scale - part.scale)).sum() * abs(steps))
        if most >= _EXACT // 2 or abs(steps) >= _EXACT:
            return None
        sums[part.events] += part.mantissa * 10 ** (scale - part.scale) * steps
    return sums.astype(np.float64)
