"""The work of `oxiseq push`: files → events → a long push, or requests, each of which the server takes once."""

from __future__ import annotations

import hashlib
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final, cast

import click

from oxiseq.cli.mapping_tried import mapping_named
from oxiseq.cli.progress import Bar, closing, counted, nothing_of, progress_bar
from oxiseq.cli.pushed_events import PushedFile, mapping_of_stream
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.journal import UnknownError
from oxiseq.mappings.sources import is_table
from oxiseq.served.long_push import LongPush, NoSocketError
from oxiseq.served.wire import Wire, check_name

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
        check_name(session, "session")
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
        done: dict[str, Any] = self._server.send(
            "POST", "streams", self._stream, content=body, kind="application/n-quads", key=digest
        ).json()
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
