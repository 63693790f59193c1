"""Case `formats`: from files to matches; and the same question asked of a store by SPARQL, window by window.

SPARQL is what a user without a stream engine has: each event's graph is named, its time stands in the default
graph, and the query is asked of every window's graphs anew. The windows tumble, so that both ways have the
same answer, which is compared row by row before anything is timed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from pyoxigraph import DefaultGraph, Quad, QuerySolutions, RdfFormat, Store, parse

from benchmarks.data import NS, SECOND, START, STREAM, quotes
from benchmarks.drive import Prepared
from benchmarks.measure import measure
from benchmarks.report import Figure, Result, Row, Size
from benchmarks.shapes import v_shape
from oxiseq.engine.events.open import write_events
from oxiseq.engine.events.time import to_microseconds
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load
from oxiseq.replay import Replay

WINDOW = 100
"""Seconds, and events, of a tumbling window."""
FEW = 10
"""Companies in the stream that SPARQL is asked about."""
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"

Matches = Counter[tuple[str, ...]]


def query(operator: str) -> str:
    """The V-shape in tumbling windows."""
    text = v_shape(WINDOW).replace(f"WITHIN {WINDOW} EVENTS SLIDING", f"WITHIN {WINDOW} SECONDS")
    return text.replace("SEQ(A; B; C)", f"SEQ(A {operator} B {operator} C)")


def sparql(operator: str) -> str:
    """The same question for one window's graphs."""
    skip_till_next = "" if operator == ":" else f"""
  FILTER NOT EXISTS {{
    ?g4 {TIME} ?t4 . GRAPH ?g4 {{ ?x :company ?c ; :price ?p4 }} FILTER(?t1 < ?t4 && ?t4 < ?t2 && ?p4 < ?p1) }}
  FILTER NOT EXISTS {{
    ?g5 {TIME} ?t5 . GRAPH ?g5 {{ ?y :company ?c ; :price ?p5 }} FILTER(?t2 < ?t5 && ?t5 < ?t3 && ?p5 > ?p2) }}"""
    return f"""PREFIX : <{NS}>
SELECT ?t3 ?c ?p1 ?p2 ?p3 WHERE {{
  ?g1 {TIME} ?t1 . GRAPH ?g1 {{ ?a :company ?c ; :price ?p1 }}
  ?g2 {TIME} ?t2 . GRAPH ?g2 {{ ?b :company ?c ; :price ?p2 }}
  ?g3 {TIME} ?t3 . GRAPH ?g3 {{ ?d :company ?c ; :price ?p3 }}
  FILTER(?t1 < ?t2 && ?t2 < ?t3 && ?p2 < ?p1 && ?p3 > ?p2){skip_till_next}
}}"""


def by_oxiseq(text: str, path: Path) -> Replay:
    """A run that reads the file, as `oxiseq.run` makes it."""
    replay = Replay(load(text), None)
    replay.attach(STREAM, path)
    return replay


def count_oxiseq(text: str, path: Path) -> Callable[[], int]:
    """A task: from a file to the number of matches."""
    return lambda: sum(len(batch) for batch in by_oxiseq(text, path).batches())


def answers_oxiseq(text: str, path: Path) -> Matches:
    """The answer rows."""
    return Counter(
        (str(m.time), *(str(m[v]) for v in ("c", "p1", "p2", "p3"))) for m in by_oxiseq(text, path).matches()
    )


def by_sparql(text: str, path: Path) -> Iterator[QuerySolutions]:
    """The answers of each window in turn."""
    for window in windows(path):
        store = Store()
        store.extend(window)
        answer = store.query(text)
        assert isinstance(answer, QuerySolutions)
        yield answer


def windows(path: Path) -> Iterator[list[Quad]]:
    """The file's quads by window. Every event's time stands before its graph."""
    number = 0

    def window_of(quad: Quad) -> int:
        nonlocal number
        if isinstance(quad.graph_name, DefaultGraph):
            number = (to_microseconds(quad.object) - START) // (WINDOW * SECOND)
        return number

    for _, quads in groupby(parse(path=str(path), format=RdfFormat.N_QUADS), window_of):
        yield list(quads)


def count_sparql(text: str, path: Path) -> Callable[[], int]:
    """A task: from a file to the number of answers."""
    return lambda: sum(1 for answer in by_sparql(text, path) for _ in answer)


def answers_sparql(text: str, path: Path) -> Matches:
    """The answer rows."""
    return Counter(
        (str(to_microseconds(row["t3"])), *(str(row[v]) for v in ("c", "p1", "p2", "p3")))
        for answer in by_sparql(text, path) for row in answer
    )


def run(size: Size) -> Result:
    """Events per second from columns, event table and N-Quads, and by SPARQL."""
    with TemporaryDirectory() as folder:
        files, files_figures = _files(Path(folder), size)
        rows, figures = _against_sparql(Path(folder), size)
    return Result("formats", "From files to matches, and by SPARQL", (*files, *rows), (*files_figures, *figures))


def _files(folder: Path, size: Size) -> tuple[list[Row], list[Figure]]:
    terms = TermDictionary()
    events = quotes(terms, size.events)
    table, quads = folder / "quotes.arrow", folder / "quotes.nq"
    for path in (table, quads):
        write_events(events.batches, terms, path)
    text = query(";")
    prepared = Prepared.of(text, terms)
    ways = {
        "columns in memory": prepared.counting(events),
        "event table (.arrow)": count_oxiseq(text, table),
        "N-Quads": count_oxiseq(text, quads),
    }
    measured = measure(ways, size.rounds, ways)
    if len({m.answer for m in measured.values()}) != 1:
        raise AssertionError(f"the formats give different matches: {measured}")
    rows = [Row.of("V-shape with `;`, tumbling", f"from {n}", m, size.events) for n, m in measured.items()]
    nquads = measured["N-Quads"].median
    table_ratio = nquads / measured["event table (.arrow)"].median
    return rows, [Figure("events/s, event table over N-Quads", table_ratio)]


def _against_sparql(folder: Path, size: Size) -> tuple[list[Row], list[Figure]]:
    terms = TermDictionary()
    path = folder / "few.nq"
    write_events(quotes(terms, size.sparql_events, FEW).batches, terms, path)
    rows, figures = [], []
    for operator in (":", ";"):
        text, asked = query(operator), sparql(operator)
        ours, theirs = answers_oxiseq(text, path), answers_sparql(asked, path)
        if ours != theirs:
            raise AssertionError(f"SEQ(A {operator} B {operator} C): oxiseq and SPARQL answer differently")
        ways = {"oxiseq": count_oxiseq(text, path), "SPARQL": count_sparql(asked, path)}
        measured = measure(ways, size.rounds)
        rows += [Row.of(f"V-shape with `{operator}`, {FEW} companies", f"{n}, from N-Quads", m, size.sparql_events)
                 for n, m in measured.items()]
        ratio = measured["SPARQL"].median / measured["oxiseq"].median
        figures.append(Figure(f"events/s, oxiseq over SPARQL per window, `{operator}`", ratio))
    return rows, figures
