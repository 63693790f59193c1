"""Random chains of queries: each reads base streams or what those before it write INTO STREAM, and ends in negations.

All of them read and write things with a kind, a key and a value, so that results join as events do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from strategies import XSD, Arrivals, Dice, E, punctuated

BASE = (f"{E}s1", f"{E}s2")
WRITTEN = (f"{E}r1", f"{E}r2")
WINDOWS = ["", "", "PT0.00000{}S", "PT0.00000{}S SLIDING", "PT0.00000{}S SLIDING", "{} EVENTS SLIDING", "{} EVENTS"]
SEQUENCES = ["A", "A", "A", "A ; B", "A : B", "A , B", "A ; B{1,2}", "A:{1,2}", "A & B"]


@dataclass(frozen=True)
class Chain:
    """The queries; what arrives on the base streams, and in which order by their IRIs; after how many arrivals a batch
    ends, in one of the batchings."""

    texts: tuple[str, ...]
    streams: Arrivals
    order: tuple[str, ...]
    cuts: tuple[int, ...]

    def batchings(self) -> dict[str, tuple[int, ...]]:
        """After how many arrivals a batch ends, by name."""
        return {"one by one": tuple(range(1, len(self.order) + 1)), "some at once": self.cuts, "all at once": ()}


def chains() -> st.SearchStrategy[Chain]:
    """Three queries, the first two INTO STREAM; the second reads the first one's results, the last the second's."""
    return st.integers(0, 2**62).map(lambda seed: chain(Dice(seed)))


def chain(dice: Dice) -> Chain:
    """One throw."""
    texts = (
        link(dice, [BASE[0], *dice.pick([[], [BASE[1]]])], WRITTEN[0]),
        link(dice, [WRITTEN[0], *dice.pick([[], [], [BASE[0]]])], WRITTEN[1]),
        link(dice, [WRITTEN[1], *dice.pick([[], [WRITTEN[0]], [BASE[1]]])], None),
    )
    streams = {iri: punctuated(dice, rising(dice, most)) for iri, most in zip(BASE, (8, 4), strict=True)}
    order = [iri for iri, events in streams.items() for _ in events]
    dice.shuffle(order)
    cuts = tuple(number for number in range(1, len(order) + 1) if dice.chance(35))
    return Chain(texts, in_order(streams), tuple(order), cuts)


def rising(dice: Dice, most: int) -> list[tuple[int, str]]:
    """Events, each later than the one before."""
    time, events = 0, []
    for _ in range(dice.between(most // 2, most)):
        events.append((time, thing(dice) + (thing(dice) if dice.chance(20) else "")))
        time += dice.pick([1, 1, 2, 3])
    return events


def in_order(streams: Arrivals) -> Arrivals:
    """No punctuation goes beyond the next event, which would be late."""
    found: Arrivals = {}
    for iri, arrivals in streams.items():
        kept: list[tuple[int, str]] = []
        for time, text in reversed(arrivals):
            kept.append((min([time, *(kept[-1:] and [kept[-1][0]])]), text))
        found[iri] = kept[::-1]
    return found


def thing(dice: Dice) -> str:
    """Something of a kind, with a key and a value, as N-Triples."""
    subject = dice.pick([f"<{E}t1>", f"<{E}t2>", f"_:b{dice.between(1, 2)}"])
    number = '"{}"^^<' + XSD + "integer>"
    facts = [("kind", f"<{E}{dice.pick(['a', 'b', 'c'])}>")]
    facts += [("k", number.format(dice.between(1, 2))), ("v", number.format(dice.between(1, 3)))]
    return "".join(f"{subject} <{E}{predicate}> {value} .\n" for predicate, value in facts)


def link(dice: Dice, sources: Sequence[str], into: str | None) -> str:
    """One query: it writes `into`, or selects."""
    window = dice.pick(WINDOWS).format(dice.between(2, 8))
    sequence = dice.pick([*SEQUENCES, "N! ; A ; B"] if window else SEQUENCES)
    absences = dice.pick([["M!"], ["M!"], ["(M : O)!"], ["M!", "P!"], []])
    sequence += "".join(f" ; {absence}{_bound(dice, not window)}" for absence in absences)
    parted = dice.chance(25)
    defines = [_define(dice, name, len(sources), parted) for name in sorted(set(re.findall(r"\b[A-Z]\b", sequence)))]
    head, tail = _form(dice, into)
    lines = [
        f"PREFIX : <{E}>",
        head,
        f"WITHIN {window}" if window else "",
        "PARTITION BY ?k" if parted and not (tail and "EVENTS" in window) else "",
        *(f"FROM STREAM S{number} <{iri}>" for number, iri in enumerate(sources)),
        f"WHERE {{ SEQ({sequence})",
        *defines,
        f"}} {tail}",
    ]
    return "\n".join(line for line in lines if line)


def _bound(dice: Dice, needed: bool) -> str:
    return f" WITHIN PT0.00000{dice.between(1, 5)}S" if needed or dice.chance(50) else ""


def _define(dice: Dice, name: str, sources: int, parted: bool) -> str:
    low, first = name.lower(), name == "A"
    kinds = [f"?{low}kind", f"?{low}kind", ":a", ":b"] if name == "B" else [":a", ":b", ":c", f"?{low}kind"]
    kind = "?kind" if first else dice.pick(kinds)
    key = "?k" if first or parted or dice.chance(60) else f"?k{low}"
    source = 0 if first else dice.between(0, sources - 1)
    return f"DEFINE GPM {name} ON S{source} {{ ?{low} :kind {kind} ; :k {key} ; :v ?{low}v }}"


def _form(dice: Dice, into: str | None) -> tuple[str, str]:
    """What stands before WHERE and behind it."""
    if into is None:
        return f"SELECT {dice.pick(['', '', 'NEXT ', 'LAST ', 'MAX ', 'DISTINCT '])}?a ?k ?av", ""
    if dice.chance(15):
        return f"CONSTRUCT {{ [] :kind ?kind ; :k ?k ; :v (COUNT(*)) }} INTO STREAM <{into}>", "GROUP BY ?kind ?k"
    subject = dice.pick(["?a", "[]"])
    return f"CONSTRUCT {{ {subject} :kind ?kind ; :k ?k ; :v ?av }} INTO STREAM <{into}>", ""
