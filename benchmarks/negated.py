"""Negated groups with and without a bound: `python -m benchmarks.negated`.

Quotes of 50 companies, a second apart: an Open, then no Trade and a later Close of the same company, then, or not, a
high price. A bound lies in the window of the query without one, or is the window; CPU time per event.
"""

from __future__ import annotations

from benchmarks.data import NS, STREAM, quotes
from benchmarks.drive import Prepared
from benchmarks.measure import measure
from oxiseq.engine.terms.dictionary import TermDictionary

EVENTS = 60_000
ROUNDS = 5
COMPANIES = 50
WAYS = (
    ("A; (B; C)!; D", "WITHIN 1000 SECONDS SLIDING"),
    ("A; (B; C)! WITHIN 500 SECONDS; D", "WITHIN 1000 SECONDS SLIDING"),
    ("A; (B; C)! WITHIN 500 SECONDS; D", ""),
    ("A; (B; C)!", "WITHIN 500 SECONDS SLIDING"),
    ("A; (B; C)! WITHIN 500 SECONDS", ""),
)


def query(sequence: str, window: str) -> str:
    """Each GPM is of the same company."""
    kinds = {"A": "Open", "B": "Trade", "C": "Close"}
    gpms = [f"  DEFINE GPM {g} ON S {{ ?{g.lower()} :kind :{kind} ; :company ?of }}" for g, kind in kinds.items()]
    if "D" in sequence.split():
        gpms.append("  DEFINE GPM D ON S { ?d :company ?of ; :price ?p . FILTER(?p > 60) }")
    return f"""PREFIX : <{NS}>
SELECT ?of {window}
FROM STREAM S <{STREAM}>
WHERE {{
  SEQ({sequence})
{chr(10).join(gpms)}
}}"""


def main() -> None:
    """Print a line for each way."""
    terms = TermDictionary()
    events = quotes(terms, EVENTS, COMPANIES)
    ways = {" ".join(way).strip(): Prepared.of(query(*way), terms).counting(events) for way in WAYS}
    for name, measured in measure(ways, ROUNDS, ways).items():
        print(f"{name:62} {measured.median / EVENTS * 1e9:6.0f} ns an event, {measured.answer} matches")


if __name__ == "__main__":
    main()
