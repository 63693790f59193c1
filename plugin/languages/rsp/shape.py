"""What the answers of a query over windows have in common."""

from __future__ import annotations

from oxiseq.engine.rsp.plan import RspPlan
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.rsp_algebra import Report
from oxiseq.matches.shape import SPAN, Shape


def rsp_shape(plan: RspPlan, terms: TermDictionary) -> Shape:
    """Rows at instants; those that carry an event mapping have its span."""
    query = plan.query
    return Shape(
        terms,
        query.form,
        plan.columns,
        plan.streams,
        plan.feeds,
        dict(query.prefixes),
        query.template if query.form == "CONSTRUCT" else (),
        letters=SPAN if plan.timed else (),
        spans=plan.timed,
        ended=plan.report is Report.DSTREAM,
        vocab=dict(query.prefixes).get("", ""),
    )
