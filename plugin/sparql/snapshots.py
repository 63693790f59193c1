"""The store's content as other processes can read it: each query gets the content at the time of its request.

An on-disk store is backed up into a folder beside its files, by hard links, after each change that a query meets: some
ten milliseconds, whatever its size. A store in memory is written out while it is small; a larger one has no snapshot.
pyoxigraph says that a folder which is being written to must not be opened for reading, therefore not the store itself.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from pyoxigraph import NamedNode, RdfFormat

from oxiseq.api.store import Store
from oxiseq.sparql.messages import Problem

FOLDER: Final = "oxiseq-snapshots"
"""In the store's folder."""
_LARGE_FOR: Final = 10.0
"""Seconds."""
SMALL: Final = 20_000
"""Quads of a store in memory that is written out."""

Source = dict[str, Any]
"""See child.py."""


class Snapshots(Protocol):
    """Where processes find the content."""

    @property
    def possible(self) -> bool:
        """Whether there is one now; when not, only this process can read the content."""
        ...

    def current(self) -> AbstractContextManager[Source | None]:
        """What the content is now, or later; None where it is not possible. It is there until the end."""
        ...

    def close(self) -> None:
        """Nothing is left of it."""
        ...


class Unchanging:
    """A folder that nobody writes to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def possible(self) -> bool:
        """Always."""
        return True

    @contextmanager
    def current(self) -> Iterator[Source | None]:
        """See Snapshots."""
        yield {"folder": str(self._folder)}

    def close(self) -> None:
        """It stays."""


class _Made:
    """A snapshot on the disk, with how many read it."""

    def __init__(self, version: int, path: Path, source: Source | None) -> None:
        self.version, self.path, self.source = version, path, source
        self.users = 0


class Following:
    """Snapshots of a store, a new one when a query comes after a change. `make`: writes one to a path; `most`: quads of
    a store that has any."""

    def __init__(
        self, store: Store, folder: Path, make: Callable[[Path], Source | None], most: int | None = None
    ) -> None:
        self._store, self._folder, self._make, self._most = store, folder, make, most
        self._counted, self._large, self._counted_at = -1, False, 0.0
        self._lock = threading.Lock()
        self._newest: _Made | None = None
        self._number = 0

    @property
    def possible(self) -> bool:
        """See Snapshots. To count a large store takes long, so it is taken to stay large for a while."""
        if self._most is None:
            return True
        version, now = self._store.kb.version, time.monotonic()
        if version != self._counted and (not self._large or now - self._counted_at >= _LARGE_FOR):
            self._large, self._counted, self._counted_at = len(self._store) > self._most, version, now
        return not self._large

    @contextmanager
    def current(self) -> Iterator[Source | None]:
        """See Snapshots. Raises Problem 507 when there is no room on the disk."""
        with self._lock:
            found = self._newest
            # the store says that it has changed before a change is acknowledged
            if found is None or found.version != self._store.kb.version:
                found = self._taken()
            found.users += 1
        try:
            yield found.source
        finally:
            with self._lock:
                found.users -= 1
                self._forget(found)

    def close(self) -> None:
        """See Snapshots."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _taken(self) -> _Made:
        version = self._store.kb.version  # before the content is read: what changes meanwhile is a version of its own
        self._number += 1
        path = self._folder / str(self._number)
        try:
            made = _Made(version, path, self._make(path))
        except OSError as error:
            shutil.rmtree(path, ignore_errors=True)
            raise Problem(507, "no room", f"the store cannot be copied for a process: {error}") from None
        old, self._newest = self._newest, made
        if old is not None:
            self._forget(old)
        return made

    def _forget(self, made: _Made) -> None:
        if not made.users and made is not self._newest:
            shutil.rmtree(made.path, ignore_errors=True)


def on_disk(store: Store, location: Path) -> Following:
    """Of a store in a folder."""
    folder = location / FOLDER
    shutil.rmtree(folder, ignore_errors=True)  # a server that was killed left it
    folder.mkdir()

    def make(path: Path) -> Source:
        store.backup(str(path))
        return {"folder": str(path)}

    return Following(store, folder, make)


def in_memory(store: Store) -> Following:
    """Of a store in memory, as long as it is small."""
    folder = Path(tempfile.mkdtemp(prefix="oxiseq-snapshots-"))

    def make(path: Path) -> Source | None:
        if len(store) > SMALL:
            return None
        path.mkdir()
        file = path / "quads.nq"
        store.dump(str(file), RdfFormat.N_QUADS)
        graphs = [graph.value for graph in store.named_graphs() if isinstance(graph, NamedNode)]
        return {"quads": str(file), "graphs": graphs}

    return Following(store, folder, make, SMALL)
