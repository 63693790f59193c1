"""From matches to rows: SELECT, CONSTRUCT, ASK, expressions of a match, aggregates (semantics.md 2.1, 2.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby

from pyoxigraph import BlankNode, Literal, NamedNode, Triple, Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Ask,
    Construct,
    Expression,
    MatchFunction,
    Prev,
    Projection,
    Query,
    Select,
    Term,
    TermOrVariable,
)
from reference.aggregates import aggregate_of, date_time, integer, value_or_none
from reference.expand import names_in
from reference.patterns import Mu, Parts
from reference.sequences import Match, iterated_in
from reference.streams import Moment
from reference.suppression import emitted, ranked_at, sort_by
from reference.times import order_of
from reference.values import (
    XSD,
    ExpressionError,
    Number,
    evaluate,
    holds,
    normal,
    number_literal,
)


@dataclass(frozen=True)
class Row:
    """One answer: its times (`start` None of a group's row), its columns (unbound ones left out), its events per GPM
    name, and for CONSTRUCT its triples. `partition`: the values of PARTITION BY."""

    start: int | None
    end: int
    at: Moment
    bindings: Mapping[Variable, Term]
    events: Mapping[str, tuple[tuple[str, int], ...]]
    graph: frozenset[Triple] = field(default_factory=frozenset)
    partition: tuple[Term, ...] = ()


def rows_of(query: Query, parts: Mapping[str, Parts], matches: list[Match]) -> list[Row]:
    """One row per match, in the order of semantics.md 2.6a, or of ORDER BY where SUPPRESS goes by it; DISTINCT drops
    equal (at, end, row)."""
    ordered = sorted(matches, key=lambda m: (m.at, m.end, order_of(query, parts, m)))
    if query.suppression is not None:
        if query.summary.order_by:
            together = groupby(ordered, lambda m: (m.at, ranked_at(query, m)))
            ordered = [m for _, some in together for m in _ranked(query, parts, some)]
        ordered = list(emitted(query, query.suppression, ordered))
    rows = [_row(query, parts, m) for m in ordered]
    if isinstance(query.form, Select) and query.form.distinct:
        kept: dict[object, Row] = {}
        for r in rows:
            kept.setdefault((r.at, r.end, frozenset(r.bindings.items())), r)
        rows = list(kept.values())
    return rows


def _ranked(query: Query, parts: Mapping[str, Parts], matches: Iterable[Match]) -> list[Match]:
    """In the order of ORDER BY, ties as they come."""

    def keys(match: Match) -> list[Term | None]:
        values = match_values(query, parts, match)
        return [value_or_none(e, dict(match.mu), values) for e, _ in query.summary.order_by]

    return sort_by(query, [(match, keys(match)) for match in matches])


def _row(query: Query, parts: Mapping[str, Parts], match: Match) -> Row:
    form = query.form
    columns = {} if isinstance(form, Ask) else _columns(query, form.columns, parts, match)
    shown = columns if isinstance(form, Select) else {}
    graph = instantiate(form, dict(match.mu) | columns) if isinstance(form, Construct) else frozenset()
    return Row(match.start, match.end, match.at, shown, events_of(match), graph, match.partition)


def events_of(match: Match) -> dict[str, tuple[tuple[str, int], ...]]:
    """GPM name → (stream IRI, time) of its events, in order of time."""
    found: dict[str, list[tuple[str, int]]] = {}
    for name, event, _ in sorted(match.bindings, key=lambda b: b[1].time):
        found.setdefault(name, []).append((event.stream, event.time))
    return {name: tuple(events) for name, events in found.items()}


def _columns(
    query: Query, columns: tuple[Projection, ...] | None, parts: Mapping[str, Parts], match: Match
) -> dict[Variable, Term]:
    if columns is None:
        wanted = {v for name in names_in(query.sequence) for v in parts[name].variables}
        return {v: t for v, t in match.mu if v in wanted}
    bound = dict(match.mu)
    row: dict[Variable, Term] = {}
    for column in columns:
        expression = column.expression if column.expression is not None else column.variable
        try:
            value = evaluate(expression, bound, match_values(query, parts, match))
        except ExpressionError:
            continue  # the column stays unbound
        row[column.variable] = bound[column.variable] = value
    return row


def instantiate(form: Construct, bound: Mapping[Variable, Term]) -> frozenset[Triple]:
    """The template under µ: triples that are not complete or not RDF are left out; blank nodes are this row's."""

    def put(term: TermOrVariable) -> Term | None:
        return bound.get(term) if isinstance(term, Variable) else term

    made = set()
    for pattern in form.template:
        s, p, o = put(pattern.subject), put(pattern.predicate), put(pattern.object)
        if isinstance(s, NamedNode | BlankNode) and isinstance(p, NamedNode) and o is not None:
            made.add(Triple(s, p, normal(o) if isinstance(o, Literal) else o))
    return frozenset(made)


def passes(query: Query, parts: Mapping[str, Parts], match: Match, condition: Expression) -> bool:
    """A FILTER behind SEQ, on the whole match (semantics.md 2.5b)."""
    return holds(condition, dict(match.mu), match_values(query, parts, match))


# --- expressions of a match -----------------------------------------------------------------------


def match_values(
    query: Query, parts: Mapping[str, Parts], match: Match
) -> Callable[[Prev | Aggregate | MatchFunction], Term]:
    def answer(asked: Prev | Aggregate | MatchFunction) -> Term:
        if isinstance(asked, Aggregate):
            return _aggregate(asked, _iterations(query, parts, match, asked))
        assert isinstance(asked, MatchFunction)
        return _match_function(asked, match)

    return answer


def _match_function(asked: MatchFunction, match: Match) -> Literal:
    start = min(event.time for _, event, _ in match.bindings)
    own = [event.time for name, event, _ in match.bindings if name == asked.gpm]
    match asked.name:
        case "STARTTIME":
            return date_time(start)
        case "ENDTIME":
            return date_time(match.end)
        case "DETECTTIME":
            return date_time(int(match.at))
        case "SUPPRESSED":
            return integer(match.suppressed)
        case "DURATION":
            seconds = Fraction(match.end - start, 1_000_000)
            text = str(number_literal(Number("decimal", seconds)).value)
            return normal(Literal(f"PT{text}S", datatype=NamedNode(XSD + "dayTimeDuration")))
        case "TIMEOF" if own:
            return date_time(max(own))
        case "COUNT":
            return integer(len(own))
        case _:
            raise ExpressionError("a GPM that is absent has no time")


def _iterations(query: Query, parts: Mapping[str, Parts], match: Match, asked: Aggregate) -> list[dict[Variable, Term]]:
    """The mappings over which an aggregate runs: the iterations of the one repeated GPM that it mentions, each
    with the match's values for the variables of others."""
    assert asked.arg is not None
    (name,) = iterated_in(query, parts).by(asked)
    own = set(parts[name].variables)
    others = {v: t for v, t in match.mu if v not in own}
    mine: list[tuple[int, Mu]] = [(e.time, mu) for n, e, mu in match.bindings if n == name]
    return [{**others, **dict(mu)} for _, mu in sorted(mine, key=lambda pair: pair[0])]


def _aggregate(asked: Aggregate, iterations: list[dict[Variable, Term]]) -> Term:
    assert asked.arg is not None
    return aggregate_of(asked, [value_or_none(asked.arg, bound) for bound in iterations])
