"""Aggregates of CEQL by definition: the complex events that end at one event are listed, and so are the values that
each aggregate runs over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyoxigraph import Variable

from oxiseq.grammar.algebra import Aggregate, Call, Expression, Term
from oxiseq.grammar.ceql_algebra import CeqlQuery
from reference.aggregates import of_matches
from reference.ceql import ComplexEvent, evaluate_ceql
from reference.tuples import TupleEvent
from reference.values import ExpressionError, evaluate, holds


@dataclass(frozen=True)
class TotalsRow:
    """The end's time, and the columns that are bound."""

    time: int
    columns: Mapping[str, Term]


def totals_of(query: CeqlQuery, events: Sequence[TupleEvent]) -> list[TotalsRow]:
    """A row for each event at which complex events end, unless HAVING drops it."""
    found: dict[int, list[ComplexEvent]] = {}
    for complex_event in evaluate_ceql(query, events):
        found.setdefault(complex_event.end, []).append(complex_event)
    rows = (_row(query, ends, events) for _, ends in sorted(found.items()))
    return [row for row in rows if row is not None]


def is_settled(query: CeqlQuery, events: Sequence[TupleEvent]) -> bool:
    """Whether it does not matter which valuation stands for a complex event."""
    return all(len(c.valuations) == 1 for c in evaluate_ceql(query, events))


def _row(query: CeqlQuery, ends: list[ComplexEvent], events: Sequence[TupleEvent]) -> TotalsRow | None:
    totals, last = query.totals, events[ends[0].end]
    assert totals is not None
    keys = {key: value for key in totals.by if (value := _value(query, last, key)) is not None}

    def answer(asked: object) -> Term:
        assert isinstance(asked, Aggregate)
        values = sorted(values_of(query, asked, ends, events), key=str)
        return of_matches(asked, [None if v is None else v for v in values])

    columns: dict[str, Term] = {}
    for column in totals.columns:
        try:
            columns[column.name] = evaluate(_with_keys(column.expression), keys, answer)
        except ExpressionError:
            continue
    if totals.having is not None:
        named = {Variable(column.name): column.expression for column in totals.columns}
        if not holds(_with_keys(_named(totals.having, named)), keys, answer):
            return None
    return TotalsRow(last.time, columns)


def values_of(
    query: CeqlQuery, asked: Aggregate, ends: list[ComplexEvent], events: Sequence[TupleEvent]
) -> Iterator[Term | None]:
    """What an aggregate runs over: each value as often as a complex event's variable holds an event that has it."""
    one = Variable("one")
    for complex_event in ends:
        (valuation,) = list(complex_event.valuations)[:1]
        match asked.arg:
            case None:
                yield one  # type: ignore[misc]  # only counted
            case Variable(value=variable):
                for name, _ in valuation:
                    if name == variable:
                        yield one  # type: ignore[misc]
            case Call("[]", (Variable(value=variable), Variable() as attribute)):
                for name, position in valuation:
                    if name == variable:
                        yield _value(query, events[position], attribute)


def _value(query: CeqlQuery, event: TupleEvent, attribute: Variable) -> Term | None:
    return event.attributes(query.vocab or "").get(attribute)


def _named(e: Expression, names: Mapping[Variable, Expression]) -> Expression:
    """With the expressions of columns for their names."""
    match e:
        case Variable():
            return names[e]
        case Call(name, args) if name != "[]":
            return Call(name, tuple(_named(arg, names) for arg in args))
    return e


def _with_keys(e: Expression) -> Expression:
    """With the variable of the attribute for `[attribute]`."""
    match e:
        case Call("[]", (Variable() as attribute,)):
            return attribute
        case Call(name, args):
            return Call(name, tuple(map(_with_keys, args)))
    return e
