"""The algebra of CEQL: Complex Event Logic and the clauses around it (CORE, PVLDB 2022; semantics.md 3).

In the flow: text → **algebra** → plan. As in `algebra.py` all values are frozen and a `span` takes no part
in comparison. A predicate over an event's attributes is an `Expression` whose variables are the attributes'
names; an attribute that an event lacks is an unbound variable (an error, hence false).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import ClassVar, TypeAlias

from pyoxigraph import Literal, Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Call,
    Consumption,
    Expression,
    Limit,
    Partition,
    Sample,
    Selection,
    Span,
    Window,
    span_field,
)
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import subexpressions

# --- conditions of FILTER -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Holds:
    """`X[P]`: every event of the variable X satisfies P. In P `y.price` is `Call(OTHER, (y, price))`: the attribute of
    the one event that the variable y holds."""

    name: str
    predicate: Expression
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class AllOf:
    """`θ1 AND θ2 ...`, two or more."""

    conditions: tuple[Condition, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """`θ1 OR θ2 ...`, two or more: each is about all events of its variable, not event by event."""

    conditions: tuple[Condition, ...]
    span: Span = span_field()


Condition: TypeAlias = Holds | AllOf | AnyOf

# --- formulas -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EventType:
    """`R`: one event of type R, which the variable R holds."""

    name: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Named:
    """`φ AS X`: X holds all events of φ."""

    formula: Formula
    name: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Filtered:
    """`φ FILTER θ`."""

    formula: Formula
    condition: Condition
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Either:
    """`φ1 OR φ2 ...`, two or more."""

    formulas: tuple[Formula, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Follows:
    """`φ1 ; φ2 : φ3 ...`: `rest` holds (contiguous, formula) pairs; `:` is contiguous, `;` is any later."""

    first: Formula
    rest: tuple[tuple[bool, Formula], ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Iterated:
    """`φ+`, or `φ:+` with contiguous iterations."""

    formula: Formula
    contiguous: bool = False
    span: Span = span_field()


Formula: TypeAlias = EventType | Named | Filtered | Either | Follows | Iterated

# --- queries --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name:
    """A stream in FROM or a variable in SELECT."""

    name: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class AttributeWindow:
    """`WITHIN 30000 [stock_time]`: the attribute's last value minus its first is at most `size`, a number."""

    size: Literal
    attribute: Variable
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class EndOrder:
    """`ORDER BY SUM(y[price]) DESC, START`: in what order the complex events that end at one event are emitted.

    `keys`: (expression, descending) pairs; an expression is START, or over aggregates (as in `Totals`), each of which
    runs over what its variable holds in one complex event.
    """

    keys: tuple[tuple[Expression, bool], ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Told:
    """A column of an answer with aggregates: `expression AS name`, or `[company]` alone."""

    expression: Expression
    name: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Totals:
    """What is emitted for all complex events that end at one event: SELECT with aggregates, GROUP BY and HAVING.

    In its expressions `COUNT(*)` is an Aggregate without argument, `COUNT(y)` one over the variable y, `SUM(y[price])`
    one over `Call(OF, (y, price))`; `[company]` is `Call(OF, (company,))`. A variable in HAVING is a column's name.
    """

    columns: tuple[Told, ...]
    by: tuple[Variable, ...] = ()
    having: Expression | None = None
    by_span: Span = span_field()
    having_span: Span = span_field()


OF = "[]"
"""The call that takes an attribute's value."""
OTHER = "."
"""The call that takes an attribute of another variable's event: a join."""
START = Call("START", ())
"""In ORDER BY: where a complex event begins."""


@dataclass(frozen=True, slots=True)
class CeqlQuery:
    """A CEQL query. `columns` is None for `*` and with `totals`, `selection` None for ALL; a `Window` always slides.

    `vocab` is the namespace of types, attributes and stream names.
    """

    language: ClassVar[str] = "ceql"
    columns: tuple[Name, ...] | None
    streams: tuple[Name, ...]
    formula: Formula
    window: Window | AttributeWindow | None = None
    vocab: str | None = None
    selection: Selection | None = None
    partition: Partition | None = None
    consumption: Consumption | None = None
    limit: Limit | None = None
    order: EndOrder | None = None
    sample: Sample | None = None
    totals: Totals | None = None
    span: Span = span_field()
    text: str = field(default="", compare=False, repr=False)
    """What it was parsed from, so that later errors can show the place."""


def aggregates(totals: Totals) -> tuple[Aggregate, ...]:
    """All of SELECT and HAVING, each once."""
    written = [column.expression for column in totals.columns]
    return _aggregates([*written, *([] if totals.having is None else [totals.having])])


def compared_aggregates(order: EndOrder) -> tuple[Aggregate, ...]:
    """All of ORDER BY, each once."""
    return _aggregates([expression for expression, _ in order.keys])


def _aggregates(written: Sequence[Expression]) -> tuple[Aggregate, ...]:
    return tuple(dict.fromkeys(e for each in written for e in subexpressions(each) if isinstance(e, Aggregate)))


def measured_variable(aggregate: Aggregate) -> str | None:
    """The variable whose events an aggregate is of; None: COUNT(*)."""
    match aggregate.arg:
        case Variable(value=name) | Call("[]", (Variable(value=name), _)):
            return name
    return None


def joins_in(expression: Expression) -> Iterator[tuple[str, Variable, Call]]:
    """The `x.price` of a predicate: the variable, the attribute and the call."""
    for part in subexpressions(expression):
        match part:
            case Call(".", (Variable(value=of), Variable() as attribute)):
                yield of, attribute, part


def first_join(formula: Formula) -> tuple[Holds, Call] | None:
    """The first condition that compares events of two variables, and where it does; None: none does."""
    return next(((test, call) for test in holds_of(formula) for _, _, call in joins_in(test.predicate)), None)


def holds_of(formula: Formula) -> Iterator[Holds]:
    """The `X[P]` of all its FILTERs."""
    if isinstance(formula, Filtered):
        yield from atomic(formula.condition)
    for inner in subformulas(formula):
        yield from holds_of(inner)


def keys_of(expression: Expression) -> Iterator[Variable]:
    """The attributes that are alone in brackets, as `[company]`."""
    for part in subexpressions(expression):
        match part:
            case Call("[]", (Variable() as attribute,)):
                yield attribute


def summed_attributes(query: CeqlQuery) -> tuple[Variable, ...]:
    """The attributes whose values aggregates and GROUP BY look at."""
    found = aggregates(query.totals) if query.totals is not None else ()
    found += compared_aggregates(query.order) if query.order is not None else ()
    of = (a.arg.args[1] for a in found if isinstance(a.arg, Call))
    by = query.totals.by if query.totals is not None else ()
    return tuple(dict.fromkeys((*by, *(a for a in of if isinstance(a, Variable)))))


def column_names(expression: Expression) -> Iterator[Variable]:
    """The names of columns in HAVING."""
    match expression:
        case Variable():
            yield expression
        case Call(name, args) if name != OF:
            for arg in args:
                yield from column_names(arg)


def subformulas(formula: Formula) -> tuple[Formula, ...]:
    """The formulas directly below, left to right."""
    match formula:
        case EventType():
            return ()
        case Named(inner) | Filtered(inner) | Iterated(inner):
            return (inner,)
        case Either(formulas):
            return formulas
        case Follows(first, rest):
            return (first, *(f for _, f in rest))


def variables(formula: Formula) -> tuple[str, ...]:
    """The variables that may hold events of `formula`: its types and its names, in order of appearance."""
    below = [v for inner in subformulas(formula) for v in variables(inner)]
    match formula:
        case EventType(name) | Named(_, name):
            below.append(name)
    return tuple(dict.fromkeys(below))


def atomic(condition: Condition) -> tuple[Holds, ...]:
    """The `X[P]` of a condition, left to right."""
    if isinstance(condition, Holds):
        return (condition,)
    return tuple(t for c in condition.conditions for t in atomic(c))
