"""Lines of JSON → portions: however many lines come at once, what is stored means the same as line by line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import oxiseq
from oxiseq.engine.order.watermarks import BEFORE_ALL, late_ones
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import unpack_events
from oxiseq.live.portions import LineEvents, Portion

E = "http://e/"
TEXT = f"""PREFIX : <{E}> SELECT ?a ?b WITHIN 5 SECONDS FROM STREAM S <{E}S> WHERE {{
  SEQ(A; B)
  DEFINE GPM A ON S {{ ?x :p ?a }} DEFINE GPM B ON S {{ ?y :p ?b FILTER(?b > ?a) }} }}"""
SECOND = 1_000_000
TIMES = st.integers(0, 12).map(SECOND.__mul__)
LINES = st.lists(st.one_of(TIMES.map(lambda t: {"advance": t}), TIMES.map(lambda t: {"time": t})), max_size=25)


def portions(pieces: Iterable[bytes]) -> list[Portion]:
    decoder = LineEvents(0)
    found = [portion for piece in pieces for portion in decoder.feed(piece)] + decoder.finish()
    assert decoder.fault is None
    return found


def late(stored: Iterable[Portion], lateness: int) -> list[bool]:
    """Of each event whether it is late, as the log and the queries decide it."""
    largest, punctuation, found = BEFORE_ALL, BEFORE_ALL, []
    for portion in stored:
        if len(portion.reading.time):
            ones, largest = late_ones(np.asarray(portion.reading.time), largest, punctuation, lateness)
            found += ones.tolist()
        punctuation = max(punctuation, BEFORE_ALL if portion.advance is None else portion.advance)
    return found


def matches(stored: Iterable[Portion], lateness: int) -> list[Any]:
    store = oxiseq.Store()
    query = store.register(TEXT, lateness=f"{lateness}s")
    stream = store.stream(f"{E}S")
    for portion in stored:
        stream.push_batch(unpack_events([portion.reading.blob], stream._backend.terms))
        if portion.advance is not None:
            stream.advance(portion.advance)
    found = [str(match) for match in query.matches()]
    store.advance(100 * SECOND)
    return sorted(found + [str(match) for match in query.matches()])


@given(LINES, st.integers(0, 4))
def test_all_at_once_means_the_same_as_line_by_line(items: list[dict[str, Any]], lateness: int) -> None:
    numbered = [item | {"graph": f"<{E}x> <{E}p> {n} ."} if "time" in item else item for n, item in enumerate(items)]
    lines = [json.dumps(item).encode() + b"\n" for item in numbered]
    together, apart = portions([b"".join(lines)]), portions(lines)
    assert len(together) <= 1 + 2 * sum(late(apart, 0))
    assert late(together, lateness * SECOND) == late(apart, lateness * SECOND)
    assert matches(together, lateness) == matches(apart, lateness)


def test_many_punctuations_are_stored_as_one() -> None:
    (found,) = portions([b"".join(b'{"advance": %d}\n' % time for time in range(20_000))])
    assert (found.last, found.advance) == (20_000, 19_999)


def test_a_punctuation_that_goes_back_changes_nothing() -> None:
    (found,) = portions([b'{"advance": 5}\n{"advance": 3}\n{"time": 5, "graph": "<http://e/x> <http://e/p> 1 ."}\n'])
    assert (found.last, found.advance, len(found.reading.time)) == (3, 5, 1)
    terms = TermDictionary()
    assert len(unpack_events([found.reading.blob], terms)) == 1
