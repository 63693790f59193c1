"""A lock that a thread may take again, that goes to who waits, and which says for how long it has been held at a
stretch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class TimedLock:
    """As threading.RLock; but a thread that lets go and takes it again comes behind one that waits. `observe` is called
    with seconds, by the thread that has let go."""

    def __init__(self, observe: Callable[[float], object]) -> None:
        self._next = threading.Lock()
        """Held by who takes the lock next, while it waits for it."""
        self._lock = threading.Lock()
        self._observe = observe
        self._owner = 0
        """The thread that holds it."""
        self._depth = 0
        """How often its holder has taken it; read and written by that one alone."""
        self._since = 0.0

    def acquire(self, timeout: float = -1) -> bool:
        """Whether it is held now; `timeout`: seconds to wait at most, -1 for ever."""
        mine = threading.get_ident()
        if self._owner != mine:
            free = not self._next.locked() and self._lock.acquire(blocking=False)
            if not free and not self._wait(timeout):
                return False
            self._owner, self._since = mine, time.perf_counter()
        self._depth += 1
        return True

    def _wait(self, timeout: float) -> bool:
        until = time.monotonic() + timeout
        if not self._next.acquire(timeout=timeout):
            return False
        try:
            return self._lock.acquire(timeout=timeout if timeout < 0 else max(0.0, until - time.monotonic()))
        finally:
            self._next.release()

    def release(self) -> None:
        """Let go of it once."""
        self._depth -= 1
        if not self._depth:
            held = time.perf_counter() - self._since
            self._owner = 0
            self._lock.release()
            self._observe(held)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()
