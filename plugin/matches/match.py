"""One match as users see it, made from columns when somebody looks."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from datetime import datetime
from typing import NamedTuple, Protocol, TypeAlias

from pyoxigraph import Literal, NamedNode, Triple

from oxiseq.engine.events.time import to_datetime, to_text
from oxiseq.engine.terms.texts import Term, term_text
from oxiseq.grammar.arguments import public
from oxiseq.grammar.records import dataclass
from oxiseq.pictures.timeline import html_table, timeline

Event: TypeAlias = tuple[str, int]
"""An event of a match: the IRI of its stream, and its time in microseconds since 1970 UTC."""


@public
class Positions(NamedTuple):
    """The positions of a CEQL match's events among all events of the query's streams, counted from 0 in order of time
    (those of one time in the order of FROM).

    first, last: of the interval; all: the set D (CORE, PVLDB 2022), ascending; by: variable → those that it holds.

    >>> import oxiseq
    >>> text = "VOCAB <urn:> SELECT * FROM s WHERE A AS x; B AS y"
    >>> events = [(1, "[] a <urn:A> ."), (2, "[] a <urn:C> ."), (3, "[] a <urn:B> .")]
    >>> (match,) = oxiseq.run(text, {"s": events}, language="ceql")
    >>> match.positions.first, match.positions.last, match.positions.by["y"]
    (0, 2, (2,))
    """

    first: int
    last: int
    all: tuple[int, ...]
    by: Mapping[str, tuple[int, ...]]


class Source(Protocol):
    """Where matches come from, by number."""

    @property
    def index(self) -> Mapping[str, int]: ...

    def number(self, index: int, /) -> int | None: ...

    def at(self, index: int, /) -> int: ...

    def span(self, index: int, /) -> tuple[int | None, int]: ...

    def term(self, index: int, column: int, /) -> Term | None: ...

    def row(self, index: int, /) -> dict[str, Term]: ...

    def events(self, index: int, /) -> dict[str, tuple[Event, ...]]: ...

    def places(self, index: int, /) -> Positions | None: ...

    def graph(self, index: int, /) -> tuple[Triple, ...]: ...

    def stamps(self, index: int, /) -> tuple[Triple, ...]: ...


@public
class Match(Mapping[str, Term]):
    """One match, of whatever language: a mapping of the variables that are bound (without `?`) to their terms.

    Equal are matches with the same times, terms, events and positions. A match can be hashed and pickled.

    >>> import oxiseq
    >>> text = '''PREFIX : <http://example.org/>
    ... SELECT ?who ?paid FROM STREAM S <http://example.org/payments>
    ... WHERE { SEQ(A) DEFINE GPM A ON S { ?who :paid ?paid } }'''
    >>> payment = (60_000_000, "<http://example.org/ann> <http://example.org/paid> 5 .")
    >>> match = oxiseq.run(text, streams={"S": [payment]})[0]
    >>> match["paid"].value, "who" in match, match.get("whom"), sorted(match)
    ('5', True, None, ['paid', 'who'])
    >>> match.at.time(), match.at_us, match.events["A"]
    (datetime.time(0, 1), 60000000, (('http://example.org/payments', 60000000),))
    """

    __slots__ = ("_graph", "_index", "_row", "_source")

    def __init__(self, source: Source, index: int) -> None:
        self._source = source
        self._index = index
        self._row: dict[str, Term] | None = None
        self._graph: tuple[Triple, ...] | None = None

    @property
    def id(self) -> int | None:
        """Its number among the matches of its continuous query, from 1 on, the same after a restart; None for those of
        `oxiseq.run`. Matches that differ in it only are equal."""
        return self._source.number(self._index)

    # --- times --------------------------------------------------------------------------------------

    @property
    def at(self) -> datetime:
        """When it is decided, in UTC: with its last event, at the latest deadline of its trailing negations, or at the
        instant that a query over windows or groups is answered at. Nothing later can change that it is a match, and it
        is reported when all events of that time are there."""
        return to_datetime(self.at_us)

    @property
    def at_us(self) -> int:
        """`at` in microseconds since 1970 UTC."""
        return self._source.at(self._index)

    @property
    def start(self) -> datetime | None:
        """When its first event begins, in UTC; None where it has no events: for rows of groups, and of windows
        without event patterns."""
        start = self.start_us
        return None if start is None else to_datetime(start)

    @property
    def start_us(self) -> int | None:
        """`start` in microseconds since 1970 UTC."""
        return self._source.span(self._index)[0]

    @property
    def end(self) -> datetime:
        """When its last event ends, in UTC; where it has no events, the time of the row: the instant, the close or the
        tick that it is about."""
        return to_datetime(self.end_us)

    @property
    def end_us(self) -> int:
        """`end` in microseconds since 1970 UTC."""
        return self._source.span(self._index)[1]

    # --- what it is made of -------------------------------------------------------------------------

    @property
    def events(self) -> Mapping[str, tuple[Event, ...]]:
        """Name of a GPM (SPAseq) or variable (CEQL) → its events, as (stream IRI, microseconds since 1970
        UTC), in order. Those without events are left out; empty in
        other languages."""
        return self._source.events(self._index)

    @property
    def positions(self) -> Positions | None:
        """The positions of its events (CEQL); None in other languages."""
        return self._source.places(self._index)

    @property
    def graph(self) -> tuple[Triple, ...]:
        """The triples of CONSTRUCT, none for other queries; blank nodes of the template are fresh in each match."""
        if self._graph is None:
            self._graph = self._source.graph(self._index)
        return self._graph

    # --- a mapping ----------------------------------------------------------------------------------

    def __getitem__(self, variable: str) -> Term:
        """The term that a variable is bound to; KeyError if it is unbound or the query does not answer it."""
        row = self._row
        if row is not None and variable in row:
            return row[variable]
        column = self._source.index.get(variable)
        if column is not None and (term := self._source.term(self._index, column)) is not None:
            return term
        raise KeyError(self._missing(variable))

    def _missing(self, variable: object) -> str:
        if variable in self._source.index:
            return f"?{variable} is unbound in this match: .get({variable!r}) is None"
        if variable in self.events:
            return f"{variable!r} holds events: .events[{variable!r}]"
        return f"no variable {variable!r}; the query answers: {', '.join(self._source.index) or 'no terms'}"

    def __iter__(self) -> Iterator[str]:
        return iter(self._bound())

    def __len__(self) -> int:
        return len(self._bound())

    def keys(self) -> KeysView[str]:
        """The variables that are bound."""
        return self._bound().keys()

    def values(self) -> ValuesView[Term]:
        """Their terms."""
        return self._bound().values()

    def items(self) -> ItemsView[str, Term]:
        """Both."""
        return self._bound().items()

    def __bool__(self) -> bool:
        """True: there is a match, also where it binds nothing."""
        return True

    def _bound(self) -> dict[str, Term]:
        if self._row is None:
            self._row = self._source.row(self._index)
        return self._row

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Match) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((self.at_us, self._source.span(self._index), frozenset(self._bound().items())))

    def _parts(self) -> tuple[object, ...]:
        return self.at_us, self._source.span(self._index), self._bound(), self.events, self.positions

    def __reduce__(self) -> tuple[object, ...]:
        source, index = self._source, self._index
        kept = Kept(
            source.index,
            self.at_us,
            source.span(index),
            self._bound(),
            dict(self.events),
            self.positions,
            self.graph,
            source.stamps(index),
            self.id,
        )
        return Match, (kept, 0)

    def _repr_html_(self) -> str:
        """The match over time, and a table: its times, variables and events."""
        rows = [("at", to_text(self.at_us))]
        if self.start_us is not None:
            rows.append(("from, to", f"{to_text(self.start_us)}, {to_text(self.end_us)}"))
        elif self.end_us != self.at_us:
            rows.append(("of", to_text(self.end_us)))
        rows += [(f"?{name}", short(term)) for name, term in self.items()]
        rows += [(name, ", ".join(to_text(time) for _, time in held)) for name, held in self.events.items()]
        rows += [("triple", f"{t.subject} {t.predicate} {t.object}") for t in self.graph]
        table = html_table("match" if self.id is None else f"match {self.id:,}", rows)
        return f"<div>{timeline([moments(self)], 1)}{table}</div>"

    def __repr__(self) -> str:
        told = "".join(f" ?{name}={term}" for name, term in self.items())
        if (places := self.positions) is not None:
            told = f" [{places.first}, {places.last}]{''.join(f' {v}={list(p)}' for v, p in places.by.items())}"
        return f"<Match {to_text(self.at_us)}{told}>"


def moments(match: Match) -> dict[str, list[int]]:
    """The times (µs) of a match's events by lane, and when it is decided, if that is later; where it has none, of its
    span and of its instant."""
    if events := match.events:
        decided = {"decided": [match.at_us]} if match.at_us > match.end_us else {}
        return {**{name: [time for _, time in of] for name, of in events.items()}, **decided}
    return {"answers": [t for t in (match.start_us, match.end_us) if t is not None] + [match.at_us]}


@dataclass(frozen=True, slots=True)
class Kept:
    """One match as plain values, without the columns that it was made from."""

    index: Mapping[str, int]
    time: int
    times: tuple[int | None, int]
    terms: dict[str, Term]
    held: dict[str, tuple[Event, ...]]
    where: Positions | None
    triples: tuple[Triple, ...]
    stamped: tuple[Triple, ...]
    numbered: int | None

    def number(self, _: int, /) -> int | None:
        return self.numbered

    def at(self, _: int, /) -> int:
        return self.time

    def span(self, _: int, /) -> tuple[int | None, int]:
        return self.times

    def term(self, _: int, column: int, /) -> Term | None:
        return self.terms.get(next(name for name, number in self.index.items() if number == column))

    def row(self, _: int, /) -> dict[str, Term]:
        return self.terms

    def events(self, _: int, /) -> dict[str, tuple[Event, ...]]:
        return self.held

    def places(self, _: int, /) -> Positions | None:
        return self.where

    def graph(self, _: int, /) -> tuple[Triple, ...]:
        return self.triples

    def stamps(self, _: int, /) -> tuple[Triple, ...]:
        return self.stamped


def result_event(match: Match) -> tuple[Triple, ...]:
    """A match as an event of the stream for results: its graph, and its start where that is beside it."""
    return (*match.graph, *match._source.stamps(match._index))


def short(term: Term) -> str:
    """A term for people: an IRI's text, a literal's lexical form, a blank node's label."""
    return term.value if isinstance(term, NamedNode | Literal) else term_text(term)
