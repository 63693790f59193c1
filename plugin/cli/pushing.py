"""The work of `oxiseq push`: files → batches of events → requests, each of which the server takes once."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final, cast

import click

from oxiseq.cli.mapping_tried import mapping_named
from oxiseq.cli.progress import closing, counted, nothing_of, progress_bar
from oxiseq.cli.pushed_events import mapping_of_stream, pushed_events
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.events.write import quads_text
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import UnknownError
from oxiseq.mappings.sources import is_table
from oxiseq.served.wire import Wire

_LARGEST: Final = 8 << 20
"""Bytes from which on a request is sent: far below what a server takes, and large enough to be worth its way."""
_COUNTS: Final = ("accepted", "late", "left_out", "rejected")
_REASONS: Final = 10


def push_files(
    server: Wire,
    stream: str,
    files: Sequence[Path],
    on_error: str,
    time_predicate: str,
    mapping: str | None = None,
    *,
    quiet: bool,
) -> None:
    """Push; `mapping`: a file or the name of a ready one, for tables (None: the stream's own). Raises EventError,
    MappingError, and what the server says no to."""
    named = None if mapping is None else mapping_named(mapping)
    mapped = mapping_of_stream(server, stream) if named is None else lambda: named
    begun, sums, reasons = perf_counter(), Counter[str](), list[str]()
    reports: list[ReadReport] = []

    if quiet:
        server.tell = lambda _: None
    with progress_bar(lambda: reports, quiet=quiet) as bar:
        for file in files:
            reader = pushed_events(file, terms := TermDictionary(), time_predicate, cast(OnError, on_error), mapped)
            reports.append(reader.report)
            for number, body in enumerate(_bodies(quads_text(reader, terms))):
                done = _push(server, stream, body, f"{file.name} {number}")
                sums.update({name: int(done[name] or 0) for name in _COUNTS})  # null where it was there already
                sums["repeated"] += done["repeated"]
                reasons += [each["reason"] for each in done["reasons"]]
                bar.update()
    if quiet:
        return
    accepted = sums["accepted"]
    parts = [f"{counted(accepted, 'event', 'events')} accepted", f"{sums['late']:,} late"]
    parts += [
        f"{sums[name]:,} {word}"
        for name, word in (
            ("left_out", "left out by queries"),
            ("rejected", "rejected"),
            ("repeated", "batches were there already"),
        )
        if sums[name]
    ]
    click.echo(closing(reports, parts, accepted, perf_counter() - begun), err=True)
    nothing = [file for file, report in zip(files, reports, strict=True) if is_table(file) and not report.events]
    for note in nothing_of(nothing, "event"):
        click.echo(note, err=True)
    for reason in reasons[:_REASONS]:
        click.echo(f"rejected or left out: {reason}", err=True)


def _push(server: Wire, stream: str, body: bytes, name: str) -> dict[str, Any]:
    """One batch. Its id is the digest of its name and content, so that the same file again is the same batches."""
    digest = hashlib.blake2b(name.encode() + b"\0" + body, digest_size=16).hexdigest()
    try:
        done: dict[str, Any] = server.send(
            "POST", "streams", stream, content=body, kind="application/n-quads", key=digest
        ).json()
    except UnknownError as error:
        raise UnknownError(f"{error}: register a query that reads it, or push with --create") from None
    return done


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
