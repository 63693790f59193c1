"""Engine against reference, and incremental against from scratch: random small queries, streams, knowledge bases."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from hypothesis import given
from reference.rsp import evaluate_rsp
from rsp_strategies import Setting, continuous, event_queries, kb_store, triples

import oxiseq
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.rsp.plan import compile_rsp
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load
from oxiseq.grammar.rsp_algebra import Consume, Report, RspQuery, projected
from oxiseq.languages.front import said
from oxiseq.rsp.answer import Answer, AnswerShape

Row: TypeAlias = tuple[int, int | None, int | None, tuple[tuple[str, str], ...]]


def by_reference(setting: Setting) -> Counter[Row]:
    query = load(setting.text, setting.language)
    assert isinstance(query, RspQuery)
    streams = {iri: [(time, triples(text)) for time, text in events] for iri, events in setting.streams.items()}
    found = evaluate_rsp(
        query, streams, kb_store(setting.kb), setting.instants,
        None if setting.consumption is None else Consume(setting.consumption),
        None if setting.report is None else Report(setting.report),
    )  # fmt: skip
    shown = names(query)
    return Counter(
        (a.at, a.start, a.end, tuple((v, without_label(t)) for v, t in a.row if shown is None or v in shown))
        for a in found
    )


def names(query: RspQuery) -> set[str] | None:
    """What the engine's rows show of the reference's: for CONSTRUCT the template's variables."""
    if query.form == "CONSTRUCT":
        return {"x", "y"}
    chosen = projected(query)
    return None if chosen is None else {v.value for v in chosen}


def without_label(term: object) -> str:
    """Labels of blank nodes mean nothing."""
    text = str(term)
    return "_:" if text.startswith("_:") else text


def row_of(answer: Answer) -> Row:
    bound = sorted((v, without_label(t)) for v, t in answer.bindings.items() if t is not None)
    return answer.at, answer.start, answer.end, tuple(bound)


def by_engine(setting: Setting) -> Counter[Row]:
    reads = load(setting.text, setting.language).streams
    streams = {iri: events for iri, events in setting.streams.items() if iri in reads}
    found = oxiseq.run(
        setting.text, streams=streams, kb=kb_store(setting.kb), language=setting.language,
        instants=setting.instants, report=setting.report, consumption=setting.consumption,
    )  # fmt: skip
    return Counter(row_of(answer) for answer in found)


def pushed_one_by_one(setting: Setting) -> list[Row]:
    """The events in order of time, a push each, as a server gets them."""
    query, terms = load(setting.text, setting.language), TermDictionary()
    assert isinstance(query, RspQuery)
    plan = compile_rsp(query, terms, said(setting.report, setting.instants, setting.consumption))
    run, shape = RspRun(plan, terms, StoreKb(kb_store(setting.kb))), AnswerShape(plan, terms)
    events = sorted(
        (time, i, iri, text) for i, iri in enumerate(plan.streams) for time, text in setting.streams.get(iri, [])
    )
    batches = []
    for time, _, iri, text in events:
        run.push(iri, encode_events([(time, triples(text))], terms))
        for other in plan.streams:
            run.punctuate(other, time)
        batches += run.advance()
        terms.collect()
    run.close()
    batches += run.advance()
    return [row_of(shape.match(batch, i)) for batch in batches for i in range(len(batch))]


@given(continuous())
def test_continuous_sparql_answers_as_its_reference(setting: Setting) -> None:
    expected = by_reference(setting)
    assert by_engine(setting) == expected
    assert Counter(pushed_one_by_one(setting)) == expected


@given(event_queries())
def test_rsepql_answers_as_its_reference(setting: Setting) -> None:
    expected = by_reference(setting)
    assert by_engine(setting) == expected
    assert Counter(pushed_one_by_one(setting)) == expected
