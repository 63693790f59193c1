"""A file that grows, as `tail -F` reads it, through rotation, truncation and restarts.

The position says which file was read how far, and what stands before that place: where it does not stand there any
more, the file was cut off and is another one. The file that was being read is looked for beside its path, by its inode
or, where it was copied and cut off, by what stands before the place; it is read to its end, then those that were
rotated after it, then the one at the path.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

from oxiseq.bridges import lines
from oxiseq.bridges.lines import LineCutter, is_quads
from oxiseq.bridges.source import BridgeError, BridgeSettings, Message, Source, SourcePosition, digest
from oxiseq.grammar.records import dataclass

LOG: Final = logging.getLogger("oxiseq.bridges")
_TAIL: Final = 256
"""Bytes before a place that are compared."""
_HEAD: Final = 1024
"""Bytes, at most, of a file's first line, by which files of one inode are told apart."""
_LIVES: Final = 256
"""Files that are remembered, so that one with the inode and the first line of an earlier one has other keys."""


@dataclass(frozen=True, slots=True)
class FileOffset:
    """`behind`: the bytes of the file with this `inode` that are confirmed; `length`, `tail`: number and digest of the
    last of them (0: not known). `life`: inode and first line, and how many files had these before; empty: no message
    of the file is known yet."""

    inode: int = 0
    behind: int = 0
    length: int = 0
    tail: str = ""
    life: str = ""

    def stands(self, file: BinaryIO) -> bool:
        """Whether the file holds what was read before this place."""
        size = os.fstat(file.fileno()).st_size
        if not self.length:
            last = os.pread(file.fileno(), 1, self.behind - 1) if self.behind else b"\n"
            return self.behind <= size + 1 and last in (b"\n", b"")
        data = os.pread(file.fileno(), self.length, self.behind - self.length)
        if len(data) == self.length - 1:  # its last line has no end
            data += b"\n"
        return digest(data) == self.tail


class FollowedFile(Source):
    """A file that grows, also before it exists and when another takes its name. A message's key is path, inode, offset
    and the file's first line; it says how often there was such a file before, too."""

    def __init__(self, settings: BridgeSettings, position: SourcePosition | None = None) -> None:
        super().__init__(settings, position)
        self._path = settings.followed or Path(settings.url)
        self._name, self._quads = self.identity(settings), is_quads(settings.media_type)
        self._file: BinaryIO | None = None
        self._cutter = LineCutter(0, self._quads)
        self._at, self._tail = 0, b""
        """How far the open file is read, and the last bytes before that."""
        self._came = time.monotonic()
        self._ahead: list[Message] = []
        self._begin = settings.start == "all"
        value = self._position.value
        self._former = not isinstance(value, dict)  # an earlier version may have stored what comes
        self._known, self._lives = self._read_position(value)
        self._inode, self._life = 0, ""

    def _read_position(self, value: Any) -> tuple[FileOffset | None, dict[str, int]]:
        try:
            if value is None or isinstance(value, list):
                return (FileOffset(int(value[0]), int(value[1])) if value else None), {}
            inode, behind, length = (int(value[name]) for name in _MEMBERS[:3])
            place = FileOffset(inode, behind, length, str(value["tail"]), str(value["life"]))
            return place, {str(name): int(count) for name, count in value["lives"]}
        except (ValueError, TypeError, IndexError, KeyError) as error:
            raise BridgeError(f"the position of {self._path} is none of a file: {error}") from error

    @classmethod
    def identity(cls, settings: BridgeSettings) -> str:
        """See Source."""
        return digest(os.fsencode(settings.followed or settings.url))

    # --- the source ---------------------------------------------------------------------------------

    def read(self, most: int, seconds: float) -> Sequence[Message]:
        """See Source."""
        deadline = time.monotonic() + seconds
        while not self._ahead:
            if not self._more() and time.monotonic() >= deadline:
                break
            if not self._ahead:
                time.sleep(0.05)
        found, self._ahead = self._ahead[:most], self._ahead[most:]
        return found

    def acknowledge(self, messages: Sequence[Message]) -> None:
        """See Source."""
        self._save(messages[-1].position)

    def _save(self, place: FileOffset) -> None:
        self._known = place
        lives = [*self._lives.items()][-_LIVES:]
        self._position.save({name: getattr(place, name) for name in _MEMBERS} | {"lives": lives})

    def close(self) -> None:
        """See Source."""
        if self._file is not None:
            self._file.close()

    # --- reading ------------------------------------------------------------------------------------

    def _more(self) -> bool:
        """Whether something was read."""
        if self._file is None and not self._opened():
            return False
        assert self._file is not None
        before = len(self._tail)
        data = os.pread(self._file.fileno(), before + lines.READ, self._at - before)
        if not data.startswith(self._tail):
            self._cut_off()
            return True
        if len(data) > before:
            self._came = time.monotonic()
            self._at += len(data) - before
            self._ahead += map(self._message, self._cutter.cut(data[before:]))
            self._tail = data[-_TAIL:]
            return True
        if time.monotonic() - self._came >= lines.SILENCE:
            self._ahead += map(self._message, self._cutter.complete())
            self._follow()
        return False

    def _message(self, cut: tuple[bytes, int]) -> Message:
        assert self._file is not None
        body, behind = cut
        inode = self._inode
        if not self._life:
            self._life = self._new_life(inode)
        last = (body[-_TAIL:] + b"\n")[-_TAIL:]
        place = FileOffset(inode, behind, len(last), digest(last), self._life)
        former = f"file/{self._name}/{inode}/{behind}" if self._former else ""
        return Message(body, f"file/{self._name}/{self._life}/{behind}", place, former_key=former)

    def _new_life(self, inode: int) -> str:
        """What tells this file from all others, the same again if nothing of it was confirmed."""
        assert self._file is not None
        first, end, _ = os.pread(self._file.fileno(), _HEAD, 0).partition(b"\n")
        name = f"{inode}/{digest(first + end)}"
        count = self._lives.pop(name, -1) + 1
        self._lives[name] = count
        return f"{name}/{count}" if count else name

    # --- which file ---------------------------------------------------------------------------------

    def _opened(self) -> bool:
        """Open the file that is to be read: the one that was being read, else the one at the path."""
        known = self._known
        if known is not None and (file := self._found(known)) is not None:
            self._go_on(file, known)
            return True
        try:
            if not stat.S_ISREG(self._path.stat().st_mode):
                raise BridgeError(f"{self._path} is no plain file: give - for a pipe, and redirect it: < {self._path}")
            file = self._path.open("rb")
        except FileNotFoundError:
            self._begin = True  # what appears is new
            return False
        found = os.fstat(file.fileno())
        if known is not None:
            LOG.warning("%s: the file that was read up to byte %d is gone, or cut off", self._path, known.behind)
            self._former = False
        start = 0 if self._begin or known is not None else _line_end(file, found.st_size)
        last = os.pread(file.fileno(), min(start, _TAIL), start - min(start, _TAIL))
        place = FileOffset(found.st_ino, start, len(last), digest(last) if last else "")
        self._go_on(file, place)
        self._save(place)
        return True

    def _go_on(self, file: BinaryIO, place: FileOffset) -> None:
        """Read `file` from a place on, which may be of the file that it is a copy of."""
        size = os.fstat(file.fileno()).st_size
        self._file, self._begin = file, True
        self._inode, self._life = place.inode, place.life
        self._at = min(place.behind, size)
        before = min(self._at, _TAIL)
        self._tail = os.pread(file.fileno(), before, self._at - before)
        self._cutter = LineCutter(self._at, self._quads)

    def _follow(self) -> None:
        """Go over to a file that has taken the name, once the open one is at its end."""
        assert self._file is not None
        here = os.fstat(self._file.fileno())
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return
        if os.path.samestat(here, there):
            return
        file = (self._rotated_after(here) or self._path).open("rb")
        self._end_line()
        self._begin_file(file)

    def _begin_file(self, file: BinaryIO) -> None:
        """Read another file, from its beginning."""
        assert self._file is not None
        self._file.close()
        place = FileOffset(os.fstat(file.fileno()).st_ino)
        self._go_on(file, place)
        self._former = False
        if not self._ahead:  # all that was before is confirmed
            self._save(place)

    def _cut_off(self) -> None:
        """The open file does not hold what was read of it: it was cut off. Its rest may be in a copy."""
        assert self._file is not None
        place = FileOffset(self._inode, self._at, len(self._tail), digest(self._tail), self._life)
        copy = self._copy(place)
        if copy is not None:
            self._file.close()
            self._file = copy
            return
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return
        self._end_line()
        self._begin_file(file)

    def _end_line(self) -> None:
        """A last line without an end will have none."""
        if self._cutter.rest:
            self._ahead += map(self._message, self._cutter.cut(b"\n"))
        self._ahead += map(self._message, self._cutter.complete())

    def _found(self, place: FileOffset) -> BinaryIO | None:
        """The file that was being read, wherever it is now; else a copy of it, if it was cut off."""
        paths = [path for path in (self._path, *self._beside()) if _inode(path) == place.inode]
        for path in paths:
            file = path.open("rb")
            if place.stands(file):
                return file
            file.close()
        return self._copy(place)

    def _copy(self, place: FileOffset) -> BinaryIO | None:
        """A file beside the path, named after it, that holds what was read and more."""
        for path in self._beside():
            if place.length and path.name.startswith(self._path.name) and _inode(path) != place.inode:
                file = path.open("rb")
                if os.fstat(file.fileno()).st_size > place.behind and place.stands(file):
                    return file
                file.close()
        return None

    def _rotated_after(self, ended: os.stat_result) -> Path | None:
        """The next of the files that were rotated after one: named as it but for numbers, and written to later."""
        beside = [(path, path.stat()) for path in self._beside()]
        names = [path.name for path, found in beside if os.path.samestat(found, ended)]
        if not names:
            return None
        alike = re.compile(r"\d+".join(map(re.escape, re.split(r"\d+", names[0]))))
        later = [
            (found.st_mtime_ns, path)
            for path, found in beside
            if alike.fullmatch(path.name) and path.name != self._path.name and found.st_mtime_ns > ended.st_mtime_ns
        ]
        return min(later)[1] if later else None

    def _beside(self) -> Iterator[Path]:
        """Files in the folder of the path, and of what it links to."""
        for folder in {self._path.parent, self._path.resolve().parent}:
            with os.scandir(folder) as entries:
                found = [Path(entry.path) for entry in entries if entry.is_file(follow_symlinks=False)]
            yield from (path for path in sorted(found) if path.name != self._path.name)


_MEMBERS: Final = ("inode", "behind", "length", "tail", "life")


def _inode(path: Path) -> int:
    try:
        found = path.stat()
    except OSError:
        return 0
    return found.st_ino if stat.S_ISREG(found.st_mode) else 0


def _line_end(file: BinaryIO, size: int) -> int:
    """The begin of the last line: behind the last end of one."""
    file.seek(max(0, size - lines.READ))
    tail = file.read()
    return size - (len(tail) - tail.rfind(b"\n") - 1) if b"\n" in tail else size
