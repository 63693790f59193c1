"""A query over a store, as `why` sees it: what the store holds now."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from pyoxigraph import Variable

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.grammar.algebra import Group, SubSelect
from oxiseq.grammar.render_rsp import render_rsp
from oxiseq.grammar.rsp_algebra import RspQuery
from oxiseq.grammar.scope import visible_variables
from oxiseq.languages.reasons.bounds import FREE, Bounds
from oxiseq.languages.reasons.facts import facts_of
from oxiseq.languages.reasons.provenance import Provenance
from oxiseq.languages.reasons.report import Funnel, Near, Stage, Why, Wording
from oxiseq.languages.reasons.where.parts import asked_alone
from oxiseq.languages.reasons.where.subject import WhereSubject, answer_stage, behind
from oxiseq.languages.reasons.why import MOST, FoundRow, FoundRows, WhyCondition, why_of


class StoreSubject(WhereSubject):
    """Rows of a standing query; `at`: when it is asked (µs)."""

    language = "sparql"
    late = 0
    wording = Wording("patterns")

    def __init__(self, query: RspQuery, kb: KnowledgeBase, at: int, bounds: Bounds) -> None:
        super().__init__(query.body.where, query.prefixes)
        self.query, self.kb, self.at, self._check = query, kb, at, bounds.check

    def begun(self, variant: Group) -> FoundRows:
        return self._rows(SubSelect(None, variant, limit=MOST))

    def whole(self, variant: None = None) -> FoundRows:
        body = self.query.body
        return self._rows(replace(body, limit=min(MOST if body.limit is None else body.limit, MOST)))

    def _rows(self, body: SubSelect) -> FoundRows:
        asked = replace(self.query, form="SELECT", template=(), body=body)
        names = [
            (each if isinstance(each, Variable) else each[1]).value
            for each in (visible_variables(body.where) if body.projection is None else body.projection)
        ]
        self._check()
        found: list[FoundRow] = []
        for row in self.kb.solutions(render_rsp(asked)):
            self._check()
            found.append(FoundRow((), {name: row[name] for name in names}))
        return FoundRows(tuple(found), len(found) == MOST)

    def outcome(self) -> Stage:
        return answer_stage(self.query.body, self.whole())

    def patterns(self) -> Iterator[Funnel]:
        steps = tuple(self.alone(holder, element) for holder, element in asked_alone(self.where))
        yield Funnel("the store", "", 0, steps)

    def near(self, condition: WhyCondition, answer: FoundRow) -> Near:
        return Near({}, condition.read(answer))

    def provenances(self, whole: FoundRows, most: int) -> Iterator[Provenance]:
        where = self.begun(self.where)
        for answer in whole.all[:most]:
            rows = behind(answer, where)
            facts = dict.fromkeys(q for row in rows for q in facts_of(self.where, row.values, self.kb, default=True))
            yield Provenance(self.at or 0, answer.values, (), tuple(facts))


def why_over_store(query: RspQuery, kb: KnowledgeBase, provenance: int, bounds: Bounds = FREE) -> Why:
    """Why a standing query has rows or not, over what the store holds now. Raises KbError, and whatever the bounds
    raise."""
    return why_of(StoreSubject(query, kb, time.time_ns() // 1000, bounds), provenance)
