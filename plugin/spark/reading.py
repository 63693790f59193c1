"""Files and texts of events → packed events: what the Data Source's tasks do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.open import open_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import pack_events
from oxiseq.spark.decoding import Decoder
from oxiseq.spark.garbage import freeze_loaded

_TOGETHER: Final = 1 << 15
"""Events packed together, at most."""


@cache
def _terms() -> TermDictionary:
    """This process's own, kept between tasks."""
    return TermDictionary()


def packed_file(path: Path, on_error: Literal["stop", "skip"]) -> Iterator[bytes]:
    """A file's events. Raises EventError."""
    terms = _terms()
    waiting: list[EventBatch] = []
    for batch in open_events(path, terms, on_error=on_error):
        waiting.append(batch)
        if sum(map(len, waiting)) >= _TOGETHER:
            yield pack_events(EventBatch.concat(waiting), terms)
            waiting = []
            terms.collect_if_due()
    if waiting:
        yield pack_events(EventBatch.concat(waiting), terms)
    freeze_loaded()


def packed_text(text: bytes) -> bytes:
    """The events of an N-Quads text. Raises EventError."""
    terms = _terms()
    terms.collect_if_due()
    batch = Decoder(terms).decode(pa.record_batch([pa.array([text], pa.binary())], names=["events"]))
    return pack_events(batch, terms)
