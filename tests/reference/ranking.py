"""ORDER BY, LIMIT with OFFSET, and SAMPLE where the answer has a row per match (semantics.md 2.6b), from a list of all
matches: which answers the specification allows.

Open are ties between matches that have the same positions, the order of blank nodes, and what SAMPLE draws, but for
how many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode

from oxiseq.grammar.algebra import Query, Term
from reference.streams import instants, observe
from reference.values import ExpressionError, Number, less, value_of

Keys = tuple[Term | None, ...]


@dataclass(frozen=True)
class Ranked:
    """A match as it is judged: what ORDER BY compares, its events in order of time, each with its GPM, and its row."""

    keys: Keys
    events: tuple[tuple[int, str], ...]
    row: Hashable

    @property
    def times(self) -> tuple[int, ...]:
        """Its positions."""
        return tuple(time for time, _ in self.events)


def reports(query: Query, streams: Mapping[str, Sequence[tuple[int, Any]]], lateness: int) -> Callable[[int], int]:
    """By the end of a match when it is reported: then, or when its tumbling window closes."""
    window = query.window
    if query.summary.report is None or window is None:
        return lambda end: end
    iris = [stream.iri.value for stream in query.streams]
    arrivals = {iri: [(time, ()) for time, _ in events] for iri, events in streams.items()}
    times = instants(observe(iris, arrivals, lateness, None).events)
    number = {time: i for i, time in enumerate(times)}

    def close(end: int) -> int:
        if window.events:
            return times[min((number[end] // window.size + 1) * window.size, len(times)) - 1]
        return times[0] + ((end - times[0]) // window.size + 1) * window.size - 1

    return close


def objection(query: Query, everything: Sequence[Ranked], reported: Sequence[tuple[Keys, Hashable]]) -> str | None:
    """Why `reported`, in its order, cannot be what is told of the matches of one end (of one partition)."""
    rows = Counter(row for _, row in reported)
    if rows - Counter(each.row for each in everything):
        return "a row that is no match, or is told too often"
    limit, wanted = query.limit, len(everything)
    if query.sample is not None:
        wanted = min(wanted, query.sample.count)
        if len(reported) != wanted:
            return f"{len(reported)} rows, not {wanted}"
        told = [Ranked(keys, (), None) for keys, _ in reported]
        return None if _classes(query, told) == _classes(query, _sorted(query, told)) else "not in order"
    best = _sorted(query, everything)
    if limit is not None:
        best = best[limit.offset : limit.offset + limit.count]
    found = [Ranked(keys, (), None) for keys, _ in reported]
    if _classes(query, found) != _classes(query, best):
        return f"the keys are {_classes(query, found)}, not {_classes(query, best)}"
    if any(isinstance(key, BlankNode) for each in everything for key in each.keys):
        return None  # the specification does not say which comes first
    sure = Counter(each.row for each in best if not _is_open(query, each, everything))
    return "another match wins a tie by its positions" if sure - rows else None


def _is_open(query: Query, match: Ranked, everything: Sequence[Ranked]) -> bool:
    """Whether another match has equal keys and, where the two differ first, another event of the same instant: which of
    these stands first is open."""
    for other in everything:
        if other is match or _class(query, other) != _class(query, match):
            continue
        pairs = zip(match.events, other.events, strict=False)
        first = next(((a, b) for a, b in pairs if a != b), None)
        if match.events == other.events or (first is not None and first[0][0] == first[1][0]):
            return True
    return False


def _sorted(query: Query, matches: Sequence[Ranked]) -> list[Ranked]:
    """By the keys, then by positions, first to last."""
    found = sorted(matches, key=lambda each: each.times)
    for place in range(len(query.summary.order_by) - 1, -1, -1):
        descending = query.summary.order_by[place][1]
        found.sort(key=cmp_to_key(lambda a, b, place=place: compared(a.keys[place], b.keys[place])), reverse=descending)
    return found


def _classes(query: Query, matches: Sequence[Ranked]) -> list[tuple[Any, ...]]:
    return [_class(query, each) for each in matches]


def _class(query: Query, match: Ranked) -> tuple[Any, ...]:
    """Equal where keys are."""
    return tuple(_value(key) for key in match.keys)


def _value(term: Term | None) -> Any:
    if isinstance(term, Literal):
        value = value_of(term)
        return value.value if isinstance(value, Number) else str(term)
    return "_:" if isinstance(term, BlankNode) else str(term)


def compared(a: Term | None, b: Term | None) -> int:
    """Below, at or above 0: ORDER BY's order of terms, total but for blank nodes with equal labels and equal values."""
    if _rank(a) != _rank(b):
        return -1 if _rank(a) < _rank(b) else 1
    if a is None or b is None or _value(a) == _value(b):
        return 0
    if isinstance(a, Literal) and isinstance(b, Literal):
        if _is_nan(a) or _is_nan(b):  # the last of all numbers
            return _is_nan(a) - _is_nan(b)
        try:
            return -1 if less(a, b) else int(less(b, a))  # 0: one instant in two time zones
        except ExpressionError:
            first, second = (_text(x) for x in (a, b))
            return -1 if first < second else 1
    return -1 if str(a) < str(b) else 1


def _rank(term: Term | None) -> int:
    """unbound < blank nodes < IRIs < numbers < times < durations < other literals."""
    match term:
        case None:
            return 0
        case BlankNode():
            return 1
        case NamedNode():
            return 2
        case Literal():
            kind = term.datatype.value.rpartition("#")[2]
            if isinstance(value_of(term), Number):
                return 3
            return {"dateTime": 4, "dayTimeDuration": 5, "duration": 5}.get(kind, 6)
    return 7


def _is_nan(term: Literal) -> bool:
    return isinstance(value_of(term), Number) and term.value == "NaN"


def _text(term: Literal) -> tuple[str, str, str]:
    return term.value, term.datatype.value, term.language or ""
