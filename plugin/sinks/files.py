"""Matches to files below the folder that the operator allows: JSON Lines, or a folder of Parquet files.

Each match is there once, whatever is killed. Of a file of lines the journal keeps how long it was when the last
delivery was confirmed: what a kill has left behind that is cut off, and written again. A Parquet file appears when it
is complete, named by its first match: one that is written again takes the place of the first.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from oxiseq.engine.extras import loaded, needed
from oxiseq.grammar.records import dataclass
from oxiseq.options import room
from oxiseq.sinks.allowed import Allowed, DeliveryError, SinkError
from oxiseq.sinks.delivery import Delivery, Json, plain
from oxiseq.sinks.settings import MOST, Receiver, SinkSettings, setting, template_setting, text, word

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
else:
    pa = needed("pyarrow")
    pq = needed("pyarrow.parquet")

_LINES: Final = "jsonl"
_PARQUET: Final = "parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class File(SinkSettings):
    """By default as many matches as there are are written together, Parquet after ten seconds."""

    kind: ClassVar[str] = "file"
    usual: ClassVar[Mapping[str, Any]] = {"batch": MOST}

    path: str = setting(
        text, ("The path of the file, below the folder that the operator allows; with parquet the path of a folder.")
    )
    format: str = setting(
        word(_LINES, _PARQUET),
        "jsonl: a file with an object on each line; parquet: a folder of files.",
        _LINES,
        schema={"enum": [_LINES, _PARQUET]},
    )
    template: Json = template_setting(
        "Of jsonl: a JSON value with places for the match, see webhook. Default: the JSON that live readers get, and "
        "the query's name."
    )

    def __post_init__(self) -> None:
        if self.format == _PARQUET and self.template is not None:
            raise SinkError("parquet has a column for each variable: it takes no template")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """See SinkSettings; the matches of a Parquet file are waited for."""
        gathered = {"every": "10s"} if given.get("format") == _PARQUET else {}
        return super(File, cls).of({**gathered, **given})  # noqa: UP008  # with slots the class is made twice

    @property
    def file(self) -> str:
        return os.path.normpath(self.path)

    def check(self, allowed: Allowed) -> None:
        allowed.file(self.path)
        if self.format == _PARQUET:
            loaded("pyarrow")

    def open(self, allowed: Allowed, place: str) -> Receiver:
        path = allowed.file(self.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        allowed.file(self.path)  # as it is now
        return _Parts(path) if self.format == _PARQUET else _Lines(path, self.template, place)


class _Lines:
    """Appends. Its place: the number of the file, and its length."""

    def __init__(self, path: Path, template: Json, place: str) -> None:
        self._path, self._template = path, template
        self._file = _opened(path)
        known = json.loads(place) if place else {}
        found = os.fstat(self._file)
        if known.get("file") == found.st_ino and 0 <= known.get("size", -1) < found.st_size:
            os.ftruncate(self._file, known["size"])  # what was not confirmed

    def deliver(self, delivery: Delivery) -> str:
        data = b"".join(item.json(self._template) + b"\n" for item in delivery.items())
        _check_room(self._path.parent, len(data))
        self._follow()
        before = os.fstat(self._file).st_size
        try:
            while data:
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, before)
            raise
        found = os.fstat(self._file)
        return json.dumps({"file": found.st_ino, "size": found.st_size})

    def _follow(self) -> None:
        """Begin a new file where somebody has moved the old one away, as logrotate does."""
        try:
            same = os.path.samestat(os.stat(self._path, follow_symlinks=False), os.fstat(self._file))
        except FileNotFoundError:
            same = False
        if not same:
            fresh = _opened(self._path)
            os.close(self._file)
            self._file = fresh

    def close(self) -> None:
        os.close(self._file)


def _opened(path: Path) -> int:
    """A plain file, to append to. Raises OSError, SinkError."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    file = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o644)  # a pipe would wait for a reader
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise SinkError(f"{path.name} is no plain file")
    return file


def _check_room(folder: Path, more: int) -> None:
    """Raises DeliveryError: the matches are in the journal, and wait for room."""
    if told := room.lacking(folder, more):
        raise DeliveryError(f"no room on the disk: {told}")


UNDER_WAY: Final = ".matches.part"
"""A file that is being written. Who reads the folder as one table leaves out names that begin with a dot; what a
kill leaves behind is removed by the next delivery."""


class _Parts:
    """A file for each delivery. Two sinks have no folder in common."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder

    def deliver(self, delivery: Delivery) -> str:
        matches = delivery.matches
        part = self._folder / UNDER_WAY
        part.unlink(missing_ok=True)  # of a kill, or a link that somebody has laid there
        table = table_of(delivery)
        _check_room(self._folder, table.nbytes)
        try:
            pq.write_table(table, part, compression="zstd")
            _flush(part)
            part.replace(self._folder / f"matches-{matches.first:016d}.parquet")
        finally:
            part.unlink(missing_ok=True)
        _flush(self._folder)
        return ""

    def close(self) -> None:
        """There is nothing open."""


def table_of(delivery: Delivery) -> pa.Table:
    """`id`, `at`, `end`, and the terms of each variable as text: columns have the same type in every file."""
    matches, moment = delivery.matches, pa.timestamp("us", tz="UTC")
    columns: dict[str, Any] = {
        "id": pa.array(range(matches.first, matches.last + 1), pa.int64()),
        "at": pa.array(matches.at, moment),
        "end": pa.array([matches.span(i)[1] for i in range(len(matches))], moment),
    }
    texts = [_text(term) for term in matches.terms]
    for i, variable in enumerate(matches.heading.variables):
        name = variable
        while name in columns:
            name += "_"
        columns[name] = pa.array([texts[code] for code in matches.codes[:, i].tolist()], pa.string())
    return pa.table(columns)


def _text(term: str | None) -> str | None:
    """A term's own text: numbers keep their digits."""
    if term is None:
        return None
    value = plain(term)
    if isinstance(value, str):
        return value
    return term[1 : term.rindex('"')]  # a number or truth: there is nothing to unescape in it


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
