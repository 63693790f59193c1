"""Over what an aggregate of SELECT runs: the iterations of a repeated GPM in one match, or the matches.

In the flow: algebra → facts that checks and compiler ask for (semantics.md 2.6b). An aggregate whose argument
holds a variable of a repeated GPM that no inner aggregate has consumed runs over that GPM's iterations. Any other one
runs over matches, and so does `COUNT(*)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyoxigraph import Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Call,
    Construct,
    Expression,
    FunctionCall,
    MatchFunction,
    Select,
    Summary,
)
from oxiseq.grammar.functions import ITERATION_VALUES
from oxiseq.grammar.places import Overview
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import expression_variables, outside_aggregates, subexpressions


def repeated_gpms(seen: Overview, aggregate: Aggregate) -> tuple[str, ...]:
    """The repeated GPMs over whose iterations an aggregate runs; one if it is right, none if it runs over matches.

    Those that bind one of its variables which no unrepeated positive GPM binds. FIRST and LAST run over iterations
    whatever they name.
    """
    if aggregate.arg is None:
        return ()
    used = frozenset(outside_aggregates(aggregate.arg))
    single = frozenset(v for p in seen.places if not p.negated and not p.repeats for v in seen.variables(p.name))
    repeated = dict.fromkeys(p.name for p in seen.places if p.repeats and not p.negated)
    own = tuple(n for n in repeated if seen.variables(n) & (used - single))
    if own or aggregate.name not in ITERATION_VALUES:
        return own
    return tuple(n for n in repeated if seen.variables(n) & used)


def is_over_matches(seen: Overview, aggregate: Aggregate) -> bool:
    """Whether an aggregate runs over matches. One with a variable that nothing binds is an error of its own."""
    if aggregate.name in ITERATION_VALUES:
        return False
    known = aggregate.arg is None or expression_variables(aggregate.arg) <= seen.bound
    return known and not repeated_gpms(seen, aggregate)


def over_matches(seen: Overview, expression: Expression) -> Iterator[Aggregate]:
    """The aggregates over matches in an expression, outermost only."""
    match expression:
        case Aggregate(_, arg):
            if is_over_matches(seen, expression):
                yield expression
            elif arg is not None:
                yield from over_matches(seen, arg)
        case Call(_, args) | FunctionCall(_, args):
            for arg in args:
                yield from over_matches(seen, arg)


def summarises(seen: Overview) -> bool:
    """Whether the answer has a row per group of matches, not one per match."""
    query = seen.query
    if query.summary.group_by or query.summary.having:
        return True
    return any(True for e in shown_expressions(seen) for _ in over_matches(seen, e))


def shown_expressions(seen: Overview) -> Iterator[Expression]:
    """The expressions of SELECT or of CONSTRUCT's template."""
    form = seen.query.form
    if isinstance(form, Select | Construct):
        yield from (c.expression for c in form.columns or () if c.expression is not None)


@dataclass(frozen=True, slots=True)
class Keys:
    """The group keys: by the expression as the text has it, the variable that stands for it behind the grouping."""

    expressions: Mapping[Expression, Variable]
    pairs: tuple[tuple[Expression, Variable], ...]
    """All of them, in order: one expression may have several names."""
    names: frozenset[Variable]
    """Variables that may be named outside aggregates."""


def keys_of(summary: Summary) -> Keys:
    """The keys of GROUP BY, in its order; one without a name gets one that no text can have."""
    known: dict[Expression, Variable] = {}
    pairs: list[tuple[Expression, Variable]] = []
    names: set[Variable] = set()
    for number, key in enumerate(summary.group_by):
        expression, name = key if isinstance(key, tuple) else (key, None)
        if isinstance(expression, Variable):
            names.add(expression)
        if name is not None:
            names.add(name)
        stands = name or (expression if isinstance(expression, Variable) else _unnamed(number))
        known.setdefault(expression, stands)
        pairs.append((expression, stands))
    return Keys(known, tuple(pairs), frozenset(names))


def _unnamed(number: int) -> Variable:
    return Variable(f"__key{number}")


def ends_with_its_instant(summary: Summary) -> bool:
    """Whether a group is complete with its instant, since its keys hold ENDTIME()."""
    return any(
        isinstance(e, MatchFunction) and e.name == "ENDTIME"
        for key in keys_of(summary).expressions
        for e in subexpressions(key)
    )
