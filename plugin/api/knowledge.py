"""A store as a knowledge base that knows which of the answers it gave a change may matter to.

In the flow: queries that are evaluated on the store → their patterns; changes of the store → **since when an answer is
what it is**. So what continuous queries read of the knowledge base is queried again only when a quad of one of its
patterns has come or gone.

The pyoxigraph store of a folder, opened again after a write that failed.

RocksDB takes no write any more once one has failed (a full disk, mostly), though there is room again; only to open the
folder again helps. That is not possible while anything holds the old store, as a running evaluation does. Until it
has ended the folder is open for reading only.

So that it does not come to that, changes that add are refused while the disk is short (`admit`); those that delete are
made, and a reserve that is held (options/room.py) is let go for them.
"""

from __future__ import annotations

import gc
import pathlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from pyoxigraph import Store as RdfStore
from pyoxigraph import Variable

from oxiseq.changes import Anew, Changed
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.standing import Leaf, Leaves, StoreTerms, compile_over_store, sources_of
from oxiseq.grammar.algebra import (
    Path,
    PathAlternative,
    PathInverse,
    PathPattern,
    PathRepeat,
    PathSequence,
    PatternElement,
)
from oxiseq.grammar.over_store import load_over_store
from oxiseq.grammar.scope import nested_elements
from oxiseq.journal import FullError
from oxiseq.options import room

MOST: Final = 10_000
"""Queries whose patterns are known at a time."""


class ConcernedKb(StoreKb):
    """See the module's text. Not safe for several threads: who calls has the store's lock."""

    def __init__(self, store: RdfStore) -> None:
        super().__init__(store)
        self._forget()

    def _forget(self) -> None:
        """Everything may have changed by now, and nothing is watched."""
        self._leaves = Leaves(StoreTerms())
        self._read: dict[str, tuple[Leaf, ...] | None] = {}
        """By query the patterns that it reads; None: unknown."""
        self._touched: dict[Leaf, int] = {}
        """By pattern the version at which one of its quads came or went last."""
        self._everything = self.version
        """The version at which something changed that is not emitted quad by quad."""

    @property
    def watches(self) -> bool:
        """Whether it matters what changes."""
        return any(leaves is not None for leaves in self._read.values())

    def watch(self, texts: Sequence[str]) -> None:
        """Their present answers have been taken. Later the question is whether they still hold."""
        for text in texts:
            if text not in self._read:
                if len(self._read) >= MOST:
                    self._forget()
                self._read[text] = self._patterns(text)

    def _patterns(self, text: str) -> tuple[Leaf, ...] | None:
        try:
            query = load_over_store(text)
            if any(map(_may_be_nowhere, nested_elements(query.body.where))):
                return None
            forms = sources_of(compile_over_store(query))
        except (OxiseqError, RecursionError):
            return None
        return tuple(map(self._leaves.get, forms))

    def unchanged_since(self, version: int, texts: Sequence[str]) -> bool:
        """Whether the answers to watched queries are those of an earlier version."""
        if version < self._everything:
            return False
        for text in texts:
            leaves = self._read.get(text)
            if leaves is None or any(self._touched.get(leaf, 0) > version for leaf in leaves):
                return False
        return True

    def touch(self) -> None:
        """Say that everything may have changed."""
        self.changed(None)

    def changed(self, changes: Sequence[Changed] | None) -> None:
        """Say that the content changed: how, in their order; None: it is not known."""
        super().touch()
        if changes is None or any(isinstance(change, Anew) for change in changes):
            self._everything = self.version
            return
        for change in changes:
            assert not isinstance(change, Anew)
            graphs = bool(change.dropped or change.created)
            for leaf in self._leaves.concerned((*change.removed, *change.added), graphs):
                self._touched[leaf] = self.version


def _may_be_nowhere(element: PatternElement) -> bool:
    """Whether it is a path of no length from a term: the store follows it only if that term occurs in it."""
    return (
        isinstance(element, PathPattern)
        and not (isinstance(element.subject, Variable) and isinstance(element.object, Variable))
        and _has_no_length(element.path)
    )


def _has_no_length(path: Path) -> bool:
    match path:
        case PathRepeat(inner, mark):
            return mark != "+" or _has_no_length(inner)
        case PathInverse(inner):
            return _has_no_length(inner)
        case PathSequence(paths) | PathAlternative(paths):
            return any(map(_has_no_length, paths))
        case _:
            return False


ROOM: Final = 16 << 20
"""Bytes of the disk that must be free before a folder is opened again: opening it writes what its log holds."""
PATIENCE: Final = 2.0
"""Seconds for which it is tried at a time; calls to the store wait meanwhile."""
_PAUSE: Final = 0.02
_NO_ROOM: Final = ("No space left", "File too large", "quota exceeded")


class NoRoomError(FullError, OSError):
    """The disk is full; nothing has been changed. It may be tried again when there is room."""


class NotReopenedError(OxiseqError):
    """The store cannot be written to yet; nothing has been changed. It may be tried again."""


class Reopening:
    """The store. `folder`: where it can be opened again; None: nowhere. Safe for many threads."""

    def __init__(self, store: RdfStore, folder: pathlib.Path | None) -> None:
        self._store: RdfStore | None = store
        self._folder = folder
        self._failure: OSError | None = None
        self._holds = False
        """Whether a reserve is held while there is room."""
        self._lock = threading.RLock()

    @property
    def store(self) -> RdfStore:
        """The one of now; it waits while the folder is being opened. Raises OxiseqError when it has been closed."""
        store = self._store
        if store is None:
            with self._lock:
                store = self._store
        if store is None:
            raise OxiseqError("the store is closed")
        return store

    def hold_reserve(self) -> None:
        """Hold a reserve from now on, until it is closed."""
        self._holds = True
        self._hold()

    def _hold(self) -> None:
        if self._holds and self._folder is not None:
            room.hold(self._folder)

    def admit(self, more: int, grows: Callable[[], bool]) -> None:
        """Before a change that may write so many bytes. `grows`: whether it adds anything, which is asked where there
        is no room for more. Raises NoRoomError."""
        if self._folder is None:
            return
        if not (told := room.lacking(self._folder, more)):
            self._hold()
        elif grows():
            raise NoRoomError(f"{self._folder}: no room for the change: {told}; what only deletes is taken")
        elif room.free(self._folder) < ROOM:
            room.let_go(self._folder)

    def close(self) -> None:
        """Let go of it: the folder may be opened elsewhere when nothing else holds it, as an answer that is being read
        does."""
        with self._lock:
            if self._holds and self._folder is not None:
                room.let_go(self._folder)
            self._store, self._folder = None, None

    @property
    def failed(self) -> bool:
        """Whether a write has failed since the folder was opened."""
        return self._failure is not None

    def refused(self, error: OSError) -> OSError:
        """A write has failed: the error to raise."""
        if self._folder is None or error.errno is not None:  # of a file that was to be read, or there is no disk
            return error
        self._failure = OSError(str(error))  # not itself: its traceback holds the store
        full = any(words in str(error) for words in _NO_ROOM)
        return NoRoomError(f"{self._folder}: no room left for the change: {error}") if full else error

    def mend(self) -> bool:
        """Open the folder again if a write has failed; whether that was done. Raises NoRoomError, NotReopenedError."""
        with self._lock:
            if self._failure is None or self._folder is None:
                return False
            if room.free(self._folder) < ROOM:
                room.let_go(self._folder)
            if (free := room.free(self._folder)) < ROOM:
                raise NoRoomError(f"{self._folder}: no room: {free:,} bytes are free, {ROOM:,} are needed")
            self._open(self._folder)
        return True

    def _open(self, folder: pathlib.Path) -> None:
        self._store = None
        gc.collect()  # an error's traceback may hold the earlier store
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self._store = RdfStore(str(folder))
                self._failure = None
                return
            except OSError as error:
                reason = str(error)
            if time.monotonic() >= deadline:
                break
            time.sleep(_PAUSE)
        self._store = RdfStore.read_only(str(folder))
        raise NotReopenedError(f"{folder}: a write has failed, and the store cannot be opened again yet: {reason}")
