"""A plan's queries to the knowledge base, and how their answers change (operators.md, 4.6).

In the flow: a KB of which another version holds → **an event for each graph** that patterns are about, and **what
comes and goes** of each table that is needed. Queried once for each version, whatever the number of instants.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from pyoxigraph import BlankNode, Variable

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow.delta import Delta, Ids
from oxiseq.engine.flow.plan import Asked, GraphPlace
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kb_in_time import KbInTime, Materialised
from oxiseq.engine.terms.blanks import KbBlanks
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, Stateful
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Bind, GraphPattern, Group, SubSelect, TermOrVariable, TriplePattern, Union
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.render_sparql import select_text

_PLACES: Final = (Variable("s"), Variable("p"), Variable("o"))


@dataclass(frozen=True, slots=True)
class KbGraph:
    """A graph of the KB, and the patterns that are about it."""

    place: GraphPlace
    patterns: tuple[TriplePattern, ...]

    @property
    def text(self) -> str:
        """The question for its triples that agree with one of the patterns."""
        branches = [_branch(pattern, self.place) for pattern in self.patterns]
        element = branches[0] if len(branches) == 1 else Union(tuple(branches))
        return select_text(SubSelect(None, Group((element,))), _PLACES)


class KbAnswers(NamedTuple):
    """Of one version. graphs: an event each, at no time yet; tables: u32[rows, columns] each."""

    graphs: list[EventBatch]
    tables: list[Ids]


class KbPart(Stateful):
    """The KB's part in a plan, whose operators have had the tables of some version."""

    def __init__(self, tables: Sequence[Asked]) -> None:
        self._tables = tables
        self._before = [np.zeros((0, table.width), np.uint32) for table in tables]

    @abstractmethod
    def changed(self) -> KbAnswers | None:
        """All that holds now, if that is another version than the last time. Raises KbError."""

    @abstractmethod
    def unchanged(self) -> KbAnswers | None:
        """The rows emitted last, whatever holds now, for receivers that do not have them yet."""

    def changes(self, answers: KbAnswers, tick: int) -> list[Delta]:
        """The changes of each table since the last call, at a tick."""
        found = []
        for number, now in enumerate(answers.tables):
            before, self._before[number] = self._before[number], now
            found.append(difference(before, now, tick))
        return found

    def held_ids(self) -> Iterator[Ids]:
        """The terms of the tables."""
        yield from self._before


class Knowledge(KbPart):
    """The KB's part in a run: a `Reader`. name: unique in the run."""

    def __init__(
        self,
        graphs: Sequence[KbGraph],
        tables: Sequence[Asked],
        kb: KbInTime,
        blanks: KbBlanks,
        terms: TermDictionary,
        name: str = "flow",
    ) -> None:
        super().__init__(tables)
        self._graphs = graphs
        self._texts = [graph.text for graph in graphs] + [table.text for table in tables]
        self._kb, self._blanks, self._terms = kb, blanks, terms
        self._answers: Materialised[KbAnswers] | None = kb.materialised(name, self) if self._texts else None
        self.version: int | None = None
        """The rows emitted last."""
        self.told: KbAnswers | None = None
        self.anew()

    def anew(self) -> None:
        """From now on the receiver has nothing yet."""
        self._before = [np.zeros((0, table.width), np.uint32) for table in self._tables]
        self._again = self.told is not None

    def changed(self) -> KbAnswers | None:
        if self._answers is not None and self._kb.version != self.version:
            before, self.told = self.told, self._answers.now
            self.version = self._kb.version
            if self.told is not before:
                self._again = False
                return self.told
        return self.unchanged()

    def unchanged(self) -> KbAnswers | None:
        found, self._again = self.told if self._again else None, False
        return found

    @property
    def places(self) -> Mapping[GraphPlace | str, int]:
        """By graph its number among the graphs of an answer; by the text of a table its own."""
        return {g.place: i for i, g in enumerate(self._graphs)} | {t.text: i for i, t in enumerate(self._tables)}

    # --- a reader -----------------------------------------------------------------------------------

    @property
    def texts(self) -> tuple[str, ...]:
        """The query texts."""
        return tuple(self._texts)

    def answer(self, kb: KnowledgeBase) -> KbAnswers:
        """All that is queried from the KB's present content."""
        rows = [self._rows(kb, graph.text, 3) for graph in self._graphs]
        tables = [self._rows(kb, table.text, table.width) for table in self._tables]
        graphs = [event_of(each) for each in rows]
        self._terms.hold(*(ids for event in graphs for ids in event.ids))
        return KbAnswers(graphs, tables)

    def _rows(self, kb: KnowledgeBase, text: str, width: int) -> Ids:
        """In an order that does not depend on the KB's."""
        found = sorted((tuple(s[i] for i in range(width)) for s in kb.solutions(text)), key=_key)
        return self._blanks.rows(found, width)

    def saved(self, made: KbAnswers, terms: SavedTerms) -> State:
        """For a snapshot."""
        return {"graphs": [event.save(terms) for event in made.graphs], "tables": [terms.ids(t) for t in made.tables]}

    def restored(self, state: State, terms: KnownTerms) -> KbAnswers:
        """What `saved` was given."""
        graphs = [EventBatch.restored(event, terms) for event in state["graphs"]]
        tables = [np.ascontiguousarray(terms.ids(table)) for table in state["tables"]]
        self._terms.hold(*tables, *(ids for event in graphs for ids in event.ids))
        return KbAnswers(graphs, tables)

    # --- its memory ----------------------------------------------------------------------------------

    def save_told(self, terms: SavedTerms) -> State | None:
        """The rows emitted last."""
        return None if self.told is None else self.saved(self.told, terms)

    def restore_told(self, state: State | None, terms: KnownTerms) -> None:
        """The result of `save_told`; none of it has been emitted."""
        self.told = None if state is None else self.restored(state, terms)
        self.anew()

    def save(self, terms: SavedTerms) -> State:
        """The tables as they were emitted; the KB is queried again."""
        return {"tables": [terms.ids(table) for table in self._before]}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Continue from a saved state."""
        self._before = [np.ascontiguousarray(terms.ids(table)) for table in state["tables"]]


def difference(before: Ids, now: Ids, tick: int) -> Delta:
    """What turns one bag of rows into another."""
    every = np.concatenate([before, now])
    sign = np.repeat(np.array([-1, 1]), (len(before), len(now)))
    if not every.shape[1]:
        rows, weight = every[:1], np.array([int(sign.sum())])[: len(every)]
    else:
        rows, inverse = np.unique(every, axis=0, return_inverse=True)
        weight = np.bincount(inverse.reshape(-1), sign, len(rows)).astype(np.int64)
    kept = weight != 0
    return Delta(np.full(int(kept.sum()), tick), weight[kept], np.ascontiguousarray(rows[kept]))


def event_of(rows: Ids) -> EventBatch:
    """The triples of a graph, u32[n, 3], as an event at no time."""
    columns = (np.ascontiguousarray(column) for column in rows.T)
    return EventBatch(np.zeros(1, np.int64), np.array([0, len(rows)]), *columns)


def _key(row: tuple[Term | None, ...]) -> list[str]:
    return ["" if t is None else "_:" if isinstance(t, BlankNode) else str(t) for t in row]


def _branch(pattern: TriplePattern, place: GraphPlace) -> Group:
    """?s ?p ?o of the triples that agree with a pattern."""
    first: dict[TermOrVariable, Variable] = {}
    terms: list[TermOrVariable] = []
    binds = []
    for term, name in zip((pattern.subject, pattern.predicate, pattern.object), _PLACES, strict=True):
        if isinstance(term, Variable | BlankNode) and term not in first:
            first[term] = name
            terms.append(name)
            continue
        known = first.get(term, term)
        assert not isinstance(known, BlankNode)  # it is among the first
        terms.append(known)
        binds.append(Bind(known, name))
    subject, predicate, object_ = terms
    asked = TriplePattern(subject, predicate, object_)  # type: ignore[arg-type]  # places keep their kinds
    element = asked if place.name is None else GraphPattern(place.name, Group((asked,)))
    return Group((element, *binds))
