"""SEQ: where `!`, `?`, `&` and bounds are allowed (semantics.md 2.3 to 2.5)."""

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
    Repeat,
    Sequence,
    SequenceElement,
)
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import error, lint_finding
from oxiseq.grammar.places import Overview, atoms, children, elements, negation, skippable, steps_of, without_bounds
from oxiseq.grammar.render import render_sequence
from oxiseq.grammar.render_clauses import time_span


def check_sequence(seen: Overview) -> Iterator[Finding]:
    """The shape of SEQ."""
    top = seen.query.sequence
    for element in elements(top):
        yield from _operands(element)
    if not any(atoms(top, positive=True)):
        yield error("negation", "SEQ holds negations only", top.span, "a match needs an event: add a GPM without !")
    else:
        if skippable(top):
            hint = "the case where all parts are skipped never matches"
            yield lint_finding("optional", "every part of SEQ may be skipped", top.span, hint)
        yield from _negations(top, seen)


def _operands(element: SequenceElement) -> Iterator[Finding]:
    match element:
        case Conjunction(items):
            for item in items:
                if not _simple(without_bounds(item)):
                    yield error(
                        "conjunction",
                        f"& joins GPMs of one instant, `{render_sequence(item)}` may last longer",
                        item.span,
                        "& takes GPM names, & and | only",
                    )
        case Not(item) if not all(map(_simple, steps_of(item))):
            message = f"! cannot negate `{render_sequence(item)}`"
            yield error("negation", message, element.span, _what_to_negate(item))
        case Maybe(item) if negation(item) is not None:
            yield error("negation", f"`{render_sequence(item)}` cannot be optional", element.span, "leave the ? out")
        case Repeat(item) if negation(item) is not None:
            hint = "a negation already applies to its whole gap"
            yield error("negation", f"`{render_sequence(item)}` cannot be repeated", element.span, hint)
        case Repeat():
            yield from _repeat(element)
        case Disjunction(items):
            for item in items:
                if not any(atoms(item, positive=True)) or (skippable(item) and _negates(item)):
                    hint = "each side of | needs a GPM without ! or ?"
                    yield error("negation", f"`{render_sequence(item)}` cannot be an alternative", item.span, hint)


def _what_to_negate(item: SequenceElement) -> str:
    inner = without_bounds(item)
    if isinstance(item, Bounded) and _simple(inner):
        if item.kind is BoundKind.WITHIN:
            return f"write {render_sequence(Bounded(Not(inner), item.kind, item.size))}"
        return f"a negation takes WITHIN only: {render_sequence(Not(inner))} WITHIN {time_span(item.size)}"
    return "! takes a GPM, GPMs joined by & and |, or a group of those: (B; C)!"


def _repeat(element: Repeat) -> Iterator[Finding]:
    least, most = element.least, element.most
    if most == 0:
        yield error("bounds", "a repeat of at most 0 iterations matches nothing", element.span, "{0,1} is ?")
    elif most is not None and most < least:
        hint = f"write {{{most},{least}}}"
        yield error("bounds", f"the bounds {{{least},{most}}} are in the wrong order", element.span, hint)
    if not any(atoms(element.item, positive=True)):
        hint = "the repeated part needs a GPM without !"
        yield error("negation", f"`{render_sequence(element.item)}` cannot be repeated", element.span, hint)
    elif skippable(element.item) and _negates(element.item):
        hint = "remove the ? or the ! from it"
        yield error("negation", "an iteration could consist of negations only", element.span, hint)
    elif skippable(element.item):
        hint = "put the ? around the repeat: (A+)?"
        yield lint_finding("optional", "the whole iteration may be skipped", element.span, hint)


def _negates(element: SequenceElement) -> bool:
    return any(isinstance(e, Not) for e in elements(element))


def _simple(element: SequenceElement) -> bool:
    """A BOp expression: atoms, `&` and `|`."""
    match element:
        case Atom():
            return True
        case Conjunction(items) | Disjunction(items):
            return all(_simple(i) for i in items)
        case _:
            return False


def _negations(top: SequenceElement, seen: Overview) -> Iterator[Finding]:
    """No skip may turn an inner `!` into a first or last one; a last one needs a window."""
    for element, before, after in gaps(top, (), ()):
        for others, side in ((before, "first"), (after, "last")):
            positive = [o for o in others if any(atoms(o, positive=True))]
            if positive and all(skippable(o) for o in positive):
                yield error(
                    "negation",
                    f"`{render_sequence(element)}` would be {side} where `{render_sequence(positive[0])}` is skipped",
                    element.span,
                    "write the two cases as two queries, or remove the ?",
                )
    if seen.query.window is None:
        for element in trailing_negations(top):
            if not isinstance(element, Bounded):
                text = render_sequence(element)
                hint = f"bound it: {text} WITHIN 10 MINUTES, or give the query a WITHIN"
                yield error(
                    "negation",
                    f"`{text}` at the end needs a window: without one it is never decided",
                    element.span,
                    hint,
                )


def trailing_negations(top: SequenceElement) -> Iterator[SequenceElement]:
    """Each `!`, with its bounds, that has no positive GPM after it."""
    for element, _, after in gaps(top, (), ()):
        if not any(a for o in after for a in atoms(o, positive=True)):
            yield element


def gaps(
    element: SequenceElement, before: tuple[SequenceElement, ...], after: tuple[SequenceElement, ...]
) -> Iterator[tuple[SequenceElement, tuple[SequenceElement, ...], tuple[SequenceElement, ...]]]:
    """Each `!` with its bounds, and all elements before and after it."""
    if negation(element) is not None:
        yield element, before, after
    elif isinstance(element, Sequence):
        items = children(element)
        for i, item in enumerate(items):
            if not isinstance(item, Atom):
                yield from gaps(item, (*before, *items[:i]), (*items[i + 1 :], *after))
    else:
        for child in children(element):
            yield from gaps(child, before, after)
