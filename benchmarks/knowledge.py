"""Case `knowledge`: enrichment from a KB of growing size; the stream stays the same."""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time

from pyoxigraph import RdfFormat, Store

from benchmarks.data import NS, STREAM, Events, quotes
from benchmarks.drive import WARM, Prepared
from benchmarks.measure import growth, measure
from benchmarks.report import Figure, Result, Row, Size
from oxiseq.engine.terms.dictionary import TermDictionary

LIMIT = 1.3
ABOUT = (
    "`SEQ(A; B)` with `GRAPH` on the KB, 2,000 companies in the stream, spread over those of the KB, which has 4 "
    "triples of each; once the KB's variables are only shown (matches are enriched), once the sequence compares them."
)
TRIPLES = 4
"""Triples of a company in the KB."""
SECTORS = 200
GRAPH = NS + "kb"
COMPANIES = 2_000
"""Companies of the stream, spread evenly over those of the KB."""

LATE = f"""PREFIX : <{NS}>
SELECT ?c ?sector ?label ?p1 ?p2
WITHIN 2000 EVENTS SLIDING
FROM STREAM S <{STREAM}>
WHERE {{
  SEQ(A; B)
  DEFINE GPM A ON S {{ ?a :company ?c ; :price ?p1 . GRAPH <{GRAPH}> {{ ?c :sector ?sector ; :label ?label }} }}
  DEFINE GPM B ON S {{ ?b :company ?c ; :price ?p2 . FILTER(?p2 < ?p1) }}
}}"""
"""The KB's variables are shown only: matches are enriched when they are complete."""

COMPARED = f"""PREFIX : <{NS}>
SELECT ?c ?d ?sector ?p1 ?p2
WITHIN 2000 EVENTS SLIDING
FROM STREAM S <{STREAM}>
WHERE {{
  SEQ(A; B)
  DEFINE GPM A ON S {{ ?a :company ?c ; :price ?p1 . GRAPH <{GRAPH}> {{ ?c :sector ?sector }} }}
  DEFINE GPM B ON S {{ ?b :company ?d ; :price ?p2 . GRAPH <{GRAPH}> {{ ?d :sector ?sector }} FILTER(?p2 < ?p1) }}
}}"""
"""The sequence compares a variable of the KB: each event is joined with the KB's answer at once."""

QUERIES = {"shown": LATE, "compared": COMPARED}


def companies(triples: int) -> int:
    """How many companies a KB of so many triples describes."""
    return triples // TRIPLES


def make_kb(triples: int) -> Store:
    """A store whose companies of the stream have the same sectors whatever its size."""
    store = Store()
    store.bulk_load("".join(_quads(companies(triples))).encode(), format=RdfFormat.N_QUADS)
    return store


def _quads(count: int) -> Iterator[str]:
    stride = max(1, count // COMPANIES)
    for number in range(count):
        company = f"<{NS}company/{number}>"
        yield f"{company} <{NS}sector> <{NS}sector/{number // stride % SECTORS}> <{GRAPH}> .\n"
        yield f'{company} <{NS}label> "Company {number}" <{GRAPH}> .\n'
        yield f'{company} <{NS}founded> "{1900 + number % 120}"^^<http://www.w3.org/2001/XMLSchema#gYear> <{GRAPH}> .\n'
        yield f"{company} <{NS}seat> <{NS}city/{number % 997}> <{GRAPH}> .\n"


def materialise(prepared: Prepared) -> tuple[float, int]:
    """CPU seconds to ask the KB once for all GPMs, and the rows that are kept."""
    begin = process_time()
    rows = sum(len(gpm.kb.answer(prepared.kb)) for gpm in prepared.plan.gpms.values() if gpm.kb is not None)
    return process_time() - begin, rows


def prepare(triples: int, size: Size) -> dict[str, tuple[Prepared, Events, str]]:
    """Per query: compiled and the KB asked, the events, and what asking cost."""
    store = make_kb(triples)
    cases = {}
    for kind, query in QUERIES.items():
        terms = TermDictionary()
        events = quotes(terms, size.events, min(COMPANIES, companies(triples)), known=companies(triples))
        prepared = Prepared.of(query, terms, store)
        seconds, rows = materialise(prepared)
        cases[kind] = prepared, events, f"asking the KB: {seconds:.2f} s, {rows:,} rows"
    return cases


def run(size: Size) -> Result:
    """Nanoseconds per event per size of the KB, after the KB has been asked."""
    cases = {
        (kind, triples): case for triples in size.kb for kind, case in prepare(triples, size).items()
    }
    ways = {f"{kind} {triples}": p.counting(events) for (kind, triples), (p, events, _) in cases.items()}
    warm = {name: p.counting(events.first(WARM)) for name, (p, events, _) in zip(ways, cases.values(), strict=True)}
    measured = measure(ways, size.rounds, warm)
    rows, figures = [], []
    span = f"{min(size.kb):,} to {max(size.kb):,} triples"
    for kind in QUERIES:
        found = [(triples, measured[f"{kind} {triples}"], cases[kind, triples][2]) for triples in size.kb]
        if len({m.answer for _, m, _ in found}) != 1:
            raise AssertionError(f"KB variables {kind}: other matches with another size of the KB")
        mine = [Row.of(f"KB variables {kind}", f"{t:,} triples", m, size.events, note) for t, m, note in found]
        rows += mine
        figures.append(Figure(f"KB variables {kind}, {span}", growth([row.ns for row in mine]), LIMIT))
    return Result("knowledge", "GRAPH enrichment, after materialisation", ABOUT, tuple(rows), tuple(figures))
