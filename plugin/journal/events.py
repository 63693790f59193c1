"""Event batches ↔ blobs of the event log.

The event tables' Arrow format (engine/events/tables.py) is made for files: one event of five triples takes 1.7 kB
and 0.6 ms to write, 0.8 ms to read. Here it takes a fifth of either, and many blobs are read in one go.

A body, little-endian, for n events of m triples with t distinct terms that are not blank nodes:

    i32 m, t, bytes of text, blank nodes in all; u8 w, the width of a code (1, 2 or 4)
    i64[n]    times
    i32[n]    triples of each event
    i32[n]    blank nodes of each event; left out when there are none at all
    iw[3m]    codes of the subjects, then of the predicates, then of the objects (w bytes each): c > 0 is term c,
              counted from 1; c < 0 is blank node -c of the event
    i32[t]    lengths of the terms' texts
    bytes     the texts, N-Triples in UTF-8

Terms and blank nodes are numbered as they first appear, so equal events give equal bytes in every process.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine import kinds
from oxiseq.engine.events.batch import EventBatch, offsets
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.places import first_places, numbered
from oxiseq.grammar.records import dataclass
from oxiseq.journal.envelope import Cutter, Summary, seal, seal_with, summary, unseal
from oxiseq.journal.errors import DamagedError

KIND: Final = b"oE"
_FIELDS: Final = struct.Struct("<iiiiB")
_LEAST: Final = _FIELDS.size + 12
_SMALL: Final = 2048
"""Bytes of a body of one event that is read without arrays."""
_FEW: Final = 64
"""Such bodies at a time."""


def pack_events(batch: EventBatch, terms: TermDictionary) -> bytes:
    """The blob of a batch. It reads the dictionary: whoever shares that between threads holds its lock here."""
    ids = np.concatenate(batch.ids).astype(np.int64)
    blank = terms.columns.kind[ids] == kinds.BLANK
    codes = np.zeros(len(ids), np.int64)
    plain = ids[~blank]
    used, codes[~blank] = numbered(plain, len(terms))
    counts = np.zeros(len(batch), np.int64)
    if len(plain) < len(ids):
        event = np.tile(np.repeat(np.arange(len(batch)), np.diff(batch.offset)), 3)
        codes[blank], counts = _number_blanks(ids[blank], event[blank], len(batch), len(terms))
    data, ends = terms.texts(used)
    width = _width(codes)
    body = [
        _FIELDS.pack(batch.triples, len(used), len(data), int(counts.sum()), width),
        batch.time.astype("<i8").tobytes(),
        np.diff(batch.offset).astype("<i4").tobytes(),
        counts.astype("<i4").tobytes() if counts.any() else b"",
        codes.astype(f"<i{width}").tobytes(),
        np.diff(ends).astype("<i4").tobytes(),
        data.tobytes(),
    ]
    return seal(KIND, batch.time, b"".join(body))


def stamped(blob: bytes, time: int) -> bytes:
    """The blob with other times: `time` (µs) for its first event, and one µs more for each that follows. Raises
    DamagedError, VersionError."""
    count, body = unseal(KIND, blob)
    at = _FIELDS.size
    times = struct.pack(f"<{count}q", *range(time, time + count))
    body = b"".join([body[:at], times, body[at + len(times) :]])
    return seal_with(KIND, Summary(count, time, time + count - 1), body)


def times_of(blob: bytes) -> tuple[int, ...]:
    """The times (µs) of its events. Raises DamagedError, VersionError."""
    count, body = unseal(KIND, blob)
    if len(body) < _FIELDS.size + 8 * count:
        raise DamagedError("a damaged blob: it is too short for its events")
    return struct.unpack_from(f"<{count}q", body, _FIELDS.size)


def _number_blanks(
    ids: NDArray[np.int64], event: NDArray[np.int64], events: int, bound: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Codes -1, -2... of each event's blank nodes as they first appear; and how many each event has. `bound`: all ids
    are below."""
    first = first_places(ids, bound)
    if (event[first] != event).any():  # one is in several events
        _, places, inverse = np.unique(event << 32 | ids, return_index=True, return_inverse=True)
        first = places[inverse]
    new = np.flatnonzero(first == np.arange(len(ids)))
    owner = event[new]
    counts = np.bincount(owner, minlength=events)
    order = np.argsort(owner, kind="stable")  # soon done: subjects' events ascend, and so do objects'
    code = np.empty(len(ids), np.int64)
    code[new[order]] = offsets(counts)[owner[order]] - np.arange(1, len(new) + 1)
    return code[first], counts


def _width(codes: NDArray[np.int64]) -> int:
    largest = max(int(codes.max(initial=0)), -int(codes.min(initial=0)))
    return 1 if largest < 1 << 7 else 2 if largest < 1 << 15 else 4


# --- reading --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """The arrays of several bodies, one after the other; `first_term` i64[m]: how many terms precede those
    of a triple's own body."""

    time: NDArray[np.int64]
    sizes: NDArray[np.int64]
    blanks: NDArray[np.int64]
    codes: tuple[NDArray[np.int64], ...]
    first_term: NDArray[np.int64]
    lengths: NDArray[np.int64]
    text: bytes


def check_events(blob: bytes) -> Summary:
    """What the head says, after a check that the blob is whole and its parts fit together; terms are not read.

    Raises DamagedError, VersionError.
    """
    times = _parts([blob]).time
    head = summary(KIND, blob)
    if len(times) and (head.min_time, head.max_time) != (int(times.min()), int(times.max())):
        raise DamagedError("a damaged blob: its header has other times")
    return head


def unpack_events(blobs: Sequence[bytes], terms: TermDictionary) -> EventBatch:
    """The events of blobs, one after the other, as one batch; the dictionary holds its ids.

    Raises DamagedError, VersionError.
    """
    if not blobs:
        return EventBatch.empty()
    parts = single_events(blobs) or _parts(blobs)
    known = _terms(parts, terms)
    fresh, first = terms.blanks(int(parts.blanks.sum())), offsets(parts.blanks)
    owner = np.repeat(np.arange(len(parts.sizes)), parts.sizes)
    columns = []
    for codes in parts.codes:
        ids = known[np.maximum(codes + parts.first_term * (codes > 0), 0)]
        blank = np.flatnonzero(codes < 0)
        if len(blank):
            ids[blank] = fresh[first[owner[blank]] - 1 - codes[blank]]
        columns.append(ids)
    _check_kinds(columns, terms)
    terms.hold(*columns)
    return EventBatch(parts.time, offsets(parts.sizes), *columns)


def single_events(blobs: Sequence[bytes]) -> _Parts | None:
    """`_parts` for a few blobs of one small event each, for which arrays take several times as long. None where that is
    not so or anything is wrong: `_parts` says what."""
    if len(blobs) > _FEW:
        return None
    time, sizes, blanks, lengths, texts, first_term, terms = [], [], [], [], [], [], 0
    codes: tuple[list[int], ...] = ([], [], [])
    for blob in blobs:
        count, body = unseal(KIND, blob)
        if count != 1 or not _LEAST <= len(body) <= _SMALL:
            return None
        m, distinct, text, blank, width = _FIELDS.unpack_from(body)
        if width != 1 or min(m, distinct, text, blank) < 0 or max(m, distinct, blank) > _SMALL:
            return None
        form = struct.Struct(f"<qi{'i' if blank else ''}{3 * m}b{distinct}i")
        if _FIELDS.size + form.size + text != len(body):
            return None
        at, size, *values = form.unpack_from(body, _FIELDS.size)
        if blank and values.pop(0) != blank:
            return None
        own, ends = values[: 3 * m], values[3 * m :]
        if size != m or sum(ends) != text or min(ends, default=0) < 0:
            return None
        if 0 in own or max(own, default=0) > distinct or min(own, default=0) < -blank:
            return None
        time.append(at)
        sizes.append(m)
        blanks.append(blank)
        for i, column in enumerate(codes):
            column += own[i * m : (i + 1) * m]
        lengths += ends
        texts.append(body[len(body) - text :])
        first_term += [terms] * m
        terms += distinct
    columns = tuple(np.array(column, np.int64) for column in codes)
    return _Parts(
        np.array(time, np.int64),
        np.array(sizes, np.int64),
        np.array(blanks, np.int64),
        columns,
        np.array(first_term, np.int64),
        np.array(lengths, np.int64),
        b"".join(texts),
    )


def _parts(blobs: Sequence[bytes]) -> _Parts:
    """Everything is checked here, of all bodies at once: many of them are small."""
    time, sizes, blanks, lengths, texts, totals = [], [], [], [], [], []
    codes: tuple[list[NDArray[Any]], ...] = ([], [], [])
    for blob in blobs:
        count, body = unseal(KIND, blob)
        cut = Cutter(body)
        m, distinct, text, blank, width = cut.fields(_FIELDS)
        if min(m, distinct, text, blank) < 0 or width not in (1, 2, 4):
            raise DamagedError("a damaged blob: a number is out of range")
        time.append(cut.array("<i8", count))
        sizes.append(cut.array("<i4", count))
        blanks.append(cut.array("<i4", count) if blank else np.zeros(count, np.int32))
        for column in codes:
            column.append(cut.array(f"<i{width}", m))
        lengths.append(cut.array("<i4", distinct))
        texts.append(cut.bytes(text))
        cut.end()
        totals.append((count, m, blank, distinct, text))
    counts, triples, blank_nodes, terms, text_bytes = np.array(totals, np.int64).T
    found = _Parts(
        time=_joined(time),
        sizes=_joined(sizes),
        blanks=_joined(blanks),
        codes=tuple(_joined(column) for column in codes),
        first_term=np.repeat(offsets(terms)[:-1], triples),
        lengths=_joined(lengths),
        text=b"".join(texts),
    )
    _check_sums(
        ((found.sizes, counts, triples), (found.blanks, counts, blank_nodes), (found.lengths, terms, text_bytes))
    )
    _check_codes(found, np.repeat(terms, triples))
    return found


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    return np.concatenate(arrays).astype(np.int64)


def _check_sums(given: Sequence[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]) -> None:
    """(numbers, how many of them each body has, their sum there): none is negative, the sums are right."""
    for numbers, counts, sums in given:
        within = offsets(numbers)[offsets(counts)]
        if numbers.min(initial=0) < 0 or not np.array_equal(np.diff(within), sums):
            raise DamagedError("a damaged blob: its parts do not fit together")


def _check_codes(parts: _Parts, terms: NDArray[np.int64]) -> None:
    """`terms`: for each triple how many its body has."""
    most: NDArray[np.int64] | None = None
    for codes in parts.codes:
        if not codes.all() or (codes > terms).any():
            raise DamagedError("a damaged blob: a code is beyond its terms")
        if codes.min(initial=0) < 0:
            most = np.repeat(parts.blanks, parts.sizes) if most is None else most
            if (-codes > most).any():
                raise DamagedError("a damaged blob: a code is beyond its event's blank nodes")


def _terms(parts: _Parts, terms: TermDictionary) -> NDArray[np.uint32]:
    """The ids of all texts, after a 0."""
    try:
        ids = terms.intern_texts(np.frombuffer(parts.text, np.uint8), offsets(parts.lengths))
    except (ValueError, UnicodeDecodeError) as error:
        raise DamagedError(f"a damaged blob: {error}") from error
    return np.concatenate([np.zeros(1, np.uint32), ids])


def _check_kinds(columns: Sequence[NDArray[np.uint32]], terms: TermDictionary) -> None:
    kind = terms.columns.kind
    subject, predicate, _ = columns
    if not (kind[subject] <= kinds.BLANK).all() or not (kind[predicate] == kinds.IRI).all():
        raise DamagedError("a damaged blob: a literal as subject, or a predicate that is not an IRI")
