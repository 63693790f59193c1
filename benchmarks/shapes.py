"""Cases `v-shape` and `kleene`: joins on the company and comparisons of prices, in growing windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.charts import OXISEQ, TEXTBOOK, Chart, Line
from benchmarks.data import NS, STREAM, plain, quotes
from benchmarks.drive import WARM, Prepared
from benchmarks.measure import growth, measure
from benchmarks.report import Figure, Result, Row, Size
from benchmarks.rivals import Rival, textbook
from benchmarks.textbook import Chosen, Event, Nfa, Step
from oxiseq.engine.terms.dictionary import TermDictionary

WINDOWS = (100, 1_000, 10_000)
MOVES = ("walk", "falling")
LIMIT = 3.0
V_SHAPE_TITLE = "V-shape with `;`"
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


def v_shape_nfa(window: int) -> Nfa:
    """The V-shape for the textbook, over `plain` quotes."""
    return Nfa(
        [
            Step(lambda event, _: True),
            Step(lambda event, chosen: event[1] == chosen[0][1] and event[2] < chosen[0][2], ";"),
            Step(lambda event, chosen: event[1] == chosen[0][1] and event[2] > chosen[1][2], ";"),
        ],
        window,
    )


def kleene_nfa(chain: str) -> Callable[[int], Nfa]:
    """`A; B+; C` for the textbook; a plain `+` after another step chains by `,`."""

    def trade(event: Event, chosen: Chosen) -> bool:
        return bool(event[3] == NS + "Trade" and event[1] == chosen[0][1])

    def steps(window: int) -> Nfa:
        return Nfa(
            [
                Step(lambda event, _: event[3] == NS + "Open"),
                Step(trade, ";", chain.rstrip("+") or ",", lambda e, chosen: trade(e, chosen) and e[2] > chosen[-1][2]),
                Step(
                    lambda event, chosen: (
                        event[3] == NS + "Close" and event[1] == chosen[0][1] and event[2] < chosen[-1][2]
                    ),
                    ";",
                ),
            ],
            window,
        )

    return steps


@dataclass(frozen=True, slots=True)
class Shape:
    """A question for a window of so many events, and the same for the textbook."""

    query: Callable[[int], str]
    nfa: Callable[[int], Nfa]


V_SHAPE = {"V `;`": Shape(v_shape, v_shape_nfa)}
KLEENE = {f"`A; B{chain}; C`": Shape(kleene(chain), kleene_nfa(chain)) for chain in ("+", ";+")}


def run_v_shape(size: Size) -> Result:
    """Nanoseconds per event of the V-shape, per window and kind of prices."""
    return _run("v-shape", V_SHAPE_TITLE, V_SHAPE_ABOUT, V_SHAPE, size)


def run_kleene(size: Size) -> Result:
    """Nanoseconds per event of `A; B+; C`, per window and kind of prices."""
    return _run("kleene", "Kleene with rising prices", KLEENE_ABOUT, KLEENE, size)


def _run(name: str, title: str, about: str, shapes: Mapping[str, Shape], size: Size) -> Result:
    cases = {key: case for moves in MOVES for key, case in _prepare(shapes, moves, size).items()}
    ways = {key: case.ways for key, case in cases.items()}
    measured = measure(
        {f"{by} {key}": task for key, tasks in ways.items() for by, task in tasks.items()},
        size.rounds,
        {str(key): case.warm for key, case in cases.items()},
    )
    mine = {
        key: Row.of(f"{key[0]}, {key[1]}", f"{key[2]:,} events", measured[f"{OXISEQ} {key}"], size.events)
        for key in cases
    }
    theirs = {
        key: case.rival.row(f"{key[0]}, {key[1]}", f"{key[2]:,} events", measured[f"{TEXTBOOK} {key}"])
        for key, case in cases.items()
    }
    figures = tuple(
        Figure(f"{shape}, {moves}, 100 to 10,000 events", growth([mine[shape, moves, w].ns for w in WINDOWS]), LIMIT)
        for moves in MOVES
        for shape in shapes
    )
    lines = tuple(
        Line.of(by, shape if len(shapes) > 1 else "", (rows[shape, MOVES[0], w].at(w) for w in WINDOWS))
        for by, rows in ((OXISEQ, mine), (TEXTBOOK, theirs))
        for shape in shapes
    )
    return Result(
        name,
        title,
        about,
        (*mine.values(), *theirs.values()),
        figures,
        (Chart("window", title, "window (events)", lines),),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """What is measured of one question on one stream."""

    ways: Mapping[str, Callable[[], int]]
    warm: Callable[[], int]
    rival: Rival


def _prepare(shapes: Mapping[str, Shape], moves: str, size: Size) -> dict[tuple[str, str, int], _Case]:
    terms = TermDictionary()
    events = quotes(terms, size.events, moves=moves)
    start, rows = events.first(WARM), plain(events, by_number=True)
    cases = {}
    for name, shape in shapes.items():
        for window in WINDOWS:
            prepared = Prepared.of(shape.query(window), terms)
            rival = textbook(shape.nfa(window), rows, prepared, events, size.tries)
            ways = {OXISEQ: prepared.counting(events), TEXTBOOK: rival.task}
            cases[name, moves, window] = _Case(ways, prepared.counting(start), rival)
    return cases
