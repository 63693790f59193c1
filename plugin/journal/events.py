"""Event batches ↔ blobs of the event log.

The event tables' Arrow format (engine/events/tables.py) is made for files: one event of five triples takes 1.7 kB
and 0.6 ms to write, 0.8 ms to read. Here it takes a fifth of either, and many blobs are read in one go.

A body, little-endian, for n events of m triples with t distinct terms that are not blank nodes:

    i32 m, t, bytes of text, blank nodes in all; u8 w, the width of a code (1, 2 or 4)
    i64[n]    times
    i32[n]    triples of each event
    i32[n]    blank nodes of each event; left out when there are none at all
    iw[3m]    codes of the subjects, then of the predicates, then of the objects: c > 0 is term c, counted from 1;
              c < 0 is blank node -c of the event
    i32[t]    lengths of the terms' texts
    bytes     the texts, N-Triples in UTF-8

Terms and blank nodes are numbered as they first appear, so equal events give equal bytes in every process.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine import kinds
from oxiseq.engine.events.batch import EventBatch, offsets
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal.envelope import Cutter, seal, unseal
from oxiseq.journal.errors import DamagedError

KIND: Final = b"oE"
_FIELDS: Final = struct.Struct("<iiiiB")


def pack_events(batch: EventBatch, terms: TermDictionary) -> bytes:
    """The blob of a batch. It reads the dictionary: whoever shares that between threads holds its lock here."""
    ids = np.concatenate(batch.ids).astype(np.int64)
    blank = terms.columns.kind[ids] == kinds.BLANK
    codes = np.zeros(len(ids), np.int64)
    plain = ids[~blank]
    used, codes[~blank] = _numbered(plain)
    counts = np.zeros(len(batch), np.int64)
    if len(plain) < len(ids):
        event = np.tile(np.repeat(np.arange(len(batch)), np.diff(batch.offset)), 3)
        codes[blank], counts = _number_blanks(ids[blank], event[blank], len(batch))
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


def _numbered(ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct ids in the order of their first appearance; and for each id its number there, from 1."""
    distinct, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    return distinct[order], rank[inverse]


def _number_blanks(
    ids: NDArray[np.int64], event: NDArray[np.int64], events: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Codes -1, -2... of each event's blank nodes as they first appear; and how many each event has."""
    pairs, first, inverse = np.unique(event << 32 | ids, return_index=True, return_inverse=True)
    owner = pairs >> 32
    counts = np.bincount(owner, minlength=events)
    order = np.lexsort((first, owner))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return -1 - (rank - offsets(counts)[owner])[inverse], counts


def _width(codes: NDArray[np.int64]) -> int:
    largest = max(int(codes.max(initial=0)), -int(codes.min(initial=0)))
    return 1 if largest < 1 << 7 else 2 if largest < 1 << 15 else 4


# --- reading --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Parts:
    """The arrays of one body."""

    time: NDArray[Any]
    sizes: NDArray[Any]
    blanks: NDArray[Any]
    codes: NDArray[Any]
    lengths: NDArray[Any]
    text: bytes


def check_events(blob: bytes) -> None:
    """Raise DamagedError or VersionError unless the blob is whole and its parts fit together; terms are not read."""
    _parts(blob)


def unpack_events(blobs: Sequence[bytes], terms: TermDictionary) -> EventBatch:
    """The events of blobs, one after the other, as one batch; the dictionary holds its ids.

    Raises DamagedError, VersionError.
    """
    if not blobs:
        return EventBatch.empty()
    found = [_parts(blob) for blob in blobs]
    sizes = np.concatenate([parts.sizes for parts in found])
    blanks = np.concatenate([parts.blanks for parts in found]).astype(np.int64)
    known = _terms(found, terms)
    base = offsets(np.array([len(parts.lengths) for parts in found]))
    triples = [len(parts.codes) // 3 for parts in found]
    added = np.repeat(base[:-1], triples)
    fresh, first = terms.blanks(int(blanks.sum())), offsets(blanks)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    columns = []
    for position in range(3):
        pieces = [parts.codes[position * m : (position + 1) * m] for parts, m in zip(found, triples, strict=True)]
        codes = np.concatenate(pieces).astype(np.int64)
        ids = known[np.maximum(codes + added, 0) * (codes > 0)]
        blank = np.flatnonzero(codes < 0)
        if len(blank):
            ids[blank] = fresh[first[owner[blank]] - 1 - codes[blank]]
        columns.append(ids)
    _check_kinds(columns, terms)
    terms.hold(*columns)
    time = np.concatenate([parts.time for parts in found]).astype(np.int64)
    return EventBatch(time, offsets(sizes), *columns)


def _parts(blob: bytes) -> _Parts:
    count, body = unseal(KIND, blob)
    cut = Cutter(body)
    triples, distinct, text, blanks, width = cut.fields(_FIELDS)
    if min(triples, distinct, text, blanks) < 0 or width not in (1, 2, 4):
        raise DamagedError("a damaged blob: a number is out of range")
    parts = _Parts(
        time=cut.array("<i8", count),
        sizes=cut.array("<i4", count),
        blanks=cut.array("<i4", count) if blanks else np.zeros(count, np.int32),
        codes=cut.array(f"<i{width}", 3 * triples),
        lengths=cut.array("<i4", distinct),
        text=cut.bytes(text),
    )
    cut.end()
    _check_numbers(parts, triples, blanks)
    return parts


def _check_numbers(parts: _Parts, triples: int, blanks: int) -> None:
    for counts, total in ((parts.sizes, triples), (parts.blanks, blanks), (parts.lengths, len(parts.text))):
        if (len(counts) and counts.min() < 0) or int(counts.sum(dtype=np.int64)) != total:
            raise DamagedError("a damaged blob: its parts do not fit together")
    codes = parts.codes
    if not len(codes):
        return
    if not codes.all() or codes.max() > len(parts.lengths):
        raise DamagedError("a damaged blob: a code is beyond its terms")
    if codes.min() < 0:
        most = np.tile(np.repeat(parts.blanks, parts.sizes), 3)
        if (-codes.astype(np.int64) > most).any():
            raise DamagedError("a damaged blob: a code is beyond its event's blank nodes")


def _terms(found: Sequence[_Parts], terms: TermDictionary) -> NDArray[np.uint32]:
    """The ids of all texts, after a 0."""
    text = np.frombuffer(b"".join([parts.text for parts in found]), np.uint8)
    ends = offsets(np.concatenate([parts.lengths for parts in found]))
    try:
        ids = terms.intern_texts(text, ends)
    except (ValueError, UnicodeDecodeError) as error:
        raise DamagedError(f"a damaged blob: {error}") from error
    return np.concatenate([np.zeros(1, np.uint32), ids])


def _check_kinds(columns: Sequence[NDArray[np.uint32]], terms: TermDictionary) -> None:
    kind = terms.columns.kind
    subject, predicate, _ = columns
    if not (kind[subject] <= kinds.BLANK).all() or not (kind[predicate] == kinds.IRI).all():
        raise DamagedError("a damaged blob: a literal as subject, or a predicate that is not an IRI")
