"""The engine's and the reference's answers to one query, as bags that can be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TypeAlias

from pyoxigraph import Store, Triple
from reference.epsparql import Answer, evaluate_ep, evaluate_using_up, stamped

from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.flow.epsparql.facts import start_triple
from oxiseq.engine.flow.epsparql.query import compile_intervals
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.run.intervals import IntervalRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import check, parse, render
from oxiseq.grammar.ep_algebra import EpQuery

Event: TypeAlias = tuple[int, int, Sequence[Triple]]
"""(start, end, triples)."""
Bag: TypeAlias = Counter[tuple[int, int, tuple[tuple[str, str], ...]]]
S = "urn:s"


def read(query: EpQuery) -> EpQuery | None:
    """The query as it is read from its text; None where the checks refuse it."""
    text = render(query)
    again = parse(text, "epsparql")
    return None if any(f.severity == "error" for f in check(again, text)) else again


def reference_bag(
    query: EpQuery, events: Iterable[Event], kb: Store | None = None, rules: Sequence[EpQuery] = ()
) -> Bag:
    """What the reference answers."""
    return _bag_of(evaluate_ep(query, stamped(events), kb, rules))


def changing_bag(query: EpQuery, events: Iterable[Event], kb_at: Callable[[float], Store]) -> Bag:
    """What the reference answers where triples are used up and the knowledge base changes."""
    return _bag_of(evaluate_using_up(query, stamped(events), kb_at))


def _bag_of(found: Iterable[Answer]) -> Bag:
    return Counter((a.start, a.end, tuple(sorted((v.value, str(t)) for v, t in a.bindings.items()))) for a in found)


class Engine:
    """A run of one query over one stream."""

    def __init__(self, query: EpQuery, kb: Store | StoreKb | None = None, rules: Sequence[EpQuery] = ()) -> None:
        self.terms = TermDictionary()
        self.plan = compile_intervals(query, rules, [S])
        self.kb = kb if isinstance(kb, StoreKb) else StoreKb(kb if kb is not None else Store())
        self.run = IntervalRun(self.plan, self.terms, self.kb)

    def push(self, events: Iterable[Event]) -> list[MatchBatch]:
        """Events as one batch, and what is complete then."""
        pairs = [(end, [*graph, start_triple(start)] if start != end else list(graph)) for start, end, graph in events]
        self.run.push(S, encode_events(pairs, self.terms))
        return self.run.advance()

    def close(self) -> list[MatchBatch]:
        self.run.close()
        return self.run.advance()

    def bag(self, batches: Iterable[MatchBatch]) -> Bag:
        """Answers as a bag."""
        names = [v.value for v in self.plan.variables]
        return Counter(
            (
                int(b.event_time[2 * i]),
                int(b.time[i]),
                tuple(sorted((n, str(self.terms.term(int(x)))) for n, x in zip(names, b.values[i], strict=True) if x)),
            )
            for b in batches
            for i in range(len(b))
        )


def engine_bag(
    query: EpQuery, events: Sequence[Event], kb: Store | None = None, rules: Sequence[EpQuery] = (), size: int = 4096
) -> Bag:
    """What the engine answers when events come so many at a time."""
    engine = Engine(query, kb, rules)
    found: list[MatchBatch] = []
    left = iter(events)
    while part := list(islice(left, size)):
        found += engine.push(part)
    found += engine.close()
    ends = [int(t) for b in found for t in b.time]
    assert ends == sorted(ends)
    return engine.bag(found)
