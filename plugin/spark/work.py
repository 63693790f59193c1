"""What every worker needs for a query: compiled once in each process, whatever it then does.

In the flow: driver → (pickled) **Order** → **Work** in each Python worker → dealer, buckets.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final

from pyoxigraph import Store as RdfStore

from oxiseq.engine.errors import KbError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.faults import Unfit
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.plan.correlation import Correlation
from oxiseq.engine.run.run import Run
from oxiseq.engine.snapshot.saving import AnyPlan, restore
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load
from oxiseq.languages.language import Language
from oxiseq.languages.registry import language_named
from oxiseq.languages.result_streams import StreamUse, refuse_own_results
from oxiseq.mappings.declared import StreamMapping
from oxiseq.matches.shape import Shape
from oxiseq.options import Options
from oxiseq.sources.knowledge import kb_store
from oxiseq.spark.garbage import unfreeze
from oxiseq.spark.order import Order

_NEVER: Final = 1 << 61
"""A lateness that no event exceeds: the watermark comes from outside."""


class Work:
    """An order at work in one process: plan, terms, KB. P_D is answered once for all buckets of the process.

    `names`: those of the streams in the query, with their IRIs; `shown`: how many of the answer's columns the caller
    wants; `keys`: the columns that hold the key, none where a bucket sees no other one's; `mappings`: what the rows of
    a stream mean, by its IRI.
    """

    def __init__(self, order: Order) -> None:
        self.order = order
        self.terms = TermDictionary()
        self.kb = StoreKb(_kb(order.kb))
        self._language: Language[Any] = language_named(order.language)
        query = load(order.text, order.language)
        asked, asked_shape = self._compiled(query)
        self.correlation: Correlation = self._language.correlation(query, asked.plan)
        by = self.correlation.by if order.buckets > 1 and not self.correlation.one_each else ()
        self._query = self._language.with_key(query, by)
        self._run, self.shape = self._compiled(self._query)
        self.plan: AnyPlan = self._run.plan  # type: ignore[assignment]  # each of our languages has one of these
        self.names = self._language.names(query, self.plan)
        self.shown = len(asked_shape.variables) if asked_shape.form == "SELECT" else 0
        self.keys = tuple(self.shape.variables.index(v.value) for v in by)
        self.kept: dict[int, Any] = {}
        """The buckets at work in this process, by number (kept.py)."""
        self.mappings = {iri: StreamMapping(json.loads(text)) for iri, text in order.mappings}

    def new_run(self) -> Run:
        """One that has not seen anything."""
        return self._compiled(self._query)[0]

    def restored(self, state: bytes) -> Run:
        """One as it was saved. Raises SnapshotError."""
        return restore(state, self.plan, self.terms, self.kb)

    def unfit(self, stream: int, batch: EventBatch) -> Unfit | None:
        """The events that the query's language cannot take; None: there are none."""
        return self._run.unfit(self.plan.streams[stream], batch, self.terms)

    def _compiled(self, query: Any) -> tuple[Run, Shape]:
        options = Options(origin=self.order.origin, lateness=_NEVER)
        run, shape = self._language.planned(query, self.terms, self.kb, options)
        refuse_own_results(StreamUse.of("query", shape))
        return run, shape


def _kb(kb: str | None) -> RdfStore:
    try:
        return kb_store(kb)
    except KbError as error:
        raise KbError(f"on a worker: {error} (every executor needs the KB at this path)") from error


@lru_cache(maxsize=4)
def work(order: Order) -> Work:
    """The work of this process for an order; kept between tasks."""
    unfreeze()
    return Work(order)
