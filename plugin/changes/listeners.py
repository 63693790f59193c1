"""Who is notified of changes, and in which order."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeAlias

from oxiseq.changes.change import Anew, Changed

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
