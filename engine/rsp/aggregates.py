"""Aggregates over values that come and go, with the store's results.

COUNT, SUM and AVG of integers and decimals go on by differences: they are exact. MIN and MAX keep their values in a
heap. Sums of doubles are added up anew, in the order in which the values came; whatever else there is among the values
(float, numbers beyond 64 bits, text) is asked of Oxigraph.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import chain, repeat
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode, QuerySolutions, Store

from oxiseq.engine import kinds
from oxiseq.engine.expressions.values import Value, term_of
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.normal import XSD
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Aggregate

_DIGITS: Final = 18
"""Of a decimal's fraction, in the store and here."""
_ONE: Final = 10**_DIGITS
_MOST: Final = 2**63 * _ONE
"""Below it no sum of integers or decimals overflows in the store, in whatever order it is made."""
_INTEGER, _DECIMAL, _DOUBLE, _OTHER = range(4)
_XSD_INTEGER: Final = NamedNode(XSD + "integer")
_XSD_DECIMAL: Final = NamedNode(XSD + "decimal")
_EMPTY: Final = Store()
_SPARE: Final = 64


def integer(number: int) -> Literal:
    """xsd:integer."""
    return Literal(str(number), datatype=_XSD_INTEGER)


class Values:
    """The values of one variable in a group; with `distinct` sums take each once. `ends`: whether MIN or MAX are asked
    for."""

    __slots__ = ("_absolute", "_distinct", "_ends", "_heaps", "_kinds", "_members", "_terms", "_total")

    def __init__(self, terms: TermDictionary, distinct: bool, ends: bool) -> None:
        self._terms, self._distinct, self._ends = terms, distinct, ends
        self._members: dict[int, tuple[int, int, int | float]] = {}
        """id → how often, kind, number (of integers and decimals in units of the last digit)."""
        self._kinds = [0, 0, 0, 0]
        self._total = self._absolute = 0
        self._heaps: tuple[list[tuple[int | float, int]], list[tuple[int | float, int]]] = ([], [])

    def __len__(self) -> int:
        """Distinct values."""
        return len(self._members)

    def add(self, term: int, sign: int) -> None:
        """A value comes, or goes."""
        known = self._members.get(term)
        if known is None:
            count, kind, number = 0, *self._read(term)
            if self._ends and kind != _OTHER:
                self._push(number, term)
        else:
            count, kind, number = known
        if count + sign:
            self._members[term] = count + sign, kind, number
        else:
            del self._members[term]
        if self._distinct and count and count + sign:
            return
        self._kinds[kind] += sign
        if kind <= _DECIMAL:
            assert isinstance(number, int)
            self._total += sign * number
            self._absolute += sign * abs(number)

    def put(self, term: int, count: int) -> None:
        """A value that is there so often already."""
        for _ in range(count):
            self.add(term, 1)

    def _read(self, term: int) -> tuple[int, int | float]:
        columns = self._terms.columns
        kind, quality = int(columns.kind[term]), int(columns.quality[term])
        if kind == kinds.INTEGER and quality & kinds.EXACT_INTEGER:
            return _INTEGER, int(columns.exact[term]) * _ONE
        if kind == kinds.DECIMAL and quality & kinds.EXACT_INTEGER:
            return _DECIMAL, int(columns.exact[term]) * 10 ** (_DIGITS - (quality >> kinds.SCALE_SHIFT))
        if kind == kinds.DOUBLE:
            number = float(columns.number[term])
            if number - number == 0 and str(number) != "-0.0":
                return _DOUBLE, number
        return _OTHER, 0

    def _push(self, number: int | float, term: int) -> None:
        low, high = self._heaps
        if len(low) > _SPARE + 2 * len(self._members):
            live = [(n, i) for i, (_, kind, n) in self._members.items() if kind != _OTHER]
            low[:], high[:] = live, [(-n, i) for n, i in live]
            heapify(low)
            heapify(high)
        heappush(low, (number, term))
        heappush(high, (-number, term))

    # --- aggregates ---------------------------------------------------------------------------------

    def result(self, aggregate: Aggregate, rows: int) -> int:
        """The id of its value over a group of `rows` rows; 0 where SPARQL has an error."""
        match aggregate.name:
            case "COUNT":
                return self._integer(len(self) if aggregate.distinct else rows)
            case "MIN" | "MAX" if not self._members:
                return 0
            case "MIN" | "MAX" if self._exact or self._doubles:
                return self._end(aggregate.name == "MAX")
            case "SUM" | "AVG" if self._exact and self._absolute < _MOST:
                return self._sum() if aggregate.name == "SUM" else self._mean()
            case "SUM" | "AVG" if self._doubles:
                return self._of_doubles(aggregate.name == "AVG")
        return self._asked(aggregate.name)

    @property
    def _exact(self) -> bool:
        """All are integers and decimals, as far as they are kept exactly."""
        return not self._kinds[_DOUBLE] and not self._kinds[_OTHER]

    @property
    def _doubles(self) -> bool:
        """All are doubles."""
        return not self._kinds[_INTEGER] and not self._kinds[_DECIMAL] and not self._kinds[_OTHER]

    def _integer(self, number: int) -> int:
        return self._terms.intern_normal(integer(number))

    def _sum(self) -> int:
        if not self._kinds[_DECIMAL]:
            return self._integer(self._total // _ONE)
        return self._decimal(self._total)

    def _mean(self) -> int:
        count = self._kinds[_INTEGER] + self._kinds[_DECIMAL]
        if not count:
            return self._integer(0)
        mean = abs(self._total) // count
        return self._decimal(-mean if self._total < 0 else mean)

    def _decimal(self, number: int) -> int:
        whole, part = divmod(abs(number), _ONE)
        text = f"{'-' if number < 0 else ''}{whole}.{part:0{_DIGITS}}".rstrip("0").rstrip(".")
        return self._terms.intern_normal(Literal(text, datatype=_XSD_DECIMAL))

    def _of_doubles(self, mean: bool) -> int:
        total, count = 0.0, 0
        for often, _, number in self._members.values():
            for _ in range(1 if self._distinct else often):
                total += number
            count += 1 if self._distinct else often
        return self._terms.intern(term_of(Value(kinds.DOUBLE, total / count if mean else total)))

    def _end(self, highest: bool) -> int:
        heap, sign = self._heaps[highest], -1 if highest else 1
        while True:
            number, term = heap[0]
            known = self._members.get(term)
            if known is not None and known[2] == sign * number:
                return term
            heappop(heap)

    def _asked(self, name: str) -> int:
        """By Oxigraph. Blank nodes cannot be written as values: in order they come first, sums fail for them as for
        IRIs."""
        each = [(self._terms.term(i), 1 if self._distinct else often) for i, (often, _, _) in self._members.items()]
        blank = [i for i, (term, _) in zip(self._members, each, strict=True) if isinstance(term, BlankNode)]
        if blank and (name == "MIN" or (name == "MAX" and len(blank) == len(each))):
            return blank[0]
        if blank and name != "MAX":
            return 0
        texts = chain.from_iterable(repeat(str(t), n) for t, n in each if not isinstance(t, BlankNode))
        answer = _EMPTY.query(f"SELECT ({name}(?v) AS ?a) WHERE {{ VALUES ?v {{ {' '.join(texts)} }} }}")
        assert isinstance(answer, QuerySolutions)
        (found,) = answer
        term: Term | None = found[0]
        return 0 if term is None else self._terms.intern(term)

    # --- what it holds ------------------------------------------------------------------------------

    def items(self) -> list[tuple[int, int]]:
        """(id, how often), in the order in which they came."""
        return [(term, count) for term, (count, _, _) in self._members.items()]
