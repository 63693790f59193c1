"""What the matches of one query have in common, and a block of them as columns.

In the flow: batches of a run → **block** → matches, tables, texts, blobs of the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, NamedNode, Triple, Variable

from oxiseq.engine.events.time import to_text
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.normal import XSD
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import TermOrVariable, TriplePattern
from oxiseq.grammar.records import dataclass
from oxiseq.matches.match import Event, Match, Positions

Form: TypeAlias = Literal["SELECT", "ASK", "CONSTRUCT", "EVENTS"]
"""What a query answers: rows of terms, whether there is a match, graphs, or events by variable."""
Letters: TypeAlias = Sequence[tuple[tuple[str, str], ...]]
"""By number: who holds an event, as (name, stream IRI)."""
I64: TypeAlias = NDArray[np.int64]

SPAN: Final[Letters] = ((("start", ""),), (("end", ""),))
"""Where a match has a span and no events: its two times."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the matches of one query have in common, as its language says it.

    variables: what it answers, without `?`; reads, feeds: IRIs of streams; prefixes: of its text; template: of
    CONSTRUCT; lanes: the names that hold events; letters: the variables that hold an event, by the number beside it;
    spans: whether matches have a start; later: whether they may be decided after their ends; ended: whether
    they are rows that are gone (DSTREAM); vocab: the namespace of names in tables; stamp: the triple that says when a
    result begins, in the stream that it goes to; gather: batches of the run as one block.
    """

    terms: TermDictionary
    form: Form
    variables: tuple[str, ...]
    reads: tuple[str, ...]
    feeds: str | None = None
    prefixes: Mapping[str, str] = field(default_factory=dict)
    template: tuple[TriplePattern, ...] = ()
    lanes: tuple[str, ...] = ()
    letters: Letters = SPAN
    spans: bool = True
    later: bool = False
    ended: bool = False
    vocab: str = ""
    stamp: Callable[[int], Triple] | None = None
    gather: Callable[[Shape, Sequence[Any]], Block] = field(default_factory=lambda: _rows_together)
    index: Mapping[str, int] = field(init=False, repr=False)
    """Name → column of terms."""

    def __post_init__(self) -> None:
        columns = () if self.form == "EVENTS" else self.variables
        object.__setattr__(self, "index", {name: i for i, name in enumerate(columns)})

    @property
    def told(self) -> tuple[str, ...]:
        """The columns of rows of terms: those of texts and of the journal."""
        return ("at", "first", "last", "positions", *self.variables) if self.form == "EVENTS" else self.variables

    def block(self, batches: Sequence[Any]) -> Block:
        """Batches as one."""
        return self.gather(self, batches)


class PositionColumns(NamedTuple):
    """Positions among all events of a query: first, last: i64[n]; of: i64[f], of each event of each match."""

    first: I64
    last: I64
    of: I64


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """n matches as columns. `letters`: as those of the shape, where they are not known before."""

    shape: Shape
    rows: MatchBatch
    letters: Letters
    positions: PositionColumns | None = None
    numbers: I64 | None = None
    """Their ids, where the query counts them."""

    def __len__(self) -> int:
        return len(self.rows)

    def numbered(self, first: int) -> Block:
        """The same with ids from `first` on."""
        return Block(self.shape, self.rows, self.letters, self.positions, np.arange(first, first + len(self)))

    def take(self, index: I64) -> Block:
        """Some of them, in the order of `index`."""
        numbers = None if self.numbers is None else self.numbers[index]
        if self.positions is None:
            return replace(self, rows=self.rows.take(index), numbers=numbers)
        numbered = replace(self.rows, event_letter=np.arange(len(self.rows.event_letter), dtype=np.int32)).take(index)
        flat = numbered.event_letter
        positions = PositionColumns(self.positions.first[index], self.positions.last[index], self.positions.of[flat])
        rows = replace(numbered, event_letter=self.rows.event_letter[flat])
        return replace(self, rows=rows, positions=positions, numbers=numbers)

    def by_events(self) -> Block:
        """In the order of `at`, then of `end`; those of one instant by their events."""
        return self.take(np.array(sorted(range(len(self)), key=self._place), np.int64))

    def _place(self, index: int) -> tuple[Any, ...]:
        events, at, time = self._events_at(index), int(self.rows.at[index]), int(self.rows.time[index])
        if self.positions is None:
            return at, time, self.rows.event_time[events].tolist()
        return at, time, int(self.positions.last[index]), self.positions.of[events].tolist()

    # --- columns ------------------------------------------------------------------------------------

    def spans(self) -> tuple[I64, I64, NDArray[np.bool_]]:
        """When each begins and ends (i64[n] µs), and which have no beginning: these end at the time of their rows."""
        first, last = self.rows.ends[:-1], self.rows.ends[1:] - 1
        none = last < first
        if not none.any():
            return self.rows.event_time[first], self.rows.event_time[last], none
        times = self.rows.event_time if len(self.rows.event_time) else np.zeros(1, np.int64)
        ends = np.where(none, self.rows.time, times[np.where(none, 0, last)])
        return times[np.where(none, 0, first)], ends, none

    def holding(self, lane: str) -> NDArray[np.bool_]:
        """Which events a name holds."""
        mine = np.array([any(name == lane for name, _ in letter) for letter in self.letters], np.bool_)
        found: NDArray[np.bool_] = mine[self.rows.event_letter] if len(mine) else np.zeros(0, np.bool_)
        return found

    def told(self) -> MatchBatch:
        """Rows with a column for each of `shape.told`: times and positions are written as terms."""
        if self.positions is None:
            return self.rows
        first, last, of = self.positions
        columns = [[f'"{to_text(t)}"^^<{XSD}dateTime>' for t in self.rows.at.tolist()]]
        columns += [[f'"{n}"^^<{XSD}integer>' for n in numbers.tolist()] for numbers in (first, last)]
        everything = np.ones(len(of), np.bool_)
        for mine in (everything, *map(self.holding, self.shape.variables)):
            ends = np.concatenate([[0], np.cumsum(mine)])[self.rows.ends].tolist()
            words = list(map(str, of[mine].tolist()))
            columns.append([f'"{" ".join(words[a:b])}"' for a, b in pairwise(ends)])
        values = np.column_stack([_interned(self.shape.terms, column) for column in columns])
        return replace(self.rows, values=values)

    # --- one of them --------------------------------------------------------------------------------

    def match(self, index: int) -> Match:
        """One of them."""
        return Match(self, index)

    @property
    def index(self) -> Mapping[str, int]:
        """Name → column of terms."""
        return self.shape.index

    def number(self, index: int) -> int | None:
        """Its id."""
        return None if self.numbers is None else int(self.numbers[index])

    def at(self, index: int) -> int:
        """When it is decided, in µs."""
        return int(self.rows.at[index])

    def span(self, index: int) -> tuple[int | None, int]:
        """When it begins, if it has events, and ends, in µs."""
        low, high = self.rows.ends[index : index + 2].tolist()
        if low == high or not self.shape.spans:
            return None, int(self.rows.time[index])
        return int(self.rows.event_time[low]), int(self.rows.event_time[high - 1])

    def term(self, index: int, column: int) -> Term | None:
        """What a variable is bound to."""
        number = int(self.rows.values[index, column])
        return self.shape.terms.term(number) if number else None

    def row(self, index: int) -> dict[str, Term]:
        """Name → term, of those that are bound."""
        term = self.shape.terms.term
        row = self.rows.values[index].tolist()
        return {name: term(number) for name, number in zip(self.shape.index, row, strict=True) if number}

    def events(self, index: int) -> dict[str, tuple[Event, ...]]:
        """Name → its events, in order."""
        if not self.shape.lanes:
            return {}
        rows, letters, events = self.rows, self.letters, self._events_at(index)
        found: dict[str, list[tuple[str, int]]] = {}
        times = rows.event_time[events].tolist()
        for letter, time in zip(rows.event_letter[events].tolist(), times, strict=True):
            for name, stream in letters[letter]:
                if name in found:
                    found[name].append((stream, time))
                else:
                    found[name] = [(stream, time)]
        return {name: tuple(of) for name, of in found.items()}

    def places(self, index: int) -> Positions | None:
        """The positions of its events."""
        if self.positions is None:
            return None
        events = self._events_at(index)
        of = self.positions.of[events].tolist()
        by: dict[str, list[int]] = {}
        for letter, position in zip(self.rows.event_letter[events].tolist(), of, strict=True):
            for name, _ in self.letters[letter]:
                by.setdefault(name, []).append(position)
        first, last = int(self.positions.first[index]), int(self.positions.last[index])
        return Positions(first, last, tuple(of), {name: tuple(by[name]) for name in self.shape.lanes if name in by})

    def graph(self, index: int) -> tuple[Triple, ...]:
        """The triples of CONSTRUCT; blank nodes of the template are fresh."""
        return instantiate(self.shape.template, self.row(index)) if self.shape.template else ()

    def stamps(self, index: int) -> tuple[Triple, ...]:
        """What a result has beside its graph in the stream that it goes to."""
        start, end = self.span(index)
        if self.shape.stamp is None or start is None or start == end:
            return ()
        return (self.shape.stamp(start),)

    def _events_at(self, index: int) -> slice:
        low, high = self.rows.ends[index : index + 2].tolist()
        return slice(low, high)


def _rows_together(shape: Shape, batches: Sequence[MatchBatch]) -> Block:
    """Of batches that are already rows of terms, whose terms are retained."""
    rows = MatchBatch.concat(list(batches), len(shape.variables))
    if len(batches) > 1:
        shape.terms.hold(rows.values)
    return Block(shape, rows, shape.letters)


def _interned(terms: TermDictionary, texts: Sequence[str]) -> NDArray[np.uint32]:
    """The ids of terms by their texts in N-Triples, all of ASCII letters."""
    distinct: dict[str, int] = {}
    codes = [distinct.setdefault(text, len(distinct)) for text in texts]
    ends = np.concatenate([[0], np.cumsum([len(text) for text in distinct])]).astype(np.int64)
    return terms.intern_texts(np.frombuffer("".join(distinct).encode(), np.uint8), ends)[codes]


def instantiate(template: Sequence[TriplePattern], bindings: Mapping[str, Term]) -> tuple[Triple, ...]:
    """A template's triples for one row, each once; those with a part that is unbound or out of place are left out."""
    blanks: dict[BlankNode, BlankNode] = {}
    triples = []
    for pattern in template:
        parts = [_fill(t, bindings, blanks) for t in (pattern.subject, pattern.predicate, pattern.object)]
        subject, predicate, object_ = parts
        if isinstance(subject, NamedNode | BlankNode) and isinstance(predicate, NamedNode) and object_:
            triples.append(Triple(subject, predicate, object_))
    return tuple(dict.fromkeys(triples))


def _fill(term: TermOrVariable, bindings: Mapping[str, Term], blanks: dict[BlankNode, BlankNode]) -> Term | None:
    if isinstance(term, Variable):
        return bindings.get(term.value)
    if isinstance(term, BlankNode):
        return blanks.setdefault(term, BlankNode())
    return term
