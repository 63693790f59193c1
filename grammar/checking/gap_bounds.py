"""WITHIN, AFTER and LASTING on the elements of SEQ: where they may be (semantics.md 2.5b)."""

from __future__ import annotations

from collections.abc import Iterator

from oxiseq.grammar.algebra import (
    Atom,
    Bounded,
    BoundKind,
    Conjunction,
    Disjunction,
    Maybe,
    Not,
    Op,
    Repeat,
    Sequence,
    SequenceElement,
)
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import error, lint_finding
from oxiseq.grammar.places import Overview, atoms, children, elements, negation, without_bounds
from oxiseq.grammar.render import render_sequence
from oxiseq.grammar.render_clauses import time_span


def check_gap_bounds(seen: Overview) -> Iterator[Finding]:
    """All bounds of SEQ."""
    top = seen.query.sequence
    yield from _operands(top)
    yield from _first(top)
    yield from _each(top, False, seen)


def _operands(top: SequenceElement) -> Iterator[Finding]:
    """A bound applies to an element between two operators of the sequence, not to an operand of `&` or `|`."""
    for element in elements(top):
        if isinstance(element, Conjunction | Disjunction):
            mark = "&" if isinstance(element, Conjunction) else "|"
            for bound in (e for item in element.items for e in elements(item) if isinstance(e, Bounded)):
                message = f"{bound.kind.value} cannot be used in an operand of {mark}"
                hint = f"put it after the whole: A {mark} B {bound.kind.value} {time_span(bound.size)}"
                yield error("bounds", message, bound.span, hint)


def _first(element: SequenceElement) -> Iterator[Finding]:
    """No element comes before the first one of the SEQ, so there is no gap to bound."""
    match element:
        case Bounded(item, kind):
            if kind is not BoundKind.LASTING and negation(item) is None:
                message = f"{kind.value} on the first element of SEQ: no element comes before it"
                hint = "bound the gap before a later element, or write LASTING for the length of this one"
                yield error("bounds", message, element.span, hint)
            yield from _first(item)
        case Maybe(item):
            yield from _first(item)
        case Sequence(first):
            yield from _first(first)


def _each(element: SequenceElement, behind: bool, seen: Overview) -> Iterator[Finding]:
    """`behind`: a positive GPM precedes the element in the text."""
    if isinstance(element, Bounded):
        yield from _bound(element, behind)
        if not isinstance(element.item, Bounded):
            yield from _contradictions(element, seen)
    for child in children(element):
        yield from _each(child, behind, seen)
        behind = behind or (isinstance(element, Sequence) and any(atoms(child, positive=True)))


def _bound(element: Bounded, behind: bool) -> Iterator[Finding]:
    word, text = element.kind.value, render_sequence(element.item)
    negated = negation(element.item)
    if negated is not None and element.kind is not BoundKind.WITHIN:
        hint = f"write {text} WITHIN {time_span(element.size)}: no such event may come for that long"
        yield error("bounds", f"{word} cannot bound the negation `{text}`", element.span, hint)
    elif negated is not None and not behind:
        hint = "a bounded negation follows an event: SEQ(A; N! WITHIN 10 MINUTES; B)"
        yield error("bounds", f"`{text}` comes first: WITHIN has no event to count from", element.span, hint)
    elif negated is None and not any(atoms(element.item, positive=True)):
        hint = "bound each negation on its own: N! WITHIN 10 MINUTES"
        yield error("bounds", f"`{text}` has no event that {word} could bound", element.span, hint)


def _contradictions(innermost: Bounded, seen: Overview) -> Iterator[Finding]:
    """Bounds that no gap passes."""
    stack = [e for e in elements(seen.query.sequence) if isinstance(e, Bounded) and without_bounds(e) is innermost.item]
    if negation(innermost) is not None:
        return
    most = min((b.size for b in stack if b.kind is BoundKind.WITHIN), default=None)
    least = max((b.size for b in stack if b.kind is BoundKind.AFTER), default=0)
    if most is not None and most < max(least, 1):
        text = render_sequence(stack[0])
        hint = "the next event comes later than the one before; WITHIN must reach at least as far as AFTER"
        yield lint_finding("bounds", f"no gap fits `{text}`: it never matches", stack[0].span, hint)


def may_wait_for_ever(sequence: SequenceElement) -> bool:
    """Whether something may be kept for ever that a window of the query would end: there are no bounds, or a gap has
    none, or a negation comes first. One event alone, or several of one instant, wait for nothing."""
    if not any(isinstance(e, Not | Repeat) or (isinstance(e, Sequence) and e.rest) for e in elements(sequence)):
        return False
    if not any(isinstance(e, Bounded) for e in elements(sequence)):
        return True
    leading = next((e for e in elements(sequence) if isinstance(e, Atom)), None)
    kept = any(leading in tuple(elements(e)) for e in elements(sequence) if isinstance(e, Not))
    return kept or _endless(sequence, True, True)


def _endless(element: SequenceElement, entered: bool, first: bool) -> bool:
    """Whether a gap in it, or before it, may have no end. `entered`: the one before it has one, or there is none;
    `first`: no positive GPM precedes it, so that its `+` chains by `;`."""
    match element:
        case Not():
            return False
        case Bounded(item, BoundKind.WITHIN):
            return _endless(item, True, first)
        case Bounded(_, BoundKind.LASTING):  # it bounds all gaps inside
            return not entered
        case Bounded(item) | Maybe(item):
            return _endless(item, entered, first)
        case Repeat(item, _, most, chain):
            strict = chain is Op.STRICT or (chain is None and not first)
            return _endless(item, entered, first) or (most != 1 and _endless(item, strict, first))
        case Sequence(head, rest):
            begun = False
            for op, item in ((None, head), *rest):
                if _endless(item, op is Op.STRICT if begun else entered, first):
                    return True
                begun = begun or any(atoms(item, positive=True))
                first = first and not begun
            return False
        case _ if any(isinstance(e, Sequence | Repeat) for e in elements(element)):
            return any(_endless(e, entered, first) for e in children(element))
        case _:
            return not entered
