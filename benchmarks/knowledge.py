"""Case `knowledge`: enrichment from a KB of growing size; the stream stays the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import process_time

from pyoxigraph import RdfFormat, Store

from benchmarks.charts import OXISEQ, SPARQL, Chart, Line
from benchmarks.data import NS, STREAM, Events, quotes
from benchmarks.drive import WARM, Prepared
from benchmarks.knowledge_sparql import WINDOW, ask_each, expected
from benchmarks.measure import Clocked, Measured, growth, measure
from benchmarks.report import Figure, Result, Row, Size
from benchmarks.windowed import as_triples
from oxiseq.engine.terms.dictionary import TermDictionary

LIMIT = 1.3
TITLE = "GRAPH enrichment, after materialisation"
SPARQL_FEWER = 20
"""SPARQL is given as many events as single pushes are made, over this."""
ABOUT = (
    "`SEQ(A; B)` with `GRAPH` on the KB, 2,000 companies in the stream, spread over those of the KB, which has 4 "
    "triples of each; once the KB's variables are only shown (matches are enriched), once the sequence compares them. "
    "SPARQL is asked of a store with the KB and the window's graphs, at each event for the matches that end there, on "
    "fewer events."
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
    rows = sum(len(gpm.kb.answer(prepared.kb)) for gpm in prepared.plan.runner.gpms.values() if gpm.kb is not None)
    return process_time() - begin, rows


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A question of a KB of `triples`: compiled, the KB asked (`note` says what that cost); `asking`, SPARQL asked at
    each of `few` events after the first window."""

    kind: str
    triples: int
    prepared: Prepared
    events: Events
    note: str
    asking: Callable[[], Clocked]
    few: int

    @property
    def name(self) -> str:
        """A key."""
        return f"{self.kind} {self.triples}"

    def check(self) -> None:
        """Raises AssertionError when SPARQL finds other matches."""
        ours, theirs = expected(self.prepared, self.events.first(WINDOW + self.few).batches), self.asking().answer
        if ours != theirs:
            raise AssertionError(f"KB variables {self.name}: {ours} matches, {theirs} by SPARQL")


def prepare(triples: int, size: Size) -> list[Case]:
    """The cases of a KB of so many triples."""
    store = make_kb(triples)
    few = max(1, min(size.pushes // SPARQL_FEWER, size.events - WINDOW))
    cases = []
    for kind, query in QUERIES.items():
        terms = TermDictionary()
        events = quotes(terms, size.events, min(COMPANIES, companies(triples)), known=companies(triples))
        prepared = Prepared.of(query, terms, store)
        seconds, rows = materialise(prepared)
        note = f"asking the KB: {seconds:.2f} s, {rows:,} rows"
        asking = partial(ask_each, kind, store, as_triples(events.first(WINDOW + few)))
        cases.append(Case(kind, triples, prepared, events, note, asking, few))
    return cases


def run(size: Size) -> Result:
    """Nanoseconds per event per size of the KB, after the KB has been asked; the same by SPARQL."""
    cases = [case for triples in size.kb for case in prepare(triples, size)]
    for case in cases:
        case.check()
    ways: dict[str, Callable[[], object]] = {case.name: case.prepared.counting(case.events) for case in cases}
    ways |= {f"{SPARQL} {case.name}": case.asking for case in cases}
    warm = {case.name: case.prepared.counting(case.events.first(WARM)) for case in cases}
    measured = measure(ways, size.rounds, warm)
    rows, figures, lines = [], [], []
    span = f"{min(size.kb):,} to {max(size.kb):,} triples"
    for kind in QUERIES:
        own = [case for case in cases if case.kind == kind]
        if len({measured[case.name].answer for case in own}) != 1:
            raise AssertionError(f"KB variables {kind}: other matches with another size of the KB")
        mine = [_row(case, measured[case.name], size.events, "", case.note) for case in own]
        theirs = [_row(case, measured[f"{SPARQL} {case.name}"], case.few, f", {SPARQL}", "") for case in own]
        rows += mine + theirs
        figures.append(Figure(f"KB variables {kind}, {span}", growth([row.ns for row in mine]), LIMIT))
        for by, found in ((OXISEQ, mine), (SPARQL, theirs)):
            points = (row.at(case.triples) for row, case in zip(found, own, strict=True))
            lines.append(Line.of(by, f"KB variables {kind}", points))
    return Result(
        "knowledge",
        TITLE,
        ABOUT,
        tuple(rows),
        tuple(figures),
        (Chart("knowledge", TITLE, "knowledge base (triples)", tuple(lines)),),
    )


def _row(case: Case, measured: Measured, events: int, by: str, note: str) -> Row:
    return Row.of(f"KB variables {case.kind}{by}", f"{case.triples:,} triples", measured, events, note)
