"""SUPPRESS (semantics.md 2.6c): the engine against the reference on random queries, which show a row per match or per
group.

The order of matches that are decided together decides which of them is emitted.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from profiles import drawn, thorough
from pyoxigraph import RdfFormat, Variable, parse, serialize
from reference.facts import streams_of
from reference.scopes import shown
from reference.test_definitions import suppressing
from strategies import Dice, E, Situation, situations
from test_at_differential import comparable_limit, difference, live_difference
from test_differential import WITHOUT_SHRINKING, fail_small
from test_summaries_differential import summarised

from oxiseq.grammar import render
from oxiseq.grammar.algebra import (
    SUPPRESSED,
    Limit,
    MatchFunction,
    Projection,
    Select,
    Selection,
    Strategy,
    Summary,
    Suppression,
)
from oxiseq.grammar.errors import QueryError

DROPPED = Projection(Variable("dropped"), SUPPRESSED)


SUPPRESSING = (situations(suppress=True) | situations(clauses=True, suppress=True)).filter(comparable_limit)


@thorough(phases=WITHOUT_SHRINKING)
@given(SUPPRESSING)
def test_run_suppresses_rows(situation: Situation) -> None:
    fail_small(situation, difference)


@drawn(60, phases=WITHOUT_SHRINKING)
@given(SUPPRESSING)
def test_a_store_suppresses_rows(situation: Situation) -> None:
    fail_small(situation, live_difference)


def suppressed(situation: Situation, seed: int) -> Situation | None:
    """The situation with an answer over matches that SUPPRESS goes over; all keys are shown, so that equal rows are of
    one group."""
    made, dice = summarised(situation, seed), Random(seed)
    if made is None:
        return None
    query = load(made.text)
    names = [key[1] for key in query.summary.group_by if isinstance(key, tuple)]
    columns = [c for c in query.form.columns or () if c.variable not in names]
    shown = (*map(Projection, names), *columns, DROPPED)
    by = tuple(dice.sample(names, dice.randint(1, len(names)))) if names and dice.random() < 0.6 else None
    suppression = Suppression(dice.choice((1, 2, 2, 3, 5)), by)
    limit = Limit(dice.choice((1, 1, 2))) if not query.summary.order_by and dice.random() < 0.2 else None
    made_ = replace(query, form=replace(query.form, columns=shown), suppression=suppression, limit=limit)
    text = render(made_)
    try:
        load(text)
    except QueryError:
        return None
    return replace(situation, text=text)


@thorough(phases=WITHOUT_SHRINKING)
@given(situations() | situations(clauses=True), st.integers(0, 1 << 30))
def test_run_suppresses_rows_of_groups(situation: Situation, seed: int) -> None:
    made = suppressed(situation, seed)
    if made is not None:
        fail_small(made, difference)


DIFFERENT = {
    "the values say which comes first": ("SELECT *", "", "A", ""),
    "an absent GPM's empty list comes first": ("SELECT *", "", "A | B", ""),
    "the key is of a GPM that is never there": ("SELECT *", " BY ?b", "A; B? AFTER PT0.000004S WITHIN PT0.000002S", ""),
    "all rows of a query without GROUP BY have one key": ("SELECT (COUNT(*) AS ?n)", "\nPARTITION BY ?k", "A", ""),
    "the values say which is first of those equal for ORDER BY": ("SELECT *", "", "A", " ORDER BY STARTTIME()"),
}
"""Queries that differed: SELECT, what stands behind SUPPRESS, SEQ, what stands behind WHERE."""


@pytest.mark.parametrize("what", DIFFERENT)
def test_rows_that_differed(what: str) -> None:
    select, header, sequence, behind = DIFFERENT[what]
    gpms = "DEFINE GPM A ON S1 { ?a :k ?k } DEFINE GPM B ON S1 { ?b :v ?k }"
    gpms = gpms if "B" in sequence else gpms.partition(" DEFINE GPM B")[0]
    where = f"FROM STREAM S1 <{E}s1> WHERE {{ SEQ({sequence}) {gpms} }}"
    text = f"PREFIX : <{E}> {select} SUPPRESS PT0.000003S{header} {where}{behind}"
    things = "".join(f"<{E}t> <{E}{p}> <{E}{o}> .\n" for p, o in (("k", "y"), ("k", "x"), ("v", "x"), ("v", "y")))
    assert difference(Situation(text, {f"{E}s1": [(1, things)]}, "", 0, (f"{E}s1",), frozenset())) is None


# --- strategies, ORDER BY, LIMIT ------------------------------------------------------------------


def ranked(dice: Dice) -> Situation:
    """A few GPMs of many matches, with what chooses among them."""
    query, stream = suppressing(dice)
    visible = list(dict.fromkeys(v for gpm in query.gpms for v in shown(gpm.pattern)))
    visible = [v for v in visible if v.value not in ("n", "kn")]  # negated
    keys = [v for v in visible if v.value in ("k", "ka", "kb")]
    strategy = Selection(dice.pick([Strategy.NEXT, Strategy.LAST, Strategy.MAX])) if dice.chance(30) else None
    order = Summary(order_by=((dice.pick([*keys, MatchFunction("STARTTIME")]), dice.chance(50)),))
    ordered = dice.chance(40)
    query = replace(
        query,
        form=Select((*map(Projection, visible), DROPPED), not ordered and dice.chance(20), strategy),
        limit=Limit(dice.pick([1, 1, 2])) if dice.chance(40) else None,
        suppression=Suppression(dice.between(1, 8), tuple(dice.some(keys, 2)) if dice.chance(50) else None),
        summary=order if ordered else Summary(),
    )
    streams = {iri: [(time, n_triples(text)) for time, text in events] for iri, events in streams_of(stream).items()}
    places = tuple(iri for iri, events in streams.items() for _ in events)
    return Situation(render(query), streams, "", 0, places, frozenset([len(places) // 2]))


def n_triples(turtle: str) -> str:
    triples = [quad.triple for quad in parse(turtle.encode(), format=RdfFormat.TURTLE)]
    made = serialize(triples, format=RdfFormat.N_TRIPLES)
    assert made is not None
    return made.decode()


RANKED = st.integers(0, 2**62).map(lambda seed: ranked(Dice(seed)))


@drawn(200, phases=WITHOUT_SHRINKING)
@given(RANKED)
def test_run_suppresses_behind_strategies_and_before_limit(situation: Situation) -> None:
    fail_small(situation, difference)


@drawn(60, phases=WITHOUT_SHRINKING)
@given(RANKED)
def test_a_store_suppresses_behind_strategies_and_before_limit(situation: Situation) -> None:
    fail_small(situation, live_difference)
