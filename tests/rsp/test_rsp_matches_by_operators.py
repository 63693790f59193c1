"""Queries with MATCH, answered with the operators' mappings in place of the engine's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from profiles import drawn
from reference.rsp import Answer, evaluate_rsp
from rsp_cases import RspCase, Told, load_rsp_cases
from rsp_strategies import Setting, kb_store, selections, triples

import oxiseq
from oxiseq.engine.flow import events as flow_events
from oxiseq.engine.flow.delta import Delta
from oxiseq.engine.flow.events import EventRows
from oxiseq.engine.flow.flow import Flow
from oxiseq.engine.flow.plan import Sheet
from oxiseq.engine.flow.relations import Relations
from oxiseq.engine.flow.times import halves_of, times_at
from oxiseq.engine.rsp import general
from oxiseq.engine.rsp.mappings import Events
from oxiseq.engine.rsp.plan import MatchPlan
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load
from oxiseq.grammar.rsp_algebra import Consume, Report, RspQuery, event_names

CASES = [c for c in load_rsp_cases() if c.rows is not None and c.query is not None and "MATCH" in c.query]


class FlowMatch:
    """A MATCH that is told at each instant what its events are, and looks at what has changed of them."""

    def __init__(self, match: MatchPlan, atoms: Mapping[str, Events]) -> None:
        rows = {
            name.name: EventRows(name.name, atoms[name.name].variables, atoms[name.name].certain)
            for name in event_names(match.pattern)
        }
        sheet = Sheet()
        self.found = flow_events.Events(Relations(sheet), rows, items=True).mappings(match.pattern)
        plan, self.width = sheet.plan(self.found.node), sheet.width(self.found.node)
        self.of = tuple(atoms[name.name].of[0] for name in event_names(match.pattern))
        self.places = {name: plan.forms.index(each.given(items=True)) for name, each in rows.items()}
        self.flow = Flow(plan, TermDictionary())
        self.before: dict[str, Counter[tuple[int, ...]]] = {name: Counter() for name in rows}
        self.now: Counter[tuple[int, ...]] = Counter()
        self.tick = 0

    def at(self, atoms: Mapping[str, Events]) -> Events:
        for name, place in self.places.items():
            events = atoms[name]
            rows = np.column_stack([events.values, halves_of(events.end), halves_of(events.items[:, 0])])
            now = Counter(tuple(row) for row in rows.tolist())
            self.flow.feed(place, self.changed(now, self.before[name], rows.shape[1]))
            self.before[name] = now
        told = self.flow.step(self.tick)
        self.tick += 1
        for row, weight in zip(told.rows.tolist(), told.weight.tolist(), strict=True):
            self.now[tuple(row)] += weight
        self.now = Counter({row: weight for row, weight in self.now.items() if weight})
        assert all(weight > 0 for weight in self.now.values())
        return self.mappings()

    def changed(self, now: Counter[tuple[int, ...]], before: Counter[tuple[int, ...]], width: int) -> Delta:
        weights = {row: now[row] - before[row] for row in now | before if now[row] != before[row]}
        rows = np.array([*weights], np.uint32).reshape(len(weights), width)
        return Delta(np.full(len(rows), self.tick), np.array([*weights.values()], np.int64), rows)

    def mappings(self) -> Events:
        found = self.found
        rows = np.array([*self.now.elements()], np.uint32).reshape(self.now.total(), self.width)
        items = np.column_stack([times_at(rows, place) for place in found.items])
        return Events(
            found.variables, found.certain, np.ascontiguousarray(rows[:, : len(found.variables)]),
            times_at(rows, found.start), times_at(rows, found.end), items, self.of,
        )  # fmt: skip


@contextmanager
def by_operators() -> Iterator[None]:
    """All mappings are the operators'."""
    known: dict[MatchPlan, FlowMatch] = {}

    def evaluate(match: MatchPlan, atoms: Mapping[str, Events]) -> Events:
        if match not in known:
            known[match] = FlowMatch(match, atoms)
        return known[match].at(atoms)

    with patch.object(general, "evaluate", evaluate), patch.object(general, "grows", lambda *_: False):
        yield


def by_name(case: RspCase) -> str:
    return case.name


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_the_corpus_is_answered(case: RspCase) -> None:
    assert case.query is not None
    with by_operators():
        answers = oxiseq.run(
            case.query, streams=case.streams, kb=case.kb or None, language=case.language, report=case.report,
            instants=case.instants,
        )  # fmt: skip
    found: list[Told] = []
    for a in answers:
        row = tuple(sorted((v, str(t)) for v, t in a.bindings.items() if t is not None))
        times = None if not case.timed or a.start is None or a.end is None else (a.start, a.end)
        found.append((a.at, times, row))
    assert Counter(found if case.timed else set(found)) == case.rows


@drawn(40)
@given(selections())
def test_selections_are_answered_as_their_reference_answers_them(setting: Setting) -> None:
    query = load(setting.text, setting.language)
    assert isinstance(query, RspQuery)
    streams = {iri: events for iri, events in setting.streams.items() if iri in query.streams}
    with by_operators():
        found = oxiseq.run(
            setting.text, streams=streams, kb=kb_store(setting.kb), language=setting.language,
            instants=setting.instants, report=setting.report, consumption=setting.consumption,
        )  # fmt: skip
    told = Counter(
        Answer(a.at, a.start, a.end, tuple(sorted((v, str(t)) for v, t in a.bindings.items() if t is not None)))
        for a in found
    )
    expected = evaluate_rsp(
        query, {iri: [(time, triples(text)) for time, text in events] for iri, events in streams.items()}, None,
        setting.instants, None if setting.consumption is None else Consume(setting.consumption),
        None if setting.report is None else Report(setting.report),
    )  # fmt: skip
    assert told == Counter(expected)
