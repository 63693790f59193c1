"""Case `passes`: many graph patterns matched in one pass over the events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from benchmarks.measure import measure
from benchmarks.patterns import PATTERNS, counting, events_of, request_of
from benchmarks.report import Figure, Result, Row, Size
from oxiseq.engine.terms.dictionary import TermDictionary

COUNTS: Final = (1, 10, 100)
LIMITS: Final = {"own thresholds": 7.0, "own types": 1.5, "own predicates": 1.5}
"""What the GPMs differ in, and how many times what one costs a hundred may cost."""
ABOUT = (
    "The star with two filters. Own thresholds: every GPM has its own mappings, half of them on average as many as "
    "the first. Own types or predicates: only the first matches. What registered queries cost with all that belongs to "
    "them, case `queries` tells."
)


def bodies(kind: str, number: int) -> list[str]:
    """GPMs alike but for their thresholds, types or predicates; only the first of the last two ever matches."""
    made = []
    for i in range(number):
        own = f"{i}" if i else ""
        power, type_ = "power", "Reading"
        least = 499 + 5 * i % 500 if kind == "own thresholds" else 499
        if kind == "own types":
            type_ += own
        elif kind == "own predicates":
            power += own
        made.append(f"?e :type :{type_} ; :{power} ?p ; :flow ?f ; :zone ?z . FILTER(?p > {least} && ?f > 799)")
    return made


def run(size: Size) -> Result:
    """1, 10 and 100 GPMs in one pass."""
    ways: dict[str, Callable[[], int]] = {}
    star = next(iter(PATTERNS))
    for kind in LIMITS:
        for number in COUNTS:
            terms = TermDictionary()
            batches = events_of(star, terms, size.events)
            requests = [request_of(body, terms) for body in bodies(kind, number)]
            ways[f"{kind} {number}"] = counting(requests, terms, batches)
    measured = measure(ways, size.rounds, ways)
    rows = [
        Row.of(f"{number} of {kind}", "GPMs matched", measured[f"{kind} {number}"], size.events)
        for kind in LIMITS
        for number in COUNTS
    ]
    figures = tuple(
        Figure(
            f"{COUNTS[-1]} GPMs matched, {kind}, over one",
            measured[f"{kind} {COUNTS[-1]}"].median / measured[f"{kind} 1"].median,
            limit,
        )
        for kind, limit in LIMITS.items()
    )
    return Result("passes", "Many graph patterns in one pass", ABOUT, tuple(rows), figures)
