"""RSEP-QL → EP-SPARQL: sequences of single triples on landmark windows of one stream, as `in_time.py` lists them.

A landmark is a bound on getSTARTTIME(). Not kept: other windows, FIRST, LAST and SEQ^n, patterns of several triples,
graphs and windows beside MATCH, and whatever is emitted at other instants than those of events.
"""

from __future__ import annotations

from pyoxigraph import Literal, NamedNode, Variable

from oxiseq.grammar.algebra import (
    Call,
    Choice,
    Construct,
    EventName,
    EventPattern,
    Filter,
    FirstOf,
    Following,
    Group,
    LastOf,
    MatchFunction,
    MatchPattern,
    OnChange,
    Projection,
    Select,
    Stream,
    TimedPattern,
    TimeOp,
)
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.rsp_algebra import (
    Consume,
    EventDefinition,
    IdentityWindow,
    LandmarkWindow,
    NamedWindow,
    Report,
    RspQuery,
)
from oxiseq.grammar.translating.in_time import (
    CHOICES,
    one_triple,
    only_filters,
    provisos,
    refuse_chain,
    refuse_conditions,
    timeless,
)
from oxiseq.grammar.translating.translation import Translation, at_word, refused

_WORDS = {Choice.UNRESTRICTED: "SEQ", Choice.NAIVE: "SEQ^n", Choice.CHRONOLOGICAL: "SEQ^c", Choice.RECENT: "SEQ^r"}


def rsepql_as_ep(query: RspQuery) -> Translation:
    """The query in EP-SPARQL. Raises `QueryError` where EP-SPARQL cannot say it."""
    policy = query.consume or Consume.UNRESTRICTED
    _refuse(query)
    matches = [e for e in query.body.where.elements if isinstance(e, MatchPattern)]
    if len(matches) != 1:
        place = matches[1].span if matches else query.body.where.span
        raise refused("an EP-SPARQL query has one MATCH", place, query.text, "write WHERE { MATCH { ... } }")
    filters = only_filters((e for e in query.body.where.elements if e is not matches[0]), query.text)
    refuse_conditions(filters, policy, query.text)
    operands = _Operands(query, policy)
    found = operands.of(matches[0].events)
    refuse_chain(operands.sequences, policy, matches[0].span, query.text)
    where = Group((found, *filters)) if isinstance(found, TimedPattern) else Group((*found.elements, *filters))
    streams = tuple(dict.fromkeys(query.streams))
    translated = EpQuery(
        _form(query), where, tuple(Stream("", NamedNode(s)) for s in streams), query.prefixes, query.base, policy
    )
    return Translation(translated, provisos(policy, filters))


def _refuse(query: RspQuery) -> None:
    """What the clauses say that EP-SPARQL cannot."""
    body, text = query.body, query.text
    if query.report is not Report.ISTREAM:
        hint = "EP-SPARQL emits an answer once, when its last triple comes: write REGISTER ISTREAM AS"
        raise refused("EP-SPARQL does not emit answers again", at_word("REGISTER", query), text, hint)
    if not isinstance(query.when, OnChange | None):
        raise refused("EP-SPARQL answers at every event", query.when.span, text, "write REPORT ON CONTENT CHANGE")
    if query.form == "ASK" or body.distinct or body.reduced:
        what = "ASK" if query.form == "ASK" else "DISTINCT" if body.distinct else "REDUCED"
        hint = "EP-SPARQL emits each interval"
        raise refused(f"{what} means something else in EP-SPARQL", at_word(what, query), text, hint)
    if body.group_by or body.having or body.order_by or body.limit is not None or body.offset is not None:
        hint = "EP-SPARQL's answers do not end"
        raise refused("EP-SPARQL cannot group, order or limit its answers", body.span, text, hint)
    if body.values is not None:
        raise refused("VALUES cannot be used beside a sequence", body.values.span, text, "write FILTER(?x IN (...))")
    if query.default_graphs or query.named_graphs:
        raise refused("EP-SPARQL selects no graphs by FROM", at_word("FROM", query), text, "write GRAPH <...> { ... }")
    for window in query.windows:
        _refuse_window(window, query)


def _refuse_window(window: NamedWindow, query: RspQuery) -> None:
    if window.stream != query.windows[0].stream:
        hint = "EP-SPARQL's triples may come from any of its streams"
        raise refused("EP-SPARQL does not distinguish streams", window.span, query.text, hint)
    for operator in window.operators:
        if not isinstance(operator, LandmarkWindow | IdentityWindow):
            hint = "write [LND t]; a sequence's length is bounded by FILTER(getDURATION() < ...)"
            raise refused("EP-SPARQL has only landmark windows", operator.span, query.text, hint)


def _form(query: RspQuery) -> Select | Construct:
    if query.form == "CONSTRUCT":
        return Construct(query.template, query.into)
    if query.body.projection is None:
        return Select(None)
    columns = []
    for shown in query.body.projection:
        if not isinstance(shown, Variable):
            timeless(shown[0], query.text)
        columns.append(Projection(shown) if isinstance(shown, Variable) else Projection(shown[1], shown[0]))
    return Select(tuple(columns))


class _Operands:
    """Event patterns as operands of SEQ."""

    def __init__(self, query: RspQuery, policy: Consume) -> None:
        self._query, self._policy = query, policy
        self._events = {event.name: event for event in query.events}
        self._starts = {w.name: [o.start for o in w.operators if isinstance(o, LandmarkWindow)] for w in query.windows}
        self.sequences = 0

    def of(self, events: EventPattern) -> Group | TimedPattern:
        text = self._query.text
        match events:
            case EventName(name):
                return self._event(self._events[name])
            case Following(first, second, choice) if choice is CHOICES[self._policy]:
                self.sequences += 1
                left, right = self.of(first), self.of(second)
                return TimedPattern(TimeOp.SEQ, left, Group((right,)) if isinstance(right, TimedPattern) else right)
            case Following(_, _, Choice.NAIVE):
                raise refused("EP-SPARQL has no SEQ^n", events.span, text, "it has SEQ, SEQ^c and SEQ^r, by CONSUME")
            case Following(_, _, choice):
                wanted = _WORDS[CHOICES[self._policy]]
                hint = f"Table 1 of RSEP-QL: with CONSUME {self._policy.value} write {wanted}"
                raise refused(f"{_WORDS[choice]} consumes other triples in EP-SPARQL", events.span, text, hint)
            case FirstOf() | LastOf():
                word = "FIRST" if isinstance(events, FirstOf) else "LAST"
                raise refused(f"EP-SPARQL has no {word}", events.span, text, "it answers at every event")

    def _event(self, event: EventDefinition) -> Group:
        if event.choice:
            raise refused(f"EP-SPARQL has no {event.choice}", event.span, self._query.text, "write EVENT ON")
        pattern = one_triple(event.pattern, self._query.text)
        starts = [
            Filter(Call(">=", (MatchFunction("getSTARTTIME"), Literal(start)))) for start in self._starts[event.window]
        ]
        return Group((*pattern.elements, *starts))
