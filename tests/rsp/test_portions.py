"""Operators are stepped several times within a large batch of steady windows, which the answers do not tell."""

from __future__ import annotations

import pytest
from loaded import load
from pyoxigraph import Store

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.flow import standing
from oxiseq.engine.flow.leaves import Leaves
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.languages.registry import language_for
from oxiseq.options import Options

STREAM = "urn:s"
QUERY = f"""REGISTER ISTREAM <urn:told> AS SELECT * FROM STREAM <{STREAM}> [RANGE 5 EVENTS SLIDE 1 EVENTS]
WHERE {{ ?s <urn:p> ?o . ?s <urn:q> ?v }}"""


def events(terms: TermDictionary, first: int, last: int) -> EventBatch:
    texts = (f"<urn:s{time % 3}> <urn:p> {time % 4} ; <urn:q> {time} ." for time in range(first, last))
    return encode_events(zip(range(first, last), texts, strict=True), terms)


def told(dead: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[tuple[int, ...]], list[int]]:
    """The rows of a batch of 60 events behind one of 8, and how many instants of each were worked through at once."""
    cut: list[int] = []
    go_on = Leaves.go_on

    def spied(leaves: Leaves) -> None:
        done = leaves.done
        go_on(leaves)
        cut.append(leaves.done - done)

    monkeypatch.setattr(standing, "_DEAD", dead)
    monkeypatch.setattr(Leaves, "go_on", spied)
    terms, query = TermDictionary(), load(QUERY, "rspql")
    run, _ = language_for(query).compile(query, terms, StoreKb(Store()), Options())
    rows: list[tuple[int, ...]] = []
    for first, last in ((0, 8), (8, 68)):
        run.push(STREAM, events(terms, first, last))
        run.settle()
        for batch in run.advance():
            rows += [(int(at), *map(int, row)) for at, row in zip(batch.time, batch.values, strict=True)]
    return rows, cut


def test_a_batch_is_cut_where_windows_hold_little_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        whole, uncut = told(1 << 11, patched)
    rows, cut = told(4, monkeypatch)
    assert rows == whole and len(rows) > 60
    assert uncut == [8, 60]
    assert cut[0] == 8 and sum(cut) == 68 and len(cut) > 5
