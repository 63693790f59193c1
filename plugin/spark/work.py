"""What every worker needs for a query: compiled once in each process, whatever it then does.

In the flow: driver → (pickled) **Order** → **Work** in each Python worker → dealer, buckets.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache

from pyoxigraph import Store as RdfStore
from pyoxigraph import Variable

from oxiseq.engine.errors import KbError
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.plan.correlation import Correlation, correlation
from oxiseq.engine.plan.query import QueryPlan, compile_query
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load
from oxiseq.grammar.algebra import Ask, Construct, Projection, Query, Select
from oxiseq.languages.spaseq.shape import spaseq_shape
from oxiseq.mappings.declared import StreamMapping
from oxiseq.sources.knowledge import kb_store
from oxiseq.spark.order import Order


class Work:
    """An order at work in one process: plan, terms, KB. P_D is answered once for all buckets of the process.

    `shown`: how many of the answer's columns the caller wants; `keys`: the columns that hold the key;
    `mappings`: what the rows of a stream mean, by its IRI.
    """

    def __init__(self, order: Order) -> None:
        self.order = order
        self.terms = TermDictionary()
        query = load(order.text)
        self.correlation: Correlation = correlation(compile_query(query, self.terms))
        by = self.correlation.by if order.buckets > 1 else ()
        self.plan: QueryPlan = compile_query(with_columns(query, by), self.terms)
        self.shape = spaseq_shape(self.plan, self.terms)
        self.shown = shown_columns(query, self.plan)
        self.keys = tuple(self.shape.variables.index(v.value) for v in by)
        self.kb = StoreKb(_kb(order.kb))
        self.mappings = {iri: StreamMapping(json.loads(text)) for iri, text in order.mappings}


def with_columns(query: Query, by: tuple[Variable, ...]) -> Query:
    """The query with the key's variables among its columns, added ones last."""
    form = query.form
    more = tuple(Projection(v) for v in by)
    if not by or (isinstance(form, Select) and form.columns is None):
        return query
    if isinstance(form, Ask):
        return replace(query, form=Select(more))
    if isinstance(form, Construct):
        return replace(query, form=replace(form, columns=form.columns + more))
    known = {c.variable for c in form.columns or () if c.expression is None}
    missing = tuple(p for p in more if p.variable not in known)
    return replace(query, form=replace(form, columns=(form.columns or ()) + missing))


def shown_columns(query: Query, plan: QueryPlan) -> int:
    """How many columns the query, as it was written, answers; none for CONSTRUCT, whose answer is a graph."""
    if not isinstance(query.form, Select):
        return 0
    return len(plan.answer.columns if query.form.columns is None else query.form.columns)


def _kb(kb: str | None) -> RdfStore:
    try:
        return kb_store(kb)
    except KbError as error:
        raise KbError(f"on a worker: {error} (every executor needs the KB at this path)") from error


@lru_cache(maxsize=4)
def work(order: Order) -> Work:
    """The work of this process for an order; kept between tasks."""
    return Work(order)
