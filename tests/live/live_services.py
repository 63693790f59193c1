"""A live service for tests, and short ways to ask it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from live_events import ALARMS, DOORS, POWER, Batch

from oxiseq.api.store import Store
from oxiseq.engine.events.time import LAST_TIME
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.intake import read_batch
from oxiseq.live.streams import Pushed

Rows = list[tuple[int, tuple[str | None, ...]]]


@contextmanager
def live(folder: Path, settings: LiveSettings | None = None, store: Store | None = None) -> Iterator[LiveService]:
    """A service that has caught up; without time-driven punctuations unless the settings say so."""
    chosen = settings if settings is not None else LiveSettings(idle=None)
    with LiveService(store if store is not None else Store(), folder, chosen, "normal") as service:
        eventually(lambda: service.ready)
        yield service


def push(service: LiveService, batch: Batch) -> Pushed:
    """A batch under its id."""
    return service.streams.push(batch.stream, lambda: read_batch(batch.body, "nquads"), batch.body, batch.id)


def rest(service: LiveService) -> None:
    """Wait until all of the log has been worked through and stored, what queries feed into streams included, and no
    query is left to be brought back."""

    def quiet() -> bool:
        with service.worker.lock:  # between two turns: one may still put into the log what it has found
            service.worker.flush()
            return service.worker.whole and service.worker.position >= service.journal.log.position()

    eventually(quiet)


def finish(service: LiveService) -> None:
    """No event will come any more: all instants are complete."""
    for iri in (POWER, DOORS, ALARMS):
        service.streams.advance(iri, LAST_TIME)
        rest(service)


def rows(service: LiveService, query: str, after: int = 0) -> Rows:
    """The stored matches with ids above `after` as (id, terms)."""
    found: Rows = []
    while parts := service.journal.matches.read(query, found[-1][0] if found else after):
        for part in parts:
            found += [(part.first + i, row) for i, row in enumerate(part.rows())]
    return found


def eventually(holds: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it does not come to that"
        time.sleep(0.005)
