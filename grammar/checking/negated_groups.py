"""`(B; C)!`: what a negated group may be and where it may be (semantics.md 2.5b).

A run of the engine remembers how far a group has come since the gap began, and none of its events. So what the steps of
a group compare with each other has to be known before the gap.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import Variable

from oxiseq.grammar.algebra import Not, Op, Sequence, SequenceElement, Span
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import error, listing
from oxiseq.grammar.places import (
    GroupGap,
    Overview,
    always,
    atoms,
    elements,
    group_gaps,
    negation,
    steps_of,
    without_bounds,
)
from oxiseq.grammar.render import render_sequence
from oxiseq.grammar.scope import expression_variables, match_parts


def check_negated_groups(seen: Overview) -> Iterator[Finding]:
    """Each group under a `!`."""
    gaps = tuple(group_gaps(seen.query.sequence))
    for gap in gaps:
        yield from _place(gap, gaps[0])
        there = frozenset[str]().union(*map(always, gap.before)).intersection(seen.parts)
        yield from _compared(gap.element, frozenset(v for name in there for v in seen.parts[name].certain), seen)


def _place(gap: GroupGap, first: GroupGap) -> Iterator[Finding]:
    element, text = gap.element, render_sequence(without_bounds(gap.element))
    if not any(map(always, gap.before)):
        hint = f"a negated group follows an event: SEQ(A; {text}; D)"
        yield error("negation", f"`{text}` comes first, or may come first", element.span, hint)
    if gap is not first:
        yield error("negation", "SEQ has one negated group", element.span, "write two queries, or negate single GPMs")
    if any(op is Op.STRICT for part in elements(element) if isinstance(part, Sequence) for op, _ in part.rest):
        message = f"`{text}`: `,` cannot be used in a negated group: a run knows its last step, not that step's instant"
        hint = "join its GPMs with ; which forbids the later ones at any instant of the gap, not only at the next"
        yield error("negation", message, element.span, hint)


def _compared(element: SequenceElement, known: frozenset[Variable], seen: Overview) -> Iterator[Finding]:
    """Steps that compare with an earlier step of the group by more than what is `known` before the gap."""
    negated = negation(element)
    assert isinstance(negated, Not)
    earlier: list[str] = []
    for step in steps_of(negated.item):
        names = [atom.name for atom in atoms(step)]
        bound = frozenset(v for name in earlier for v in seen.variables(name)) - known
        for name in (n for n in names if n in seen.parts):
            read = frozenset(v for f in seen.parts[name].stateful for v in expression_variables(f))
            asks = [m for f in seen.parts[name].stateful for m in match_parts(f)]
            both = sorted((seen.variables(name) | read) & bound, key=str)
            if both or any(getattr(m, "gpm", None) in earlier for m in asks):
                what = listing([f"?{v.value}" for v in both]) if both else "the time or number of its events"
                yield _told_apart(name, what, step.span)
        earlier += names


def _told_apart(name: str, what: str, span: Span) -> Finding:
    message = f"{name} is compared with an earlier event of the negated group by {what}"
    return error("negation", message, span, "bind it in a GPM before the group, in every match")
