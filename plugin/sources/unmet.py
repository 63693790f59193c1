"""What a query reads that no event had, and values that it cannot compare: said once the streams have ended.

A name that is misspelt, numbers that are texts, and times without fractions of a second are legal and give no match.
Each batch is looked at until nothing is open any more: for most queries that is the first one.

In the flow: batches of given streams → **notes** → a warning of `oxiseq.run`, standard error of the command line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from pyoxigraph import Literal, NamedNode

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.row_events import RowEvents
from oxiseq.engine.events.row_graphs import RDF_TYPE, type_iri
from oxiseq.engine.events.tuples import TupleRows
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.normal import XSD
from oxiseq.grammar.checking.comparisons import looks_like_number
from oxiseq.grammar.errors import closest, listing
from oxiseq.grammar.records import dataclass

ANY: Final = ""
"""In the place of a stream: all that are given."""
_PLURAL: Final = {"type": "types", "column": "columns", "property": "properties"}
_SHOWN: Final = 10
_REMEMBERED: Final = 1_000
"""Names of a stream among which the one that was meant is looked for."""
_LOOKED_AT: Final = 2_000
"""Values of a property that have to be texts like numbers; then all of them are taken to be."""
_SECOND: Final = 1_000_000
Batch: TypeAlias = EventBatch | TupleRows


class UnmetWarning(UserWarning):
    """A query reads what no event of its streams had, or compares values that can hardly be compared."""


@dataclass(frozen=True, slots=True)
class Reads:
    """What a query reads of its streams."""

    properties: Mapping[str, frozenset[str]]
    """By the stream's IRI, or ANY."""
    types: Mapping[str, frozenset[str]]
    compared: frozenset[str]
    """Properties whose values it calculates with, or compares by `<`."""
    follows: bool
    """Whether its parts follow each other in time, at different instants."""
    beside: bool
    """Whether its patterns read the knowledge base as well as the events."""
    vocab: str = ""
    """The namespace of the columns of tables."""


class Watch:
    """Looks at the batches of a run. `known`: whether something else than the streams has a name."""

    def __init__(self, reads: Reads, terms: TermDictionary, known: Callable[[str], bool]) -> None:
        self._reads, self._terms, self._known = reads, terms, known
        self._seen: dict[str, _Stream] = {}
        self._texts: dict[str, _Texts] = {name: _Texts() for name in reads.compared}

    def see(self, iri: str, batch: Batch) -> None:
        """A batch of a stream."""
        stream = self._seen.setdefault(iri, _Stream(*map(self._open(iri), (self._reads.properties, self._reads.types))))
        if stream.properties or stream.types:
            stream.see(batch, self._terms, self._reads.vocab)
        for name, texts in self._texts.items():
            if texts.open:
                texts.see(_values(batch, name, self._terms, self._reads.vocab))
        stream.events += len(batch)
        if self._reads.follows:
            stream.see_times(batch)

    def notes(self, matches: int) -> Iterator[str]:
        """What there is to say. A name that no event has may be meant so where there are matches, unless another one
        comes close."""
        for of in (ANY, *self._seen):
            yield from self._unmet(of, self._reads.properties.get(of, frozenset()), typed=False, matches=matches)
            yield from self._unmet(of, self._reads.types.get(of, frozenset()), typed=True, matches=matches)
        for name, texts in self._texts.items():
            if texts.open and texts.count:
                yield (
                    f"the values of {self._shown(name)} are texts that look like numbers (such as {texts.example!r}): "
                    "texts are compared letter by letter, and never with numbers; give numbers "
                    '(in a mapping {"column": ..., "datatype": "xsd:decimal"}), or write xsd:decimal(?v) in the query'
                )
        for iri, stream in self._seen.items():
            if stream.together and (stream.same_subject or not matches):
                yield (
                    f"{stream.together:,} of {stream.events:,} events of <{iri}> have the time of the event before, "
                    "and all times are whole seconds: events of one time never follow each other in SEQ; give times "
                    "with fractions of a second"
                )

    def _open(self, iri: str) -> Callable[[Mapping[str, frozenset[str]]], set[str]]:
        return lambda names: {*names.get(iri, ()), *names.get(ANY, ())}

    def _unmet(self, of: str, names: frozenset[str], *, typed: bool, matches: int) -> Iterator[str]:
        streams = [stream for iri, stream in self._seen.items() if of in (ANY, iri) and stream.events]
        has = {each for stream in streams for each in (stream.has_types if typed else stream.has)}
        there = sorted(has - {RDF_TYPE.value})
        what = "type" if typed else "column" if any(stream.tables for stream in streams) else "property"
        shown = listing([*map(self._shown, there[:_SHOWN]), *[f"{len(there) - _SHOWN} more"] * (len(there) > _SHOWN)])
        by_local = {local_name(each): each for each in there}
        for name in sorted(names - has) if streams else ():
            close = closest(local_name(name), by_local)
            if (close is None and matches) or (self._reads.beside and self._known(name)):
                continue
            where = f"<{of}>" if of else "the streams"
            meant = "" if close is None else f": did you mean {self._shown(by_local[close])}?"
            others = f" (events have the {what if len(there) == 1 else _PLURAL[what]} {shown})" if there else ""
            yield f"no event of {where} has the {what} {self._shown(name)}{meant}{others}"

    def _shown(self, name: str) -> str:
        columns = not self._reads.beside or any(stream.tables for stream in self._seen.values())
        bare = name.removeprefix(self._reads.vocab) if columns and self._reads.vocab else name
        return f"<{name}>" if bare == name else bare


def local_name(name: str) -> str:
    return re.split("[/#:]", name)[-1] or name


class _Stream:
    """What has been seen of a stream. `properties`, `types`: what is still missing."""

    def __init__(self, properties: set[str], types: set[str]) -> None:
        self.properties, self.types = properties, types
        self.has: set[str] = set()
        self.has_types: set[str] = set()
        self.tables = False
        self.events = self.together = 0
        self.same_subject = False
        """Whether two events of one time have a subject in common."""
        self._whole = True
        self._last = -1

    def see(self, batch: Batch, terms: TermDictionary, vocab: str) -> None:
        """Names of a batch."""
        if not isinstance(batch, EventBatch) or isinstance(batch, RowEvents):
            rows = batch.rows if isinstance(batch, RowEvents) else batch
            self.tables = True
            naming = rows.naming
            self._add(self.has, (vocab + n for n in rows.rows.schema.names if n not in (naming.time, naming.type)))
            if naming.type in rows.rows.schema.names:
                self.has.add(RDF_TYPE.value)
                if (column := rows.column(naming.type)) is not None and self.types:
                    self._add(self.has_types, (_type(text, vocab) for text in column.unique().to_pylist() if text))
        else:
            predicates = np.unique(batch.predicate)
            names = [terms.term(int(each)) for each in predicates[: _REMEMBERED * 2]]
            self._add(self.has, (each.value for each in names if isinstance(each, NamedNode)))
            if self.types and (typed := terms.find(RDF_TYPE)):
                objects = map(terms.term, np.unique(batch.object[batch.predicate == typed])[:_REMEMBERED].tolist())
                self._add(self.has_types, (each.value for each in objects if isinstance(each, NamedNode)))
        self.properties -= self.has
        self.types -= self.has_types

    def _add(self, to: set[str], names: Iterable[str]) -> None:
        for name in names:
            if len(to) < _REMEMBERED or name in self.properties or name in self.types:
                to.add(name)

    def see_times(self, batch: Batch) -> None:
        """Events that have the time of the one before, as long as all times are whole seconds."""
        time = batch.time
        if not self._whole or not len(time):
            return
        self._whole = not (time % _SECOND).any()
        if not self._whole:
            self.together, self.same_subject = 0, False
            return
        same = np.concatenate([[self._last == time[0]], time[1:] == time[:-1]])
        self._last = int(time[-1])
        self.together += int(same.sum())
        if same.any() and not self.same_subject and isinstance(batch, EventBatch) and not isinstance(batch, RowEvents):
            event = np.repeat(np.arange(len(time)), np.diff(batch.offset))
            tied = np.flatnonzero(np.isin(time, time[same])[event])
            tied = tied[np.lexsort((batch.subject[tied], time[event[tied]]))]
            event, at, subject = event[tied], time[event[tied]], batch.subject[tied]
            alike = (at[1:] == at[:-1]) & (subject[1:] == subject[:-1])
            self.same_subject = bool((alike & (event[1:] != event[:-1])).any())


class _Texts:
    """Whether all values of a property are texts that look like numbers. `open`: so far."""

    def __init__(self) -> None:
        self.open, self.count, self.example = True, 0, ""

    def see(self, values: Iterable[Any]) -> None:
        """Distinct values of a batch."""
        for value in values if self.count < _LOOKED_AT else ():
            if not (isinstance(value, str) and looks_like_number(value)):
                self.open = False
                return
            self.count += 1
            self.example = self.example or value


def _values(batch: Batch, name: str, terms: TermDictionary, vocab: str) -> Iterator[Any]:
    """Some distinct values of a property: texts, and anything else."""
    if isinstance(batch, TupleRows):
        column = batch.column(name.removeprefix(vocab))
        if column is not None:
            yield from (each for each in column.slice(0, _LOOKED_AT).unique().to_pylist() if each is not None)
    elif predicate := terms.find(NamedNode(name)):
        objects = np.flatnonzero(batch.predicate == predicate)[:_LOOKED_AT]
        for term in map(terms.term, np.unique(batch.object[objects]).tolist()):
            yield term.value if isinstance(term, Literal) and term.datatype.value == f"{XSD}string" else term


def _type(text: object, vocab: str) -> str:
    try:
        return type_iri(str(text), vocab).value
    except ValueError:
        return str(text)
