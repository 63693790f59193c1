"""One answer of an EP-SPARQL query as users see it, made from columns when somebody looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pyoxigraph import Triple

from oxiseq.engine.events.time import to_datetime, to_text
from oxiseq.engine.flow.epsparql.query import IntervalPlan
from oxiseq.engine.flow.epsparql.stamps import start_triple
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.spaseq.match import instantiate
from oxiseq.times import Clock, Time


@dataclass(frozen=True, slots=True)
class IntervalShape:
    """What the answers of one query have in common: columns, streams, template."""

    plan: IntervalPlan
    terms: TermDictionary
    clock: Clock = Clock.MICROSECONDS
    """How answers tell their times."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The answer's columns."""
        return tuple(v.value for v in self.plan.variables)

    @property
    def reads(self) -> tuple[str, ...]:
        """The streams that the query reads."""
        return self.plan.streams

    @property
    def feeds(self) -> str | None:
        """The stream that its results go to (CONSTRUCT ... INTO STREAM)."""
        return self.plan.feeds

    @property
    def asks(self) -> bool:
        """Whether it is an ASK query."""
        return self.plan.ask

    @property
    def makes_graphs(self) -> bool:
        """Whether it is a CONSTRUCT query."""
        return bool(self.plan.template)

    @property
    def prefixes(self) -> Mapping[str, str]:
        """Of the query's text."""
        return dict(self.plan.query.prefixes)

    def match(self, batch: MatchBatch, index: int) -> IntervalMatch:
        """One answer of a batch."""
        return IntervalMatch(self, batch, index)


class IntervalMatch:
    """One answer: a row and the interval of all that it is made of (semantics.md 5).

    `start` and `end` are microseconds since 1970 UTC, or datetimes where `oxiseq.run` was given datetimes; `bindings`
    its row (variable → term, None where unbound; also `match["v"]`); `graph` the triples of a CONSTRUCT query.
    """

    __slots__ = ("_batch", "_graph", "_index", "_shape")

    def __init__(self, shape: IntervalShape, batch: MatchBatch, index: int) -> None:
        self._shape = shape
        self._batch = batch
        self._index = index
        self._graph: tuple[Triple, ...] | None = None

    @property
    def start(self) -> Time:
        """When the first of its triples starts."""
        return self._shape.clock.of(self.hull[0])

    @property
    def end(self) -> Time:
        """When the last of its triples ends."""
        return self._shape.clock.of(self.time)

    @property
    def hull(self) -> tuple[int, int]:
        """`start` and `end` in microseconds."""
        return int(self._batch.event_time[self._batch.ends[self._index]]), self.time

    @property
    def time(self) -> int:
        """`end` in microseconds, under the name that matches of all languages have."""
        return int(self._batch.time[self._index])

    @property
    def datetime(self) -> datetime:
        """`end` as a datetime in UTC."""
        return to_datetime(self.time)

    @property
    def bindings(self) -> Mapping[str, Term | None]:
        """Variable (without `?`) → term, None where it is unbound."""
        row = self._batch.values[self._index].tolist()
        return {
            name: self._shape.terms.term(i) if i else None for name, i in zip(self._shape.variables, row, strict=True)
        }

    def __getitem__(self, variable: str) -> Term | None:
        """The term that a variable is bound to; KeyError if the query does not answer it."""
        if variable not in self._shape.variables:
            known = ", ".join(self._shape.variables) or "none"
            raise KeyError(f"no variable {variable!r}; the query answers: {known}")
        return self.bindings[variable]

    @property
    def graph(self) -> tuple[Triple, ...]:
        """The triples of a CONSTRUCT query; blank nodes of the template are fresh in each answer."""
        if self._graph is None:
            self._graph = instantiate(self._shape.plan.template, self.bindings)
        return self._graph

    @property
    def event(self) -> tuple[Triple, ...]:
        """What it is in the stream that results go to: `graph`, with its start where it has one of its own."""
        start, end = self.hull
        return self.graph if start == end else (*self.graph, start_triple(start))

    def __repr__(self) -> str:
        row = " ".join(f"?{name}={term}" for name, term in self.bindings.items())
        return f"<IntervalMatch [{', '.join(map(to_text, self.hull))}] {row}>"
