"""How much a query may do within one instant, in numbers that are counted, never in time: the same events lead to the
same answers on any machine, in any batches, and after a restart. Beyond one the instant is left out (omissions.py)."""

from __future__ import annotations

from typing import Final, NamedTuple

from oxiseq.grammar.records import dataclass


class InstantBound(NamedTuple):
    """What is counted within an instant: `name` is a field of `InstantBounds`, `what` says it in an error."""

    name: str
    what: str


MATCHES: Final = InstantBound("matches", "matches that end at one instant (write LIMIT, or count them)")
CHOICES: Final = InstantBound("choices", "what is to be chosen from at one instant")
ROWS: Final = InstantBound("rows", "rows emitted at one instant (write ISTREAM or LIMIT, or join by a variable)")
ROUNDS: Final = InstantBound("rounds", "rounds of rules at one instant; do they make new terms for ever?")
MAPPINGS: Final = InstantBound("mappings", "mappings of a graph pattern on one event")
READS: Final = InstantBound("reads", "rows that a join tries at one instant; join by a variable, or shorten the window")
MADE: Final = InstantBound(
    "made", "rows that an operator makes at one instant; join by a variable, or shorten the window"
)
KEPT: Final = InstantBound("matches", "matches of one window that are kept until it closes (write a smaller LIMIT)")
REPORTS: Final = InstantBound("reports", "moments of REPORT EVERY between two instants (write a longer EVERY)")
TRIES: Final = InstantBound(
    "reads", "tries of what comes at one instant against partial matches; join by a variable, or shorten the window"
)
STEPS: Final = InstantBound("steps", "steps of the automaton that one event takes")
TRIPLES: Final = InstantBound("triples", "triples that rules derive at one instant; do they make new terms for ever?")


@dataclass(frozen=True, slots=True)
class InstantBounds:
    """Most of each at one instant; `mappings`, `reports` and `steps` have limits of their own. `choices`: comparisons
    for SELECT MAX. `running`: instants left out one after the other until the query is stopped."""

    matches: int = 1 << 20
    choices: int = 2_000_000_000
    rows: int = 1 << 20
    reads: int = 1 << 30
    made: int = 1 << 24
    rounds: int = 1000
    triples: int = 1 << 20
    running: int = 3


BOUNDS: Final = InstantBounds()
"""Those of a store in Python, and of a run over whole streams."""
SERVED: Final = InstantBounds(
    matches=1 << 14, choices=1 << 27, rows=1 << 14, reads=1 << 25, made=1 << 20, triples=1 << 16
)
"""Those of a server, whose queries wait for each other, and which stores what is found."""
