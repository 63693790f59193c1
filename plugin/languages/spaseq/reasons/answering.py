"""A query run over a history: its matches as plain values."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain
from typing import TypeAlias

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.plan.ranking import order_of
from oxiseq.engine.run.sequence import run_of
from oxiseq.grammar.algebra import Limit, Query, Select, Summary
from oxiseq.grammar.levels import summarises
from oxiseq.grammar.places import overview
from oxiseq.languages.reasons.bounds import FREE, Bounds
from oxiseq.languages.reasons.read import History
from oxiseq.languages.reasons.why import MOST, Answer, Answers
from oxiseq.languages.reasons.working import steps
from oxiseq.languages.spaseq.shape import spaseq_shape

Events: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
"""(GPM, the times of its events), by name: where an answer is found."""


def answered(
    query: Query, history: History, kb: KnowledgeBase, bounds: Bounds = FREE, *, as_is: bool = False, each: int = MOST
) -> Answers:
    """Every match with all variables, up to `each` of one completing event; without the query's strategy, CONSUME BY
    and LIMIT unless `as_is`."""
    bare = replace(query, form=Select(None), limit=Limit(each), consumption=None, summary=Summary(), sample=None)
    if as_is:
        seen = overview(query)
        limit: Limit | None = Limit(each)
        summary = Summary()
        if not summarises(seen):
            limit = None if query.sample is not None else query.limit or limit
            summary = Summary(order_by=order_of(seen), report=query.summary.report)
        bare = replace(query, form=Select(None, False, query.selection), limit=limit, summary=summary)
    plan = compile_query(bare, history.terms)
    run, shape = run_of(plan, history.terms, kb, history.start), spaseq_shape(plan, history.terms)
    found: list[Answer] = []
    ends: Counter[int] = Counter()
    for part in chain.from_iterable(steps(run, plan.streams, history, bounds)):
        ends.update(part.time.tolist())
        block = shape.block([part])
        for i in range(len(part)):
            if len(found) == bounds.matches:
                return Answers(tuple(found), True)
            events = tuple(sorted((gpm, tuple(t for _, t in each)) for gpm, each in block.events(i).items()))
            times = [time for _, of in events for time in of]
            values = dict.fromkeys(shape.index) | block.row(i)
            found.append(Answer(events, values, (max(times) - min(times), max(times)), events))
    return Answers(tuple(found), any(count >= each for count in ends.values()))
