"""PARTITION BY beside the same query without it: `python -m benchmarks.partitions`; by stage: `python -m benchmarks
--profile partitions`.

The V-shape of case `v-shape` over coded quotes of 110 companies, with `;` and with `,`; CPU time per event. A window of
EVENTS counts each partition's own, so that it holds 110 times as many; one of SECONDS is the same with `;` and finds
the same matches, for ?c joins all patterns. With `,` and PARTITION BY a plain NumPy pass over the same columns, which
are all there at once, is in turn with it: it sorts by company and compares neighbours.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.data import Events, quotes
from benchmarks.drive import Prepared
from benchmarks.measure import measure
from benchmarks.shapes import v_shape
from oxiseq.engine.terms.dictionary import TermDictionary

EVENTS = 60_000
ROUNDS = 5
WINDOW = 1_000
NEXT = "`,` EVENTS PARTITION"
"""The way that NumPy has, too."""


def main() -> None:
    """Print a line for each way."""
    terms = TermDictionary()
    events = quotes(terms, EVENTS)
    ways = {name: Prepared.of(text, terms).counting(events) for name, text in queries().items()}
    ways[f"{NEXT}, NumPy"] = by_numpy(events)
    found = measure(ways, ROUNDS, ways)
    for name, measured in found.items():
        print(f"{name:27} {measured.median / EVENTS * 1e9:6.0f} ns an event, {measured.answer} matches")
    if found[NEXT].answer != found[f"{NEXT}, NumPy"].answer:
        raise AssertionError("NumPy finds other matches")


def queries() -> dict[str, str]:
    """By name."""
    texts = {}
    for operator, unit in ((";", "SECONDS"), (";", "EVENTS"), (",", "EVENTS")):
        text = v_shape(WINDOW).replace("A; B; C", f"A{operator} B{operator} C").replace("EVENTS", unit)
        name = f"`{operator}` {unit}"
        texts[name] = text
        texts[f"{name} PARTITION"] = text.replace("FROM STREAM", "PARTITION BY ?c\nFROM STREAM")
    return texts


def by_numpy(events: Events) -> Callable[[], int]:
    """A task that counts falls and rises of a company's consecutive quotes."""
    ids = np.concatenate([batch.object for batch in events.batches]).reshape(len(events), -1)
    companies, prices = ids[:, 0].copy(), ids[:, 1].copy()

    def run() -> int:
        order = np.argsort(companies, kind="stable")
        company, price = companies[order], events.terms.columns.number[prices[order]]
        falls, rises = price[1:-1] < price[:-2], price[2:] > price[1:-1]
        return int(np.count_nonzero(falls & rises & (company[2:] == company[:-2])))

    return run


if __name__ == "__main__":
    main()
