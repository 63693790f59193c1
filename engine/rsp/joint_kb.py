"""What several queries know of the knowledge base, as one.

In the flow: each query's own answers of the KB, all of the same version → **an event for each graph**, with what
any of them knows, and **changes** of each table. Each query asks the KB itself: so one that leaves the
others knows what it has received.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow.delta import Delta, Ids
from oxiseq.engine.flow.knowledge import KbAnswers, Knowledge, difference, event_of
from oxiseq.engine.flow.plan import Asked, GraphPlace
from oxiseq.engine.terms.saved import Stateful


class JointKnowledge(Stateful):
    """The KB's part in a plan for several queries. known: theirs, by number."""

    def __init__(self, graphs: Sequence[GraphPlace], tables: Sequence[Asked], known: Sequence[Knowledge]) -> None:
        self._graphs, self._tables = graphs, tables
        self._known: dict[int, Knowledge] = dict(enumerate(known))
        self._version: int | None = None
        self._told = not known
        self._before = [np.zeros((0, table.width), np.uint32) for table in tables]
        self._earlier: list[tuple[Knowledge, int | None, KbAnswers | None]] = []
        """What each knew at the last `mark`, as far as that has changed since."""

    def mark(self) -> None:
        """Remember what all know now, for `back_to_mark`."""
        self._earlier.clear()

    def back_to_mark(self) -> None:
        """Each query knows what it knew then; this is of no use any more."""
        for knowledge, version, told in reversed(self._earlier):
            knowledge.version, knowledge.told = version, told

    def forget(self, number: int) -> None:
        """A query has left."""
        self._known.pop(number, None)

    def changed(self) -> bool:
        """Whether the version has changed since the last time; all know it then. They have queried the KB before."""
        version = self._version
        for knowledge in self._known.values():
            self._earlier.append((knowledge, knowledge.version, knowledge.told))
            knowledge.changed()
            self._version = knowledge.version
            if self._told and self._version == version:  # as for one, so for all
                return False
        self._told = True
        return bool(self._known)

    def unchanged(self) -> bool:
        """Whether rows that all know are still to be emitted."""
        first, self._told = not self._told, True
        for knowledge in self._known.values():
            self._version = knowledge.version
        return first and self._version is not None

    def graphs(self) -> list[EventBatch]:
        """All that is known of each."""
        return [event_of(_distinct(list(self._events(place)))) for place in self._graphs]

    def _events(self, place: GraphPlace) -> Iterator[Ids]:
        asked: dict[str, Ids] = {}
        for knowledge in self._known.values():
            number = knowledge.places.get(place)
            if number is not None and knowledge.told is not None:
                asked[knowledge.texts[number]] = np.column_stack(knowledge.told.graphs[number].ids)
        yield from asked.values()

    def tables(self, tick: int) -> Iterator[Delta]:
        """The changes of each since the last call, at a tick."""
        for number, table in enumerate(self._tables):
            before = self._before[number]
            now = self._before[number] = self._table(table.text, before)
            yield difference(before, now, tick)

    def _table(self, text: str, before: Ids) -> Ids:
        for knowledge in self._known.values():
            number = knowledge.places.get(text)
            if number is not None and knowledge.told is not None:
                return knowledge.told.tables[number]
        return before  # no query reads it any more

    def held_ids(self) -> Iterator[Ids]:
        """The terms of the tables."""
        yield from self._before


def _distinct(parts: Sequence[Ids]) -> Ids:
    """Each triple once."""
    if len(parts) == 1:
        return parts[0]
    return np.unique(np.concatenate([np.zeros((0, 3), np.uint32), *parts]), axis=0)
