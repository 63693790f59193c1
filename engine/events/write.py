"""Event batches → N-Quads, TriG or N-Triples text, plain or gzip.

Event number n of a file is named `<urn:oxiseq:event:n>`; its time comes before its graph, in the default
graph, or inside its own graph when that is empty (assembler.py). Blank nodes are labelled by their ids.
What is written is read back as the same events; terms are written in the store's normal form.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, cast

from pyoxigraph import NamedNode

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.quads import GENERATED_AT, QuadFormat
from oxiseq.engine.events.time import to_literal
from oxiseq.engine.terms.dictionary import CACHE_SIZE, TermDictionary

EVENT_NAME: Final = "urn:oxiseq:event:"


def event_name(number: int) -> str:
    """The IRI of an event of a file."""
    return f"{EVENT_NAME}{number}"


def write_quads(
    batches: Iterable[EventBatch],
    terms: TermDictionary,
    path: Path,
    *,
    format: QuadFormat = "nquads",
    time_predicate: NamedNode = GENERATED_AT,
) -> int:
    """Write the events to a file, gzip if its name ends in `.gz`; returns how many. The file appears when
    all is written. Raises OSError and whatever reading the batches raises."""
    count = 0
    with replacing(path) as part, opened(part, zipped=path.suffix == ".gz") as file:
        for text in quads_text(batches, terms, format=format, time_predicate=time_predicate):
            file.write(text.encode())
            count += 1
    return count


def quads_text(
    batches: Iterable[EventBatch],
    terms: TermDictionary,
    *,
    format: QuadFormat = "nquads",
    time_predicate: NamedNode = GENERATED_AT,
    named: Callable[[int], str] = event_name,
) -> Iterator[str]:
    """The text of one event after the other; `named`: an event's number, from 0 on → its IRI."""
    return _texts(batches, terms, time_predicate, _nquads if format == "nquads" else _trig, named)


def triples_text(
    batches: Iterable[EventBatch], terms: TermDictionary, *, time_predicate: NamedNode = GENERATED_AT
) -> Iterator[str]:
    """The text of one event after the other in N-Triples: the time of a node of that name, then the graph."""
    return _texts(batches, terms, time_predicate, _ntriples)


def _texts(
    batches: Iterable[EventBatch],
    terms: TermDictionary,
    time_predicate: NamedNode,
    render: Callable[[str, str, list[str]], str],
    named: Callable[[int], str] = event_name,
) -> Iterator[str]:
    texts = _Texts(terms)
    number = 0
    for batch in batches:
        offset, times = batch.offset.tolist(), batch.time.tolist()
        columns = (batch.subject.tolist(), batch.predicate.tolist(), batch.object.tolist())
        texts.refresh()
        for event, time in enumerate(times):
            low, high = offset[event], offset[event + 1]
            name = f"<{named(number)}>"
            stamp = f"{name} {time_predicate} {to_literal(time)}"
            rows = zip(*(column[low:high] for column in columns), strict=True)
            yield render(name, stamp, [texts.triple(*row) for row in rows])
            number += 1


def _nquads(name: str, stamp: str, triples: list[str]) -> str:
    if not triples:
        return f"{stamp} {name} .\n"
    return f"{stamp} .\n" + "".join(f"{triple} {name} .\n" for triple in triples)


def _ntriples(name: str, stamp: str, triples: list[str]) -> str:
    return f"{stamp} .\n" + "".join(f"{triple} .\n" for triple in triples)


def _trig(name: str, stamp: str, triples: list[str]) -> str:
    if not triples:
        return f"{name} {{\n  {stamp} .\n}}\n"
    return f"{stamp} .\n{name} {{\n" + "".join(f"  {triple} .\n" for triple in triples) + "}\n"


class _Texts:
    """Texts of terms, with a cache that is emptied when it is full."""

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._text: Callable[[int], str] = terms.text
        self._generation = terms.generation
        self._known: dict[int, str] = {}

    def refresh(self) -> None:
        """Before each batch: forget texts if ids have been freed."""
        if self._generation != self._terms.generation:
            self._known.clear()
            self._generation = self._terms.generation

    def triple(self, subject: int, predicate: int, object_: int) -> str:
        return f"{self._of(subject)} {self._of(predicate)} {self._of(object_)}"

    def _of(self, term: int) -> str:
        text = self._known.get(term)
        if text is None:
            if len(self._known) >= CACHE_SIZE:
                self._known.clear()
            text = self._known[term] = self._text(term)
        return text


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to; it takes the place of `path` if all goes well, else it is removed."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def opened(path: Path, *, zipped: bool) -> IO[bytes]:
    """A file to write to; closing it ends the gzip data."""
    # mtime 0: the same events give the same bytes
    file = gzip.GzipFile(path, "wb", compresslevel=6, mtime=0) if zipped else path.open("wb")
    return cast(IO[bytes], file)
