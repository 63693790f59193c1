"""Large batches of steady windows are processed in portions of whole instants, which the answers do not tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from pyoxigraph import Store

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.run import rsp
from oxiseq.engine.run.recent import portions
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
    """The rows of a batch of 60 events behind one of 8, and into how many portions each was cut."""
    cut: list[int] = []

    def spied(batches: Sequence[EventBatch], most: int) -> Iterator[list[EventBatch]]:
        found = list(portions(batches, most))
        cut.append(len(found))
        return iter(found)

    monkeypatch.setattr(rsp, "_DEAD", dead)
    monkeypatch.setattr(rsp, "portions", spied)
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
    whole, uncut = told(1 << 11, monkeypatch)
    rows, cut = told(4, monkeypatch)
    assert rows == whole and len(rows) > 60
    assert uncut == [] and cut[-1] > 5


@given(
    st.lists(st.lists(st.integers(0, 12), max_size=20).map(sorted), min_size=1, max_size=3).filter(any),
    st.integers(1, 5),
)
def test_portions_are_whole_instants_in_order(times: list[list[int]], most: int) -> None:
    batches = [_at(each) for each in times]
    found = list(portions(batches, most))
    assert [np.concatenate([part[s].time for part in found]).tolist() for s in range(len(times))] == times
    spans = [[time for batch in part for time in batch.time.tolist()] for part in found]
    assert all(spans) and all(max(one) < min(other) for one, other in pairwise(spans))


def _at(times: list[int]) -> EventBatch:
    none = np.zeros(0, np.uint32)
    return EventBatch(np.array(times, np.int64), np.zeros(len(times) + 1, np.int64), none, none, none)
