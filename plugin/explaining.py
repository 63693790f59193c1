"""`oxiseq.explain`: what a query is compiled to, for notebooks."""

from __future__ import annotations

from oxiseq.engine.kb import StoreKb
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load
from oxiseq.grammar.algebra import Query
from oxiseq.knowledge import Kb, kb_store
from oxiseq.spaseq.explain import Explanation
from oxiseq.spaseq.explain import explain as explain_plan


def explain(text: str, kb: Kb = None) -> Explanation:
    """What a SPAseq query is compiled to; with `kb` its GRAPH patterns are asked. Notebooks show the automaton.

    Raises QueryError, KbError.
    """
    query = load(text, "spaseq")
    assert isinstance(query, Query)
    return explain_plan(compile_query(query, TermDictionary()), None if kb is None else StoreKb(kb_store(kb)))
