"""Matches: durable ids without gaps, readable without a dictionary."""

from __future__ import annotations

import random

import numpy as np
import pytest
from journal_events import HEADING, OTHER, STREAM, Clock, found, matches

import oxiseq
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load
from oxiseq.journal import (
    ConflictError,
    CursorError,
    DamagedError,
    Found,
    Journal,
    Retention,
    VersionError,
    join_matches,
    pack_block,
    pack_matches,
    unpack_matches,
)
from oxiseq.languages.registry import language_named
from oxiseq.options import Options

E = "http://e/"


@pytest.fixture(autouse=True)
def _registered(journal: Journal) -> None:
    journal.queries.register("q", "text")


def test_ids_follow_each_other_over_batches(journal: Journal) -> None:
    journal.matches.append(found("q", 1, [10, 20]))
    journal.matches.append(found("q", 3, [30]), found("q", 4, [40, 50]))
    assert matches(journal, "q") == [(1, 10), (2, 20), (3, 30), (4, 40), (5, 50)]
    assert matches(journal, "q", after=1) == [(2, 20), (3, 30), (4, 40), (5, 50)]
    assert matches(journal, "q", after=1, limit=3) == [(2, 20), (3, 30), (4, 40)]
    assert matches(journal, "q", after=3, limit=0) == []
    assert journal.matches.last("q") == 5


def test_nothing_yet_is_not_too_old(journal: Journal) -> None:
    assert journal.matches.read("q") == []
    journal.matches.append(found("q", 1, [10]))
    assert journal.matches.read("q", after=1) == []
    assert journal.matches.read("q", after=7) == []  # told to somebody, but not durable when the process died


def test_too_old_is_told(journal: Journal, clock: Clock) -> None:
    journal.queries.register("q", "text", keep=Retention(count=2), replace=True)
    for first in (1, 3, 5):
        journal.matches.append(found("q", first, [first, first + 1]))
    assert journal.retain() == 2
    with pytest.raises(CursorError, match="cursor too old") as told:
        journal.matches.read("q", after=3)
    assert (told.value.asked, told.value.first) == (4, 5)
    assert matches(journal, "q", after=4) == [(5, 5), (6, 6)]
    journal.queries.register("q", "text", keep=Retention(time=0), replace=True)
    clock.now += 1
    assert journal.retain() == 1
    assert matches(journal, "q", after=6) == []
    with pytest.raises(CursorError):
        matches(journal, "q")
    journal.matches.append(found("q", 7, [9]))
    assert matches(journal, "q", after=6) == [(7, 9)]


def test_found_again_is_stored_once(journal: Journal) -> None:
    journal.matches.append(found("q", 1, [10, 20]))
    journal.matches.append(found("q", 1, [10, 20]))
    journal.matches.append(found("q", 2, [20, 30, 40]))
    journal.matches.append(found("q", 1, [10, 20, 30, 40, 50]))
    assert matches(journal, "q") == [(1, 10), (2, 20), (3, 30), (4, 40), (5, 50)]
    assert matches(journal, "q", after=3) == [(4, 40), (5, 50)]
    assert matches(journal, "q", after=2, limit=1) == [(3, 30)]


def test_a_gap_is_refused_and_of_the_rest_nothing_stored(journal: Journal) -> None:
    with pytest.raises(ConflictError, match="gap"):
        journal.matches.append(found("q", 1, [10]), found("q", 3, [30]))
    with pytest.raises(ConflictError, match="begin with 1"):
        journal.matches.append(found("q", 0, [10]))
    assert matches(journal, "q") == []
    journal.matches.append(found("q", 1, []))
    assert journal.matches.last("q") == 0


def test_rows_and_events_are_read_without_a_dictionary() -> None:
    terms = TermDictionary()
    blank, plain = terms.blank(), terms.intern_written('"é"@fr'.encode())
    values = np.array([[plain, 0], [blank, plain]], np.uint32)
    batch = MatchBatch(
        np.array([7, 9]), values, np.array([0, 2, 3]), np.array([0, 1, 0], np.int32), np.array([6, 7, 9])
    )
    stored = unpack_matches(pack_matches(batch, HEADING, terms, "r3"), 11)
    assert stored.rows() == [('"é"@fr', None), (f"_:r3{terms.text(blank)[2:]}", '"é"@fr')]
    assert stored.row(1) == stored.rows()[1]
    assert stored.events(0) == {"A": ((STREAM, 6),), "B": ((STREAM, 7),), "C": ((OTHER, 7),)}
    assert (stored.first, stored.last, stored.time.tolist()) == (11, 12, [7, 9])
    tail = stored.slice(1, 2)
    assert (tail.first, tail.rows(), tail.events(0)) == (12, stored.rows()[1:], {"A": ((STREAM, 9),)})


def test_batches_that_are_joined_have_the_rows_and_events_of_each() -> None:
    """Each of other terms, some of which the others have, too; the middle one is a part of a batch."""
    parts = [
        unpack_matches(found("q", 1, [5, 7]).data, 1),
        unpack_matches(found("q", 2, [0, 7, 8, 9]).data, 2).slice(1, 3),
        unpack_matches(found("q", 5, [9, 5]).data, 5),
    ]
    joined = join_matches(parts)
    rows = [(part.row(i), part.events(i), part.span(i)) for part in parts for i in range(len(part))]
    assert [(joined.row(i), joined.events(i), joined.span(i)) for i in range(len(joined))] == rows
    assert (joined.first, joined.last, joined.at.tolist()) == (1, 6, [5, 7, 7, 8, 9, 5])


def test_the_heading_of_a_query_names_its_gpms_and_streams(journal: Journal) -> None:
    text = f"""SELECT ?x FROM STREAM S <{STREAM}> WHERE {{ SEQ(A; B+)
        DEFINE GPM A ON S {{ ?x <{E}p> ?y }} DEFINE GPM B ON S {{ ?x <{E}q> ?z }} }}"""
    driver = language_named("spaseq").driver(load(text), None, Options())
    given = [(1, f"<{E}a> <{E}p> 1 ."), (2, f"<{E}a> <{E}q> 1 ."), (3, f"<{E}a> <{E}q> 2 .")]
    driver.attach("S", given)
    batches = list(driver.batches())
    blobs = [pack_block(driver.shape.block([batch])) for batch in batches]
    first = 1
    for data, batch in zip(blobs, batches, strict=True):
        journal.matches.append(Found("q", first, data))
        first += len(batch)
    expected = oxiseq.run(text, {"S": given})
    again = [(stored.row(i), stored.events(i)) for stored in journal.matches.read("q") for i in range(len(stored))]
    assert again == [((str(m["x"]),), dict(m.events)) for m in expected]
    assert again


def test_every_damaged_byte_is_found() -> None:
    whole = found("q", 1, range(40)).data
    for place in random.Random(1).sample(range(len(whole)), 120):
        broken = bytearray(whole)
        broken[place] ^= 0x55
        with pytest.raises((DamagedError, VersionError)):
            unpack_matches(bytes(broken), 1)
