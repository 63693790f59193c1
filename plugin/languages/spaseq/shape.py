"""What the matches of a SPAseq query have in common."""

from __future__ import annotations

from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Construct
from oxiseq.matches.shape import Shape


def spaseq_shape(plan: QueryPlan, terms: TermDictionary) -> Shape:
    """Rows with the events of each GPM; a row of a group has no events. With a trailing negation matches are decided
    after their ends."""
    answer, graphs = plan.runner.answer, isinstance(plan.query.form, Construct)
    listed = plan.summary is None
    positive = {gpm for letter in plan.letters if letter.positive for gpm in letter.letter}
    streams = {gpm: plan.streams[each.stream] for gpm, each in plan.runner.gpms.items()}
    return Shape(
        terms,
        "ASK" if answer.ask else "CONSTRUCT" if graphs else "SELECT",
        tuple(column.variable.value for column in answer.columns),
        plan.streams,
        answer.into,
        dict(plan.query.prefixes),
        answer.template,
        lanes=tuple(gpm for gpm in plan.runner.gpms if gpm in positive) if listed else (),
        letters=tuple(tuple((gpm, streams[gpm]) for gpm in letter.letter) for letter in plan.letters),
        spans=listed,
        later=any(ending.guards for ending in plan.runner.automaton.endings),
        vocab=dict(plan.query.prefixes).get("", ""),
    )
