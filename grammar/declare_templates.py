"""Declare's templates as data: how to express the violation of each one in SPAseq.

Source: van der Aalst, Pesic, Schonenberg, *Declarative workflows: Balancing between flexibility and support*, Computer
Science - Research and Development 23 (2009). A template states a property of each finished case; these patterns find
the cases, and the places in them, that break it.
"""

from __future__ import annotations

from typing import Final

from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Template:
    """A template that one query can watch.

    `says`: its meaning; `found`: what a match of the query is. `sequence`: the violation, of the names in `EVENTS`;
    `{times}` in it is the number of occurrences. `timed`: the violation where `{within}` is given, None where the
    template has no such form.
    """

    name: str
    activities: int
    says: str
    found: str
    sequence: str
    timed: str | None = None

    @property
    def ends(self) -> bool:
        """Whether the violation is known only when the case has ended."""
        return "End" in self.sequence

    @property
    def counts(self) -> bool:
        """Whether it takes a number of occurrences."""
        return "{times}" in self.sequence


EVENTS: Final = {
    "A": "{it} = {a}",
    "NextA": "{it} = {a}",
    "B": "{it} = {b}",
    "LaterB": "{it} = {b}",
    "End": "{it} = {end}",
    "NotA": "{it} != {a}",
    "NotB": "{it} != {b}",
    "AorB": "{it} IN ({a}, {b})",
    "One": "{it} IN ({a}, {b})",
    "Other": "{it} IN ({a}, {b}) && {it} != ?one",
    "AorEnd": "{it} IN ({a}, {end})",
    "Earlier": "",
    "Event": "",
    "Next": "(?event = {a}) != ({it} = {b})",
}
"""An event of a case by its name in a sequence → the FILTER on its activity, `{it}`. The variable is the name with a
small first letter. Conditions are filters, not constants of the pattern: an event of a case belongs to its partition
whatever its activity is, so `,` means next in the case."""

TEMPLATES: Final = (
    Template("existence", 1, "A happens at least once in each case", "a case that ended without A", "A!; End"),
    Template(
        "absence",
        1,
        "A happens fewer than N times in each case (N: --times, usually 1)",
        "N occurrences of A, one after the other",
        "A; NextA;{{{times}}}",
    ),
    Template("init", 1, "each case begins with A", "a case whose first event is not A", "Earlier!; NotA"),
    Template("choice", 2, "A or B happens in each case", "a case that ended with neither", "AorB!; End"),
    Template(
        "responded-existence",
        2,
        "where A happens, B happens too, before or after it",
        "an A in a case that ended without any B",
        "B!; A; LaterB!; End",
    ),
    Template(
        "co-existence",
        2,
        "A and B happen both or neither",
        "a case that ended with one of them only",
        "AorB!; One; Other!; End",
    ),
    Template(
        "response", 2, "each A is followed by a B", "an A that no B has followed", "A; B!; End", "A; B! WITHIN {within}"
    ),
    Template("precedence", 2, "B happens only after an A", "a B with no A before it", "A!; B"),
    Template(
        "alternate-response",
        2,
        "each A is followed by a B before the next A",
        "an A, and the A or the end that came before any B",
        "A; B!; AorEnd",
    ),
    Template(
        "chain-response", 2, "the event after each A is a B", "an A, and the other event that came next", "A, NotB"
    ),
    Template(
        "chain-precedence",
        2,
        "the event before each B, if there is one, is an A",
        "a B, and the other event that came just before",
        "NotA, B",
    ),
    Template(
        "chain-succession",
        2,
        "the event after an A is a B, and the one before a B, if there is one, is an A",
        "two events in a row of which the first is A or the second is B, not both",
        "Event, Next",
    ),
    Template(
        "not-co-existence",
        2,
        "A and B do not both happen in a case",
        "one of them, and the next of the other",
        "One; Other",
        "One; Other WITHIN {within}",
    ),
    Template(
        "not-succession", 2, "no A is followed by a B", "an A, and the next B after it", "A; B", "A; B WITHIN {within}"
    ),
    Template("not-chain-succession", 2, "the event after an A is no B", "an A, and the B that came next", "A, B"),
)
"""What can be watched, by the paper's order."""

_TWO: Final = "it is broken in two ways, and a query of SPAseq has one sequence"
REFUSED: Final = {
    "exactly": f"{_TWO}: ask `existence A` and `absence A --times 2`",
    "exclusive-choice": f"{_TWO}: ask `choice A B` and `not-co-existence A B`",
    "succession": f"{_TWO}: ask `response A B` and `precedence A B`",
    "alternate-precedence": f"{_TWO}: ask `precedence A B`, and write a query with SEQ(B; A!; NextB) for two B "
    "without an A between them",
    "alternate-succession": f"{_TWO}: ask `alternate-response A B` and `precedence A B`, and write a query with "
    "SEQ(B; A!; NextB) for two B without an A between them",
}
"""Templates of the paper that no single query can watch → why, and what to ask instead."""
