"""Match batches ↔ blobs: columns with terms as text, readable without a dictionary and without the query.

A body, little-endian, for n matches with c columns and f events in all, t distinct terms:

    i32 c, f, t, bytes of text, bytes of the heading
    i64[n] end times; i64[f] times of the events
    i32[n] events of each match; i32[f] letters of the events
    i32[n c] codes of the terms, row by row: 0 unbound, else the term, counted from 1
    i32[t] lengths of the terms' texts; the texts, N-Triples in UTF-8
    the heading, JSON: {"variables": [...], "letters": [[[GPM, stream], ...], ...], "more": true if so, "decided": true
    if so}; then, if so, i64[n] when each is decided, where that is not its end for all
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import offsets
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass
from oxiseq.journal.envelope import Cutter, seal, unseal
from oxiseq.journal.errors import DamagedError
from oxiseq.matches.shape import Block

KIND: Final = b"oM"
_FIELDS: Final = struct.Struct("<iiiii")
_FEW: Final = 32
"""Values that are numbered one by one."""


@dataclass(frozen=True, slots=True)
class Heading:
    """What the matches of one query have in common.

    variables: the columns; letters: for each letter of the automaton its GPMs as (name, stream IRI); more: what belongs
    together continues in the next batch; decided: whether times behind the heading say when each is decided.
    """

    variables: tuple[str, ...]
    letters: tuple[tuple[tuple[str, str], ...], ...] = ()
    more: bool = False
    decided: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class StoredMatches:
    """n matches with ids first, ..., first + n - 1.

    time: i64[n] µs, their ends; codes: i32[n, c] into `terms`, whose number 0 is None (unbound), the others N-Triples
    texts; ends: i64[n + 1], event_letter i32[f], event_time i64[f] as in `MatchBatch`. For a CONSTRUCT query the
    columns are what its template is made from. at: i64[n] µs, when each is decided.
    """

    first: int
    heading: Heading
    time: NDArray[np.int64]
    terms: tuple[str | None, ...]
    codes: NDArray[np.int32]
    ends: NDArray[np.int64]
    event_letter: NDArray[np.int32]
    event_time: NDArray[np.int64]
    at: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.time)

    def span(self, index: int) -> tuple[int | None, int]:
        """When a match begins, if it has events, and ends, in µs."""
        low, high = self.ends[index : index + 2].tolist()
        if low == high:
            return None, int(self.time[index])
        return int(self.event_time[low]), int(self.event_time[high - 1])

    @property
    def last(self) -> int:
        """The id of the last one."""
        return self.first + len(self) - 1

    def row(self, index: int) -> tuple[str | None, ...]:
        """The terms of a match, in the order of `heading.variables`."""
        return tuple(self.terms[code] for code in self.codes[index].tolist())

    def rows(self) -> list[tuple[str | None, ...]]:
        """All rows."""
        return [tuple([self.terms[code] for code in row]) for row in self.codes.tolist()]

    def events(self, index: int) -> dict[str, tuple[tuple[str, int], ...]]:
        """GPM → its events as (stream IRI, µs), in order of time."""
        low, high = self.ends[index], self.ends[index + 1]
        found: dict[str, list[tuple[str, int]]] = {}
        pairs = zip(self.event_letter[low:high].tolist(), self.event_time[low:high].tolist(), strict=True)
        for letter, time in pairs:
            for gpm, stream in self.heading.letters[letter]:
                found.setdefault(gpm, []).append((stream, time))
        return {gpm: tuple(events) for gpm, events in found.items()}

    def slice(self, start: int, stop: int) -> StoredMatches:
        """The matches number start, ..., stop - 1 of these."""
        start, stop, _ = slice(start, stop).indices(len(self))
        stop = max(start, stop)
        low, high = int(self.ends[start]), int(self.ends[stop])
        return StoredMatches(
            self.first + start,
            self.heading,
            self.time[start:stop],
            self.terms,
            self.codes[start:stop],
            self.ends[start : stop + 1] - low,
            self.event_letter[low:high],
            self.event_time[low:high],
            self.at[start:stop],
        )


def join_matches(parts: Sequence[StoredMatches]) -> StoredMatches:
    """Matches that follow each other and have the same variables, at least one part, as one."""
    if len(parts) == 1:
        return parts[0]
    terms: list[str | None] = [None]
    headings: list[tuple[tuple[str, str], ...]] = []
    codes, letters, ends = [], [], [0]
    for part in parts:
        codes.append(np.where(part.codes > 0, part.codes + (len(terms) - 1), 0).astype(np.int32))
        letters.append(part.event_letter + len(headings))
        ends += (part.ends[1:] + ends[-1]).tolist()
        terms += part.terms[1:]
        headings += part.heading.letters
    return StoredMatches(
        parts[0].first,
        Heading(parts[0].heading.variables, tuple(headings), parts[-1].heading.more),
        np.concatenate([part.time for part in parts]),
        tuple(terms),
        np.concatenate(codes),
        np.array(ends, np.int64),
        np.concatenate(letters),
        np.concatenate([part.event_time for part in parts]),
        np.concatenate([part.at for part in parts]),
    )


def pack_block(block: Block, scope: str = "") -> bytes:
    """The blob of matches, as `pack_matches`."""
    heading = Heading(block.shape.told, tuple(block.letters))
    return pack_matches(block.told(), heading, block.shape.terms, scope)


def pack_matches(batch: MatchBatch, heading: Heading, terms: TermDictionary, scope: str = "") -> bytes:
    """The blob of matches. It reads the dictionary: whoever shares that between threads holds its lock here.

    `scope` is put before the labels of blank nodes (`_:b7` → `_:r3b7`), whose numbers another process restarts.
    """
    distinct, codes = _numbered(batch.values)
    data, ends = terms.texts(distinct)
    text = data.tobytes()
    texts = [text[a:b] for a, b in pairwise(ends.tolist())]
    if scope:
        texts = [b"_:" + scope.encode() + each[2:] if each.startswith(b"_:") else each for each in texts]
    return pack_rows(batch, heading, codes, texts)


def _numbered(values: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct ids but 0, ascending; and for each value its number there from 1, 0 for 0."""
    if values.size <= _FEW:  # a match or two: NumPy takes ten times as long
        given = values.ravel().tolist()
        order = sorted({0, *given})
        number = {id_: i for i, id_ in enumerate(order)}
        return np.array(order[1:], np.int64), np.array([number[id_] for id_ in given], np.int64)
    distinct, codes = np.unique(values, return_inverse=True)
    if distinct[0] != 0:
        return distinct.astype(np.int64), codes.astype(np.int64) + 1
    return distinct[1:].astype(np.int64), codes.astype(np.int64)


def pack_rows(batch: MatchBatch, heading: Heading, codes: NDArray[Any], texts: Sequence[bytes]) -> bytes:
    """The blob of rows that are codes into `texts` (N-Triples, counted from 1); of the batch all but its values."""
    if decided := batch.decided is not None:
        heading = replace(heading, decided=True)
    head = _heading_text(heading)
    text = b"".join(texts)
    body = [
        _FIELDS.pack(len(heading.variables), len(batch.event_time), len(texts), len(text), len(head)),
        batch.time.astype("<i8").tobytes(),
        batch.event_time.astype("<i8").tobytes(),
        np.diff(batch.ends).astype("<i4").tobytes(),
        batch.event_letter.astype("<i4").tobytes(),
        codes.astype("<i4").tobytes(),
        np.array([len(each) for each in texts], "<i4").tobytes(),
        text,
        head,
        batch.at.astype("<i8").tobytes() if decided else b"",
    ]
    return seal(KIND, batch.time, b"".join(body))


def unpack_matches(blob: bytes, first: int) -> StoredMatches:
    """The matches of a blob; `first` is the id of the first. Raises DamagedError, VersionError."""
    count, body = unseal(KIND, blob)
    cut = Cutter(body)
    columns, events, distinct, text, head = cut.fields(_FIELDS)
    if min(columns, events, distinct) < 0:
        raise DamagedError("a damaged blob: a number is out of range")
    time, event_time = cut.array("<i8", count), cut.array("<i8", events)
    sizes, letters = cut.array("<i4", count), cut.array("<i4", events)
    codes, lengths = cut.array("<i4", count * columns), cut.array("<i4", distinct)
    data, heading = cut.bytes(text), _heading(cut.bytes(head))
    at = cut.array("<i8", count) if heading.decided else time
    cut.end()
    within = not len(codes) or (codes.min() >= 0 and codes.max() <= distinct)
    known = not len(letters) or (letters.min() >= 0 and letters.max() < len(heading.letters))
    event_ends = offsets(sizes)
    own = lengths.tolist()
    ends = [0, *accumulate(own)]
    sums = int(event_ends[-1]) == events and ends[-1] == text and sizes.min(initial=0) >= 0
    if not within or not known or not sums or min(own, default=0) < 0 or columns != len(heading.variables):
        raise DamagedError("a damaged blob: its parts do not fit together")
    texts = [data[a:b].decode() for a, b in pairwise(ends)]
    return StoredMatches(
        first,
        heading,
        time,
        (None, *texts),
        codes.reshape(count, columns).view(np.int32),
        event_ends,
        letters.view(np.int32),
        event_time,
        at,
    )


@lru_cache(256)
def _heading_text(heading: Heading) -> bytes:
    values: dict[str, Any] = {"variables": heading.variables, "letters": heading.letters}
    said = {name: True for name, so in (("more", heading.more), ("decided", heading.decided)) if so}
    return json.dumps(values | said, ensure_ascii=False).encode()


@lru_cache(256)
def _heading(data: bytes) -> Heading:
    try:
        values = json.loads(data)
        letters = tuple(tuple((gpm, stream) for gpm, stream in letter) for letter in values["letters"])
        more, decided = bool(values.get("more", False)), bool(values.get("decided", False))
        return Heading(tuple(values["variables"]), letters, more, decided)
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError("a damaged blob: its heading cannot be read") from error
