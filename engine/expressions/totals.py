"""SPARQL's aggregates over bags that grow and shrink: each value comes with how often it is there (semantics.md 2.6b).

In the flow: values of matches, or a kernel's counts → **totals of a group** → rows. Counts and sums are
exact at any size up to 2^4096 and unbound beyond it; integers and decimals are summed exactly, and floats and doubles
exactly too, rounded once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, Protocol

import numpy as np
from pyoxigraph import Literal, NamedNode

from oxiseq.engine import kinds
from oxiseq.engine.expressions.aggregate import aggregate_values, average
from oxiseq.engine.expressions.exact import ExpressionError
from oxiseq.engine.expressions.values import Exact, Value, read, term_of, to_double, to_float
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Aggregate

TOO_MANY: Final = 1 << 4096
"""Counts and sums below it are emitted."""
_INTEGER: Final = NamedNode("http://www.w3.org/2001/XMLSchema#integer")
KINDS: Final = (kinds.INTEGER, kinds.DECIMAL, kinds.FLOAT, kinds.DOUBLE)
"""Of numbers, each promoted to those behind it."""


class Total(Protocol):
    """One aggregate of one group."""

    def add(self, value: int, times: int) -> None:
        """The term `value` (an id, 0 for an error) is there so many times more, or less."""

    def merge(self, other: Any) -> None:
        """What another one of the same aggregate has is there, too."""

    def term(self) -> Term:
        """Its present value. Raises ExpressionError for SPARQL's error."""

    @property
    def held(self) -> list[int]:
        """The ids that it keeps."""

    def save(self) -> list[Any]:
        """Numbers, and texts of large ones; ids first: `held` of them."""

    def restore(self, ids: list[int], state: list[Any]) -> None: ...


def total_of(aggregate: Aggregate, terms: TermDictionary) -> Total:
    """An empty total."""
    if aggregate.name == "COUNT" and not aggregate.distinct:
        return CountTotal(aggregate.arg is None)
    if aggregate.name in ("SUM", "AVG") and not aggregate.distinct:
        return SumTotal(aggregate.name == "AVG", terms)
    return BagTotal(aggregate, terms)


def add_all(total: Total, values: Sequence[tuple[int, int]]) -> None:
    """Each of these values is there so many times more."""
    if isinstance(total, SumTotal):
        total.add_all(values)
        return
    for value, times in values:
        total.add(value, times)


def integer(count: int) -> Term:
    """A count as a term. Raises ExpressionError beyond 2^4096."""
    if abs(count) >= TOO_MANY:
        raise ExpressionError("beyond 2^4096")
    return Literal(str(count), datatype=_INTEGER)


class CountTotal:
    """COUNT."""

    def __init__(self, everything: bool) -> None:
        self.count = 0
        self._everything = everything

    def add(self, value: int, times: int) -> None:
        if value or self._everything:
            self.count += times

    def merge(self, other: CountTotal) -> None:
        self.count += other.count

    def term(self) -> Term:
        return integer(self.count)

    def at_most(self) -> Term:
        """The count, or 2^4096 where it is more: comparisons with every number that can be written are right."""
        return Literal(str(min(self.count, TOO_MANY)), datatype=_INTEGER)

    @property
    def held(self) -> list[int]:
        return []

    def save(self) -> list[Any]:
        return [str(self.count)]

    def restore(self, ids: list[int], state: list[Any]) -> None:
        self.count = int(state[0])


class SumTotal:
    """SUM and AVG; an error among the values, one that is no number for instance, is an error of the sum."""

    def __init__(self, average: bool, terms: TermDictionary) -> None:
        self._average = average
        self._terms = terms
        self._sum = Fraction(0)
        self._of_kind = [0, 0, 0, 0]
        self._special: Counter[float] = Counter()
        """How often INF, -INF and NaN (as 0.0) are there."""
        self._errors = 0

    def add(self, value: int, times: int) -> None:
        number = read(self._terms.term(value)) if value else None
        if number is None or number.kind not in KINDS:
            self._errors += times
            return
        self._of_kind[KINDS.index(number.kind)] += times
        if isinstance(number.number, float) and not math.isfinite(number.number):
            self._special[0.0 if math.isnan(number.number) else number.number] += times
        else:
            self._sum += Fraction(number.number) * times

    def put(self, total: Fraction, of_kind: Mapping[int, int], special: Sequence[float], *, failed: bool) -> None:
        """What has been summed elsewhere: the finite values' sum, how many are of each kind, which of INF, -INF and NaN
        (as 0.0) are there, and whether there is an error."""
        self._sum, self._errors = total, int(failed)
        self._of_kind = [of_kind.get(kind, 0) for kind in KINDS]
        self._special = Counter(special)

    def add_all(self, values: Sequence[tuple[int, int]]) -> None:
        """Many at once, (value, times) each: integers of 64 bits are added as such."""
        columns, ids = self._terms.columns, np.array([value for value, _ in values], np.int64)
        plain = (columns.kind[ids] == kinds.INTEGER) & ((columns.quality[ids] & kinds.EXACT_INTEGER) != 0)
        total = count = 0
        for (value, times), is_plain, number in zip(values, plain.tolist(), columns.exact[ids].tolist(), strict=True):
            if is_plain:
                total += number * times
                count += times
            else:
                self.add(value, times)
        self._sum += total
        self._of_kind[0] += count

    def merge(self, other: SumTotal) -> None:
        self._sum += other._sum
        self._of_kind = [mine + its for mine, its in zip(self._of_kind, other._of_kind, strict=True)]
        self._special.update(other._special)
        self._errors += other._errors

    def term(self) -> Term:
        if self._errors:
            raise ExpressionError("a value that is no number")
        kind = next((k for k, n in zip(reversed(KINDS), reversed(self._of_kind), strict=True) if n), kinds.INTEGER)
        count = sum(self._of_kind)
        if abs(self._sum) >= TOO_MANY:
            raise ExpressionError("beyond 2^4096")
        if kind in (kinds.FLOAT, kinds.DOUBLE):
            total = Value(kind, self._rounded(to_float if kind == kinds.FLOAT else to_double))
        else:
            total = Value(kind, self._sum if kind == kinds.DECIMAL else int(self._sum))
        summed = term_of(total)
        return summed if not self._average else average(summed, count)

    def _rounded(self, to: Callable[[Exact], float]) -> float:
        special = {value for value, times in self._special.items() if times}
        if 0.0 in special or len(special) > 1:
            return math.nan
        if special:
            return special.pop()
        return to(self._sum)

    @property
    def held(self) -> list[int]:
        return []

    def save(self) -> list[Any]:
        numbers = [self._sum.numerator, self._sum.denominator, *self._of_kind, self._errors]
        return [*map(str, numbers), *(str(self._special[x]) for x in (0.0, math.inf, -math.inf))]

    def restore(self, ids: list[int], state: list[Any]) -> None:
        numbers = [int(text) for text in state]
        self._sum = Fraction(numbers[0], numbers[1])
        self._of_kind, self._errors = numbers[2:6], numbers[6]
        self._special = Counter(dict(zip((0.0, math.inf, -math.inf), numbers[7:], strict=True)))


_MOST_JOINED: Final = 1_000_000
"""Values of GROUP_CONCAT; of more it is unbound."""
_IN_ORDER: Final = frozenset(["MIN", "MAX", "SAMPLE", "GROUP_CONCAT"])
"""Removes what would depend on the order of values: matches that end at once have none, so blank nodes sort by age,
behind all others, and those by their texts."""


class BagTotal:
    """MIN, MAX, SAMPLE, GROUP_CONCAT and all with DISTINCT: every value and how often it is there."""

    def __init__(self, aggregate: Aggregate, terms: TermDictionary) -> None:
        self._aggregate = aggregate
        self._terms = terms
        self._bag: dict[int, int] = {}

    def add(self, value: int, times: int) -> None:
        count = self._bag.get(value, 0) + times
        if count:
            self._bag[value] = count
        else:
            del self._bag[value]

    def merge(self, other: BagTotal) -> None:
        for value, times in other._bag.items():
            self.add(value, times)

    def term(self) -> Term:
        name = self._aggregate.name
        once = self._aggregate.distinct or name in ("MIN", "MAX", "SAMPLE")
        if not once and sum(self._bag.values()) > _MOST_JOINED:
            raise ExpressionError("too many values to be joined")
        values: list[Term | None] = []
        for value in sorted(self._bag, key=self._place) if name in _IN_ORDER else self._bag:
            values += [self._terms.term(value) if value else None] * (1 if once else self._bag[value])
        return aggregate_values(self._aggregate, values)

    def _place(self, value: int) -> tuple[int, str]:
        if self._terms.columns.kind[value] == kinds.BLANK:
            return int(self._terms.columns.exact[value]), ""
        return -1, str(self._terms.term(value) if value else None)

    @property
    def held(self) -> list[int]:
        return [*self._bag]

    def save(self) -> list[Any]:
        return [str(times) for times in self._bag.values()]

    def restore(self, ids: list[int], state: list[Any]) -> None:
        self._bag = {value: int(times) for value, times in zip(ids, state, strict=True)}
