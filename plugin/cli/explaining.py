"""The work of `oxiseq explain`."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from oxiseq.ceql import explain as ceql
from oxiseq.cli.knowledge import combined
from oxiseq.cli.options import QuerySource
from oxiseq.engine.cea.plan import compile_ceql
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.explain import explain
from oxiseq.explain_text import as_dot, as_text
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.replay import kb_store


def explained(source: QuerySource, kbs: Sequence[str], form: str) -> str:
    """The explanation as `text`, `dot` or `json`. Raises QueryError, KbError."""
    query = source.load()
    if isinstance(query, CeqlQuery):
        if kbs:
            raise click.BadParameter("a CEQL query asks no knowledge base", param_hint="--kb")
        with source.named():
            facts = ceql.explain_ceql(compile_ceql(query))
        return _json(facts.to_json()) if form == "json" else (ceql.as_dot if form == "dot" else ceql.as_text)(facts)
    with source.named():
        plan = compile_query(query, TermDictionary())
    explanation = explain(plan, StoreKb(kb_store(combined(kbs))) if kbs else None)
    if form == "json":
        return _json(explanation.to_json())
    return as_dot(explanation) if form == "dot" else as_text(explanation)


def _json(values: object) -> str:
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"
