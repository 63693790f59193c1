"""Case `sequences`: `:` over stock events; what an event costs must not depend on the window."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.charts import OXISEQ, TEXTBOOK, Chart, Line
from benchmarks.data import NS, RARE_PRICE, SECOND, STEPS, STREAM, plain, step, stock_events
from benchmarks.drive import WARM, Prepared
from benchmarks.measure import growth, measure
from benchmarks.report import Figure, Result, Row, Size
from benchmarks.rivals import textbook
from benchmarks.textbook import Fits, Nfa, Step
from oxiseq.engine.terms.dictionary import TermDictionary

SECONDS = (10, 50, 100, 400)
LIMIT = 1.3
ABOUT = (
    "Events of a type, one of 10 names, price and volume, 4.8 a second; each step asks for type, name and a least "
    "price; sliding windows. Millions of partial matches, few complete ones (the last step's price is rare)."
)
_PRICES = (26.0, 11.14, 18.92, 7.5, 15.25)


def query(steps: int, seconds: int) -> str:
    """SELL and BUY in turn, each of one name and above a price; the last one's price is rare."""
    names = [f"G{i}" for i in range(steps)]
    gpms = "\n".join(_gpm(i, last=i == steps - 1) for i in range(steps))
    return f"""PREFIX : <{NS}>
SELECT {" ".join(f"?v{i}" for i in range(steps))}
WITHIN {seconds} SECONDS SLIDING
FROM STREAM S <{STREAM}>
WHERE {{
  SEQ({" : ".join(names)})
{gpms}
}}"""


def _gpm(number: int, last: bool) -> str:
    kind, name = step(number)
    return (
        f'  DEFINE GPM G{number} ON S {{ ?e{number} :type :{kind} ; :name "{name}" ; :price ?p{number} ; '
        f":volume ?v{number} . FILTER(?p{number} > {_bound(number, last)}) }}"
    )


def _bound(number: int, last: bool) -> float:
    return RARE_PRICE if last else _PRICES[number % len(_PRICES)]


def nfa(steps: int, seconds: int) -> Nfa:
    """The same for the textbook, over `plain` stock events."""

    def fits(number: int) -> Fits:
        kind, name = step(number)
        wanted, bound = NS + kind, _bound(number, last=number == steps - 1)
        return lambda event, _: event[1] == wanted and event[2] == name and event[3] > bound

    return Nfa([Step(fits(number), ":") for number in range(steps)], seconds * SECOND)


def run(size: Size) -> Result:
    """Nanoseconds per event, per number of steps and window, and the textbook's."""
    terms = TermDictionary()
    events = stock_events(terms, size.events)
    start, rows = events.first(WARM), plain(events, by_number=False)
    cases = {(steps, seconds): Prepared.of(query(steps, seconds), terms) for steps in STEPS for seconds in SECONDS}
    rivals = {key: textbook(nfa(*key), rows, prepared, events, size.tries) for key, prepared in cases.items()}
    ways: dict[str, Callable[[], int]] = {f"{s} steps, {w} s": p.counting(events) for (s, w), p in cases.items()}
    warm = {f"{s} steps, {w} s": p.counting(start) for (s, w), p in cases.items()}
    ways |= {f"{s} steps, {w} s, {TEXTBOOK}": rival.task for (s, w), rival in rivals.items()}
    measured = measure(ways, size.rounds, warm)
    mine = {(s, w): Row.of(f"`:` {s} steps", f"{w} s", measured[f"{s} steps, {w} s"], len(events)) for s, w in cases}
    theirs = {
        (s, w): rival.row(f"`:` {s} steps", f"{w} s", measured[f"{s} steps, {w} s, {TEXTBOOK}"])
        for (s, w), rival in rivals.items()
    }
    figures = tuple(
        Figure(f"`:` {s} steps, 10 to 400 s", growth([mine[s, w].ns for w in SECONDS]), LIMIT) for s in STEPS
    )
    return Result(
        "sequences",
        "`:` sequences over stock events",
        ABOUT,
        (*mine.values(), *theirs.values()),
        figures,
        _charts({OXISEQ: mine, TEXTBOOK: theirs}),
    )


def _charts(found: Mapping[str, Mapping[tuple[int, int], Row]]) -> tuple[Chart, Chart]:
    windows, lengths = [], []
    for by, rows in found.items():
        windows += [Line.of(by, f"{s} steps", (rows[s, w].at(w) for w in SECONDS)) for s in (STEPS[0], STEPS[-1])]
        lengths += [
            Line.of(by, f"window of {w} s", (rows[s, w].at(s) for s in STEPS)) for w in (SECONDS[0], SECONDS[-1])
        ]
    title = "`:` sequences over stock events"
    return (
        Chart("window", title, "window (s)", tuple(windows)),
        Chart("length", title, "pattern length (steps)", tuple(lengths)),
    )
