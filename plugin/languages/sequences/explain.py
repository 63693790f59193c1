"""`explain` for a plan about the order of events, of whatever language.

In the flow: `SequencePlan` ─walk.py─▶ **facts** (facts.py) ─▶ text (text.py), a picture or JSON (explanation.py).
Nothing is run; with a knowledge base its patterns are queried, so that their rows can be counted.
"""

from __future__ import annotations

from dataclasses import replace

from oxiseq.engine.cea.plan import DeterminisedSets
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.matches.plan import AnySequencePlan
from oxiseq.engine.plan.joined import JoinedPlan, Lowered
from oxiseq.engine.plan.keyed_tuples import tuple_correlation
from oxiseq.grammar.render_ceql import render_formula
from oxiseq.languages.explanation import WITH_EQUALS
from oxiseq.languages.sequences.explanation import SequenceExplanation
from oxiseq.languages.sequences.live_keys import LiveKeysExplainer
from oxiseq.languages.sequences.sets import SetsExplainer


def explain(plan: AnySequencePlan, kb: KnowledgeBase | None = None) -> SequenceExplanation:
    """The facts about a compiled query; `kb` answers the GRAPH patterns. Raises KbError."""
    if isinstance(plan.runner, DeterminisedSets):
        return SetsExplainer(plan).explain()
    if isinstance(plan.runner, Lowered):
        return _lowered(plan, kb)
    return LiveKeysExplainer(plan, kb).explain()


def _lowered(plan: JoinedPlan, kb: KnowledgeBase | None) -> SequenceExplanation:
    """That of the sequence which the query becomes, with what its own language says."""
    found = LiveKeysExplainer(plan.runner.sequence, kb).explain()
    return replace(
        found,
        columns=plan.runner.variables,
        sequence=render_formula(plan.query.formula),
        runner=f"{plan.runner.name}, since {plan.because}",
        becomes=found.sequence,
        correlation=tuple_correlation(plan).text(),
        sharing=WITH_EQUALS,
    )
