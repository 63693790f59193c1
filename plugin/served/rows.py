"""Matches in a server's JSON → blocks of columns, which `Match` and `Matches` are made of."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np
from pyoxigraph import BaseDirection, BlankNode, Literal, NamedNode

from oxiseq.api.query import shape_of
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.batch import offsets
from oxiseq.engine.events.time import to_microseconds
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term, parse_term
from oxiseq.matches.shape import Block, PositionColumns, Shape
from oxiseq.options.query_text import QueryText

_DATE_TIME = NamedNode("http://www.w3.org/2001/XMLSchema#dateTime")
Told = Mapping[str, Any]
"""One match: `id`, `at`, `end`, `bindings` (SPARQL JSON) and, by name, `events`. An older server has no `end`."""


class Decoder:
    """Reads the matches of one query, which is compiled here to know what they have in common. Safe for many threads.
    Raises QueryError, OxiseqError."""

    def __init__(self, query: QueryText, reads: Collection[str] = ()) -> None:
        self.shape = shape_of(query, reads)[0]
        self._lock = Lock()

    def block(self, told: Sequence[Told]) -> Block:
        """Matches as columns. Raises OxiseqError where they are of another query, which had the name before."""
        with self._lock:
            block = block_of(self.shape, told)
            self.shape.terms.hold(block.rows.values)
            self.shape.terms.collect_if_due()
            return block


def block_of(shape: Shape, told: Sequence[Told]) -> Block:
    """As `Decoder.block`."""
    columns = shape.told
    for each in told:
        if other := set(each["bindings"]) - set(columns):
            raise OxiseqError(
                f"match {each['id']} answers ?{', ?'.join(sorted(other))}: it is of another text, which "
                f"the query had before; read on with after={each['id']}"
            )
    decided = np.array([_micros(each["at"]) for each in told], np.int64)
    ends = np.array([_micros(each.get("end", each["at"])) for each in told], np.int64)
    times = ends if shape.later else decided
    numbers = np.array([each["id"] for each in told], np.int64)
    if shape.form == "EVENTS":
        return _complex(shape, told, times, numbers)
    letters: dict[tuple[str, str], int] = {}
    sizes, letter, at = [], [], []
    for each in told:
        events = sorted(
            (_micros(e["time"]), letters.setdefault((name, e["stream"]), len(letters)))
            for name, of in each["events"].items()
            for e in of
        )
        sizes.append(len(events))
        at += [time for time, _ in events]
        letter += [number for _, number in events]
    values = np.zeros((len(told), len(columns)), np.uint32)
    for i, each in enumerate(told):
        for j, name in enumerate(columns):
            if name in each["bindings"]:
                values[i, j] = _id(shape.terms, each["bindings"][name])
    rows = MatchBatch(
        times,
        values,
        offsets(np.array(sizes, np.int64)),
        np.array(letter, np.int32),
        np.array(at, np.int64),
        decided if shape.later else None,
    )
    return Block(shape, rows, tuple((name,) for name in letters), numbers=numbers)


def _complex(shape: Shape, told: Sequence[Told], times: Any, numbers: Any) -> Block:
    """For CEQL: which variables hold the event at a position, and its time, are in two places."""
    letters: dict[tuple[tuple[str, str], ...], int] = {}
    sizes, letter, at, of = [], [], [], []
    for each in told:
        bound = each["bindings"]
        held: dict[int, list[tuple[str, str, int]]] = {p: [] for p in _numbers(bound["positions"])}
        for name, events in each["events"].items():
            for position, event in zip(_numbers(bound[name]), events, strict=True):
                held[position].append((name, event["stream"], _micros(event["time"])))
        sizes.append(len(held))
        for position, by in held.items():
            of.append(position)
            at.append(by[0][2] if by else _micros(each["at"]))
            letter.append(letters.setdefault(tuple((name, stream) for name, stream, _ in by), len(letters)))
    count = len(told)
    rows = MatchBatch(
        times,
        np.zeros((count, 0), np.uint32),
        offsets(np.array(sizes, np.int64)),
        np.array(letter, np.int32),
        np.array(at, np.int64),
    )
    first, last = (
        np.array([int(each["bindings"][name]["value"]) for each in told], np.int64) for name in ("first", "last")
    )
    return Block(shape, rows, tuple(letters), PositionColumns(first, last, np.array(of, np.int64)), numbers)


def _numbers(literal: Mapping[str, str]) -> list[int]:
    return [int(word) for word in literal["value"].split()]


@lru_cache(4096)
def _micros(time: str) -> int:
    return to_microseconds(Literal(time, datatype=_DATE_TIME))


def _id(terms: TermDictionary, cell: Mapping[str, Any]) -> int:
    if cell["type"] == "bnode":
        return terms.kb_blank(cell["value"])  # the same wherever it comes again
    return terms.intern_written(_text(cell).encode())


def term_of(cell: Mapping[str, Any]) -> Term:
    """A term of SPARQL JSON."""
    if cell["type"] == "bnode":
        return BlankNode(cell["value"])
    return parse_term(_text(cell))


def _text(cell: Mapping[str, Any]) -> str:
    """A term of SPARQL JSON in N-Triples."""
    match cell["type"]:
        case "uri":
            return str(NamedNode(cell["value"]))
        case "triple":
            parts = " ".join(_text(cell["value"][name]) for name in ("subject", "predicate", "object"))
            return f"<<( {parts} )>>"
        case _:
            if "xml:lang" in cell:
                direction = BaseDirection(cell["its:dir"]) if "its:dir" in cell else None
                return str(Literal(cell["value"], language=cell["xml:lang"], direction=direction))
            datatype = cell.get("datatype")
            return str(Literal(cell["value"], datatype=None if datatype is None else NamedNode(datatype)))
