"""What the tests of events share: batches as plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from oxiseq.engine import kinds
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.terms.dictionary import TermDictionary

Content = list[tuple[int, list[tuple[str, str, str]]]]
Contents = Callable[[Iterable[EventBatch], TermDictionary], Content]


def batch_contents(batches: Iterable[EventBatch], terms: TermDictionary) -> Content:
    """Each event as its time and its triples in N-Triples form, blank nodes numbered as they appear."""
    result: Content = []
    for batch in batches:
        assert batch.offset[0] == 0
        assert batch.offset[-1] == batch.triples == len(batch.predicate) == len(batch.object)
        assert len(batch.offset) == len(batch) + 1
        for column in (batch.time, batch.offset, batch.subject, batch.predicate, batch.object):
            assert column.flags.c_contiguous
        for event in range(len(batch)):
            labels: dict[int, str] = {}

            def text(term: int, labels: dict[int, str] = labels) -> str:
                if terms.columns.kind[term] == kinds.BLANK:
                    return labels.setdefault(term, f"_:{len(labels)}")
                return terms.text(term)

            triples = [
                (text(int(batch.subject[row])), text(int(batch.predicate[row])), text(int(batch.object[row])))
                for row in range(batch.offset[event], batch.offset[event + 1])
            ]
            result.append((int(batch.time[event]), triples))
    return result
