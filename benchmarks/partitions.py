"""PARTITION BY beside the same query without it: `python -m benchmarks.partitions`.

The V-shape of case `v-shape` over coded quotes of 110 companies, with `;` and with `,`; CPU time per event.
"""

from __future__ import annotations

from benchmarks.data import quotes
from benchmarks.drive import Prepared
from benchmarks.measure import measure
from benchmarks.shapes import v_shape
from oxiseq.engine.terms.dictionary import TermDictionary

EVENTS = 60_000
ROUNDS = 5
WINDOW = 1_000


def main() -> None:
    """Print a line for each way."""
    terms = TermDictionary()
    events = quotes(terms, EVENTS)
    ways = {}
    for operator in (";", ","):
        text = v_shape(WINDOW).replace("A; B; C", f"A{operator} B{operator} C")
        ways[f"`{operator}`"] = Prepared.of(text, terms).counting(events)
        parted = text.replace("FROM STREAM", "PARTITION BY ?c\nFROM STREAM")
        ways[f"`{operator}` PARTITION BY"] = Prepared.of(parted, terms).counting(events)
    for name, measured in measure(ways, ROUNDS, ways).items():
        print(f"{name:17} {measured.median / EVENTS * 1e9:6.0f} ns an event, {measured.answer} matches")


if __name__ == "__main__":
    main()
