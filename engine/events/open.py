"""Files of events by their names: the one door for the command line and the Python API.

.nq .nquads   .trig          N-Quads, TriG; .gz after them, or gzip found by its first bytes
.nt .ttl .ndjsonld           RDF Messages in N-Triples, Turtle, NDJSON-LD; .gz likewise. N-Quads and TriG that begin
                             with VERSION "1.2-messages" are such, too
.jelly                       Jelly, with the extra oxiseq[jelly]; .gz likewise
.arrow .feather .ipc         coded event table, Arrow IPC
.parquet .pq                 coded event table, Parquet
a pipe                       N-Quads, or TriG if its name says so; read once, as it comes
a folder                     the coded event tables in it; names that begin with _ or . are not read
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from filecmp import cmp
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from pyoxigraph import NamedNode

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.bytes import DAMAGED, ByteSource
from oxiseq.engine.events.contexts import NO_CONTEXTS, Contexts
from oxiseq.engine.events.messages.announced import HEAD, RDF_FORMATS, VERSION, MessageFormat, announces
from oxiseq.engine.events.quads import GENERATED_AT, QuadFormat, read_quads
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.events.tables import read_table, write_table
from oxiseq.engine.events.write import write_quads
from oxiseq.engine.extras import needed
from oxiseq.engine.folders import is_hidden, lake_log
from oxiseq.engine.terms.dictionary import TermDictionary

if TYPE_CHECKING:
    from oxiseq.engine.events.messages import reading, writing
else:
    reading, writing = (needed(f"oxiseq.engine.events.messages.{name}") for name in ("reading", "writing"))

EventFormat: TypeAlias = Literal["nquads", "trig", "jelly", "arrow", "parquet"] | MessageFormat

ENDINGS: Final[dict[str, EventFormat]] = {
    ".nq": "nquads",
    ".nquads": "nquads",
    ".trig": "trig",
    ".nt": "messages-ntriples",
    ".ttl": "messages-turtle",
    ".ndjsonld": "messages-ndjsonld",
    ".jelly": "jelly",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_GRAPHLESS: Final = (".rdf", ".n3", ".owl")
_ANNOUNCING: Final[dict[EventFormat, MessageFormat]] = {"nquads": "messages-nquads", "trig": "messages-trig"}
"""Formats that are logs of messages where the text says so."""


class EventReader:
    """An iterator over the batches of a file, with a running `report` (bytes, events, skipped, errors)."""

    def __init__(self, batches: Iterator[EventBatch], report: ReadReport) -> None:
        self._batches = batches
        self.report = report

    def __iter__(self) -> Iterator[EventBatch]:
        return self

    def __next__(self) -> EventBatch:
        return next(self._batches)


def event_format(path: str | Path) -> EventFormat:
    """The format by a file's name. Raises EventError for an ending that is not known."""
    name = Path(path)
    zipped = name.suffix.lower() == ".gz"
    ending = (name.with_suffix("") if zipped else name).suffix.lower()
    known = ENDINGS.get(ending)
    if known is None or (zipped and known in ("arrow", "parquet")):
        given = ending + ".gz" * zipped or "(none)"
        reason = f"unknown ending {given}; known: {', '.join(ENDINGS)}; .gz may follow those of text and Jelly"
        if ending in _GRAPHLESS:
            reason = f"{ending} files have no named graphs, hence no events; use N-Quads (.nq) or TriG"
        raise EventError(str(path), None, reason)
    return known


def open_events(
    path: str | Path,
    terms: TermDictionary,
    time_predicate: NamedNode = GENERATED_AT,
    on_error: OnError = "stop",
    format: EventFormat | None = None,
    contexts: Contexts = NO_CONTEXTS,
) -> EventReader:
    """The events of a file, in batches of at most 8192.

    `format` overrides the file's name. `on_error="skip"` leaves out malformed lines and events of N-Quads and
    TriG, and RDF messages, and counts them in the reader's `report`; damage of a table is always an error. An empty
    file has no events. `contexts`: those that messages of JSON-LD may name. Raises EventError at once for a file that
    does not exist, cannot be opened or has an unknown ending, and while reading for malformed content. A folder's event
    tables, as `oxiseq import` writes them, are read one after the other, in order of their names.
    """
    file = Path(path)
    if file.is_dir():
        return _open_folder(file, terms)
    if is_pipe(file):
        return _open_pipe(file, terms, time_predicate, on_error)
    chosen = event_format(file) if format is None else format
    report = ReadReport(str(path))
    try:
        with file.open("rb"):
            report.bytes_total = file.stat().st_size
    except FileNotFoundError as error:
        raise EventError(str(path), None, "there is no such file") from error
    except OSError as error:
        raise EventError(str(path), None, f"cannot be read: {error.strerror or error}") from error
    if report.bytes_total == 0:
        batches: Iterator[EventBatch] = iter(())
    elif chosen == "arrow" or chosen == "parquet":
        batches = read_table(file, terms, report, format=chosen)
    elif chosen == "jelly":
        read = _jelly(path).read_jelly
        batches = read(file, terms, report, time_predicate=time_predicate, on_error=on_error)
    elif (messages := _messages(file, chosen, named=format is None)) is not None:
        batches = reading.read_message_file(
            file,
            terms,
            report,
            format=messages,
            time_predicate=time_predicate,
            on_error=on_error,
            contexts=contexts,
        )
    else:
        batches = read_quads(
            file, terms, report, format=cast(QuadFormat, chosen), time_predicate=time_predicate, on_error=on_error
        )
    return EventReader(batches, report)


def is_pipe(path: Path) -> bool:
    """Whether it can be read only once: a pipe, a socket, a terminal."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _open_pipe(pipe: Path, terms: TermDictionary, time_predicate: NamedNode, on_error: OnError) -> EventReader:
    """Raises EventError where its name says another format than N-Quads or TriG."""
    chosen = event_format(pipe) if pipe.suffix.lower() in ENDINGS else "nquads"
    if chosen not in ("nquads", "trig"):
        raise EventError(str(pipe), None, "a pipe holds N-Quads or TriG; write other formats to a file")
    report = ReadReport(str(pipe))
    read = read_quads(pipe, terms, report, format=chosen, time_predicate=time_predicate, on_error=on_error)
    return EventReader(read, report)


def _messages(file: Path, chosen: EventFormat, *, named: bool) -> MessageFormat | None:
    """The format of messages that the file is in, if any. `named`: decided by its name alone. Raises EventError
    for a file without named graphs that does not announce messages."""
    if chosen == "messages-ndjsonld" or (chosen in RDF_FORMATS and not named):
        return chosen
    with ByteSource(file) as source:
        try:
            announced = announces(source.read(HEAD) or b"")
        except DAMAGED:
            announced = False  # whether the reader has been warned
    if chosen in _ANNOUNCING:
        return _ANNOUNCING[chosen] if announced else None
    if not announced:
        ending = "".join(file.suffixes[-2:] if file.suffix.lower() == ".gz" else file.suffixes[-1:])
        raise EventError(
            str(file),
            None,
            f"{ending} files have no named graphs, hence no events, unless they are RDF "
            f'Messages: begin it with VERSION "{VERSION}" and end each event with MESSAGE, or use N-Quads '
            "(.nq) or TriG",
        )
    return cast(MessageFormat, chosen)


def _open_folder(folder: Path, terms: TermDictionary) -> EventReader:
    """Raises EventError where there is no event table."""
    if (lake := lake_log(folder)) is not None:
        raise EventError(str(folder), None, lake)
    tables = (p for p in folder.iterdir() if ENDINGS.get(p.suffix.lower()) in ("arrow", "parquet"))
    files = sorted(p for p in tables if p.is_file() and not is_hidden(p, folder))
    if not files:
        reason = "cannot be read: the folder holds no event table (.arrow, .parquet)"
        deeper = next((p for p in sorted(folder.glob("[!._]*/")) if p.is_dir()), None)
        if deeper is not None:
            reason += f"; folders in it, such as {deeper.name}, are not looked into: `oxiseq import` makes one of them"
        raise EventError(str(folder), None, reason)
    report = ReadReport(str(folder), sum(p.stat().st_size for p in files))
    for one, other in _equal(files):
        report.notes.append(f"{one.name} and {other.name} of {folder} are equal: their events count twice")

    def batches() -> Iterator[EventBatch]:
        for file in files:
            before = report.bytes_read
            reader = open_events(file, terms)
            for batch in reader:
                report.events += len(batch)
                report.quads += batch.triples
                report.bytes_read = before + reader.report.bytes_read
                yield batch

    return EventReader(batches(), report)


def _equal(files: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    """Files of equal content, each beside the first one: a folder that has been written twice."""
    seen: dict[int, list[Path]] = {}
    for file in files:
        others = seen.setdefault(file.stat().st_size, [])
        if same := next((other for other in others if cmp(other, file, shallow=False)), None):
            yield same, file
        else:
            others.append(file)


def write_events(
    batches: Iterable[EventBatch],
    terms: TermDictionary,
    path: str | Path,
    time_predicate: NamedNode = GENERATED_AT,
    format: EventFormat | None = None,
) -> int:
    """Write events to a file in the format of its name, or `format`; returns how many.

    The file appears (or is replaced) when all is written. Raises EventError for an unknown ending.
    """
    file = Path(path)
    chosen = event_format(file) if format is None else format
    if chosen == "arrow" or chosen == "parquet":
        return write_table(batches, terms, file, format=chosen)
    if chosen == "jelly":
        return int(_jelly(path).write_jelly(batches, terms, file, time_predicate=time_predicate))
    if chosen == "nquads" or chosen == "trig":
        return write_quads(batches, terms, file, format=chosen, time_predicate=time_predicate)
    return writing.write_messages(batches, terms, file, format=chosen, time_predicate=time_predicate)


def _jelly(path: str | Path) -> Any:
    """The module for Jelly. Raises EventError where pyjelly is not installed."""
    try:
        return import_module("oxiseq.engine.events.jelly")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("oxiseq"):
            raise
        reason = f"Jelly needs pyjelly, which is not installed ({error.name}): pip install 'oxiseq[jelly]'"
        raise EventError(str(path), None, reason) from error
