"""PARTITION BY beside the same query without it: `python -m benchmarks.partitions`.

The V-shape of case `v-shape` over coded quotes of 110 companies, with `;` and with `,`; CPU time per event. A window of
EVENTS counts each partition's own, so that it holds 110 times as many; one of SECONDS is the same with `;` and finds
the same matches, for ?c joins all patterns.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.data import Events, quotes
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
    ways = ways_of(quotes(terms, EVENTS), terms)
    for name, measured in measure(ways, ROUNDS, ways).items():
        print(f"{name:25} {measured.median / EVENTS * 1e9:6.0f} ns an event, {measured.answer} matches")


def ways_of(events: Events, terms: TermDictionary) -> dict[str, Callable[[], int]]:
    """Tasks that return how many matches there are."""
    ways = {}
    for operator, unit in ((";", "SECONDS"), (";", "EVENTS"), (",", "EVENTS")):
        text = v_shape(WINDOW).replace("A; B; C", f"A{operator} B{operator} C").replace("EVENTS", unit)
        name = f"`{operator}` {unit}"
        ways[name] = Prepared.of(text, terms).counting(events)
        parted = text.replace("FROM STREAM", "PARTITION BY ?c\nFROM STREAM")
        ways[f"{name} PARTITION"] = Prepared.of(parted, terms).counting(events)
    return ways


if __name__ == "__main__":
    main()
