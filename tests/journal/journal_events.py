"""Events and matches for the tests of the journal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import Found, Heading, Journal, Logged, pack_events, pack_matches

E = "http://e/"
STREAM, OTHER = E + "s", E + "t"
HEADING = Heading(("n", "free"), ((("A", STREAM),), (("B", STREAM), ("C", OTHER))))


@dataclass
class Clock:
    """µs since 1970, moved by hand."""

    now: int = 1_000_000

    def __call__(self) -> int:
        return self.now


def events(times: Iterable[int], terms: TermDictionary) -> EventBatch:
    """An event per time, which stands in it as an integer too."""
    return encode_events([(t, f"<{E}a> <{E}at> {t} . _:b <{E}of> <{E}a> .") for t in times], terms)


def blob(times: Iterable[int]) -> bytes:
    """The same, packed."""
    terms = TermDictionary()
    return pack_events(events(times, terms), terms)


def seen(logged: Iterable[Logged]) -> list[tuple[int, int]]:
    """(offset, time) of each event."""
    return [pair for part in logged for pair in zip(part.offset.tolist(), part.batch.time.tolist(), strict=True)]


def read(journal: Journal, stream: str = STREAM, **bounds: int | None) -> list[tuple[int, int]]:
    """(offset, time) of the events of a stream."""
    return seen(journal.log.read(stream, TermDictionary(), **bounds))


def found(query: str, first: int, numbers: Iterable[int], scope: str = "") -> Found:
    """A match per number, which is its time and its first column."""
    terms = TermDictionary()
    times = np.array(list(numbers), np.int64)
    ids = np.array([terms.intern_written(f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>'.encode()) for n in times])
    values = np.zeros((len(times), 2), np.uint32)
    values[:, 0] = ids
    letters = np.tile(np.array([0, 1], np.int32), len(times))
    batch = MatchBatch(times, values, np.arange(len(times) + 1) * 2, letters, np.repeat(times, 2))
    return Found(query, first, pack_matches(batch, HEADING, terms, scope))


def matches(journal: Journal, query: str, after: int = 0, limit: int | None = None) -> list[tuple[int, int]]:
    """(id, time) of a query's matches."""
    pairs = []
    for stored in journal.matches.read(query, after, limit):
        pairs += list(zip(range(stored.first, stored.last + 1), stored.time.tolist(), strict=True))
    return pairs
