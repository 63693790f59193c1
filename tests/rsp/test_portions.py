"""Operators are stepped several times within a large batch of steady windows, which the answers do not tell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from loaded import load
from pyoxigraph import Store

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.flow import leaves
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


def told(
    query: str, changed: int, ends: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[tuple[int, ...]], int]:
    """The rows of batches of events that end there, and how large the run is then."""
    monkeypatch.setattr(leaves, "_CHANGED", changed)
    terms, parsed = TermDictionary(), load(query, "rspql")
    run, _ = language_for(parsed).compile(parsed, terms, StoreKb(Store()), Options())
    rows: list[tuple[int, ...]] = []
    for first, last in pairwise((0, *ends)):
        run.push(STREAM, events(terms, first, last))
        run.settle()
        for batch in run.advance():
            rows += [(int(at), *map(int, row)) for at, row in zip(batch.time, batch.values, strict=True)]
    return rows, run.bytes


def test_operators_are_stepped_within_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, bytes_whole = told(QUERY, 1 << 11, (8, 868), monkeypatch)
    rows, bytes_cut = told(QUERY, 4, (8, 868), monkeypatch)
    assert rows == whole and len(rows) > 860
    assert bytes_cut < bytes_whole / 4  # rows that have gone do not stay until the end of the batch


@pytest.mark.parametrize("report", ["ISTREAM", "DSTREAM", "RSTREAM"])
@pytest.mark.parametrize(
    "ends", [(25, 50, 75, 100), (30, 60, 100), (100,)], ids=["where they fall", "beside", "at once"]
)
def test_whole_windows_fall_at_once(report: str, ends: Sequence[int], monkeypatch: pytest.MonkeyPatch) -> None:
    query = QUERY.replace("ISTREAM", report).replace("RANGE 5 EVENTS SLIDE 1", "RANGE 25 EVENTS SLIDE 25")
    one_by_one, _ = told(query, 1 << 11, range(1, 101), monkeypatch)
    for changed in (4, 1 << 11):
        rows, _ = told(query, changed, ends, monkeypatch)
        assert rows == one_by_one and len(rows) > 100
