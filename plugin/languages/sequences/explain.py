"""`explain` for a plan about the order of events, of whatever language: one walk over the plan.

In the flow: `SequencePlan` → **facts** (facts.py) → text (text.py), a picture or JSON (explanation.py). What differs
between the runners live_keys.py and sets.py write. Nothing is run; with a knowledge base its patterns are queried, so
that their rows can be counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from oxiseq.engine.cea.plan import DeterminisedSets
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kernels.matches.records import EVERYTHING
from oxiseq.engine.matches.plan import AnySequencePlan, forgotten_by
from oxiseq.engine.plan.joined import JoinedPlan, Lowered
from oxiseq.engine.plan.keyed_tuples import tuple_correlation
from oxiseq.grammar.ceql.texts import render_formula
from oxiseq.grammar.render import render_clause
from oxiseq.languages.explanation import WITH_EQUALS
from oxiseq.languages.sequences.explanation import SequenceExplanation
from oxiseq.languages.sequences.live_keys import LiveKeysExplainer
from oxiseq.languages.sequences.sets import SetsExplainer

Explainer: TypeAlias = LiveKeysExplainer | SetsExplainer


def explain(plan: AnySequencePlan, kb: KnowledgeBase | None = None) -> SequenceExplanation:
    """The facts about a compiled query; `kb` answers the GRAPH patterns. Raises KbError."""
    if isinstance(plan.runner, Lowered):
        return _lowered(plan, kb)
    sets = isinstance(plan.runner, DeterminisedSets)
    by: Explainer = SetsExplainer(plan) if sets else LiveKeysExplainer(plan, kb)
    return SequenceExplanation(
        form=by.form,
        columns=by.columns(),
        sequence=by.sequence(),
        runner=f"{plan.runner.name}, since {plan.because}",
        window=by.window(),
        clauses=tuple(_clauses(by)),
        correlation=by.correlation(),
        sharing=by.sharing(),
        streams=tuple(by.streams()),
        gpms=tuple(by.gpms()),
        atoms=tuple(by.atoms()),
        states=tuple(by.states()),
        edges=tuple(by.edges()),
    )


def _clauses(by: Explainer) -> Iterator[str]:
    """PARTITION BY, strategy, CONSUME BY, ORDER BY, SAMPLE and LIMIT, and what is done for them."""
    plan, query = by.plan, by.plan.query
    if plan.by:
        yield f"PARTITION BY {by.partition()}: an event is split by its values, all partitions share one run"
    yield from by.filters()
    if query.selection is not None:
        yield f"SELECT {query.selection.strategy.value}: {by.selection()}"
    if query.consumption is not None:
        where = "" if forgotten_by(query) == EVERYTHING else " of its partition"
        yield f"CONSUME BY: after a match all partial matches{where} are discarded"
    if plan.summary is not None:
        yield from by.groups()
    elif plan.ranking is not None or query.sample is not None:
        yield f"{' '.join(by.ranked())}: {by.ranking()}"
    elif query.limit is not None:
        yield f"{render_clause(query.limit)}: {by.limit()}"


def _lowered(plan: JoinedPlan, kb: KnowledgeBase | None) -> SequenceExplanation:
    """That of the sequence which the query becomes, with what its own language says."""
    found = explain(plan.runner.sequence, kb)
    return replace(
        found,
        columns=plan.runner.variables,
        sequence=render_formula(plan.query.formula),
        runner=f"{plan.runner.name}, since {plan.because}",
        becomes=found.sequence,
        correlation=tuple_correlation(plan).text(),
        sharing=WITH_EQUALS,
    )
