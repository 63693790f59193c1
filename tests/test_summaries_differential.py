"""Answers over matches (semantics.md 2.6b): the engine against the reference on random queries and streams.

A situation's own query gives the sequence, the patterns and the clauses; what it shows is replaced by groups.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from profiles import thorough
from pyoxigraph import Literal, NamedNode, Variable
from strategies import Situation, situations
from test_differential import WITHOUT_SHRINKING, by_pushes, by_reference, by_run, fail_small

from oxiseq.grammar import render
from oxiseq.grammar.algebra import (
    Aggregate,
    Call,
    Every,
    Expression,
    MatchFunction,
    OnChange,
    OnClose,
    Projection,
    Query,
    Select,
    Summary,
)
from oxiseq.grammar.errors import QueryError
from oxiseq.grammar.places import Overview, overview
from oxiseq.grammar.terms import XSD

OVER_ALL = ("COUNT", "SUM", "AVG", "MIN", "MAX")


def number(value: int) -> Literal:
    return Literal(str(value), datatype=NamedNode(XSD + "integer"))


def summarised(situation: Situation, seed: int) -> Situation | None:
    """The situation with an answer over matches, if what was drawn means something."""
    dice, query = random.Random(seed), load(situation.text)
    seen = overview(query)
    keys = _keys(dice, seen)
    names = tuple(Variable(f"g{i}") for i in range(len(keys)))
    columns = [Projection(name) for name in names if dice.random() < 0.9]
    measures = [_measure(dice, seen) for _ in range(dice.randint(0 if keys else 1, 3))]
    columns += [Projection(Variable(f"m{i}"), measure) for i, measure in enumerate(measures)]
    if not columns:
        return None
    having = ()
    if dice.random() < 0.3:
        having = (Call(dice.choice((">", "<=")), (Aggregate("COUNT", None), number(dice.randint(0, 3)))),)
    report = dice.choice((None, None, OnChange(), OnClose(), Every(dice.randint(1, 4))))
    tumbles = query.window is not None and not query.window.sliding
    if (isinstance(report, OnClose) and not tumbles) or (
        isinstance(report, Every) and query.window is not None and query.window.events
    ):
        report = None
    order, limit = (), None
    if measures and dice.random() < 0.2:
        # ORDER BY by everything that is shown, so that LIMIT leaves no choice
        order = ((Aggregate("COUNT", None), dice.random() < 0.5),)
    summary = Summary(tuple(zip(keys, names, strict=True)), having, order, report)
    form = Select(tuple(columns), dice.random() < 0.2, query.selection)
    made = replace(query, form=form, summary=summary, limit=limit)
    text = render(made)
    try:
        load(text)
    except QueryError:
        return None
    return replace(situation, text=text)


def _keys(dice: random.Random, seen: Overview) -> list[Expression]:
    variables: list[Expression] = sorted(seen.bound, key=lambda v: v.value)
    functions: list[Expression] = [MatchFunction("STARTTIME"), MatchFunction("ENDTIME")]
    pool = variables * 2 + functions
    return dice.sample(pool, dice.choice((0, 0, 1, 1, 2))) if pool else []


def _measure(dice: random.Random, seen: Overview) -> Expression:
    positive = [p for p in seen.places if not p.negated]
    variables = sorted({v for p in positive for v in seen.variables(p.name)}, key=lambda v: v.value)
    repeated = sorted({v for p in positive if p.repeats for v in seen.variables(p.name)}, key=lambda v: v.value)
    ways: list[Expression] = [Aggregate("COUNT", None)]
    if variables:
        ways += [Aggregate(dice.choice(OVER_ALL), dice.choice(variables), dice.random() < 0.2)] * 2
    if repeated:
        inner = Aggregate(dice.choice(("SUM", "COUNT", "MIN", "LAST", "FIRST")), dice.choice(repeated))
        ways += [Aggregate(dice.choice(OVER_ALL), inner)] * 2
    if positive:
        ways.append(Aggregate(dice.choice(OVER_ALL), MatchFunction("COUNT", dice.choice(positive).name)))
    return dice.choice(ways)


def rounded(answers: list[tuple[int, tuple[tuple[str, str], ...], object]]) -> Counter[object]:
    """As a bag; sums of doubles and floats may differ in their last digits."""
    return Counter((time, tuple((name, _rounded(text)) for name, text in row)) for time, row, _ in answers)


def _rounded(text: str) -> str:
    for kind, digits in (("double", 6), ("float", 4)):  # a double may be the sum of floats, in part
        if text.startswith('"') and text.endswith(f"{XSD}{kind}>"):  # a term, not a triple
            value = text[1 : text.rindex('"')]
            return f"{float(value):.{digits}g} {kind}"
    return text


def difference(situation: Situation) -> str | None:
    query: Query = load(situation.text)
    expected, answers = by_reference(query, situation)
    if expected.ambiguous:
        return None
    _, found = by_run(query, situation)
    wanted, given_ = rounded(answers), rounded(found)
    return None if wanted == given_ else f"missing {dict(wanted - given_)}, too much {dict(given_ - wanted)}"


def disorder(situation: Situation) -> str | None:
    query = load(situation.text)
    if sorted(by_pushes(query, situation, together=False)) != sorted(by_run(query, situation)[1]):
        return "run gives another answer than pushing one by one"
    return None


@thorough(phases=WITHOUT_SHRINKING)
@given(situations() | situations(clauses=True), st.integers(0, 1 << 30))
def test_groups_agree_with_the_reference(situation: Situation, seed: int) -> None:
    made = summarised(situation, seed)
    if made is not None:
        fail_small(made, difference)


@thorough(phases=WITHOUT_SHRINKING)
@given(situations() | situations(clauses=True), st.integers(0, 1 << 30))
@pytest.mark.slow
def test_groups_do_not_depend_on_how_events_are_pushed(situation: Situation, seed: int) -> None:
    made = summarised(situation, seed)
    if made is not None:
        fail_small(made, disorder)
