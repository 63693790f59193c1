"""CEQL queries with joins or GRAPH, which live keys run: `why` shows the sequence that they become."""

from __future__ import annotations

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import to_text
from oxiseq.engine.plan.joined import JoinedPlan
from oxiseq.languages.ceql.reasons.events import without_faults
from oxiseq.languages.reasons.bounds import Bounds
from oxiseq.languages.reasons.read import History
from oxiseq.languages.spaseq.reasons.subject import SequenceSubject
from oxiseq.sources.knowledge import Kb, knowledge_of


def joined_subject(plan: JoinedPlan, history: History, kb: Kb, bounds: Bounds) -> SequenceSubject:
    """The sequence that the query is compiled to. Raises OxiseqError where two events have one time: those
    are one instant of a sequence, and two positions of CEQL."""
    history, faults = without_faults(plan.query.vocab or "", plan.runner.attributes, history)
    times: set[int] = set()
    for batch in history.batches.values():
        for time in batch.time.tolist():
            if time in times:
                needs = "why of a query with joins or GRAPH needs events at different times"
                raise OxiseqError(f"{needs}; two are at {to_text(time)}")
            times.add(time)
    found = SequenceSubject(plan.runner.translated, history, knowledge_of(kb), bounds)
    found.language, found.notes = plan.query.language, faults.lines
    return found
