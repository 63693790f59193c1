"""Stored matches as lines of JSON: what live readers, pages of matches and sinks get.

In the flow: `StoredMatches` → **lines** → server-sent events, NDJSON, what sinks deliver.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Final

from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, parse

from oxiseq.engine.events.time import to_text
from oxiseq.journal.rows import StoredMatches
from oxiseq.matches.text import json_term

_PLAIN: Final = re.compile(r'"([^"\\]*)"(?:\^\^<([^<>\\]*)>)?')


def match_lines(matches: StoredMatches) -> list[bytes]:
    """Each match as an object on one line: id, at, start (where it has events), end, SPARQL JSON bindings and, by GPM
    or variable, events."""
    names = _names(matches.heading.variables)
    cells = [None if text is None else json_cell(text) for text in matches.terms]
    found = []
    for i, (at, row) in enumerate(zip(matches.at.tolist(), matches.codes.tolist(), strict=True)):
        bound = ", ".join(
            f"{name}: {cell}" for name, code in zip(names, row, strict=True) if (cell := cells[code]) is not None
        )
        number = matches.first + i
        start, end = matches.span(i)
        begin = "" if start is None else f' "start": "{to_text(start)}",'
        found.append(
            f'{{"id": {number}, "at": "{to_text(at)}",{begin} "end": "{to_text(end)}", "bindings": {{{bound}}},'
            f' "events": {json.dumps(_events(matches, i))}}}'.encode()
        )
    return found


@lru_cache(256)
def _names(variables: tuple[str, ...]) -> list[str]:
    return [json.dumps(name) for name in variables]


def _events(matches: StoredMatches, index: int) -> dict[str, list[dict[str, str]]]:
    return {
        gpm: [{"stream": stream, "time": to_text(time)} for stream, time in events]
        for gpm, events in matches.events(index).items()
    }


@lru_cache(4096)
def json_cell(text: str) -> str:
    """The term of an N-Triples text as in SPARQL JSON results."""
    return json.dumps(json_term(term_of(text)))


def term_of(text: str) -> Any:
    """The term of an N-Triples text."""
    if text[0] == "<" and not text.startswith("<<"):
        return NamedNode(text[1:-1])
    if text.startswith("_:"):
        return BlankNode(text[2:])
    if plain := _PLAIN.fullmatch(text):  # no escapes: parsing takes ten times as long
        value, datatype = plain.groups()
        return Literal(value) if datatype is None else Literal(value, datatype=NamedNode(datatype))
    (quad,) = parse(f"<x:s> <x:p> {text} .", RdfFormat.N_TRIPLES)
    return quad.object
