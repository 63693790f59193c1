"""A run that is given events one by one, and saved and resumed after each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.snapshot.saving import save
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.languages.registry import language_for
from oxiseq.live.settings import options_of


class Lasted(NamedTuple):
    """The times of matches, how many instants were left out, and whether that stopped the query."""

    times: list[int]
    omitted: int
    over: bool


def lasted(query: Any, stream: str, events: Iterable[tuple[int, str]], kb: StoreKb, *, restarts: bool) -> Lasted:
    """What a loaded query finds. restarts: it is another run, with another dictionary, after each event."""
    spoken, terms, times = language_for(query), TermDictionary(), list[int]()
    run, _ = spoken.compile(query, terms, kb, options_of(spoken.name, {}))
    for event in events:
        run.push(stream, encode_events([event], terms))
        try:
            batches = run.advance()
        except LimitError:
            batches = run.left()
        times += [time for batch in batches for time in batch.time.tolist()]
        if restarts and not run.omitted.over:
            state, terms = save(run, terms), TermDictionary()
            fresh, _ = spoken.compile(query, terms, kb, options_of(spoken.name, {}))
            run = spoken.resume(state, fresh, terms, kb)
    return Lasted(times, run.omitted.count, run.omitted.over)
