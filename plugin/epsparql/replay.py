"""An EP-SPARQL query over streams that are given whole, as files or lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode

from oxiseq.driving import Driver
from oxiseq.engine.errors import OxiseqError, QueryError
from oxiseq.engine.events.report import OnError
from oxiseq.engine.flow.epsparql.query import compile_intervals
from oxiseq.engine.flow.epsparql.stamps import spanned
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.run.intervals import IntervalRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.epsparql.shape import interval_shape
from oxiseq.grammar import load
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.rsp_algebra import Consume
from oxiseq.knowledge import Kb, kb_store
from oxiseq.late import LateBatch


class IntervalReplay(Driver):
    """An EP-SPARQL query, its rules and its streams. `start`, `lateness` in microseconds; `reads`: the streams that
    there are, for a query that names none."""

    def __init__(
        self, query: EpQuery, kb: Kb, rules: Sequence[str] = (), reads: Sequence[str] = (),
        start: int | None = None, lateness: int = 0, consume: Consume | None = None,
    ) -> None:  # fmt: skip
        terms = TermDictionary()
        plan = compile_intervals(query, read_rules(rules), reads, consume)
        run = IntervalRun(plan, terms, StoreKb(kb_store(kb)), start, lateness)
        named = {s.iri.value: s.name for q in (query, *plan.rules) for s in q.streams if s.name}
        names = {named.get(iri, iri): iri for iri in plan.streams}
        super().__init__(run, interval_shape(plan, terms), names)

    def _open(self, events: Any, on_error: OnError, time_predicate: NamedNode) -> Iterator[LateBatch]:
        if isinstance(events, Iterable) and not isinstance(events, str | Path):
            events = spanned(events)
        return super()._open(events, on_error, time_predicate)


def read_rules(texts: Sequence[str]) -> list[EpQuery]:
    """Rules, checked. Raises QueryError, with a note of which rule it is; OxiseqError where they are no texts."""
    if isinstance(texts, str):
        raise OxiseqError("rules are a list of texts")
    rules = []
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise OxiseqError(f"rule {number} is no text: {text!r}")
        try:
            rules.append(load(text, "epsparql"))
        except QueryError as error:
            error.add_note(f"in rule {number}")
            raise
    return rules
