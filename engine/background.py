"""Background threads: each does its turns until it is told to end, outlives what a turn raises, and is known.

    Backgrounds.new(name, turn) ─▶ Background: turn, turn, ... ─▶ `trouble`: what `/ready` tells

Whoever starts a thread that must not end by itself makes it here: an error that nobody has foreseen is logged, the
turns go on after a rest, and until one has come to its end the thread says what is wrong with it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

LOG: Final = logging.getLogger("oxiseq.background")
_FIRST_REST: Final = 0.05
"""Seconds after an error before the next turn, each time twice as long..."""
_LONGEST_REST: Final = 5.0
"""...up to this."""
_WELL: Final = 1.0
"""A turn that has lasted for so many seconds has not met what the last one has raised: some have no end."""


class Background:
    """A thread that does one `turn` after the other, each with the waiting that belongs to it.

    `vital`: without it nothing is answered rightly, so who has it in trouble is not ready; `wake` is called by `end`:
    it has a turn that waits come to its end; `again`: false where a turn that comes to its end is the last one;
    `failed` gets what a turn has raised; `last` is called at the end, by the thread itself.
    """

    def __init__(
        self,
        name: str,
        turn: Callable[[], object],
        *,
        vital: bool = False,
        wake: Callable[[], object] = lambda: None,
        again: bool = True,
        failed: Callable[[BaseException], object] = lambda error: None,
        last: Callable[[], object] = lambda: None,
    ) -> None:
        self.name, self.vital = name, vital
        self._again = again
        self._turn, self._wake, self._failed, self._last = turn, wake, failed, last
        self._error = ""
        """What the last turn has raised."""
        self._began: float | None = None
        """When the present turn began (monotonic clock); None between two of them."""
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Begin no further turn."""
        self._ending.set()
        self._wake()

    def join(self, seconds: float | None = None) -> None:
        """Wait until it has ended, but not for longer than that."""
        if self.alive and self._thread is not threading.current_thread():
            self._thread.join(seconds)

    def rest(self, seconds: float | None) -> bool:
        """Wait within a turn, until it is to end at most: whether it is."""
        return self._ending.wait(seconds)

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    @property
    def ending(self) -> bool:
        """Whether it has been told to end."""
        return self._ending.is_set()

    @property
    def dead(self) -> bool:
        """Whether it has ended though nobody has told it to."""
        return self._thread.ident is not None and not self.alive and not self.ending

    @property
    def gone(self) -> bool:
        """Whether it has ended as it was told to."""
        return self.ending and not self.alive

    @property
    def trouble(self) -> str:
        """What is wrong with it, empty where nothing is."""
        if self.dead:
            return f"the thread {self.name} has ended: restart the server"
        if self._began is not None and time.monotonic() - self._began > _WELL:
            return ""
        return self._error and f"the thread {self.name} has failed and begins again: {self._error}"

    def _run(self) -> None:
        rest = _FIRST_REST
        while not self.ending:
            self._began = time.monotonic()
            try:
                self._turn()
                self._error, rest = "", _FIRST_REST
                if not self._again:
                    self._ending.set()
            except BaseException as error:  # also what is to end a program ends no thread of it
                self._note(error)
                self._guarded(lambda error=error: self._failed(error))  # type: ignore[misc]  # bound at once
                self._ending.wait(rest)
                rest = min(2 * rest, _LONGEST_REST)
        self._guarded(self._last)

    def _note(self, error: BaseException) -> None:
        self._began = None
        self._error = " ".join(f"{error}".split()) or type(error).__name__
        LOG.error("the thread %s has failed and begins again", self.name, exc_info=error)

    def _guarded(self, work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            self._note(error)


class Backgrounds:
    """All background threads of a service. Safe for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: list[Background] = []

    def add(self, thread: Background) -> Background:
        """One more, which is to be started."""
        with self._lock:
            self._all = [*(each for each in self._all if not each.gone), thread]
        return thread

    @property
    def names(self) -> list[str]:
        """Those that are at work, or should be."""
        return [each.name for each in self._all if not each.gone]

    @property
    def troubles(self) -> dict[str, str]:
        """What is wrong, by the thread's name."""
        return {each.name: trouble for each in self._all if (trouble := each.trouble)}

    @property
    def hindrance(self) -> str:
        """Why a service with these threads is not ready: one that is vital is in trouble, or any has ended by itself.
        Empty where none."""
        return next((each.trouble for each in self._all if each.dead or (each.vital and each.trouble)), "")

    def end(self, threads: Iterable[Background], seconds: float | None = None) -> None:
        """Have some end: all are told, then they are waited for, so long in all."""
        told = tuple(threads)
        for each in told:
            each.end()
        until = None if seconds is None else time.monotonic() + seconds
        for each in told:
            each.join(None if until is None else max(0.0, until - time.monotonic()))
