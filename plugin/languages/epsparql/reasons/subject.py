"""An EP-SPARQL query as `why` sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

import numpy as np

from oxiseq.grammar.algebra import GraphPattern, Group, PatternElement
from oxiseq.grammar.render import render_group
from oxiseq.languages.epsparql.reasons.asking import Source, intervals_of
from oxiseq.languages.reasons.provenance import Provenance
from oxiseq.languages.reasons.read import Span
from oxiseq.languages.reasons.report import Funnel, Near, Step, Wording
from oxiseq.languages.reasons.where.origins import Origins, held_within
from oxiseq.languages.reasons.where.parts import Holder, asked_alone
from oxiseq.languages.reasons.where.subject import WhereSubject, behind, counted
from oxiseq.languages.reasons.why import MOST, Answer, Answers, Condition


class IntervalSubject(WhereSubject):
    """Rows with intervals, over whole streams."""

    language = "epsparql"
    wording = Wording("patterns")
    chained = False

    def __init__(self, source: Source) -> None:
        super().__init__(source.query.where, source.query.prefixes)
        history, faults = intervals_of(source.history)
        self.source = replace(source, history=history)
        self.late, self.notes = history.late, faults.lines

    def begun(self, variant: Group) -> Answers:
        return self.source.part(variant)

    def whole(self, variant: None = None) -> Answers:
        return self.source.whole()

    def ends(self, begun: Mapping[int, Answers]) -> list[int]:
        """The first part from which on there are no rows. Parts before may have none either: what only the knowledge
        base says has no time, and is no answer by itself."""
        first = max((number for number, answers in begun.items() if answers), default=-1) + 1
        return [first] if first in begun else []

    def near(self, condition: Condition, answer: Answer) -> Near:
        return Near({"row": _span(answer)}, condition.read(answer))

    def patterns(self) -> Iterator[Funnel]:
        for iri, batch in self.source.history.batches.items():
            distinct = len(np.unique(np.stack(batch.ids, axis=1), axis=0))
            yield Funnel("the query", f"<{iri}>", len(batch), (Step("holds", "different triples", distinct),))
        each = tuple(self.alone(holder, element) for holder, element in asked_alone(self.where))
        yield Funnel("patterns, each alone", "", 0, each)
        if self.source.rules:
            found = [len(self.begun(rule.where)) for rule in self.source.rules]
            derived = tuple(counted(number, "row", f"of rule {n + 1}") for n, number in enumerate(found))
            yield Funnel("rules", "", 0, derived)

    def alone(self, holder: Holder, element: PatternElement) -> Step:
        if not isinstance(holder, GraphPattern):
            return super().alone(holder, element)
        where = replace(holder, pattern=Group((element,)))  # rows without a time are no answer of a query over streams
        found = self.source.kb.solutions(f"SELECT * WHERE {render_group(Group((where,)))} LIMIT {MOST}")
        return counted(sum(1 for _ in found), "row", f"of {self.text(where)}")

    def provenances(self, whole: Answers, most: int) -> Iterator[Provenance]:
        """Of the first answers: the events in an answer's interval that have a triple of it. What rules derive is in no
        event, so no reason is given for that."""
        if not whole or not most:
            return
        where, source = self.begun(self.where), self.source
        for answer in whole.all[:most]:
            start, end = _span(answer)
            held = held_within(source.history, Span(start, end + 1))
            origins = Origins(held, source.history.terms, source.kb, beside=True)
            yield origins.provenance(end, self.where, answer.values, behind(answer, where))


def _span(answer: Answer) -> tuple[int, int]:
    """The interval of a row (µs)."""
    start, end = cast("tuple[int, int]", answer.key)
    return start, end
