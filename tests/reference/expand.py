"""`?` and PERMUTE taken out of a sequence: the union of what remains (semantics.md 2.5, 2.5d).

After this step a sequence has no `?` and no order that is open: `Chain` is a sequence with its operators, `Loop` a
repeat whose iterations may each take any of several alternatives, and a plain BOp expression (atoms, `&`, `|`) stays as
it is: a letter. A skipped element takes the operator on its left away, a skipped first element the one on
its right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, product
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
from reference.permute import Part, Permute

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


@dataclass(frozen=True)
class Block:
    """A step of one alternative of a PERMUTE: a letter, and which GPMs stand around it (semantics.md 2.5d)."""

    letter: Letter
    plain: frozenset[str]
    """Those of its plain elements that the alternative has; their FILTERs wait for each other."""
    before: frozenset[str]
    """Those of them that earlier blocks have matched."""

    @property
    def after(self) -> frozenset[str]:
        """Those that are matched with this block."""
        return self.before | (self.plain & set(all_names(self.letter)))


Element: TypeAlias = Letter | Absent | Chain | Loop | Limited | Block


def expand(element: Part) -> list[Element | None]:
    """All ways to take the `?` and the orders in it; None where nothing is left."""
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
        case Permute():
            return list(dict.fromkeys(_expand_permute(element)))
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


def _expand_permute(permute: Permute) -> Iterator[Element | None]:
    """The union over all subsets of k elements, over the ways to take the `?` in them, over all ordered partitions."""
    count = len(permute.items) if permute.count is None else permute.count
    for items in combinations(permute.items, count):
        for ways in product(*map(expand, items)):
            present = tuple((item, way) for item, way in zip(items, ways, strict=True) if way is not None)
            plain = frozenset(name for item, _ in present if is_plain(item) for name in all_names(item))
            for blocks in ordered_partitions(present):
                yield _alternative(permute, plain, blocks) if blocks else None


def _alternative(permute: Permute, plain: frozenset[str], blocks: tuple[Chosen, ...]) -> Chain:
    before = frozenset[str]()
    steps: list[tuple[Op | None, Element]] = []
    for block in blocks:
        step = block[0][1] if len(block) == 1 else Conjunction(tuple(way for _, way in block))  # type: ignore[misc]
        if all(is_simple(item) for item, _ in block):
            step = Block(step, plain, before)  # type: ignore[arg-type]  # simple elements are letters
            before = step.after
        steps.append((permute.op, step))
    return Chain(tuple(steps))


Chosen: TypeAlias = tuple[tuple[Part, Element], ...]
"""Elements of a PERMUTE, each with a way to take the `?` in it."""


def ordered_partitions(elements: Chosen) -> Iterator[tuple[Chosen, ...]]:
    """All ways to put them into non-empty blocks, in order; only simple ones share a block."""
    if not elements:
        yield ()
    for size in range(1, len(elements) + 1):
        for block in combinations(elements, size):
            if size == 1 or all(is_simple(item) for item, _ in block):
                rest = tuple(element for element in elements if element not in block)
                for behind in ordered_partitions(rest):
                    yield (block, *behind)


def is_simple(item: Part) -> bool:
    """Whether an element of PERMUTE is a BOp expression; `X?` is what X is, where it is there."""
    item = unwrap(item)
    return is_letter(item.item if isinstance(item, Maybe) else item)


def is_plain(item: Part) -> bool:
    """Whether it is a GPM, or GPMs joined by `&`."""
    item = unwrap(item)
    if isinstance(item, Maybe):
        return is_plain(item.item)
    if isinstance(item, Conjunction):
        return all(is_plain(inner) for inner in item.items)
    return isinstance(item, Atom)


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


def unwrap(element: Part) -> Part:
    """Parentheses around one element mean nothing."""
    while isinstance(element, Sequence) and not element.rest:
        element = element.first
    return element


def is_letter(element: Part) -> bool:
    """Whether it is a plain BOp expression: atoms, `&`, `|`."""
    element = unwrap(element)
    if isinstance(element, Conjunction | Disjunction):
        return all(is_letter(item) for item in element.items)
    return isinstance(element, Atom)


def names_in(element: Part) -> list[str]:
    """The GPMs that it may bind: those under `!` are not among them."""
    match element:
        case Atom(name):
            return [name]
        case Conjunction(items) | Disjunction(items) | Permute(items):
            return [n for item in items for n in names_in(item)]
        case Repeat(item) | Maybe(item) | Bounded(item):
            return names_in(item)
        case Sequence(first, rest):
            return names_in(first) + [n for _, item in rest for n in names_in(item)]
        case Not():
            return []


def seen_names(element: Part, left: frozenset[str] = frozenset(), partners: bool = True) -> dict[str, frozenset[str]]:
    """Per GPM those whose values a FILTER of it may read: positive ones that stand before it, in another part than an
    alternative of it, and its partners in `&` (semantics.md 2.2); of a plain element of PERMUTE also those of the other
    plain ones (2.5d). Without `partners` only those that stand before it."""

    def seen(inner: Part, more: Iterable[str] = ()) -> dict[str, frozenset[str]]:
        return seen_names(inner, left.union(more if partners else ()), partners)

    match element:
        case Atom(name):
            return {name: left}
        case Conjunction(items):
            beside = {item: [n for other in items if other is not item for n in all_names(other)] for item in items}
            return {name: of for item in items for name, of in seen(item, beside[item]).items()}
        case Disjunction(items):
            return {name: of for item in items for name, of in seen(item).items()}
        case Permute(items):
            plain = [item for item in items if is_plain(item)]
            beside = {i: [n for other in plain if other is not i for n in all_names(other)] for i in plain}
            return {name: of for item in items for name, of in seen(item, beside.get(item, ())).items()}
        case Repeat(item) | Maybe(item) | Not(item) | Bounded(item):
            return seen(item)
        case Sequence(first, rest):
            found: dict[str, frozenset[str]] = {}
            for item in (first, *(item for _, item in rest)):
                found |= seen_names(item, left, partners)
                left = left.union(names_in(item))
            return found


def all_names(element: Part) -> list[str]:
    """All GPMs in it, each once."""
    match element:
        case Atom(name):
            return [name]
        case Conjunction(items) | Disjunction(items) | Permute(items):
            found = [n for item in items for n in all_names(item)]
        case Repeat(item) | Maybe(item) | Not(item) | Bounded(item):
            found = all_names(item)
        case Sequence(first, rest):
            found = all_names(first) + [n for _, item in rest for n in all_names(item)]
    return list(dict.fromkeys(found))


def repeated_names(element: Part) -> list[str]:
    """Those of them that stand in a repeat."""
    match element:
        case Repeat():
            return names_in(element)
        case Conjunction(items) | Disjunction(items) | Permute(items):
            return [n for item in items for n in repeated_names(item)]
        case Maybe(item) | Bounded(item):
            return repeated_names(item)
        case Sequence(first, rest):
            return repeated_names(first) + [n for _, item in rest for n in repeated_names(item)]
        case _:
            return []
