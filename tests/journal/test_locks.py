"""A process that reads a journal and ends does not take the write-ahead log from the one that writes.

SQLite's locks are POSIX's: whoever opens the file besides SQLite and closes it again ends all locks of its process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from journal_events import STREAM, blob, read

from oxiseq.journal import Journal

READER = """
import sys
from oxiseq.journal import Journal
with Journal(sys.argv[1], read_only=True) as journal:
    print(journal.streams.all()[0].next)
"""


def test_what_was_written_after_another_process_has_read_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "journal.oxiseq"
    with Journal(path) as journal:
        journal.streams.create(STREAM)
        journal.log.append(STREAM, blob([1]))
        assert read(journal) == [(0, 1)]  # one more connection
        for number in range(1, 3):
            said = subprocess.run([sys.executable, "-c", READER, path], check=True, capture_output=True, text=True)
            assert int(said.stdout) == number
            assert path.with_name("journal.oxiseq-wal").exists()
            journal.log.append(STREAM, blob([number + 1]))
    with Journal(path, read_only=True) as again:
        assert read(again) == [(0, 1), (1, 2), (2, 3)]
