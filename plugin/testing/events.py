"""A case's events, in order of arrival, from its compact forms or from files."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyoxigraph import BlankNode, Triple

from oxiseq.engine.events.encode import decode_events
from oxiseq.engine.events.open import open_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.testing.errors import TestFileError
from oxiseq.testing.tables import read_table
from oxiseq.testing.times import TIME_TOKEN
from oxiseq.testing.words import Words

_OPENING = re.compile(rf"^[ \t]*({TIME_TOKEN})[ \t]+(?:([^\s{{]+)[ \t]*)?\{{", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)


class Event(NamedTuple):
    """An event: its stream's IRI, its time in microseconds, its graph."""

    stream: str
    time: int
    graph: tuple[Triple, ...]


class Reader(NamedTuple):
    """What events are read with. `streams`: name in the query → IRI."""

    words: Words
    time: Callable[[Any], int]
    streams: Mapping[str, str]

    def stream(self, name: str | None) -> str:
        """The IRI of a stream by its name, its IRI or the end of that; None where the query has only one.

        Raises TestFileError.
        """
        iris = dict.fromkeys(self.streams.values())
        if name is None:
            if len(iris) == 1:
                return next(iter(iris))
            raise TestFileError(f"of which stream? The query reads {', '.join(self.streams)}")
        plain = name.removesuffix(":").removeprefix("<").removesuffix(">")
        last = {re.split("[/#]", each)[-1]: each for each in iris}
        iri = self.streams.get(plain, last.get(plain, plain))
        if iri not in iris:
            raise TestFileError(f"the query reads no stream {plain!r}; it reads {', '.join(self.streams)}")
        return iri

    def lines(self, text: str) -> Iterator[Event]:
        """`TIME [STREAM] { TURTLE }`, one or more lines each. Raises TestFileError."""
        text = _COMMENT.sub("", text)
        found = list(_OPENING.finditer(text))
        before = text[: found[0].start()] if found else text
        if before.strip():
            raise TestFileError(f"events are written `TIME [STREAM] {{ TURTLE }}`, but here is: {before.strip()!r}")
        ends = [each.start() for each in found[1:]] + [len(text)]
        for opening, end in zip(found, ends, strict=True):
            body = text[opening.end() : end].rstrip()
            if not body.endswith("}"):
                raise TestFileError(f"the event at {opening[1]} does not end with a brace: {body!r}")
            yield Event(self.stream(opening[2]), self.time(opening[1]), self.words.triples(body[:-1]))

    def table(self, text: str) -> Iterator[Event]:
        """A row per event: `time`, perhaps `stream` and `subject`, and a column per predicate. Raises TestFileError."""
        table = read_table(text)
        if "time" not in table.header:
            raise TestFileError("a table of events needs a column `time`")
        own = {"time", "stream", "subject"}
        predicates = {name: self.words.predicate(name) for name in table.header if name not in own}
        for row in table.rows:
            cells = dict(zip(table.header, row, strict=True))
            subject = self._term(cells["subject"], False) if cells.get("subject") else BlankNode()
            graph = [
                Triple(subject, predicate, self._term(cells[name], name in ("a", "type")))
                for name, predicate in predicates.items()
                if cells[name]
            ]
            yield Event(self.stream(cells.get("stream") or None), self.time(cells["time"]), tuple(graph))

    def _term(self, text: str, word: bool) -> Any:
        if word and self.words.vocab is not None and text.isidentifier():
            text = f"<{self.words.vocab}{text}>"
        found = self.words.term(text)
        if found is None:
            raise TestFileError(f"{text!r} is not a term of Turtle")
        return found

    def file(self, name: str, path: Path) -> Iterator[Event]:
        """The events of a file of a stream. Raises EventError, OSError."""
        terms = TermDictionary()
        for batch in open_events(path, terms):
            terms.hold(*batch.ids)
            for time, graph in decode_events(batch, terms):
                yield Event(self.stream(name), time, graph)

    def trig(self, name: str, text: str) -> Iterator[Event]:
        """The same, as a text of TriG: a graph per event, with its prov:generatedAtTime."""
        head = "".join(f"@prefix {prefix}: <{iri}> .\n" for prefix, iri in self.words.prefixes.items())
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "events.trig"
            path.write_text(head + text, encoding="utf-8")
            yield from list(self.file(name, path))


def in_order(given: Sequence[Sequence[Event]]) -> tuple[Event, ...]:
    """One list keeps its order of arrival; several are merged by time."""
    parts = [part for part in given if part]
    if len(parts) <= 1:
        return tuple(parts[0]) if parts else ()
    return tuple(sorted((event for part in parts for event in part), key=lambda event: event.time))
