"""Case `emission`: matches that lie there as columns → Arrow, SPARQL JSON, Python objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyoxigraph import DefaultGraph, Quad, QueryResultsFormat, QuerySolutions, Store

from benchmarks.data import NS, STREAM, decimal, iri, quotes
from benchmarks.drive import Prepared
from benchmarks.measure import measure
from benchmarks.report import Figure, Result, Row, Size
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.languages.spaseq.language import spaseq_shape
from oxiseq.matches.matches import Matches

PER_EVENT: Final = 5
"""Matches that an event brings, about: a window of so many events for each company."""
COMPANIES: Final = 110
FEWER: Final = 20
"""Iteration and the store are given one row in so many."""
ARROW: Final = 1_000_000
JSON: Final = 300_000
"""Rows per second that are asked for."""
TEXT: Final = f"""PREFIX : <{NS}>
SELECT ?c ?p1 ?p2
WITHIN {PER_EVENT * COMPANIES} EVENTS SLIDING
FROM STREAM S <{STREAM}>
WHERE {{
  SEQ(A : B)
  DEFINE GPM A ON S {{ ?a :company ?c ; :price ?p1 }}
  DEFINE GPM B ON S {{ ?b :company ?c ; :price ?p2 }}
}}"""
ABOUT: Final = (
    "`SEQ(A : B)` on one of 110 companies, company and two prices, and which events: matches that have been found, "
    "as an Arrow table, as a SPARQL JSON text, and iterated over as Python objects with one term looked at. Beside it "
    "pyoxigraph's own SPARQL JSON of as many columns."
)


def run(size: Size) -> Result:
    """Nanoseconds per row."""
    matches = _found(size.events)
    count = len(matches)
    few = matches[: max(1, count // FEWER)]
    ways: dict[str, Callable[[], int]] = {
        "to Arrow": lambda: matches.to_arrow().num_rows,
        "to SPARQL JSON": lambda: matches.write(format="json").count(b'"p2"') - 1,
        "iterated": lambda: sum(1 for match in few if match["c"] is not None),
        "SPARQL JSON by pyoxigraph": _by_store(len(few)),
    }
    measured = measure(ways, size.rounds, ways)
    rows = {
        name: Row.of(f"{count:,} matches" if many == count else f"{many:,} of them", name, measured[name], many)
        for name, many in zip(ways, (count, count, len(few), len(few)), strict=True)
    }
    arrow, json = rows["to Arrow"], rows["to SPARQL JSON"]
    figures = (
        Figure(f"time to Arrow over that of {ARROW:,} rows/s", arrow.ns * ARROW / 1e9, 1.0),
        Figure(f"time to SPARQL JSON over that of {JSON:,} rows/s", json.ns * JSON / 1e9, 1.0),
        Figure("time to SPARQL JSON over pyoxigraph's", json.ns / rows["SPARQL JSON by pyoxigraph"].ns),
    )
    return Result("emission", "Emission of matches", ABOUT, tuple(rows.values()), figures)


def _found(events: int) -> Matches:
    terms = TermDictionary()
    prepared = Prepared.of(TEXT, terms)
    batches = prepared.run(quotes(terms, events, COMPANIES).batches)
    return Matches(spaseq_shape(prepared.plan, terms).block(batches), events)


def _by_store(count: int) -> Callable[[], int]:
    """A task: a store's answer of `count` rows of three columns as SPARQL JSON."""
    store = Store()
    store.bulk_extend(Quad(iri(f"e{i}"), iri("price"), decimal(i), DefaultGraph()) for i in range(count))

    def task() -> int:
        answer = store.query("SELECT ?p1 ?c ?p2 { ?p1 ?c ?p2 }")
        assert isinstance(answer, QuerySolutions)
        text = answer.serialize(format=QueryResultsFormat.JSON)
        assert text is not None
        return text.count(b'"p2"') - 1

    return task
