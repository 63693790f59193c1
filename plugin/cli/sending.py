"""The work of `oxiseq push`, `bridge` and `watch`: what goes to a server and comes from it."""

from __future__ import annotations

import hashlib
import json
import secrets
import shlex
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, cast

import click
from pyoxigraph import NamedNode

from oxiseq.bridges import Bridge, BridgeError, BridgeSettings, DeadLetters, Message, Outcome, opener_of, outcome_of
from oxiseq.bridges.bridge import REFUSED, key_headers
from oxiseq.cli.loading import mapping_named
from oxiseq.cli.progress import Bar, closing, counted, nothing_of, progress_bar
from oxiseq.engine.errors import EventError, OxiseqError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.contexts import NO_CONTEXTS
from oxiseq.engine.events.open import open_events
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.events.write import quads_text
from oxiseq.engine.extras import needed
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import ConflictError, UnknownError
from oxiseq.live.settings import BusyError
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.rows import BadRow, is_table
from oxiseq.options.kinds import check_sendable
from oxiseq.served.long_push import LongPush, NoSocketError
from oxiseq.served.wire import AnswerError, How, UnreachableError, Wire
from oxiseq.sources.sources import batches_of

if TYPE_CHECKING:
    import httpx
    import httpx_sse
else:
    httpx, httpx_sse = needed("httpx"), needed("httpx_sse")


# --- what push reads -------------------------------------------------------------------------------------

NO_MAPPING = "a table needs a mapping: --mapping says what its rows mean, or the stream's own (docs/mappings.md)"


def mapping_of_stream(server: Wire, stream: str) -> Callable[[], StreamMapping | None]:
    """Gives the stream's mapping, which is fetched once, for the first file that needs it."""

    @cache
    def asked() -> StreamMapping | None:
        given = server.call("getStream", stream=stream).json().get("mapping")
        return None if given is None else StreamMapping(given)

    return asked


class PushedFile:
    """A file, or a folder of files, whose events are read once."""

    def __init__(
        self, path: Path, time_predicate: str, on_error: OnError, mapping: Callable[[], StreamMapping | None]
    ) -> None:
        """`mapping` is called for a table, and for JSON-LD, which may name its contexts. Raises EventError."""
        if not path.is_file() and not path.is_dir():
            raise EventError(None, None, f"{path} is neither a file nor a folder: `oxiseq bridge -` pushes stdin")
        self.path = path
        self._terms = TermDictionary()
        table = is_table(path)
        mapped = mapping() if table or ".ndjsonld" in path.suffixes else None
        self._read_as = time_predicate if mapped is None else json.dumps(mapped.as_data(), sort_keys=True)
        if table:
            if mapped is None:
                raise EventError(None, None, NO_MAPPING)
            self.report = ReadReport(str(path), bytes_total=path.stat().st_size)
            self._batches = _of_rows(path, self._terms, on_error, mapped, self.report)
        else:
            contexts = NO_CONTEXTS if mapped is None else mapped.contexts
            reader = open_events(path, self._terms, NamedNode(time_predicate), on_error, contexts=contexts)
            self.report, self._batches = reader.report, iter(reader)

    def session(self) -> str:
        """A name for these events: the same for the same content of a file of this name, read the same way. A
        folder in which there is a pipe has another one each time."""
        found = hashlib.blake2b(f"{self.path.name}\0{self._read_as}".encode(), digest_size=16)
        parts = sorted(self.path.rglob("*")) if self.path.is_dir() else [self.path]
        for part in parts:
            if part.is_file():
                found.update(f"\0{part.name}\0".encode())
                with part.open("rb") as content:
                    found.update(hashlib.file_digest(content, "blake2b").digest())
            elif not part.is_dir():
                found.update(secrets.token_bytes(16))
        return found.hexdigest()

    def texts(self, update: Callable[[], object]) -> Iterator[str]:
        """The N-Quads of each event; `update` is called now and then. Raises EventError."""
        return quads_text(self._collected(update), self._terms)

    def _collected(self, update: Callable[[], object]) -> Iterator[EventBatch]:
        for batch in self._batches:
            yield batch
            self._terms.collect_if_due()
            update()


def _of_rows(
    file: Path, terms: TermDictionary, on_error: OnError, mapping: StreamMapping, report: ReadReport
) -> Iterator[EventBatch]:
    if not mapping.time:
        raise EventError(str(file), None, "the mapping has no time: a table's rows need a column for it")

    def left_out(row: BadRow) -> None:
        report.fault(row.place, str(row), on_error)

    try:
        for batch in batches_of(file, terms, "skip", mapping=mapping, bad=left_out):
            report.events += len(batch)
            report.quads += len(batch.subject)
            yield batch
    except EventError as error:
        raise error if error.file else EventError(str(file), error.line, error.reason) from error
    report.bytes_read = report.bytes_total


# --- push ------------------------------------------------------------------------------------------------

_LARGEST: Final = 8 << 20
"""Bytes from which on a request is sent: far below what a server takes, and large enough to be worth its way."""
_REASONS: Final = 10


def push_files(
    server: Wire,
    stream: str,
    files: Sequence[Path],
    on_error: str,
    time_predicate: str,
    mapping: str | None = None,
    session: str | None = None,
    *,
    quiet: bool,
) -> None:
    """Push; `mapping`: a file or the name of a ready one, for tables (None: the stream's own); `session`: under which
    the server counts the events of the one file (None: a name of its own for each content). Raises EventError,
    MappingError, and what the server says no to."""
    if session is not None and len(files) > 1:
        raise OxiseqError("a session is of one source: push files under --session one by one")
    if session is not None:
        check_sendable(session, "session")
    named = None if mapping is None else mapping_named(mapping)
    mapped = mapping_of_stream(server, stream) if named is None else lambda: named
    begun, reports = perf_counter(), list[ReadReport]()
    if quiet:
        server.tell = lambda _: None
    work = _Pushing(server, stream)
    with progress_bar(lambda: reports, quiet=quiet) as bar:
        for path in files:
            file = PushedFile(path, time_predicate, cast(OnError, on_error), mapped)
            reports.append(file.report)
            work.push(file, session, bar)
    if quiet:
        return
    accepted = work.counts["accepted"]
    click.echo(closing(reports, work.parts(), accepted, perf_counter() - begun), err=True)
    nothing = [file for file, report in zip(files, reports, strict=True) if is_table(file) and not report.events]
    for note in nothing_of(nothing, "event"):
        click.echo(note, err=True)
    for reason in work.reasons[:_REASONS]:
        click.echo(f"rejected or ignored: {reason}", err=True)


class _Pushing:
    """Files on their way to a stream, and the server's answers."""

    def __init__(self, server: Wire, stream: str) -> None:
        self._server, self._stream = server, stream
        self._sockets = server.sockets
        self.counts = Counter[str]()
        """accepted, late, ignored, rejected; `duplicates`: events that the server had already."""
        self.reasons: list[str] = []

    def push(self, file: PushedFile, session: str | None, bar: Bar) -> None:
        """All of a file. Raises as `push_files`."""
        try:
            if self._sockets and self._pushed(file, session, bar):
                return
            if session is not None:
                raise OxiseqError("--session needs a server that takes WebSockets, and the package websockets here")
            for number, body in enumerate(_bodies(file.texts(bar.update))):
                self._send(body, f"{file.path.name} {number}")
        except UnknownError as error:
            raise UnknownError(f"{error}: register a query that reads it, or push with --create") from None

    def _pushed(self, file: PushedFile, session: str | None, bar: Bar) -> bool:
        """Over a WebSocket; whether the server takes one."""
        name = file.session() if session is None else session
        push, done = LongPush(self._server, self._stream, name), False
        try:
            count = push.send(file.texts(bar.update))
            done = True
        except NoSocketError:
            self._sockets = False
            return False
        finally:
            if not done and push.last:
                click.echo(
                    f"note: {counted(push.last, 'event', 'events')} of {file.path.name} are stored. The same command "
                    f"continues after them; with a corrected file add --session {shlex.quote(name)}",
                    err=True,
                )
        if count < push.stored:
            raise OxiseqError(
                f"the server has {push.stored:,} events of the session {name!r}, and {file.path} has {count:,}: "
                "nothing was pushed. A file that was begun again needs another --session"
            )
        self.counts["accepted"] += count - push.stored
        self.counts["duplicates"] += push.stored
        self.counts.update({name: push.counts[name] for name in ("late", "ignored")})
        self.reasons += push.reasons
        return True

    def _send(self, body: bytes, name: str) -> None:
        """One batch. Its id is the digest of its name and content, so that the same file again is the same batches."""
        digest = hashlib.blake2b(name.encode() + b"\0" + body, digest_size=16).hexdigest()
        how: How = {"content": body, "kind": "application/n-quads", "key": digest}
        done: dict[str, Any] = self._server.call("push", how, stream=self._stream).json()
        if done["duplicates"]:
            self.counts["duplicates"] += done["accepted"]
            return
        self.counts.update({name: done[name] or 0 for name in ("accepted", "late", "ignored", "rejected")})
        self.reasons += [each["reason"] for each in done["reasons"]]

    def parts(self) -> list[str]:
        """In words."""
        counts = self.counts
        return [
            f"{counted(counts['accepted'], 'event', 'events')} accepted",
            f"{counts['late']:,} late",
            *(
                f"{counts[name]:,} {word}"
                for name, word in (
                    ("ignored", "ignored by queries"),
                    ("rejected", "rejected"),
                    ("duplicates", "were there already"),
                )
                if counts[name]
            ),
        ]


def _bodies(events: Iterator[str]) -> Iterator[bytes]:
    """The texts of events together, whole events in each."""
    parts: list[bytes] = []
    size = 0
    for text in events:
        parts.append(text.encode())
        size += len(parts[-1])
        if size >= _LARGEST:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)


# --- bridge ----------------------------------------------------------------------------------------------

_KNOWN: Final = 100_000
"""Keys: more than an MQTT broker has numbers."""


class Elsewhere:
    """The intake of a server: one POST for each message."""

    def __init__(self, server: Wire, settings: BridgeSettings) -> None:
        self._server, self._settings = server, settings
        self._known: dict[str, None] = {}

    def knows(self, key: str) -> bool:
        """See Intake: of those that this process has pushed, the last 100,000."""
        return key in self._known

    def push(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        """See Intake: the first of them."""
        message, settings = messages[0], self._settings
        how: How = {"content": message.body, "kind": settings.media_type, "key": message.key}
        how["headers"] = dict(key_headers(message))
        try:
            reply = self._server.call("push", how, stream=settings.into, time=settings.time)
        except ConflictError as error:
            return [Outcome(refused=str(error))]
        except AnswerError as error:
            if error.status not in REFUSED:
                raise
            return [Outcome(refused=str(error))]
        outcome = outcome_of(reply.status_code, reply.content)
        self._known[message.key] = None
        if len(self._known) > _KNOWN:
            del self._known[next(iter(self._known))]
        return [outcome]


def bridge(server: Wire, source: str, given: dict[str, Any]) -> None:
    """Until SIGTERM or SIGINT, or the end of stdin. Raises OxiseqError."""
    options = dict(_option(each) for each in given.pop("options"))
    settings = BridgeSettings(url=source, options=options, **given)
    server.call("putStream", stream=settings.into)
    letters = DeadLetters(settings.dead_letter)
    made = Bridge(settings.shown, opener_of(settings), Elsewhere(server, settings), letters)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: made.stop())
    click.echo(f"bringing {settings.shown} into <{settings.into}>", err=True)
    made.run()
    counts = made.counts
    click.echo(
        f"{counts.messages:,} messages, {counts.events:,} events, {counts.duplicates:,} known, {counts.refused:,} "
        "refused" + (f" (see {settings.dead_letter})" if counts.refused else ""),
        err=True,
    )


def _option(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator:
        raise BridgeError(f"--option {text}: write KEY=VALUE")
    return key, value


# --- watch -----------------------------------------------------------------------------------------------

_NOTES: Final = ("cursor-too-old", "damaged")
_GO_ON: Final = ("the server is stopping", "replaced")
"""Reasons of an end behind which it continues, sooner or later."""
_SILENCE: Final = 60.0
"""Seconds without a word after which a connection is taken for dead: the server sends comments."""
_PAUSES: Final = (0.5, 1, 2, 4, 8, 15)


class Watch:
    """A query's matches, or what changes of its answer, behind a cursor."""

    def __init__(self, server: Wire, operation: str, query: str, quiet: bool) -> None:
        self._server, self._operation, self._query, self._quiet = server, operation, query, quiet
        self._turn = 0

    def follow(self, cursor: int | None, limit: int | None) -> None:
        """Until there were `limit`. Raises OxiseqError when nothing will come any more."""
        at, count = None if cursor is None else str(cursor), 0
        while True:
            try:
                with self._server.listening(self._operation, _SILENCE, query=self._query, after=at) as reply:
                    for told in httpx_sse.EventSource(reply).iter_sse():
                        if not told.data:  # how long to wait before one comes back
                            continue
                        self._turn = 0
                        at = told.id or at
                        if told.event == "end":
                            self._check_end(told.data)
                            break
                        self._say(told)
                        count += told.event not in _NOTES
                        if count == limit:
                            return
                reason = f"{self._server.address} has ended the connection"
            except httpx.ReadTimeout:
                reason = f"{self._server.address} is silent"
            except (UnreachableError, BusyError) as error:
                reason = str(error)
            self._wait(reason)

    def _say(self, told: httpx_sse.ServerSentEvent) -> None:
        if told.event in _NOTES:
            click.echo(f"warning: {told.event}: {told.data}", err=True)
        else:
            click.echo(told.data)

    def _check_end(self, data: str) -> None:
        """Raises OxiseqError if nothing will come any more: the query has been deleted, or has failed."""
        reason = json.loads(data)["reason"]
        if reason not in _GO_ON:
            raise OxiseqError(f"the query {self._query}: {reason}")

    def _wait(self, reason: str) -> None:
        seconds = _PAUSES[min(self._turn, len(_PAUSES) - 1)]
        if not self._quiet:
            click.echo(f"note: {reason}; again in {seconds:g} s", err=True)
        self._turn += 1
        time.sleep(seconds)
