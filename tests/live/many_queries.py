"""A service with a query of each language that is not asked of the knowledge base, and what they have found."""

from __future__ import annotations

from live_events import ALARM, ALARMED_TWICE, BUSY, FELL, HIGH, LEFT, OPENED, RISES
from live_services import Rows, finish, rows

from oxiseq.live import LiveService

QUERIES = {
    "rises": RISES,
    "opened": OPENED,
    "alarm": ALARM,
    "twice": ALARMED_TWICE,
    "high": HIGH,
    "busy": BUSY,
    "left": LEFT,
    "fell": FELL,
}
LANGUAGES = {"high": "spectra", "busy": "rspql", "left": "rsepql", "fell": "epsparql"}
"""The others are of SPAseq."""


def register(service: LiveService) -> None:
    """Register them all."""
    for name, text in QUERIES.items():
        service.queries.register(name, text, LANGUAGES.get(name, "spaseq"))


def found(service: LiveService) -> dict[str, Rows]:
    """The matches of each, when the streams have ended."""
    finish(service)
    return {name: rows(service, name) for name in QUERIES}
