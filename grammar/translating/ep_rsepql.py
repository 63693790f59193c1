"""EP-SPARQL → RSEP-QL: sequences of single triples, as `in_time.py` lists them.

Not kept: patterns of several triples, functions of time, EQUALS and the optional operators, DISTINCT and ASK (which
EP-SPARQL answers by interval), several streams.
"""

from __future__ import annotations

from pyoxigraph import NamedNode, Variable

from oxiseq.grammar.algebra import (
    Choice,
    Construct,
    EventName,
    EventPattern,
    Expression,
    Filter,
    Following,
    Group,
    MatchPattern,
    OnChange,
    Select,
    SubSelect,
    TimedPattern,
    TimeOp,
    TriplePattern,
    Union,
)
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.rsp_algebra import Consume, EventDefinition, IdentityWindow, NamedWindow, Report, RspQuery
from oxiseq.grammar.scope import visible_variables
from oxiseq.grammar.translating.in_time import (
    CHOICES,
    one_triple,
    only_filters,
    provisos,
    refuse_chain,
    refuse_conditions,
    timeless,
)
from oxiseq.grammar.translating.translation import Translation, at_word, refused, window_name


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
