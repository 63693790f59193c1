"""Killed behind each statement of SQLite and each operation on files, of a commit, a checkpoint, a migration, a backup
and a restore: what is there is what was before or what was to come, and what is done again leads there."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from journal_events import STREAM, blob, found, read
from profiles import in_the_gate

from oxiseq.cli.backing import back_up_into, restored
from oxiseq.journal import FILE_NAME, Checkpoint, Journal, schema
from oxiseq.journal.archive import check_archive

_FILES: Final = ("open", "os.remove", "os.rename", "os.truncate", "os.mkdir", "os.fsync")
_KILLED, _DONE = 9, 0
Work = Callable[[Path], object]


def killed_at(step: int, work: Work, folder: Path) -> bool:
    """Have a child do the work and kill it behind so many steps; False where it comes to its end before that."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == _KILLED
    try:
        _die_at(step)
        work(folder)
    finally:
        os._exit(_DONE)
    return False


def _die_at(step: int) -> None:
    """Count steps from now on."""
    left, connect, fsync = [step], schema.connect, os.fsync

    def count() -> None:
        left[0] -= 1
        if left[0] < 0:
            os._exit(_KILLED)  # as SIGKILL: the system still has what was written

    def traced(*given: object, **named: object) -> sqlite3.Connection:
        made = connect(*given, **named)  # type: ignore[arg-type]
        made.set_trace_callback(lambda statement: count())
        return made

    def flushed(number: int) -> None:
        count()
        fsync(number)

    for module in [module for name, module in sys.modules.items() if name.startswith("oxiseq.journal")]:
        if getattr(module, "connect", None) is connect:
            setattr(module, "connect", traced)  # noqa: B010  whatever module it is
    os.fsync = flushed
    sys.addaudithook(lambda event, given: count() if event in _FILES else None)


def at_each_step(work: Work, folder: Path, tmp_path: Path, check: Callable[[Path], None]) -> int:
    """Kill the work on a copy of a folder, behind its first step, its second and so on; how many it has."""
    step = 0
    while True:
        copy = tmp_path / f"step-{step}"
        shutil.copytree(folder, copy)
        killed = killed_at(step, work, copy)
        check(copy)
        shutil.rmtree(copy)
        if not killed:
            return step
        step += 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """That of a journal with a batch, two matches and a checkpoint."""
    made = tmp_path / "data"
    made.mkdir()
    with Journal(made / FILE_NAME) as journal:
        journal.streams.create(STREAM)
        journal.queries.register("q", "text", options={"max_state_records": 3})
        journal.log.append(STREAM, blob([1, 2, 3]), "first")
        journal.checkpoints.commit(Checkpoint("q", b"one", {STREAM: 3}, {"q": 2}), found("q", 1, [1, 2]))
    return made


def sound(folder: Path) -> Journal:
    """The journal, opened again; it and all in it is in order."""
    journal = Journal(folder / FILE_NAME)
    assert journal.verify() == [] and not journal.lost
    return journal


def test_a_commit(folder: Path, tmp_path: Path) -> None:
    def work(copy: Path) -> None:
        with Journal(copy / FILE_NAME) as journal:
            journal.log.append(STREAM, blob([4, 5]), "second", advance=6)

    seen = set[int]()

    def check(copy: Path) -> None:
        with sound(copy) as journal:
            seen.add(len(read(journal)))
            again = journal.log.append(STREAM, blob([4, 5]), "second", advance=6)
            assert (again.first, again.count) == (3, 2) and len(read(journal)) == 5

    assert at_each_step(work, folder, tmp_path, check) > 10
    assert seen == {3, 5}


def test_a_checkpoint(folder: Path, tmp_path: Path) -> None:
    made = Checkpoint("q", b"two" * 20_000, {STREAM: 3}, {"q": 4})

    def work(copy: Path) -> None:
        with Journal(copy / FILE_NAME) as journal:
            journal.checkpoints.commit(made, found("q", 3, [3, 4]))

    seen = set[tuple[bytes, int, int]]()

    def check(copy: Path) -> None:
        with sound(copy) as journal:
            latest = journal.checkpoints.latest("q")
            assert latest is not None
            seen.add((latest.state, latest.matches["q"], journal.matches.last("q")))
            journal.checkpoints.commit(made, found("q", 3, [3, 4]))
            assert journal.matches.last("q") == 4

    assert at_each_step(work, folder, tmp_path, check) > 10
    assert seen == {(b"one", 2, 2), (made.state, 4, 4)}


@pytest.mark.parametrize("version", [7, 8])
def test_a_migration(folder: Path, tmp_path: Path, version: int) -> None:
    with closing(sqlite3.connect(folder / FILE_NAME)) as old:
        old.execute("""UPDATE query SET options = '{"state_records": 3}'""")
        for table in ("query", "sink", "stream") if version == 7 else ():
            old.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
        if version == 7:
            old.execute("ALTER TABLE query DROP COLUMN omitted")
        else:
            old.create_function("checksum", -1, schema._checksum)
            old.execute(f"UPDATE query SET checksum = {schema.CHECKSUMS['query']}")
        old.execute(f"PRAGMA user_version = {version}")
        old.commit()

    def work(copy: Path) -> None:
        Journal(copy / FILE_NAME).close()

    seen = set[int]()

    def check(copy: Path) -> None:
        with closing(sqlite3.connect(copy / FILE_NAME)) as plain:
            seen.add(plain.execute("PRAGMA user_version").fetchone()[0])
        with sound(copy) as journal:
            assert dict(journal.queries.get("q").options) == {"max_state_records": 3}
            assert len(read(journal)) == 3 and journal.matches.last("q") == 2

    assert at_each_step(work, folder, tmp_path, check) > 10
    assert seen == {version, schema.VERSION}


@pytest.mark.slow
@pytest.mark.parametrize("full", in_the_gate([False], [True, False]))
def test_a_backup(folder: Path, tmp_path: Path, full: bool) -> None:
    """A full one, and what is new since that."""
    backups = folder / "backups"
    if not full:
        back_up_into(folder, backups, full=False)
        with Journal(folder / FILE_NAME) as journal:
            journal.log.append(STREAM, blob([4, 5]), "second")

    def work(copy: Path) -> None:
        back_up_into(copy, copy / "backups", full=full)

    seen = set[int]()

    def check(copy: Path) -> None:
        files = sorted((copy / "backups").glob("*.oxiseq"))
        seen.add(len(files))
        for file in files:
            check_archive(file)
        sound(copy).close()
        back_up_into(copy, copy / "backups", full=False)
        into = copy / "restored"
        restored([copy / "backups"], into)
        with sound(into) as journal:
            assert len(read(journal)) == (3 if full else 5) and journal.matches.last("q") == 2

    assert at_each_step(work, folder, tmp_path, check) > 20
    assert seen == ({0, 1} if full else {1, 2})


@pytest.mark.slow
def test_a_restore(folder: Path, tmp_path: Path) -> None:
    back_up_into(folder, folder / "backups", full=True)
    with Journal(folder / FILE_NAME) as journal:
        journal.log.append(STREAM, blob([4, 5]), "second")
    back_up_into(folder, folder / "backups", full=False)

    def work(copy: Path) -> None:
        restored([copy / "backups"], copy / "restored")

    seen = set[bool]()

    def check(copy: Path) -> None:
        into = copy / "restored"
        seen.add(there := (into / FILE_NAME).exists())
        if not there:
            restored([copy / "backups"], into)
        with sound(into) as journal:
            assert len(read(journal)) == 5 and journal.matches.last("q") == 2

    assert at_each_step(work, folder, tmp_path, check) > 20
    assert seen == {False, True}
