"""The events that a negation has seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.sequence.positions import flatten
from oxiseq.grammar.algebra import Bounded, Not, Op, Query, Sequence, SequenceElement
from oxiseq.grammar.errors import OxiseqError
from oxiseq.grammar.places import atoms, group_gaps, negation, shortest
from oxiseq.languages.reasons.bounds import FREE, Bounds
from oxiseq.languages.reasons.read import History
from oxiseq.languages.spaseq.reasons.answering import Found, answered
from oxiseq.languages.spaseq.reasons.relax import Relaxation
from oxiseq.languages.spaseq.reasons.stages import Items, beginnings, with_items


def blockers(
    query: Query, relaxation: Relaxation, found: Found, history: History, kb: KnowledgeBase, bounds: Bounds = FREE
) -> tuple[int, ...]:
    """Times (µs) at which the negated element is seen where a near match must not have it; the same query with that
    element in its positive form is run. Empty where that cannot be run."""
    assert relaxation.negated is not None
    negated = {atom.name for atom in atoms(relaxation.negated)}
    sequence = query.sequence
    if not isinstance(sequence, Sequence):
        return ()
    items = tuple(
        (Op.ANY if number else None, _seen(item) if item == relaxation.negated else item)
        for number, (_, item) in enumerate(_shorter(query, found))
    )
    own = dict(found.events)
    if negated & set(own):
        return ()
    try:
        answer = answered(with_items(query, items), history, kb, bounds)
    except OxiseqError:
        return ()
    end = _end(query, relaxation.negated, own)
    seen: set[int] = set()
    for each in answer.found:
        if {g: t for g, t in each.events if g not in negated} == own:
            times = {time for gpm, of in each.events if gpm in negated for time in of}
            seen |= times if end is None or max(times, default=end) <= end else set()
    return tuple(sorted(seen))


def _end(query: Query, negated: SequenceElement, own: Mapping[str, tuple[int, ...]]) -> int | None:
    """Until when (µs) the last event of a negated group with a bound counts, beside these events; None: without end."""
    for gap in group_gaps(query.sequence):
        within, later = shortest(gap.element), {atom.name for item in gap.after for atom in atoms(item)}
        before = [name for item in gap.before for atom in atoms(item) if (name := atom.name) not in later]
        if gap.element == negated and within is not None:
            began = max((time for name in before for time in own.get(name, ())), default=None)
            return None if began is None else began + within
    return None


def _seen(item: SequenceElement) -> SequenceElement:
    """What a negated element negates, with its bounds."""
    if isinstance(item, Bounded):
        return replace(item, item=_seen(item.item))
    return item.item if isinstance(item, Not) else item


def _shorter(query: Query, found: Found) -> Items:
    """The shortest beginning that has all GPMs of the match."""
    names = {gpm for gpm, _ in found.events}
    items: Items = ()
    for each in beginnings(query):
        items = each.items
        if names <= {atom.name for _, item in items if negation(item) is None for atom in atoms(item)}:
            rest = tuple(flatten(query.sequence))[len(items) :] if isinstance(query.sequence, Sequence) else ()
            trailing = all(negation(item) is not None for _, item in rest)
            return (*items, *rest) if trailing else items
    return items
