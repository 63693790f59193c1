"""A store that is served: streams and continuous queries in a journal, beside a knowledge base."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from threading import Lock
from typing import Any, Final

from oxiseq.durations import Duration, data_duration, duration, duration_text
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import to_microseconds, to_text
from oxiseq.grammar import load
from oxiseq.grammar.languages import Language
from oxiseq.journal import ConflictError
from oxiseq.pictures.tables import html_table
from oxiseq.served.knowledge import ServedKnowledge
from oxiseq.served.query import ServedQuery
from oxiseq.served.stream import ServedStream
from oxiseq.served.wire import Wire
from oxiseq.store import Store

_SAME: Final = ("text", "language", "start", "streamNames", "rules", "report", "consumption", "instants")
"""Members that tell whether a query is the one that is to be registered."""


class ServedStore:
    """What `oxiseq.open(folder)` and `oxiseq.open(url)` answer: the face of `Store`, and all that goes through it is
    durable when a method returns. `pyoxigraph.Store`'s methods are there as well, for the knowledge base.

    Close it, or use it in a `with` block: a folder stays locked until then.
    """

    def __init__(self, where: str, wire: Wire, knowledge: Store | ServedKnowledge, end: Callable[[], object]) -> None:
        """`oxiseq.open` makes it. `end` is called once, when it is closed."""
        self.where = where
        """The folder, or the address."""
        self._wire, self._knowledge, self._end = wire, knowledge, end
        self._streams: dict[str, ServedStream] = {}
        self._lock = Lock()
        self._closed = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in _OF_MEMORY:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._knowledge, name)

    def __len__(self) -> int:
        return len(self._knowledge)

    def __iter__(self) -> Any:
        return iter(self._knowledge)

    def __contains__(self, quad: Any) -> bool:
        return quad in self._knowledge

    # --- streams and queries ------------------------------------------------------------------------

    def stream(self, iri: str) -> ServedStream:
        """The stream of this name, made if there is none."""
        with self._lock:
            known = self._streams.get(iri)
        if known is not None:
            return known
        self._wire.send("PUT", "streams", iri)
        with self._lock:
            return self._streams.setdefault(iri, ServedStream(iri, self._wire))

    @property
    def streams(self) -> tuple[ServedStream, ...]:
        """All streams, in the order in which they were made."""
        told = self._wire.send("GET", "streams").json()["streams"]
        return tuple(ServedStream(each["iri"], self._wire) for each in told)

    @property
    def queries(self) -> tuple[ServedQuery, ...]:
        """The registered queries over streams."""
        told = self._wire.send("GET", "queries").json()["queries"]
        return tuple(ServedQuery(self._wire, each) for each in told if each["language"] != "sparql")

    def find(self, name: str) -> ServedQuery:
        """The registered query of this name. Raises UnknownError."""
        value = self._wire.send("GET", "queries", name).json()
        if value["language"] == "sparql":
            raise OxiseqError(_STANDING)
        return ServedQuery(self._wire, value)

    def register(
        self,
        text: str,
        start: int | datetime | None = None,
        lateness: Duration = "0s",
        language: Language = "spaseq",
        stream_names: Mapping[str, str] = {},
        report: str | None = None,
        instants: Iterable[int | datetime] | None = None,
        consumption: str | None = None,
        rules: Sequence[str] = (),
        *,
        name: str | None = None,
        replace: bool = False,
    ) -> ServedQuery:
        """Register a continuous query, as `Store.register`; it sees the events that are pushed from now on, also after
        this program has ended.

        With a `name` that is registered already the same query is handed out again, so that a program can begin again
        with the lines it began with; another one is refused (ConflictError), unless `replace`: then it takes its place,
        and ids of matches go on. Raises QueryError, ConflictError, BoundError, UnreachableError.
        """
        if str(language) == "sparql":
            raise OxiseqError(_STANDING)
        load(text, language)  # its errors have their place in the text
        given: dict[str, Any] = {
            "text": text, "language": language, "lateness": duration_text(duration(lateness, "lateness")),
            "start": None if start is None else to_text(to_microseconds(start)),
            "streamNames": dict(stream_names), "report": report, "consumption": consumption, "rules": list(rules),
            "instants": None if instants is None else [to_text(to_microseconds(t)) for t in instants], "name": name,
        }  # fmt: skip
        sent = {key: value for key, value in given.items() if value not in (None, {}, [])}
        if replace and name is not None:
            return ServedQuery(self._wire, self._wire.send("PUT", "queries", name, json=sent).json())
        try:
            value = self._wire.send("POST", "queries", json=sent, again=name is not None).json()
        except ConflictError:
            value = self._wire.send("GET", "queries", str(name)).json()
            _check_same(value, given)
        return ServedQuery(self._wire, value)

    def advance(self, time: int | datetime) -> None:
        """Punctuation for all streams: no event before `time` will come any more. Streams that queries feed come after
        those that they read."""
        fed = {query.feeds for query in self.queries}
        for stream in sorted(self.streams, key=lambda each: each.iri in fed):
            stream.advance(time)

    # --- its life -------------------------------------------------------------------------------------

    def close(self) -> None:
        """End what this program holds of it; a server goes on. May be called twice."""
        with self._lock:
            closed, self._closed = self._closed, True
        if not closed:
            self._wire.close()
            self._end()

    def __enter__(self) -> ServedStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        streams = [(stream.iri, f"{stream.events:,} events") for stream in self.streams]
        queries = [(query.name, f"{query.found:,} matches") for query in self.queries]
        return html_table(self.where, [*streams, *queries])

    def __repr__(self) -> str:
        return f"<oxiseq store at {self.where}>"


_OF_MEMORY: Final = ("guard_changes", "inner", "kb", "listen", "lock", "standing", "touch", "writable")
"""Of a `Store` in memory only."""
_STANDING: Final = ("queries over the store itself are registered with a store in memory (oxiseq.open()), or over "
                    "HTTP: POST /queries as application/sparql-query")  # fmt: skip


def _check_same(there: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise ConflictError where another query has the name."""
    other = [key for key in _SAME if (there.get(key) or None) != (given[key] or None)]
    with suppress(OxiseqError):
        if data_duration(there["lateness"]) != data_duration(given["lateness"]):
            other.append("lateness")
    if other:
        raise ConflictError(f"there is a query {given['name']!r} with another {', '.join(other)}: say replace=True to "
                            "put this one in its place")  # fmt: skip
