"""What a query asks of the KB, as events of sources that hold the newest answer.

Where it stands: a KB of which another version holds → **an event for each source** → engine/windows, which takes in
what is new in it and gives up what is gone. Blank nodes, of the KB and of the rows of tables, keep their ids from
version to version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, NamedNode

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kb_in_time import KbInTime, Materialised
from oxiseq.engine.rsp.incremental import KbPart
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.terms.texts import Term

Ids = NDArray[np.uint32]


class KbEvents:
    """The KB's parts of one query: a `Reader` of events, one for each part."""

    def __init__(self, parts: Sequence[KbPart], kb: KbInTime, terms: TermDictionary) -> None:
        self._parts = parts
        self._kb = kb
        self._terms = terms
        self._events: Materialised[list[EventBatch]] | None = kb.materialised("events", self) if parts else None
        self._version: int | None = None
        self._blank: dict[str, int] = {}
        """Label → id."""
        self._rows: list[dict[tuple[int, ...], int]] = [{} for _ in parts]
        """By part: a row of a table, and how many equal ones were before it → its node."""

    def events(self, at: int) -> list[EventBatch]:
        """By part what is to be pushed at an instant: an event with all that it holds now if the KB has changed, else
        nothing. Raises KbError."""
        version = self._kb.version
        if self._events is None or version == self._version:
            return [EventBatch.empty() for _ in self._parts]
        found = [replace(event, time=np.array([at])) for event in self._events.now]
        self._version = version
        return found

    @property
    def texts(self) -> tuple[str, ...]:
        """What is asked."""
        return tuple(part.text for part in self._parts)

    def answer(self, kb: KnowledgeBase) -> list[EventBatch]:
        """All that it holds, at no time yet."""
        return [self._event(number, kb) for number in range(len(self._parts))]

    def _event(self, number: int, kb: KnowledgeBase) -> EventBatch:
        part = self._parts[number]
        ids: dict[Term | None, int] = {None: 0}
        flat: list[int] = []
        rows = _Rows(self._rows[number], self._terms)
        constants = [[t if isinstance(t, int) else self._terms.constant(t) for t in triple] for triple in part.triples]
        variable = [[isinstance(t, int) for t in triple] for triple in part.triples]
        for solution in self._solutions(part, kb):
            row = [self._id(term, ids) for term in solution]
            node = rows.node(row) if part.keyed else 0
            for triple, of_row in zip(constants, variable, strict=True):
                flat += [(row[t] if t >= 0 else node) if v else t for t, v in zip(triple, of_row, strict=True)]
        self._rows[number] = rows.now
        columns = [np.ascontiguousarray(c) for c in np.array(flat, np.uint32).reshape(-1, 3).T]
        batch = EventBatch(np.zeros(1, np.int64), np.array([0, len(columns[0])]), *columns)
        self._terms.hold(*batch.ids)
        return batch

    @staticmethod
    def _solutions(part: KbPart, kb: KnowledgeBase) -> list[tuple[Term, ...]]:
        """In an order that does not depend on the KB's."""
        found = (tuple(solution[i] for i in range(part.width)) for solution in kb.solutions(part.text))
        kept = [row for row in found if all(isinstance(row[i], NamedNode) for i in part.graphs)]
        return sorted(kept, key=lambda row: [_text(term) for term in row])

    def _id(self, term: Term, ids: dict[Term | None, int]) -> int:
        known = ids.get(term)
        if known is None:
            known = self._blank_id(term) if isinstance(term, BlankNode) else self._terms.intern(term)
            ids[term] = known
        return known

    def _blank_id(self, term: BlankNode) -> int:
        known = self._blank.get(term.value)
        if known is None:
            known = self._blank[term.value] = self._terms.blank()
        return known

    def saved(self, made: list[EventBatch], terms: SavedTerms) -> State:
        """For a snapshot."""
        for event in made:
            for ids in event.ids:
                terms.ids(ids)
        return {"events": [event.save() for event in made]}

    def restored(self, state: State, terms: KnownTerms) -> list[EventBatch]:
        """What `saved` was given."""
        events = [EventBatch.restored(event, terms) for event in state["events"]]
        for event in events:
            self._terms.hold(*event.ids)
        return events

    # --- what it holds ------------------------------------------------------------------------------

    def held_ids(self) -> Iterator[Ids]:
        """Of blank nodes."""
        yield np.array([*self._blank.values()], np.uint32)
        for rows in self._rows:
            yield np.array([*rows.values()], np.uint32)
            yield np.array([i for key in rows for i in key[1:]], np.uint32)

    def save(self, terms: SavedTerms) -> State:
        """The blank nodes; the KB is asked again."""
        return {
            "labels": [*self._blank],
            "ids": terms.ids(np.array([*self._blank.values()], np.uint32)),
            "counts": [[key[0] for key in rows] for rows in self._rows],
            "rows": [terms.ids(np.array([(*key[1:], node) for key, node in rows.items()], np.uint32))
                     for rows in self._rows],
        }  # fmt: skip

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Know them again."""
        self._blank = dict(zip(state["labels"], terms.ids(state["ids"]).tolist(), strict=True))
        for number, (counts, saved) in enumerate(zip(state["counts"], state["rows"], strict=True)):
            rows = terms.ids(saved).reshape(len(counts), self._parts[number].width + 1).tolist()
            self._rows[number] = {(int(n), *row[:-1]): row[-1] for n, row in zip(counts, rows, strict=True)}


class _Rows:
    """The nodes of a table's rows: a row keeps the one that it had."""

    def __init__(self, before: dict[tuple[int, ...], int], terms: TermDictionary) -> None:
        self._before, self._terms = before, terms
        self._seen: Counter[tuple[int, ...]] = Counter()
        self.now: dict[tuple[int, ...], int] = {}

    def node(self, row: list[int]) -> int:
        values = tuple(row)
        key = (self._seen[values], *values)
        self._seen[values] += 1
        known = self._before.get(key)
        self.now[key] = self._terms.blank() if known is None else known
        return self.now[key]


def _text(term: Term) -> str:
    return "_:" if isinstance(term, BlankNode) else str(term)
