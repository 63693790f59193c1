"""One answer of a query over windows as users see it, made from columns when somebody looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pyoxigraph import Triple

from oxiseq.engine.events.time import to_datetime, to_text
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.rsp.plan import RspPlan
from oxiseq.engine.run.rsp import END, START
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.spaseq.match import instantiate
from oxiseq.times import Clock, Time


@dataclass(frozen=True, slots=True)
class AnswerShape:
    """What the answers of one query have in common: columns, streams, template."""

    plan: RspPlan
    terms: TermDictionary
    clock: Clock = Clock.MICROSECONDS
    """How answers tell their times."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The answer's columns."""
        return self.plan.columns

    @property
    def reads(self) -> tuple[str, ...]:
        """The streams that the query reads."""
        return self.plan.streams

    @property
    def feeds(self) -> str | None:
        """The stream that its results go to (REGISTER ... AS CONSTRUCT)."""
        return self.plan.feeds

    @property
    def asks(self) -> bool:
        """Whether it is an ASK query."""
        return self.plan.query.form == "ASK"

    @property
    def makes_graphs(self) -> bool:
        """Whether it is a CONSTRUCT query."""
        return self.plan.query.form == "CONSTRUCT"

    @property
    def prefixes(self) -> Mapping[str, str]:
        """Of the query's text."""
        return dict(self.plan.query.prefixes)

    def match(self, batch: MatchBatch, index: int) -> Answer:
        """One answer of a batch."""
        return Answer(self, batch, index)


class Answer:
    """One answer.

    `at` is the instant at which it was told; `bindings` its row (variable → term, None where unbound; also
    `answer["v"]`); `start` and `end` the times of its event mapping, None where it has none; `graph` the triples of a
    CONSTRUCT query. Times are microseconds since 1970 UTC, or datetimes where `oxiseq.run` was given datetimes.
    """

    __slots__ = ("_batch", "_graph", "_index", "_shape")

    def __init__(self, shape: AnswerShape, batch: MatchBatch, index: int) -> None:
        self._shape = shape
        self._batch = batch
        self._index = index
        self._graph: tuple[Triple, ...] | None = None

    @property
    def at(self) -> Time:
        """The instant at which it was told."""
        return self._shape.clock.of(self.time)

    @property
    def time(self) -> int:
        """`at` in microseconds, under the name that matches of all languages have."""
        return int(self._batch.time[self._index])

    @property
    def datetime(self) -> datetime:
        """`at` as a datetime in UTC."""
        return to_datetime(self.time)

    @property
    def start(self) -> Time | None:
        """When its event mapping starts."""
        return self._event(START)

    @property
    def end(self) -> Time | None:
        """When its event mapping ends."""
        return self._event(END)

    @property
    def hull(self) -> tuple[int, ...]:
        """`start` and `end` in microseconds; nothing where it has none."""
        low, high = self._batch.ends[self._index], self._batch.ends[self._index + 1]
        return tuple(self._batch.event_time[low:high].tolist())

    def _event(self, letter: int) -> Time | None:
        hull = self.hull
        return self._shape.clock.of(hull[letter]) if hull else None

    @property
    def bindings(self) -> Mapping[str, Term | None]:
        """Variable (without `?`) → term, None where it is unbound."""
        row = self._batch.values[self._index].tolist()
        return {
            name: self._shape.terms.term(i) if i else None
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
    def graph(self) -> tuple[Triple, ...]:
        """The triples of a CONSTRUCT query; blank nodes of the template are fresh in each answer."""
        if self._graph is None:
            self._graph = instantiate(self._shape.plan.query.template, self.bindings)
        return self._graph

    @property
    def event(self) -> tuple[Triple, ...]:
        """What it is in the stream that results go to."""
        return self.graph

    def __repr__(self) -> str:
        row = " ".join(f"?{name}={term}" for name, term in self.bindings.items())
        return f"<Answer {to_text(self.time)} {row}>"
