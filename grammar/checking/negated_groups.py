"""`(B; C)!`: what a negated group may be and where it may be (semantics.md 2.5b).

A run of the engine remembers how far a group has come since the gap began, and none of its events. So what the steps of
a group compare with each other has to be known before the gap.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import Variable

from oxiseq.grammar.algebra import (
    Atom,
    Bounded,
    BoundKind,
    Conjunction,
    Not,
    Op,
    Sequence,
    SequenceElement,
    Span,
)
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import error, listing
from oxiseq.grammar.places import (
    GroupGap,
    Overview,
    always,
    atoms,
    children,
    elements,
    group_gaps,
    negation,
    shortest,
    skippable,
    steps_of,
    time_condition,
    without_bounds,
)
from oxiseq.grammar.render import render_expression, render_sequence
from oxiseq.grammar.scope import expression_variables, match_parts


def check_negated_groups(seen: Overview) -> Iterator[Finding]:
    """Each group under a `!`."""
    gaps = tuple(group_gaps(seen.query.sequence))
    for gap in gaps:
        yield from _place(gap, gaps[0])
        yield from _bounds(gap, seen)
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


def _bounds(gap: GroupGap, seen: Overview) -> Iterator[Finding]:
    """Bounds of its gap that need to know when the gap began, where only conditions can: a run in a step of a group has
    no age."""
    text = render_sequence(without_bounds(gap.element))
    within = shortest(gap.element)
    if within is not None and gap.start is None:
        message = f"WITHIN on the negated group `{text}`: its gap does not always begin at an event of the same GPM"
        yield error("bounds", message, gap.element.span, "write a query for each GPM that may come before the group")
    elif within is not None and gap.start is not None and gap.ends and _counts_events(seen):
        message = f"WITHIN on the negated group `{text}` at the end: beside a window of EVENTS it has no deadline"
        last = " and in ".join(a.name for a in atoms(gap.steps[-1]))
        instead = f"write in {last} {_filter('<=', gap.start, within)}"
        hint = f"{instead}: the match comes at the window's end; or give the query a WITHIN of time, or none"
        yield error("bounds", message, gap.element.span, hint)
    later = [b for b in _met(gap.after, True) if b.kind is not BoundKind.WITHIN or negation(b) is not None]
    for bound in (*_met(gap.before[::-1], False), *later):
        message = f"{bound.kind.value} bounds the gap of the negated group `{text}`: a run between its steps has no age"
        yield error("bounds", message, bound.span, _instead(bound, gap, seen))


def _counts_events(seen: Overview) -> bool:
    return seen.query.window is not None and seen.query.window.events


def _instead(bound: Bounded, gap: GroupGap, seen: Overview) -> str:
    names = {a.name for a in atoms(bound)}
    group = {a.name for a in atoms(gap.element)}
    repeats = {p.repeats for p in seen.places if p.name in names | group}
    if gap.start is None or len(repeats) > 1 or any(gap.start not in p.earlier for p in seen.places if p.name in names):
        return "leave the bound out, or negate single GPMs instead of the group"
    comparison = ">=" if bound.kind is BoundKind.AFTER else "<="
    return f"write in {' and in '.join(sorted(names))} {_filter(comparison, gap.start, bound.size)}"


def _filter(comparison: str, start: str, size: int) -> str:
    return f"FILTER({render_expression(time_condition(comparison, start, size))})"


def _met(items: tuple[SequenceElement, ...], forward: bool) -> Iterator[Bounded]:
    """The bounds on a gap that goes on to one of `items`, nearest first, or comes from there."""
    for item in items:
        yield from _at_edge(item, forward)
        if not skippable(item):
            return


def _at_edge(item: SequenceElement, forward: bool) -> Iterator[Bounded]:
    if isinstance(item, Bounded) and item.kind is not BoundKind.LASTING and (forward or negation(item) is not None):
        yield item
    match item:
        case Sequence():
            parts = children(item)
            yield from _met(parts if forward else parts[::-1], forward)
        case Atom() | Not() | Conjunction():
            return
        case _:
            for child in children(item):
                yield from _at_edge(child, forward)


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
