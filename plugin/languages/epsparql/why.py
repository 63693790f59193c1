"""Why an EP-SPARQL query has answers or not: rows with intervals, over whole streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

import numpy as np

from oxiseq.engine.events.faults import Faults
from oxiseq.engine.flow.epsparql.facts import Stamps
from oxiseq.engine.flow.epsparql.query import compile_intervals
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.run.intervals import IntervalRun
from oxiseq.grammar.algebra import GraphPattern, Group, PatternElement, Select
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.render import render_group
from oxiseq.languages.reasons.read import FREE, Bounds, History, Span, worked
from oxiseq.languages.reasons.report import Funnel, Near, Provenance, Step, Wording
from oxiseq.languages.reasons.where.origins import Origins, held_within
from oxiseq.languages.reasons.where.parts import Holder, asked_alone
from oxiseq.languages.reasons.where.subject import WhereSubject, behind, counted, rows
from oxiseq.languages.reasons.why import MOST, FoundRow, FoundRows, WhyCondition

_INSTANTS: Final = 256
"""Instants between two checks of the number of rows."""


class IntervalSubject(WhereSubject):
    """A query, its rules and its data."""

    language = "epsparql"
    wording = Wording("patterns")
    chained = False

    def __init__(
        self, query: EpQuery, rules: Sequence[EpQuery], history: History, kb: KnowledgeBase, bounds: Bounds = FREE
    ) -> None:
        super().__init__(query.where, query.prefixes)
        self.history, faults = _intervals_of(history)
        self.query, self.rules, self.kb, self.bounds = query, tuple(rules), kb, bounds
        self.late, self.notes = history.late, faults.lines

    def begun(self, variant: Group) -> FoundRows:
        """Up to a few more than `MOST`: later rows are not read."""
        query = self.query
        return self._rows(EpQuery(Select(None), variant, query.streams, query.prefixes, query.base), MOST)

    def whole(self, variant: None = None) -> FoundRows:
        return self._rows(self.query, self.bounds.matches)

    def _rows(self, query: EpQuery, most: int | None) -> FoundRows:
        plan = compile_intervals(query, self.rules, tuple(self.history.batches))
        run = IntervalRun(plan, self.history.terms, self.kb)
        found, more = worked(run, plan.streams, self.history, self.bounds, most, _INSTANTS)
        batch = MatchBatch.concat(found, len(plan.variables))
        first = batch.event_time[batch.ends[:-1]] if len(batch) else np.zeros(0, np.int64)
        spans = np.stack([first, batch.time], axis=1)
        return FoundRows(rows((v.value for v in plan.variables), batch.values, self.history.terms, spans), more)

    def ends(self, begun: Mapping[int, FoundRows]) -> list[int]:
        """The first part from which on there are no rows. Parts before may have none either: what only the knowledge
        base says has no time, and is no answer by itself."""
        first = max((number for number, answers in begun.items() if answers), default=-1) + 1
        return [first] if first in begun else []

    def near(self, condition: WhyCondition, answer: FoundRow) -> Near:
        return Near({"row": _span(answer)}, condition.read(answer))

    def patterns(self) -> Iterator[Funnel]:
        for iri, batch in self.history.batches.items():
            distinct = len(np.unique(np.stack(batch.ids, axis=1), axis=0))
            yield Funnel("the query", f"<{iri}>", len(batch), (Step("holds", "different triples", distinct),))
        each = tuple(self.alone(holder, element) for holder, element in asked_alone(self.where))
        yield Funnel("patterns, each alone", "", 0, each)
        if self.rules:
            found = [len(self.begun(rule.where)) for rule in self.rules]
            derived = tuple(counted(number, "row", f"of rule {n + 1}") for n, number in enumerate(found))
            yield Funnel("rules", "", 0, derived)

    def alone(self, holder: Holder, element: PatternElement) -> Step:
        if not isinstance(holder, GraphPattern):
            return super().alone(holder, element)
        where = replace(holder, pattern=Group((element,)))  # rows without a time are no answer of a query over streams
        found = self.kb.solutions(f"SELECT * WHERE {render_group(Group((where,)))} LIMIT {MOST}")
        return counted(sum(1 for _ in found), "row", f"of {self.text(where)}")

    def provenances(self, whole: FoundRows, most: int) -> Iterator[Provenance]:
        """Of the first answers: the events in an answer's interval that have a triple of it. What rules derive is in no
        event, so no reason is given for that."""
        if not whole or not most:
            return
        where = self.begun(self.where)
        for answer in whole.all[:most]:
            start, end = _span(answer)
            held = held_within(self.history, Span(start, end + 1))
            origins = Origins(held, self.history.terms, self.kb, beside=True)
            yield origins.provenance(end, self.where, answer.values, behind(answer, where))


def _span(answer: FoundRow) -> tuple[int, int]:
    """The interval of a row (µs)."""
    start, end = cast("tuple[int, int]", answer.key)
    return start, end


def _intervals_of(history: History) -> tuple[History, Faults]:
    """A history without the events that are no intervals, and those."""
    faults, batches, stamps = Faults(), dict(history.batches), Stamps(history.terms)
    for iri, batch in history.batches.items():
        wrong = stamps.unfit(iri, batch, stamps.starts(batch).wrong)
        if wrong is not None:
            faults = faults.more(wrong)
            batches[iri] = batch.take(wrong.fit)
    return replace(history, batches=batches), faults
