"""Basic graph patterns as slots and instances.

In the flow: a GPM's pattern → **slots and instances** → tables → kernel. A slot is a triple pattern up to
the names of its variables: one pass over an event's triples fills all slots of a stream, and the filled slots
are the event's summary graph (SPECTRA, Def. 6). An instance is a BGP up to the names of its variables; GPMs
that share one differ by their filters only.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from pyoxigraph import BlankNode, Variable

from oxiseq.engine.kernels.matching.records import PREDICATE_OBJECT, SUBJECT_OBJECT, SUBJECT_PREDICATE
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Group, TermOrVariable, TriplePattern
from oxiseq.grammar.records import dataclass

Key = Variable | BlankNode
"""A variable, or a blank node of the pattern: a variable that has no name outside."""
Variables: TypeAlias = tuple[int, int, int]
"""Their numbers in subject, predicate, object (−1: a constant)."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A triple pattern: term ids of its constants (0: any), and which positions must be equal."""

    subject: int
    predicate: int
    object: int
    equal: int


@dataclass(frozen=True, slots=True)
class PatternStep:
    """A slot and its variables."""

    slot: Slot
    variables: Variables


@dataclass(frozen=True, slots=True)
class Instance:
    """A BGP with its variables numbered; equal for BGPs that differ by names and order only
    (nearly: patterns with equal constants may be numbered in two ways)."""

    patterns: tuple[PatternStep, ...]
    width: int
    """Number of variables."""


def basic_patterns(pattern: Group) -> tuple[TriplePattern, ...] | None:
    """The triple patterns of a BGP (plain groups inside are opened); None when it holds anything else."""
    found: list[TriplePattern] = []
    for element in pattern.elements:
        if isinstance(element, TriplePattern):
            found.append(element)
        elif isinstance(element, Group):
            inner = basic_patterns(element)
            if inner is None or any(_has_blank(p) for p in inner):
                return None  # a blank node label is scoped to its own group
            found += inner
        else:
            return None
    return tuple(found)


def _has_blank(pattern: TriplePattern) -> bool:
    return any(isinstance(t, BlankNode) for t in (pattern.subject, pattern.object))


def canonical(patterns: tuple[TriplePattern, ...], terms: TermDictionary) -> tuple[Instance, dict[Key, int]]:
    """The instance of a BGP, and the number that each of its variables has in it."""
    distinct = dict.fromkeys((p.subject, p.predicate, p.object) for p in patterns)
    slotted = sorted(((slot_of(triple, terms), triple) for triple in distinct), key=lambda item: _order(item[0], terms))
    numbers: dict[Key, int] = {}
    steps = []
    for slot, triple in slotted:
        variables = tuple(
            numbers.setdefault(t, len(numbers)) if isinstance(t, (Variable, BlankNode)) else -1 for t in triple
        )
        steps.append(PatternStep(slot, (variables[0], variables[1], variables[2])))
    return Instance(tuple(steps), len(numbers)), numbers


def _order(slot: Slot, terms: TermDictionary) -> tuple[str, str, str, int]:
    """By texts: the order of an event's rows follows from it, and ids depend on what the dictionary has met before."""
    predicate, object_, subject = (terms.text(i) if i else "" for i in (slot.predicate, slot.object, slot.subject))
    return predicate, object_, subject, slot.equal


def slot_of(triple: tuple[TermOrVariable, TermOrVariable, TermOrVariable], terms: TermDictionary) -> Slot:
    """The slot of subject, predicate, object."""
    s, p, o = triple
    constants = [0 if isinstance(t, (Variable, BlankNode)) else terms.constant(t) for t in triple]
    equal = 0
    if constants[0] == 0 and s == o:
        equal |= SUBJECT_OBJECT
    if constants[0] == 0 and s == p:
        equal |= SUBJECT_PREDICATE
    if constants[1] == 0 and p == o:
        equal |= PREDICATE_OBJECT
    return Slot(constants[0], constants[1], constants[2], equal)


@lru_cache(1 << 10)  # patterns of many queries differ in their constants
def join_order(patterns: tuple[Variables, ...], start: int) -> tuple[tuple[int, int], ...]:
    """(pattern, bits of the positions bound before it: 1 s, 2 p, 4 o), from pattern `start` on, of patterns that have
    these variables.

    Greedy: always a connected pattern, most bound positions first; an unconnected one comes last and
    multiplies the rows.
    """
    bound: set[int] = set()
    left, order = list(range(len(patterns))), list[tuple[int, int]]()
    following = start
    while True:
        order.append((following, _bound_bits(patterns[following], bound)))
        bound.update(v for v in patterns[following] if v >= 0)
        left.remove(following)
        if not left:
            return tuple(order)
        following = max(left, key=lambda j: (_weight(patterns[j], bound), -j))


def _bound_bits(variables: Variables, bound: set[int]) -> int:
    return sum(bit for bit, v in zip((1, 2, 4), variables, strict=True) if v in bound)


def _weight(variables: Variables, bound: set[int]) -> tuple[bool, int, int]:
    bits = _bound_bits(variables, bound)
    free = len({v for v in variables if v >= 0} - bound)
    return bits != 0, -free, bits.bit_count()
