"""Whether groups can be made without listing matches, and the values by which a run distinguishes counted matches.

In the flow: summary plan → **counted or listed** → run. Matches are counted where everything that a group needs
of a match is a value that the run can carry: variables (of a repeated GPM those of its last iteration), the times at
which it starts in a sliding window, and at which it ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyoxigraph import Variable

from oxiseq.engine.plan.summary import SummaryPlan
from oxiseq.engine.sequence.states import StateGraph
from oxiseq.grammar.algebra import Aggregate, Expression, MatchFunction
from oxiseq.grammar.places import Overview
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.grammar.scope import expression_variables, subexpressions


def listed_because(
    summary: SummaryPlan, seen: Overview, ambiguous: bool, enriched: Iterable[str], graph: StateGraph
) -> str | None:
    """Why every match has to be listed; None: they can be counted. Parameters as of `each_because`."""
    because = each_because(seen, ambiguous, enriched, graph)
    if because is not None:
        return because
    write = SparqlWriter(dict(seen.query.prefixes))
    for expression in summary.written:
        part = _beyond(expression, summary, seen)
        if part is not None:
            return f"{write.expression(part)} is no value that a run carries"
    return None


def each_because(seen: Overview, ambiguous: bool, enriched: Iterable[str], graph: StateGraph) -> str | None:
    """Why every match has to be listed, whatever is wanted of it; None: for no such reason.

    `ambiguous`: two ways may lead to one match; `enriched`: GPMs whose matches are joined with the knowledge base when
    they are written.
    """
    query = seen.query
    if query.selection is not None:
        return f"{query.selection.strategy.value} chooses among those of an instant"
    if query.consumption is not None:
        return "CONSUME BY asks at which instants some end"
    if ambiguous:
        return "one match may be found in two ways"
    if query.filters:
        return "a FILTER behind SEQ asks each of them"
    if any(edge.bounded for edge in graph.edges):
        return "a bound of a gap lets some of those go that would be counted together"
    if any(edge.waits for edge in graph.edges):
        return "a trailing negation decides some when their window closes"
    for gpm in enriched:
        return f"the knowledge base may give one of {gpm} several mappings"
    return None


def _beyond(expression: Expression, summary: SummaryPlan, seen: Overview) -> Expression | None:
    """A value written for each match that a run does not carry."""
    query = seen.query
    sliding = query.window is not None and query.window.sliding
    counts_events = query.window is not None and query.window.events
    for part in subexpressions(expression):
        match part:
            case Aggregate("LAST", Variable() as variable) if _bound_by(variable, seen) == 1:
                continue  # else a run may carry another GPM's value while there is no iteration
            case Aggregate():
                return part
            case MatchFunction("ENDTIME") if summary.instantly and not counts_events:
                continue
            case MatchFunction("STARTTIME") if sliding and not counts_events:
                continue
            case MatchFunction():
                return part
    return None


def _bound_by(variable: Variable, seen: Overview) -> int:
    return len({p.name for p in seen.places if not p.negated and variable in seen.variables(p.name)})


def carried(summary: SummaryPlan) -> frozenset[Variable]:
    """The variables by whose values counted matches are distinguished."""
    return frozenset(v for expression in summary.written for v in expression_variables(expression))
