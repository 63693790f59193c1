"""Conjunctions over windows and a KB that changes: incremental answers are those of the reference at every report."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from profiles import thorough
from reference.rsp import evaluate_rsp
from rsp_conjunctions import Changing, conjunctions
from rsp_lives import Life, Row, row_of_reference
from rsp_strategies import kb_store, triples
from test_rsp_differential import names

from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.kb import StoreKb
from oxiseq.grammar.rsp_algebra import Report, RspQuery


def by_reference(changing: Changing) -> Counter[Row]:
    setting = changing.setting
    query = load(setting.text, setting.language)
    assert isinstance(query, RspQuery)
    streams = {iri: [(time, triples(text)) for time, text in events] for iri, events in setting.streams.items()}
    stores = [(-1, kb_store(setting.kb)), *((time, kb_store(text)) for time, text in changing.changes)]
    found = evaluate_rsp(
        query,
        streams,
        lambda at: [kb for time, kb in stores if time <= at][-1],
        report=None if setting.report is None else Report(setting.report),
    )
    shown = names(query)
    return Counter(row_of_reference(answer, shown) for answer in found)


class ChangingLife(Life):
    """A query at work on a KB that changes."""

    def __init__(self, changing: Changing) -> None:
        self.known = kb_store(changing.setting.kb)
        super().__init__(changing.setting)
        self.changes = [*changing.changes]

    def _kb(self) -> StoreKb:
        self.asked = StoreKb(self.known)
        return self.asked

    def up_to(self, time: int) -> None:
        """What is before a time is answered with the KB of before; then the KB is that of the time."""
        while self.changes and self.changes[0][0] <= time:
            at, text = self.changes.pop(0)
            for iri in self.plan.streams:
                self.run.punctuate(iri, at)
            self.advance()
            self.known.clear()
            self.known.extend(kb_store(text))
            self.asked.touch()


def lived(changing: Changing, together: int, moves: random.Random | None = None) -> list[Row]:
    """All that is told, `together` events being pushed before answers are asked for."""
    life = ChangingLife(changing)
    events = sorted(
        (time, i, iri, text)
        for i, iri in enumerate(life.plan.streams)
        for time, text in changing.setting.streams.get(iri, [])
    )
    for number, (time, _, iri, text) in enumerate(events):
        life.up_to(time)
        life.run.push(iri, encode_events([(time, triples(text))], life.terms))
        if number % together == 0:
            life.advance()
            if moves is not None and moves.random() < 0.5:
                life.move(moves)
    life.run.close()
    life.advance()
    return life.found


@thorough()
@given(conjunctions(), st.integers(1, 4), st.none() | st.integers(0, 2**32))
def test_conjunctions_answer_as_their_reference(changing: Changing, together: int, seed: int | None) -> None:
    moves = None if seed is None else random.Random(seed)
    assert Counter(lived(changing, together, moves)) == by_reference(changing)
