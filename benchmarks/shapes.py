"""Cases `v-shape` and `kleene`: joins on the company and comparisons of prices, in growing windows."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.data import NS, STREAM, quotes
from benchmarks.drive import WARM, Prepared
from benchmarks.measure import growth, measure
from benchmarks.report import Figure, Result, Row, Size
from oxiseq.engine.terms.dictionary import TermDictionary

WINDOWS = (100, 1_000, 10_000)
MOVES = ("walk", "falling")
LIMIT = 3.0
V_SHAPE_ABOUT = (
    "`SEQ(A; B; C)` on one of 110 companies, `?p2 < ?p1`, `?p3 > ?p2`; every quote is a candidate for A, B and C; "
    "sliding windows. Walking prices go up and down, falling ones never complete a match."
)
KLEENE_ABOUT = (
    "Opening, trades and closing of one of 110 companies, `?p2 > PREV(?p2)` among the trades, the closing below the "
    "last of them; each quote is one of the three; sliding windows. Every length is a match."
)


def v_shape(window: int) -> str:
    """A fall and a rise of one company, each the next one; every quote is a candidate for all three."""
    return f"""PREFIX : <{NS}>
SELECT ?c ?p1 ?p2 ?p3
WITHIN {window} EVENTS SLIDING
FROM STREAM S <{STREAM}>
WHERE {{
  SEQ(A; B; C)
  DEFINE GPM A ON S {{ ?a :company ?c ; :price ?p1 }}
  DEFINE GPM B ON S {{ ?b :company ?c ; :price ?p2 . FILTER(?p2 < ?p1) }}
  DEFINE GPM C ON S {{ ?d :company ?c ; :price ?p3 . FILTER(?p3 > ?p2) }}
}}"""


def kleene(chain: str) -> Callable[[int], str]:
    """`A; B+; C` with rising prices in B; `chain` is the quantifier, `+` or `;+`."""

    def query(window: int) -> str:
        return f"""PREFIX : <{NS}>
SELECT ?c ?p1 ?p2 ?p3
WITHIN {window} EVENTS SLIDING
FROM STREAM S <{STREAM}>
WHERE {{
  SEQ(A; B{chain}; C)
  DEFINE GPM A ON S {{ ?a :kind :Open ; :company ?c ; :price ?p1 }}
  DEFINE GPM B ON S {{ ?b :kind :Trade ; :company ?c ; :price ?p2 . FILTER(?p2 > PREV(?p2)) }}
  DEFINE GPM C ON S {{ ?d :kind :Close ; :company ?c ; :price ?p3 . FILTER(?p3 < ?p2) }}
}}"""

    return query


KLEENE = {"`A; B+; C`": kleene("+"), "`A; B;+; C`": kleene(";+")}


def run_v_shape(size: Size) -> Result:
    """Nanoseconds per event of the V-shape, per window and kind of prices."""
    return _run("v-shape", "V-shape with `;`", V_SHAPE_ABOUT, {"V `;`": v_shape}, size)


def run_kleene(size: Size) -> Result:
    """Nanoseconds per event of `A; B+; C`, per window and kind of prices."""
    return _run("kleene", "Kleene with rising prices", KLEENE_ABOUT, KLEENE, size)


def _run(name: str, title: str, about: str, queries: dict[str, Callable[[int], str]], size: Size) -> Result:
    ways, warm, where = {}, {}, []
    for moves in MOVES:
        terms = TermDictionary()
        events = quotes(terms, size.events, moves=moves)
        start = events.first(WARM)
        for shape, query in queries.items():
            for window in WINDOWS:
                key = f"{shape} {moves} {window}"
                prepared = Prepared.of(query(window), terms)
                ways[key], warm[key] = prepared.counting(events), prepared.counting(start)
                where.append((key, shape, moves, window))
    measured = measure(ways, size.rounds, warm)
    costs: dict[str, list[float]] = {}
    rows = []
    for key, shape, moves, window in where:
        row = Row.of(f"{shape}, {moves}", f"{window:,} events", measured[key], size.events)
        rows.append(row)
        costs.setdefault(f"{shape}, {moves}, 100 to 10,000 events", []).append(row.ns)
    figures = tuple(Figure(label, growth(ns), LIMIT) for label, ns in costs.items())
    return Result(name, title, about, tuple(rows), figures)
