"""`oxiseq backup` and `oxiseq restore`: folders, pipes, what is wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from oxiseq.cli.app import main
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import FILE_NAME, Journal, pack_events
from oxiseq.journal.schema import lock

S = "http://e/s"


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def journal(data: Path) -> Iterator[Journal]:
    """That of a server at work."""
    with Journal(data / FILE_NAME, "normal") as opened:
        opened.streams.create(S)
        yield opened


def push(journal: Journal, count: int = 1) -> None:
    for _ in range(count):
        terms = TermDictionary()
        batch = encode_events([(1, "<http://e/a> <http://e/b> 1 .")], terms)
        journal.log.append(S, pack_events(batch, terms))


def events(folder: Path) -> int:
    with Journal(folder / FILE_NAME, read_only=True) as journal:
        return journal.streams.get(S).next


def test_a_folder_of_backups_grows_by_what_is_new(journal: Journal, data: Path, tmp_path: Path) -> None:
    backups = tmp_path / "backups"
    for number in range(3):
        push(journal, 2)
        made = run("backup", "--location", data, f"{backups}/" if number == 0 else backups)
        assert made.exit_code == 0, made.output
    assert run("backup", "--location", data, backups, "--full").exit_code == 0
    push(journal)
    assert run("backup", "--location", data, backups).exit_code == 0
    names = ["0001-00000", "0001-00001", "0001-00002", "0002-00000", "0002-00001"]
    assert sorted(path.stem for path in backups.glob("*.oxiseq")) == names
    for line in (backups / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((backups / name).read_bytes()).hexdigest() == digest

    made = run("restore", backups, "--location", tmp_path / "new")
    assert made.exit_code == 0, made.output
    assert f"<{S}>: push again from offset 7" in made.stderr
    assert "restored from 0002-00000.oxiseq, 0002-00001.oxiseq" in made.stderr
    assert events(tmp_path / "new") == 7
    first = [backups / f"0001-0000{number}.oxiseq" for number in range(2)]
    assert run("restore", *first, "--location", tmp_path / "old").exit_code == 0
    assert events(tmp_path / "old") == 4


def test_what_is_not_as_it_was_written_is_refused(journal: Journal, data: Path, tmp_path: Path) -> None:
    backups = tmp_path / "backups"
    for _ in range(3):
        push(journal)
        run("backup", "--location", data, f"{backups}/")
    middle = backups / "0001-00001.oxiseq"
    whole = middle.read_bytes()
    middle.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    made = run("restore", backups, "--location", tmp_path / "new")
    assert (made.exit_code, "its sum is not that in SHA256SUMS" in made.stderr) == (1, True)
    middle.unlink()
    made = run("restore", backups, "--location", tmp_path / "new")
    assert (made.exit_code, "0001-00001.oxiseq is missing" in made.stderr) == (1, True)
    assert not (tmp_path / "new" / FILE_NAME).exists()
    made = run("restore", tmp_path, "--location", tmp_path / "new")
    assert (made.exit_code, "holds no backup" in made.stderr) == (1, True)
    middle.write_bytes(whole)
    assert run("restore", backups, "--location", data).exit_code == 1  # there is a journal already
    assert run("restore", backups, "--location", tmp_path / "new").exit_code == 0


def test_a_journal_of_another_past_gets_a_chain_of_its_own(journal: Journal, data: Path, tmp_path: Path) -> None:
    backups = tmp_path / "backups"
    push(journal, 3)
    run("backup", "--location", data, f"{backups}/")
    (tmp_path / "other").mkdir()
    with Journal(tmp_path / "other" / FILE_NAME, "normal") as other:
        other.streams.create(S)
        push(other)
        made = run("backup", "--location", tmp_path / "other", backups)
        assert made.exit_code == 0
        assert "note: a full copy: " in made.stderr
        assert (backups / "0002-00000.oxiseq").exists()


def test_two_backups_at_once_are_refused(journal: Journal, data: Path, tmp_path: Path) -> None:
    backups = tmp_path / "backups"
    run("backup", "--location", data, f"{backups}/")
    held = lock(backups / "SHA256SUMS")
    try:
        made = run("backup", "--location", data, backups)
        assert (made.exit_code, "another process" in made.stderr) == (1, True)
    finally:
        held.close()
    assert run("backup", "--location", data, backups).exit_code == 0


def test_a_pipe_gets_what_is_new_since_the_mark(journal: Journal, data: Path, tmp_path: Path) -> None:
    mark, files = tmp_path / "mark", []
    for number in range(3):
        push(journal, 2)
        made = run("backup", "--location", data, "--since", mark, "-")
        assert made.exit_code == 0, made.stderr
        files.append(tmp_path / f"{number}")
        files[-1].write_bytes(made.stdout_bytes)
    push(journal, 2)
    assert run("backup", "--location", data, "--since", mark, tmp_path / "3").exit_code == 0
    assert run("restore", *files, tmp_path / "3", "--location", tmp_path / "new").exit_code == 0
    assert events(tmp_path / "new") == 8
    mark.write_text("nonsense")
    made = run("backup", "--location", data, "--since", mark, "-")
    assert (made.exit_code, made.stdout_bytes) == (1, b"")
    assert "the mark of a backup cannot be read" in made.stderr


def test_options_that_do_not_go_together_are_refused(journal: Journal, data: Path, tmp_path: Path) -> None:
    assert run("backup", "--location", data, "--since", tmp_path / "m", f"{tmp_path}/").exit_code == 2
    assert run("backup", "--location", data, "--full", tmp_path / "file").exit_code == 2


def test_verify_reads_every_byte_of_backups(journal: Journal, data: Path, tmp_path: Path) -> None:
    backups = tmp_path / "backups"
    for _ in range(4):
        push(journal)
        run("backup", "--location", data, f"{backups}/")
    made = run("verify", backups)
    assert (made.exit_code, made.stdout.count(" bytes\n")) == (0, 4)
    (backups / "SHA256SUMS").unlink()  # each archive knows it by itself
    last = backups / "0001-00003.oxiseq"
    whole = last.read_bytes()
    for place in range(0, len(whole), len(whole) // 12):
        last.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        for target in (backups, last):
            made = run("verify", target)
            assert (made.exit_code, f"damaged backup: {last}: is damaged" in made.stdout) == (1, True), place
    last.write_bytes(whole)
    (backups / "0001-00001.oxiseq").unlink()
    made = run("verify", backups)
    assert (made.exit_code, "0001-00001.oxiseq is missing" in made.stdout) == (1, True)


def test_a_backup_of_an_older_version_is_restored_with_a_note(journal: Journal, data: Path, tmp_path: Path) -> None:
    push(journal, 2)
    older = tmp_path / "older.oxiseq"
    journal.backup(older)  # all that a backup was
    for made in (run("restore", older, "--location", tmp_path / "new"), run("verify", older)):
        assert made.exit_code == 0
        assert "of an older version, which wrote no checksum" in made.output
    assert events(tmp_path / "new") == 2
    older.write_bytes(older.read_bytes()[:-4096])
    assert run("restore", older, "--location", tmp_path / "other").exit_code == 1
    assert not (tmp_path / "other").exists()
    assert run("verify", older).exit_code == 1


def test_a_backup_onto_the_journal_itself_is_refused(journal: Journal, data: Path, tmp_path: Path) -> None:
    push(journal)
    (tmp_path / "link").symlink_to(data)
    whole = (data / FILE_NAME).read_bytes()
    for target in (data / FILE_NAME, tmp_path / "link" / FILE_NAME, data / f"{FILE_NAME}-wal"):
        for words in ((target,), ("--since", tmp_path / "mark", target), ("--since", target, tmp_path / "file")):
            made = run("backup", "--location", data, *words)
            assert (made.exit_code, "is the journal itself" in made.stderr) == (1, True), made.output
    assert (data / FILE_NAME).read_bytes() == whole
    assert not (tmp_path / "file").exists()
