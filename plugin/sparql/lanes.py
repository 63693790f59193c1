"""How many evaluations there may be at a time, so that some leave room for the others.

Those that can be ended at any moment have two kinds of places. All begin in a quick one; who is still at work after
half a second moves to a slow one, if one is free. If none is, one goes for each that waits for a quick place. So a
small query gets its turn within a second or so, however many never end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from oxiseq.sparql.problems import Problem

GRACE: Final = 0.5
"""Seconds for which anybody may have a quick place."""


class Lane:
    """Places; `slow` of them besides are for who stays long (see the module's text)."""

    def __init__(self, quick: int, patience: float, slow: int = 0) -> None:
        self.places = quick
        self._patience = patience
        self._quick, self._slow = quick, slow
        self._waiting = self._leaving = 0
        self._changed = threading.Condition()

    def enter(self) -> Ticket:
        """A place, when there is one. Raises Problem 503 after waiting without effect."""
        with self._changed:
            self._waiting += 1
            try:
                if not self._changed.wait_for(lambda: self._quick > 0, self._patience):
                    raise too_busy(f"{self.places} requests are being answered")
            finally:
                self._waiting -= 1
            self._quick -= 1
        return Ticket(self)

    def move(self, ticket: Ticket) -> bool:
        """To a slow place; False if there is none, and Problem 503 if the quick one is needed."""
        with self._changed:
            if self._slow > 0:
                self._slow -= 1
                self._quick += 1
                self._changed.notify()
                ticket.slow = True
                return True
            if self._waiting > self._leaving:
                self._leaving += 1
                ticket.sent_away = True
                raise too_busy(f"all places are taken by evaluations of more than {GRACE:g} s, and others wait")
        return False

    def leave(self, ticket: Ticket) -> None:
        """The place is free."""
        with self._changed:
            if ticket.slow:
                self._slow += 1
            else:
                self._quick += 1
                self._changed.notify()
            self._leaving -= ticket.sent_away


class Ticket:
    """The place of one evaluation."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._moves_at = time.monotonic() + GRACE
        self.slow = self.sent_away = False

    def stay(self, moved: Callable[[], None]) -> None:
        """To be called now and then by an evaluation that can be ended: Problem 503 says that it must. `moved` is
        called when it has run for long."""
        if not self.slow and time.monotonic() >= self._moves_at:
            if self._lane.move(self):
                moved()
            else:
                self._moves_at = time.monotonic() + GRACE / 5

    def leave(self) -> None:
        """It has come to its end."""
        self._lane.leave(self)


def too_busy(detail: str) -> Problem:
    """There is no place."""
    return Problem(503, "too busy", detail, headers=(("Retry-After", "5"),))
