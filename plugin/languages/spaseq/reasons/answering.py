"""A query run over a history: its matches as plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import TypeAlias

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.plan.ranking import order_of
from oxiseq.engine.run.sequence import run_of
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Limit, Query, Select, Summary
from oxiseq.grammar.levels import summarises
from oxiseq.grammar.places import overview
from oxiseq.grammar.records import dataclass
from oxiseq.languages.reasons.bounds import FREE, Bounds
from oxiseq.languages.reasons.read import History
from oxiseq.languages.reasons.working import steps
from oxiseq.languages.spaseq.shape import spaseq_shape

MOST = 1_000
"""Matches of one completing event that are counted."""

Events: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
"""(GPM, the times of its events), by name."""


@dataclass(frozen=True, slots=True)
class Found:
    """A match of a beginning: what it binds, and its events."""

    bindings: Mapping[str, Term | None]
    events: Events

    @property
    def key(self) -> tuple[Events, tuple[tuple[str, str], ...]]:
        """Equal for the same events with the same mapping."""
        return self.events, tuple(sorted((v, str(t)) for v, t in self.bindings.items()))

    def times(self, gpm: str) -> tuple[int, ...]:
        """The times of a GPM's events."""
        return dict(self.events).get(gpm, ())


@dataclass(frozen=True, slots=True)
class Answered:
    """All matches; `more` if only the first were taken, of some completing event or of all."""

    found: tuple[Found, ...]
    more: bool


def answered(
    query: Query, history: History, kb: KnowledgeBase, bounds: Bounds = FREE, *, as_is: bool = False
) -> Answered:
    """Every match with all variables; without the query's strategy, CONSUME BY and LIMIT unless `as_is`."""
    bare = replace(query, form=Select(None), limit=Limit(MOST), consumption=None, summary=Summary(), sample=None)
    if as_is:
        seen = overview(query)
        limit: Limit | None = Limit(MOST)
        summary = Summary()
        if not summarises(seen):
            limit = None if query.sample is not None else query.limit or limit
            summary = Summary(order_by=order_of(seen), report=query.summary.report)
        bare = replace(query, form=Select(None, False, query.selection), limit=limit, summary=summary)
    plan = compile_query(bare, history.terms)
    run, shape = run_of(plan, history.terms, kb, history.start), spaseq_shape(plan, history.terms)
    found: list[Found] = []
    ends: Counter[int] = Counter()
    for part in chain.from_iterable(steps(run, plan.streams, history, bounds)):
        ends.update(part.time.tolist())
        block = shape.block([part])
        for i in range(len(part)):
            if len(found) == bounds.matches:
                return Answered(tuple(found), True)
            events = tuple(sorted((gpm, tuple(t for _, t in each)) for gpm, each in block.events(i).items()))
            found.append(Found(dict.fromkeys(shape.index) | block.row(i), events))
    return Answered(tuple(found), any(count >= MOST for count in ends.values()))
