"""The work of `oxiseq explain`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from oxiseq.cli.knowledge import combined
from oxiseq.cli.options import QuerySource
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.explain import explain
from oxiseq.explain_text import as_dot, as_text
from oxiseq.replay import kb_store


def explained(source: QuerySource, kbs: Sequence[str], form: str) -> str:
    """The explanation as `text`, `dot` or `json`. Raises QueryError, KbError."""
    query = source.load()
    with source.named():
        plan = compile_query(query, TermDictionary())
    explanation = explain(plan, StoreKb(kb_store(combined(kbs))) if kbs else None)
    if form == "json":
        return json.dumps(explanation.to_json(), indent=2, ensure_ascii=False) + "\n"
    return as_dot(explanation) if form == "dot" else as_text(explanation)
