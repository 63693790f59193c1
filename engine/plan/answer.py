"""What a query answers: its columns, and what they read (semantics.md 2.1, 2.4).

Where it stands: algebra → **answer plan** → (matches) → answer columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyoxigraph import Variable

from oxiseq.engine.sequence.positions import Automaton
from oxiseq.grammar.algebra import (
    Aggregate,
    Ask,
    Construct,
    Expression,
    MatchFunction,
    Query,
    Select,
    TriplePattern,
)
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

    `iterations` says for each aggregate over which GPM's rows it goes.
    """

    columns: tuple[AnswerColumn, ...]
    wanted: frozenset[Variable]
    distinct: bool
    template: tuple[TriplePattern, ...]
    ask: bool
    into: str | None
    iterations: Mapping[Aggregate, Iterations]


def answer_of(query: Query, positive: Iterable[GpmParts], automaton: Automaton) -> Answer:
    """The answer plan of a checked query; `positive`: the GPMs that a match binds, in the text's order."""
    gpms = list(positive)
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
                t for triple in template for t in (triple.subject, triple.predicate, triple.object)
                if isinstance(t, Variable) and t not in named
            )
            chosen = tuple(AnswerColumn(v, None) for v in used) + computed
        case Ask():
            chosen, distinct = (), False
    wanted: set[Variable] = set()
    iterations: dict[Aggregate, Iterations] = {}
    repeated = {n for p in automaton.positions if p.loops for letter in p.letters for n in letter}
    for column in chosen:
        if column.expression is None:
            wanted.add(column.variable)
            continue
        wanted |= expression_variables(column.expression)
        for part in subexpressions(column.expression):
            if isinstance(part, Aggregate):
                iterations[part] = _iterations(part, gpms, repeated)
    return Answer(chosen, frozenset(wanted), distinct, template, isinstance(form, Ask), into, iterations)


def _iterations(aggregate: Aggregate, gpms: list[GpmParts], repeated: set[str]) -> Iterations:
    used = expression_variables(aggregate)
    for gpm in gpms:
        if gpm.gpm.name in repeated and used & set(gpm.variables):
            return Iterations(gpm.gpm.name, frozenset(gpm.variables))
    raise AssertionError("the checks let an aggregate without a repeated GPM through")


def match_parts(expression: Expression) -> tuple[MatchFunction | Aggregate, ...]:
    """Its match functions and aggregates, outermost first."""
    return tuple(e for e in subexpressions(expression) if isinstance(e, MatchFunction | Aggregate))
