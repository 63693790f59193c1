"""ORDER BY, LIMIT, OFFSET and SAMPLE on matches (semantics.md 2.6b), random: against the reference,
and on the compact set against listing.

A situation's own query gives the sequence, the patterns and the clauses; what it shows and how it ranks is drawn.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from profiles import thorough
from pyoxigraph import Literal, NamedNode, RdfFormat, Store, Variable
from reference.evaluate import ReferenceResult, evaluate
from reference.ranking import Keys, Ranked, objection, reports
from strategies import Situation, situations
from test_differential import WITHOUT_SHRINKING, by_pushes, end_of, fail_small, triples_of

import oxiseq
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import render
from oxiseq.grammar.algebra import (
    Aggregate,
    Call,
    Expression,
    Limit,
    MatchFunction,
    OnClose,
    Projection,
    Query,
    Sample,
    Select,
    Summary,
)
from oxiseq.grammar.errors import QueryError
from oxiseq.grammar.places import Overview, overview
from oxiseq.grammar.terms import XSD


def ranked(situation: Situation, seed: int) -> Situation | None:
    """The situation with a ranking, if what was drawn means something."""
    dice, query = random.Random(seed), load(situation.text)
    if not isinstance(query.form, Select):
        return None
    seen = overview(query)
    keys = [_key(dice, seen) for _ in range(dice.choice((0, 1, 1, 2)))]
    sample = Sample(dice.randint(1, 3), dice.randint(0, 2)) if not keys or dice.random() < 0.1 else None
    limit = Limit(dice.randint(1, 4), dice.choice((0, 0, 1, 2))) if sample is None and dice.random() < 0.9 else None
    parted = query.partition.by if query.partition is not None else ()
    columns = [Projection(v) for v in parted]
    columns += [Projection(Variable(f"key{i}"), _shown(key)) for i, key in enumerate(keys)]
    columns += [Projection(v) for v in sorted(seen.bound - set(parted), key=str)]
    order = tuple((key, dice.random() < 0.5) for key in keys)
    window = query.window
    tumbles = window is not None and not window.sliding and not (window.events and parted)
    report = OnClose() if tumbles and dice.random() < 0.4 else None
    form = Select(tuple(columns), False, query.selection)
    made = replace(query, form=form, limit=limit, sample=sample, summary=Summary(order_by=order, report=report))
    text = render(made)
    try:
        load(text)
    except QueryError:
        return None
    return replace(situation, text=text)


def _shown(key: Expression) -> Expression:
    """A key as a column: a plain variable has a name already."""
    return Call("COALESCE", (key,)) if isinstance(key, Variable) else key


def _key(dice: random.Random, seen: Overview) -> Expression:
    positive = [p for p in seen.places if not p.negated]
    variables = sorted({v for p in positive for v in seen.variables(p.name)}, key=str)
    repeated = sorted({v for p in positive if p.repeats for v in seen.variables(p.name)}, key=str)
    times = [MatchFunction(name) for name in ("STARTTIME", "ENDTIME", "DURATION")]
    name = dice.choice(positive).name
    ways: list[Expression] = [dice.choice(times), MatchFunction("COUNT", name), MatchFunction("TIMEOF", name)]
    sums: list[Expression] = [MatchFunction("COUNT", name)]
    if variables:
        ways += [dice.choice(variables)] * 3
        sums += [dice.choice(variables)] * 2
    if repeated:
        inner = [Aggregate(dice.choice(("SUM", "SUM", "MAX", "AVG")), dice.choice(repeated))]
        ways += inner * 3
        sums += inner * 2
    weight = Literal("3", datatype=NamedNode(XSD + "integer"))
    two = dice.choice(sums), dice.choice(sums)
    ways += [Call(dice.choice("+-"), two), Call("+", (Call("*", (weight, two[0])), two[1]))]
    return dice.choice(ways)


# --- against the reference ------------------------------------------------------------------------


def by_reference(query: Query, situation: Situation) -> ReferenceResult:
    kb = Store()
    kb.load(situation.kb.encode(), format=RdfFormat.N_QUADS)
    streams = {iri: [(time, triples_of(text)) for time, text in events] for iri, events in situation.streams.items()}
    return evaluate(query, streams, kb, lateness=situation.lateness)


def difference(situation: Situation) -> str | None:
    query = load(situation.text)
    expected = by_reference(replace(query, limit=None, sample=None), situation)
    if expected.ambiguous:
        return None
    closes = query.summary.report is not None
    parted = [v.value for v in (query.partition.by if query.partition is not None and not closes else ())]
    at = reports(query, situation.streams, situation.lateness)
    names = [f"key{i}" for i in range(len(query.summary.order_by))]
    known: dict[object, list[Ranked]] = {}
    for row in expected.rows:
        bound = {v.value: t for v, t in row.bindings.items()}
        when = tuple(sorted((time, name) for name, events in row.events.items() for _, time in events))
        keys = tuple(bound.get(name) for name in names)
        group = at(row.end), tuple(str(bound.get(v)) for v in parted)
        known.setdefault(group, []).append(Ranked(keys, when, _row(at(row.end), bound, row.events)))
    told: dict[object, list[tuple[Keys, object]]] = {}
    lateness, streams = f"{situation.lateness}us", {iri: iter(events) for iri, events in situation.streams.items()}
    for match in oxiseq.run(situation.text, streams, kb=situation.kb or None, lateness=lateness, late="ignore"):
        bound = dict(match)
        keys = tuple(bound.get(name) for name in names)
        when = match.at_us if closes else end_of(match)
        group = when, tuple(str(bound.get(v)) for v in parted)
        told.setdefault(group, []).append((keys, _row(when, bound, match.events)))
    for group in {**known, **told}:
        fault = objection(query, known.get(group, []), told.get(group, []))
        if fault is not None:
            return f"{group}: {fault}; told {told.get(group)} of {known.get(group)}"
    return None


def _row(time: int, bound: dict[str, object], events: object) -> object:
    """What tells a match from others, but for its blank nodes."""
    shown = ((name, "_:" if str(term).startswith("_:") else str(term)) for name, term in bound.items() if term)
    return time, tuple(sorted(shown)), tuple(sorted((n, tuple(e)) for n, e in dict(events).items() if e))


@thorough(phases=WITHOUT_SHRINKING)
@given(situations() | situations(clauses=True), st.integers(0, 1 << 30))
def test_rankings_agree_with_the_reference(situation: Situation, seed: int) -> None:
    made = ranked(situation, seed)
    if made is not None:
        fail_small(made, difference)


# --- on the compact set, and by listing -----------------------------------------------------------


def told_by(situation: Situation, *, listing: bool) -> Sequence[object]:
    """All rows in their order, and the events that they are made of."""
    terms = TermDictionary()
    plan = compile_query(load(situation.text), terms, listing=listing)
    kb = Store()
    kb.load(situation.kb.encode(), format=RdfFormat.N_QUADS)
    run = QueryRun(plan, terms, StoreKb(kb), lateness=situation.lateness)
    for stream in plan.streams:
        run.push(stream, encode_events(situation.streams.get(stream, []), terms))
    run.close()
    found: list[object] = []
    for batch in run.advance():
        for m in range(len(batch)):
            events = slice(int(batch.ends[m]), int(batch.ends[m + 1]))
            shown = tuple(terms.text(i) if i else "" for i in batch.values[m].tolist())
            found.append(
                (int(batch.time[m]), shown, batch.event_letter[events].tolist(), batch.event_time[events].tolist())
            )
    return found


def disagreement(situation: Situation) -> str | None:
    picked, listed = told_by(situation, listing=False), told_by(situation, listing=True)
    return None if picked == listed else f"picked {picked}, by listing {listed}"


@thorough(phases=WITHOUT_SHRINKING)
@given(situations() | situations(clauses=True), st.integers(0, 1 << 30))
def test_the_best_are_those_of_listed_matches(situation: Situation, seed: int) -> None:
    made = ranked(situation, seed)
    if made is not None:
        fail_small(made, disagreement)


def disorder(situation: Situation) -> str | None:
    query = load(situation.text)
    one_by_one = by_pushes(query, situation, together=False)
    if by_pushes(query, situation, together=True) != one_by_one:
        return "pushing several events at once tells others, or in another order"
    return None


@thorough(phases=WITHOUT_SHRINKING)
@given(situations() | situations(clauses=True), st.integers(0, 1 << 30))
@pytest.mark.slow
def test_rankings_do_not_depend_on_how_events_are_pushed(situation: Situation, seed: int) -> None:
    made = ranked(situation, seed)
    if made is not None:
        fail_small(made, disorder)
