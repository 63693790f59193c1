"""Matches as users see them: rows with bindings and events, made from columns when they are looked at."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from pyoxigraph import BlankNode, Literal, NamedNode, Triple, Variable

from oxiseq.columns import arrow_table
from oxiseq.engine.events.time import to_datetime
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.query.plan import QueryPlan
from oxiseq.engine.terms.dictionary import Term, TermDictionary
from oxiseq.grammar.algebra import TermOrVariable

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Shape:
    """What the matches of one query have in common: columns, GPM names of letters, streams, template."""

    plan: QueryPlan
    terms: TermDictionary

    @property
    def variables(self) -> tuple[str, ...]:
        """The answer's columns."""
        return tuple(column.variable.value for column in self.plan.answer.columns)

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

    __slots__ = ("_batch", "_index", "_shape")

    def __init__(self, shape: Shape, batch: MatchBatch, index: int) -> None:
        self._shape = shape
        self._batch = batch
        self._index = index

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
        bound = {Variable(name): term for name, term in self.bindings.items()}
        blanks: dict[BlankNode, BlankNode] = {}
        triples = []
        for pattern in self._shape.plan.answer.template:
            parts = [_fill(t, bound, blanks) for t in (pattern.subject, pattern.predicate, pattern.object)]
            subject, predicate, object_ = parts
            if isinstance(subject, NamedNode | BlankNode) and isinstance(predicate, NamedNode) and object_:
                triples.append(Triple(subject, predicate, object_))
        return tuple(dict.fromkeys(triples))

    def __repr__(self) -> str:
        row = " ".join(f"?{name}={term}" for name, term in self.bindings.items())
        return f"<Match {self.datetime.isoformat()} {row}>"


def _fill(
    term: TermOrVariable, bound: Mapping[Variable, Term | None], blanks: dict[BlankNode, BlankNode]
) -> Term | None:
    if isinstance(term, Variable):
        return bound.get(term)
    if isinstance(term, BlankNode):
        return blanks.setdefault(term, BlankNode())
    return term


class Matches:
    """The matches of a query over streams that have ended, in order of end time.

    Iterate for `Match` objects; `to_arrow`, `to_pandas` and `to_sparql_json` work on columns.
    """

    def __init__(self, shape: Shape, batch: MatchBatch, late: int = 0, events: int = 0) -> None:
        self._shape = shape
        self._batch = batch
        self.late = late
        """How many events were older than their stream's watermark, hence not matched."""
        self.events = events
        """How many events were read."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The answer's columns, without `?`."""
        return self._shape.variables

    def __len__(self) -> int:
        return len(self._batch)

    def __bool__(self) -> bool:
        """Whether there is a match: the answer of an ASK query."""
        return len(self) > 0

    def __iter__(self) -> Iterator[Match]:
        return (Match(self._shape, self._batch, i) for i in range(len(self._batch)))

    def __getitem__(self, index: int) -> Match:
        return Match(self._shape, self._batch, range(len(self._batch))[index])

    def sorted(self) -> Matches:
        """The same matches, those of equal end time by the times of their events."""
        batch = self._batch
        keys = [tuple(batch.event_time[a:b].tolist()) for a, b in pairwise(batch.ends)]
        order = sorted(range(len(batch)), key=lambda i: (int(batch.time[i]), keys[i]))
        return Matches(self._shape, batch.take(np.array(order, np.int64)), self.late, self.events)

    def to_arrow(self) -> pa.Table:
        """An Arrow table: `time` (timestamp, UTC), a column per variable, a list of event times per GPM.

        A column of numbers of one kind is numeric; IRIs are their text, literals their lexical form.
        """
        return arrow_table(self._batch, self._shape.plan, self._shape.terms)

    def to_pandas(self) -> pd.DataFrame:
        """`to_arrow` as a pandas DataFrame (needs the extra `oxiseq[pandas]`)."""
        return self.to_arrow().to_pandas()

    def to_sparql_json(self) -> str:
        """The rows in the SPARQL 1.1 Query Results JSON Format; for ASK its boolean form."""
        if self._shape.plan.answer.ask:
            return json.dumps({"head": {}, "boolean": bool(self)})
        return "".join(_sparql_json(self._shape, self._batch))

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in ("time", *self.variables))
        rows = [_html_row(match) for _, match in zip(range(_SHOWN), self, strict=False)]
        more = f"<caption>{len(self)} matches</caption>"
        return f"<table>{more}<tr>{head}</tr>{''.join(rows)}</table>"

    def __repr__(self) -> str:
        return f"<Matches: {len(self)} of ({', '.join(self.variables)})>"


_SHOWN = 100
"""Rows of an HTML table."""


def _html_row(match: Match) -> str:
    cells = [match.datetime.isoformat(), *("" if t is None else short(t) for t in match.bindings.values())]
    return f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>"


def short(term: Term) -> str:
    """A term for people: an IRI's text, a literal's lexical form, a blank node's label."""
    return str(term) if isinstance(term, BlankNode) else term.value


class _JsonTerms:
    """JSON of terms, each made once."""

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._made: dict[int, str] = {}

    def of(self, number: int) -> str:
        made = self._made.get(number)
        if made is None:
            made = self._made[number] = json.dumps(_json_term(self._terms.term(number)))
        return made


def _json_term(term: Term) -> dict[str, str]:
    if isinstance(term, NamedNode):
        return {"type": "uri", "value": term.value}
    if isinstance(term, BlankNode):
        return {"type": "bnode", "value": term.value}
    assert isinstance(term, Literal)
    made: dict[str, Any] = {"type": "literal", "value": term.value}
    if term.language:
        made["xml:lang"] = term.language
    elif term.datatype.value != "http://www.w3.org/2001/XMLSchema#string":
        made["datatype"] = term.datatype.value
    return made


def _sparql_json(shape: Shape, batch: MatchBatch) -> Iterator[str]:
    texts = _JsonTerms(shape.terms)
    names = [json.dumps(name) for name in shape.variables]
    yield json.dumps({"head": {"vars": list(shape.variables)}})[:-1] + ', "results": {"bindings": ['
    before = ""
    for row in batch.values.tolist():
        cells = ", ".join(f"{name}: {texts.of(i)}" for name, i in zip(names, row, strict=True) if i)
        yield f"{before}{{{cells}}}"
        before = ", "
    yield "]}}"


__all__ = ["Match", "Matches", "Shape", "short"]
