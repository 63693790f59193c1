"""A short way to write a query and its events, for tests of one fact each.

`"a1 b2&b3 x@25 2:c1"` are four events: things of kind a, b, x, c with the number behind the letter as
`:k`; `&` puts two things into one event, `@` gives the time (else 10, 20, 30...), `2:` the second stream. `^` is a
punctuation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pyoxigraph import RdfFormat, Store, Triple, parse

from oxiseq.grammar.algebra import Query
from reference.evaluate import ReferenceResult, evaluate
from reference.permute import read

PREFIXES = "PREFIX : <http://e/>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"


def query_text(
    seq: str,
    *,
    window: str = "",
    select: str = "SELECT *",
    bodies: Mapping[str, str] | None = None,
    second: str = "",
    until: str = "",
) -> str:
    """A query whose GPM X binds ?x to things of kind x and ?kx to their number, unless `bodies` says otherwise
    (`+ ...` adds to the usual body). GPMs named in `second` are on the second stream. `until`: what UNTIL names."""
    names = dict.fromkeys(re.findall(r"\b[A-Z]\b", f"{seq} {until}"))
    given = bodies or {}
    defines = []
    for name in names:
        low = name.lower()
        body = given.get(name, "+")
        if body.startswith("+"):
            body = f"?{low} :kind :{low} . ?{low} :k ?k{low} . {body[1:]}"
        defines.append(f"DEFINE GPM {name} ON {'S2' if name in second else 'S1'} {{ {body} }}")
    return (
        f"{PREFIXES}{select} {window} FROM STREAM S1 <http://e/s1> FROM STREAM S2 <http://e/s2>\n"
        f"WHERE {{ SEQ({seq}){f' UNTIL {until}' if until else ''}\n" + "\n".join(defines) + " }"
    )


def streams_of(events: str) -> dict[str, list[tuple[int, str]]]:
    """IRI → (time, Turtle text) in order of arrival; a punctuation is the text `^`."""
    streams: dict[str, list[tuple[int, str]]] = {"http://e/s1": [], "http://e/s2": []}
    for number, token in enumerate(events.split()):
        body, _, at = token.partition("@")
        stream, body = ("2", body[2:]) if body.startswith("2:") else ("1", body)
        when = int(at) if at else 10 * (number + 1)
        if body == "^":
            streams[f"http://e/s{stream}"].append((when, body))
            continue
        things = [thing for thing in body.split("&") if thing]
        text = PREFIXES.replace("PREFIX", "@prefix").replace(">\n", "> .\n")
        text += " ".join(f":{t}e{number} :kind :{t[0]} ; :k {t[1:] or 0} ." for t in things)
        streams[f"http://e/s{stream}"].append((when, text))
    return streams


def answer(
    query: str | Query,
    events: str,
    *,
    kb: str = "",
    start: int | None = None,
    lateness: int = 0,
    open_end: bool = False,
) -> ReferenceResult:
    store = Store()
    store.load(kb.encode(), format=RdfFormat.TRIG)
    streams = {
        iri: [(t, None if text == "^" else _triples(text)) for t, text in arrivals]
        for iri, arrivals in streams_of(events).items()
    }
    return evaluate(read(query) if isinstance(query, str) else query, streams, store, start, lateness, open_end)


def _triples(text: str) -> list[Triple]:
    return [quad.triple for quad in parse(text.encode(), format=RdfFormat.TURTLE)]


def matches(
    seq: str, events: str, *, start: int | None = None, lateness: int = 0, kb: str = "", **more: Any
) -> list[str]:
    """The matches as text, sorted: `A10 B20,30`."""
    text = query_text(seq, **more)
    result = answer(text, events, start=start, lateness=lateness, kb=kb)
    return sorted(
        " ".join(name + ",".join(str(t) for _, t in found) for name, found in sorted(row.events.items()))
        for row in result.rows
    )


def columns(select: str, seq: str, events: str, kb: str = "", tail: str = "", **more: Any) -> list[dict[str, str]]:
    """The rows, each variable with its term's N-Triples text (numbers and strings without datatype). `tail`: what
    stands behind WHERE."""
    text = query_text(seq, select=select, **more) + tail
    return [
        {v.value: getattr(t, "value", str(t)) for v, t in row.bindings.items()}
        for row in answer(text, events, kb=kb).rows
    ]
