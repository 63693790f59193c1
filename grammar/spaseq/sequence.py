"""SEQ: where `!`, `?`, `&`, bounds and negated groups are allowed, and what UNTIL takes (semantics.md 2.3 to 2.5c).

A run of the engine remembers how far a negated group has come since the gap began, and none of its events. So what the
steps of a group compare with each other has to be known before the gap.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import Variable

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
    Span,
)
from oxiseq.grammar.errors import Finding, error, lint_finding, listing
from oxiseq.grammar.places import (
    GroupGap,
    Overview,
    always,
    atoms,
    children,
    elements,
    group_gaps,
    negation,
    skippable,
    steps_of,
    without_bounds,
)
from oxiseq.grammar.render import time_span
from oxiseq.grammar.scope import expression_variables, match_parts
from oxiseq.grammar.spaseq.texts import render_sequence

# --- sequence ----------------------------------------------------------------------------------------


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


# --- gap bounds --------------------------------------------------------------------------------------


def check_gap_bounds(seen: Overview) -> Iterator[Finding]:
    """All bounds of SEQ."""
    top = seen.query.sequence
    yield from _bounded_operands(top)
    yield from _first(top)
    yield from _each(top, False, seen)


def _bounded_operands(top: SequenceElement) -> Iterator[Finding]:
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


# --- until -------------------------------------------------------------------------------------------


def check_until(seen: Overview) -> Iterator[Finding]:
    """UNTIL takes a BOp expression."""
    until = seen.query.until
    inside = () if until is None else elements(until)
    wrong = next((e for e in inside if not isinstance(e, Atom | Conjunction | Disjunction)), None)
    if wrong is not None:
        what, hint = _of_a_gap(wrong)
        yield error("until", f"UNTIL takes no {what}: `{render_sequence(wrong)}`", wrong.span, hint)


def _of_a_gap(element: SequenceElement) -> tuple[str, str]:
    """What an element is that UNTIL does not take, and what to write."""
    inner = without_bounds(element)
    negated = render_sequence(Not(inner.item if isinstance(inner, Not) else inner))
    match element:
        case Bounded(_, BoundKind.WITHIN, size):
            bounded = f"{negated} WITHIN {time_span(size)}"
            return "bound", f"write {bounded} in the gap that is meant: SEQ(A; {bounded}; B)"
        case Bounded():
            return "bound", f"write {render_sequence(inner)}: it ends a run whenever it comes in a gap"
        case Not(item):
            return "negation", f"write {render_sequence(item)}: UNTIL forbids it in every gap"
        case Repeat(item) | Maybe(item):
            return "quantifier", f"write {render_sequence(item)}: one such event ends a run"
        case _:
            return "sequence", f"write {negated} in the gap that is meant: SEQ(A; {negated}; B)"


def gap_operators(element: SequenceElement, behind: bool = False) -> Iterator[Op]:
    """The operators of the gaps between positive elements; `behind`: one precedes `element`."""
    match element:
        case Not():
            return
        case Repeat(item, _, most, chain):
            yield from gap_operators(item, behind)
            if most != 1:
                yield chain or (Op.STRICT if behind else Op.NEXT)
        case Sequence(head, rest):
            for op, item in ((None, head), *rest):
                if negation(item) is None:
                    if behind and op is not None:
                        yield op
                    yield from gap_operators(item, behind)
                    behind = behind or any(atoms(item, positive=True))
        case _:
            for child in children(element):
                yield from gap_operators(child, behind)


# --- negated groups ----------------------------------------------------------------------------------


def check_negated_groups(seen: Overview) -> Iterator[Finding]:
    """Each group under a `!`."""
    groups = tuple(group_gaps(seen.query.sequence))
    for gap in groups:
        yield from _place(gap, groups[0])
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
