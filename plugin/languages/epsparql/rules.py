"""What an EP-SPARQL query is given beside its text: rules, and events that have a start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode

from oxiseq.engine.errors import ArgumentTypeError, QueryError
from oxiseq.engine.events.report import OnError
from oxiseq.engine.flow.epsparql.facts import spanned
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.languages.driving import Told
from oxiseq.sources.sources import batches_of, given_batches, in_time_order, is_stream
from oxiseq.sources.warned import LateBatch


def open_spanned(
    events: Any, terms: TermDictionary, on_error: OnError, time_predicate: NamedNode, told: Told
) -> Iterator[LateBatch]:
    """As others, but that events may have a start."""
    if not isinstance(events, Iterable) or isinstance(events, str | Path):
        return given_batches(events, terms, on_error, time_predicate, told)
    batches = batches_of(spanned(events), terms)
    if is_stream(events):
        return batches
    return in_time_order(batches, lambda: batches_of(spanned(events), TermDictionary()), terms)


def read_rules(texts: Sequence[str]) -> list[EpQuery]:
    """Rules, checked. Raises QueryError, with a note of which rule it is; OxiseqError where they are no texts."""
    if isinstance(texts, str):
        raise ArgumentTypeError("rules are a list of texts")
    rules = []
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise ArgumentTypeError(f"rule {number} is no text: {text!r}")
        try:
            rules.append(load(text, "epsparql"))
        except QueryError as error:
            error.add_note(f"in rule {number}")
            raise
    return rules
