"""Sums and averages as terms, a batch at a time (semantics.md 2.6b).

In the flow: exact sums of groups → **terms** → rows. Each is what `SumTotal` makes of it: exact for integers and
decimals, rounded once to the type of the sum for floats and doubles.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine import kinds
from oxiseq.engine.expressions.exact import DIVISION_DIGITS, ExpressionError
from oxiseq.engine.expressions.totals import TOO_MANY, SumTotal
from oxiseq.engine.expressions.values import to_double, to_float
from oxiseq.engine.kernels.flow.results import number_terms
from oxiseq.engine.matches.measures import Sums
from oxiseq.engine.output.numbers import Ids, written
from oxiseq.engine.terms.dictionary import TermDictionary

_UNITS: Final = 10**DIVISION_DIGITS
_MOST_UNITS: Final = 1 << 126
"""Magnitudes of decimals that kernels write, in units of 10^-18."""
_WORD: Final = (1 << 64) - 1
_TEXT: Final = 400
"""Bytes of a double as a term, and more."""


def sum_ids(average: bool, sums: Sums, terms: TermDictionary) -> Ids:
    """The ids of SUM or AVG of n groups; 0 where it is an error."""
    count = len(sums.numerators)
    numbers, high, low = np.zeros(count), np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    beyond = np.array([abs(total) >= TOO_MANY * sums.denominator for total in sums.numerators], np.bool_)
    kind = np.where(sums.failed | beyond, 0, sums.kind)
    for i in np.flatnonzero((kind == kinds.FLOAT) | (kind == kinds.DOUBLE)).tolist():
        numbers[i] = _binary(average, sums, i)
    others = list[int]()
    for i, units in _decimals(average, sums, kind):
        if units is None or abs(units) >= _MOST_UNITS:
            others.append(i)
        else:
            kind[i], numbers[i] = kinds.DECIMAL, -1.0 if units < 0 else 1.0
            high[i], low[i] = abs(units) >> 64, abs(units) & _WORD
    kind[others] = 0
    ids = number_ids((kind, numbers, high, low), terms)
    for i in others:
        ids[i] = _alone(average, sums, i, terms)
    return ids


def number_ids(columns: tuple[NDArray[Any], ...], terms: TermDictionary) -> Ids:
    """The ids of decimals, floats and doubles (kernels/flow/results.py, number_terms); 0 for other kinds."""
    return written(number_terms, columns, _TEXT, terms)


def _decimals(average: bool, sums: Sums, kind: NDArray[np.int64]) -> Iterator[tuple[int, int | None]]:
    """What is no double: the number of the group, and the sum or average in units of 10^-18; None: it is none of so
    many."""
    unit = sums.denominator
    for i in np.flatnonzero((kind == kinds.INTEGER) | (kind == kinds.DECIMAL)).tolist():
        total, count = sums.numerators[i], sums.events[i]
        if not count or (not average and kind[i] == kinds.INTEGER):
            yield i, None
            continue
        units, rest = divmod(abs(total) * _UNITS, unit * count if average else unit)
        yield i, None if rest and not average else units if total >= 0 else -units


def _binary(average: bool, sums: Sums, i: int) -> float:
    """A sum or average of floats or doubles."""
    rounded = to_float if sums.kind[i] == kinds.FLOAT else to_double
    summed = float(sums.special[i]) or rounded(Fraction(sums.numerators[i], sums.denominator))
    return rounded(summed / rounded(sums.events[i])) if average else summed


def _alone(average: bool, sums: Sums, i: int, terms: TermDictionary) -> int:
    total = SumTotal(average, terms)
    kind = int(sums.kind[i])
    total.put(Fraction(sums.numerators[i], sums.denominator), {kind: sums.events[i]}, (), failed=False)
    try:
        return terms.intern(total.term())
    except ExpressionError:
        return 0
