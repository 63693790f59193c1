"""A query's answer: its columns, and the values that they read (semantics.md 2.1, 2.4).

In the flow: algebra → **answer plan** → (matches) → answer columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyoxigraph import Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Ask,
    Construct,
    Expression,
    Select,
    TriplePattern,
)
from oxiseq.grammar.places import Overview, behind_where, is_over_matches, repeated_gpms
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import GpmParts, expression_variables, subexpressions


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """A column: a variable as the match binds it, or an expression."""

    variable: Variable
    expression: Expression | None


@dataclass(frozen=True, slots=True)
class Iterations:
    """The Kleene GPM over whose iterations an aggregate goes, and the GPM's variables."""

    gpm: str
    variables: frozenset[Variable]


@dataclass(frozen=True, slots=True)
class Answer:
    """`columns` of each answer row; `wanted`: the variables that they read; `template` for CONSTRUCT.

    `iterations` says for each aggregate over which GPM's rows it goes. `filters`: what a whole match must pass to be
    one (semantics.md 2.5b).
    """

    columns: tuple[AnswerColumn, ...]
    wanted: frozenset[Variable]
    distinct: bool
    template: tuple[TriplePattern, ...]
    ask: bool
    into: str | None
    iterations: Mapping[Aggregate, Iterations]
    filters: tuple[Expression, ...] = ()


def answer_of(seen: Overview, positive: Iterable[GpmParts]) -> Answer:
    """The answer plan of a checked query; `positive`: the GPMs that a match binds, in the text's order."""
    query, gpms = seen.query, list(positive)
    visible = tuple(dict.fromkeys(v for gpm in gpms for v in gpm.variables))
    form = query.form
    template: tuple[TriplePattern, ...] = ()
    into: str | None = None
    match form:
        case Select(columns, distinct):
            chosen = (
                tuple(AnswerColumn(v, None) for v in visible)
                if columns is None
                else tuple(AnswerColumn(c.variable, c.expression) for c in columns)
            )
        case Construct(template, target, columns):
            distinct, into = False, target.value if target else None
            computed = tuple(AnswerColumn(c.variable, c.expression) for c in columns)
            named = {c.variable for c in computed}
            used = dict.fromkeys(
                t
                for triple in template
                for t in (triple.subject, triple.predicate, triple.object)
                if isinstance(t, Variable) and t not in named
            )
            chosen = tuple(AnswerColumn(v, None) for v in used) + computed
        case Ask():
            chosen, distinct = (), False
    wanted: set[Variable] = set()
    iterations: dict[Aggregate, Iterations] = {}
    filters = tuple(each.condition for each in query.filters)
    for expression in (*(c.expression or c.variable for c in chosen), *behind_where(query.summary), *filters):
        wanted |= expression_variables(expression)
        for part in subexpressions(expression):
            if isinstance(part, Aggregate) and not is_over_matches(seen, part):
                iterations[part] = _iterations(part, seen)
    return Answer(chosen, frozenset(wanted), distinct, template, isinstance(form, Ask), into, iterations, filters)


def _iterations(aggregate: Aggregate, seen: Overview) -> Iterations:
    (gpm,) = repeated_gpms(seen, aggregate)
    return Iterations(gpm, seen.variables(gpm))
