"""FILTERs whose functions Oxigraph answers, on texts that were never met: `python -m benchmarks.filters`.

CPU time per event, each with a message of its own and one of six words, beside the pattern without a FILTER.
"""

from __future__ import annotations

import numpy as np
from pyoxigraph import Literal

from benchmarks.data import SECOND, START, iri
from benchmarks.measure import Clocked, measure
from benchmarks.patterns import counting, request_of
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.terms.dictionary import TermDictionary

EVENTS = 16_384
BATCH = 8_192
ROUNDS = 5
WORDS = ("error", "ok", "disk", "full", "user", "login")
FILTERS = (
    "true",
    'CONTAINS(?m, "error")',
    'REGEX(?m, "^err.*7$")',
    'LCASE(?m) = "x"',
    "STRLEN(?m) > 20",
    "CONTAINS(?m, ?w)",
    'STRBEFORE(?m, " ") = ?w',
    '?m > "error"',
    "ISIRI(?e)",
)


def batches(terms: TermDictionary) -> list[EventBatch]:
    """The events, coded."""
    dice = np.random.default_rng(1)
    messages = (" ".join(WORDS[w] for w in dice.integers(0, 6, 5)) for _ in range(EVENTS))
    message = terms.intern_all(Literal(f"{text} {i}") for i, text in enumerate(messages))
    word = terms.intern_all(Literal(WORDS[w]) for w in dice.integers(0, 6, EVENTS))
    predicate = np.tile(terms.intern_all([iri("message"), iri("word")]), EVENTS)
    subject, object_ = np.repeat(terms.blanks(EVENTS), 2), np.stack([message, word], axis=1).ravel()
    times = START + SECOND * np.arange(EVENTS)
    whole = EventBatch(times, 2 * np.arange(EVENTS + 1), subject, predicate, object_)
    terms.hold(*whole.ids)
    return [whole.slice(low, low + BATCH) for low in range(0, EVENTS, BATCH)]


def fresh(condition: str) -> Clocked:
    """Match with a dictionary of its own; only the matching is measured."""
    terms = TermDictionary()
    events = batches(terms)
    task = counting([request_of(f"?e :message ?m ; :word ?w FILTER({condition})", terms)], terms, events)
    (measured,) = measure({"": task}, 1).values()
    return Clocked(measured.answer, measured.seconds[0])


def main() -> None:
    """Print a line for each FILTER."""
    ways = {condition: lambda condition=condition: fresh(condition) for condition in FILTERS}
    for condition, measured in measure(ways, ROUNDS, {FILTERS[1]: ways[FILTERS[1]]}).items():
        print(f"{condition:28} {measured.median / EVENTS * 1e6:6.2f} µs an event, {measured.answer} rows")


if __name__ == "__main__":
    main()
