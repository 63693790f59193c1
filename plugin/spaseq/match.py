"""One match as users see it: bindings and events, made from columns when somebody looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pyoxigraph import BlankNode, Literal, NamedNode, Triple, Variable

from oxiseq.engine.events.time import to_datetime, to_text
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term, term_text
from oxiseq.grammar.algebra import Construct, TermOrVariable, TriplePattern


@dataclass(frozen=True, slots=True)
class Shape:
    """What the matches of one query have in common: columns, GPM names of letters, streams, template."""

    plan: QueryPlan
    terms: TermDictionary

    @property
    def variables(self) -> tuple[str, ...]:
        """The answer's columns."""
        return tuple(column.variable.value for column in self.plan.answer.columns)

    @property
    def reads(self) -> tuple[str, ...]:
        """The streams that the query reads."""
        return self.plan.streams

    @property
    def feeds(self) -> str | None:
        """The stream that its results go to (CONSTRUCT ... INTO STREAM)."""
        return self.plan.answer.into

    @property
    def asks(self) -> bool:
        """Whether it is an ASK query."""
        return self.plan.answer.ask

    @property
    def makes_graphs(self) -> bool:
        """Whether it is a CONSTRUCT query."""
        return isinstance(self.plan.query.form, Construct)

    @property
    def prefixes(self) -> Mapping[str, str]:
        """Of the query's text."""
        return dict(self.plan.query.prefixes)

    def match(self, batch: MatchBatch, index: int) -> Match:
        """One match of a batch."""
        return Match(self, batch, index)

    def gpms_of(self, letter: int) -> tuple[str, ...]:
        """The GPMs of a letter."""
        return self.plan.letters[letter].letter

    def stream_of(self, gpm: str) -> str:
        """The stream that a GPM reads."""
        return self.plan.streams[self.plan.gpms[gpm].stream]


class Match:
    """One match.

    `time` is its end in microseconds, `bindings` its row (variable → term, None where unbound; also
    `match["v"]`), `events` the events by GPM name as (stream IRI, microseconds) in order, `graph` the triples
    of a CONSTRUCT query.
    """

    __slots__ = ("_batch", "_graph", "_index", "_shape")

    def __init__(self, shape: Shape, batch: MatchBatch, index: int) -> None:
        self._shape = shape
        self._batch = batch
        self._index = index
        self._graph: tuple[Triple, ...] | None = None

    @property
    def time(self) -> int:
        """The time of the last event, in microseconds since 1970 UTC."""
        return int(self._batch.time[self._index])

    @property
    def datetime(self) -> datetime:
        """`time` as a datetime in UTC."""
        return to_datetime(self.time)

    @property
    def bindings(self) -> Mapping[str, Term | None]:
        """Variable (without `?`) → term, None where it is unbound."""
        row = self._batch.values[self._index]
        return {
            name: self._shape.terms.term(int(i)) if i else None
            for name, i in zip(self._shape.variables, row, strict=True)
        }

    def __getitem__(self, variable: str) -> Term | None:
        """The term that a variable is bound to; KeyError if the query does not answer it."""
        try:
            column = self._shape.variables.index(variable)
        except ValueError:
            known = ", ".join(self._shape.variables) or "none"
            raise KeyError(f"no variable {variable!r}; the query answers: {known}") from None
        i = int(self._batch.values[self._index, column])
        return self._shape.terms.term(i) if i else None

    @property
    def events(self) -> Mapping[str, tuple[tuple[str, int], ...]]:
        """GPM name → its events, as (stream IRI, microseconds), in order."""
        first, last = self._batch.ends[self._index], self._batch.ends[self._index + 1]
        found: dict[str, list[tuple[str, int]]] = {}
        for letter, time in zip(
            self._batch.event_letter[first:last], self._batch.event_time[first:last], strict=True
        ):
            for gpm in self._shape.gpms_of(int(letter)):
                found.setdefault(gpm, []).append((self._shape.stream_of(gpm), int(time)))
        return {gpm: tuple(events) for gpm, events in found.items()}

    @property
    def graph(self) -> tuple[Triple, ...]:
        """The triples of a CONSTRUCT query; blank nodes of the template are fresh in each match."""
        if self._graph is None:
            self._graph = instantiate(self._shape.plan.answer.template, self.bindings)
        return self._graph

    @property
    def event(self) -> tuple[Triple, ...]:
        """What it is in the stream that results go to."""
        return self.graph

    def __repr__(self) -> str:
        row = " ".join(f"?{name}={term}" for name, term in self.bindings.items())
        return f"<Match {to_text(self.time)} {row}>"


def instantiate(template: Sequence[TriplePattern], bindings: Mapping[str, Term | None]) -> tuple[Triple, ...]:
    """A template's triples for one row, each once; those with a part that is unbound or out of place are left out."""
    bound = {Variable(name): term for name, term in bindings.items()}
    blanks: dict[BlankNode, BlankNode] = {}
    triples = []
    for pattern in template:
        parts = [_fill(t, bound, blanks) for t in (pattern.subject, pattern.predicate, pattern.object)]
        subject, predicate, object_ = parts
        if isinstance(subject, NamedNode | BlankNode) and isinstance(predicate, NamedNode) and object_:
            triples.append(Triple(subject, predicate, object_))
    return tuple(dict.fromkeys(triples))


def _fill(
    term: TermOrVariable, bound: Mapping[Variable, Term | None], blanks: dict[BlankNode, BlankNode]
) -> Term | None:
    if isinstance(term, Variable):
        return bound.get(term)
    if isinstance(term, BlankNode):
        return blanks.setdefault(term, BlankNode())
    return term


def short(term: Term) -> str:
    """A term for people: an IRI's text, a literal's lexical form, a blank node's label."""
    return term.value if isinstance(term, NamedNode | Literal) else term_text(term)
