"""A CEQL query with joins or GRAPH, compiled for live keys: the sequence that SPAseq would match, an event at each
position.

In the flow: text → algebra → **runner**: `y[price > x.price]` needs prefixes apart by the price of x: live keys do
that, and their graph patterns ask the knowledge base. Where no condition needs either, determinised sets run the query
(cea/plan.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode, Variable

from oxiseq.engine.cea.plan import as_words, compile_ceql, words_of
from oxiseq.engine.errors import QueryError
from oxiseq.engine.matches.paging import Page
from oxiseq.engine.matches.plan import SequencePlan
from oxiseq.engine.matches.ranking import Ranking
from oxiseq.engine.plan.query import LetterPlan, QueryPlan, compile_query
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Filter, Query, Select, TriplePattern
from oxiseq.grammar.ceql.joins import first_graph
from oxiseq.grammar.ceql.texts import render_predicate
from oxiseq.grammar.ceql_algebra import CeqlQuery, Totals, first_join, variables
from oxiseq.grammar.parts import parts
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.translating.ceql_spaseq import as_sequence


@dataclass(frozen=True, slots=True)
class Lowered:
    """A CEQL query as one that live keys run. `variables`: those that SELECT keeps; `attributes`: those that it reads;
    `translated`: the query in SPAseq's algebra; `sequence`: that, compiled, without columns; `held`: u64[letters of
    `sequence`, words], the variables that hold a letter's events, as bits."""

    name: ClassVar[str] = "live keys"
    variables: tuple[str, ...]
    attributes: tuple[Variable, ...]
    translated: Query
    sequence: QueryPlan
    held: NDArray[np.uint64]


JoinedPlan: TypeAlias = SequencePlan[CeqlQuery, LetterPlan, Ranking, Totals, Lowered]
"""That of a CEQL query with joins or GRAPH."""
CeqlPlan: TypeAlias = SequencePlan[CeqlQuery, Any, Any, Totals, Any]
"""That of any CEQL query: a `CeaPlan` or a `JoinedPlan`, as its runner says."""


def choose_runner(
    query: CeqlQuery, terms: TermDictionary, stream_names: Mapping[str, str] = {}, page: Page | None = None
) -> CeqlPlan:
    """Compile a checked query for live keys if a condition compares two events or queries the knowledge base, else for
    determinised sets. `page`: as for `compile_query`. Raises QueryError, LimitError."""
    if first_join(query.formula) is None and first_graph(query.formula) is None:
        return compile_ceql(query, stream_names)
    return compile_joined(query, terms, stream_names, page)


def compile_joined(
    query: CeqlQuery, terms: TermDictionary, stream_names: Mapping[str, str] = {}, page: Page | None = None
) -> JoinedPlan:
    """The plan of a query with joins or GRAPH. Raises QueryError."""
    if query.vocab is None:
        raise QueryError("the query has no VOCAB", query.span, query.text, code="vocab")
    found = as_sequence(query)
    streams = tuple(stream_names.get(s.name, query.vocab + s.name) for s in query.streams)
    form = found.query.form
    assert isinstance(form, Select), "a complex event is a match, not a group"
    declared = tuple(
        replace(stream, iri=NamedNode(iri)) for stream, iri in zip(found.query.streams, streams, strict=True)
    )
    translated = replace(found.query, form=replace(form, columns=()), streams=declared, text=query.text)
    kept = tuple(dict.fromkeys(c.name for c in query.columns)) if query.columns else variables(query.formula)
    names = {gpm.name: held for gpms, held in zip(found.gpms, found.held, strict=True) for gpm in gpms}
    plan = compile_query(translated, terms, page=page)
    masks = [sum(1 << i for i, v in enumerate(kept) if v in names[letter.letter[0]]) for letter in plan.letters]
    words = words_of(len(kept))
    lowered = Lowered(
        kept,
        _attributes(translated, query.vocab),
        replace(found.query, streams=declared),
        plan,
        np.array([as_words(mask, words) for mask in masks], np.uint64).reshape(len(masks), words),
    )
    return SequencePlan(
        query, streams, plan.letters, plan.clauses, plan.ranking, query.totals, lowered, _because(query)
    )


def _because(query: CeqlQuery) -> str:
    """The condition that determinised sets cannot evaluate."""
    join, asked = first_join(query.formula), first_graph(query.formula)
    found = join or asked
    if found is None:
        return "the caller asks for them"
    test, does = found[0], "compares events of two variables" if join else "asks the knowledge base"
    return f"{test.name}[{render_predicate(test.predicate)}] {does}"


def _attributes(translated: Query, vocab: str) -> tuple[Variable, ...]:
    """Those of events; what a pattern of the knowledge base names is none."""
    of_events = [e for gpm in translated.gpms for e in gpm.pattern.elements if not isinstance(e, Filter)]
    iris = (each.predicate.value for each in parts(of_events, TriplePattern) if isinstance(each.predicate, NamedNode))
    return tuple(Variable(iri.removeprefix(vocab)) for iri in dict.fromkeys(iris) if iri.startswith(vocab))
