"""A Python Data Source, `oxiseq`: RDF event files of a folder, or a stream of our server; no jar.

    spark.dataSource.register(EventSource)
    spark.readStream.format("oxiseq").load("folder")
    spark.readStream.format("oxiseq").option("url", "http://127.0.0.1:7878").option("stream", "http://e/quotes").load()

Both work with `spark.read` too. The one column, `events`, holds packed events, many in a row, for `oxiseq.spark.match`.

Files: N-Quads, TriG, NDJSON-LD, Jelly, plain or gzip, and coded event tables, by their endings; names that begin with
"." or "_" and other endings are not seen. A file must appear whole (written elsewhere on the same disk, then renamed)
and stay as it is. Offsets are the names of the files read so far, so each is read once whenever it appears, and a
folder should hold some ten thousand at the most. `maxFilesPerTrigger` files, in order of their names, make a
micro-batch.

A server's stream: offsets are the stream's own durable ones. `startingOffset` is "earliest" (what is kept), "latest" or
a number; `maxEventsPerTrigger` events make a micro-batch. What retention has deleted before it was read is an error.
The token is the option `token` or OXISEQ_READ_TOKEN, on the driver and on executors.

Spark reads this module in several processes that only plan; so the engine is imported where events are read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from oxiseq.engine.folders import lake_log
from oxiseq.grammar.errors import OxiseqError
from oxiseq.grammar.records import dataclass

_ENDINGS: Final = (
    ".nq",
    ".nquads",
    ".trig",
    ".ndjsonld",
    ".jelly",
    ".arrow",
    ".feather",
    ".ipc",
    ".parquet",
    ".pq",
)
"""Of event files (engine/events/open.py); .nt and .ttl beside them may as well be no events."""
_PAGE: Final = 10_000
_PATIENCE: Final = 60.0
"""Seconds to wait for the server."""
_TOKEN: Final = "OXISEQ_READ_TOKEN"


class SourceError(OxiseqError):
    """Options that do not fit, or a server that does not answer as it should."""


class EventSource(DataSource):
    """See the module's text for its options."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "oxiseq"

    def schema(self) -> str:
        """One column."""
        return "events binary"

    def reader(self, schema: Any) -> DataSourceReader:
        """For `spark.read`."""
        return _Once(_place(self.options))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        """For `spark.readStream`."""
        return _Continuous(_place(self.options))


def _place(options: MutableMapping[str, str]) -> Folder | ServedStream:
    on_error = options.get("onError", "stop")
    if on_error not in ("stop", "skip"):
        raise SourceError(f"onError is stop or skip, not {on_error!r}")
    if "url" in options:
        if "stream" not in options:
            raise SourceError("url needs the option stream, the stream's IRI")
        limit = _number(options, "maxEventsPerTrigger")
        begin = options.get("startingOffset", "earliest")
        return ServedStream(options["url"].rstrip("/"), options["stream"], begin, limit, options.get("token"))
    path = options.get("path")
    if not path:
        raise SourceError("load(path) with a file or a folder of event files, or the options url and stream")
    return Folder(path, _number(options, "maxFilesPerTrigger"), on_error)  # type: ignore[arg-type]  # checked above


def _number(options: MutableMapping[str, str], name: str) -> int | None:
    given = options.get(name)
    if given is None:
        return None
    if not given.isdecimal() or int(given) < 1:
        raise SourceError(f"{name} is a number from 1 on, not {given!r}")
    return int(given)


class Part(InputPartition):
    """What one task reads: a file, or offsets of a stream."""

    def __init__(self, first: Any, end: int = 0) -> None:
        self.first = first
        self.end = end


# --- files ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Folder:
    """Event files of a folder, or one file. An offset: the names of the files before it, a line each."""

    path: str
    limit: int | None
    on_error: Literal["stop", "skip"]

    def begin(self) -> dict[str, Any]:
        """Nothing read."""
        return {"files": ""}

    def most(self) -> ReadLimit:
        """What a micro-batch takes."""
        return ReadAllAvailable() if self.limit is None else ReadMaxFiles(self.limit)

    def end(self) -> dict[str, Any]:
        """All that is there now."""
        return {"files": "\n".join(sorted(self._names()))}

    def after(self, start: dict[str, Any], limit: ReadLimit, end: dict[str, Any]) -> dict[str, Any]:
        """The offset of the next micro-batch's end."""
        read, there = _lines(start), _lines(end)
        new = sorted(there - read)
        if isinstance(limit, ReadMaxFiles):
            new = new[: limit.max_files]
        return {"files": "\n".join(sorted(read.union(new)))}

    def parts(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Part]:
        """A task for each file."""
        return [Part(name) for name in sorted(_lines(end) - _lines(start))]

    def read(self, part: Part) -> Iterator[bytes]:
        """Packed events. Raises EventError."""
        from oxiseq.spark.reading import packed_file  # noqa: PLC0415  see the module's text

        root = Path(self.path)
        return packed_file(root / part.first if root.is_dir() else root, self.on_error)

    def _names(self) -> set[str]:
        root = Path(self.path)
        if root.is_file():
            return {root.name}
        if not root.is_dir():
            raise SourceError(f"{self.path}: there is no such file or folder")
        if (reason := lake_log(root)) is not None:
            raise SourceError(f"{self.path}: {reason}")
        return {p.name for p in root.iterdir() if _is_events(p)}


def _lines(offset: dict[str, Any]) -> set[str]:
    return set(filter(None, offset["files"].split("\n")))


def _is_events(path: Path) -> bool:
    name = path.name.lower().removesuffix(".gz")
    return name.endswith(_ENDINGS) and not name.startswith((".", "_")) and path.is_file()


# --- a server's stream ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ServedStream:
    """A stream of our server. An offset is the stream's."""

    url: str
    iri: str
    first: str
    limit: int | None
    token: str | None

    def begin(self) -> dict[str, Any]:
        """Where a new query starts. Raises SourceError."""
        if self.first.isdecimal():
            return {"offset": int(self.first)}
        if self.first not in ("earliest", "latest"):
            raise SourceError(f"startingOffset is earliest, latest or a number, not {self.first!r}")
        return {"offset": self._record()["first" if self.first == "earliest" else "next"]}

    def most(self) -> ReadLimit:
        """What a micro-batch takes."""
        return ReadAllAvailable() if self.limit is None else ReadMaxRows(self.limit)

    def end(self) -> dict[str, Any]:
        """All that is there now."""
        return {"offset": self._record()["next"]}

    def after(self, start: dict[str, Any], limit: ReadLimit, end: dict[str, Any]) -> dict[str, Any]:
        """The offset of the next micro-batch's end."""
        offset = max(end["offset"], start["offset"])
        if isinstance(limit, ReadMaxRows):
            offset = min(offset, start["offset"] + limit.max_rows)
        return {"offset": offset}

    def parts(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Part]:
        """One task: the server reads its log in order."""
        return [Part(start["offset"], end["offset"])] if start["offset"] < end["offset"] else []

    def read(self, part: Part) -> Iterator[bytes]:
        """Packed events. Raises SourceError."""
        from oxiseq.spark.reading import packed_text  # noqa: PLC0415  see the module's text

        at = part.first
        while at < part.end:
            asked = {"offset": at, "limit": min(_PAGE, part.end - at)}
            body, following = self._get(f"/events?{urlencode(asked)}", "application/n-quads")
            yield packed_text(body)
            if following is None or int(following) <= at:
                raise SourceError(f"{self.iri}: the server does not continue after offset {at}")
            at = int(following)

    def _record(self) -> dict[str, Any]:
        body, _ = self._get("", "application/json")
        record: dict[str, Any] = json.loads(body)
        return record

    def _get(self, path: str, accept: str) -> tuple[bytes, str | None]:
        request = Request(f"{self.url}/streams/{quote(self.iri, safe='')}{path}", headers={"Accept": accept})
        token = self.token or os.environ.get(_TOKEN)
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urlopen(request, timeout=_PATIENCE) as answer:
                return answer.read(), answer.headers.get("Oxiseq-Next-Offset")
        except HTTPError as error:
            told = error.read(2_000).decode(errors="replace")
            raise SourceError(f"{self.url}, stream {self.iri}: {error.code} {error.reason} {told}") from error
        except (URLError, TimeoutError) as error:
            raise SourceError(f"{self.url}, stream {self.iri}: {error}") from error


# --- readers ----------------------------------------------------------------------------------------


def _rows(place: Folder | ServedStream, part: Part) -> Iterator[tuple[bytes]]:
    return ((packed,) for packed in place.read(part))


class _Once(DataSourceReader):
    def __init__(self, place: Folder | ServedStream) -> None:
        self._place = place

    def partitions(self) -> Sequence[InputPartition]:
        return self._place.parts(self._place.begin(), self._place.end())

    def read(self, partition: Any) -> Iterator[tuple[bytes]]:
        return _rows(self._place, partition)


class _Continuous(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, place: Folder | ServedStream) -> None:
        self._place = place
        self._last: dict[str, Any] | None = None

    def initialOffset(self) -> dict[str, Any]:
        return self._place.begin()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return self._place.after(start, limit, self._place.end() if self._last is None else self._last)

    def getDefaultReadLimit(self) -> ReadLimit:
        return self._place.most()

    def prepareForTriggerAvailableNow(self) -> None:
        self._last = self._place.end()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return self._place.parts(start, end)

    def read(self, partition: Any) -> Iterator[tuple[bytes]]:
        return _rows(self._place, partition)
