"""The work of `oxiseq backup`, `restore` and, of backups, `verify`.

A folder of backups holds chains: `0001-00000.oxiseq` is a full copy, `0001-00001.oxiseq` what was new after it, and so
on; `0002-00000.oxiseq` begins the next chain. `SHA256SUMS` is as `sha256sum -c` reads it.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from oxiseq.engine.events.write import replacing
from oxiseq.journal import FILE_NAME, ConflictError, DamagedError, Journal, JournalError
from oxiseq.journal.archive import check_archive, is_archive
from oxiseq.journal.increments import Mark, is_increment, mark_from, mark_of, write_full, write_increment
from oxiseq.journal.journal import flush
from oxiseq.journal.restoring import check_whole, restore
from oxiseq.journal.schema import lock
from oxiseq.live.verifying import Fault, Verified
from oxiseq.options.room import overlap

SUMS: Final = "SHA256SUMS"
NAME: Final = re.compile(r"(\d{4,})-(\d{5,})\.oxiseq")
STDOUT: Final = "-"
UNCHECKED: Final = "of an older version, which wrote no checksum: a byte of it may have changed unnoticed"


def back_up(location: Path, file: Path) -> int:
    """Copy the journal of a folder to an archive; its size in bytes. Raises JournalError, OSError."""
    _check_target(location, file)
    with replacing(file) as part:
        _full(location, part)
        flush(part)
    flush(file.absolute().parent)
    return file.stat().st_size


def back_up_since(location: Path, mark: Path | None, target: Path) -> int:
    """Write what is new since the backup whose mark is kept in a file, all if there is no such file, to a file or `-`,
    stdout; then note the new mark. Its size in bytes. Raises JournalError, OSError."""
    for each in (target, mark):
        if each is not None:
            _check_target(location, each)
    since = mark_from(mark.read_text("utf-8")) if mark is not None and mark.exists() else None
    if str(target) != STDOUT:
        with replacing(target) as part:
            until = _written(location, since, part)
            flush(part)
        size = target.stat().st_size
    else:
        with tempfile.TemporaryDirectory(prefix="oxiseq-backup-") as folder:
            part = Path(folder) / "part"
            until = _written(location, since, part)
            size = part.stat().st_size
            with part.open("rb") as source:
                shutil.copyfileobj(source, sys.stdout.buffer, 1 << 20)
            sys.stdout.buffer.flush()  # who reads the pipe is still there
    if mark is not None:
        with replacing(mark) as part:
            part.write_text(until.to_json() + "\n", "utf-8")
    return size


def back_up_into(location: Path, folder: Path, *, full: bool) -> tuple[Path, str]:
    """Write the next file of a folder of backups: what is new, or a full copy where that is wanted or needs to be. The
    file, and why it is a full copy if nobody wanted that. Raises LockedError while another one is written there;
    JournalError, OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    with closing(lock(folder / SUMS)):
        chain = newest_chain(folder)
        why = ""
        if chain and not full:
            try:
                return _added(location, folder, chain), ""
            except (ConflictError, DamagedError) as error:
                why = str(error)
        number = int(parts_of(chain[-1])[0]) + 1 if chain else 1
        target = folder / f"{number:04}-{0:05}.oxiseq"
        with _summed(target) as part:
            _full(location, part)
        return target, why


def newest_chain(folder: Path) -> list[Path]:
    """The last full copy in a folder and what follows it."""
    chains: dict[int, dict[int, Path]] = {}
    for path in folder.iterdir():
        if NAME.fullmatch(path.name):
            chain, number = parts_of(path)
            chains.setdefault(chain, {})[number] = path
    last = chains[max(chains)] if chains else {}
    return [last[number] for number in sorted(last)]


def restored(backups: Sequence[Path], location: Path) -> tuple[Sequence[Path], list[Path]]:
    """Restore from files in order, or from the newest chain of a folder, whose sums are compared: the files, and those
    of them that were compared with no checksum: older backups outside of a folder. Raises JournalError, OSError."""
    unchecked = []
    if len(backups) == 1 and backups[0].is_dir():
        (folder,) = backups
        backups = newest_chain(folder)
        if not backups:
            raise JournalError(f"{folder}: holds no backup, as 0001-00000.oxiseq")
        missing = [number for number, path in enumerate(backups) if parts_of(path)[1] != number]
        if missing:
            raise JournalError(f"{folder}: {parts_of(backups[0])[0]:04}-{missing[0]:05}.oxiseq is missing")
        sums = sums_of(folder)
        for path in backups:
            check_sum(path, sums)
    else:
        unchecked = [path for path in backups if not is_archive(path)]
    restore(backups, location)
    return backups, unchecked


def check_sum(path: Path, sums: Mapping[str, str]) -> None:
    """Raises DamagedError."""
    if sums.get(path.name) != _sum(path):
        raise DamagedError(f"{path}: is not what was written: its sum is not that in {SUMS}")


def _added(location: Path, folder: Path, chain: list[Path]) -> Path:
    number, last = parts_of(chain[-1])
    target = folder / f"{number:04}-{last + 1:05}.oxiseq"
    with _summed(target) as part:
        write_increment(location / FILE_NAME, mark_of(chain[-1]), part)
    return target


def _written(location: Path, since: Mark | None, part: Path) -> Mark:
    if since is not None:
        return write_increment(location / FILE_NAME, since, part)
    return _full(location, part)


def _check_target(location: Path, target: Path) -> None:
    """Raises JournalError for a file of the journal that is to be copied."""
    for name in (FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm", f"{FILE_NAME}.lock"):
        if overlap(target, location / name):
            raise JournalError(f"{target}: is the journal itself: name another file")


def _full(location: Path, part: Path) -> Mark:
    with Journal(location / FILE_NAME, read_only=True) as journal:
        return write_full(journal, part)


@contextmanager
def _summed(target: Path) -> Iterator[Path]:
    """A name to write to; the sum is there before the file is."""
    with replacing(target) as part:
        yield part
        flush(part)
        with (target.parent / SUMS).open("a", encoding="utf-8") as sums:
            sums.write(f"{_sum(part)}  {target.name}\n")


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sums_of(folder: Path) -> dict[str, str]:
    """Name → sum; the last line of a name counts."""
    try:
        lines = (folder / SUMS).read_text("utf-8").splitlines()
    except FileNotFoundError:
        return {}
    return {name.strip(): digest for digest, _, name in (line.partition(" ") for line in lines)}


def parts_of(path: Path) -> tuple[int, int]:
    """The numbers of a chain and within it, of a file in a folder of backups."""
    found = NAME.fullmatch(path.name)
    assert found is not None
    return int(found[1]), int(found[2])


# --- verify ----------------------------------------------------------------------------------------------


def is_backup(target: Path) -> bool:
    """Whether it is a file, or a folder with backups and no journal."""
    return target.is_file() or (not (target / FILE_NAME).exists() and bool(newest_chain(target)))


def verified(target: Path) -> Verified:
    """Read every byte of a backup, or of all in a folder, and compare it with what was written. Raises OSError."""
    files = [target] if target.is_file() else sorted(path for path in target.iterdir() if NAME.fullmatch(path.name))
    sums = {} if target.is_file() else sums_of(target)
    holds: list[str] = []
    faults = [] if target.is_file() else list(_gaps(files))
    for path in files:
        try:
            if path.name in sums:
                check_sum(path, sums)
            check = check_archive if is_archive(path) else _check_older
            check(path)
            size, unchecked = path.stat().st_size, not is_archive(path) and path.name not in sums
            holds.append(f"{path.name}: {size:,} bytes" + (f", {UNCHECKED}" if unchecked else ""))
        except JournalError as error:
            faults.append(Fault("backup", str(error), "it, and what follows it in its chain, cannot be restored"))
    return Verified(tuple(holds), tuple(faults))


def _check_older(path: Path) -> None:
    """An SQLite file by itself: what that and a journal know of themselves. Raises JournalError."""
    if not is_increment(path):
        check_whole(path, path)


def _gaps(files: Sequence[Path]) -> Iterator[Fault]:
    """The files that are missing between those of a folder."""
    following = (0, 0)
    for path in files:
        chain, number = parts_of(path)
        expected = following[1] if chain == following[0] else 0
        if number != expected:
            missing = f"{chain:04}-{expected:05}.oxiseq is missing"
            yield Fault("backup", missing, "what follows it in its chain cannot be restored")
        following = (chain, number + 1)
