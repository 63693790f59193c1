"""`?` taken out of a sequence: the union of what remains (semantics.md 2.5).

After this step a sequence has no `?`: `Chain` is a sequence with its operators, `Loop` a repeat whose
iterations may each take any of several alternatives, and a plain BOp expression (atoms, `&`, `|`) stays as it
is: a letter. A skipped element takes the operator on its left away, a skipped first element the one on
its right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

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

Letter: TypeAlias = Atom | Conjunction | Disjunction


@dataclass(frozen=True)
class Absent:
    """`X!`, X a letter or a group: its ways. `within`: how long after σ it holds, None for the whole gap."""

    ways: tuple[Element, ...]
    within: int | None = None


@dataclass(frozen=True)
class Chain:
    """Elements, each with the operator on its left (the first one's means nothing)."""

    items: tuple[tuple[Op | None, Element], ...]


@dataclass(frozen=True)
class Loop:
    """At least `least` (1 or more) and at most `most` iterations, each one of the alternatives."""

    alternatives: tuple[Element, ...]
    least: int
    most: int | None
    chain: Op | None


@dataclass(frozen=True)
class Limited:
    """`X WITHIN d`, `X AFTER d`, `X LASTING d` (semantics.md 2.5b)."""

    item: Element
    kind: BoundKind
    size: int


Element: TypeAlias = Letter | Absent | Chain | Loop | Limited


def expand(element: SequenceElement) -> list[Element | None]:
    """All ways to take the `?` in it; None where nothing is left."""
    element = unwrap(element)
    if is_letter(element):
        return [element]  # type: ignore[list-item]  # just tested
    match element:
        case Not(item):
            return [Absent(tuple(way for way in expand(item) if way is not None))]
        case Bounded(item, kind, size):
            return [None if way is None else _limited(way, kind, size) for way in expand(item)]
        case Maybe(item):
            return list(dict.fromkeys([*expand(item), None]))
        case Disjunction(items):
            return list(dict.fromkeys(e for item in items for e in expand(item)))
        case Repeat():
            return _expand_repeat(element)
        case Sequence():
            return _expand_sequence(element)
        case _:
            raise AssertionError(f"{type(element).__name__} cannot be used here")


def _limited(way: Element, kind: BoundKind, size: int) -> Element:
    if not isinstance(way, Absent):
        return Limited(way, kind, size)
    assert kind is BoundKind.WITHIN
    return Absent(way.ways, size if way.within is None else min(size, way.within))


def _expand_repeat(repeat: Repeat) -> list[Element | None]:
    ways = expand(repeat.item)
    full = tuple(w for w in ways if w is not None)
    skippable = repeat.least == 0 or None in ways
    least = 1 if None in ways else max(repeat.least, 1)  # empty iterations make up the number
    loop = [Loop(full, least, repeat.most, repeat.chain)] if full and repeat.most != 0 else []
    return [*loop, None] if skippable else list(loop)


def _expand_sequence(sequence: Sequence) -> list[Element | None]:
    ways: list[tuple[tuple[Op | None, Element], ...]] = [()]
    for op, item in flat(sequence):
        ways = [way if chosen is None else (*way, (op, chosen)) for way in ways for chosen in expand(item)]
    return list(dict.fromkeys(Chain(way) if way else None for way in ways))


def flat(sequence: Sequence) -> list[tuple[Op | None, SequenceElement]]:
    """Its elements with the operators on their left; unquantified parentheses melt away."""
    items: list[tuple[Op | None, SequenceElement]] = []
    for op, item in ((None, sequence.first), *sequence.rest):
        if isinstance(item, Sequence):
            (_, head), *tail = flat(item)
            items += [(op, head), *tail]
        else:
            items.append((op, item))
    return items


def unwrap(element: SequenceElement) -> SequenceElement:
    """Parentheses around one element mean nothing."""
    while isinstance(element, Sequence) and not element.rest:
        element = element.first
    return element


def is_letter(element: SequenceElement) -> bool:
    """Whether it is a plain BOp expression: atoms, `&`, `|`."""
    element = unwrap(element)
    if isinstance(element, Conjunction | Disjunction):
        return all(is_letter(item) for item in element.items)
    return isinstance(element, Atom)


def names_in(element: SequenceElement) -> list[str]:
    """The GPMs that it may bind: those under `!` are not among them."""
    match element:
        case Atom(name):
            return [name]
        case Conjunction(items) | Disjunction(items):
            return [n for item in items for n in names_in(item)]
        case Repeat(item) | Maybe(item) | Bounded(item):
            return names_in(item)
        case Sequence(first, rest):
            return names_in(first) + [n for _, item in rest for n in names_in(item)]
        case Not():
            return []


def seen_names(element: SequenceElement, left: frozenset[str] = frozenset()) -> dict[str, frozenset[str]]:
    """Per GPM those whose values a FILTER of it may read: positive ones that stand before it, in another part than an
    alternative of it, and its partners in `&` (semantics.md 2.2)."""
    match element:
        case Atom(name):
            return {name: left}
        case Conjunction(items):
            return {
                name: seen
                for item in items
                for name, seen in seen_names(
                    item, left.union(*(all_names(other) for other in items if other is not item))
                ).items()
            }
        case Disjunction(items):
            return {name: seen for item in items for name, seen in seen_names(item, left).items()}
        case Repeat(item) | Maybe(item) | Not(item) | Bounded(item):
            return seen_names(item, left)
        case Sequence(first, rest):
            found: dict[str, frozenset[str]] = {}
            for item in (first, *(item for _, item in rest)):
                found |= seen_names(item, left)
                left = left.union(names_in(item))
            return found


def all_names(element: SequenceElement) -> list[str]:
    """All GPMs in it, each once."""
    match element:
        case Atom(name):
            return [name]
        case Conjunction(items) | Disjunction(items):
            found = [n for item in items for n in all_names(item)]
        case Repeat(item) | Maybe(item) | Not(item) | Bounded(item):
            found = all_names(item)
        case Sequence(first, rest):
            found = all_names(first) + [n for _, item in rest for n in all_names(item)]
    return list(dict.fromkeys(found))


def repeated_names(element: SequenceElement) -> list[str]:
    """Those of them that stand in a repeat."""
    match element:
        case Repeat():
            return names_in(element)
        case Conjunction(items) | Disjunction(items):
            return [n for item in items for n in repeated_names(item)]
        case Maybe(item) | Bounded(item):
            return repeated_names(item)
        case Sequence(first, rest):
            return repeated_names(first) + [n for _, item in rest for n in repeated_names(item)]
        case _:
            return []
