"""Events as blobs: the same events come back, damage is told."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from journal_events import E, blob, events

from oxiseq.engine import kinds
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import DamagedError, VersionError, pack_events, unpack_events
from oxiseq.journal.envelope import seal, unseal
from oxiseq.journal.events import KIND, _parts, check_events, single_events

NODES = st.sampled_from([f"<{E}a>", f"<{E}b>", "_:x", "_:y"])
OBJECTS = NODES | st.sampled_from(
    [
        '"01.50"^^<http://www.w3.org/2001/XMLSchema#double>',
        '"é\\n\\"x"@fr',
        '""',
        "7",
        f"<<( <{E}a> <{E}p> 1 )>>",
        '"2024-05-01T10:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
    ]
)
GRAPHS = st.lists(st.builds("{} <http://e/p> {} .".format, NODES, OBJECTS), max_size=5).map("\n".join)
BATCHES = st.lists(st.lists(st.tuples(st.integers(-(10**15), 10**15), GRAPHS), max_size=6), max_size=4)


def contents(batch: EventBatch, terms: TermDictionary) -> list[tuple[int, list[tuple[str, ...]]]]:
    """Times and triples as text, blank nodes numbered as they first appear in their event."""
    made = []
    for i in range(len(batch)):
        labels: dict[int, str] = {}
        one = batch.slice(i, i + 1)
        triples = []
        for row in zip(*(column.tolist() for column in one.ids), strict=True):
            triples.append(
                tuple(
                    labels.setdefault(t, f"_:{len(labels)}") if terms.columns.kind[t] == kinds.BLANK else terms.text(t)
                    for t in row
                )
            )
        made.append((int(one.time[0]), triples))
    return made


@given(BATCHES)
def test_what_was_packed_is_unpacked_also_into_another_dictionary(given_: list[list[tuple[int, str]]]) -> None:
    terms, other = TermDictionary(), TermDictionary()
    other.intern_written(b"<http://e/in-the-way>")
    batches = [encode_events(pairs, terms) for pairs in given_]
    blobs = [pack_events(batch, terms) for batch in batches]
    whole = EventBatch.concat(batches)
    again = unpack_events(blobs, other)
    assert contents(again, other) == contents(whole, terms)
    assert unpack_events([pack_events(again, other)], terms).time.tolist() == whole.time.tolist()


@given(BATCHES)
def test_equal_events_give_equal_bytes_in_every_process(given_: list[list[tuple[int, str]]]) -> None:
    first, second = TermDictionary(), TermDictionary()
    second.blanks(5)
    second.intern_written(b"<http://e/b>")
    for pairs in given_:
        assert pack_events(encode_events(pairs, first), first) == pack_events(encode_events(pairs, second), second)


def test_more_than_a_byte_or_two_of_codes() -> None:
    terms = TermDictionary()
    for count in (100, 200, 33_000):
        batch = events(range(count), terms)
        again = unpack_events([pack_events(batch, terms)], terms)
        assert contents(again, terms) == contents(batch, terms)


def test_one_event_of_five_triples_is_small() -> None:
    terms = TermDictionary()
    text = "".join(f"<{E}tx/17> <{E}property-{i}> {i * 1000} .\n" for i in range(5))
    assert len(pack_events(encode_events([(1, text)], terms), terms)) < 300


@pytest.mark.parametrize("size", [3, 400])
def test_every_damaged_byte_is_found(size: int) -> None:
    whole = blob(range(size))
    for place in random.Random(1).sample(range(len(whole)), min(len(whole), 120)):
        broken = bytearray(whole)
        broken[place] ^= 0x55
        with pytest.raises((DamagedError, VersionError)):
            unpack_events([bytes(broken)], TermDictionary())
    for size_ in (0, 5, 31, len(whole) - 1):
        with pytest.raises(DamagedError):
            unpack_events([whole[:size_]], TermDictionary())


@given(st.binary(max_size=200), st.integers(0, 5))
def test_a_body_that_makes_no_sense_is_an_error_not_a_crash(body: bytes, count: int) -> None:
    sealed = seal(KIND, np.zeros(count, np.int64), body)
    for read in (check_events, lambda b: unpack_events([b], TermDictionary())):
        try:
            read(sealed)
        except DamagedError:
            continue
        assert len(unpack_events([sealed], TermDictionary())) == count


@given(st.data())
def test_a_changed_body_under_a_right_checksum_is_an_error_or_events(data: st.DataObject) -> None:
    from oxiseq.journal.envelope import unseal  # noqa: PLC0415  only here

    times = np.arange(4, dtype=np.int64)
    body = bytearray(unseal(KIND, blob(times.tolist()))[1])
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        batch = unpack_events([seal(KIND, times, bytes(body))], TermDictionary())
    except DamagedError:
        return
    assert len(batch) == 4
    assert batch.offset[-1] == batch.triples


def test_a_newer_version_is_refused() -> None:
    newer = bytearray(blob([1]))
    newer[2] = 9
    with pytest.raises(VersionError, match="version 9"):
        unpack_events([bytes(newer)], TermDictionary())


@given(BATCHES)
def test_small_events_are_read_the_same_with_and_without_arrays(given_: list[list[tuple[int, str]]]) -> None:
    terms = TermDictionary()
    blobs = [pack_events(encode_events([pair], terms), terms) for pairs in given_ for pair in pairs]
    short = single_events(blobs)
    assert (short is not None) or not blobs or max(map(len, blobs)) > 2048
    if blobs and short is not None:
        long = _parts(blobs)
        for name in ("time", "sizes", "blanks", "first_term", "lengths"):
            given_array, expected = getattr(short, name), getattr(long, name)
            assert (given_array.dtype, given_array.tolist()) == (np.int64, expected.tolist())
        assert [c.tolist() for c in short.codes] == [c.tolist() for c in long.codes]
        assert short.text == long.text


def test_damaged_small_events_are_left_to_the_long_way() -> None:
    terms = TermDictionary()
    whole = pack_events(encode_events([(5, "_:x <http://e/p> _:y . _:y <http://e/p> 7 .")], terms), terms)
    body = unseal(KIND, whole)[1]
    refused = 0
    for at in range(len(body)):
        for value in (0, 1, 127, 128, 255):
            damaged = seal(KIND, np.array([5]), body[:at] + bytes([value]) + body[at + 1 :])
            try:
                _parts([damaged])
            except DamagedError:
                refused += 1
                assert single_events([damaged]) is None
    assert refused > 100
