"""What queries of a served store have in common: their life there, and what comes of them."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Self, TypeVar

import httpx
from httpx_sse import EventSource, ServerSentEvent

from oxiseq.api.continuous import CallbackHandle
from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar.arguments import internal
from oxiseq.journal import CursorError, DamagedBatchError, UnknownError
from oxiseq.options.durations import Duration, duration
from oxiseq.served.wire import UnreachableError, Wire

LOG: Final = logging.getLogger("oxiseq")
T = TypeVar("T")
_SILENCE: Final = 8.0
"""Seconds for which nothing may come before the server is queried again: less than its heartbeat."""
_LAST: Final = 0.05
"""Seconds before the end of a timeout for which nobody listens any more."""
SOON: Final[Mapping[str, Any]] = {"again": False, "within": 10.0}
"""How to call a server after waiting already."""
AFTER_LOSS: Final = 0.5
"""Seconds after which a server that has gone is looked for again."""


class Registered:
    """A query by its name. `cursor`: the id of the last match or change that has been returned."""

    def __init__(self, wire: Wire, value: Mapping[str, Any]) -> None:
        self._wire = wire
        self._value = value
        self._closed = threading.Event()
        self.name: str = value["name"]
        self.language: str = value["language"]
        self.cursor: int = value["matches"]["first"] - 1

    @property
    def status(self) -> Mapping[str, Any]:
        """All that the server says of it now: its state, counts, budget, what was quarantined. Raises UnknownError."""
        value: Mapping[str, Any] = self._wire.send("GET", "queries", self.name).json()
        return value

    @property
    @internal
    def gone(self) -> bool:
        """Whether it has been deleted."""
        try:
            self._wire.send("GET", "queries", self.name)
        except UnknownError:
            return True
        return False

    def pause(self) -> None:
        """It sees nothing until `resume`; then it sees what has come meanwhile."""
        self._wire.send("PATCH", "queries", self.name, json={"state": "paused"}, again=True)

    def resume(self) -> None:
        """Continue after a pause or a failure."""
        self._wire.send("PATCH", "queries", self.name, json={"state": "running"}, again=True)

    def delete(self) -> None:
        """Forget it and what was found."""
        self._wire.send("DELETE", "queries", self.name, again=False)
        self.close()

    @property
    def closed(self) -> bool:
        """Whether this object has been closed."""
        return self._closed.is_set()

    def close(self) -> None:
        """End what iterates over this object; the query continues at the server."""
        self._closed.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- events ---------------------------------------------------------------------------------------

    @internal
    def listened(self, what: str, timeout: Duration | None) -> Iterator[ServerSentEvent]:
        """Server-sent events of `what` behind `cursor`, whatever becomes of the connection, at most for `timeout` in
        all. Ends when the query is deleted or this object, or the store, is closed. Raises RefusedError, BusyError;
        UnreachableError if the server does not answer at all within `timeout`."""
        return self._listened(what, None if timeout is None else time.monotonic() + duration(timeout, "timeout") / 1e6)

    def _listened(self, what: str, deadline: float | None) -> Iterator[ServerSentEvent]:
        gone: UnreachableError | None = None
        while not self.over():
            left = math.inf if deadline is None else deadline - time.monotonic()
            if left <= _LAST:
                self._closed.wait(max(0.0, left))
                break
            silence = min(_SILENCE, max(left / 2, _LAST))  # half: one that comes late may be followed by as long again
            try:
                with self._wire.listening(
                    "queries", self.name, what, params={"after": self.cursor}, patience=silence
                ) as reply:
                    gone = None
                    for event in EventSource(reply).iter_sse():
                        if event.event == "end":
                            if not self._goes_on(event):
                                return
                            break
                        if event.data:  # else it says how long to wait before one comes back, which we choose
                            yield event
                        if self.over():
                            return
                        if deadline is not None and deadline - time.monotonic() < silence:
                            break
            except httpx.ReadTimeout:
                pass
            except UnreachableError as error:
                gone = error
                self._closed.wait(min(AFTER_LOSS, left))
            except UnknownError:
                return
        if gone is not None and not self.over():
            raise gone

    @internal
    def over(self) -> bool:
        """Whether this object or its store is closed."""
        return self._closed.is_set() or self._wire.closed

    def _goes_on(self, event: ServerSentEvent) -> bool:
        """Whether the server ends its answer, though the query continues: it is stopping."""
        if event.json().get("reason") == "deleted":
            return False
        self._closed.wait(AFTER_LOSS)
        return True

    @internal
    def told_of_loss(self, event: ServerSentEvent) -> None:
        """Raises the error for deleted matches that an event reports, and puts the cursor behind them."""
        told = event.json()
        if event.event == "cursor-too-old":
            asked, self.cursor = self.cursor + 1, int(told["first"]) - 1
            raise CursorError(f"what {self.name!r} has emitted", asked, int(told["first"]))
        if event.event == "damaged":
            self.cursor = int(told["next"]) - 1
            raise DamagedBatchError(f"what {self.name!r} has emitted", told["first"], told["next"], told["reason"])

    @internal
    def each(self, things: Callable[[], Iterator[T]], callback: Callable[[T], object]) -> CallbackHandle:
        """Call back with each thing on a thread of its own, until this object is closed. Errors are logged."""

        def work() -> None:
            while not self.over():
                try:
                    for thing in things():
                        if self.closed:
                            return
                        _called(callback, thing, self.name)
                    return
                except CursorError as error:
                    LOG.warning("query %s: %s", self.name, error)
                except OxiseqError as error:
                    if not self._wire.closed:
                        LOG.error("query %s cannot be read; tried again: %s", self.name, error)
                    self._closed.wait(AFTER_LOSS)

        threading.Thread(target=work, name=f"oxiseq-{self.name}", daemon=True).start()
        return CallbackHandle(self.close)


def _called(callback: Callable[[T], object], thing: T, name: str) -> None:
    try:
        callback(thing)
    except Exception:
        LOG.exception("query %s: a callback failed at %r", name, thing)
