"""CEQL queries with joins or GRAPH, which live keys run: `explain` and `why` show the sequence that they become."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import to_text
from oxiseq.engine.plan.joined import JoinedPlan
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.ceql_algebra import first_join
from oxiseq.grammar.ceql_graphs import first_graph
from oxiseq.grammar.render_ceql import render_formula, render_predicate
from oxiseq.languages.ceql.reasons.events import without_faults
from oxiseq.languages.explanation import WITH_EQUALS, Explanation
from oxiseq.languages.reasons.bounds import Bounds
from oxiseq.languages.reasons.read import History
from oxiseq.languages.reasons.report import Why
from oxiseq.languages.spaseq.explain import explain
from oxiseq.languages.spaseq.explanation import SpaseqExplanation
from oxiseq.languages.spaseq.reasons.why import why_of
from oxiseq.pictures.drawing import Drawing
from oxiseq.sources.knowledge import Kb, knowledge_of


@dataclass(frozen=True, slots=True)
class JoinedExplanation(Explanation):
    """The formula, why live keys run it, and the sequence that it becomes."""

    formula: str
    runner: str
    sequence: SpaseqExplanation

    def __str__(self) -> str:
        return f"{self.formula}\nrunner: {self.runner}\n\n{self.sequence}"

    def json(self) -> dict[str, Any]:
        return {"formula": self.formula, "runner": self.runner, **self.sequence.json()}

    @property
    def drawing(self) -> Drawing:
        return self.sequence.drawing

    @property
    def summary(self) -> tuple[str, ...]:
        return (self.formula, f"runner: {self.runner}", *self.sequence.summary)


def explain_joined(plan: JoinedPlan) -> JoinedExplanation:
    """The explanation of a plan."""
    join, asked = first_join(plan.query.formula), first_graph(plan.query.formula)
    found = join or asked
    assert found is not None, "else determinised sets run it"
    test, does = found[0], "compares events of two variables" if join else "asks the knowledge base"
    because = f"{test.name}[{render_predicate(test.predicate)}] {does}"
    sequence = replace(explain(compile_query(plan.runner.translated, TermDictionary())), sharing=WITH_EQUALS)
    return JoinedExplanation(render_formula(plan.query.formula), f"live keys, since {because}", sequence)


def why_joined(plan: JoinedPlan, history: History, kb: Kb, provenance: int, bounds: Bounds) -> Why:
    """Reasons for the sequence that the query is compiled to. Raises OxiseqError where two events have one time: those
    are one instant of a sequence, and two positions of CEQL."""
    history, faults = without_faults(plan.query.vocab or "", plan.runner.attributes, history)
    times: set[int] = set()
    for batch in history.batches.values():
        for time in batch.time.tolist():
            if time in times:
                needs = "why of a query with joins or GRAPH needs events at different times"
                raise OxiseqError(f"{needs}; two are at {to_text(time)}")
            times.add(time)
    found = why_of(plan.runner.translated, history, knowledge_of(kb), provenance, bounds)
    return replace(found, language=plan.query.language, notes=(*faults.lines, *found.notes))
