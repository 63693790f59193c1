"""What the answers of an EP-SPARQL query have in common."""

from __future__ import annotations

from oxiseq.engine.flow.epsparql.facts import start_triple
from oxiseq.engine.flow.epsparql.query import IntervalPlan
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Construct
from oxiseq.matches.shape import Shape


def interval_shape(plan: IntervalPlan, terms: TermDictionary) -> Shape:
    """Rows with the interval of all that they are made of (semantics.md 5)."""
    return Shape(
        terms,
        "ASK" if plan.ask else "CONSTRUCT" if isinstance(plan.query.form, Construct) else "SELECT",
        tuple(v.value for v in plan.variables),
        plan.streams,
        plan.feeds,
        dict(plan.query.prefixes),
        plan.template,
        stamp=start_triple,
        vocab=dict(plan.query.prefixes).get("", ""),
    )
