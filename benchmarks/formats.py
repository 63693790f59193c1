"""Case `formats`: from files to matches; and the same question asked of a store by SPARQL, window by window.

SPARQL is what a user without a stream engine has: each event's graph is named, its time stands in the default
graph, and the query is asked of every window's graphs again. The windows tumble, so that both ways have the
same answer, which is compared row by row before anything is timed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from pyoxigraph import DefaultGraph, Literal, Quad, QuerySolutions, RdfFormat, Store, parse

from benchmarks.data import NS, SECOND, START, STREAM, quotes
from benchmarks.drive import Prepared
from benchmarks.measure import measure
from benchmarks.report import Figure, Result, Row, Size
from benchmarks.shapes import v_shape
from benchmarks.windowed import COMPANY
from oxiseq.engine.events.open import write_events
from oxiseq.engine.events.time import to_microseconds
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load
from oxiseq.languages.driving import Driver
from oxiseq.languages.registry import language_named
from oxiseq.options import Options

WINDOW = 100
"""Seconds, and events, of a tumbling window."""
SPARQL_WINDOWS = ((100, 10), (1_000, 100))
"""Seconds of a window and companies in it, for the comparison with SPARQL."""
FEWER = 20
"""SPARQL at each event is asked about one event in so many: the first ones."""
ABOUT = (
    "The V-shape in tumbling windows; a file's time includes reading it and compiling the query. SPARQL is asked of a "
    "pyoxigraph store with the window's graphs: at the end of the window, which delays matches until then, or at "
    "each event for the matches of its company that end there (timed on the first twentieth of the events). Equal "
    "answers are checked."
)
SHOWN = ("c", "p1", "p2", "p3")
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"

Matches = Counter[tuple[str, ...]]


def query(operator: str, window: int) -> str:
    """The V-shape in tumbling windows."""
    text = v_shape(window).replace(f"WITHIN {window} EVENTS SLIDING", f"WITHIN {window} SECONDS")
    return text.replace("SEQ(A; B; C)", f"SEQ(A {operator} B {operator} C)")


def sparql(operator: str) -> str:
    """The same question for one window's graphs.

    The next fall and the next rise are asked by MIN and GROUP BY: the form with NOT EXISTS says it more plainly
    and took about sixty times as long.
    """
    return (_ANY if operator == ":" else _NEXT).replace("time:", TIME)


_ANY = f"""PREFIX : <{NS}>
SELECT ?t3 ?c ?p1 ?p2 ?p3 WHERE {{
  ?g1 time: ?t1 . GRAPH ?g1 {{ ?a :company ?c ; :price ?p1 }}
  ?g2 time: ?t2 . GRAPH ?g2 {{ ?b :company ?c ; :price ?p2 }}
  ?g3 time: ?t3 . GRAPH ?g3 {{ ?d :company ?c ; :price ?p3 }}
  FILTER(?t1 < ?t2 && ?t2 < ?t3 && ?p2 < ?p1 && ?p3 > ?p2)
}}"""

_NEXT = f"""PREFIX : <{NS}>
SELECT ?t3 ?c ?p1 ?p2 ?p3 WHERE {{
  {{ SELECT ?c ?t1 ?p1 ?t2 ?p2 (MIN(?later) AS ?t3) WHERE {{
      {{ SELECT ?c ?t1 ?p1 (MIN(?soon) AS ?t2) WHERE {{
          ?g1 time: ?t1 . GRAPH ?g1 {{ ?a :company ?c ; :price ?p1 }}
          ?s time: ?soon . GRAPH ?s {{ ?b :company ?c ; :price ?fallen }}
          FILTER(?t1 < ?soon && ?fallen < ?p1)
        }} GROUP BY ?c ?t1 ?p1 }}
      ?g2 time: ?t2 . GRAPH ?g2 {{ ?b :company ?c ; :price ?p2 }}
      ?l time: ?later . GRAPH ?l {{ ?d :company ?c ; :price ?risen }}
      FILTER(?t2 < ?later && ?risen > ?p2)
    }} GROUP BY ?c ?t1 ?p1 ?t2 ?p2 }}
  ?g3 time: ?t3 . GRAPH ?g3 {{ ?e :company ?c ; :price ?p3 }}
}}"""


def by_oxiseq(text: str, path: Path) -> Driver:
    """A run that reads the file, as `oxiseq.run` makes it."""
    driver = language_named("spaseq").driver(load(text), None, Options())
    driver.attach(STREAM, path)
    return driver


def count_oxiseq(text: str, path: Path) -> Callable[[], int]:
    """A task: from a file to the number of matches."""
    return lambda: sum(len(batch) for batch in by_oxiseq(text, path).batches())


def answers_oxiseq(text: str, path: Path) -> Matches:
    """The answer rows."""
    return Counter((str(match.at_us), *(str(match[v]) for v in SHOWN)) for match in by_oxiseq(text, path).matches())


def by_window(text: str, path: Path, window: int) -> Iterator[QuerySolutions]:
    """The answers when the query is asked at the end of each window."""
    for events in windows(path, window):
        store = Store()
        for event in events:
            store.extend(event)
        yield _ask(store, text)


def by_event(text: str, path: Path, window: int) -> Iterator[QuerySolutions]:
    """The answers when the query is asked at each event for the matches that end there, as a stream's user wants."""
    for events in windows(path, window):
        store = Store()
        for event in events:
            store.extend(event)
            company = next(quad.object for quad in event if quad.predicate == COMPANY)
            yield _ask(store, ending(text, event[0].object, company))


def ending(text: str, time: object, company: object) -> str:
    """The query `text`, for the matches that end with an event of this time and company.

    The company stands in every pattern; binding only the time, from outside, was up to a hundred times as slow.
    """
    text = text.replace(":company ?c", f":company {company}")
    text = text.replace("SELECT ?c ", "SELECT ").replace("GROUP BY ?c ", "GROUP BY ")
    return text.replace("WHERE {", f"WHERE {{ VALUES (?t3 ?c) {{ ({time} {company}) }}", 1)


def _ask(store: Store, text: str) -> QuerySolutions:
    answer = store.query(text)
    assert isinstance(answer, QuerySolutions)
    return answer


def windows(path: Path, window: int) -> Iterator[list[list[Quad]]]:
    """The file's events by window of so many seconds; an event is its quads, the one with its time first."""

    def number(event: list[Quad]) -> int:
        time = event[0].object
        assert isinstance(time, Literal)
        return (to_microseconds(time) - START) // (window * SECOND)

    return (list(events) for _, events in groupby(_events(path), number))


def _events(path: Path) -> Iterator[list[Quad]]:
    event: list[Quad] = []
    for quad in parse(path=str(path), format=RdfFormat.N_QUADS):
        if event and isinstance(quad.graph_name, DefaultGraph):
            yield event
            event = []
        event.append(quad)
    if event:
        yield event


def rows_of(answers: Iterable[QuerySolutions]) -> Matches:
    """The answer rows."""
    return Counter(
        (str(to_microseconds(row["t3"])), *(str(row[v]) for v in SHOWN)) for answer in answers for row in answer
    )


def count(ask: Callable[[str, Path, int], Iterator[QuerySolutions]], text: str, path: Path, window: int) -> int:
    """From a file to the number of answers."""
    return sum(1 for answer in ask(text, path, window) for _ in answer)


def run(size: Size) -> Result:
    """Events per second from columns, event table and N-Quads, and by SPARQL."""
    with TemporaryDirectory() as folder:
        rows, figures = _files(Path(folder), size)
        for window, companies in SPARQL_WINDOWS:
            for operator in (":", ";"):
                more, ratios = _against_sparql(Path(folder), size, operator, window, companies)
                rows += more
                figures += ratios
    return Result("formats", "From files to matches, and by SPARQL", ABOUT, tuple(rows), tuple(figures))


def _files(folder: Path, size: Size) -> tuple[list[Row], list[Figure]]:
    terms = TermDictionary()
    events = quotes(terms, size.events)
    table, quads = folder / "quotes.arrow", folder / "quotes.nq"
    for path in (table, quads):
        write_events(events.batches, terms, path)
    text = query(";", WINDOW)
    columns = Prepared.of(text, terms).counting(events)
    ways = {
        "from columns in memory": columns,
        "from an event table (.arrow)": count_oxiseq(text, table),
        "from N-Quads": count_oxiseq(text, quads),
    }
    measured = measure(ways, size.rounds, {"kernels": columns})
    if len({m.answer for m in measured.values()}) != 1:
        raise AssertionError(f"the formats give different matches: {measured}")
    rows = [Row.of(f"V-shape with `;`, tumbling, {WINDOW} s", n, m, size.events) for n, m in measured.items()]
    ratio = measured["from N-Quads"].median / measured["from an event table (.arrow)"].median
    return rows, [Figure("events/s, event table over N-Quads", ratio)]


def _against_sparql(
    folder: Path, size: Size, operator: str, window: int, companies: int
) -> tuple[list[Row], list[Figure]]:
    terms = TermDictionary()
    path, short = folder / "quotes-for-sparql.nq", folder / "few-quotes.nq"
    events = quotes(terms, size.sparql_events, companies)
    few = events.first(max(1, size.sparql_events // FEWER))
    write_events(events.batches, terms, path)
    write_events(few.batches, terms, short)
    text, asked = query(operator, window), sparql(operator)
    for file, ask in ((path, by_window), (short, by_event)):
        if answers_oxiseq(text, file) != rows_of(ask(asked, file, window)):
            raise AssertionError(f"SEQ(A {operator} B {operator} C): oxiseq and SPARQL answer differently")
    ways = {
        "oxiseq": count_oxiseq(text, path),
        "SPARQL at each window's end": lambda: count(by_window, asked, path, window),
        "SPARQL at each event": lambda: count(by_event, asked, short, window),
    }
    measured = measure(ways, min(3, size.rounds))
    what = f"V-shape with `{operator}`, {window:,} s, {companies} companies"
    sizes = (len(events), len(events), len(few))
    rows = [Row.of(what, f"{name}, from N-Quads", m, n) for (name, m), n in zip(measured.items(), sizes, strict=True)]
    figures = [
        Figure(f"events/s, oxiseq over {row.where.split(',')[0]}, `{operator}`, {window:,} s", row.ns / rows[0].ns)
        for row in rows[1:]
    ]
    return rows, figures
