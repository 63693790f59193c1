"""Case `sequences`: `:` over stock events; what an event costs must not depend on the window."""

from __future__ import annotations

from benchmarks.data import NS, RARE_PRICE, STEPS, STREAM, step, stock_events
from benchmarks.drive import WARM, Prepared
from benchmarks.measure import growth, measure
from benchmarks.report import Figure, Result, Row, Size
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
SELECT {' '.join(f'?v{i}' for i in range(steps))}
WITHIN {seconds} SECONDS SLIDING
FROM STREAM S <{STREAM}>
WHERE {{
  SEQ({' : '.join(names)})
{gpms}
}}"""


def _gpm(number: int, last: bool) -> str:
    kind, name = step(number)
    bound = RARE_PRICE if last else _PRICES[number % len(_PRICES)]
    return (
        f'  DEFINE GPM G{number} ON S {{ ?e{number} :type :{kind} ; :name "{name}" ; :price ?p{number} ; '
        f":volume ?v{number} . FILTER(?p{number} > {bound}) }}"
    )


def run(size: Size) -> Result:
    """Nanoseconds per event, per number of steps and window."""
    terms = TermDictionary()
    events = stock_events(terms, size.events)
    start = events.first(WARM)
    cases = {
        (steps, seconds): Prepared.of(query(steps, seconds), terms) for steps in STEPS for seconds in SECONDS
    }
    ways = {f"{s} steps, {w} s": p.counting(events) for (s, w), p in cases.items()}
    warm = {f"{s} steps, {w} s": p.counting(start) for (s, w), p in cases.items()}
    measured = measure(ways, size.rounds, warm)
    rows, figures = [], []
    for steps in STEPS:
        costs = []
        for seconds in SECONDS:
            name = f"{steps} steps, {seconds} s"
            row = Row.of(f"`:` {steps} steps", f"{seconds} s", measured[name], len(events))
            rows.append(row)
            costs.append(row.ns)
        figures.append(Figure(f"`:` {steps} steps, 10 to 400 s", growth(costs), LIMIT))
    return Result("sequences", "`:` sequences over stock events", ABOUT, tuple(rows), tuple(figures))
