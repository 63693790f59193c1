"""`(B; C)!`: what a negated group may be and where it may be (semantics.md 2.5b).

A run of the engine remembers how far a group has come since the gap began, and none of its events. So what the steps of
a group compare with each other has to be known before the gap.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import Variable

from oxiseq.grammar.algebra import Bounded, BoundKind, Not, Op, Sequence, SequenceElement, Span
from oxiseq.grammar.checking.sequence import gaps
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import error, listing
from oxiseq.grammar.places import Overview, always, atoms, elements, negation, steps_of, without_bounds
from oxiseq.grammar.render import render_sequence
from oxiseq.grammar.scope import expression_variables, match_parts


def check_negated_groups(seen: Overview) -> Iterator[Finding]:
    """Each group under a `!`."""
    top = seen.query.sequence
    found = [(e, before) for e, before, _ in gaps(top, (), ()) if _is_group(e)]
    for element, before in found:
        yield from _place(element, before, found[0][0], top)
        there = frozenset[str]().union(*map(always, before)).intersection(seen.parts)
        yield from _compared(element, frozenset(v for name in there for v in seen.parts[name].certain), seen)


def _is_group(element: SequenceElement) -> bool:
    negated = negation(element)
    return negated is not None and len(steps_of(negated.item)) > 1


def _place(
    element: SequenceElement, before: tuple[SequenceElement, ...], first: SequenceElement, top: SequenceElement
) -> Iterator[Finding]:
    text = render_sequence(without_bounds(element))
    if not any(map(always, before)):
        hint = f"a negated group follows an event: SEQ(A; {text}; D)"
        yield error("negation", f"`{text}` comes first, or may come first", element.span, hint)
    if element is not first:
        yield error("negation", "SEQ has one negated group", element.span, "write two queries, or negate single GPMs")
    if any(op is Op.STRICT for part in elements(element) if isinstance(part, Sequence) for op, _ in part.rest):
        hint = "join its GPMs with ; or with :"
        yield error("negation", f"`{text}`: `,` cannot be used in a negated group", element.span, hint)
    for bound in elements(top):
        if isinstance(bound, Bounded) and bound.kind is not BoundKind.LASTING:
            message = f"{bound.kind.value} on an element cannot be used beside the negated group `{text}`"
            yield error("bounds", message, bound.span, "give the query a WITHIN, or use LASTING")


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
