"""What EP-SPARQL and RSEP-QL both say: one triple after another (RSEP-QL's Table 1; semantics.md 4 and 5).

| EP-SPARQL    | RSEP-QL                                                                     |
|--------------|-----------------------------------------------------------------------------|
| unrestricted | landmark window, SEQ, CONSUME UNRESTRICTED, ISTREAM ON CONTENT CHANGE       |
| chronological| landmark window, SEQ^c, CONSUME CHRONOLOGICAL, ISTREAM ON CONTENT CHANGE    |
| recent       | landmark window, SEQ^r, CONSUME RECENT, ISTREAM ON CONTENT CHANGE           |

An operand of SEQ is one triple pattern with conditions on it: the triples of a larger one may come at different times
in EP-SPARQL, and come in one graph in RSEP-QL.

EP-SPARQL → RSEP-QL: sequences of single triples, as listed above.

Not kept: patterns of several triples, functions of time, EQUALS and the optional operators, DISTINCT and ASK (which
EP-SPARQL answers by interval), several streams.

RSEP-QL → EP-SPARQL: sequences of single triples on landmark windows of one stream, as listed above.

A landmark is a bound on getSTARTTIME(). Not kept: other windows, FIRST, LAST and SEQ^n, patterns of several triples,
graphs and windows beside MATCH, and whatever is emitted at other instants than those of events.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.grammar.algebra import (
    Call,
    Choice,
    Construct,
    EventName,
    EventPattern,
    Exists,
    Expression,
    Filter,
    FirstOf,
    Following,
    Group,
    LastOf,
    MatchFunction,
    MatchPattern,
    OnChange,
    PatternElement,
    Projection,
    Select,
    Span,
    Stream,
    SubSelect,
    TimedPattern,
    TimeOp,
    TriplePattern,
    Union,
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
from oxiseq.grammar.scope import subexpressions, visible_variables
from oxiseq.grammar.translating.translation import Translation, at_word, refused, window_name

# --- in time -----------------------------------------------------------------------------------------


CHOICES: Final = {
    Consume.UNRESTRICTED: Choice.UNRESTRICTED,
    Consume.CHRONOLOGICAL: Choice.CHRONOLOGICAL,
    Consume.RECENT: Choice.RECENT,
}
POINTS: Final = "means the same where no event has a start (prov:startedAtTime)"
SINGLE: Final = "means the same where each event is one triple without a start (prov:startedAtTime)"


OXIGRAPH: Final = "RSEP-QL's FILTER beside MATCH is Oxigraph's, which compares some terms that EP-SPARQL refuses to"


def provisos(policy: Consume, filters: Sequence[Filter]) -> tuple[str, ...]:
    """On which events the two languages agree; whose arithmetic conditions beside the sequence follow."""
    return (POINTS if policy is Consume.UNRESTRICTED else SINGLE, *([OXIGRAPH] if filters else []))


def one_triple(pattern: Group, text: str) -> Group:
    """`pattern`, if it is one triple pattern with conditions on it. Raises QueryError."""
    triples = [e for e in pattern.elements if isinstance(e, TriplePattern)]
    others = [e for e in pattern.elements if not isinstance(e, TriplePattern | Filter)]
    if others or len(triples) != 1:
        place = (others or triples[1:] or [pattern])[0].span
        hint = "EP-SPARQL's triples may come at different times, RSEP-QL's in one graph: write one triple pattern"
        raise refused("only single triples mean the same in both languages", place, text, hint)
    for term in (triples[0].subject, triples[0].object):
        if isinstance(term, BlankNode):
            hint = "use a variable: RSEP-QL does not distinguish two of them, EP-SPARQL does"
            raise refused("a blank node counts differently in the other language", triples[0].span, text, hint)
    for element in pattern.elements:
        if isinstance(element, Filter):
            timeless(element.condition, text)
    return pattern


def timeless(expression: Expression, text: str) -> None:
    """Raise QueryError for what only one of the languages can ask."""
    for e in subexpressions(expression):
        if isinstance(e, MatchFunction):
            hint = "its answers have their times as .start and .end"
            raise refused(f"RSEP-QL has no {e.name}()", e.span, text, hint)
        if isinstance(e, Exists):
            hint = "EP-SPARQL reads triples that ended before, RSEP-QL the content of a window"
            raise refused("EXISTS reads other triples in the other language", e.span, text, hint)


def only_filters(elements: Iterable[PatternElement], text: str) -> tuple[Filter, ...]:
    """The conditions beside SEQ or MATCH, if there is nothing else. Raises QueryError."""
    found = []
    for element in elements:
        if not isinstance(element, Filter):
            hint = "only FILTER may be used beside it"
            raise refused("this has no counterpart beside a sequence", element.span, text, hint)
        timeless(element.condition, text)
        found.append(element)
    return tuple(found)


def refuse_conditions(filters: Iterable[Filter], policy: Consume, text: str) -> None:
    """Raise QueryError for conditions outside the operands where triples are used up."""
    for each in filters:
        if policy is not Consume.UNRESTRICTED:
            hint = "put it into the operand that it tests"
            raise refused("RSEP-QL also consumes what this condition rejects", each.span, text, hint)


def refuse_chain(sequences: int, policy: Consume, span: Span, text: str) -> None:
    """Raise QueryError for several SEQs where triples are used up."""
    if sequences > 1 and policy is not Consume.UNRESTRICTED:
        hint = "with CONSUME UNRESTRICTED sequences of any length mean the same"
        message = "with several SEQs the two languages consume different triples"
        raise refused(message, span, text, hint)


# --- ep rsepql ---------------------------------------------------------------------------------------


def ep_as_rsepql(query: EpQuery) -> Translation:
    """The query in RSEP-QL. Raises `QueryError` where RSEP-QL cannot say it."""
    policy = query.consume or Consume.UNRESTRICTED
    stream = _stream(query)
    window = window_name(query)
    found = _Events(CHOICES[policy], window, query.text)
    sequence, filters = _parts(query)
    events = found.of(sequence)
    refuse_chain(len(found.definitions) - 1, policy, query.where.span, query.text)
    refuse_conditions(filters, policy, query.text)
    variables = tuple(dict.fromkeys(v for d in found.definitions for v in visible_variables(d.pattern)))
    where = Group((MatchPattern(events, variables), *filters))
    form = query.form
    translated = RspQuery(
        "rsepql",
        "CONSTRUCT" if isinstance(form, Construct) else "SELECT",
        SubSelect(_columns(query), where),
        (NamedWindow(stream, (IdentityWindow(),), window),),
        tuple(found.definitions),
        form.template if isinstance(form, Construct) else (),
        Report.ISTREAM,
        form.into if isinstance(form, Construct) else None,
        policy,
        OnChange(),
        prefixes=query.prefixes,
        base=query.base,
    )
    return Translation(translated, provisos(policy, filters))


def _stream(query: EpQuery) -> NamedNode:
    if not query.streams:
        hint = "write FROM STREAM <...> before WHERE"
        raise refused("a window of RSEP-QL reads a named stream", query.where.span, query.text, hint)
    if len(query.streams) > 1:
        hint = "EP-SPARQL's triples may come from any of its streams"
        raise refused("an event of RSEP-QL comes from one stream", query.streams[1].span, query.text, hint)
    return query.streams[0].iri


def _columns(query: EpQuery) -> tuple[Variable | tuple[Expression, Variable], ...] | None:
    match query.form:
        case Select(columns, False):
            for column in columns or ():
                if column.expression is not None:
                    timeless(column.expression, query.text)
            if columns is None:
                return None
            return tuple(c.variable if c.expression is None else (c.expression, c.variable) for c in columns)
        case Construct(_, _, ()):
            return None
        case Construct(_, _, columns):
            hint = "BIND cannot replace it either: RSEP-QL's templates hold terms and variables"
            raise refused("an expression in a template", columns[0].span, query.text, hint)
        case Select():
            hint = "RSEP-QL's DISTINCT compares all answers of an instant, whatever their intervals"
            raise refused("DISTINCT means something else in RSEP-QL", at_word("DISTINCT", query), query.text, hint)
        case _:
            hint = "EP-SPARQL's ASK emits each interval: write SELECT *"
            raise refused("ASK means something else in RSEP-QL", at_word("ASK", query), query.text, hint)


def _parts(query: EpQuery) -> tuple[Group | TimedPattern, tuple[Filter, ...]]:
    """The sequence, or a single operand, and the conditions beside it."""
    first, *rest = [e for e in query.where.elements if not isinstance(e, Filter)] or [query.where]
    if isinstance(first, TriplePattern):
        return query.where, ()
    if not isinstance(first, Group | TimedPattern) or first is query.where:
        hint = "RSEP-QL has sequences of events: { ... } SEQ { ... }"
        raise refused("this is no sequence", first.span, query.text, hint)
    return first, only_filters((*rest, *(e for e in query.where.elements if isinstance(e, Filter))), query.text)


class _Events:
    """Definitions of events, as operands are met."""

    def __init__(self, choice: Choice, window: NamedNode, text: str) -> None:
        self.definitions: list[EventDefinition] = []
        self._choice, self._window, self._text = choice, window, text

    def of(self, element: Group | Union | TimedPattern) -> EventPattern:
        match element:
            case TimedPattern(TimeOp.SEQ, left, right):
                first = self.of(left)
                return Following(first, self.of(right), self._choice)
            case TimedPattern(op):
                raise refused(f"RSEP-QL has no {op.value}", element.span, self._text, "it has SEQ")
            case Union():
                raise refused("RSEP-QL has no UNION of events", element.span, self._text, "write a query for each")
            case Group((TimedPattern() | Group() as inner,)):
                return self.of(inner)
        pattern = one_triple(element, self._text)
        name = f"E{len(self.definitions) + 1}"
        self.definitions.append(EventDefinition(name, self._window, pattern))
        return EventName(name)


# --- rsepql ep ---------------------------------------------------------------------------------------


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
