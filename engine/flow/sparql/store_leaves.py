"""Triple patterns over a store that is followed quad by quad: a source for each, joined two by two.

In the flow: a conjunction → `Quads`, arranged by shared variables → **one relation**. The pattern with the fewest
quads comes first, then of those that share variables with what is joined the one with the fewest: only what is joined
so far is kept for this query alone; the patterns' quads serve all queries (engine/standing).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyoxigraph import BlankNode, NamedNode, Variable

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.relations import Column, Relation, Relations
from oxiseq.engine.flow.sparql.around import Around
from oxiseq.engine.flow.sparql.grounds import EachGraph, Ground, Merge
from oxiseq.engine.flow.sparql.leaves import Conjunction, Key, Leaves, Where, keys_of
from oxiseq.grammar.algebra import Expression, TermOrVariable, TriplePattern
from oxiseq.grammar.scope import plain_variables


class StoreLeaves(Leaves):
    """Leaves on the graphs of a store."""

    def __init__(self, relations: Relations, around: Around) -> None:
        super().__init__(relations)
        self._around = around

    def joined(self, whole: Conjunction) -> list[Relation]:
        """All patterns joined, a condition as soon as it can be decided."""
        left = [(self._size(pattern, place), self._pattern(pattern, place)) for pattern, place in whole.patterns]
        left.sort(key=lambda each: each[0])
        filters = list(whole.filters)
        made = self._decided(left.pop(0)[1], filters)
        while left:
            known = frozenset(made.columns)
            number = next((i for i, (_, each) in enumerate(left) if not known.isdisjoint(each.columns)), 0)
            made = self._decided(self._relations.join(made, left.pop(number)[1]), filters)
        return [made]

    def _decided(self, a: Relation, filters: list[Expression]) -> Relation:
        now = [f for f in filters if plain_variables(f) <= a.certain]
        filters[:] = [f for f in filters if f not in now]
        return self._relations.filter(a, now)

    def on(self, pattern: TriplePattern, ground: Ground) -> Relation:
        """A triple pattern on some graphs as one, or on each for itself, its name being a context."""
        if isinstance(ground, EachGraph):
            return self._each(pattern, ground)
        assert isinstance(ground, Merge)  # there are no events
        parts = [self._pattern(pattern, place) for place in ground.places]
        if not parts:
            return self._nothing(tuple(dict.fromkeys(keys_of(pattern))))
        return parts[0] if len(parts) == 1 else self._relations.distinct(self._relations.union(parts))

    def _pattern(self, pattern: TriplePattern, place: Where) -> Relation:
        if isinstance(place, EachGraph):
            return self._each(pattern, place)
        assert isinstance(place, p.GraphPlace)  # there are no windows
        form, keys = quads_of(pattern, place.name)
        return self._relations.source(form, keys, keys)

    def _each(self, pattern: TriplePattern, ground: EachGraph) -> Relation:
        context = ground.context
        if not self._around.whole_dataset:
            form, keys = quads_of(pattern, None)
            each = p.Quads(form.pattern, p.column(len(keys)))
            return self._relations.source(each, (*keys, context), (*keys, context))
        parts = [
            self._relations.extend(self._pattern(pattern, p.GraphPlace(name)), name, context)
            for name in self._around.named_graphs
        ]
        if not parts:
            return self._nothing((*dict.fromkeys(keys_of(pattern)), context))
        return self._relations.union(parts)

    def _nothing(self, columns: Sequence[Column]) -> Relation:
        return self._relations.source(p.Constant((), len(columns)), columns, columns)

    def _size(self, pattern: TriplePattern, place: Where) -> int:
        size: Callable[[p.Quads], int] | None = self._around.size
        if size is None:
            return 0
        if isinstance(place, p.GraphPlace):
            return size(quads_of(pattern, place.name)[0])
        form, keys = quads_of(pattern, None)
        return size(p.Quads(form.pattern, p.column(len(keys))))


def quads_of(pattern: TriplePattern, graph: NamedNode | None) -> tuple[p.Quads, tuple[Key, ...]]:
    """A pattern whose variables and blank nodes are columns; these."""
    keys = tuple(dict.fromkeys(keys_of(pattern)))
    names = {key: p.column(i) for i, key in enumerate(keys)}

    def of(term: TermOrVariable) -> TermOrVariable:
        return names[term] if isinstance(term, Variable | BlankNode) else term

    predicate = of(pattern.predicate)
    assert isinstance(predicate, NamedNode | Variable)
    return p.Quads(TriplePattern(of(pattern.subject), predicate, of(pattern.object)), graph), keys
