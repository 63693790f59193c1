"""Whether the events of a complex event can be taken in one way only.

CEQL answers sets of events, SPAseq the ways to match. The two are the same where no sequence of types has two ways
through the formula (its position automaton, Glushkov 1961); it ignores conditions, so it errs on the safe side.
"""

from __future__ import annotations

from itertools import product

from oxiseq.grammar.ceql_algebra import Either, EventType, Filtered, Follows, Formula, Iterated, Named


def twofold(formula: Formula) -> tuple[EventType, EventType] | None:
    """Two places of one type that the same event of the same complex event can stand for, None if there are none."""
    automaton = _Positions()
    first, last = automaton.of(formula)
    places, follow = automaton.places, automaton.follow
    start = {(p, q) for p, q in product(first, first) if places[p].name == places[q].name}
    forwards: dict[tuple[int, int], set[tuple[int, int]]] = {}
    backwards: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for (p, after_p), (q, after_q) in product(follow, follow):
        if places[p].name == places[q].name and places[after_p].name == places[after_q].name:
            forwards.setdefault((p, q), set()).add((after_p, after_q))
            backwards.setdefault((after_p, after_q), set()).add((p, q))
    both = _reached(start, forwards) & _reached(set(product(last, last)), backwards)
    pairs = sorted((p, q) for p, q in both if p < q and places[p].name == places[q].name)
    return (places[pairs[0][0]], places[pairs[0][1]]) if pairs else None


def _reached(start: set[tuple[int, int]], steps: dict[tuple[int, int], set[tuple[int, int]]]) -> set[tuple[int, int]]:
    found, waiting = set(start), list(start)
    while waiting:
        new = steps.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


class _Positions:
    """The types of a formula, left to right, and which may follow which."""

    def __init__(self) -> None:
        self.places: list[EventType] = []
        self.follow: set[tuple[int, int]] = set()

    def of(self, formula: Formula) -> tuple[set[int], set[int]]:
        """Where `formula` may begin and end."""
        match formula:
            case EventType():
                self.places.append(formula)
                here = {len(self.places) - 1}
                return here, here
            case Named(inner) | Filtered(inner):
                return self.of(inner)
            case Iterated(inner):
                first, last = self.of(inner)
                self.follow |= set(product(last, first))
                return first, last
            case Either(formulas):
                ends = [self.of(f) for f in formulas]
                return set().union(*(f for f, _ in ends)), set().union(*(l for _, l in ends))
            case Follows(head, rest):
                first, last = self.of(head)
                for _, inner in rest:
                    begin, end = self.of(inner)
                    self.follow |= set(product(last, begin))
                    last = end
                return first, last
