"""Engine against reference, and incremental against from scratch: random small queries, streams, knowledge bases."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from loaded import load
from profiles import thorough
from pyoxigraph import Variable
from reference.rsp import evaluate_rsp
from rsp_lives import Row, pushed_one_by_one, row_of, row_of_reference
from rsp_strategies import Setting, continuous, event_queries, kb_store, selections, triples

import oxiseq
from oxiseq.engine.flow import leaves
from oxiseq.engine.run import rsp
from oxiseq.grammar.rsp_algebra import Consume, Report, RspQuery


def by_reference(setting: Setting) -> Counter[Row]:
    query = load(setting.text, setting.language)
    assert isinstance(query, RspQuery)
    streams = {iri: [(time, triples(text)) for time, text in events] for iri, events in setting.streams.items()}
    found = evaluate_rsp(
        query,
        streams,
        kb_store(setting.kb),
        setting.instants,
        None if setting.consumption is None else Consume(setting.consumption),
        None if setting.report is None else Report(setting.report),
    )
    shown = names(query)
    return Counter(row_of_reference(answer, shown) for answer in found)


def names(query: RspQuery) -> set[str] | None:
    """What the engine's rows show of the reference's: for CONSTRUCT the template's variables."""
    if query.form == "CONSTRUCT":
        return {"x", "y"}
    chosen = query.body.projection
    return None if chosen is None else {(p if isinstance(p, Variable) else p[1]).value for p in chosen}


def by_engine(setting: Setting) -> Counter[Row]:
    reads = load(setting.text, setting.language).streams
    streams = {iri: events for iri, events in setting.streams.items() if iri in reads}
    found = oxiseq.run(
        setting.text,
        streams=streams,
        kb=kb_store(setting.kb),
        language=setting.language,
        evaluation_times=setting.instants,
        stream_operator=setting.report,
        consumption=setting.consumption,
    )
    return Counter(row_of(answer) for answer in found)


@thorough()
@given(continuous())
def test_continuous_sparql_answers_as_its_reference(setting: Setting) -> None:
    expected = by_reference(setting)
    assert by_engine(setting) == expected
    assert Counter(pushed_one_by_one(setting)) == expected


@given(continuous())
def test_all_instants_of_a_batch_answer_as_one_after_the_other(setting: Setting) -> None:
    """engine/rsp/steady.py, a special path, beside general.py, which can answer every query."""
    at_once = by_engine(setting), pushed_one_by_one(setting)
    with patch.object(rsp, "is_steady", return_value=False):
        assert (by_engine(setting), pushed_one_by_one(setting)) == at_once


@given(continuous(), st.integers(0, 3))
def test_a_batch_in_portions_answers_as_a_whole(setting: Setting, most: int) -> None:
    with patch.object(leaves, "_CHANGED", most):
        in_portions = by_engine(setting)
    assert in_portions == by_engine(setting)


@thorough()
@given(event_queries())
@pytest.mark.slow
def test_rsepql_answers_as_its_reference(setting: Setting) -> None:
    expected = by_reference(setting)
    assert by_engine(setting) == expected
    assert Counter(pushed_one_by_one(setting)) == expected


@thorough()
@given(selections())
@pytest.mark.slow
def test_selections_answer_as_their_reference(setting: Setting) -> None:
    expected = by_reference(setting)
    event("answers" if expected else "no answers")
    assert by_engine(setting) == expected
    assert Counter(pushed_one_by_one(setting)) == expected
