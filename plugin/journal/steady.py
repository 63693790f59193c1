"""The journal's clock: the system's, but for jumps, which count only once they have stood for a while.

    system's clock, and one that only counts ─▶ SteadyClock ─▶ arrivals, retention

A clock that is ten days ahead for a minute must not delete what is to be kept for an hour, nor leave arrivals ten days
ahead, which later ones have to follow. A new time that stays is the right one: then it holds, and what has been
received before is moved by as much, so that it is as old as before (`take_steps`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

LOG: Final = logging.getLogger("oxiseq.journal")
_SMALL: Final = 60_000_000
"""µs by which the system's clock may be set without more ado."""
PATIENCE: Final = 15 * 60_000_000
"""µs for which a new time must have stood."""


def wall() -> int:
    """The system's clock: microseconds since 1970."""
    return time.time_ns() // 1000


def counted() -> int:
    """Microseconds since some moment, those in which the machine slept included where the system counts them."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return (time.monotonic_ns() if boot is None else time.clock_gettime_ns(boot)) // 1000


class SteadyClock:
    """Microseconds since 1970. Safe for many threads."""

    def __init__(self, wall: Callable[[], int] = wall, counted: Callable[[], int] = counted) -> None:
        self._wall, self._counted = wall, counted
        self._lock = threading.Lock()
        self._offset = wall() - counted()
        self._jump: tuple[int, int] | None = None
        """By how much the system's clock has jumped, and when."""
        self._steps: list[tuple[int, int]] = []

    def __call__(self) -> int:
        """Now."""
        with self._lock:
            counted = self._counted()
            here = counted + self._offset
            off = self._wall() - here
            if abs(off) <= _SMALL:
                self._jump = None
            elif self._jump is None or abs(off - self._jump[0]) > _SMALL:
                self._jump = off, counted
                LOG.warning(
                    "the system's clock has jumped by %.0f s: the journal goes on without that, unless it stays so",
                    off / 1e6,
                )
                return here
            elif counted - self._jump[1] < PATIENCE:
                return here
            else:
                LOG.warning("the system's clock has stayed where it jumped, by %.0f s: the journal follows", off / 1e6)
                self._jump = None
                if off > 0:
                    self._steps.append((here, off))
            self._offset += off
            return here + off

    def take_steps(self) -> list[tuple[int, int]]:
        """The jumps ahead that it has followed since the last call: up to when (µs) times are older than they say, and
        by how much. Of one back nothing is deleted too early."""
        with self._lock:
            steps, self._steps = self._steps, []
            return steps
