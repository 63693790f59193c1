"""What listeners receive."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeAlias

from pyoxigraph import BlankNode, NamedNode, Quad

from oxiseq.grammar.records import dataclass

# --- change ----------------------------------------------------------------------------------------------

GraphName: TypeAlias = NamedNode | BlankNode


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """The difference between the content before and after one change of the store, as sets. Never empty.

    The terms are as the store has them: it writes "01"^^xsd:integer as "1"^^xsd:integer. `dropped`, `created`: named
    graphs as such, which may be empty; one that quads were added to is among `created` if it was not there before.
    """

    removed: tuple[Quad, ...] = ()
    added: tuple[Quad, ...] = ()
    dropped: tuple[GraphName, ...] = ()
    created: tuple[GraphName, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.removed or self.added or self.dropped or self.created)


@dataclass(frozen=True, slots=True)
class Anew:
    """Everything may have changed: listeners query again, and compare with the answer before. `why`: for a log.

    This is notified of bulk loads and of anything else that touches too many quads to list, of what was
    changed behind the store's back, and to a listener that failed at an earlier change.
    """

    why: str


Changed: TypeAlias = Change | Anew


# --- listeners -------------------------------------------------------------------------------------------

LOG = logging.getLogger("oxiseq.changes")
Listener: TypeAlias = Callable[[Changed], None]


class Listening:
    """A listener among others, until it is closed."""

    def __init__(self, listeners: Listeners, listener: Listener) -> None:
        self._listeners, self._listener = listeners, listener
        self._missed = self._closed = False

    def close(self) -> None:
        """It gets nothing more, from this moment on."""
        self._closed = True
        self._listeners.remove(self)

    def tell(self, changed: Changed) -> None:
        """An error is logged, no more. The listener has then missed a change: the next one comes as `Anew`."""
        if self._closed:
            return
        if self._missed:
            changed = Anew("an earlier change was not applied")
        try:
            self._listener(changed)
            self._missed = False
        except Exception:
            self._missed = True
            LOG.exception("a listener failed at a change of the store; the next change makes it read the store again")


class Listeners:
    """Those of one store, behind its lock."""

    def __init__(self, lock: AbstractContextManager[object]) -> None:
        self._lock = lock
        self._all: tuple[Listening, ...] = ()
        self._waiting: deque[tuple[Changed, tuple[Listening, ...]]] = deque()
        self._telling = False

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, listener: Listener) -> Listening:
        """It is notified of every change from now on."""
        listening = Listening(self, listener)
        with self._lock:
            self._all = (*self._all, listening)
        return listening

    def remove(self, listening: Listening) -> None:
        """Safe to call again, and within a listener."""
        with self._lock:
            self._all = tuple(each for each in self._all if each is not listening)

    def tell(self, changed: Changed) -> None:
        """To those that listen now, in the order of changes: one that a listener makes is passed on after the present
        one has reached all. With the lock held."""
        if not self._all:
            return
        self._waiting.append((changed, self._all))
        if self._telling:
            return
        self._telling = True
        try:
            while self._waiting:
                next_one, listening = self._waiting.popleft()
                for each in listening:
                    each.tell(next_one)
        finally:
            self._telling = False
