"""A plan without its constants: what queries that differ in constants only have in common.

In the flow: a query's plan → **an open plan** and its constants. Two queries are alike if their
open plans are equal. In an open plan the variable `slot(3)` stands for the fourth constant.

Of triple patterns those constants are taken out that leave a leaf no dearer: the subjects and objects of a leaf of one
pattern, and the objects of a star, whose patterns have one variable as their subject. Two stars with a variable in
common are a leaf each, joined behind the table. A longer join would grow without its constants beyond what all queries
together find.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.plan import MOST_VARIABLES, Extend, Filter, FlowPlan, Form, Patterns, is_pure
from oxiseq.engine.flow.rewriting import replaced, rewritten
from oxiseq.grammar.algebra import Expression, TermOrVariable, TriplePattern

Constant: TypeAlias = NamedNode | Literal
Filling: TypeAlias = Constant | Variable
"""The content of a slot."""


@lru_cache(maxsize=256)
def slot(number: int) -> Variable:
    """The placeholder of a constant in an open plan."""
    return Variable(f"oxiseq_constant_{number}")


class Opened(NamedTuple):
    """An open plan: `forms` and the root say which queries are alike. constants: the contents of its slots."""

    forms: tuple[Form, ...]
    root: int
    constants: tuple[Constant, ...]


def opened(plan: FlowPlan) -> Opened:
    """A plan without its constants."""
    constants: list[Constant] = []

    def taken(term: Constant) -> Variable:
        constants.append(term)
        return slot(len(constants) - 1)

    forms = tuple(_opened(form, taken) for form in plan.forms)
    return Opened(forms, plan.root, tuple(constants))


def closed(forms: Sequence[Form], known: Mapping[Variable, Filling]) -> tuple[Form, ...]:
    """With terms, or other variables, for all slots."""
    return tuple(_closed(form, known) for form in forms)


def _opened(form: Form, taken: Callable[[Constant], Variable]) -> Form:
    match form:
        case Patterns(patterns, filters):
            conditions = tuple(opened_expression(e, taken) for e in filters)
            return replace(form, patterns=opened_patterns(patterns, taken), filters=conditions)
        case Filter(_, conditions):
            return replace(form, conditions=tuple(opened_expression(e, taken) for e in conditions))
        case Extend(_, expression) if is_pure(expression):
            return replace(form, expression=opened_expression(expression, taken))
        case p.Triples(equal=equal):
            return replace(form, equal=tuple((i, t if i == p.PREDICATE else taken(_constant(t))) for i, t in equal))
        case _:
            return form


def _constant(term: object) -> Constant:
    assert isinstance(term, NamedNode | Literal)
    return term


def opened_patterns(
    patterns: tuple[TriplePattern, ...], taken: Callable[[Constant], Variable]
) -> tuple[TriplePattern, ...]:
    """Triple patterns with other variables for their constants, as far as that costs little."""
    groups = [[patterns[i] for i in numbers] for numbers in stars(patterns)]
    if not (len(groups) == 1 or (len(groups) == 2 and _linear(groups))) or not all(map(_is_star, groups)):
        return patterns
    single = [each for group in groups if len(group) == 1 for each in group]
    return tuple(
        TriplePattern(
            taken(each.subject) if each in single and isinstance(each.subject, NamedNode) else each.subject,
            each.predicate,
            _object(each, taken),
        )
        for each in patterns
    )


def stars(patterns: Sequence[TriplePattern]) -> tuple[tuple[int, ...], ...]:
    """The numbers of patterns with the same subject."""
    found: dict[TermOrVariable, list[int]] = {}
    for number, each in enumerate(patterns):
        found.setdefault(each.subject, []).append(number)
    return tuple(map(tuple, found.values()))


def _is_star(patterns: Sequence[TriplePattern]) -> bool:
    return len(patterns) == 1 or (
        isinstance(patterns[0].subject, Variable | BlankNode) and 3 * len(patterns) <= MOST_VARIABLES
    )


def _linear(groups: Sequence[Sequence[TriplePattern]]) -> bool:
    """Whether two groups have a variable in common, and each finds no more than there are subjects, as far as these
    have one value each."""
    one, other = ({t for each in group for t in (each.subject, each.object)} for group in groups)
    common = any(isinstance(term, Variable | BlankNode) for term in one & other)
    return common and all(
        len({each.predicate for each in group if isinstance(each.predicate, NamedNode)}) == len(group)
        for group in groups
    )


def _object(pattern: TriplePattern, taken: Callable[[Constant], Variable]) -> TermOrVariable:
    return taken(pattern.object) if isinstance(pattern.object, NamedNode | Literal) else pattern.object


def opened_expression(expression: Expression, taken: Callable[[Constant], Variable]) -> Expression:
    """An expression with other variables for its constants."""
    return rewritten(expression, lambda e: taken(e) if isinstance(e, NamedNode | Literal) else None)


# --- with terms again --------------------------------------------------------------------------------


def _closed(form: Form, known: Mapping[Variable, Filling]) -> Form:
    terms = dict[Expression, Expression](known.items())
    match form:
        case Patterns(patterns, filters):
            closed_ = tuple(TriplePattern(_of(t.subject, known), t.predicate, _of(t.object, known)) for t in patterns)
            return replace(form, patterns=closed_, filters=tuple(replaced(e, terms) for e in filters))
        case Filter(_, conditions):
            return replace(form, conditions=tuple(replaced(e, terms) for e in conditions))
        case Extend(_, expression):
            return replace(form, expression=replaced(expression, terms))
        case p.Triples(equal=equal):
            filled_in = ((i, known.get(t, t) if isinstance(t, Variable) else t) for i, t in equal)
            return replace(form, equal=tuple(filled_in))
        case _:
            return form


def _of(term: TermOrVariable, known: Mapping[Variable, Filling]) -> TermOrVariable:
    return known.get(term, term) if isinstance(term, Variable) else term
