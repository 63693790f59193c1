"""Triple patterns as leaves: conjunctions on windows and graphs (plan.Patterns)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Final, TypeAlias

from pyoxigraph import BlankNode, NamedNode, Variable

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.relations import Column, Relation, Relations
from oxiseq.engine.flow.rewriting import placed
from oxiseq.engine.flow.sparql.grounds import EachEvent, EachGraph, Ground, Merge
from oxiseq.grammar.algebra import Expression, TermOrVariable, TriplePattern
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import plain_variables

Key: TypeAlias = Variable | BlankNode
Where: TypeAlias = p.Place | EachGraph | EachEvent
"""The subject of a pattern: where a store is followed quad by quad, each of its named graphs, too; each event."""
OWN: Final = "oxiseq_path_"
"""The prefix of variables that are not in the text; a join drops them."""


@dataclass(slots=True)
class Conjunction:
    """Triple patterns, each on one graph, and conditions on their variables."""

    patterns: list[tuple[TriplePattern, Where]] = field(default_factory=list)
    filters: list[Expression] = field(default_factory=list)

    @property
    def keys(self) -> tuple[Key, ...]:
        """Its variables and blank nodes in order of appearance."""
        return tuple(dict.fromkeys(key for pattern, _ in self.patterns for key in keys_of(pattern)))


def keys_of(pattern: TriplePattern) -> Iterator[Key]:
    """Its variables and blank nodes."""
    return (t for t in (pattern.subject, pattern.predicate, pattern.object) if isinstance(t, Variable | BlankNode))


def is_own(column: Column) -> bool:
    """Whether a join drops a column: a blank node, or a name of ours."""
    return isinstance(column, BlankNode) or (isinstance(column, Variable) and column.value.startswith(OWN))


def connected(relations: Relations, parts: Sequence[Relation]) -> Relation:
    """The join of all: of those that share columns with the joined ones the next, else the next."""
    if not parts:
        return relations.unit()
    whole, *left = parts
    while left:
        number = next((i for i, part in enumerate(left) if relations.shared(whole, part)), 0)
        whole = relations.join(whole, left.pop(number))
    return whole


class Leaves:
    """Leaves for conjunctions."""

    def __init__(self, relations: Relations) -> None:
        self._relations = relations

    def joined(self, whole: Conjunction) -> list[Relation]:
        """A leaf, or several where it would be too large for one. Its columns are its variables and blank nodes."""
        parts = list(_parts(whole.patterns))
        if len(parts) == 1:
            return [self._leaf(whole)]
        filters = list(whole.filters)
        found = []
        for part in parts:
            part.filters = [f for f in filters if plain_variables(f) <= {*part.keys}]
            filters = [f for f in filters if f not in part.filters]
            found.append(self._leaf(part))
        if not filters:
            return found
        return [self._relations.filter(connected(self._relations, found), filters)]

    def on(self, pattern: TriplePattern, ground: Ground) -> Relation:
        """A triple pattern on some graphs as one."""
        assert isinstance(ground, Merge)  # patterns on each graph are queried
        parts = [self._pattern(pattern, place) for place in ground.places]
        if not parts:
            return self._nothing(tuple(dict.fromkeys(keys_of(pattern))))
        return parts[0] if len(parts) == 1 else self._relations.distinct(self._relations.union(parts))

    def _nothing(self, columns: Sequence[Column]) -> Relation:
        return self._relations.source(p.Constant((), len(columns)), columns, columns)

    def _pattern(self, pattern: TriplePattern, place: Where) -> Relation:
        return self._leaf(Conjunction([(pattern, place)]))

    def _leaf(self, whole: Conjunction) -> Relation:
        keys = whole.keys
        names = {key: p.column(i) for i, key in enumerate(keys)}
        form = p.Patterns(
            tuple(renamed(pattern, names) for pattern, _ in whole.patterns),
            tuple(placed(f, {v: c for v, c in names.items() if isinstance(v, Variable)}) for f in whole.filters),
            tuple(place for _, place in whole.patterns if isinstance(place, p.WindowPlace | p.GraphPlace)),
        )
        return self._relations.source(form, keys, keys)


class OneByOne(Leaves):
    """Leaves of a pattern each, joined two by two."""

    def joined(self, whole: Conjunction) -> list[Relation]:
        """All patterns joined, the smallest first, then the smallest that shares columns with what is joined; a
        condition as soon as it can be decided."""
        left = [(self._size(pattern, place), self._pattern(pattern, place)) for pattern, place in whole.patterns]
        left.sort(key=lambda each: each[0])
        filters = list(whole.filters)
        made = self._decided(left.pop(0)[1], filters)
        while left:
            number = next((i for i, (_, each) in enumerate(left) if self._relations.shared(made, each)), 0)
            made = self._decided(self._relations.join(made, left.pop(number)[1]), filters)
        return [made]

    def _decided(self, a: Relation, filters: list[Expression]) -> Relation:
        now = [f for f in filters if plain_variables(f) <= a.certain]
        filters[:] = [f for f in filters if f not in now]
        return self._relations.filter(a, now)

    def _size(self, pattern: TriplePattern, place: Where) -> int:
        return 0


def renamed(pattern: TriplePattern, names: dict[Key, Variable]) -> TriplePattern:
    """A pattern with columns for variables and blank nodes."""

    def of(term: TermOrVariable) -> TermOrVariable:
        return names[term] if isinstance(term, Variable | BlankNode) else term

    predicate = of(pattern.predicate)
    assert isinstance(predicate, NamedNode | Variable)
    return TriplePattern(of(pattern.subject), predicate, of(pattern.object))


def _parts(patterns: Sequence[tuple[TriplePattern, Where]]) -> Iterator[Conjunction]:
    """As many patterns as a conjunction may have, those together that share variables."""
    left = list(dict.fromkeys(patterns))
    while left:
        part, keys = Conjunction(), set[Key]()
        while left and len(part.patterns) < p.MOST_PATTERNS:
            number = next((i for i, (pattern, _) in enumerate(left) if not keys.isdisjoint(keys_of(pattern))), 0)
            more = keys.union(keys_of(left[number][0]))
            if len(more) > p.MOST_VARIABLES:
                break
            keys = more
            part.patterns.append(left.pop(number))
        yield part
