"""The embedded file beside the store: what must outlive the process.

    events ─▶ log (stable offsets) ─▶ queries ─▶ matches (durable ids)
                     └──────── checkpoints: state, offsets and matches in one transaction ────────┘

`Journal` is the face; each part of it has a file of its own here. checkpoints.py states the contract by which a restart
neither loses nor repeats a match.
"""

from oxiseq.journal.appending import Appended, Appends, Session
from oxiseq.journal.checkpoints import Checkpoint
from oxiseq.journal.entry import Entry
from oxiseq.journal.errors import (
    ConflictError,
    CursorError,
    DamagedBatchError,
    DamagedError,
    FullError,
    JournalError,
    LockedError,
    UnknownError,
    VersionError,
)
from oxiseq.journal.events import pack_events, unpack_events
from oxiseq.journal.journal import FILE_NAME, Journal
from oxiseq.journal.log import Appending, Logged
from oxiseq.journal.matches import Found
from oxiseq.journal.quarantine import QuarantineCount, Quarantined
from oxiseq.journal.queries import QueryRecord
from oxiseq.journal.retention import Retention
from oxiseq.journal.rows import Heading, StoredMatches, join_matches, pack_block, pack_matches, unpack_matches
from oxiseq.journal.schema import Durability
from oxiseq.journal.sinks import SinkRow
from oxiseq.journal.sources import LogSource
from oxiseq.journal.streams import StreamRecord

__all__ = [
    "FILE_NAME",
    "Appended",
    "Appending",
    "Appends",
    "Checkpoint",
    "ConflictError",
    "CursorError",
    "DamagedBatchError",
    "DamagedError",
    "Durability",
    "Entry",
    "Found",
    "FullError",
    "Heading",
    "Journal",
    "JournalError",
    "LockedError",
    "LogSource",
    "Logged",
    "QuarantineCount",
    "Quarantined",
    "QueryRecord",
    "Retention",
    "Session",
    "SinkRow",
    "StoredMatches",
    "StreamRecord",
    "UnknownError",
    "VersionError",
    "join_matches",
    "pack_block",
    "pack_events",
    "pack_matches",
    "unpack_events",
    "unpack_matches",
]
