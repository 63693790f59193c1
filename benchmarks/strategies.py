"""Selection strategies, consumption and LIMIT beside the same query without: `python -m benchmarks.strategies`.

Quotes of 50 companies, a second apart: an Open, trades and a Close of the same company in a sliding window. CPU time
per event.
"""

from __future__ import annotations

from benchmarks.data import NS, STREAM, quotes
from benchmarks.drive import Prepared
from benchmarks.measure import measure
from oxiseq.engine.terms.dictionary import TermDictionary

EVENTS = 30_000
ROUNDS = 5
COMPANIES = 50
WINDOW = "WITHIN 300 SECONDS SLIDING"
WAYS = {
    "all": ("", "", ""),
    "NEXT": ("NEXT ", "", ""),
    "LAST": ("LAST ", "", ""),
    "MAX": ("MAX ", "", ""),
    "CONSUME BY ANY": ("", "CONSUME BY ANY", ""),
    "PARTITION BY, CONSUME BY PARTITION": ("", "PARTITION BY ?of CONSUME BY PARTITION", ""),
    "PARTITION BY, NEXT": ("NEXT ", "PARTITION BY ?of", ""),
    "LIMIT 1": ("", "", "LIMIT 1"),
    "DISTINCT": ("DISTINCT ", "", ""),
}
"""By name: behind SELECT, behind the window, at the end."""


def query(strategy: str, clauses: str, limit: str) -> str:
    """Each GPM is of the same company."""
    kinds = {"A": "Open", "B": "Trade", "C": "Close"}
    gpms = [f"  DEFINE GPM {g} ON S {{ ?{g.lower()} :kind :{kind} ; :company ?of }}" for g, kind in kinds.items()]
    return f"""PREFIX : <{NS}>
SELECT {strategy}?of {WINDOW} {clauses}
FROM STREAM S <{STREAM}>
WHERE {{
  SEQ(A; B;+; C)
{chr(10).join(gpms)}
}} {limit}"""


def main() -> None:
    """Print a line for each way."""
    terms = TermDictionary()
    events = quotes(terms, EVENTS, COMPANIES)
    ways = {name: Prepared.of(query(*parts), terms).counting(events) for name, parts in WAYS.items()}
    for name, measured in measure(ways, ROUNDS, ways).items():
        print(f"{name:35} {measured.median / EVENTS * 1e9:6.0f} ns an event, {measured.answer} matches")


if __name__ == "__main__":
    main()
