"""What the rows of a query over windows are correlated by (correlation.py).

In the flow: plan → **correlation** → (a cluster's router). Windows move with the times of all events, so each run
reads those; of the graphs it gets those that show a value which it owns. The key is a variable ?k for which this holds:

1. It stands in each triple pattern on a window, and each event that MATCH names binds it for sure. So all triples of a
   solution have its value, and whatever event has one of them goes to the run that owns the value.
2. Patterns that are joined, left joined, subtracted or looked for bind it on both sides, where they are on windows. So
   rows of two values never meet.
3. Groups have a value each, and what is compared as a row shows it. No clause chooses among rows of several values:
   ASK, LIMIT, FIRST, LAST, SEQ^n, CONSUME do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from pyoxigraph import NamedNode, Variable

from oxiseq.engine.flow.sparql.existence import grouped, shown_as_is
from oxiseq.engine.flow.sparql.selects import listed
from oxiseq.engine.patterns.plan import GpmRequest
from oxiseq.engine.plan.correlation import Correlation, Route
from oxiseq.engine.rsp.plan import RspPlan
from oxiseq.grammar.algebra import (
    Bind,
    Choice,
    EventPattern,
    Expression,
    Filter,
    FirstOf,
    Following,
    Gpm,
    GraphPattern,
    Group,
    LastOf,
    MatchPattern,
    Minus,
    OptionalPattern,
    Path,
    PathAlternative,
    PathInverse,
    PathNegated,
    PathPattern,
    PatternElement,
    Span,
    SubSelect,
    TriplePattern,
    Union,
    WindowPattern,
)
from oxiseq.grammar.errors import span_at
from oxiseq.grammar.parts import parts
from oxiseq.grammar.rsp_algebra import EventDefinition, RspQuery, event_names
from oxiseq.grammar.scope import (
    certain_variables,
    exists_in,
    split_gpm,
    sub_select_expressions,
    visible_variables,
)

_SLICED = "LIMIT and OFFSET count the rows of all values"


class _Obstacle(Exception):
    """What makes rows of several values meet, and where."""

    def __init__(self, reason: str, span: Span) -> None:
        self.correlation = Correlation((), reason=reason, span=span)


def window_correlation(plan: RspPlan) -> Correlation:
    """How the query's events can be dealt out."""
    query = plan.query
    try:
        _check_choices(plan)
    except _Obstacle as obstacle:
        return obstacle.correlation
    refused: Correlation | None = None
    for key in visible_variables(query.body.where):
        try:
            return Correlation((key,), tuple(_Walk(plan, key).routes()), instants=True)
        except _Obstacle as obstacle:
            refused = refused or obstacle.correlation
    return refused or Correlation((), reason="its patterns bind no variable", span=query.body.where.span)


def with_key(query: RspQuery, by: tuple[Variable, ...]) -> RspQuery:
    """The query with the key among its columns, last where it was not there."""
    body = query.body
    if query.form == "CONSTRUCT" or body.projection is None:
        return query
    return replace(query, body=replace(body, projection=(*body.projection, *(v for v in by if v not in listed(body)))))


def _check_choices(plan: RspPlan) -> None:
    """Raise for a clause that chooses among rows, or items, of several values."""
    query, body = plan.query, plan.query.body
    if query.form == "ASK":
        raise _Obstacle("ASK has one answer for all values", _clause(query, "ASK"))
    if body.order_by:
        raise _Obstacle("ORDER BY sorts the rows of all values", _clause(query, "ORDER"))
    if body.limit is not None or body.offset is not None:
        raise _Obstacle(_SLICED, _clause(query, "LIMIT|OFFSET"))
    if plan.consumes:
        raise _Obstacle("CONSUME uses up events of all values", _clause(query, "CONSUME"))
    for event in query.events:
        if event.choice:
            raise _Obstacle(f"{event.choice} ON chooses among the events of all values", event.span)
    for match in parts(body, MatchPattern):
        for pattern in _event_patterns(match.events):
            if isinstance(pattern, FirstOf | LastOf):
                name = "FIRST" if isinstance(pattern, FirstOf) else "LAST"
                raise _Obstacle(f"{name} chooses among the events of all values", pattern.span)
            if isinstance(pattern, Following) and pattern.choice is Choice.NAIVE:
                raise _Obstacle("SEQ^n chooses among the events of all values", pattern.span)


def _clause(query: RspQuery, words: str) -> Span:
    """Where one of some words stands: behind WHERE, or else before it."""
    where, text = query.body.where.span, query.text
    found = re.search(rf"\b(?:{words})\b", text[where.end :], re.IGNORECASE)
    start = where.end
    if found is None:
        found, start = re.search(rf"\b(?:{words})\b(?!:)", text[: where.start], re.IGNORECASE), 0
    if found is None:
        return query.span
    return span_at(text, start + found.start(), start + found.end())


def _event_patterns(pattern: EventPattern) -> Iterator[EventPattern]:
    yield pattern
    match pattern:
        case FirstOf(inner) | LastOf(inner):
            yield from _event_patterns(inner)
        case Following(first, second):
            yield from _event_patterns(first)
            yield from _event_patterns(second)


class _Walk:
    """One pass over a query's patterns, for one key. Streams are numbers; none stand where a pattern is on the KB."""

    def __init__(self, plan: RspPlan, key: Variable) -> None:
        self._plan, self._key = plan, key
        self._events = {event.name: event for event in plan.query.events}
        self._streams = {w.name: plan.streams.index(w.stream.value) for w in plan.query.windows if w.name is not None}
        self._named = tuple(dict.fromkeys(self._streams.values()))
        self._asked: dict[tuple[int, TriplePattern | PathPattern | str], Group] = {}
        """What is matched on events: by the number of the stream, and the pattern or the event's name."""

    def routes(self) -> Iterator[Route]:
        """What tells the runs of an event. Raises _Obstacle."""
        query = self._plan.query
        unnamed = (self._plan.streams.index(w.stream.value) for w in query.windows if w.name is None)
        if not self._select(query.body, tuple(dict.fromkeys(unnamed))):
            raise _Obstacle("none of its patterns is on a window", query.body.where.span)
        self._check_shown(query)
        for number, ((stream, _), pattern) in enumerate(self._asked.items()):
            name = f"pattern {number + 1}"
            yield Route(stream, GpmRequest(name, split_gpm(Gpm(name, "", pattern)), (self._key,)))

    def _check_shown(self, query: RspQuery) -> None:
        """Whether answers tell whose they are."""
        if query.form == "CONSTRUCT":
            if self._key not in parts(query.template, Variable):
                raise _Obstacle(f"the graphs that it makes do not show {self._key}", _clause(query, "CONSTRUCT"))
        elif (query.body.distinct or grouped(query.body)) and self._key not in shown_as_is(query.body):
            raise _Obstacle(f"DISTINCT and groups compare rows that do not show {self._key}", _clause(query, "SELECT"))

    # --- patterns: whether they are on a window -----------------------------------------------------

    def _select(self, query: SubSelect, streams: tuple[int, ...]) -> bool:
        on_window = self._group(query.where, streams)
        for expression in sub_select_expressions(query):
            on_window = self._exists(expression, query.where, streams, query.where.span) or on_window
        if on_window:
            self._need(self._binds(query.where), query.where.span)
            if grouped(query) and self._key not in query.group_by:
                whole = self._plan.query
                span = _clause(whole, "GROUP|HAVING|SELECT") if query is whole.body else query.span
                raise _Obstacle(f"groups run over all values: GROUP BY does not have {self._key}", span)
        return on_window

    def _group(self, group: Group, streams: tuple[int, ...]) -> bool:
        bare = Group(tuple(e for e in group.elements if not isinstance(e, Filter)))
        on_window = False
        for number, element in enumerate(group.elements):
            match element:
                case Filter(condition):
                    here = self._exists(condition, bare, streams, element.span)
                case Bind(expression):
                    here = self._exists(expression, Group(group.elements[:number]), streams, element.span)
                case OptionalPattern(inner) | Minus(inner):
                    here = self._group(inner, streams)
                    if here:
                        self._need(self._binds(Group(group.elements[:number])), element.span)
                        self._need(self._binds(inner), inner.span)
                case _:
                    here = self._joined(element, streams)
                    if here:
                        self._need(self._binds(Group((element,))), element.span)
            on_window = here or on_window
        return on_window

    def _exists(self, expression: Expression, around: Group, streams: tuple[int, ...], span: Span) -> bool:
        found = [each for each in exists_in(expression) if self._group(each.pattern, streams)]
        for each in found:
            self._need(self._binds(around), span)
            self._need(self._binds(each.pattern), each.pattern.span)
        return bool(found)

    def _joined(self, element: PatternElement, streams: tuple[int, ...]) -> bool:
        match element:
            case TriplePattern() | PathPattern():
                return self._triple(element, streams)
            case Group():
                return self._group(element, streams)
            case Union(branches):
                on_window = [self._group(branch, streams) for branch in branches]
                return any(on_window)
            case GraphPattern(_, inner):
                return self._group(inner, ())
            case WindowPattern(NamedNode() as name, inner):
                return self._group(inner, (self._streams[name],))
            case WindowPattern(_, inner):
                return self._group(inner, self._named)
            case SubSelect():
                sub = self._select(element, streams)
                if sub and (element.limit is not None or element.offset is not None):
                    raise _Obstacle(_SLICED, element.span)
                return sub
            case MatchPattern(events):
                for each in event_names(events):
                    self._event(self._events[each.name])
                return True
        return False

    def _triple(self, pattern: TriplePattern | PathPattern, streams: tuple[int, ...]) -> bool:
        if not streams:
            return False
        if isinstance(pattern, PathPattern) and not _is_one_triple(pattern.path):
            raise _Obstacle("a path goes through triples of other values", pattern.span)
        self._need(self._binds(Group((pattern,))), pattern.span)
        for stream in streams:
            self._asked[stream, pattern] = Group((pattern,))
        return True

    def _event(self, event: EventDefinition) -> None:
        """An event is matched by itself, as a whole."""
        own = Group(tuple(e for e in event.pattern.elements if not isinstance(e, GraphPattern)))
        self._need(self._key in certain_variables(own), event.span)
        self._asked[self._streams[event.window], event.name] = event.pattern

    # --- the key ------------------------------------------------------------------------------------

    def _binds(self, group: Group) -> bool:
        """Whether each of its rows has a value; what MATCH names has been looked at."""
        return self._key in certain_variables(group) or any(isinstance(e, MatchPattern) for e in group.elements)

    def _need(self, holds: bool, span: Span) -> None:
        if not holds:
            raise _Obstacle(f"what stands here may be of another value of {self._key}, which it does not bind", span)


def _is_one_triple(path: Path) -> bool:
    """Whether each of its solutions is one triple."""
    match path:
        case NamedNode() | PathNegated():
            return True
        case PathInverse(inner):
            return _is_one_triple(inner)
        case PathAlternative(paths):
            return all(map(_is_one_triple, paths))
    return False
