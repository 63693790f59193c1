"""A run of any language fed with a history, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from oxiseq.engine.order.watermarks import AFTER_ALL
from oxiseq.engine.run.run import Run
from oxiseq.languages.reasons.bounds import Bounds
from oxiseq.languages.reasons.read import History, spans, within

STEP = 1_024
"""Instants that are processed at a time."""


def steps(
    run: Run, streams: Sequence[str], history: History, bounds: Bounds, instants: int | None = None
) -> Iterator[Sequence[Any]]:
    """All streams to the same time, again and again; what is found at each step. `instants` of one: STEP."""
    for span in spans(history, instants or STEP):
        bounds.check()
        for iri in dict.fromkeys(streams):
            batch = within(history.batches[iri], span)
            if len(batch):
                run.push(iri, batch)
            run.punctuate(iri, AFTER_ALL if span.until is None else span.until)
        yield run.advance()


def worked(
    run: Run,
    streams: Sequence[str],
    history: History,
    bounds: Bounds,
    most: int | None,
    instants: int | None = None,
) -> tuple[list[Any], bool]:
    """What is found until it is `most` (None: all); whether it is so many, so that there may be more."""
    found: list[Any] = []
    for part in steps(run, streams, history, bounds, instants):
        found += part
        if most is not None and sum(map(len, found)) >= most:
            return found, True
    return found, False
