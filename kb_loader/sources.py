"""What is to be loaded: files, folders and globs as a list of sources, each with its format and compression."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import re
import zlib
from collections.abc import Callable, Collection, Iterable
from glob import glob, has_magic
from pathlib import Path
from typing import IO, Any, TypeAlias, cast
from urllib.parse import quote

from pyoxigraph import RdfFormat

from oxiseq.engine.errors import KbError
from oxiseq.engine.folders import is_hidden, lake_log, partitions
from oxiseq.engine.zstd import ZstdError, open_zstd
from oxiseq.grammar.byte_order import MARK
from oxiseq.grammar.records import dataclass
from oxiseq.kb_loader.coded import CodedText, coded_size, is_coded
from oxiseq.kb_loader.frames import Frame

RDF_ENDINGS = {
    ".nq": RdfFormat.N_QUADS,
    ".trig": RdfFormat.TRIG,
    ".nt": RdfFormat.N_TRIPLES,
    ".ttl": RdfFormat.TURTLE,
    ".n3": RdfFormat.N3,
    ".rdf": RdfFormat.RDF_XML,
    ".owl": RdfFormat.RDF_XML,
    ".xml": RdfFormat.RDF_XML,
    ".jsonld": RdfFormat.JSON_LD,
}
TABLE_ENDINGS = (".csv", ".tsv", ".parquet", ".json", ".jsonl", ".ndjson")
LINE_FORMATS = (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS)
BROKEN = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, ZstdError)
"""What reading raises of a file that is cut off or not what its ending says."""
"""The byte order mark that some programs begin UTF-8 with."""
_OPENERS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": open_zstd,
}


Partitions: TypeAlias = tuple[tuple[str, str | None], ...]
PARTS = "oxiseq-parts.json"
"""Marks a folder that holds the parts of a load: see staging.py."""
CODED = "coded"
"""The packing of a folder of coded statements: see coded.py."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file: RDF in `format`, or a table (`format` None) of the kind `ending` says; `packing` is "" or ".gz"...
    `partitions`: a table's columns and their values by the names of its folders. `batch`: of what is appended.
    `name`: of what is no file of this machine, which `path` does not lead to; `frame`: a table that is no file at all
    (see frames.py)."""

    path: Path
    format: RdfFormat | None
    ending: str
    packing: str
    partitions: Partitions = ()
    batch: str = ""
    name: str = ""
    frame: Frame | None = None

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.name or str(self.path)

    @property
    def size(self) -> int:
        """Bytes on disk, as they are (compressed or not); 0 if it is no file of this machine."""
        if self.name:
            return 0
        return coded_size(self.path) if self.packing == CODED else self.path.stat().st_size

    @property
    def scope(self) -> str:
        """What sets this file's blank nodes apart from other files', and those of its batch from other batches': 16
        hexadecimal digits of its resolved path (or its name), and of the batch."""
        name = self.name or str(self.path.resolve())
        name = f"{name}\0{self.batch}" if self.batch else name
        return hashlib.blake2b(name.encode(), digest_size=8).hexdigest()

    @property
    def base(self) -> str:
        """The IRI that relative ones are resolved against: the file's own."""
        if not self.name:
            return self.path.resolve().as_uri()
        return quote(re.sub("^file:/(?!/)", "file:///", self.name), safe=":/%")

    def open(self, opened: Callable[[], IO[bytes]] | None = None) -> tuple[IO[bytes], IO[bytes]]:
        """The unpacked content without a byte order mark, and the raw file under it, whose `tell()` says how far
        reading is. `opened` gives the raw file, where that is not to be found at the path. Of a frame both are empty.

        Raises OSError; reading raises one of BROKEN.
        """
        if self.frame is not None:
            return io.BytesIO(), io.BytesIO()
        if self.packing == CODED:
            text = cast(IO[bytes], CodedText(self.path))
            return text, text
        raw = opened() if opened is not None else self.path.open("rb")
        content = self._unpacked(raw)
        try:
            if content.peek(len(MARK)).startswith(MARK):  # type: ignore[attr-defined]  # all have it
                content.read(len(MARK))
        except BROKEN:  # so that reading raises it
            raw.close()
            raw = opened() if opened is not None else self.path.open("rb")
            content = self._unpacked(raw)
        return content, raw

    def _unpacked(self, raw: IO[bytes]) -> IO[bytes]:
        return cast(IO[bytes], _OPENERS[self.packing](raw)) if self.packing else raw


def find_sources(given: Iterable[str | Path], apart: Iterable[Path] = (), also: Collection[str] = ()) -> list[Source]:
    """Files, folders (all of known endings below them) and globs (`**` too), sorted, each file once.

    `apart`: folders that will be written to; what folders and globs hold of them is left out, and what folders hold
    of other loads' parts, which are all there already. `also`: further endings that are known.
    Raises KbError for what does not exist, is empty of sources, has an unknown ending, or is a file apart.
    """
    found: dict[Path, Source] = {}
    written = [folder.resolve() for folder in apart]
    for text in given:
        for path in _paths(text, written, also):
            found.setdefault(path.resolve(), source_of(path, also))
    if not found:
        raise KbError("nothing to load")
    return list(found.values())


def is_known(path: Path, also: Collection[str] = ()) -> bool:
    """Whether the file's name says RDF, a table, or what is known `also`."""
    ending, _ = _endings(path)
    return ending in RDF_ENDINGS or ending in TABLE_ENDINGS or ending in also


def _paths(text: str | Path, apart: list[Path], also: Collection[str]) -> list[Path]:
    path = Path(text)
    if (folder := _within(path, apart)) is not None and path.exists():
        raise KbError(f"{text}: is in {folder}, which will be written to: give another folder for that")
    if path.is_dir() and is_coded(path):
        return [path]
    if (path / PARTS).exists():
        raise KbError(f"{text}: holds the parts of a load; what can be loaded of them is {path / 'coded'}")
    if path.is_dir():
        every = [p for p in path.rglob("*") if not is_hidden(p, path)]
        _refuse_lakes([*path.parents, path, *every])
        left_out = [*apart, *(p.parent.resolve() for p in every if p.name == PARTS)]
        inside = sorted(p for p in every if is_known(p, also) and p.is_file() and _within(p, left_out) is None)
        if not inside:
            reason = "the folder holds no RDF file and no table; names that begin with _ or . are not read"
            raise KbError(f"{text}: {reason}")
        return inside
    if path.exists():
        return [path]
    if has_magic(str(text)):
        every = [Path(p) for p in glob(str(text), recursive=True)]
        matched = sorted(p for p in every if p.is_file() and not _hidden_in(p, path))
        _refuse_lakes({folder for p in matched for folder in p.parents})
        if matched := [p for p in matched if _within(p, apart) is None]:
            return matched
        raise KbError(f"{text}: no file matches")
    raise KbError(f"{text}: there is no such file")


def _hidden_in(path: Path, pattern: Path) -> bool:
    """Whether a name that the glob `pattern` does not begin likewise begins with "_" or "."."""
    fixed = next(i for i, part in enumerate(pattern.parts) if has_magic(part))
    asked = pattern.name.startswith(("_", "."))
    return any(name.startswith(("_", ".")) for name in path.parts[fixed : len(path.parts) - asked])


def _refuse_lakes(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_dir() and (reason := lake_log(path)) is not None:
            raise KbError(f"{path}: {reason}")


def _within(path: Path, folders: list[Path]) -> Path | None:
    whole = path.resolve()
    return next((folder for folder in folders if whole.is_relative_to(folder)), None)


def _endings(path: Path) -> tuple[str, str]:
    packing = path.suffix.lower()
    if packing in _OPENERS:
        return path.with_suffix("").suffix.lower(), packing
    return packing, ""


def source_of(path: Path, also: Collection[str] = ()) -> Source:
    """The source that a file is by its ending. Raises KbError if that is unknown, also to `also`."""
    if path.is_dir():
        return Source(path, RdfFormat.N_QUADS, ".nq", CODED)
    return source_by_name(path, also)


def source_by_name(path: Path, also: Collection[str] = (), name: str = "") -> Source:
    """As `source_of`, of a file that need not be on this machine: then it has a `name`."""
    ending, packing = _endings(path)
    if not is_known(path, also):
        known = ", ".join([*RDF_ENDINGS, *also, *TABLE_ENDINGS])
        packings = ", ".join(_OPENERS)
        raise KbError(f"{path}: unknown ending {ending or '(none)'}; known: {known}, also with {packings}")
    return Source(path, RDF_ENDINGS.get(ending), ending, packing, partitions(path), name=name)
