"""Answers of CEQL queries, compared with the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ceql_strategies import VOCAB, CeqlEvent, CeqlSituation, as_tuples
from loaded import load
from reference.ceql import ComplexEvent, evaluate_ceql
from reference.choose import is_choice

import oxiseq
from oxiseq.grammar.ceql_algebra import CeqlQuery


def answer(situation: CeqlSituation, form: Callable[[Sequence[CeqlEvent]], Any], **options: Any) -> oxiseq.Matches:
    streams = {name: form([e for e in situation.events if e.stream == name]) for name in situation.streams}
    return oxiseq.run(situation.text, streams, language="ceql", **options)


def as_pairs(events: Sequence[CeqlEvent]) -> list[tuple[int, str]]:
    return [(e.time, e.graph) for e in events]


def check(situation: CeqlSituation, found: oxiseq.Matches, query: CeqlQuery | None = None) -> None:
    """Complex events, what holds them, their streams and times. `query`: for the reference, if not the text."""
    query = query or load(situation.text, "ceql")
    expected = evaluate_ceql(query, as_tuples(situation.events))
    got = [(m.positions.first, m.positions.last, frozenset(m.positions.all)) for m in found]
    assert found.events == len(situation.events) and not found.late
    assert [m.positions.last for m in found] == sorted(m.positions.last for m in found)
    if query.limit is None:
        assert Counter(got) == answers(expected)
    else:
        ends = dict.fromkeys(c.end for c in expected)
        assert is_choice(Counter(got), [answers([c for c in expected if c.end == e]) for e in ends], query.limit)
    held = {(c.start, c.end, c.positions): c.valuations for c in expected}
    for key, match in zip(got, found, strict=True):
        assert frozenset((v, p) for v, ps in match.positions.by.items() for p in ps) in held[key]
        assert match.at_us == situation.events[match.positions.last].time
        stood = {v: tuple(stood_at(situation.events[p]) for p in ps) for v, ps in match.positions.by.items()}
        assert match.events == stood


def answers(expected: Sequence[ComplexEvent]) -> Counter[tuple[int, int, frozenset[int]]]:
    return Counter((c.start, c.end, c.positions) for c in expected)


def stood_at(event: CeqlEvent) -> tuple[str, int]:
    return VOCAB + event.stream, event.time
