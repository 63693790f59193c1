"""The work of `oxiseq verify` on backups; that on a server's folder is `live.verifying`'s."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from oxiseq.cli.backing import NAME, UNCHECKED, check_sum, newest_chain, parts_of, sums_of
from oxiseq.journal import FILE_NAME, JournalError
from oxiseq.journal.archive import check_archive, is_archive
from oxiseq.journal.increments import is_increment
from oxiseq.journal.restoring import check_whole
from oxiseq.live.verifying import Fault, Verified


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
