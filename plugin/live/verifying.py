"""Looking a server's folder through: journal, checkpoints, store; and what becomes of what is damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, Literal

from oxiseq.engine.errors import KbError, OxiseqError, SnapshotVersionError
from oxiseq.grammar.languages import STANDING
from oxiseq.grammar.records import dataclass
from oxiseq.journal import FILE_NAME, Checkpoint, Journal, JournalError, LockedError, QueryRecord, VersionError
from oxiseq.journal.errors import journal_error
from oxiseq.journal.schema import lock, open_reader
from oxiseq.journal.wal import look, lost
from oxiseq.kb_loader import open_kb
from oxiseq.kb_loader.marker import STORE_FILE, holds_store
from oxiseq.live.answers import told_rows
from oxiseq.live.engine import Engine
from oxiseq.live.live_query import Budget
from oxiseq.live.reading import reason_of
from oxiseq.live.rebuilding import is_whole
from oxiseq.sources.knowledge import Kb, knowledge_of

Part = Literal["journal", "checkpoint", "store", "backup"]
_PAGE: Final = 10_000


@dataclass(frozen=True, slots=True)
class Fault:
    """Something damaged or missing, and what becomes of it."""

    part: Part
    what: str
    then: str


@dataclass(frozen=True, slots=True)
class Verified:
    """What a folder holds, a line each, and what is wrong with it."""

    holds: tuple[str, ...]
    faults: tuple[Fault, ...]


def verify(folder: Path, check: Callable[[], object] = lambda: None) -> Verified:
    """Look a folder through. `check` is called now and then. The server may be at work there: then its store is left
    alone, for only one process may open it."""
    holds: list[str] = []
    faults: list[Fault] = []
    in_use = _in_use(folder / FILE_NAME)
    kb: Kb = None
    for found, opened in _store(folder, in_use=in_use, check=check):
        kb = opened if opened is not None else kb
        _sort(found, holds, faults)
    for found in _journal(folder / FILE_NAME, kb, in_use=in_use):
        _sort(found, holds, faults)
    return Verified(tuple(holds), tuple(faults))


def _sort(found: str | Fault, holds: list[str], faults: list[Fault]) -> None:
    if isinstance(found, Fault):
        faults.append(found)
    else:
        holds.append(found)


def _in_use(path: Path) -> bool:
    """Whether a process writes to the journal."""
    if not path.with_name(f"{path.name}.lock").exists():
        return False
    try:
        lock(path).close()
    except LockedError:
        return True
    except JournalError:
        return False
    return False


# --- the store -----------------------------------------------------------------------------------------


def _store(folder: Path, *, in_use: bool, check: Callable[[], object]) -> Iterator[tuple[str | Fault, Kb]]:
    again = "load it again, or restore the folder: the journal does not have its triples"
    if not holds_store(folder):
        if any(folder.glob("*.sst")) or any(folder.glob("MANIFEST-*")):
            yield Fault("store", f"the file {STORE_FILE} is missing", again), None
        else:
            yield "store: none here", None
        return
    if in_use:
        yield "store: in use by a server, not checked", None
        return
    count = 0
    try:
        store = open_kb(folder)
        for _ in store.quads_for_pattern(None, None, None):
            count += 1
            if count % _PAGE == 0:
                check()
        yield f"store: {count:,} triples", store
    except (KbError, OSError, RuntimeError) as error:
        yield Fault("store", f"cannot be read behind {count:,} triples: {error}" if count else str(error), again), None


# --- the journal ---------------------------------------------------------------------------------------


def _journal(path: Path, kb: Kb, *, in_use: bool) -> Iterator[str | Fault]:
    anew = "restore a backup into another folder (`oxiseq restore`)"
    if not path.is_file():
        yield Fault("journal", f"{path.name} is missing", f"a server would begin with an empty one: {anew}")
        return
    try:
        before = look(path)
        with closing(open_reader(path)) as connection:
            said = "" if in_use else lost(before, connection)
        if said:
            yield Fault("journal", said, "events that clients pushed last must be pushed again, or they are lost")
        with Journal(path, read_only=True) as journal:
            yield from _whole(journal, anew)
            yield from _checkpoints(journal, kb)
    except VersionError as error:
        yield Fault("journal", str(error), "nothing is damaged: open it with the version of oxiseq that it needs")
    except (JournalError, OSError, UnicodeDecodeError) as error:  # SQLite's message may cite what is damaged
        yield Fault("journal", str(error), anew)
    except sqlite3.Error as error:
        yield Fault("journal", str(journal_error(error, path)), anew)


def _whole(journal: Journal, anew: str) -> Iterator[str | Fault]:
    faults = journal.verify()
    for fault in faults:
        yield Fault("journal", fault, _then(fault) or anew)
    if not any(fault.startswith("SQLite") for fault in faults):
        streams, queries = journal.streams.all(), journal.queries.all()
        yield (
            f"journal: {sum(each.next - each.first for each in streams):,} events of {len(streams):,} streams, "
            f"{sum(each.next - each.first for each in queries):,} matches of {len(queries):,} queries"
        )


def _then(fault: str) -> str:
    """What a server does about a fault, as verify.py words it; empty: nothing."""
    if fault.endswith(" is not what was stored"):
        return "look at it and store it again"
    if fault.endswith(" are not what was stored"):
        return "look at them and store them again"
    if fault.endswith(" are not what was registered"):
        return "look at them and register it again"
    if fault.startswith("stream <"):
        return "these events are lost: queries skip them and report it; push them again under another key"
    if fault.startswith("query "):
        return "these matches are lost: readers are notified and continue after them"
    if fault.startswith("checkpoint "):
        return "its query is rebuilt from the log"
    return ""


def _checkpoints(journal: Journal, kb: Kb) -> Iterator[str | Fault]:
    """Each is tried: whether its query can continue from it."""
    engine = Engine(knowledge_of(kb), Budget(None, None, "fail"))
    tried = 0
    for record in journal.queries.all():
        if record.state != "running":
            continue
        if record.language == STANDING:
            try:
                told_rows(journal, record.name)
            except JournalError as error:
                yield _damaged(record, str(error), "its query is evaluated again, readers start from the new answer")
        else:
            checkpoint = journal.checkpoints.latest(record.name)
            yield from _checkpoint(journal, engine, record, checkpoint)
        tried += 1
    yield f"checkpoints: of {tried:,} queries"


def _checkpoint(
    journal: Journal, engine: Engine, record: QueryRecord, checkpoint: Checkpoint | None
) -> Iterator[str | Fault]:
    try:
        query = engine.compile(record.name, record.text, record.language, record.options)
    except OxiseqError as error:
        yield _damaged(record, str(error), "the query fails at the start: register it again")
        return
    if checkpoint is None or not checkpoint.state:
        return
    try:
        engine.restore(query, checkpoint.state)
    except Exception as error:  # a damaged one may lead to any
        whole = is_whole(journal, record, query)
        if whole and isinstance(error, SnapshotVersionError):  # after an upgrade: nothing is lost
            yield f"checkpoint of {record.name!r}: {error}; its state is rebuilt from the log"
            return
        yield _damaged(
            record,
            reason_of(error),
            "its state is rebuilt from the log, which has all events that it has seen"
            if whole
            else "its state is rebuilt from the events that the log still has: a match may be missing or come twice",
        )


def _damaged(record: QueryRecord, what: str, then: str) -> Fault:
    return Fault("checkpoint", f"of {record.name!r}: {what}", then)
