"""A lock that a thread may take again, and which says for how long it has been held at a stretch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class TimedLock:
    """As threading.RLock. `observe` is called with seconds, by the thread that has let go."""

    def __init__(self, observe: Callable[[float], object]) -> None:
        self._lock = threading.RLock()
        self._observe = observe
        self._depth = 0
        """How often its holder has taken it; read and written by that one alone."""
        self._since = 0.0

    def acquire(self, timeout: float = -1) -> bool:
        """Whether it is held now; `timeout`: seconds to wait at most, -1 for ever."""
        if not self._lock.acquire(timeout=timeout):
            return False
        if not self._depth:
            self._since = time.perf_counter()
        self._depth += 1
        return True

    def release(self) -> None:
        """Let go of it once."""
        self._depth -= 1
        held = None if self._depth else time.perf_counter() - self._since
        self._lock.release()
        if held is not None:
            self._observe(held)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()
